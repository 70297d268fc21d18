"""Accuracy against success: which policies does no other beat in both?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from envprobe_core.comparing import summarize
from envprobe_core.statistics import RESAMPLES, bootstrap_means

DEPLOYABLE = ("no-probe", "random", "periodic", "self-uncertainty", "simple", "judge")
ABLATIONS = ("minus-c", "minus-d", "minus-s", "minus-u", "cd")
COMPETING = (*DEPLOYABLE, *ABLATIONS)
STRATA = {"procedural": ("tooldag",), "spatial": ("objectstate", "graphnav")}
OBJECTIVES = ("success", "accuracy")
DRAWS_AT_ONCE = 2_000


def beaten_by(points: npt.ArrayLike, others: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Say which others match or exceed a point in all coordinates and exceed it in one, [..., point, other].

    Args:
        points: [..., point, coordinate], more is better.
        others: [..., other, coordinate].
    """
    mine, other = np.asarray(points)[..., :, None, :], np.asarray(others)[..., None, :, :]
    return (other >= mine).all(axis=-1) & (other > mine).any(axis=-1)


def nondominated(points: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Say which points no other point dominates, [..., point]; of equal points none dominates the other."""
    return ~beaten_by(points, points).any(axis=-1)


def find_frontiers(
    frame: pd.DataFrame,
    competing: Sequence[str] = COMPETING,
    strata: Mapping[str, tuple[str, ...]] = STRATA,
    *,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Place every policy in the plane of success and accuracy, and find each frontier.

    Args:
        frame: a row an episode.
        competing: policies that a frontier is made of; the others are shown and take no part.
        strata: worlds that are pooled, by name.

    Returns:
        A row a protocol, stratum and policy, in the order of the frame: `protocol stratum policy`, `success`
        and `accuracy` with `_low _high`, `competing nondominated`, `beaten_by` (names of those that dominate
        it) and `stability`, the share of resamples of the episodes in which it is nondominated (NaN for those
        that take no part).
    """
    by = ["protocol", "stratum", "policy"]
    levels = summarize(frame, OBJECTIVES, ["protocol", "policy"], strata=strata, resamples=resamples)
    parts = [
        levels[levels["measure"] == name].set_index(by)[["mean", "low", "high"]]
        .set_axis([name, f"{name}_low", f"{name}_high"], axis=1)
        for name in OBJECTIVES
    ]  # fmt: skip
    points = pd.concat(parts, axis=1).reset_index()
    points["competing"] = points["policy"].isin(competing)
    points["nondominated"], points["stability"], points["beaten_by"] = False, np.nan, ""
    for (protocol, stratum), own in points[points["competing"]].groupby(by[:2], sort=False):
        values = own[list(OBJECTIVES)].to_numpy()
        episodes = frame[(frame["protocol"] == protocol) & frame["world"].isin(strata[stratum])]
        better = beaten_by(values, values)
        points.loc[own.index, "nondominated"] = ~better.any(axis=1)
        points.loc[own.index, "stability"] = _stability(episodes, list(own["policy"]), resamples)
        points.loc[own.index, "beaten_by"] = [" ".join(own["policy"][others]) for others in better]
    return points


def _stability(episodes: pd.DataFrame, policies: list[str], resamples: int) -> npt.NDArray[np.float64]:
    """Return the share of resamples in which each policy is nondominated, [policy]."""
    wide = episodes.pivot(index=["world", "seed"], columns="policy", values=list(OBJECTIVES))
    columns = [(measure, policy) for policy in policies for measure in OBJECTIVES]
    values = wide[columns].to_numpy(dtype=np.float64)
    worlds = wide.index.get_level_values("world").to_numpy(dtype=str)
    draws = bootstrap_means(values, worlds, resamples=resamples).reshape(resamples, len(policies), 2)
    parts = [nondominated(draws[at : at + DRAWS_AT_ONCE]) for at in range(0, resamples, DRAWS_AT_ONCE)]
    return np.concatenate(parts).mean(axis=0)
