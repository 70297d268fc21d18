"""The paper against itself: what arithmetic finds in its numbers, and what only reading finds, in words.

The first list is computed from the printed numbers (`paper.inconsistencies`). The second is data
(`data/paper/tensions.csv`): passages that cannot both be taken as they stand, in our words.
"""

from __future__ import annotations

import re

import pandas as pd

from envprobe_core.claims.printed import PAPER_FOLDER, inconsistencies
from envprobe_core.figures import policy_title
from envprobe_core.places import PLACES, place
from envprobe_core.policies import POLICIES

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


def in_words(text: str) -> str:
    """Return a text with what readers see in place of LaTeX labels and policies, and true minus signs."""

    def titled(found: re.Match[str]) -> str:
        return " vs ".join(policy_title(name) if name in POLICIES else name for name in found.groups())

    return _MINUS.sub("−", _LABEL.sub(lambda found: PLACES[found[0]], _PAIR.sub(titled, text)))


def load_findings() -> pd.DataFrame:
    """Find printed numbers that contradict each other: `where row what printed follows how`, in words."""
    found = inconsistencies()
    return pd.DataFrame(
        {
            "where": found["source"].map(place),
            "row": found["row"].map(in_words),
            "what": found["kind"].map(KINDS),
            "printed": found["printed"].str.replace("-", "−"),
            "follows": found["expected"].str.replace("-", "−"),
            "how": found["why"].map(in_words),
        }
    )


def load_tensions() -> pd.DataFrame:
    """Read what reading alone finds: `id places statement` as in the file, `number` and `where` in words."""
    frame = pd.read_csv(PAPER_FOLDER / "tensions.csv")
    where = frame["places"].map(lambda text: "; ".join(map(place, text.split())))
    return frame.assign(where=where, number=range(1, len(frame) + 1))
