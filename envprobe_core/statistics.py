"""Statistics of the paper: ratios of sums with bootstrap intervals, medians, Wilson's interval, McNemar's p.

The unit is the episode (a seed in a world), or a pair of episodes. Pooled worlds are strata: units are
resampled within their stratum. What is resampled is resampled by `resampling`, which pages run too. Sources:
section 6.1 of the paper; Efron and Tibshirani (1993).
"""

import math
from numbers import Integral, Real
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from envprobe_core import resampling as parts
from envprobe_core.errors import InputError

RESAMPLES = 10_000
LEVEL = 0.95
LARGE = 10_000  # units above which a plain mean gets the normal interval, the bootstrap's limit
LARGEST_SEED = 2**53  # below it every whole number is a number of a page as well
MIN_RUNNING = 10  # fewer running episodes carry no mean worth drawing

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
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


def numbers(values: npt.ArrayLike, *axes: str) -> Floats:
    """Values as an array of numbers with these axes; everything else is refused.

    >>> numbers([1, 2], "unit").tolist()
    [1.0, 2.0]
    """
    data = np.asarray(values, dtype=np.float64)
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


def _laid_out(data: Floats, strata: npt.ArrayLike | None, resamples: int, seed: int) -> tuple[Floats, Ints]:
    """The columns of `data` [unit, column] as `resampling` takes them: [column, unit], and the strata's ends.

    Raises:
        InputError: for NaN or infinity, lengths that differ, and less than one resample. All that is
            resampled passes through here.
    """
    if len(bad := np.argwhere(~np.isfinite(data))):
        raise InputError(
            f"values hold {data[tuple(bad[0])]} at unit {bad[0][0]}; finite numbers are accepted"
        )
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
    _, place, counts = np.unique(labels, return_inverse=True, return_counts=True)
    ordered = data[np.argsort(place, kind="stable")]
    return np.ascontiguousarray(ordered.T), np.cumsum(counts)


def _scratch(columns: Floats, strata: int, resamples: int) -> tuple[Ints, Floats, Floats]:
    """What the compiled functions write in: `drawn whole draws`."""
    width, units = columns.shape
    whole = np.empty((width + 1, parts.scratch_columns(units, strata)))
    return np.empty(units, np.int64), whole, np.empty((width, resamples))


def bootstrap_means(
    values: npt.ArrayLike, strata: npt.ArrayLike | None = None, *, resamples: int = RESAMPLES, seed: int = 0
) -> Floats:
    """Resampled means, [resample] or [resample, column], of `values` [unit] or [unit, column].

    Units are drawn within their stratum (`strata` [unit], any labels) and pooled, as `resampling.draw_means`
    says. A stratum of a single unit says nothing of how means vary: then all are NaN.

    >>> bootstrap_means([1.0, 1.0, 1.0], resamples=2).tolist()
    [1.0, 1.0]
    """
    data = np.asarray(values, dtype=np.float64)
    if data.ndim not in (1, 2) or data.size == 0:
        raise InputError(f"values of shape {data.shape}; [unit] or [unit, column], not empty, is accepted")
    columns, ends = _laid_out(data.reshape(len(data), -1), strata, resamples, seed)
    drawn, whole, draws = _scratch(columns, len(ends), resamples)
    parts.means(columns, ends, int(seed), drawn, whole, draws)
    return draws[0] if data.ndim == 1 else draws.T


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


def _check_asked(level: float, family: int) -> None:
    """Refuse what is no level of an interval or no number of comparisons."""
    if not (isinstance(level, Real) and 0 < level < 1 and isinstance(family, Integral) and family >= 1):
        what = f"level {level!r}, family {family!r}"
        raise InputError(f"{what}: a level in (0, 1) and a family from 1 are accepted")


def ratios(
    tops: Floats,
    bottoms: Floats,
    strata: npt.ArrayLike | None = None,
    *,
    contrasted: bool = False,
    resamples: int = RESAMPLES,
    seed: int = 0,
    null: float = 0.0,
    level: float = LEVEL,
    family: int = 1,
    reach: float | None = None,
) -> Estimate:
    """Estimates of ratios of sums of `tops` over sums of `bottoms` [unit, column]; each part is [statistic].

    With `contrasted` a statistic is the ratio of a column of the first half minus that of its like in the
    second. Units that are pairs have a `reach`, how far one can differ, 0 if that is not known; where fewer
    than a tenth of them differs, resamples hold two more pairs that nobody saw (`resampling.add_unseen`).

    >>> ratios(np.array([[1.0, 2.0], [3.0, 2.0]]), np.ones((2, 2)), contrasted=True).mean.tolist()
    [0.0]
    """
    columns, ends = _laid_out(np.concatenate([tops, bottoms], axis=1), strata, resamples, seed)
    _check_asked(level, family)
    written = np.empty((tops.shape[1] // (2 if contrasted else 1), parts.PARTS))
    far = math.nan if reach is None else float(reach)
    asked = (int(contrasted), int(seed), float(null), float(level), float(family), far)
    parts.ratios(columns, ends, *asked, *_scratch(columns, len(ends), resamples), written)
    if np.isnan(written).any() and np.diff(ends, prepend=0).min() > 1:
        raise InputError(f"none of {resamples} resamples holds an event; more resamples are needed")
    return _by_name(written.T)


def _by_name(written: Floats) -> Estimate:
    """The parts of estimates [part, statistic] by their names."""
    return Estimate(*written)._replace(n=written[parts.UNITS].astype(np.int64))


def _single(estimate: Estimate) -> Estimate:
    """The one statistic of an estimate as numbers."""
    return Estimate(*(part[0].item() for part in estimate))


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
            that the adjusted interval and p allow for (1); `reach` of pairs, as in `ratios` (None).

    Raises:
        InputError: for what `bootstrap_means` refuses, negative denominators, and a ratio without events.

    >>> rate = clustered_rate([1, 2, 0, 3], [2, 2, 1, 4])
    >>> round(rate.mean, 4), rate.n
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
    groups = [chosen] if first is None else [chosen, ~chosen]
    tops, bottoms = (
        np.concatenate([np.where(group[:, None], part, 0.0) for group in groups], axis=1)
        for part in (top, bottom)
    )
    if not bottoms.any(axis=0).all():
        what = "denominators are all 0" if first is None else "first leaves a group without events"
        raise InputError(f"{what}; at least one event is needed")
    settings: dict[str, Any] = {"contrasted": first is not None, "resamples": resamples, "seed": seed}
    estimate = ratios(tops, bottoms, labels, **settings, **asked)
    return _single(estimate) if single else estimate


def paired_bootstrap(
    differences: npt.ArrayLike, strata: npt.ArrayLike | None = None, resamples: int = RESAMPLES, **asked: Any
) -> Estimate:
    """Estimate the mean of paired `differences` [unit]; as in `clustered_rate`, with a `reach` of 0.

    Differences of exactly 0 everywhere give the interval [0, 0] and p = 1.

    >>> gain = paired_bootstrap([1.0, 0.0, 2.0, 1.0])
    >>> gain.mean, gain.low <= gain.mean <= gain.high
    (1.0, True)
    """
    data = numbers(differences, "unit")
    return clustered_rate(data, np.ones_like(data), strata, resamples=resamples, **{"reach": 0.0} | asked)


def median_bootstrap(
    values: npt.ArrayLike,
    strata: npt.ArrayLike | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    null: float = 0.0,
    level: float = LEVEL,
    family: int = 1,
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
    medians = (points[lower] + points[upper]) / 2
    _check_asked(level, family)
    written, draws = np.empty(parts.PARTS), np.ascontiguousarray(medians[1:][total[1:, 0] > 0])
    if not len(draws):
        raise InputError(f"none of {resamples} resamples holds an event; more resamples are needed")
    parts.summed_up(draws, float(null), float(level), float(family), written)
    written[parts.MEAN], written[parts.UNITS] = medians[0], defined.any(axis=1).sum()
    return _single(_by_name(written[:, None]))


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
    if len(data) > LARGE and strata is None:
        mean = np.array([math.fsum(column) / len(data) for column in data.T.tolist()])
        half = normal_half_width(data.std(axis=0), len(data), level)
        return mean, mean - half, mean + half
    estimate = ratios(data, np.ones_like(data), strata, resamples=resamples, seed=seed, level=level)
    return tuple(map(np.asarray, estimate[:3]))  # type: ignore[return-value]


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
    rate = clustered_rate(top, running[:, shown], strata, resamples=resamples)
    mean[shown], low[shown], high[shown] = rate.mean, rate.low, rate.high
    n = np.full(times, episodes)
    return {"t": np.arange(times), "accuracy": mean, "low": low, "high": high, "running": count, "n": n}


def _check_share(successes: int, n: int) -> None:
    """Refuse what is no count of successes among n."""
    if not (
        all(isinstance(count, Real) for count in (successes, n)) and 0 <= successes <= n < math.inf and n
    ):
        raise InputError(f"{successes!r} successes of {n!r}; n from 1 and successes from 0 to n are accepted")


def wilson(successes: int, n: int, level: float = LEVEL) -> Interval:
    """The share successes / n with Wilson's score interval (Wilson 1927), as pages find it too.

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


def exact_interval(successes: int, n: int, level: float = LEVEL) -> Interval:
    """The share successes / n with its exact interval (Clopper and Pearson 1934).

    At its low end what was seen, or more successes, has the probability (1 - level) / 2; at its high end what
    was seen, or fewer. It says something of 0 among n too, where a bootstrap is the point 0.

    >>> exact_interval(0, 220)
    Interval(value=0.0, low=0.0, high=0.01662783953999374, n=220)
    """
    _check_share(successes, n)
    if int(successes) != successes or int(n) != n:
        raise InputError(f"{successes!r} successes of {n!r}; whole numbers are accepted")
    check_level(level)
    from scipy.special import betaincinv  # here, as it takes longer to import than the rest of the core

    some, none, tail = int(successes), int(n) - int(successes), (1 - level) / 2
    low = float(betaincinv(some, none + 1, tail)) if some else 0.0
    high = float(betaincinv(some + 1, none, 1 - tail)) if none else 1.0
    return Interval(some / int(n), low, high, int(n))


def mcnemar_exact(only_first: int, only_second: int) -> float:
    """The two-sided exact p of the two counts of discordant pairs (McNemar 1947).

    p = min(1, 2 Pr(X <= min)) for X ~ Binomial(b + c, 1/2); no discordant pair gives 1.

    >>> mcnemar_exact(8, 0)
    0.0078125
    """
    if not all(isinstance(count, Integral) and count >= 0 for count in (only_first, only_second)):
        what = f"{only_first!r} and {only_second!r} discordant pairs"
        raise InputError(f"{what}; whole numbers from 0 are accepted")
    from scipy.special import bdtr

    fewer, n = min(int(only_first), int(only_second)), int(only_first) + int(only_second)
    return min(1.0, 2 * float(bdtr(fewer, n, 0.5)))
