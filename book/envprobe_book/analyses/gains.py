"""Gains of several pairs of policies side by side, as `show` writes them."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from envprobe_core.comparing import STRATA, compare
from envprobe_core.statistics import RESAMPLES

PARTS = ["gain", "gain_low", "gain_high"]


def gains(
    frame: pd.DataFrame,
    pairs: Mapping[str, tuple[str, ...]],
    measure: str = "accuracy",
    *,
    strata: Mapping[str, tuple[str, ...]] = STRATA,
    resamples: int = RESAMPLES,
    **more: Any,
) -> pd.DataFrame:
    """Compare pairs of policies.

    Args:
        pairs: by what the table calls each: arm and reference, and perhaps a measure of their own.

    Returns:
        Rows by protocol and stratum; columns (pair, `gain gain_low gain_high`).

    >>> from envprobe_core import run
    >>> frame = run("tooldag", "simple periodic", protocols="paper", seeds="0:40")
    >>> found = gains(frame, {"S − P": ("simple", "periodic")}, strata={"tools": ("tooldag",)})
    >>> found["S − P", "gain"].round(2).tolist()
    [-0.46]
    """
    found = {
        name: compare(frame, *own[:2], *(own[2:] or (measure,)), strata=strata, resamples=resamples, **more)
        for name, own in pairs.items()
    }
    side = {name: own.set_index(["protocol", "stratum"])[PARTS] for name, own in found.items()}
    return pd.concat(side, axis=1, names=["pair"])
