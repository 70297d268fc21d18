"""Which claims hold, in words, and on which side of zero an interval lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.claims.judge import HOLDS, NOT_TESTED, OTHER_SIZE, REVERSES
from envprobe_core.markup import Text, code, counted, listed
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
        verdicts: from `claims.judge.judge`; claims about a level are left out.
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


def tell_starts(verdicts: pd.DataFrame) -> Text:
    """Set two statements of the paper about the start side by side: can one experiment have both?

    Args:
        verdicts: from `claims.judge.judge`, of the claims about the environments.
    """
    held = verdicts[verdicts["verdict"].isin([HOLDS, OTHER_SIZE])]
    correct, low = (
        [
            name
            for name in dict.fromkeys(verdicts["protocol"])
            if ((held["claim"] == claim) & (held["protocol"] == name)).any()
        ]
        for claim in ("start-correct", "spatial-starts-collapsed")
    )
    both = [name for name in correct if name in low]
    text = (
        "Two of these statements are about the start. The paper's algorithm begins with a table equal to "
        "the truth; its results say that spatial episodes begin below .6. "
    )
    parts = [
        f"the {word} holds under {code(protocols)}"
        if protocols
        else f"the {word} holds under no protocol shown"
        for word, protocols in (("first", correct), ("second", low))
    ]
    text += f"Here {listed(parts)}"
    text += f", and both under {code(both)}." if both else ", and both together under none."
    return Text(text)
