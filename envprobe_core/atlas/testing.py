"""Verdicts for many profiles at once: what `verdicts.evaluate` says of each, to the last bit.

All profiles share one matrix of resample counts, so that the resampled means of a comparison are one matrix
product for all of them. The rules are those of `verdicts`; *holds, other size* counts as *holds* here,
because the atlas asks whether a claim survives, not whether its size does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt

from envprobe_core.claims import Claim, measure_parts
from envprobe_core.claims.records import LEVELS, WORLDS
from envprobe_core.intervals import LEVEL, percentile_interval
from envprobe_core.medians import median_bootstrap
from envprobe_core.panel import MIN_UNITS
from envprobe_core.policies import OF_THE_PAPER
from envprobe_core.stats import bonferroni, bootstrap_means, mcnemar_exact
from envprobe_core.verdicts import EDGE, HOLDS, INCONCLUSIVE, NOT_TESTED, REVERSES, comparisons

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int8]

CODES = (HOLDS, INCONCLUSIVE, REVERSES, NOT_TESTED)
YES, OPEN, NO, UNTESTED = range(4)
_WORLD = {name: position for position, name in enumerate(WORLDS)}
_POLICY = {name: position for position, name in enumerate(OF_THE_PAPER)}


@dataclass(frozen=True)
class Sample:
    """What a comparison is made of: `panel.Sample` for many profiles.

    Attributes:
        top, bottom: [unit, profile], numerators and denominators.
        values: [unit, profile, arm], each value by itself; NaN where undefined.
        labels: [unit], the world by position.
    """

    top: Floats
    bottom: Floats
    values: Floats
    labels: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Cube:
    """Columns of the episode frame, [world, policy, profile, seed]; measures are kept once computed."""

    columns: dict[str, Floats]
    _measures: dict[str, Floats] = field(default_factory=dict, repr=False)

    def measure(self, text: str) -> Floats:
        """Return a measure as `panel.Panel.measure` defines it: NaN where it is undefined."""
        if text not in self._measures:
            self._measures[text] = self._measure(*measure_parts(text))
        return self._measures[text]

    def _measure(self, left_name: str, sign: str, right_name: str) -> Floats:
        left = self.columns[left_name]
        if not sign:
            return left
        if right_name[0].isdigit():
            right, left = np.asarray(float(right_name)), np.where(np.isnan(left), np.inf, left)
        else:
            right = self.columns[right_name]
        if sign == "/":
            return np.divide(left, right, out=np.full(left.shape, np.nan), where=right > 0)
        if sign == "-":
            return left - right
        holds = left < right if sign == "<" else left > right
        return np.where(np.isnan(left) | np.isnan(right), np.nan, holds)

    def sample(self, claim: Claim, measure: str, arms: Sequence[str], reference: str | None) -> Sample:
        """Return what a comparison is made of, for all profiles at once."""
        worlds = [_WORLD[name] for name in claim.worlds + claim.against]
        chosen = np.ix_(worlds, [_POLICY[arm] for arm in arms])
        if claim.kind == "rate":
            left, _, right = measure_parts(measure)
            values, bottom = self.columns[left][chosen], self.columns[right][chosen]
        else:
            values = self.measure(measure)[chosen]
            if reference is not None:
                values = values - self.measure(measure)[worlds, _POLICY[reference]][:, None]
            bottom = (~np.isnan(values)).astype(np.float64)
        values, bottom = values.transpose(0, 3, 2, 1), bottom.transpose(0, 3, 2, 1)
        values, bottom = (part.reshape(-1, *part.shape[2:]) for part in (values, bottom))
        labels = np.repeat(np.arange(len(worlds)), len(values) // len(worlds))
        return Sample(np.nan_to_num(values).sum(axis=2), bottom.sum(axis=2), values, labels)


@dataclass(frozen=True)
class Judgement:
    """Verdicts and sizes, [profile, claim].

    Attributes:
        verdict: positions in `CODES`.
        estimate: the estimate in the claim's unit; of a claim of several comparisons the least supported.
        support: how far the estimate lies on the claimed side (of a claim of no difference, or of a level:
            how far inside its margin), in the claim's unit; of several comparisons the least. NaN where the
            claim was not tested.
    """

    verdict: Codes
    estimate: Floats
    support: Floats


def judge(claims: Sequence[Claim], cube: Cube, resamples: int) -> Judgement:
    """Test every claim on every profile of a cube."""
    results = [_judge(claim, cube, resamples) for claim in claims]
    verdict, estimate, support = (np.stack(part, axis=1) for part in zip(*results, strict=True))
    return Judgement(verdict, estimate, support)


def _judge(claim: Claim, cube: Cube, resamples: int) -> tuple[Codes, Floats, Floats]:
    links = [_link(claim, cube, link, resamples) for link in comparisons(claim)]
    verdicts, estimates, supports = (np.stack(part) for part in zip(*links, strict=True))
    worst = np.argmin(np.where(np.isnan(supports), -np.inf, supports), axis=0)[None]
    estimate = np.take_along_axis(estimates, worst, axis=0)[0]
    support = np.take_along_axis(supports, worst, axis=0)[0]
    joined = np.where((verdicts == YES).all(axis=0), YES, OPEN)
    joined = np.where((verdicts == NO).any(axis=0), NO, joined)
    joined = np.where((verdicts == UNTESTED).any(axis=0), UNTESTED, joined)
    return joined.astype(np.int8), estimate, support


def _link(
    claim: Claim, cube: Cube, link: tuple[str, tuple[str, ...], str | None, str], resamples: int
) -> tuple[Codes, Floats, Floats]:
    """Test one comparison: verdict, estimate and support, each [profile]."""
    measure, arms, reference, direction = link
    sample = cube.sample(claim, measure, arms, reference)
    in_first = sample.labels < len(claim.worlds)
    groups = (in_first, ~in_first) if claim.kind == "contrast" else (in_first,)
    enough = np.all([np.count_nonzero(sample.bottom[group], axis=0) >= MIN_UNITS for group in groups], axis=0)
    estimate, low, high = np.full((3, len(enough)), np.nan)
    tested = np.flatnonzero(enough)
    if claim.kind == "median":
        estimate[tested], low[tested], high[tested] = _medians(claim, sample, tested, resamples)
    elif len(tested):
        parts = sample.top[:, tested] * claim.scale, sample.bottom[:, tested]
        estimate[tested] = _difference([part[group].sum(axis=0) for group in groups for part in parts])
        low[tested], high[tested] = _interval(parts, sample.labels, groups, claim.family, resamples)
    if claim.kind == "mcnemar":
        verdict = _paired_successes(claim, sample.top)
    elif direction in ("none", "equal"):
        verdict = _within(claim, low, high)
    else:
        verdict = _side(direction, low, high, claim.centre if claim.kind in LEVELS else 0.0)
    return np.where(enough, verdict, UNTESTED).astype(np.int8), estimate, _support(claim, direction, estimate)


def _medians(claim: Claim, sample: Sample, tested: npt.NDArray[np.int64], resamples: int) -> Floats:
    """Return the median and its interval, [3, profile]; medians are resampled one profile at a time."""
    found = [
        median_bootstrap(
            sample.values[:, profile] * claim.scale,
            sample.labels,
            null=claim.centre,
            family=claim.family,
            resamples=resamples,
        )
        for profile in tested.tolist()
    ]
    ends = [(one.mean, one.low_adjusted, one.high_adjusted) for one in found]
    return np.array(ends, dtype=np.float64).reshape(-1, 3).T


def _difference(parts: list[Floats]) -> Floats:
    """Divide numerators by denominators, of two groups the first minus the second."""
    if len(parts) == 2:
        return parts[0] / parts[1]
    return parts[0] / parts[1] - parts[2] / parts[3]


def _interval(
    parts: tuple[Floats, Floats],
    labels: npt.NDArray[np.int64],
    groups: Sequence[npt.NDArray[np.bool_]],
    family: int,
    resamples: int,
) -> tuple[Floats, Floats]:
    """Return the adjusted percentile interval of each profile, [profile] low and high.

    A denominator that is the same for every unit is so in every resample: it is not resampled.
    """
    profiles = parts[0].shape[1]
    level = 1 - (1 - LEVEL) / family
    constant = len(groups) == 1 and bool((parts[1] == parts[1][:1]).all())
    if constant:
        return percentile_interval(
            bootstrap_means(parts[0], labels, resamples=resamples) / parts[1][0], level
        )
    columns = [part * group[:, None] if len(groups) > 1 else part for group in groups for part in parts]
    means = bootstrap_means(np.concatenate(columns, axis=1), labels, resamples=resamples)
    split = [means[:, start : start + profiles] for start in range(0, means.shape[1], profiles)]
    usable = np.all(
        [bottom > 0 for bottom in split[1::2]], axis=0
    )  # resamples without an event carry no rate
    whole = usable.all(axis=0)
    low, high = np.empty(profiles), np.empty(profiles)
    if whole.any():
        low[whole], high[whole] = percentile_interval(_difference([part[:, whole] for part in split]), level)
    for odd in np.flatnonzero(~whole):
        kept = usable[:, odd]
        low[odd], high[odd] = percentile_interval(_difference([part[kept, odd] for part in split]), level)
    return low, high


def _side(direction: str, low: Floats, high: Floats, bound: float) -> Codes:
    slack = EDGE * max(1.0, abs(bound))
    above, below = low > bound + slack, high < bound - slack
    claimed, opposite = (above, below) if direction == "greater" else (below, above)
    return np.where(claimed, YES, np.where(opposite, NO, OPEN)).astype(np.int8)


def _within(claim: Claim, low: Floats, high: Floats) -> Codes:
    centre = 0.0 if claim.kind == "equivalence" else claim.centre
    margin = (claim.margin or 0.0) + EDGE * max(1.0, abs(centre))
    inside = (centre - margin <= low) & (high <= centre + margin)
    outside = (low > centre + margin) | (high < centre - margin)
    return np.where(inside, YES, np.where(outside, NO, OPEN)).astype(np.int8)


def _paired_successes(claim: Claim, top: Floats) -> Codes:
    only_arm, only_reference = np.count_nonzero(top > 0, axis=0), np.count_nonzero(top < 0, axis=0)
    pairs = zip(only_arm.tolist(), only_reference.tolist(), strict=True)
    adjusted = np.array([bonferroni(_exact_p(*pair), claim.family) for pair in pairs])
    direction = claim.directions[0]
    claimed = (only_arm > only_reference) == (direction == "greater")
    verdict = np.where(claimed | (direction == "either"), YES, NO)
    return np.where(adjusted >= 1 - LEVEL, OPEN, verdict).astype(np.int8)


@cache
def _exact_p(only_first: int, only_second: int) -> float:
    return mcnemar_exact(only_first, only_second)


def _support(claim: Claim, direction: str, estimate: Floats) -> Floats:
    if direction == "either":
        return np.abs(estimate)
    if direction in ("none", "equal"):
        centre = 0.0 if claim.kind == "equivalence" else claim.centre
        return (claim.margin or 0.0) - np.abs(estimate - centre)
    bound = claim.centre if claim.kind in LEVELS else 0.0
    return estimate - bound if direction == "greater" else bound - estimate
