"""The paper's testable claims: one record each, read from `data/paper/claims.csv`.

A claim says what is measured, on which worlds and policies, in which direction, and what the paper
printed. `data/paper/README.md` explains every column; `verdicts` tests a claim on a frame.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

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
    family: int  # comparisons the interval and p are adjusted for
    primary: bool  # one of the six of the paper's Bonferroni family (our naming of them)
    regime: str
    inputs: tuple[str, ...]  # calibration targets among its numbers or arms

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


def policy_and_budget(arm: str) -> tuple[str, int | None]:
    """Policy and budget of an arm: `cd@3` is c+d with three probes, `cd` the policy as it is."""
    policy, sign, budget = arm.partition("@")
    if not sign:
        return policy, None
    if not budget.isdecimal():
        raise InputError(f"arm {arm!r} cannot be read; a policy, or POLICY@BUDGET, is accepted")
    return policy, int(budget)


def _optional(text: str, name: str) -> float | None:
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{name} {text!r} is not a number; a decimal number is accepted") from None


def _among(name: str, given: Iterable[str], accepted: Iterable[str]) -> None:
    for item in given:
        if item not in accepted:
            raise InputError(f"{name} {item!r} is unknown; accepted: {', '.join(accepted)}")


def parse_claim(row: dict[str, str]) -> Claim:
    """A claim from one row of `claims.csv`; what cannot be tested as it stands is refused."""
    claim = Claim(
        id=row["id"],
        source=row["source"],
        section=row["section"],
        statement=row["statement"],
        kind=row["kind"],
        measures=tuple(row["measure"].split()),
        worlds=tuple(row["worlds"].split("+")),
        against=tuple(row["against"].split("+")) if row["against"] else (),
        arms=tuple(row["arm"].split()),
        references=tuple(row["reference"].split()),
        directions=tuple(row["direction"].split()),
        bound=_optional(row["bound"], "bound"),
        margin=_optional(row["margin"], "margin"),
        unit=row["unit"],
        value=_optional(row["value"], "value"),
        low=_optional(row["ci_low"], "ci_low"),
        high=_optional(row["ci_high"], "ci_high"),
        half_unit=0.5 * 10.0 ** -len(row["value"].partition(".")[2]),
        n=int(row["n"]) if row["n"] else None,
        family=int(row["family"]),
        primary=row["primary"] == "yes",
        regime=row["regime"],
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
        (
            claim.kind in LEVELS and not equal and claim.bound is None,
            "needs a bound",
        ),
        (claim.kind == "rate" and "/" not in claim.measures[0], "needs a measure a/b"),
        ((claim.low is None) != (claim.high is None), "needs both ends of an interval"),
    ):
        if wrong:
            raise InputError(f"claim {claim.id!r} ({claim.kind}) {why}")


@lru_cache(maxsize=4)
def _claims(path: Path) -> tuple[Claim, ...]:
    claims: dict[str, Claim] = {}
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise InputError(f"{path.name}: the columns are {reader.fieldnames}, not {COLUMNS}")
        for row in reader:
            try:
                claim = parse_claim(row)
            except ValueError as error:
                raise InputError(f"{path.name}, line {reader.line_num}: {error}") from None
            if claim.id in claims:
                raise InputError(f"{path.name}, line {reader.line_num}: {claim.id!r} occurs twice")
            claims[claim.id] = claim
    return tuple(claims.values())


def load_claims(path: Path | None = None, *, section: str | None = None) -> tuple[Claim, ...]:
    """Every claim of `claims.csv` in its order, or those of one `section` of the book."""
    claims = _claims(path or PAPER_FOLDER / "claims.csv")
    if section is None:
        return claims
    _among("section", [section], dict.fromkeys(claim.section for claim in claims))
    return tuple(claim for claim in claims if claim.section == section)


def find_claim(name: str) -> Claim:
    """The claim with this id; an unknown one is refused with the known."""
    claims = {claim.id: claim for claim in load_claims()}
    _among("claim", [name], claims)
    return claims[name]
