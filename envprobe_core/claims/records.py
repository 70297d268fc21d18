"""The paper's testable claims: one record each, read from `data/paper/claims.csv`.

A claim says what is measured, on which worlds and policies, in which direction, and what the paper
printed. `data/paper/README.md` explains every column; `judge` tests a claim on a frame.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache

from envprobe_core.claims.printed import half_unit, read_rows
from envprobe_core.errors import InputError, look_up

UNITS = {"points": 100.0, "share": 1.0, "steps": 1.0, "count": 1.0}
SETTING = "setting"  # what `family` says where nothing is compared
LEVELS = ("level", "median", "rate")  # kinds that compare with a number and take no reference
MEASURE = re.compile(r"([a-z_]+)(?:([/<>-])([a-z_]+|\d+(?:\.\d+)?))?")


@dataclass(frozen=True, slots=True)
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

    @property
    def about(self) -> str:
        """Say what a verdict is about: a `comparison`, a printed `level`, or a `setting` of the experiment.

        Comparisons are what the paper argues with; the level is another agent's; a setting is looked up.
        """
        if self.setting:
            return "setting"
        return "level" if self.directions == ("equal",) else "comparison"

    @property
    def scale(self) -> float:
        """Factor from the frame's fractions to the claim's unit."""
        return UNITS[self.unit]

    @property
    def centre(self) -> float:
        """What a mean is compared with: the bound, else the paper's value, else 0."""
        if self.bound is not None:
            return self.bound
        return 0.0 if self.value is None else self.value


def measure_parts(measure: str) -> tuple[str, str, str]:
    """Left column, operator and right side of a measure; the last two empty for a plain column."""
    found = MEASURE.fullmatch(measure)
    if found is None:
        raise InputError(
            f"measure {measure!r} cannot be read; a column, or two joined by one of / - < >, is accepted"
        )
    return found[1], found[2] or "", found[3] or ""


def measure_columns(measure: str) -> list[str]:
    """Return the columns that a measure reads."""
    return [name for name in measure_parts(measure)[::2] if name and not name[0].isdigit()]


def columns_of(claim: Claim) -> set[str]:
    """Return the columns that a claim's measures read."""
    return {name for measure in claim.measures for name in measure_columns(measure)}


def policy_and_budget(arm: str) -> tuple[str, int | None]:
    """Policy and budget of an arm: `cd@3` is c+d with three probes, `cd` the policy as it is."""
    policy, sign, budget = arm.partition("@")
    if not sign:
        return policy, None
    if not budget.isdecimal():
        raise InputError(f"arm {arm!r} cannot be read; a policy, or POLICY@BUDGET, is accepted")
    return policy, int(budget)


def parse_claim(row: dict[str, str]) -> Claim:
    """Return the claim of one row of `claims.csv`; `tests/test_claims.py` holds the rules of the file."""
    text = ("id", "source", "section", "statement", "kind", "unit", "regime")
    several = {"measures": "measure", "arms": "arm", "references": "reference", "directions": "direction"}
    numbers = {"bound": "bound", "margin": "margin", "value": "value", "low": "ci_low", "high": "ci_high"}
    return Claim(
        **{name: row[name] for name in text},
        **{name: tuple(row[column].split()) for name, column in several.items()},
        **{name: tuple(filter(None, row[name].split("+"))) for name in ("worlds", "against")},
        **{name: float(row[column]) if row[column] else None for name, column in numbers.items()},
        half_unit=half_unit(row["value"]),
        n=int(row["n"]) if row["n"] else None,
        family=int(row["family"]) if row["family"].isdecimal() else 1,
        setting=row["family"] == SETTING,
        primary=row["primary"] == "yes",
        inputs=tuple(item.strip() for item in row["input"].split(";") if item.strip()),
    )


@lru_cache(maxsize=1)
def _claims() -> dict[str, Claim]:
    claims = {row["id"]: parse_claim(row) for row in read_rows("claims.csv")}
    families = Counter((claim.source, claim.about) for claim in claims.values() if not claim.setting)
    return {
        name: replace(claim, family=families.get((claim.source, claim.about), 1))
        for name, claim in claims.items()
    }


def load_claims(*, section: str | None = None) -> tuple[Claim, ...]:
    """Return every claim of `claims.csv` in its order, or those of one `section` of the book."""
    claims = tuple(_claims().values())
    if section is not None:
        look_up("section", section, {claim.section: claim for claim in claims})
    return tuple(claim for claim in claims if section in (None, claim.section))


def find_claim(name: str) -> Claim:
    """Return the claim with this id; an unknown one is refused with the known."""
    return look_up("claim", name, _claims())
