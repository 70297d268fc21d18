"""Intervals of one mean or share: percentile, normal and Wilson's.

Sources: section 6.1 of the paper (10,000 bootstrap resamples), Efron and Tibshirani (1993) for percentile
intervals, Wilson (1927).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from envprobe_core.errors import InputError
from envprobe_core.resampling import RESAMPLES, between, bootstrap_means, numbers, vector, whole_number

LEVEL = 0.95
LARGE = 10_000  # units above which a plain mean gets the normal interval, the bootstrap's limit


class Interval(NamedTuple):
    """An estimate with the ends of its interval and its number of units."""

    value: float
    low: float
    high: float
    n: int


def check_level(level: float) -> None:
    """Refuse a level of confidence outside (0, 1)."""
    if not 0 < level < 1:
        raise InputError(f"level is {level}; a number between 0 and 1 (both excluded) is accepted")


def percentile_interval(draws: np.ndarray, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray]:
    """Percentile interval of resampled statistics [resample] or, by column, [resample, column].

    The two quantiles at (1 -+ level) / 2, linearly interpolated. Refused: empty, NaN, infinite.
    """
    check_level(level)
    tail = (1 - level) / 2
    low, high = np.quantile(numbers("draws", draws), [tail, 1 - tail], axis=0)
    return low, high


def exact_mean(values: np.ndarray) -> float:
    """Mean of `values` [unit], the sum correctly rounded: no order of units moves a bit."""
    return math.fsum(values.tolist()) / len(values)


def _normal_quantile(probability: float) -> float:
    from statistics import NormalDist  # imported here: the module is on the CLI's start path

    return NormalDist().inv_cdf(probability)


def normal_half_width(deviation: np.ndarray | float, n: int, level: float = LEVEL) -> np.ndarray | float:
    """Half of a mean's normal interval: z s / sqrt(n)."""
    return _normal_quantile((1 + level) / 2) * deviation / math.sqrt(n)


def mean_intervals(
    values: np.ndarray,
    strata: object = None,
    level: float = LEVEL,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means of each column of `values` [unit, column], low and high ends, each [column].

    Percentile intervals, to the bit those of `mean_interval` on each column. One unit carries no
    interval (NaN ends); above `LARGE` units without strata the interval is mean -+ z s / sqrt(n),
    which the bootstrap there equals within its Monte-Carlo error. Refused: as `bootstrap_means`.
    """
    data = numbers("values", values)
    check_level(level)
    mean = np.array([exact_mean(column) for column in data.T])
    if len(data) == 1:
        return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    if len(data) > LARGE and strata is None:
        half = normal_half_width(data.std(axis=0), len(data), level)
        return mean, mean - half, mean + half
    draws = bootstrap_means(data, strata, resamples=resamples, seed=seed)
    return mean, *percentile_interval(draws, level)


def mean_interval(
    values: np.ndarray,
    strata: object = None,
    level: float = LEVEL,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Mean of `values` [unit] with its percentile interval; see `mean_intervals`."""
    data = vector("values", values)
    ends = mean_intervals(data[:, None], strata, level, resamples=resamples, seed=seed)
    value, low, high = (float(end[0]) for end in ends)
    return Interval(value, low, high, len(data))


def wilson(successes: int, n: int, level: float = LEVEL) -> Interval:
    """Share successes / n with Wilson's score interval (Wilson 1927).

    Refused: n below 1, successes outside 0..n, a level outside (0, 1).
    """
    check_level(level)
    whole_number("n", n, 1)
    whole_number("successes", successes, 0)
    between("successes", successes, 0, n)
    z = _normal_quantile((1 + level) / 2)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == n else centre + half
    return Interval(share, low, high, int(n))
