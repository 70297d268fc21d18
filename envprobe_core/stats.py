"""Statistics of the paper: paired bootstrap, clustered rates, McNemar, Bonferroni.

Every statistic takes arrays over units (episodes or pairs of episodes) and says what it refuses.
Sources: section 6.1 of the paper (10,000 paired bootstrap resamples, Bonferroni, McNemar), Efron
and Tibshirani (1993) for percentile intervals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from envprobe_core.errors import InputError
from envprobe_core.intervals import LEVEL, exact_mean, percentile_interval
from envprobe_core.resampling import (
    RESAMPLES,
    between,
    bootstrap_means,
    resample_counts,
    same_length,
    vector,
    whole_number,
)

__all__ = [
    "RESAMPLES",
    "Estimate",
    "bonferroni",
    "bootstrap_means",
    "clustered_rate",
    "contrast_bootstrap",
    "equivalence",
    "mcnemar_exact",
    "mean_of_ratios",
    "one_sided",
    "paired_bootstrap",
    "resample_counts",
    "summarize",
]

TIE = 1e-12  # relative distance below which a resampled statistic counts as equal to the null


@dataclass(frozen=True, slots=True)
class Estimate:
    """A bootstrapped statistic: raw and Bonferroni-adjusted interval, and p against the null."""

    mean: float
    low: float  # raw interval, at `level`
    high: float
    p: float  # two-sided, raw
    n: int  # units (episodes or pairs) that carry an event
    low_adjusted: float  # interval at 1 - (1 - level) / family
    high_adjusted: float
    p_adjusted: float  # min(1, p * family)
    p_greater: float  # one-sided, raw: the statistic lies above the null
    p_less: float
    level: float
    family: int


def one_sided(draws: np.ndarray, null: float = 0.0) -> tuple[float, float]:
    """One-sided p-values (above the null, below the null) from resampled statistics [resample].

    p_greater = (1 + #{draws <= null}) / (1 + resamples), and the mirror image: the observed
    sample counts as one of its resamples, so p is never 0 (Davison and Hinkley 1997, sec. 4.2).
    """
    draws = vector("draws", draws)
    slack = TIE * max(float(np.abs(draws).max()), abs(null))
    below = 1 + int(np.count_nonzero(draws <= null + slack))
    above = 1 + int(np.count_nonzero(draws >= null - slack))
    return below / (1 + len(draws)), above / (1 + len(draws))


def _ratio(top: np.ndarray, bottom: np.ndarray) -> float:
    """The ratio of the correctly rounded sums: no order of units moves a bit."""
    return math.fsum(top.tolist()) / math.fsum(bottom.tolist())


def summarize(observed: float, draws: np.ndarray, n: int, null: float, level: float, family: int) -> Estimate:
    """An observed statistic over `n` units, with intervals and p from its resampled `draws` [resample]."""
    greater, less = one_sided(draws, null)
    p = min(1.0, 2 * min(greater, less))
    adjusted = bonferroni(p, family)
    low, high = percentile_interval(draws, level)
    wide_low, wide_high = percentile_interval(draws, 1 - (1 - level) / family)
    return Estimate(
        mean=observed,
        low=float(low),
        high=float(high),
        p=p,
        n=n,
        low_adjusted=float(wide_low),
        high_adjusted=float(wide_high),
        p_adjusted=adjusted,
        p_greater=greater,
        p_less=less,
        level=level,
        family=family,
    )


def _ratio_parts(numerators: object, denominators: object) -> tuple[np.ndarray, np.ndarray]:
    top, bottom = vector("numerators", numerators), vector("denominators", denominators)
    same_length("numerators", top, "denominators", bottom)
    if bottom.min() < 0:
        raise InputError(f"denominators hold {bottom.min()}; numbers from 0 are accepted")
    if bottom.max() == 0:
        raise InputError("denominators are all 0; at least one event is needed")
    return top, bottom


def clustered_rate(
    numerators: np.ndarray,
    denominators: np.ndarray,
    strata: object = None,
    *,
    null: float = 0.0,
    level: float = LEVEL,
    family: int = 1,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """Ratio of sums of `numerators` and `denominators` (both [unit]), resampled by unit.

    For rates of events clustered in episodes; p is against `null`. `n` counts the units with a
    positive denominator; resamples without any event are left out. Refused: what
    `bootstrap_means` refuses, negative denominators, and denominators that are all 0.
    """
    top, bottom = _ratio_parts(numerators, denominators)
    means = bootstrap_means(np.stack([top, bottom], axis=1), strata, resamples=resamples, seed=seed)
    means = means[means[:, 1] > 0]
    n = int(np.count_nonzero(bottom))
    return summarize(_ratio(top, bottom), means[:, 0] / means[:, 1], n, null, level, family)


def paired_bootstrap(
    differences: np.ndarray,
    strata: object = None,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    family: int = 1,
    *,
    null: float = 0.0,
    seed: int = 0,
) -> Estimate:
    """Mean of paired `differences` [unit] with percentile interval and two-sided p.

    p = min(1, 2 min(p_greater, p_less)) of `one_sided`; the adjusted interval has level
    1 - (1 - level) / family. Differences of exactly 0 everywhere give [0, 0] and p = 1. Refused:
    what `bootstrap_means` refuses.
    """
    data = vector("differences", differences)
    draws = bootstrap_means(data, strata, resamples=resamples, seed=seed)
    return summarize(exact_mean(data), draws, len(data), null, level, family)


def contrast_bootstrap(
    numerators: np.ndarray,
    denominators: np.ndarray,
    first: np.ndarray,
    strata: object = None,
    *,
    level: float = LEVEL,
    family: int = 1,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """Ratio of sums where `first` [unit] is true, minus the ratio of sums elsewhere.

    With denominators of 1 it contrasts two means. Units are resampled within `strata`, which
    should refine the two groups (default: the groups). `n` counts the units with a positive
    denominator. Refused: what `clustered_rate` refuses, and a group without any event.
    """
    top, bottom = _ratio_parts(numerators, denominators)
    chosen = np.asarray(first, dtype=bool)
    same_length("first", chosen, "numerators", top)
    if not bottom[chosen].any() or not bottom[~chosen].any():
        raise InputError("first leaves a group without events; events in both are needed")
    columns = np.stack([top, bottom], axis=1)
    columns = np.concatenate([columns * chosen[:, None], columns * ~chosen[:, None]], axis=1)
    labels = chosen if strata is None else strata
    means = bootstrap_means(columns, labels, resamples=resamples, seed=seed)
    means = means[(means[:, 1] > 0) & (means[:, 3] > 0)]
    draws = means[:, 0] / means[:, 1] - means[:, 2] / means[:, 3]
    observed = _ratio(top[chosen], bottom[chosen]) - _ratio(top[~chosen], bottom[~chosen])
    return summarize(observed, draws, int(np.count_nonzero(bottom)), 0.0, level, family)


def mean_of_ratios(
    numerators: np.ndarray, denominators: np.ndarray, strata: object = None, **settings: float
) -> Estimate:
    """Mean over units of numerator / denominator (both [unit]) where the denominator is positive.

    The raw useful-probe rate of the paper: units without an event are resampled with the others
    but carry no ratio. `settings` and what is refused: as in `clustered_rate`.
    """
    top, bottom = _ratio_parts(numerators, denominators)
    fired = bottom > 0
    ratio = np.divide(top, bottom, out=np.zeros_like(top), where=fired)
    return clustered_rate(ratio, fired, strata, **settings)


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """Two-sided exact McNemar p from the two counts of discordant pairs (McNemar 1947).

    p = min(1, 2 Pr(X <= min)) for X ~ Binomial(b + c, 1/2); no discordant pair gives 1.
    Refused: counts that are negative or not whole.
    """
    whole_number("only_first", only_first, 0)
    whole_number("only_second", only_second, 0)
    n, smaller = int(only_first + only_second), int(min(only_first, only_second))
    term = tail = 1  # whole numbers of any size: exact
    for k in range(smaller):
        term = term * (n - k) // (k + 1)
        tail += term
    return min(1.0, 2 * tail / 2**n)


def bonferroni(p: float, family: int) -> float:
    """The p-value `p` adjusted for `family` comparisons: min(1, p * family)."""
    whole_number("family", family, 1)
    between("p", p, 0, 1)
    return min(1.0, p * family)


def equivalence(low: float, high: float, margin: float, centre: float = 0.0) -> str:
    """Where an interval lies to centre -+ margin: "inside", "outside" or "undecided".

    The interval-inclusion test of equivalence: "inside" shows no difference beyond the margin,
    "outside" shows one. Refused: low above high, NaN, a margin that is negative.
    """
    if not low <= high:
        raise InputError(f"the interval is [{low}, {high}]; its low end must not exceed its high")
    between("margin", margin, 0, math.inf)
    if centre - margin <= low and high <= centre + margin:
        return "inside"
    return "outside" if low > centre + margin or high < centre - margin else "undecided"
