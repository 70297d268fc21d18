"""The paper's testable claims: one record each, read from `data/paper/claims.csv`.

A claim says what is measured, on which worlds and policies, in which direction, and what the paper
printed. `data/paper/README.md` explains every column; `verdicts` tests a claim on a frame.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

from envprobe_core.claims.printed import PAPER_FOLDER
from envprobe_core.errors import InputError

WORLDS = ("tooldag", "objectstate", "graphnav")
POLICIES = (
    "no-probe", "random", "periodic", "self-uncertainty", "simple", "minus-c", "minus-s", "minus-u",
    "minus-d", "cd", "judge", "oracle", "oracle-tw", "placebo", "yoked",
)  # fmt: skip
REGIMES = ("S1", "S2", "S3", "R1", "R2", "R3", "R4", "R6")
KINDS = {  # kind: the directions it accepts
    "paired": ("greater", "less"),
    "mcnemar": ("greater", "less", "either"),
    "equivalence": ("none",),
    "level": ("greater", "less", "equal"),
    "median": ("greater", "less", "equal"),
    "rate": ("greater", "less", "equal"),
    "contrast": ("greater", "less"),
    "ordering": ("greater", "less"),
    "dominance": ("greater", "less"),
}
UNITS = {"points": 100.0, "share": 1.0, "steps": 1.0, "count": 1.0}
COLUMNS = (
    "id", "source", "section", "statement", "kind", "measure", "worlds", "against", "arm",
    "reference", "direction", "bound", "margin", "unit", "value", "ci_low", "ci_high", "n",
    "family", "primary", "regime", "input",
)  # fmt: skip
SETTING, TABLE = "setting", "table"  # what `family` says: nothing is compared, or all that its source has
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


def policy_and_budget(arm: str) -> tuple[str, int | None]:
    """Policy and budget of an arm: `cd@3` is c+d with three probes, `cd` the policy as it is."""
    policy, sign, budget = arm.partition("@")
    if not sign:
        return policy, None
    if not budget.isdecimal():
        raise InputError(f"arm {arm!r} cannot be read; a policy, or POLICY@BUDGET, is accepted")
    return policy, int(budget)


def _optional(text: str, name: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        raise InputError(f"{name} {text!r} is not a number; a decimal number is accepted") from None


def _among(name: str, given: Iterable[str], accepted: Iterable[str]) -> None:
    for item in given:
        if item not in accepted:
            raise InputError(f"unknown {name} {item!r}; accepted: {', '.join(accepted)}")


def parse_claim(row: dict[str, str]) -> Claim:
    """Return the claim of one row of `claims.csv`; what cannot be tested as it stands is refused."""
    names = {name: tuple(row[name].split()) for name in ("measure", "arm", "reference", "direction")}
    worlds, against = (tuple(row[name].split("+")) if row[name] else () for name in ("worlds", "against"))
    numbers = {name: _optional(row[name], name) for name in ("bound", "margin", "value", "ci_low", "ci_high")}
    about = {name: row[name] for name in ("id", "source", "section", "statement", "kind", "unit", "regime")}
    claim = Claim(
        **about,
        measures=names["measure"],
        worlds=worlds,
        against=against,
        arms=names["arm"],
        references=names["reference"],
        directions=names["direction"],
        bound=numbers["bound"],
        margin=numbers["margin"],
        value=numbers["value"],
        low=numbers["ci_low"],
        high=numbers["ci_high"],
        half_unit=0.5 * 10.0 ** -len(row["value"].partition(".")[2]),
        n=int(row["n"]) if row["n"] else None,
        family=int(row["family"]) if row["family"].isdecimal() else 1,
        setting=row["family"] == SETTING,
        primary=row["primary"] == "yes",
        inputs=tuple(item.strip() for item in row["input"].split(";") if item.strip()),
    )
    _check(claim)
    return claim


def _check(claim: Claim) -> None:
    _among("kind", [claim.kind], KINDS)
    _among("unit", [claim.unit], UNITS)
    _among("world", claim.worlds + claim.against, WORLDS)
    _among("policy", [policy_and_budget(arm)[0] for arm in claim.arms + claim.references], POLICIES)
    _among("regime", [claim.regime], REGIMES)
    _among("direction", claim.directions, KINDS[claim.kind])
    for measure in claim.measures:
        measure_parts(measure)
    several = claim.kind in ("ordering", "dominance")
    compares = claim.kind in ("paired", "mcnemar", "equivalence", "dominance")
    equal = claim.directions == ("equal",)
    for wrong, why in (
        (len(claim.directions) != len(claim.measures), "needs one direction a measure"),
        (not several and len(claim.measures) != 1, "needs one measure"),
        (not claim.arms, "needs an arm"),
        (compares and not claim.references, "needs a reference"),
        (claim.kind in (*LEVELS, "ordering") and claim.references, "takes no reference"),
        (compares and not several and len(claim.arms + claim.references) != 2, "needs two arms"),
        (claim.kind == "ordering" and len(claim.arms) < 2, "needs two or more arms"),
        ((claim.kind == "contrast") != bool(claim.against), "contrast alone needs `against`"),
        (bool(set(claim.worlds) & set(claim.against)), "has a world in both groups"),
        ((equal or claim.kind == "equivalence") != (claim.margin is not None), "misuses `margin`"),
        (equal and claim.bound is None and claim.value is None, "needs a bound or a value"),
        (claim.kind in LEVELS and not equal and claim.bound is None, "needs a bound"),
        (claim.kind == "rate" and "/" not in claim.measures[0], "needs a measure a/b"),
        ((claim.low is None) != (claim.high is None), "needs both ends of an interval"),
    ):
        if wrong:
            raise InputError(f"claim {claim.id!r} ({claim.kind}) {why}")


@lru_cache(maxsize=1)
def _claims() -> dict[str, Claim]:
    with (PAPER_FOLDER / "claims.csv").open(newline="", encoding="utf-8") as file:
        claims = {row["id"]: parse_claim(row) for row in csv.DictReader(file)}
    families = Counter((claim.source, claim.about) for claim in claims.values() if not claim.setting)
    return {
        name: replace(claim, family=families.get((claim.source, claim.about), 1))
        for name, claim in claims.items()
    }


def load_claims(*, section: str | None = None) -> tuple[Claim, ...]:
    """Return every claim of `claims.csv` in its order, or those of one `section` of the book."""
    claims = tuple(_claims().values())
    if section is None:
        return claims
    _among("section", [section], dict.fromkeys(claim.section for claim in claims))
    return tuple(claim for claim in claims if claim.section == section)


def find_claim(name: str) -> Claim:
    """Return the claim with this id; an unknown one is refused with the known."""
    _among("claim", [name], _claims())
    return _claims()[name]
