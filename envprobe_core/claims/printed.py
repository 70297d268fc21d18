"""The paper's numbers as data.

`data/paper/tables.csv` holds every number of every table and every result of the running text;
`data/paper/README.md` says what its columns and names mean. `inconsistencies` finds by arithmetic
where the printed numbers contradict each other.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from envprobe_core.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

PAPER_FOLDER = Path(__file__).resolve().parents[2] / "data" / "paper"
COLUMNS = ("source", "row", "column", "relation", "value", "ci_low", "ci_high", "n")
RELATIONS = ("=", "<", ">")
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


def _decimals(text: str) -> int:
    return len(text.partition(".")[2])


def _number(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{where}: {text!r} is not a number; a decimal number is accepted")
    return number


@lru_cache(maxsize=4)
def _values(path: Path) -> tuple[PaperValue, ...]:
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise InputError(f"{path.name}: the columns are {reader.fieldnames}, not {COLUMNS}")
        values, seen = [], set()
        for row in reader:
            where = f"{path.name}, line {reader.line_num}"
            key = (row["source"], row["row"], row["column"])
            if key in seen:
                raise InputError(f"{where}: {key} is given twice")
            if row["relation"] not in RELATIONS:
                raise InputError(f"{where}: relation {row['relation']!r} is none of {RELATIONS}")
            seen.add(key)
            values.append(
                PaperValue(
                    *key,
                    relation=row["relation"],
                    value=_number(row["value"], where),
                    low=_number(row["ci_low"], where) if row["ci_low"] else None,
                    high=_number(row["ci_high"], where) if row["ci_high"] else None,
                    n=int(_number(row["n"], where)) if row["n"] else None,
                    decimals=_decimals(row["value"]),
                )
            )
    return tuple(values)


def paper_values(path: Path | None = None) -> tuple[PaperValue, ...]:
    """Every number of `tables.csv` in its order; a damaged file is refused with its line."""
    return _values(path or PAPER_FOLDER / "tables.csv")


def load_tables(path: Path | None = None) -> pd.DataFrame:
    """The paper's numbers as a frame: the columns of `tables.csv` and `decimals`, one row each."""
    import pandas as pd

    names = (*COLUMNS[:5], "low", "high", "n", "decimals")
    frame = pd.DataFrame([[getattr(v, k) for k in names] for v in paper_values(path)])
    frame.columns = (*COLUMNS, "decimals")
    kinds = {"value": float, "ci_low": float, "ci_high": float, "n": "Int64", "decimals": int}
    return frame.astype(kinds)


def paper_value(source: str, row: str, column: str) -> PaperValue:
    """The number printed at `source`, `row`, `column`; an unknown name is refused with the known.

    Sources are LaTeX labels (`tab:main`), `timing`, `abstract` or a section's label.
    """
    known = paper_values()
    for name, asked, chosen in (
        ("source", source, lambda v: v.source),
        ("row", row, lambda v: v.row),
        ("column", column, lambda v: v.column),
    ):
        names = list(dict.fromkeys(chosen(v) for v in known))
        if asked not in names:
            raise InputError(f"no {name} {asked!r} here; accepted: {', '.join(names)}")
        known = tuple(v for v in known if chosen(v) == asked)
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


def inconsistencies(values: tuple[PaperValue, ...] | None = None) -> pd.DataFrame:
    """Where the printed numbers contradict each other, one row a finding, in the order of checks.

    Columns: `kind source row column printed expected why`. Rounding is allowed for: a number at
    odds is further off than the rounding of all numbers that enter the check.
    """
    import pandas as pd

    from envprobe_core.claims.consistency import CHECKS

    values = paper_values() if values is None else values
    found = [
        (kind, v.source, v.row, v.column, str(v), expected, why)
        for check in CHECKS
        for kind, v, expected, why in check(values)
    ]
    columns = ["kind", "source", "row", "column", "printed", "expected", "why"]
    return pd.DataFrame(found, columns=columns)
