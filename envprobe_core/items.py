"""Where the book has each table, figure, equation and statement of the paper (data/paper/items.csv)."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache

from envprobe_core.claims.printed import PAPER_FOLDER

KINDS = (
    "section", "table", "figure", "algorithm", "definition", "assumption", "lemma", "proposition", "theorem",
    "equation",
)  # fmt: skip
TERM = "term:"
ALGORITHM = "alg-"
STATEMENTS = (ALGORITHM, "ass-", "def-", "lem-", "pro-", "thm-")
FLOATS = ("fig-", "tab-")
EQUATION = "eq-"


@dataclass(frozen=True)
class Item:
    """One item of the paper.

    Attributes:
        label: its LaTeX label; our own where it has none.
        kind: one of `KINDS`.
        name: as the paper prints it.
        statement: what it is about, in our words.
        targets: labels or documents of the book; `term:` and a word is an entry of the glossary.
    """

    label: str
    kind: str
    name: str
    statement: str
    targets: tuple[str, ...]

    def links(self) -> str:
        """Return its places in the book as MyST text."""
        return ", ".join(map(_link, self.targets))


def _link(target: str) -> str:
    """Write the role that leads to a target."""
    if target.startswith(TERM):
        return f"{{term}}`{target.removeprefix(TERM)}`"
    if target.startswith(FLOATS):
        return f"{{numref}}`{target}`"
    if target.startswith(EQUATION):
        return f"equation {{eq}}`{target}`"
    if target.startswith(ALGORITHM):  # it has no number
        return f"{{prf:ref}}`the algorithm <{target}>`"
    if target.startswith(STATEMENTS):
        return f"{{prf:ref}}`{target}`"
    return f"{{doc}}`/{target}`"


@lru_cache(maxsize=1)
def load_items() -> tuple[Item, ...]:
    """Read every item, in the paper's order."""
    with (PAPER_FOLDER / "items.csv").open(newline="", encoding="utf-8") as file:
        rows = [row | {"targets": tuple(row["targets"].split())} for row in csv.DictReader(file)]
    return tuple(Item(**row) for row in rows)
