"""Paired differences and means with their intervals: the comparisons of the book."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from envprobe_core.averages import mean_by
from envprobe_core.figures import STRATA
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
    frame: pd.DataFrame, measures: str | Sequence[str], by: Sequence[str], *, resamples: int = RESAMPLES
) -> pd.DataFrame:
    """Average measures over the episodes of each group, with bootstrap intervals.

    Args:
        frame: a row an episode.
        measures: columns; episodes without a value are left out.
        by: columns that name the groups.
        resamples: bootstrap resamples.

    Returns:
        A row a measure and group: `measure`, `by`, `mean low high n`.
    """
    parts = []
    for measure in measures.split() if isinstance(measures, str) else measures:
        part = mean_by(frame, measure, by, resamples=resamples)
        part.insert(0, "measure", measure)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)
