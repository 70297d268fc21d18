"""The paper against itself, as a page shows it: what arithmetic finds, and what only reading finds.

The first list is computed from the printed numbers (`paper.inconsistencies`). The second is data
(`data/paper/tensions.csv`): passages that cannot both be taken as they stand, in our words, with the places.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envprobe_core.claims.printed import PAPER_FOLDER, inconsistencies, paper_values
from envprobe_core.errors import InputError
from envprobe_core.figures import policy_title
from envprobe_core.markup import Table, Text, counted
from envprobe_core.places import PLACES, place
from envprobe_core.policies import POLICIES

if TYPE_CHECKING:
    import pandas as pd

KINDS = {  # of `consistency`, in words
    "difference": "the difference does not follow from its cells",
    "two values": "one quantity, two values",
    "pool": "the pooled figure is not the mean of its parts",
    "count": "the count is none of those announced",
    "bound": "a row breaks a bound stated for all rows",
    "p side": "the p-value is one-sided where others are two-sided",
    "mirrored": "two comparisons print the same figure with opposite signs",
    "lower bound": "the lower bound is further off than its sample allows",
}
_MINUS = re.compile(r"(?<![\w.])-(?=[ \d])")
_PAIR = re.compile(r"([a-z-]+) vs ([a-z-]+)")
_LABEL = re.compile("|".join(sorted(map(re.escape, PLACES), key=len, reverse=True)))


@dataclass(frozen=True)
class Tension:
    """Passages of the paper that cannot both be taken as they stand."""

    id: str
    places: tuple[str, ...]  # keys of `places.PLACES`
    statement: str


def load_tensions() -> tuple[Tension, ...]:
    """Return what reading alone finds, in the order of the file; an unknown place is refused."""
    with (PAPER_FOLDER / "tensions.csv").open(newline="", encoding="utf-8") as file:
        rows = [Tension(r["id"], tuple(r["places"].split()), r["statement"]) for r in csv.DictReader(file)]
    for row in rows:
        for name in row.places:
            place(name)
    if len({row.id for row in rows}) < len(rows):
        raise InputError("tensions.csv gives an id twice")
    return tuple(rows)


def in_words(text: str) -> str:
    """Return a text with what readers see in place of LaTeX labels and policies, and true minus signs."""

    def titled(found: re.Match[str]) -> str:
        return " vs ".join(policy_title(name) if name in POLICIES else name for name in found.groups())

    return _MINUS.sub("−", _LABEL.sub(lambda found: PLACES[found[0]], _PAIR.sub(titled, text)))


def load_findings() -> pd.DataFrame:
    """Return what arithmetic finds, as `paper.inconsistencies` does."""
    return inconsistencies()


def show_findings(findings: pd.DataFrame) -> Table:
    """Show what arithmetic finds, one row a finding."""
    rows = [
        [
            place(row.source),
            in_words(row.row),
            KINDS[row.kind],
            row.printed.replace("-", "−"),
            row.expected.replace("-", "−"),
            in_words(row.why),
        ]
        for row in findings.itertuples()
    ]
    return Table(
        "tab-inconsistencies",
        "Printed numbers that contradict each other by more than their rounding. *Follows*: what the other "
        "printed numbers imply.",
        ("where", "row", "what", "printed", "follows", "how"),
        rows,
        "lllrrl",
    )


def tell_findings(findings: pd.DataFrame) -> Text:
    """Say how many numbers were checked and how many findings there are."""
    values = paper_values()
    places = findings["source"].nunique()
    return Text(
        f"{len(values)} printed numbers were checked against each other; {counted(len(findings))} findings "
        f"remain, in {counted(places)} places of the paper."
    )


def show_tensions(tensions: tuple[Tension, ...]) -> Table:
    """Show what reading alone finds, each with its places."""
    rows = [
        [str(number), row.statement, "; ".join(place(name) for name in row.places)]
        for number, row in enumerate(tensions, start=1)
    ]
    return Table(
        "tab-tensions",
        "Passages that cannot both be taken as they stand, in our words.",
        ("", "what stands against what", "where"),
        rows,
        "rll",
    )
