"""Statistics of the paper: ratios of sums with bootstrap intervals, medians, Wilson's interval, McNemar's p.

The unit is the episode (a seed in a world), or a pair of episodes. Pooled worlds are strata: units are
resampled within their stratum. All statistics share one matrix of resample counts a sample size, drawn by the
engine's counter-based hash, and resampled sums are formed in fixed point, so they are exact: neither the
order of units, columns or calls nor the BLAS library nor NumPy's generators move a bit. Sources: section 6.1
of the paper; Efron and Tibshirani (1993).
"""

import math
from collections.abc import Iterator
from functools import lru_cache
from numbers import Integral, Real
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from envprobe_core.engine import noise
from envprobe_core.errors import InputError

RESAMPLES = 10_000
LEVEL = 0.95
LARGE = 10_000  # units above which a plain mean gets the normal interval, the bootstrap's limit
TIE = 1e-12  # relative distance below which a resampled statistic counts as equal to the null
KEPT_UNITS = 2_500  # larger count matrices are drawn again at each use, in blocks
FIXED_POINT_BITS = 52
KEPT_AS_NUMBERS = 1_000_000  # counts of a matrix that is kept as floating-point numbers too
DRAWS_AT_ONCE = 100_000  # small enough for the cache, and for BLAS to stay on one thread
LARGEST_SEED = 2**53  # below it every whole number is a number of a page as well
RESAMPLING = noise.STREAMS  # the first stream that the engine does not use
NEGLIGIBLE = 1e-30  # a probability next to the largest of its distribution
MIN_RUNNING = 10  # fewer running episodes carry no mean worth drawing

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]
Number = float | Floats  # one, or [column]


class Interval(NamedTuple):
    """An estimate with the ends of its interval and its number of units."""

    value: float
    low: float
    high: float
    n: int


class Estimate(NamedTuple):
    """A resampled statistic, one number or [column]."""

    mean: Number  # the observed statistic
    low: Number  # percentile interval
    high: Number
    p: Number  # two-sided, min(1, 2 min(p_greater, p_less))
    n: Number  # units that carry an event
    low_adjusted: Number  # percentile interval at 1 - (1 - level) / family (Bonferroni)
    high_adjusted: Number
    p_adjusted: Number  # min(1, p family)
    p_greater: Number  # one-sided, for a statistic above the null
    p_less: Number


# what is accepted


def numbers(given: npt.ArrayLike, *axes: str) -> Floats:
    """What was given as an array of numbers with these axes; refuse everything else.

    >>> numbers([1, 2], "unit").tolist()
    [1.0, 2.0]
    """
    data = np.asarray(given, dtype=np.float64)
    if data.ndim != len(axes) or data.size == 0:
        raise InputError(f"values of shape {data.shape}; [{', '.join(axes)}], not empty, is accepted")
    return data


def check_level(level: float) -> None:
    """Refuse what is no level of an interval.

    >>> check_level(0.95)
    """
    if not (isinstance(level, Real) and 0 < level < 1):
        raise InputError(f"level {level!r}; a level in (0, 1) is accepted")


# resampling


# what the engine compiles for one word is here applied to arrays of words
_mix = getattr(noise.mix, "py_func", noise.mix)


def _words(key: Words, numbers: Words) -> Words:
    """The words of numbers under a key, as `noise.numbered` draws them, [number]."""
    return _mix(key + (numbers + noise.ONE) * noise.GOLDEN)


def _key(n: int, seed: int) -> Words:
    """The key of the resamples of n units, [1], as `noise.stream_keys` makes the keys of a world."""
    seeded, stream = np.array([seed], np.uint64), np.array([(n << 32) + RESAMPLING], np.uint64)
    return _mix(_mix(seeded + noise.GOLDEN) ^ _mix(stream * noise.GOLDEN))


def _count_blocks(n: int, resamples: int, seed: int) -> Iterator[npt.NDArray[np.integer]]:
    """Yield rows of the count matrix in blocks; the size of a block moves no draw."""
    key, rows = _key(n, seed), 1 + DRAWS_AT_ONCE // n
    for start in range(0, resamples, rows):
        own = min(rows, resamples - start)
        upper = _words(key, np.arange(start * n, (start + own) * n, dtype=np.uint64)) >> noise.u64(32)
        unit = ((upper * noise.u64(n)) >> noise.u64(32)).astype(np.int64).reshape(own, n)
        unit += np.arange(0, own * n, n)[:, None]  # a row's units have numbers of their own
        counts = np.bincount(unit.ravel(), minlength=own * n).reshape(own, n)
        yield counts.astype(np.min_scalar_type(n))


@lru_cache(maxsize=8)
def resample_counts(n: int, resamples: int = RESAMPLES, seed: int = 0) -> npt.NDArray[np.integer]:
    """How often each unit is drawn in each resample, [resample, unit]; each row sums to n.

    Draw k of resample r is the unit `(word >> 32) * n >> 32`, where `word` is number r n + k of the engine's
    hash (`engine.noise`) under the key of (seed, n): no resample depends on how many there are. A unit's
    chance differs from 1 / n by less than 2**-32. Read-only, made once a sample size.

    >>> resample_counts(5, 3).tolist()
    [[1, 1, 1, 0, 2], [2, 0, 0, 0, 3], [1, 1, 1, 2, 0]]
    """
    counts = np.concatenate(list(_count_blocks(n, resamples, seed)))
    counts.setflags(write=False)
    return counts


@lru_cache(maxsize=8)
def _counts_as_numbers(n: int, resamples: int, seed: int) -> Floats:
    """The counts as floating-point numbers, which a product with others takes several times sooner."""
    return resample_counts(n, resamples, seed).astype(np.float64)


def resampled_sums(columns: Floats, resamples: int, seed: int) -> Floats:
    """Sum `columns` [unit, column] over every resample, [resample, column], exactly.

    Values are rounded to multiples of a power of two for which no sum can exceed 2**53: the
    rounding moves a mean by less than n * 2**-52 of the largest value.

    >>> resampled_sums(np.array([[1.0], [1.0]]), resamples=2, seed=0).tolist()
    [[2.0], [2.0]]
    """
    n = len(columns)
    exponent = FIXED_POINT_BITS - np.frexp(n * np.abs(columns).max(axis=0))[1]
    whole = np.rint(np.ldexp(columns, exponent))
    if n <= KEPT_UNITS:
        counts = resample_counts(n, resamples, seed)
        if counts.size <= KEPT_AS_NUMBERS:
            counts = _counts_as_numbers(n, resamples, seed)
        rows = 1 + DRAWS_AT_ONCE // n
        blocks = (counts[start : start + rows] for start in range(0, resamples, rows))
    else:
        blocks = _count_blocks(n, resamples, seed)
    with np.errstate(invalid="ignore"):  # BLAS flags lanes of its own beyond a short row (numpy#24067)
        return np.ldexp(np.concatenate([block @ whole for block in blocks]), -exponent)


def bootstrap_means(
    values: npt.ArrayLike, strata: npt.ArrayLike | None = None, *, resamples: int = RESAMPLES, seed: int = 0
) -> Floats:
    """Resampled means, [resample] or [resample, column], of `values` [unit] or [unit, column].

    Units are drawn within their stratum (`strata` [unit], any labels) and pooled. The k-th stratum reads
    the count matrix k rows on, so strata of one size are drawn independently. One of a single unit says
    nothing of how means vary: then all are NaN.

    Raises:
        InputError: for no values, NaN or infinity, lengths that differ, and less than one resample. All that
            is resampled passes through here.

    >>> bootstrap_means([1.0, 1.0, 1.0], resamples=2).tolist()
    [1.0, 1.0]
    """
    data = np.asarray(values, dtype=np.float64)
    if data.ndim not in (1, 2) or data.size == 0:
        raise InputError(f"values of shape {data.shape}; [unit] or [unit, column], not empty, is accepted")
    if len(bad := np.argwhere(~np.isfinite(data))):
        first = data[tuple(bad[0])]
        raise InputError(f"values hold {first} at unit {bad[0][0]}; finite numbers are accepted")
    for what, count, least in (("resamples are", resamples, 1), ("the seed is", seed, 0)):
        if not isinstance(count, Integral) or isinstance(count, bool) or count < least:
            raise InputError(f"{what} {count!r}; a whole number from {least} is accepted")
    if seed >= LARGEST_SEED:
        raise InputError(f"the seed is {seed!r}; a whole number from 0 below 2**53 is accepted")
    labels = np.zeros(len(data)) if strata is None else np.asarray(strata)
    if labels.shape != data.shape[:1]:
        raise InputError(f"strata of shape {labels.shape}, {len(data)} units; one label a unit is accepted")
    if (labels != labels).any():  # NaN is no label: a unit without one would fall out of every stratum
        raise InputError(f"strata hold {labels[labels != labels][0]}; a label for every unit is accepted")
    columns = data.reshape(len(data), -1)
    total = np.zeros((resamples, columns.shape[1]))
    for shift, label in enumerate(np.unique(labels)):
        group = columns[labels == label]
        sums = resampled_sums(group, resamples, seed) if len(group) > 1 else np.full_like(total, np.nan)
        total += np.roll(sums, shift, axis=0)
    means = total / len(data)
    return means[:, 0] if data.ndim == 1 else means


# what resamples say


def percentile_interval(draws: npt.ArrayLike, level: float = LEVEL) -> tuple[Floats, Floats]:
    """The percentile interval of draws [resample], or of every column of [resample, column].

    The two quantiles at (1 -+ level) / 2, linearly interpolated.

    >>> [float(end) for end in percentile_interval(np.arange(101.0), level=0.9)]
    [4.999999999999999, 95.0]
    """
    check_level(level)
    tail = (1 - level) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], axis=0)
    return low, high


def estimate_of(
    mean: Floats,
    draws: Floats,
    kept: npt.NDArray[np.bool_],
    n: npt.NDArray[np.int64],
    *,
    null: float = 0.0,
    level: float = LEVEL,
    family: int = 1,
) -> Estimate:
    """What resampled statistics [resample, column] tell of an observed one [column].

    Resamples that are not `kept` do not count. p_greater = (1 + #{draws <= null}) / (1 + draws), and p_less
    is the mirror image: the observed sample counts as one of its resamples, so p is never 0 (Davison and
    Hinkley 1997, section 4.2). Where draws are NaN, so are ends and p.

    Raises:
        InputError: for a level outside (0, 1), a family below 1, or no resample that is kept.

    >>> draws = np.array([[0.1], [0.2], [0.3]])
    >>> estimate_of(np.array([0.2]), draws, draws > 0, np.array([5])).p_less.tolist()
    [1.0]
    """
    if not (isinstance(level, Real) and 0 < level < 1 and isinstance(family, Real) and family >= 1):
        what = f"level {level!r}, family {family!r}"
        raise InputError(f"{what}: a level in (0, 1) and a family from 1 are accepted")
    if not kept.any(axis=0).all():
        raise InputError(f"none of {len(draws)} resamples holds an event; more resamples are needed")
    levels = (level, level if family == 1 else 1 - (1 - level) / family)
    points = [end for tail in ((1 - share) / 2 for share in levels) for end in (tail, 1 - tail)]
    found = np.empty((6, draws.shape[1]))
    whole = kept.all(axis=0)
    for columns in (np.flatnonzero(whole), *np.flatnonzero(~whole)[:, None]):
        if len(columns):
            own = draws[:, columns][kept[:, columns].all(axis=1)]
            slack = TIE * np.maximum(np.abs(own).max(axis=0), abs(null))
            below = 1 + np.count_nonzero(own <= null + slack, axis=0)
            above = 1 + np.count_nonzero(own >= null - slack, axis=0)
            found[:4, columns] = np.quantile(own, points, axis=0)
            shares = np.stack([below, above]) / (1 + len(own))
            found[4:, columns] = np.where(np.isnan(own).any(axis=0), np.nan, shares)
    low, high, low_adjusted, high_adjusted, greater, less = found
    p = np.minimum(1.0, 2 * np.minimum(greater, less))
    adjusted = (low_adjusted, high_adjusted, np.minimum(1.0, p * family))
    return Estimate(mean, low, high, p, n, *adjusted, greater, less)


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

    >>> found = clustered_rate([1, 2, 0, 3], [2, 2, 1, 4])
    >>> round(found.mean, 4), found.n
    (0.6667, 4)
    """
    top, bottom = (np.asarray(part, dtype=np.float64) for part in (numerators, denominators))
    chosen = np.ones(top.shape[:1], dtype=bool) if first is None else np.asarray(first, dtype=bool)
    if not (top.size and top.shape == bottom.shape and top.shape[:1] == chosen.shape):
        what = f"numerators of shape {top.shape}, denominators of {bottom.shape}, first of {chosen.shape}"
        raise InputError(f"{what}; one shape and equal lengths, not empty, are accepted")
    if (bottom < 0).any():
        raise InputError(f"denominators hold {bottom.min()}; numbers from 0 are accepted")
    single, labels = top.ndim == 1, chosen if strata is None and first is not None else strata
    top, bottom = (part.reshape(len(part), -1) for part in (top, bottom))
    means, draws, kept = [], [], np.ones((1, top.shape[1]), dtype=bool)  # [resample, column]
    for group in [chosen] if first is None else [chosen, ~chosen]:
        above, below = (np.where(group[:, None], part, 0.0) for part in (top, bottom))
        if not below.any(axis=0).all():
            what = "denominators are all 0" if first is None else "first leaves a group without events"
            raise InputError(f"{what}; at least one event is needed")
        if (below == below[0]).all() and (below[0] == np.rint(below[0])).all():  # so in every resample
            drawn = bootstrap_means(above, labels, resamples=resamples, seed=seed) / below[0]
        else:
            both = np.concatenate([above, below], axis=1)
            over, under = np.split(bootstrap_means(both, labels, resamples=resamples, seed=seed), 2, axis=1)
            drawn = np.divide(over, under, out=np.zeros_like(over), where=under != 0)
            kept = kept & (under != 0)
        sums = zip(above.T.tolist(), below.T.tolist(), strict=True)  # correctly rounded
        means.append(np.array([math.fsum(over) / math.fsum(under) for over, under in sums]))
        draws.append(drawn)
    mean, drawn = (own[0] if first is None else own[0] - own[1] for own in (means, draws))
    kept = np.broadcast_to(kept, drawn.shape)
    found = estimate_of(mean, drawn, kept, np.count_nonzero(bottom, axis=0), **asked)
    return Estimate(*(column[0].item() for column in found)) if single else found


def paired_bootstrap(
    differences: npt.ArrayLike, strata: npt.ArrayLike | None = None, resamples: int = RESAMPLES, **asked: Any
) -> Estimate:
    """Estimate the mean of paired `differences` [unit]; as in `clustered_rate`.

    Differences of exactly 0 everywhere give the interval [0, 0] and p = 1.

    >>> found = paired_bootstrap([1.0, 0.0, 2.0, 1.0])
    >>> found.mean, found.low <= found.mean <= found.high
    (1.0, True)
    """
    data = numbers(differences, "unit")
    return clustered_rate(data, np.ones_like(data), strata, resamples=resamples, **asked)


def median_bootstrap(
    values: npt.ArrayLike,
    strata: npt.ArrayLike | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    **asked: Any,
) -> Estimate:
    """Estimate the median of all `values` [unit, arm] but NaN, resampled by unit; as in `clustered_rate`.

    Whole-numbered measures (steps) take few values, so a resample is the sum of its units' histograms, and
    its median is read off the cumulated counts: no resample is ever laid out. The median of an even count
    is the mean of its two middle values, as in NumPy. Resamples without a value are left out.

    >>> median_bootstrap([[1.0], [2.0], [9.0]]).mean
    2.0
    """
    data = numbers(values, "unit", "arm")
    defined = ~np.isnan(data)
    points = np.unique(data[defined])
    if not len(points):
        raise InputError("values are all undefined; at least one value is needed")
    histogram = np.stack([(data == point).sum(axis=1) for point in points], axis=1)
    draws = bootstrap_means(histogram, strata, resamples=resamples, seed=seed) * len(data)
    # sums are exact: only the division is undone; the observed units stand in front
    below = np.cumsum(np.vstack([histogram.sum(axis=0), np.rint(draws)]), axis=1)
    total = below[:, -1:]
    lower, upper = np.argmax(2 * below >= total, axis=1), np.argmax(2 * below > total, axis=1)
    medians = ((points[lower] + points[upper]) / 2)[:, None]
    n = defined.any(axis=1).sum(keepdims=True)
    found = estimate_of(medians[0], medians[1:], total[1:] > 0, n, **asked)
    return Estimate(*(column[0].item() for column in found))


# intervals of one mean or share


def normal_half_width(deviation: Number, n: int, level: float = LEVEL) -> Number:
    """Return half of a mean's normal interval: z s / sqrt(n).

    >>> round(float(normal_half_width(1.0, 100)), 4)
    0.196
    """
    check_level(level)
    return NormalDist().inv_cdf((1 + level) / 2) * deviation / math.sqrt(n)


def mean_intervals(
    values: npt.ArrayLike,
    strata: npt.ArrayLike | None = None,
    level: float = LEVEL,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[Floats, Floats, Floats]:
    """The mean of each column of `values` [unit, column] with its low and high end, [column] each.

    Percentile intervals. One unit carries no interval (NaN ends); above `LARGE` units without strata the
    interval is mean -+ z s / sqrt(n), which the bootstrap there equals within its Monte-Carlo error.

    >>> mean, low, high = mean_intervals(np.array([[0.0], [1.0], [1.0]]))
    >>> mean.round(4).tolist()
    [0.6667]
    """
    data = numbers(values, "unit", "column")
    if not np.isfinite(data).all():
        raise InputError("values hold NaN or infinity; finite numbers are accepted")
    mean = np.array([math.fsum(column) / len(data) for column in data.T.tolist()])
    if len(data) > LARGE and strata is None:
        half = normal_half_width(data.std(axis=0), len(data), level)
        return mean, mean - half, mean + half
    draws = bootstrap_means(data, strata, resamples=resamples, seed=seed)
    return mean, *percentile_interval(draws, level)


def mean_interval(
    values: npt.ArrayLike, strata: npt.ArrayLike | None = None, level: float = LEVEL, **settings: int
) -> Interval:
    """The mean of `values` [unit] with its interval; see `mean_intervals`.

    >>> mean_interval([0.0, 1.0, 1.0, 0.0]).value
    0.5
    """
    data = numbers(values, "unit")
    ends = mean_intervals(data[:, None], strata, level, **settings)
    return Interval(*(float(end[0]) for end in ends), len(data))


def mean_track(
    track: Floats, resamples: int = RESAMPLES, strata: npt.ArrayLike | None = None
) -> dict[str, npt.NDArray[np.generic]]:
    """Average a track [episode, time], NaN after an episode's end, over its running episodes.

    Args:
        track: the values.
        resamples: of each interval.
        strata: [episode], within which episodes are resampled.

    Returns:
        `t accuracy low high running n`, each [time], with percentile intervals over episodes; NaN where fewer
        than `MIN_RUNNING` episodes run (all of them, if there are fewer), and at the ends of a single
        episode's interval.

    >>> sorted(mean_track(np.ones((12, 3)), resamples=20))
    ['accuracy', 'high', 'low', 'n', 'running', 't']
    """
    episodes, times = numbers(track, "episode", "time").shape
    running = ~np.isnan(track)
    count = running.sum(axis=0)
    shown = count >= min(MIN_RUNNING, episodes)
    mean, low, high = np.full((3, times), np.nan)
    top = np.where(running, track, 0.0)[:, shown]
    mean[shown] = top.sum(axis=0) / count[shown]
    found = clustered_rate(top, running[:, shown], strata, resamples=resamples)
    low[shown], high[shown] = found.low, found.high
    n = np.full(times, episodes)
    return {"t": np.arange(times), "accuracy": mean, "low": low, "high": high, "running": count, "n": n}


# The three below stand here although SciPy has each: its last digits are others (half of Wilson's ends, two
# thirds of McNemar's p for up to 220 pairs), and a page of the book could not find them to the last bit.


def _check_share(successes: int, n: int) -> None:
    """Refuse what is no count of successes among n."""
    if not (
        all(isinstance(count, Real) for count in (successes, n)) and 0 <= successes <= n < math.inf and n
    ):
        raise InputError(f"{successes!r} successes of {n!r}; n from 1 and successes from 0 to n are accepted")


def wilson(successes: int, n: int, level: float = LEVEL) -> Interval:
    """The share successes / n with Wilson's score interval (Wilson 1927).

    >>> wilson(45, 220)
    Interval(value=0.20454545454545456, low=0.15653104975642793, high=0.26270075526797043, n=220)
    """
    _check_share(successes, n)
    check_level(level)
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == n else centre + half
    return Interval(share, low, high, int(n))


def _share_below(k: int, n: int, p: float) -> float:
    """Return Pr(X <= k) for X ~ Binomial(n, p), 0 < p < 1, by sums outwards from the likeliest count.

    Each probability follows from its neighbour by one product, so nothing but + - * / is used, which every
    machine rounds alike. What is left out is below 1e-30 of the largest.
    """
    odds, mode = p / (1 - p), min(n, int((n + 1) * p))
    below = above = 0.0
    term, count = 1.0, mode
    while term > NEGLIGIBLE:
        below, above = (below + term, above) if count <= k else (below, above + term)
        term *= count / ((n - count + 1) * odds)
        count -= 1
    term, count = (n - mode) / (mode + 1) * odds, mode + 1
    while term > NEGLIGIBLE:
        below, above = (below + term, above) if count <= k else (below, above + term)
        term *= (n - count) / (count + 1) * odds
        count += 1
    return below / (below + above)


@lru_cache(maxsize=4096)  # claims of a book ask for few of them, again and again
def _exact_end(k: int, n: int, tail: float) -> float:
    """The share p of which k successes or fewer of n have the probability `tail`, halving the gap."""
    low, high = k / n, 1.0
    while low < (middle := (low + high) / 2) < high:
        if _share_below(k, n, middle) > tail:
            low = middle
        else:
            high = middle
    return high


def exact_interval(successes: int, n: int, level: float = LEVEL) -> Interval:
    """The share successes / n with its exact interval (Clopper and Pearson 1934).

    At its low end what was seen, or more successes, has the probability (1 - level) / 2; at its high end what
    was seen, or fewer. It says something of 0 among n too, where a bootstrap is the point 0.

    >>> exact_interval(0, 220)
    Interval(value=0.0, low=0.0, high=0.016627839539993746, n=220)
    """
    _check_share(successes, n)
    if int(successes) != successes or int(n) != n:
        raise InputError(f"{successes!r} successes of {n!r}; whole numbers are accepted")
    check_level(level)
    tail, k, n = (1 - level) / 2, int(successes), int(n)
    low = 0.0 if k == 0 else 1 - _exact_end(n - k, n, tail)
    high = 1.0 if k == n else _exact_end(k, n, tail)
    return Interval(k / n, low, high, n)


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """The two-sided exact p of the two counts of discordant pairs (McNemar 1947).

    p = min(1, 2 Pr(X <= min)) for X ~ Binomial(b + c, 1/2), the number of machine precision next to it; no
    discordant pair gives 1.

    >>> mcnemar_exact(8, 0)
    0.0078125
    """
    if not all(isinstance(count, Integral) and count >= 0 for count in (only_first, only_second)):
        what = f"{only_first!r} and {only_second!r} discordant pairs"
        raise InputError(f"{what}; whole numbers from 0 are accepted")
    n, smaller = int(only_first) + int(only_second), int(min(only_first, only_second))
    ways = total = 1  # Pascal's row n, entry after entry: `comb` would begin each anew
    for k in range(smaller):
        ways = ways * (n - k) // (k + 1)
        total += ways
    return min(1.0, 2 * total / 2**n)
