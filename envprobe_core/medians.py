"""Medians of clustered values, resampled by unit.

Whole-numbered measures (steps) take few values, so a resample is the sum of its units' histograms and its
median is read off the cumulated counts: no resample is ever laid out.
"""

from __future__ import annotations

import numpy as np

from envprobe_core.errors import InputError
from envprobe_core.intervals import LEVEL
from envprobe_core.resampling import RESAMPLES, bootstrap_means
from envprobe_core.stats import Estimate, summarize


def median_bootstrap(
    values: np.ndarray,
    strata: object = None,
    *,
    null: float = 0.0,
    level: float = LEVEL,
    family: int = 1,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """Median of all defined `values` [unit, column], resampled by unit; p is against `null`.

    The median of an even count is the mean of its two middle values, as in NumPy. `n` counts the units
    with a defined value; resamples without any are left out. Refused: what `bootstrap_means` refuses, and
    values that are all NaN (undefined).
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
    medians = _medians(points, counts[counts.sum(axis=1) > 0])
    observed = _medians(points, histogram.sum(axis=0, keepdims=True))[0]
    n = int(np.count_nonzero(defined.any(axis=1)))
    return summarize(float(observed), medians, n, null, level, family)


def _medians(points: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Median [row] of the multisets that hold each of `points` [point] as often as `counts` [row, point]."""
    below = np.cumsum(counts, axis=1)
    total = below[:, -1:]
    lower = np.argmax(2 * below >= total, axis=1)
    upper = np.argmax(2 * below > total, axis=1)
    return (points[lower] + points[upper]) / 2
