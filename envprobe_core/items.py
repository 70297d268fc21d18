"""Where the book has each table, figure, equation and statement of the paper (data/paper/items.csv)."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from envprobe_core.claims.printed import PAPER_FOLDER
from envprobe_core.errors import InputError

COLUMNS = ("label", "kind", "name", "statement", "targets")
KINDS = (
    "section",
    "table",
    "figure",
    "algorithm",
    "definition",
    "assumption",
    "lemma",
    "proposition",
    "theorem",
    "equation",
)
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


@lru_cache(maxsize=2)
def load_items(path: Path | None = None) -> tuple[Item, ...]:
    """Read every item, in the paper's order.

    Args:
        path: by default data/paper/items.csv.

    Raises:
        InputError: for other columns, an unknown kind, an empty cell, or a label given twice.
    """
    path = path or PAPER_FOLDER / "items.csv"
    found: dict[str, Item] = {}
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise InputError(f"{path.name}: the columns are {reader.fieldnames}, not {COLUMNS}")
        for row in reader:
            where = f"{path.name}, line {reader.line_num}"
            if not all(row[name] for name in COLUMNS):
                raise InputError(f"{where}: a cell is empty; every column needs a value")
            if row["kind"] not in KINDS:
                raise InputError(f"{where}: kind {row['kind']!r}; accepted: {', '.join(KINDS)}")
            if row["label"] in found:
                raise InputError(f"{where}: {row['label']!r} is given twice")
            found[row["label"]] = Item(
                row["label"], row["kind"], row["name"], row["statement"], tuple(row["targets"].split())
            )
    return tuple(found.values())
