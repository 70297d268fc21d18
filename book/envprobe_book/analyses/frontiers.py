"""The frontier of success and accuracy: which policies no other beats at both, and how firmly."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from envprobe_book.analyses import beaten_by, nondominated
from envprobe_core.comparing import summarize
from envprobe_core.statistics import RESAMPLES, bootstrap_means
from envprobe_core.worlds.base import Floats

OBJECTIVES = ["success", "accuracy"]
AT_ONCE = 2_000  # resamples


def find_frontiers(
    frame: pd.DataFrame,
    strata: Mapping[str, Sequence[str]],
    competing: Sequence[str],
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """The place of every policy in the plane of success and accuracy, a row a protocol, stratum and policy.

    Args:
        frame: a row an episode.
        strata: the worlds of each.
        competing: the policies that can be beaten and can beat; others are only placed.

    Returns:
        `protocol stratum policy`, success and accuracy with their intervals as `summarize` gives them,
        `competing`, `nondominated`, `stability` (see `stability_of`; NaN where not competing), and
        `beaten_by`, the names of the policies that beat it.
    """
    named = {name: name for name in OBJECTIVES}
    points = summarize(frame, named, ["protocol", "policy"], strata=strata, resamples=resamples)
    points["competing"] = points["policy"].isin(competing)
    points["nondominated"], points["stability"], points["beaten_by"] = False, np.nan, ""
    for (name, stratum), own in points[points["competing"]].groupby(["protocol", "stratum"], sort=False):
        episodes = frame[(frame["protocol"] == name) & frame["world"].isin(strata[stratum])]
        better = beaten_by(own[OBJECTIVES], own[OBJECTIVES])
        points.loc[own.index, "nondominated"] = ~better.any(axis=1)
        points.loc[own.index, "stability"] = stability_of(episodes, list(own["policy"]), resamples)
        points.loc[own.index, "beaten_by"] = [" ".join(own["policy"][others]) for others in better]
    return points


def stability_of(episodes: pd.DataFrame, policies: Sequence[str], resamples: int = RESAMPLES) -> Floats:
    """The share of resamples of the episodes in which each policy is nondominated, [policy].

    Args:
        episodes: of one protocol; the seeds of each world are resampled, all policies together.
    """
    wide = episodes.pivot(index=["world", "seed"], columns="policy", values=OBJECTIVES)
    columns = [(measure, policy) for policy in policies for measure in OBJECTIVES]
    worlds = wide.index.get_level_values("world").to_numpy(dtype=str)
    draws = bootstrap_means(wide[columns].to_numpy(dtype=float), worlds, resamples=resamples)
    parts = np.array_split(draws.reshape(resamples, len(policies), 2), max(1, resamples // AT_ONCE))
    return np.concatenate([nondominated(part) for part in parts]).mean(axis=0)
