"""The paper's failure patterns in episodes: how many show one, where it thins out, which one to play."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from envprobe_core.statistics import wilson


def shares_with_pattern(stories: pd.DataFrame, policies: Sequence[str]) -> pd.DataFrame:
    """Episodes with a pattern by protocol, world and policy, as counts and in percent with Wilson's interval.

    Args:
        stories: a row an episode; `hit` says whether it has its world's pattern.
        policies: in the order of rows.
    """
    hits = stories.groupby(["protocol", "world", "policy"], sort=False)["hit"].agg(["sum", "size"])
    hits = hits.reset_index()
    ends = [wilson(int(row["sum"]), int(row["size"])) for _, row in hits.iterrows()]
    hits[["share", "share_low", "share_high"]] = [(100 * e.value, 100 * e.low, 100 * e.high) for e in ends]
    hits["place"] = hits["policy"].map(policies.index)
    return hits.sort_values("place", kind="stable")


def stage_counts(episodes: pd.DataFrame, stages: Sequence[str]) -> pd.DataFrame:
    """Probes that meet the conditions of a pattern one after another: `protocol`, `condition` and `count`.

    Args:
        episodes: a row an episode, with `probes` and `stage1`, `stage2`, ...
        stages: the conditions in words, each of a probe that meets all before it.
    """
    heads = ["all probes", stages[0], *(f"… and {stage}" for stage in stages[1:])]
    columns = ["probes", *(f"stage{k}" for k in range(1, 1 + len(stages)))]
    counts = (
        episodes.groupby("protocol", sort=False)[columns]
        .sum()
        .rename(columns=dict(zip(columns, heads, strict=True)))
    )
    return counts.stack().astype(int).rename("count").rename_axis(["protocol", "condition"]).reset_index()


def first_with_pattern(
    stories: pd.DataFrame, protocols: Sequence[str], policies: Sequence[str], worlds: Sequence[str]
) -> pd.Series | None:
    """The episode to show of those with a pattern: of the first protocol, then policy, world and seed.

    Returns:
        Its row; None where no episode has the pattern in these worlds.

    >>> one = {"hit": True, "protocol": "paper", "policy": "simple", "world": "tooldag"}
    >>> stories = pd.DataFrame([one | {"seed": 4}, one | {"seed": 3}, one | {"hit": False, "seed": 0}])
    >>> int(first_with_pattern(stories, ["paper"], ["simple"], ["tooldag"])["seed"])
    3
    """
    own = stories[stories["hit"] & stories["world"].isin(worlds)]
    if own.empty:
        return None
    ranks = [
        own[c].map(list(o).index)
        for c, o in (("protocol", protocols), ("policy", policies), ("world", worlds))
    ]
    return own.iloc[np.lexsort([own["seed"], *ranks[::-1]])[0]]
