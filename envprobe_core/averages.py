"""Means with intervals over episodes: of a column group by group, of a track time by time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.intervals import mean_intervals, percentile_interval
from envprobe_core.stats import RESAMPLES, bootstrap_means

if TYPE_CHECKING:
    import pandas as pd

MIN_RUNNING = 10  # fewer running episodes carry no mean worth drawing


def mean_by(
    frame: pd.DataFrame, column: str, by: Sequence[str], *, resamples: int = RESAMPLES
) -> pd.DataFrame:
    """Average a column in every group, with percentile intervals over the group's episodes.

    Args:
        frame: one row an episode.
        column: what to average; episodes without a value (NaN) are left out.
        by: columns that name the groups.
        resamples: bootstrap resamples.

    Returns:
        One row a group, in order of first appearance: `by`, `mean low high n`. A single episode has no
        interval (NaN); episodes are taken in order of seed, so that the order of rows moves nothing.
    """
    import pandas as pd

    known = frame[frame[column].notna()].sort_values("seed", kind="stable")
    order = frame[list(by)].drop_duplicates()
    groups = {
        key: rows[column].to_numpy(dtype=np.float64) for key, rows in known.groupby(list(by), sort=False)
    }
    found = {}
    for size in sorted({len(values) for values in groups.values()}):
        same = [key for key, values in groups.items() if len(values) == size]
        ends = mean_intervals(np.stack([groups[key] for key in same], axis=1), resamples=resamples)
        found |= {key: (*(float(end[place]) for end in ends), size) for place, key in enumerate(same)}
    rows = []
    for key in order.itertuples(index=False, name=None):
        mean, low, high, size = found.get(key, (np.nan, np.nan, np.nan, 0))
        rows.append(dict(zip(by, key, strict=True)) | {"mean": mean, "low": low, "high": high, "n": size})
    return pd.DataFrame(rows, columns=[*by, "mean", "low", "high", "n"])


def mean_track(track: np.ndarray, resamples: int = RESAMPLES) -> dict[str, np.ndarray]:
    """Average a track [episode, time] over its running episodes, with percentile intervals over episodes.

    Args:
        track: NaN after an episode's end.
        resamples: bootstrap resamples.

    Returns:
        `t accuracy low high running n`, each [time]; NaN where fewer than `MIN_RUNNING` episodes run (all of
        them, if there are fewer), and at the ends of a single episode's interval.
    """
    episodes, times = track.shape
    running = ~np.isnan(track)
    count = running.sum(axis=0)
    shown = count >= min(MIN_RUNNING, episodes)
    mean, low, high = (np.full(times, np.nan) for _ in range(3))
    top, bottom = np.where(running, track, 0.0)[:, shown], running[:, shown].astype(np.float64)
    mean[shown] = top.sum(axis=0) / bottom.sum(axis=0)
    if episodes > 1:
        draws = bootstrap_means(np.concatenate([top, bottom], axis=1), resamples=resamples)
        tops, bottoms = np.split(draws, 2, axis=1)
        tops = tops[bottoms.min(axis=1) > 0] / bottoms[bottoms.min(axis=1) > 0]
        low[shown], high[shown] = percentile_interval(tops)
    return {
        "t": np.arange(times),
        "accuracy": mean,
        "low": low,
        "high": high,
        "running": count,
        "n": np.full(times, episodes),
    }
