"""An episode in words: one row a step of what `play` recorded."""

from __future__ import annotations

from typing import Any

import pandas as pd

from envprobe_core.policies import TERMS
from envprobe_core.protocols import parse_protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.show.timeline import word
from envprobe_core.worlds import make_world
from envprobe_core.worlds.base import World

WAITS = "waits"


def describe_steps(
    episode: pd.DataFrame, world: str, regime: str = "S2", protocol: str = "paper", *, fold: bool = True
) -> pd.DataFrame:
    """Say what happened at each step of an episode.

    Args:
        episode: from `play`.
        world: whose episode it is.
        regime: of the episode.
        protocol: of the episode.
        fold: whether steps in a row on which the agent only waits become one row.

    Returns:
        One row a step: `step` (or first and last of those folded), `right` (share of beliefs), `best` and
        `rho` (the highest score and its field), `deed`, and `moved`: the fields whose truth is another one
        step later (of folded steps, how many `changes`).
    """
    rules = parse_protocol(protocol)
    built = make_world(world, REGIMES[regime], rules)
    untold = "; the answer never reaches the agent" if rules.answer == "withheld" else ""
    steps = [rows.reset_index(drop=True) for _, rows in episode.groupby("t", sort=True)]
    told = []
    for place, rows in enumerate(steps):
        truth = [word(built, i, value) for i, value in enumerate(rows["gold"])]
        best = rows[list(TERMS)].sum(axis=1).idxmax()
        moved = []
        if place + 1 < len(steps):
            later = [word(built, i, value) for i, value in enumerate(steps[place + 1]["gold"])]
            changes = zip(rows["field"], truth, later, strict=True)
            moved = [f"{name}: {old} → {new}" for name, old, new in changes if old != new]
        told.append(
            {
                "first": int(rows["t"][0]),
                "last": int(rows["t"][0]),
                "right": float((rows["belief"] == rows["gold"]).mean()),
                "best": rows["field"][best],
                "rho": float(rows.loc[best, list(TERMS)].sum()),
                "deed": _deed(rows, built, truth) + (untold if rows["probe"].any() else ""),
                "changes": len(moved),
                "moved": "; ".join(moved),
            }
        )
    folded: list[dict[str, Any]] = []
    for row in told:
        if fold and folded and row["deed"] == folded[-1]["deed"] == WAITS:
            folded[-1] |= {"last": row["last"], "changes": folded[-1]["changes"] + row["changes"]}
            folded[-1]["moved"] = f"{folded[-1]['changes']} changes"
        else:
            folded.append(row)
    frame = pd.DataFrame(folded)
    several = frame["first"] != frame["last"]
    span = frame["first"].astype(str) + ("–" + frame["last"].astype(str)).where(several, "")
    frame.insert(0, "step", span)
    return frame


def _deed(rows: pd.DataFrame, built: World, truth: list[str]) -> str:
    """Say what was done at a step: a probe and what it found, an action and whether it worked, or nothing."""
    if rows["probe"].any():
        at = int(rows["probe"].idxmax())
        held = word(built, at, rows["belief"][at])
        found = "confirms it" if held == truth[at] else f"it is {truth[at]}"
        return f"asks for *{rows['field'][at]}*, believed {held}: {found}"
    if not rows["acted"][0]:
        return WAITS
    return f"{rows['action'][0]}: {'works' if rows['valid'][0] else 'fails'}"
