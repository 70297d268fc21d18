"""Two tables of the solved exercises, and the paired difference that they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from envprobe_core.lab.contest import POINTS
from envprobe_core.markup import Table, bracket, number, signed
from envprobe_core.prose import lean
from envprobe_core.statistics import RESAMPLES, Estimate, paired_bootstrap


def show_means(frame: pd.DataFrame, by: Sequence[str], columns: Sequence[str], label: str) -> Table:
    """Average columns of a frame of episodes over groups.

    Args:
        frame: one row an episode.
        by: the columns that make a group.
        columns: what to average.
        label: the table's label.
    """
    rows = [
        [*(f"`{part}`" for part in key), *(number(row[name], 3) for name in columns), str(int(row["n"]))]
        for key, row in frame.groupby(list(by), sort=False)[list(columns)]
        .mean()
        .assign(n=frame.groupby(list(by), sort=False).size())
        .iterrows()
    ]
    caption = "Means over episodes."
    return Table(label, caption, [*by, *columns, "episodes"], rows, "l" * len(by) + "r" * (len(columns) + 1))


def difference(
    arm: pd.DataFrame, reference: pd.DataFrame, measure: str = "accuracy", resamples: int = RESAMPLES
) -> Estimate:
    """Bootstrap the paired difference of two sets of episodes, in points, joined by world and seed.

    Args:
        arm: one row an episode.
        reference: the same episodes under what is subtracted.
        measure: a column of shares.
        resamples: bootstrap resamples, within each world.
    """
    pairs = arm.merge(reference, on=["world", "seed"], suffixes=("_arm", "_reference"), validate="one_to_one")
    points = POINTS * (
        pairs[f"{measure}_arm"].to_numpy(dtype=float) - pairs[f"{measure}_reference"].to_numpy(dtype=float)
    )
    return paired_bootstrap(points, pairs["world"].to_numpy(dtype=str), resamples)


def show_differences(found: Mapping[str, Estimate], what: str, label: str) -> Table:
    """Show paired differences in points, one row each, with a word for the side on which they lie."""
    words = {1: "above zero", -1: "below zero", 0: "holds zero"}
    rows = [
        [name, signed(e.mean), bracket(e.low, e.high), words[lean(e.low, e.high) or 0], str(e.n)]
        for name, e in found.items()
    ]
    caption = f"{what}, in points, with its 95% interval over paired episodes."
    return Table(
        label, caption, ("setting", "difference", "95% interval", "interval", "pairs"), rows, "lrrlr"
    )
