"""The paper's numbers and claims as data; `judge` says what becomes of a claim, `paper_items` where it is.

`data/paper/tables.csv` holds every number of every table and every result of the running text,
`data/paper/claims.csv` every testable claim: what is measured, on which worlds and policies, in which
direction, and what the paper printed. `data/paper/README.md` explains every column of the files.
"""

import csv
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise, product
from typing import NamedTuple

from envprobe_core.comparing import STRATA
from envprobe_core.errors import InputError, look_up
from envprobe_core.sources import DATA

PAPER_FOLDER = DATA / "paper"
UNITS = {"points": 100.0, "share": 1.0, "steps": 1.0, "count": 1.0}  # from the frame's fractions to each
SETTING = "setting"  # what `family` says where nothing is compared
LEVELS = ("level", "median", "rate")  # kinds that compare with a number and take no reference


def read_rows(name: str) -> list[dict[str, str]]:
    """The rows of a file of `data/paper/` as texts."""
    with (PAPER_FOLDER / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# numbers


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
        return f"{self.relation.strip('=')}{self.value:.{self.decimals}f}"


@cache
def paper_values() -> tuple[PaperValue, ...]:
    """Every number of `tables.csv` in its order."""
    found = []
    for row in read_rows("tables.csv"):
        place = (row[name] for name in ("source", "row", "column", "relation"))
        low, high = (float(row[end]) if row[end] else None for end in ("ci_low", "ci_high"))
        n, digits = int(row["n"]) if row["n"] else None, len(row["value"].partition(".")[2])
        found.append(PaperValue(*place, float(row["value"]), low, high, n, digits))
    return tuple(found)


def paper_value(source: str, row: str, column: str) -> PaperValue:
    """The number printed at `source`, `row`, `column`; an unknown name is refused with the known.

    Sources are LaTeX labels (`tab:main`), `timing`, `abstract` or a section's label.
    """
    known = paper_values()
    for name, asked in {"source": source, "row": row, "column": column}.items():
        look_up(name, asked, {getattr(value, name): value for value in known})
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
        for (side, policy), column in product(sides.items(), ("accuracy", "success_pct")):
            if value.column == side + column and value.relation == "=":
                found.setdefault((stratum, policy), {}).setdefault(column, value)
    return found


def stratum_of(worlds: tuple[str, ...]) -> str:
    """The paper's name for a set of worlds, or the worlds' own."""
    names = (name for name, members in STRATA.items() if set(members) == set(worlds))
    return next(names, " + ".join(worlds))


# claims


class Comparison(NamedTuple):
    """One of the comparisons that a claim consists of."""

    measure: str
    arms: tuple[str, ...]
    reference: str | None
    direction: str


@dataclass(frozen=True)
class Claim:
    """One testable claim; numbers are in its own unit (points are hundredths)."""

    id: str
    source: str  # where the paper makes it: a LaTeX label or a section
    section: str  # the section of the book that shows it
    statement: str
    kind: str
    measures: tuple[str, ...]  # a column, or two columns joined by / - < >
    worlds: tuple[str, ...]
    against: tuple[str, ...]  # contrast: the worlds of the second group
    arms: tuple[str, ...]
    references: tuple[str, ...]
    directions: tuple[str, ...]  # one a measure
    bound: float | None  # level and rate: what the mean is compared with
    margin: float | None  # equivalence and `equal`: stated beforehand
    unit: str
    value: float | None  # the paper's number, its interval, the rounding it carries
    low: float | None
    high: float | None
    half_unit: float
    n: int | None
    family: int  # claims of its sort and source, for which the interval and p are adjusted
    setting: bool  # it states how the experiment is set up
    primary: bool  # one of the six of the paper's Bonferroni family (our naming of them)
    regime: str
    inputs: tuple[str, ...]  # calibration targets among its numbers or arms

    @cached_property
    def about(self) -> str:
        """Return its sort: a `comparison`, a printed `level` (another agent's) or a `setting`."""
        return SETTING if self.setting else "level" if self.directions == ("equal",) else "comparison"

    @cached_property
    def level(self) -> float:
        """What the statistic is compared with: 0 for a difference."""
        named = (number for number in (self.bound, self.value) if number is not None)
        return next(named, 0.0) if self.kind in LEVELS else 0.0

    @cached_property
    def printed(self) -> tuple[float, float] | None:
        """The interval of the size that is compared, else its rounding; None where none is printed."""
        if self.value is None or len(self.measures) > 1:
            return None
        if self.low is not None and self.high is not None:
            return self.low, self.high
        return self.value - self.half_unit, self.value + self.half_unit

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """What it compares: an ordering neighbours, dominance every arm with every reference."""
        if self.kind == "ordering":
            steps = [((arm,), reference) for reference, arm in pairwise(self.arms)]
        elif self.kind == "dominance":
            steps = [((arm,), reference) for arm in self.arms for reference in self.references]
        else:
            steps = [(self.arms, next(iter(self.references), None))]
        told = zip(self.measures, self.directions, strict=True)
        return tuple(Comparison(measure, *step, direction) for measure, direction in told for step in steps)


def policy_and_budget(arm: str) -> tuple[str, int | None]:
    """Policy and budget of an arm: `cd@3` is c+d with three probes, `cd` the policy as it is."""
    policy, sign, budget = arm.partition("@")
    if sign and not budget.isdecimal():
        raise InputError(f"arm {arm!r} cannot be read; a policy, or POLICY@BUDGET, is accepted")
    return policy, int(budget) if sign else None


def parse_claim(row: dict[str, str]) -> Claim:
    """The claim of one row of `claims.csv`; `tests/test_claims.py` holds the rules of the file."""
    text = ("id", "source", "section", "statement", "kind", "unit", "regime")
    several = {"measures": "measure", "arms": "arm", "references": "reference", "directions": "direction"}
    numbers = {"bound": "bound", "margin": "margin", "value": "value", "low": "ci_low", "high": "ci_high"}
    return Claim(
        **{name: row[name] for name in text},
        **{name: tuple(row[column].split()) for name, column in several.items()},
        **{name: tuple(filter(None, row[name].split("+"))) for name in ("worlds", "against")},
        **{name: float(row[column]) if row[column] else None for name, column in numbers.items()},
        half_unit=0.5 * 10.0 ** -len(row["value"].partition(".")[2]),
        n=int(row["n"]) if row["n"] else None,
        family=1,
        setting=row["family"] == SETTING,
        primary=row["primary"] == "yes",
        inputs=tuple(item.strip() for item in row["input"].split(";") if item.strip()),
    )


@cache
def claims_by_id() -> dict[str, Claim]:
    """Every claim of `claims.csv` in its order, each adjusted for those of its sort and source."""
    claims = [parse_claim(row) for row in read_rows("claims.csv")]
    families = Counter((claim.source, claim.about) for claim in claims if not claim.setting)
    adjusted = (replace(claim, family=families.get((claim.source, claim.about), 1)) for claim in claims)
    return {claim.id: claim for claim in adjusted}


def load_claims(*, section: str | None = None) -> tuple[Claim, ...]:
    """Every claim in its order, or those of one `section` of the book."""
    claims = tuple(claims_by_id().values())
    if section is not None:
        look_up("section", section, {claim.section: claim for claim in claims})
    return tuple(claim for claim in claims if section in (None, claim.section))


def find_claim(name: str) -> Claim:
    """The claim with this id; an unknown one is refused with the known."""
    return look_up("claim", name, claims_by_id())
