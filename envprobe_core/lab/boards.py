"""The leaderboard: every policy's levels and its paired differences, design and held-out side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.errors import InputError
from envprobe_core.intervals import mean_intervals, wilson
from envprobe_core.lab.contest import DESIGN, HELD_OUT, REFERENCES, Contest
from envprobe_core.markup import EMPTY, Table, bracket, number, percent, signed
from envprobe_core.metrics import useful_probe_rate
from envprobe_core.policies import POLICIES
from envprobe_core.stats import RESAMPLES

if TYPE_CHECKING:
    import pandas as pd

POINTS = 100  # differences are in percentage points


def title_of(policy: str) -> str:
    """Return how tables call a policy, a reader's own included."""
    return POLICIES[policy].title if policy in POLICIES else policy


def leaderboard(contest: Contest, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Summarise a contest.

    Args:
        contest: from `compete`.
        resamples: bootstrap resamples of the episodes, within each world.

    Returns:
        One row a protocol, set and policy, by accuracy: `protocol set policy own deployable rank n accuracy
        accuracy_low accuracy_high success success_low success_high useful_rate probes`, and for each of
        `REFERENCES` the mean paired difference in accuracy in points, `minus_simple`, `minus_no_probe`, with
        `_low` and `_high`. Oracles see gold and have rank 0; the useful rate is NaN without any probe.

    Raises:
        InputError: if there are fewer than two seeds.
    """
    import pandas as pd

    parts = [
        _standings(protocol, name, part, contest.own, resamples)
        for protocol in dict.fromkeys(contest.frame["protocol"])
        for name in dict.fromkeys(contest.frame["set"])
        if len(
            part := contest.frame[(contest.frame["protocol"] == protocol) & (contest.frame["set"] == name)]
        )
    ]
    return pd.concat(parts, ignore_index=True)


def _standings(
    protocol: str, name: str, part: pd.DataFrame, own: Sequence[str], resamples: int
) -> pd.DataFrame:
    import pandas as pd

    wide = part.pivot(index=["world", "seed"], columns="policy", values="accuracy")
    worlds = wide.index.get_level_values("world").to_numpy(dtype=str)
    if len(wide) < 2 * len(set(worlds)):
        raise InputError(f"{len(wide)} {name} episodes a policy; an interval needs two seeds or more")
    policies = list(dict.fromkeys(part["policy"]))
    levels = wide[policies].to_numpy()
    columns = [levels, *(POINTS * (levels - wide[[other]].to_numpy()) for other in REFERENCES)]
    ends = mean_intervals(np.concatenate(columns, axis=1), worlds, resamples=resamples)
    mean, low, high = (end.reshape(1 + len(REFERENCES), len(policies)) for end in ends)
    rows = []
    for place, policy in enumerate(policies):
        episodes = part[part["policy"] == policy]
        reached = wilson(int(episodes["success"].sum()), len(episodes))
        rate = useful_probe_rate(episodes["useful"].to_numpy(), episodes["probes"].to_numpy())
        row = {
            "protocol": protocol,
            "set": name,
            "policy": policy,
            "own": policy in own,
            "deployable": policy in own or not POLICIES[policy].sees_gold,
            "n": len(episodes),
            "success": reached.value,
            "success_low": reached.low,
            "success_high": reached.high,
            "useful_rate": float(np.nanmean(rate)) if np.isfinite(rate).any() else np.nan,
            "probes": float(episodes["probes"].mean()),
        }
        for kind, column in enumerate(
            ("accuracy", *(f"minus_{other.replace('-', '_')}" for other in REFERENCES))
        ):
            row |= {
                column: mean[kind, place],
                f"{column}_low": low[kind, place],
                f"{column}_high": high[kind, place],
            }
        rows.append(row)
    board = pd.DataFrame(rows).sort_values("accuracy", ascending=False, kind="stable")
    board.insert(5, "rank", np.where(board["deployable"], board["deployable"].cumsum(), 0))
    return board


def show_leaderboard(board: pd.DataFrame, label: str = "tab-leaderboard") -> Table:
    """Show accuracy, success, useful rate and probes of every policy, the reader's own in bold."""
    several = board["protocol"].nunique() > 1
    head = [*(["protocol"] if several else []), "rank", "policy"]
    for column in ("accuracy", "success", "useful"):
        head += [column, "held-out"] if _has_held_out(board) else [column]
    head.append("probes")
    rows = []
    for row, other in _pairs(board):
        cells = [f"`{row.protocol}`"] if several else []
        cells += [str(row.rank or EMPTY), _named(row)]
        for column, form in (
            ("accuracy", lambda value: number(value, 3)),
            ("success", lambda value: number(value, 3)),
            ("useful_rate", percent),
        ):
            cells += [form(getattr(side, column)) for side in (row, other) if side is not None]
        rows.append([*cells, number(row.probes, 1)])
    caption = (
        f"All policies by accuracy on the design seeds{_where(board)}, {_sizes(board)}. *Useful*: mean share "
        "of useful probes over the episodes that fired. A reader's own policies in bold; oracles see gold "
        "and have no rank."
    )
    return Table(label, caption, head, rows, "l" * several + "rl" + "r" * (len(head) - 2 - several))


def show_differences(board: pd.DataFrame, looks: int = 0, label: str = "tab-differences") -> Table:
    """Show the paired differences of every policy to EnvProbe-Simple and to No-Probe, in points.

    Args:
        board: from `leaderboard`.
        looks: how often the held-out seeds have been run (`Contest.looks`).
        label: the table's label.
    """
    several = board["protocol"].nunique() > 1
    head = [*(["protocol"] if several else []), "policy"]
    for other in REFERENCES:
        head += [f"against {title_of(other)}", *(["held-out"] if _has_held_out(board) else [])]
    rows = []
    for row, other in _pairs(board):
        cells = [*([f"`{row.protocol}`"] if several else []), _named(row)]
        for column in ("minus_simple", "minus_no_probe"):
            for side in (row, other):
                if side is not None:
                    ends = getattr(side, f"{column}_low"), getattr(side, f"{column}_high")
                    cells.append(f"{signed(getattr(side, column))} {bracket(*ends, 1)}")
        rows.append(cells)
    caption = (
        f"Paired differences in accuracy on the same seeds{_where(board)}, in points, with 95% percentile "
        f"intervals, each for itself: not widened for the number of policies tried. {tell_looks(looks)}"
    ).strip()
    return Table(label, caption, head, rows, "l" * (1 + several) + "r" * (len(head) - 1 - several))


def tell_looks(looks: int) -> str:
    """Say how often the held-out seeds have been run; nothing if never."""
    if not looks:
        return ""
    if looks == 1:
        return "The held-out seeds have been run once in this session."
    return (
        f"The held-out seeds have been run {looks} times in this session: what was changed in between may "
        "have been chosen with them in view, and then they are held out no longer."
    )


def _has_held_out(board: pd.DataFrame) -> bool:
    return bool((board["set"] == HELD_OUT).any())


def _where(board: pd.DataFrame) -> str:
    """Name the protocol in a caption where there is but one."""
    protocols = list(dict.fromkeys(board["protocol"]))
    return f" under `{protocols[0]}`" if len(protocols) == 1 else ""


def _sizes(board: pd.DataFrame) -> str:
    counts = board.groupby("set", sort=False)["n"].first()
    return " and ".join(f"{count} {name} episodes" for name, count in counts.items()) + " each"


def _pairs(board: pd.DataFrame) -> list[tuple[object, object | None]]:
    """Return each policy's row on the design seeds with its row on the held-out seeds, if there is one."""
    held = {(r.protocol, r.policy): r for r in board[board["set"] == HELD_OUT].itertuples()}
    return [(r, held.get((r.protocol, r.policy))) for r in board[board["set"] == DESIGN].itertuples()]


def _named(row: object) -> str:
    title = title_of(row.policy)  # type: ignore[attr-defined]
    return f"**{title}**" if row.own else title  # type: ignore[attr-defined]
