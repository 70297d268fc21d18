"""Paired differences and means with their intervals: the comparisons of the book."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from envprobe_core.averages import mean_by
from envprobe_core.figures import STRATA
from envprobe_core.intervals import mean_intervals, wilson
from envprobe_core.stats import RESAMPLES, paired_bootstrap

SHARES = ("accuracy", "accuracy_terminal", "accuracy_slot", "success")


def compare(
    frame: pd.DataFrame,
    arm: str,
    reference: str,
    measure: str = "accuracy",
    *,
    by: Sequence[str] = ("protocol",),
    strata: Mapping[str, Sequence[str]] = STRATA,
    family: int = 1,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Average paired differences, arm minus reference, with bootstrap intervals.

    Args:
        frame: a row an episode.
        arm: a policy.
        reference: the policy that is subtracted, on the same worlds and seeds.
        measure: a column; a share is compared in points.
        by: columns whose values are compared apart.
        strata: worlds that are pooled, resampled within each, by name.
        family: comparisons that the adjusted interval and p allow for.
        resamples: bootstrap resamples.

    Returns:
        A row a group and stratum: `by stratum arm reference gain gain_low gain_high gain_low_adjusted
        gain_high_adjusted p p_adjusted n same`; `same` counts pairs without a difference.
    """
    rows = []
    for key, episodes in frame.groupby(list(by), sort=False):
        wide = episodes.pivot(index=["world", "seed"], columns="policy", values=measure).astype(float)
        gaps = (100.0 if measure in SHARES else 1.0) * (wide[arm] - wide[reference])
        for stratum, worlds in strata.items():
            own = gaps.loc[[world for world in worlds if world in gaps.index.levels[0]]].dropna()
            place = own.index.get_level_values("world").map(list(worlds).index).to_numpy()
            found = paired_bootstrap(own.to_numpy(), place, resamples, family=family)
            rows.append(
                dict(zip(by, key, strict=True))
                | {"stratum": stratum, "arm": arm, "reference": reference, "gain": found.mean}
                | {"gain_low": found.low, "gain_high": found.high}
                | {"gain_low_adjusted": found.low_adjusted, "gain_high_adjusted": found.high_adjusted}
                | {"p": found.p, "p_adjusted": found.p_adjusted}
                | {"n": found.n, "same": int(np.count_nonzero(own == 0))}
            )
    return pd.DataFrame(rows)


def summarize(
    frame: pd.DataFrame,
    measures: str | Sequence[str],
    by: Sequence[str],
    *,
    strata: Mapping[str, Sequence[str]] | None = None,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Average measures over the episodes of each group, with 95% intervals.

    Where strata are given, worlds are resampled apart, and success has Wilson's interval.

    Args:
        frame: a row an episode.
        measures: columns; episodes without a value are left out.
        by: columns that name the groups.
        strata: worlds that are pooled, by name; by default all worlds of a group.
        resamples: bootstrap resamples.

    Returns:
        A row a measure and group: `measure`, `by`, `stratum` (where strata are given), `mean low high n`.
    """
    parts = []
    for measure in measures.split() if isinstance(measures, str) else measures:
        if strata is None:
            part = mean_by(frame, measure, by, resamples=resamples)
        else:
            part = pd.DataFrame(
                dict(zip(by, key, strict=True)) | {"stratum": stratum} | _mean(own, measure, resamples)
                for key, rows in frame.groupby(list(by), sort=False)
                for stratum, worlds in strata.items()
                if len(own := rows[rows["world"].isin(worlds)])
            )
        part.insert(0, "measure", measure)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def _mean(rows: pd.DataFrame, measure: str, resamples: int) -> dict[str, float]:
    known = rows[rows[measure].notna()].sort_values(["world", "seed"])
    values, worlds = known[measure].to_numpy(dtype=np.float64), known["world"]
    if measure == "success" and len(values):
        return dict(zip(("mean", "low", "high", "n"), wilson(int(values.sum()), len(values)), strict=True))
    if len(values) < 2 or worlds.value_counts().min() < 2:
        ends = (values.mean() if len(values) else np.nan, np.nan, np.nan)
    else:
        labels = worlds.to_numpy(dtype=str)
        ends = (float(end[0]) for end in mean_intervals(values[:, None], labels, resamples=resamples))
    return dict(zip(("mean", "low", "high"), ends, strict=True)) | {"n": len(values)}
