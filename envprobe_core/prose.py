"""Which claims hold, in words, and on which side of zero an interval lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.claims.judge import HOLDS, NOT_TESTED, OTHER_SIZE, REVERSES
from envprobe_core.markup import Text, counted, listed
from envprobe_core.tables import without_levels

if TYPE_CHECKING:
    import pandas as pd


def lean(low: float, high: float) -> int | None:
    """Say on which side of zero an interval lies: 1, -1, 0 (it holds zero), None (there is none)."""
    if np.isnan(low) or np.isnan(high):
        return None
    return 1 if low > 0 else -1 if high < 0 else 0


def tell_ledger(verdicts: pd.DataFrame) -> Text:
    """Say how many claims hold under each protocol, and which go wrong whatever the protocol.

    Args:
        verdicts: from `verdicts.evaluate_all`; claims about a level are left out.
    """
    everything, verdicts = verdicts, without_levels(verdicts)
    held = verdicts["verdict"].isin([HOLDS, OTHER_SIZE])
    counts = [
        f"{counted(int(held[rows.index].sum()))} of {counted(len(rows))} under `{protocol}`"
        for protocol, rows in verdicts.groupby("protocol", sort=False)
    ]
    reverses, holds = (
        found.groupby(verdicts["claim"], sort=False).all()
        for found in (verdicts["verdict"] == REVERSES, held)
    )
    statements = verdicts.drop_duplicates("claim").set_index("claim")["statement"]
    aside = "Levels aside, claims" if len(verdicts) < len(everything) else "Claims"
    text = f"{aside} that hold: {listed(counts)}."
    everywhere = "under every protocol shown"
    if holds.any() and verdicts["protocol"].nunique() > 1:
        verb = "holds" if holds.sum() == 1 else "hold"
        text += f" {counted(int(holds.sum())).capitalize()} {verb} {everywhere}."
    if reverses.any():
        text += f" What reverses {everywhere}:\n\n"
        text += "\n".join(f"* “{statements[claim]}”" for claim in reverses.index[reverses])
    else:
        text += f" None reverses {everywhere}."
    untested = verdicts[verdicts["verdict"] == NOT_TESTED]
    if len(untested):
        text += f"\n\nNot tested, for want of episodes or of a column: {counted(len(untested))}."
    return Text(text)
