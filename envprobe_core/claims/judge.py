"""Test claims: pair the episodes, resample the difference, and say what its interval says of the claim.

At the Bonferroni-adjusted interval a claim *holds* where the interval lies on the claimed side,
*holds, other size* where it is also disjoint from the paper's interval (or rounded value), and *reverses*
where it lies on the other side; else it is *inconclusive*. A claim of no difference, or of a level, holds
where the interval lies within a margin stated beforehand and reverses where it lies outside. *input*: the
claim was a calibration target of the profile. *not tested*: the frame cannot test it.

Every statistic is a ratio of sums over units (a seed in a world), for many columns at once. A frame has one
column; the atlas has one for each of its agents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache, reduce
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from envprobe_core.claims.records import LEVELS, Claim, find_claim, load_claims, measure_parts
from envprobe_core.errors import InputError
from envprobe_core.statistics import (
    LEVEL,
    RESAMPLES,
    Estimate,
    bonferroni,
    clustered_rate,
    mcnemar_exact,
    median_bootstrap,
)

HOLDS, OTHER_SIZE, REVERSES = "holds", "holds, other size", "reverses"
INCONCLUSIVE, INPUT, NOT_TESTED = "inconclusive", "input", "not tested"
VERDICTS = (HOLDS, OTHER_SIZE, INCONCLUSIVE, REVERSES, INPUT, NOT_TESTED)
CALIBRATED = ("calibrated",)  # profiles fitted to the paper's targets: their targets are inputs
PROTOCOLS = ("paper", "observed", "released")
ABOUT = ("source", "section", "statement", "kind", "regime", "primary")
COLUMNS = (
    "claim", "verdict", "protocol", "profile", "unit", "estimate", "low", "high", "low_adjusted",
    "high_adjusted", "p", "p_adjusted", "n", "paper_value", "paper_low", "paper_high", "paper_n",
    "difference", "reason", "same_n", *ABOUT,
)  # fmt: skip
KEY = ("regime", "policy", "world", "seed")
NULLABLE = ("collapse_onset", "action_onset")  # never: censored
MIN_UNITS = 10  # fewer episodes carry no bootstrap worth a verdict
EDGE = 1e-9  # relative slack of comparisons with a bound: rounding, not evidence

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.str_]


class NotTestable(Exception):
    """Why a frame cannot test a claim."""


# episodes and what a statistic is made of


def measured(text: str, column: Callable[[str], Floats]) -> Floats:
    """Return a measure of episodes: a column, a ratio, a difference, or 1 and 0 for a comparison.

    Args:
        text: a column's name, or two joined by one of / - < > (a number may stand on the right).
        column: gives a column by its name, in any shape.

    Returns:
        The columns' shape; NaN where the measure is undefined: nothing in the denominator, an event that
        never came. A censored event compared with a number counts as later than it.
    """
    left_name, sign, right_name = measure_parts(text)
    left = column(left_name)
    if not sign:
        return left
    if right_name[0].isdigit():
        left, right = np.where(np.isnan(left), np.inf, left), np.asarray(float(right_name))
    else:
        right = column(right_name)
    if sign == "/":
        return np.divide(left, right, out=np.full(left.shape, np.nan), where=right > 0)
    if sign == "-":
        return left - right
    holds = left < right if sign == "<" else left > right
    return np.where(np.isnan(left) | np.isnan(right), np.nan, holds)


def column_names(measure: str) -> list[str]:
    """Return the columns that a measure reads."""
    return [name for name in measure_parts(measure)[::2] if name and not name[0].isdigit()]


class Source(Protocol):
    """Where the episodes of a claim come from: a frame, or the atlas's cube."""

    def values(self, measure: str, regime: str, world: str, policies: Sequence[str]) -> Floats:
        """Return a measure of some policies on the seeds they share, [policy, unit, column]."""


class Episodes:
    """A frame of episodes, one sorted block a cell; pairs are joined by key, so no order of rows matters."""

    def __init__(self, frame: pd.DataFrame) -> None:
        """Sort the rows and find each cell's.

        Raises:
            InputError: for a missing key column, or an episode that occurs twice (a frame with several
                budgets or thresholds of one policy: choose one first).
        """
        _require(frame, KEY)
        self.frame = frame.sort_values(list(KEY), ignore_index=True)
        seed = self.frame["seed"].to_numpy()
        labels = [self.frame[name].to_numpy(dtype=object) for name in KEY[:3]]
        changes = reduce(np.logical_or, (column[1:] != column[:-1] for column in labels))
        twice = np.flatnonzero(~changes & (seed[1:] == seed[:-1]))
        if len(twice):
            at = twice[0]
            regime, policy, world = (column[at] for column in labels)
            raise InputError(
                f"seed {seed[at]} of {policy} in {world}, {regime}, occurs twice; "
                "one budget and one threshold a policy are accepted"
            )
        self._seed = seed
        self._measures: dict[str, Floats] = {}
        edges = [0, *(np.flatnonzero(changes) + 1).tolist(), len(self.frame)]
        self._cells = {tuple(column[a] for column in labels): slice(a, b) for a, b in pairwise(edges) if b}

    def column(self, name: str) -> Floats:
        """Return a column as floats, [row]."""
        if name not in self.frame.columns:
            raise NotTestable(f"the frame has no column {name}")
        return self.frame[name].to_numpy(dtype=np.float64, na_value=np.nan)

    def measure(self, text: str) -> Floats:
        """Return a measure, [row], computed once."""
        if text not in self._measures:
            self._measures[text] = measured(text, self.column)
        return self._measures[text]

    def values(self, measure: str, regime: str, world: str, policies: Sequence[str]) -> Floats:
        """Return a measure of some policies on the seeds they share, in order of seed: [policy, unit, 1].

        Raises:
            NotTestable: for a cell or a column that the frame does not have, and less than two shared seeds.
            InputError: for a gap in a column that only a damaged frame can have.
        """
        cells = []
        for policy in policies:
            if (cell := self._cells.get((regime, policy, world))) is None:
                raise NotTestable(f"the frame has no {policy} in {world}, {regime}")
            cells.append(np.arange(cell.start, cell.stop))
        common = reduce(np.intersect1d, (self._seed[cell] for cell in cells))
        rows = [cell[np.isin(self._seed[cell], common, assume_unique=True)] for cell in cells]
        for name in column_names(measure):
            self._refuse_gaps(name, rows)
        if len(common) < 2:
            raise NotTestable(f"{world} has {len(common)} episodes in common")
        return self.measure(measure)[np.stack(rows)][..., None]

    def _refuse_gaps(self, name: str, rows: Iterable[npt.NDArray[np.int64]]) -> None:
        """Refuse a gap where an event cannot fail to come: not measured at all, or a damaged frame."""
        values = self.column(name)
        for own in rows:
            gaps = np.isnan(values[own])
            if name in NULLABLE or not gaps.any():
                continue
            at = self.frame.iloc[own[np.argmax(gaps)]]
            where = f"{at['policy']} in {at['world']}"
            if gaps.all():
                raise NotTestable(f"{name} was not measured for {where}, {at['regime']}")
            raise InputError(f"{name} is missing for seed {at['seed']} of {where}")


def _require(frame: pd.DataFrame, names: Iterable[str]) -> None:
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise InputError(f"the frame has no column {', '.join(missing)}")


def choose_episodes(frame: pd.DataFrame, **chosen: str) -> Episodes:
    """Return the episodes of a frame under one protocol and profile; what it does not hold is refused."""
    _require(frame, [*KEY, *chosen])
    for name, asked in chosen.items():
        held = sorted(map(str, frame[name].unique()))
        if asked not in held:
            raise InputError(f"the frame has no {name} {asked!r}; it holds {', '.join(held)}")
        frame = frame[frame[name] == asked]
    return Episodes(frame)


@dataclass(frozen=True, slots=True)
class Sample:
    """What a statistic is made of.

    Attributes:
        top, bottom: [unit, column], numerators and denominators.
        worlds: [unit], each unit's world by its position.
        each: [arm, unit, column], every value by itself, NaN where undefined; None for events pooled.
    """

    top: Floats
    bottom: Floats
    worlds: npt.NDArray[np.int64]
    each: Floats | None = None

    def columns(self, chosen: npt.NDArray[np.bool_]) -> Sample:
        """Return some columns."""
        each = None if self.each is None else self.each[..., chosen]
        return Sample(self.top[:, chosen], self.bottom[:, chosen], self.worlds, each)


def draw_sample(
    source: Source,
    measure: str,
    regime: str,
    worlds: Sequence[str],
    arms: Sequence[str],
    reference: str | None = None,
    *,
    pooled_events: bool = False,
) -> Sample:
    """Return a measure of the arms (minus that of a reference), summed by seed, world by world.

    Args:
        source: the episodes.
        measure: as in `measured`.
        regime: of the episodes.
        worlds: names; pooled.
        arms: policies.
        reference: a policy.
        pooled_events: whether the measure a/b gives sums of a over sums of b; else each episode's own value
            counts once.

    Raises:
        NotTestable, InputError: as `Episodes.values`.
    """
    policies = arms if reference is None else (*arms, reference)
    texts = column_names(measure) if pooled_events else [measure]
    parts = [[source.values(text, regime, world, policies) for text in texts] for world in worlds]
    labels = np.repeat(np.arange(len(worlds)), [own[0].shape[1] for own in parts])
    tables = [np.concatenate(own, axis=1) for own in zip(*parts, strict=True)]
    if pooled_events:
        return Sample(*(table.sum(axis=0) for table in tables), labels)
    each = tables[0] if reference is None else tables[0][:-1] - tables[0][-1:]
    known = ~np.isnan(each)
    return Sample(np.where(known, each, 0.0).sum(axis=0), known.sum(axis=0).astype(float), labels, each)


# one comparison


class Comparison(NamedTuple):
    """One of the comparisons that a claim consists of."""

    measure: str
    arms: tuple[str, ...]
    reference: str | None
    direction: str


def comparisons(claim: Claim) -> list[Comparison]:
    """Return the comparisons that a claim consists of."""
    if claim.kind == "ordering":
        steps = pairwise(claim.arms)
        return [Comparison(claim.measures[0], (arm,), ref, claim.directions[0]) for ref, arm in steps]
    if claim.kind == "dominance":
        return [
            Comparison(measure, (arm,), reference, direction)
            for measure, direction in zip(claim.measures, claim.directions, strict=True)
            for arm in claim.arms
            for reference in claim.references
        ]
    reference = claim.references[0] if claim.references else None
    return [Comparison(claim.measures[0], claim.arms, reference, claim.directions[0])]


def sample_of(claim: Claim, one: Comparison, source: Source) -> Sample:
    """Return what a comparison of a claim is made of."""
    worlds, pooled = claim.worlds + claim.against, claim.kind == "rate"
    return draw_sample(
        source, one.measure, claim.regime, worlds, one.arms, one.reference, pooled_events=pooled
    )


def groups_of(claim: Claim, sample: Sample) -> list[npt.NDArray[np.bool_]]:
    """Return the units of each group that a claim contrasts, [unit] each; one group where it does not."""
    first = sample.worlds < len(claim.worlds)
    return [first, ~first] if claim.kind == "contrast" else [first]


def estimate(claim: Claim, sample: Sample, resamples: int = RESAMPLES) -> Estimate:
    """Estimate the statistic of a claim in its own unit, [column]; every column has `MIN_UNITS` units."""
    settings = {"null": level_of(claim), "family": claim.family, "resamples": resamples}
    if claim.kind == "median":
        columns = np.moveaxis(sample.each * claim.scale, 2, 0)
        found = [median_bootstrap(own.T, sample.worlds, **settings) for own in columns]
        return Estimate(*(np.array(values) for values in zip(*map(astuple, found), strict=True)))
    first = groups_of(claim, sample)[0] if claim.kind == "contrast" else None
    return clustered_rate(sample.top * claim.scale, sample.bottom, sample.worlds, first=first, **settings)


@cache
def _exact_p(won: int, lost: int) -> float:
    return mcnemar_exact(won, lost)


def discordant(sample: Sample) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Count the pairs that only the arm, and those that only the reference wins, [column] each."""
    return np.count_nonzero(sample.top > 0, axis=0), np.count_nonzero(sample.top < 0, axis=0)


def p_values(claim: Claim, sample: Sample, found: Estimate) -> Floats:
    """Return the two-sided p of a comparison, [column]: McNemar's exact one where the claim names it."""
    if claim.kind != "mcnemar":
        return found.p
    return np.array(
        [_exact_p(*pair) for pair in zip(*(own.tolist() for own in discordant(sample)), strict=True)]
    )


def verdicts(claim: Claim, direction: str, sample: Sample, found: Estimate) -> Words:
    """Say what the adjusted intervals say of a claim, [column]."""
    low, high = found.low_adjusted, found.high_adjusted
    if direction in ("none", "equal"):
        least, most = _band(claim)
        slack = EDGE * max(1.0, abs(level_of(claim)))
        within = (least - slack <= low) & (high <= most + slack)
        outside = (low > most + slack) | (high < least - slack)
        return np.select([within, outside], [HOLDS, REVERSES], INCONCLUSIVE)
    if claim.kind == "mcnemar":
        won, lost = discordant(sample)
        claimed = np.full(won.shape, direction == "either") | ((won > lost) == (direction == "greater"))
        adjusted = np.array([bonferroni(p, claim.family) for p in p_values(claim, sample, found)])
        claimed, against = (side & (adjusted < 1 - LEVEL) for side in (claimed, ~claimed))
    else:
        bound = level_of(claim)
        slack = EDGE * max(1.0, abs(bound))
        above, below = low > bound + slack, high < bound - slack
        claimed, against = (above, below) if direction == "greater" else (below, above)
    verdict = np.select([claimed, against], [HOLDS, REVERSES], INCONCLUSIVE)
    if (paper := _paper_interval(claim)) is None:
        return verdict
    slack = EDGE * max(1.0, *map(abs, paper))
    other = (low > paper[1] + slack) | (high < paper[0] - slack)
    return np.where(claimed & other, OTHER_SIZE, verdict)


def level_of(claim: Claim) -> float:
    """Return what the statistic of a claim is compared with: 0 for a difference."""
    return claim.centre if claim.kind in LEVELS else 0.0


def _band(claim: Claim) -> tuple[float, float]:
    margin = claim.margin or 0.0
    return level_of(claim) - margin, level_of(claim) + margin


def _paper_interval(claim: Claim) -> tuple[float, float] | None:
    """Return the interval that the paper prints, else its rounding; None where no size is compared."""
    if claim.value is None or len(claim.measures) > 1:
        return None
    if claim.low is not None and claim.high is not None:
        return claim.low, claim.high
    return claim.value - claim.half_unit, claim.value + claim.half_unit


# one claim on one frame


def _number(value: float) -> str:
    """Write four significant digits, without the noise of the last bits."""
    return f"{round(value, 9) + 0.0:.4g}"


def _interval(low: float, high: float) -> str:
    return f"[{_number(low)}, {_number(high)}]"


def _reason(claim: Claim, direction: str, verdict: str, sample: Sample, link: dict[str, float]) -> str:
    """Say why a comparison has its verdict."""
    told = f"the adjusted interval {_interval(link['low_adjusted'], link['high_adjusted'])} lies "
    if direction in ("none", "equal"):
        relation = {HOLDS: "within", REVERSES: "outside", INCONCLUSIVE: "across an end of"}[verdict]
        return f"{told}{relation} the margin {_interval(*_band(claim))}"
    if claim.kind == "mcnemar":
        (won,), (lost,) = discordant(sample)
        adjusted = bonferroni(link["p"], claim.family)
        told = f"{won} against {lost} discordant pairs give an exact p of {link['p']:.2g} "
        told += f"({adjusted:.2g} adjusted)"
    else:
        above = (verdict == REVERSES) != (direction == "greater")
        where = "around" if verdict == INCONCLUSIVE else "above" if above else "below"
        told += f"{where} {_number(level_of(claim))}"
    if verdict == INCONCLUSIVE:
        return told
    if verdict == REVERSES:
        return f"{told}, against the claim"
    told += "" if claim.kind == "mcnemar" else " as claimed"
    if (paper := _paper_interval(claim)) is None:
        return told
    return f"{told}, {'missing' if verdict == OTHER_SIZE else 'meeting'} the paper's {_interval(*paper)}"


def _test(claim: Claim, one: Comparison, episodes: Episodes, resamples: int) -> dict[str, Any]:
    """Test one comparison: its numbers, verdict, reason, and how far its interval reaches to the claim."""
    sample = sample_of(claim, one, episodes)
    parts = {one.measure: sample.bottom}
    if claim.kind == "contrast":
        groups, names = groups_of(claim, sample), (claim.worlds, claim.against)
        parts |= {" and ".join(name): sample.bottom[own] for name, own in zip(names, groups, strict=True)}
    for name, bottom in parts.items():
        if (units := np.count_nonzero(bottom)) < MIN_UNITS:
            raise NotTestable(f"{name}: {units} episodes with a value, {MIN_UNITS} are needed")
    found = estimate(claim, sample, resamples)
    verdict = str(verdicts(claim, one.direction, sample, found)[0])
    ends = ("mean", "low", "high", "low_adjusted", "high_adjusted")
    link = {name: float(getattr(found, name)[0]) for name in ends}
    link |= {"p": float(p_values(claim, sample, found)[0]), "n": int(sample.bottom.sum())}
    reason = _reason(claim, one.direction, verdict, sample, link)
    left_out = 0 if sample.each is None else np.count_nonzero(np.isnan(sample.each))
    if left_out:
        reason += f"; {left_out} left out (censored, or without an event)"
    low, high = link["low_adjusted"], link["high_adjusted"]
    support = (low if one.direction == "greater" else -high) / max(high - low, EDGE)
    arms = "" if one.reference is None else f", {' '.join(one.arms)} - {one.reference}"
    return link | {"verdict": verdict, "label": one.measure + arms, "reason": reason, "support": support}


def _judge(claim: Claim, episodes: Episodes, profile: str, resamples: int) -> dict[str, Any]:
    """Return what becomes of a claim, by the names of `COLUMNS`; the weakest of its comparisons decides."""
    row = {name: getattr(claim, name) for name in ABOUT} | {"claim": claim.id, "verdict": NOT_TESTED}
    row |= {"profile": profile, "unit": claim.unit, "same_n": True}
    printed = {"value": claim.value, "low": claim.low, "high": claim.high, "n": claim.n}
    row |= {f"paper_{name}": np.nan if value is None else value for name, value in printed.items()}
    try:
        links = [_test(claim, one, episodes, resamples) for one in comparisons(claim)]
    except NotTestable as why:
        return row | {"reason": f"{why}."}
    ranks = {REVERSES: 0, INCONCLUSIVE: 1}
    weakest = min(links, key=lambda link: (ranks.get(link["verdict"], 2), link["support"]))
    verdict, count = weakest["verdict"], ""
    if len(links) > 1:
        held = sum(link["verdict"] in (HOLDS, OTHER_SIZE) for link in links)
        against = sum(link["verdict"] == REVERSES for link in links)
        verdict = REVERSES if against else HOLDS if held == len(links) else INCONCLUSIVE
        count = f"{held} of {len(links)} comparisons hold, {against} reverse; the weakest: "
    mean, n, unit = weakest["mean"], weakest["n"], claim.unit if claim.unit in ("points", "steps") else ""
    reason = (
        f"{count}{weakest['label']}: {_number(mean)} {unit}".rstrip() + f" (n = {n}); {weakest['reason']}"
    )
    same_n = claim.n in (None, n)
    if not same_n:
        reason += f"; the paper's n is {claim.n}"
    if claim.inputs and profile in CALIBRATED:
        verdict, reason = INPUT, f"{reason}; calibrated on {', '.join(claim.inputs)}"
    row |= {name: weakest[name] for name in ("low", "high", "low_adjusted", "high_adjusted", "p", "n")}
    row |= {"p_adjusted": bonferroni(weakest["p"], claim.family), "difference": mean - row["paper_value"]}
    return row | {"verdict": verdict, "estimate": mean, "same_n": same_n, "reason": f"{reason}."}


def judge(
    frame: pd.DataFrame,
    claims: Iterable[Claim | str] | Claim | str | None = None,
    *,
    section: str | None = None,
    regime: str | None = None,
    protocols: Iterable[str] | None = None,
    profile: str = "typical",
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Test claims on a frame of episodes, under each protocol.

    Args:
        frame: one row an episode (columns: `data/paper/README.md`).
        claims: `Claim`s or their ids; by default every claim of the paper, or of `section`.
        section: a section of the book, instead of `claims`.
        regime: where the claims are asked instead of the regime that they name.
        protocols: names; by default those of the frame.
        profile: whose episodes are tested.
        resamples: bootstrap resamples.

    Returns:
        One row a claim and protocol, claims in their order, columns `COLUMNS`. Numbers are in the claim's
        unit, NaN where there are none: `low high` is the raw interval, `low_adjusted high_adjusted` the one
        that decides, `p` two-sided (McNemar's exact one where the claim names that test), `difference` ours
        minus the paper's; `same_n` says whether `n` is the paper's (true where it states none). A claim that
        the frame cannot test is *not tested*, with the reason.

    Raises:
        InputError: for an unknown claim or section, and a frame without its key columns, this protocol or
            this profile, with an episode twice, or with a gap in a column that it has.
    """
    if claims is None:
        claims = load_claims(section=section)
    elif section is not None:
        raise InputError(f"claims and section {section!r} are both given; one of them is accepted")
    chosen = [claims] if isinstance(claims, (Claim, str)) else claims
    chosen = [find_claim(claim) if isinstance(claim, str) else claim for claim in chosen]
    if regime is not None:
        chosen = [replace(claim, regime=regime) for claim in chosen]
    if protocols is None:
        _require(frame, ["protocol"])
        held = set(frame["protocol"])
        protocols = [*(p for p in PROTOCOLS if p in held), *sorted(held - set(PROTOCOLS))]
    views = {name: choose_episodes(frame, protocol=name, profile=profile) for name in protocols}
    rows = [
        _judge(claim, episodes, profile, resamples) | {"protocol": protocol}
        for claim in chosen
        for protocol, episodes in views.items()
    ]
    return pd.DataFrame(rows, columns=COLUMNS)
