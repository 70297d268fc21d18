"""The paper's numbers as data.

`data/paper/tables.csv` holds every number of every table and every result of the running text;
`data/paper/README.md` says what its columns and names mean.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache

from envprobe_core.errors import InputError
from envprobe_core.sources import DATA

PAPER_FOLDER = DATA / "paper"
STRATA: dict[str, tuple[str, ...]] = {  # how the paper pools worlds
    "procedural": ("tooldag",),
    "spatial": ("objectstate", "graphnav"),
    "combined": ("tooldag", "objectstate", "graphnav"),
}


def stratum_of(worlds: tuple[str, ...]) -> str:
    """Return the paper's name for a set of worlds, or the worlds' own."""
    for name, members in STRATA.items():
        if set(members) == set(worlds):
            return name
    return " + ".join(worlds)


@dataclass(frozen=True, slots=True)
class PaperValue:
    """One number as the paper prints it."""

    source: str
    row: str
    column: str
    relation: str  # the quantity is = value, < value or > value
    value: float
    low: float | None  # printed interval
    high: float | None
    n: int | None
    decimals: int  # digits printed after the point

    @property
    def half_unit(self) -> float:
        """Half a unit of the last printed digit: the rounding the number carries."""
        return 0.5 * 10.0**-self.decimals

    def __str__(self) -> str:
        relation = "" if self.relation == "=" else self.relation
        return f"{relation}{self.value:.{self.decimals}f}"


def read_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a file of `data/paper/` as texts."""
    with (PAPER_FOLDER / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def half_unit(printed: str) -> float:
    """Return half a unit of a number's last printed digit: the rounding that it carries."""
    return 0.5 * 10.0 ** -len(printed.partition(".")[2])


def _read(row: dict[str, str]) -> PaperValue:
    low, high = (float(row[end]) if row[end] else None for end in ("ci_low", "ci_high"))
    place = (row[name] for name in ("source", "row", "column", "relation"))
    n, decimals = int(row["n"]) if row["n"] else None, len(row["value"].partition(".")[2])
    return PaperValue(*place, float(row["value"]), low, high, n, decimals)


@lru_cache(maxsize=1)
def paper_values() -> tuple[PaperValue, ...]:
    """Return every number of `tables.csv` in its order."""
    return tuple(map(_read, read_rows("tables.csv")))


def paper_value(source: str, row: str, column: str) -> PaperValue:
    """The number printed at `source`, `row`, `column`; an unknown name is refused with the known.

    Sources are LaTeX labels (`tab:main`), `timing`, `abstract` or a section's label.
    """
    known = paper_values()
    for name, asked in {"source": source, "row": row, "column": column}.items():
        names = dict.fromkeys(getattr(value, name) for value in known)
        if asked not in names:
            raise InputError(f"no {name} {asked!r} here; accepted: {', '.join(names)}")
        known = tuple(value for value in known if getattr(value, name) == asked)
    return known[0]


def printed_levels() -> dict[tuple[str, str], dict[str, PaperValue]]:
    """What the paper prints of each policy's level: (stratum, policy) -> column -> the first such number.

    Columns are `accuracy` (a share) and `success_pct`; one that the paper does not print is missing.
    """
    found: dict[tuple[str, str], dict[str, PaperValue]] = {}
    for value in paper_values():
        stratum, _, pair = value.row.partition(": ")
        arm, versus, reference = pair.partition(" vs ")
        sides = {"method_": arm, "reference_": reference} if versus else {"": arm}
        for side, policy in sides.items():
            for column in ("accuracy", "success_pct"):
                if value.column == side + column and value.relation == "=":
                    found.setdefault((stratum, policy), {}).setdefault(column, value)
    return found
