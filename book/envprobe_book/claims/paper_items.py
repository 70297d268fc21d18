"""Where things stand, in the paper and in this book, in words that readers know.

Claims and numbers name their place by LaTeX label, by `timing` (the table without a number) or by section
(data/paper/README.md); readers know the place by the number that LaTeX gave it. `items.csv` says where the
book has each table, figure, equation and statement of the paper.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from envprobe_book.claims import read_rows
from envprobe_core.errors import look_up
from envprobe_core.policies import POLICIES

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
    """One item of the paper."""

    label: str  # its LaTeX label; our own where it has none
    kind: str  # one of `KINDS`
    name: str  # as the paper prints it
    statement: str  # what it is about, in our words
    targets: tuple[str, ...]  # labels or documents of the book; `term:` and a word: an entry of the glossary


@lru_cache(maxsize=1)
def load_items() -> tuple[Item, ...]:
    """Read every item, in the paper's order."""
    return tuple(Item(**row | {"targets": tuple(row["targets"].split())}) for row in read_rows("items.csv"))


LATER = {  # sections whose text is read after an item that stands in them
    "sec:prelim": "def:taxonomy",
    "sec:method:algo": "alg:simple",
    "sec:results:g1": "tab:main",
    "sec:results:g5": "tab:ordering",
}


def _read_places() -> dict[str, str]:
    names = {item.label: item.name for item in load_items()}
    labels = [label for label in names if label not in LATER]
    for section, item in LATER.items():
        labels.insert(labels.index(item) + 1, section)
    found = {}
    for label in labels:
        found[label] = names[label]
        if label.startswith("tab:"):
            found[f"{label} caption"] = f"{names[label]}, caption"
    return found


PLACES = _read_places()
"""What readers know each place as, by its label, in the order in which the paper is read."""


def place(source: str) -> str:
    """The printed name of a place; one that the paper does not have is refused."""
    return look_up("place", source, PLACES)


def order(source: str) -> int:
    """The position of a place in the paper; refused as in `place`."""
    look_up("place", source, PLACES)
    return list(PLACES).index(source)


_MINUS = re.compile(r"(?<![\w.])-(?=[ \d])")
_PAIR = re.compile(r"([a-z-]+) vs ([a-z-]+)")
_LABEL = re.compile("|".join(sorted(map(re.escape, PLACES), key=len, reverse=True)))


def in_words(text: str) -> str:
    """A text with what readers see in place of LaTeX labels and policies, and true minus signs."""

    def titled(found: re.Match[str]) -> str:
        return " vs ".join(POLICIES[name].title if name in POLICIES else name for name in found.groups())

    return _MINUS.sub("−", _LABEL.sub(lambda found: PLACES[found[0]], _PAIR.sub(titled, text)))
