"""What reported confidence says about truth: rates pooled over episodes, calibration and ranking.

Source: the paper's Table 7 and its miscoverage proposition. The counts are facts of `run`; a unit of
resampling is one seed in one world, all policies together.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from envprobe_core.measures import LEVELS, area_under_curve, expected_calibration_error, reliability
from envprobe_core.statistics import RESAMPLES, bootstrap_means, clustered_rate, percentile_interval

UNIT = ["world", "seed"]


def pooled_rate(frame: pd.DataFrame, top: str, bottom: str, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Divide the sum of column `top` by that of `bottom` over episodes, resampled by seed within its world.

    Returns:
        One row a protocol: `protocol rate rate_low rate_high`; NaN without an event.
    """
    rows = []
    for protocol, part in frame.groupby("protocol", sort=False):
        sums = part.groupby(UNIT)[[top, bottom]].sum()
        row = {"protocol": protocol, "rate": np.nan, "rate_low": np.nan, "rate_high": np.nan}
        if sums[bottom].sum():
            worlds = sums.index.get_level_values("world")
            found = clustered_rate(sums[top], sums[bottom], worlds, resamples=resamples)
            row |= {"rate": found.mean, "rate_low": found.low, "rate_high": found.high}
        rows.append(row)
    return pd.DataFrame(rows)


def confidence_bins(frame: pd.DataFrame) -> pd.DataFrame:
    """Sort known beliefs, the facts `sure_right sure_wrong`, into ten bins of reported confidence.

    Returns:
        One row a protocol and bin that holds a belief: `protocol confidence accuracy beliefs`: mean
        confidence, share right, and the share of all known beliefs.
    """
    parts = []
    for protocol, part in frame.groupby("protocol", sort=False):
        bins = pd.DataFrame(reliability(part["sure_right"].sum(), part["sure_wrong"].sum()))
        bins.insert(0, "protocol", protocol)
        parts.append(bins.assign(beliefs=bins["count"] / bins["count"].sum())[bins["count"] > 0])
    return pd.concat(parts, ignore_index=True).drop(columns="count")


def calibration(frame: pd.DataFrame, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Measure calibration (ECE) and ranking (AUC) of reported confidence from `sure_right sure_wrong`.

    Returns:
        One row a measure and protocol: `measure protocol rate rate_low rate_high`.
    """
    rows = []
    for protocol, part in frame.groupby("protocol", sort=False):
        units = part.groupby(UNIT, sort=False)[["sure_right", "sure_wrong"]].agg(lambda counts: counts.sum())
        right, wrong = (np.stack(units[name].to_numpy()).astype(float) for name in units)
        places = pd.factorize(units.index.get_level_values("world"))[0]
        draws = bootstrap_means(np.concatenate([right, wrong], axis=1), places, resamples=resamples)
        for name, measure in (("ECE", expected_calibration_error), ("AUC", area_under_curve)):
            value = float(measure(right.sum(axis=0), wrong.sum(axis=0)))
            found = measure(draws[:, :LEVELS], draws[:, LEVELS:])
            found = found[np.isfinite(found)]
            low, high = percentile_interval(found) if np.isfinite(value) else (np.nan, np.nan)
            row = {"measure": name, "protocol": protocol, "rate": value}
            rows.append(row | {"rate_low": float(low), "rate_high": float(high)})
    return pd.DataFrame(rows)
