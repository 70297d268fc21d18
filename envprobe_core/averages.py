"""Means of one measure, group by group: `compare.summarize` with the measure left out of the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from envprobe_core.statistics import RESAMPLES

if TYPE_CHECKING:
    import pandas as pd


def mean_by(
    frame: pd.DataFrame, column: str, by: Sequence[str], *, resamples: int = RESAMPLES
) -> pd.DataFrame:
    """Average a column in every group: one row a group, `by`, `mean low high n`."""
    from envprobe_core.comparing import summarize

    return summarize(frame, column, by, resamples=resamples).drop(columns="measure")
