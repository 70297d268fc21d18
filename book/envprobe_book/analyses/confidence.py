"""What reported confidence says about truth: rates, calibration and ranking, clustered by seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from envprobe_core.statistics import bootstrap_means, clustered_rate, percentile_interval
from envprobe_core.worlds.base import Floats, Ints

UNIT = ["world", "seed"]  # what is resampled: all policies of a seed together

Measure = Callable[[Floats, Floats], Floats]
"""A number of right and wrong beliefs, counts [..., percent] each."""


def pooled_rate(frame: pd.DataFrame, top: str, bottom: str, resamples: int) -> pd.DataFrame:
    """The sum of a column over that of another, with its interval, a row a protocol; NaN without an event."""
    rows = []
    for name, part in frame.groupby("protocol", sort=False):
        sums = part.groupby(UNIT)[[top, bottom]].sum()
        ends = [np.nan] * 3
        if sums[bottom].sum():
            worlds = sums.index.get_level_values("world")
            found = clustered_rate(sums[top], sums[bottom], worlds, resamples=resamples)
            ends = [found.mean, found.low, found.high]
        rows.append((name, *ends))
    return pd.DataFrame(rows, columns=["protocol", "rate", "rate_low", "rate_high"])


def reliability(right: Floats | Ints, wrong: Floats | Ints) -> dict[str, Floats]:
    """Ten bins of right and wrong beliefs, counts [..., percent]: 0-9, ..., 80-89 and 90-100 percent.

    Returns:
        `count`, mean `confidence` and `accuracy` of each bin, [..., bin]; NaN where a bin is empty.

    >>> right, wrong = np.zeros((2, 101), int)
    >>> right[95], wrong[95] = 3, 1
    >>> {name: float(value[-1]) for name, value in reliability(right, wrong).items()}
    {'count': 4.0, 'confidence': 0.95, 'accuracy': 0.75}
    """
    first, total = np.arange(0, 100, 10), right + wrong
    parts = (total, right, total * np.arange(101) / 100)
    count, hits, sure = (np.add.reduceat(part, first, axis=-1) for part in parts)
    with np.errstate(invalid="ignore", divide="ignore"):
        return {"count": count, "confidence": sure / count, "accuracy": hits / count}


def expected_calibration_error(right: Floats, wrong: Floats) -> Floats:
    """The gaps between confidence and share right, weighted by bin size (Guo et al. 2017, equation 3).

    >>> right, wrong = np.zeros((2, 101))
    >>> right[95], wrong[95] = 3, 1
    >>> round(float(expected_calibration_error(right, wrong)), 3)
    0.2
    """
    bins = reliability(right, wrong)
    gap = np.where(bins["count"] > 0, np.abs(bins["accuracy"] - bins["confidence"]), 0.0)
    return (gap * bins["count"]).sum(axis=-1) / bins["count"].sum(axis=-1)


def area_under_curve(right: Floats, wrong: Floats) -> Floats:
    """The chance that a right belief is reported with more confidence than a wrong one, ties half.

    >>> right, wrong = np.zeros((2, 101))
    >>> right[[70, 90]], wrong[70] = 1, 1
    >>> float(area_under_curve(right, wrong))
    0.75
    """
    below = np.cumsum(wrong, axis=-1) - 0.5 * wrong
    pairs = right.sum(axis=-1) * wrong.sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(pairs > 0, (right * below).sum(axis=-1) / pairs, np.nan)


def pooled_measure(frame: pd.DataFrame, measure: Measure, resamples: int) -> pd.DataFrame:
    """A measure of all beliefs of a protocol whose value is known, with its interval, a row a protocol.

    Args:
        frame: with `sure_right` and `sure_wrong`, counts by percent of an episode's beliefs.
        measure: as `expected_calibration_error`.
        resamples: of seeds, world by world.
    """
    rows = []
    for name, part in frame.groupby("protocol", sort=False):
        units = part.groupby(UNIT, sort=False)[["sure_right", "sure_wrong"]].agg(lambda counts: counts.sum())
        right, wrong = (np.stack(units[column].to_numpy()).astype(float) for column in units)
        places = pd.factorize(units.index.get_level_values("world"))[0]
        draws = bootstrap_means(np.concatenate([right, wrong], axis=1), places, resamples=resamples)
        value, ends = measure(right.sum(axis=0), wrong.sum(axis=0)), (np.nan, np.nan)
        if np.isfinite(value) and np.isfinite(draws).all():
            found = measure(*np.split(draws, 2, axis=1))
            ends = percentile_interval(found[np.isfinite(found)])
        rows.append((name, value, *ends))
    return pd.DataFrame(rows, columns=["protocol", "rate", "rate_low", "rate_high"])
