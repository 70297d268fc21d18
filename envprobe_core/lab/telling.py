"""What the lab says of a contest: every number and word of direction is taken from its leaderboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.lab.boards import tell_looks, title_of
from envprobe_core.lab.contest import DESIGN, HELD_OUT, Contest
from envprobe_core.lab.guard import READABLE
from envprobe_core.markup import Table, Text, counted, percent, signed, span
from envprobe_core.prose import lean

if TYPE_CHECKING:
    import pandas as pd

_SIDES = {1: "above Simple", -1: "below Simple", 0: "not told apart from Simple", None: "without an interval"}


def show_view() -> Table:
    """Show what a score function may read."""
    rows = [[f"`view.{name}`", meaning.replace("[", "\\[")] for name, meaning in READABLE.items()]
    caption = (
        "What a score function may read: what one agent and its policy know at one step. Arrays cannot be "
        "written to; all else is one number."
    )
    return Table("tab-view", caption, ("name", "what it is"), rows, "ll")


def tell_contest(board: pd.DataFrame, contest: Contest) -> Text:
    """Say of each policy of the reader where it stands on the design seeds, and what is left held out."""
    lines = []
    for row in board[board["own"] & (board["set"] == DESIGN)].itertuples():
        same = board[(board["protocol"] == row.protocol) & (board["set"] == DESIGN) & board["deployable"]]
        low, high = row.minus_simple_low, row.minus_simple_high
        line = (
            f"* **{row.policy}**, `{row.protocol}`: rank {row.rank} of {len(same)}, "
            f"{signed(row.minus_simple)} points ({span(low, high)}) against Simple on the design seeds, "
            f"{_SIDES[lean(low, high)]}"
        )
        held = board[
            (board["protocol"] == row.protocol) & (board["set"] == HELD_OUT) & (board["policy"] == row.policy)
        ]
        for other in held.itertuples():
            line += (
                f"; held out {signed(other.minus_simple)} "
                f"({span(other.minus_simple_low, other.minus_simple_high)}), "
                f"{_SIDES[lean(other.minus_simple_low, other.minus_simple_high)]}, a change of "
                f"{signed(other.minus_simple - row.minus_simple)}"
            )
        lines.append(line + ".")
    looks = tell_looks(contest.looks)
    return Text("\n".join([*lines, *(["", looks] if looks else [])]) or "No policy of a reader took part.")


def tell_plane(board: pd.DataFrame) -> Text:
    """Say who leads in accuracy and who in success among deployable policies, on each set of seeds."""
    lines = []
    for (protocol, kind), part in board[board["deployable"]].groupby(["protocol", "set"], sort=False):
        sharp = part.loc[part["accuracy"].idxmax()]
        able = part.loc[part["success"].idxmax()]
        both = sharp["policy"] == able["policy"]
        line = (
            f"* `{protocol}`, {kind}: {title_of(sharp['policy'])} knows most "
            f"({percent(sharp['accuracy'], 1)} of the fields)"
        )
        line += (
            f" and also completes most ({percent(able['success'], 1)})."
            if both
            else f" and completes {percent(sharp['success'], 1)}; {title_of(able['policy'])} completes most, "
            f"{percent(able['success'], 1)}, and knows {percent(able['accuracy'], 1)}."
        )
        lines.append(line)
    return Text("\n".join(lines))


def tell_sets(contest: Contest) -> Text:
    """Say which seeds were design and which held out, and how many policies took part."""
    frame = contest.frame
    parts = []
    for name, part in frame.groupby("set", sort=False):
        seeds = np.unique(part["seed"])
        parts.append(f"{len(seeds)} {name} seeds ({seeds[0]} to {seeds[-1]})")
    count = frame["policy"].nunique()
    return Text(
        f"{count} policies, {counted(len(contest.own))} of them made here, ran on {' and '.join(parts)} in "
        f"{counted(frame['world'].nunique())} worlds: {len(frame):,} episodes. Differences are in "
        "points, hundredths of accuracy."
    )
