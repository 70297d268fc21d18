"""Statistics of the paper: bootstrap means and rates, medians, Wilson's interval, McNemar's test.

The unit is the episode (a seed in a world), or a pair of episodes. Pooled worlds are strata: units are
resampled within their stratum. All statistics share one matrix of resample counts a sample size, and
resampled sums are formed in fixed point, so they are exact: neither the order of units, columns or calls
nor the BLAS library moves a bit. Sources: section 6.1 of the paper; Efron and Tibshirani (1993).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from envprobe_core.errors import InputError

RESAMPLES = 10_000
LEVEL = 0.95
LARGE = 10_000  # units above which a plain mean gets the normal interval, the bootstrap's limit
TIE = 1e-12  # relative distance below which a resampled statistic counts as equal to the null
KEPT_UNITS = 2_500  # larger count matrices are drawn again at each use, in blocks
FIXED_POINT_BITS = 52
DRAWS_AT_ONCE = 100_000  # small enough for the cache, and for BLAS to stay on one thread
MIN_RUNNING = 10  # fewer running episodes carry no mean worth drawing

Floats = npt.NDArray[np.float64]
Number = float | Floats  # one, or [column]


class Interval(NamedTuple):
    """An estimate with the ends of its interval and its number of units."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """A resampled statistic, one number or [column]."""

    mean: Number  # the observed statistic
    low: Number  # percentile interval at `level`
    high: Number
    p: Number  # two-sided, min(1, 2 min(p_greater, p_less))
    n: Number  # units that carry an event
    low_adjusted: Number  # percentile interval at 1 - (1 - level) / family (Bonferroni)
    high_adjusted: Number
    p_adjusted: Number  # min(1, p family)
    p_greater: Number  # one-sided, for a statistic above the null
    p_less: Number
    level: float  # as asked, like the next
    family: int


def whole_number(name: str, value: int, least: int) -> None:
    """Refuse a `value` that is not a whole number from `least`."""
    if not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name} is {value}; a whole number from {least} is accepted")


def between(name: str, value: float, low: float, high: float) -> None:
    """Refuse a `value` outside low..high, both included (NaN too)."""
    if not low <= value <= high:
        raise InputError(f"{name} is {value}; a number from {low} to {high} is accepted")


def check_level(level: float) -> None:
    """Refuse a level of confidence outside (0, 1)."""
    if not 0 < level < 1:
        raise InputError(f"level is {level}; a number between 0 and 1 (both excluded) is accepted")


def numbers(name: str, values: npt.ArrayLike, dimensions: tuple[int, ...] = (1, 2)) -> Floats:
    """Return floats [unit] or [unit, column]; empty, NaN and infinity are refused."""
    data = np.asarray(values, dtype=np.float64)
    if data.ndim not in dimensions:
        shapes = " or ".join(("[unit]", "[unit, column]")[own - 1] for own in dimensions)
        raise InputError(f"{name} has {data.ndim} dimensions; {shapes} is accepted")
    if data.size == 0:
        raise InputError(f"{name} is empty; at least one value is needed")
    bad = np.argwhere(~np.isfinite(data))
    if len(bad):
        first = data[tuple(bad[0])]
        raise InputError(f"{name} holds {first} at unit {bad[0][0]}; finite numbers are accepted")
    return data


def _same_length(name: str, values: npt.NDArray, other: str, others: npt.NDArray) -> None:
    if len(values) != len(others):
        raise InputError(
            f"{name} has {len(values)} units, {other} has {len(others)}; equal lengths are accepted"
        )


# resampling


def _strata(labels: npt.ArrayLike | None, n: int) -> list[npt.NDArray[np.int64]]:
    """Return the units of each stratum, strata in sorted order; each holds two or more."""
    given = np.zeros(n, dtype=np.int64) if labels is None else np.asarray(labels)
    _same_length("strata", given, "values", np.empty(n))
    names, codes = np.unique(given, return_inverse=True)
    groups = [np.flatnonzero(codes == code) for code in range(len(names))]
    for name, group in zip(names, groups, strict=True):
        if len(group) < 2:
            where = "the sample" if labels is None else f"stratum {name}"
            raise InputError(f"{where} has 1 unit; a bootstrap needs at least 2")
    return groups


def _count_blocks(n: int, resamples: int, seed: int) -> Iterator[npt.NDArray[np.integer]]:
    """Yield rows of the count matrix in blocks, one stream of draws whatever the block size."""
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, n))))
    rows = 1 + DRAWS_AT_ONCE // n
    share = np.full(n, 1 / n)
    for start in range(0, resamples, rows):
        draws = generator.multinomial(n, share, size=min(rows, resamples - start))
        yield draws.astype(np.min_scalar_type(n))


@lru_cache(maxsize=8)
def resample_counts(n: int, resamples: int = RESAMPLES, seed: int = 0) -> npt.NDArray[np.integer]:
    """Return how often each unit is drawn in each resample, [resample, unit]; each row sums to n.

    Multinomial draws of NumPy's PCG64, seeded by (seed, n); read-only, made once a sample size.
    Refused: n or resamples below 1, a negative seed. Source: Efron and Tibshirani (1993), chapter 6.
    """
    whole_number("n", n, 1)
    whole_number("resamples", resamples, 1)
    whole_number("seed", seed, 0)
    counts = np.concatenate(list(_count_blocks(n, resamples, seed)))
    counts.setflags(write=False)
    return counts


def resampled_sums(columns: Floats, resamples: int, seed: int) -> Floats:
    """Sum `columns` [unit, column] over every resample, [resample, column], exactly.

    Values are rounded to multiples of a power of two for which no sum can exceed 2**53: the
    rounding moves a mean by less than n * 2**-52 of the largest value.
    """
    n = len(columns)
    exponent = FIXED_POINT_BITS - np.frexp(n * np.abs(columns).max(axis=0))[1]
    whole = np.rint(np.ldexp(columns, exponent))
    if n <= KEPT_UNITS:
        counts = resample_counts(n, resamples, seed)
        rows = 1 + DRAWS_AT_ONCE // n
        blocks = (counts[start : start + rows] for start in range(0, resamples, rows))
    else:  # too large to keep
        blocks = _count_blocks(n, resamples, seed)
    with np.errstate(invalid="ignore"):  # BLAS flags lanes of its own beyond a short row (numpy#24067)
        return np.ldexp(np.concatenate([block @ whole for block in blocks]), -exponent)


def bootstrap_means(
    values: npt.ArrayLike, strata: npt.ArrayLike | None = None, *, resamples: int = RESAMPLES, seed: int = 0
) -> Floats:
    """Return resampled means, [resample] or [resample, column], of `values` [unit] or [unit, column].

    Units are drawn within their stratum (`strata` [unit], any labels) and pooled. The k-th stratum reads
    the count matrix k rows on, so strata of one size are drawn independently. Refused: empty, NaN,
    infinite, lengths that differ, a stratum of one unit.
    """
    data = numbers("values", values)
    whole_number("resamples", resamples, 1)
    columns = data.reshape(len(data), -1)
    total = np.zeros((resamples, columns.shape[1]))
    for shift, group in enumerate(_strata(strata, len(data))):
        total += np.roll(resampled_sums(columns[group], resamples, seed), shift, axis=0)
    means = total / len(data)
    return means[:, 0] if data.ndim == 1 else means


# what resamples say


def percentile_interval(draws: npt.ArrayLike, level: float = LEVEL) -> tuple[Floats, Floats]:
    """Return the percentile interval of draws [resample], or of every column of [resample, column].

    The two quantiles at (1 -+ level) / 2, linearly interpolated. Refused: empty, NaN, infinite.
    """
    check_level(level)
    tail = (1 - level) / 2
    low, high = np.quantile(numbers("draws", draws), [tail, 1 - tail], axis=0)
    return low, high


def one_sided(draws: npt.ArrayLike, null: float = 0.0) -> tuple[Floats, Floats]:
    """Return one-sided p (above the null, below the null) of draws [resample], or of every column.

    p_greater = (1 + #{draws <= null}) / (1 + resamples), and the mirror image: the observed sample counts
    as one of its resamples, so p is never 0 (Davison and Hinkley 1997, section 4.2).
    """
    data = numbers("draws", draws)
    slack = TIE * np.maximum(np.abs(data).max(axis=0), abs(null))
    below = 1 + np.count_nonzero(data <= null + slack, axis=0)
    above = 1 + np.count_nonzero(data >= null - slack, axis=0)
    return below / (1 + len(data)), above / (1 + len(data))


def _summary(
    mean: Floats,
    draws: Floats,
    kept: npt.NDArray[np.bool_],
    n: npt.NDArray[np.int64],
    *,
    null: float = 0.0,
    level: float = LEVEL,
    family: int = 1,
) -> Estimate:
    """Summarize resampled statistics, [resample, column]; resamples that are not `kept` do not count."""
    check_level(level)
    whole_number("family", family, 1)
    found = np.empty((6, draws.shape[1]))
    whole = kept.all(axis=0)
    for columns in (np.flatnonzero(whole), *np.flatnonzero(~whole)[:, None]):
        if len(columns):
            own = draws[:, columns][kept[:, columns].all(axis=1)]
            ends = percentile_interval(own, level)
            adjusted = ends if family == 1 else percentile_interval(own, 1 - (1 - level) / family)
            found[:, columns] = [*one_sided(own, null), *ends, *adjusted]
    greater, less, low, high, low_adjusted, high_adjusted = found
    p = np.minimum(1.0, 2 * np.minimum(greater, less))
    return Estimate(
        mean, low, high, p, n, low_adjusted, high_adjusted, np.minimum(1.0, p * family), greater, less,
        level, family,
    )  # fmt: skip


def _single(found: Estimate) -> Estimate:
    """Return the first column as numbers."""
    values = {name: getattr(found, name) for name in Estimate.__slots__}
    return Estimate(**{k: v[0].item() if isinstance(v, np.ndarray) else v for k, v in values.items()})


# means and rates


def exact_mean(values: Floats) -> float:
    """Return the mean of `values` [unit], the sum correctly rounded: no order of units moves a bit."""
    return math.fsum(values.tolist()) / len(values)


def _ratios(top: Floats, bottom: Floats) -> Floats:
    """Return the ratios of the correctly rounded sums of [unit, column], [column]."""
    pairs = zip(top.T.tolist(), bottom.T.tolist(), strict=True)
    return np.array([math.fsum(above) / math.fsum(below) for above, below in pairs])


def clustered_rate(
    numerators: npt.ArrayLike,
    denominators: npt.ArrayLike,
    strata: npt.ArrayLike | None = None,
    *,
    first: npt.ArrayLike | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    **asked: Any,
) -> Estimate:
    """Estimate the ratio of two sums over units, resampled by unit: the one statistic of the book.

    With denominators of 1 it is a mean, of the units with a value where the others have denominator 0: they
    are resampled but do not count. The raw useful-probe rate of the paper is such a mean of ratios.

    Args:
        numerators: [unit], or [unit, column] for many ratios at once.
        denominators: the same shape, from 0.
        strata: [unit], within which units are resampled.
        first: [unit]; if given, the statistic is the ratio where it is true minus the ratio elsewhere,
            and the strata are by default these two groups.
        resamples: bootstrap resamples; those without an event are left out.
        seed: of the resampling.
        asked: `null`, what p is against (0); `level` of the raw interval (0.95); `family`, the comparisons
            that the adjusted interval and p allow for (1).

    Raises:
        InputError: for what `bootstrap_means` refuses, negative denominators, and a ratio without events.
    """
    top, bottom = numbers("numerators", numerators), numbers("denominators", denominators)
    _same_length("numerators", top, "denominators", bottom)
    if bottom.min() < 0:
        raise InputError(f"denominators hold {bottom.min()}; numbers from 0 are accepted")
    single, top, bottom = top.ndim == 1, *(part.reshape(len(part), -1) for part in (top, bottom))
    if not bottom.any(axis=0).all():
        raise InputError("denominators are all 0; at least one event is needed")
    drawn = {"resamples": resamples, "seed": seed}
    if first is None:
        mean = _ratios(top, bottom)
        if (bottom == bottom[0]).all() and (bottom[0] == np.rint(bottom[0])).all():  # so in every resample
            draws = bootstrap_means(top, strata, **drawn) / bottom[0]
            kept = np.ones(draws.shape, dtype=bool)
        else:
            draws, kept = _resampled_ratios(top, bottom, strata, **drawn)
    else:
        chosen = np.asarray(first, dtype=bool)
        _same_length("first", chosen, "numerators", top)
        groups = [chosen, ~chosen]
        if not all(bottom[group].any(axis=0).all() for group in groups):
            raise InputError("first leaves a group without events; events in both are needed")
        labels = chosen if strata is None else strata
        mean = np.subtract(*(_ratios(top[group], bottom[group]) for group in groups))
        parts = [_resampled_ratios(top * g[:, None], bottom * g[:, None], labels, **drawn) for g in groups]
        draws, kept = parts[0][0] - parts[1][0], parts[0][1] & parts[1][1]
    found = _summary(mean, draws, kept, np.count_nonzero(bottom, axis=0), **asked)
    return _single(found) if single else found


def _resampled_ratios(
    top: Floats, bottom: Floats, strata: npt.ArrayLike | None, *, resamples: int, seed: int
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return resampled ratios, [resample, column], and where there is one: where an event was drawn."""
    means = bootstrap_means(np.concatenate([top, bottom], axis=1), strata, resamples=resamples, seed=seed)
    above, below = np.split(means, 2, axis=1)
    kept = below > 0
    return np.divide(above, below, out=np.zeros_like(above), where=kept), kept


def paired_bootstrap(
    differences: npt.ArrayLike,
    strata: npt.ArrayLike | None = None,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    family: int = 1,
    **settings: Any,
) -> Estimate:
    """Estimate the mean of paired `differences` [unit]; settings and refusals as in `clustered_rate`.

    Differences of exactly 0 everywhere give the interval [0, 0] and p = 1.
    """
    data = numbers("differences", differences, (1,))
    settings |= {"resamples": resamples, "level": level, "family": family}
    return clustered_rate(data, np.ones(len(data)), strata, **settings)


def median_bootstrap(
    values: npt.ArrayLike,
    strata: npt.ArrayLike | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    **asked: Any,
) -> Estimate:
    """Estimate the median of all defined `values` [unit, arm], resampled by unit; as in `clustered_rate`.

    Whole-numbered measures (steps) take few values, so a resample is the sum of its units' histograms, and
    its median is read off the cumulated counts: no resample is ever laid out. The median of an even count
    is the mean of its two middle values, as in NumPy. NaN is undefined; resamples without a value are left
    out. Refused: what `bootstrap_means` refuses, and values that are all undefined.
    """
    data = np.asarray(values, dtype=np.float64)
    if data.ndim != 2:
        raise InputError(f"values have {data.ndim} dimensions; [unit, column] is accepted")
    defined = ~np.isnan(data)
    if not defined.any():
        raise InputError("values are all undefined; at least one value is needed")
    points = np.unique(data[defined])
    histogram = np.stack([(data == point).sum(axis=1) for point in points], axis=1)
    draws = bootstrap_means(histogram, strata, resamples=resamples, seed=seed)
    counts = np.rint(draws * len(data)).astype(np.int64)  # sums are exact: only the division is undone
    kept = counts.any(axis=1)
    medians = _medians(points, counts)[:, None]
    mean, n = _medians(points, histogram.sum(axis=0, keepdims=True)), defined.any(axis=1).sum(keepdims=True)
    return _single(_summary(mean, medians, kept[:, None], n, **asked))


def _medians(points: Floats, counts: npt.NDArray[np.int64]) -> Floats:
    """Return the medians [row] of multisets that hold each of `points` as often as `counts` [row, point]."""
    below = np.cumsum(counts, axis=1)
    total = below[:, -1:]
    lower, upper = np.argmax(2 * below >= total, axis=1), np.argmax(2 * below > total, axis=1)
    return (points[lower] + points[upper]) / 2


# intervals of one mean or share


def normal_half_width(deviation: Number, n: int, level: float = LEVEL) -> Number:
    """Return half of a mean's normal interval: z s / sqrt(n)."""
    return NormalDist().inv_cdf((1 + level) / 2) * deviation / math.sqrt(n)


def mean_intervals(
    values: npt.ArrayLike,
    strata: npt.ArrayLike | None = None,
    level: float = LEVEL,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[Floats, Floats, Floats]:
    """Return the mean of each column of `values` [unit, column] with its low and high end, [column] each.

    Percentile intervals, to the bit those of `mean_interval` on each column. One unit carries no interval
    (NaN ends); above `LARGE` units without strata the interval is mean -+ z s / sqrt(n), which the bootstrap
    there equals within its Monte-Carlo error. Refused: as `bootstrap_means`.
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
    values: npt.ArrayLike, strata: npt.ArrayLike | None = None, level: float = LEVEL, **settings: int
) -> Interval:
    """Return the mean of `values` [unit] with its interval; see `mean_intervals`."""
    data = numbers("values", values, (1,))
    ends = mean_intervals(data[:, None], strata, level, **settings)
    return Interval(*(float(end[0]) for end in ends), len(data))


def mean_track(track: Floats, resamples: int = RESAMPLES) -> dict[str, npt.NDArray[np.generic]]:
    """Average a track [episode, time], NaN after an episode's end, over its running episodes.

    Returns:
        `t accuracy low high running n`, each [time], with percentile intervals over episodes; NaN where fewer
        than `MIN_RUNNING` episodes run (all of them, if there are fewer), and at the ends of a single
        episode's interval.
    """
    episodes, times = track.shape
    running = ~np.isnan(track)
    count = running.sum(axis=0)
    shown = count >= min(MIN_RUNNING, episodes)
    mean, low, high = np.full((3, times), np.nan)
    top, bottom = np.where(running, track, 0.0)[:, shown], running[:, shown].astype(np.float64)
    mean[shown] = top.sum(axis=0) / bottom.sum(axis=0)
    if episodes > 1:
        draws, kept = _resampled_ratios(top, bottom, None, resamples=resamples, seed=0)
        low[shown], high[shown] = percentile_interval(draws[kept.all(axis=1)])
    n = np.full(times, episodes)
    return {"t": np.arange(times), "accuracy": mean, "low": low, "high": high, "running": count, "n": n}


def wilson(successes: int, n: int, level: float = LEVEL) -> Interval:
    """Return the share successes / n with Wilson's score interval (Wilson 1927).

    Refused: n below 1, successes outside 0..n, a level outside (0, 1).
    """
    check_level(level)
    whole_number("n", n, 1)
    whole_number("successes", successes, 0)
    between("successes", successes, 0, n)
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == n else centre + half
    return Interval(share, low, high, int(n))


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """Return the two-sided exact p of the two counts of discordant pairs (McNemar 1947).

    p = min(1, 2 Pr(X <= min)) for X ~ Binomial(b + c, 1/2), exact; no discordant pair gives 1.
    Refused: counts that are negative or not whole.
    """
    whole_number("only_first", only_first, 0)
    whole_number("only_second", only_second, 0)
    n, smaller = int(only_first + only_second), int(min(only_first, only_second))
    return min(1.0, 2 * sum(math.comb(n, k) for k in range(smaller + 1)) / 2**n)
