"""The figures of the lab: the plane of success and accuracy, and design against held-out accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.analyses.frontier import nondominated
from envprobe_core.figures import (
    AMBER,
    GREEN,
    GREY,
    GROUND,
    INK,
    POLICY_STYLES,
    PURPLE,
    VERMILLION,
    Drawing,
    Style,
    canvas,
    styled,
)
from envprobe_core.lab.contest import DESIGN, HELD_OUT, title_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

OWN_STYLES = tuple(
    Style(colour, marker) for marker, colour in (("h", VERMILLION), ("8", GREEN), ("d", PURPLE), ("H", AMBER))
)
OWN_SIZE, RIVAL_SIZE = 9.0, 5.0


def style_of(policy: str, own: list[str]) -> Style:
    """Return a policy's style: the book's, or for a reader's own one of four, in turn."""
    if policy in own:
        return OWN_STYLES[own.index(policy) % len(OWN_STYLES)]
    return POLICY_STYLES.get(policy, Style(GREY, "."))


@styled
def plot_plane(board: pd.DataFrame, name: str = "lab-plane") -> Drawing:
    """Draw accuracy against success: a row of panels a protocol, design and held-out below each other.

    Args:
        board: from `boards.leaderboard`.
        name: of the figure; one of its own on each page.
    """
    groups = list(board.groupby(["protocol", "set"], sort=False))
    own = _own(board)
    figure, panels = canvas(2.8 * len(groups) + 0.9, rows=len(groups), sharex=True)
    told = []
    for axes, ((protocol, kind), part) in zip(panels[:, 0], groups, strict=True):
        part = part.assign(front=False)
        able = part[part["deployable"]]
        part.loc[able.index, "front"] = nondominated(able[["success", "accuracy"]].to_numpy())
        front = part[part["front"]].sort_values(["success", "accuracy"], ascending=[True, False])
        axes.plot(front["success"], front["accuracy"], color=GREY, lw=1.0, zorder=0)
        for row in part.sort_values("own", kind="stable").itertuples():
            style = style_of(row.policy, own)
            axes.errorbar(
                row.success,
                row.accuracy,
                xerr=[[row.success - row.success_low], [row.success_high - row.success]],
                yerr=[[row.accuracy - row.accuracy_low], [row.accuracy_high - row.accuracy]],
                **style.dot(
                    markerfacecolor=style.colour if row.front else GROUND,
                    elinewidth=1.1 if row.own else 0.5,
                    markersize=OWN_SIZE if row.own else RIVAL_SIZE,
                ),
            )
        _name_own(axes, part[part["own"]], "success", "accuracy")
        axes.set_title(f"{protocol}, {kind} seeds", loc="left")
        axes.set_ylabel("accuracy $A_H$")
        axes.grid()
        mine = "; ".join(
            f"{r.policy} at success {r.success:.3f}, accuracy {r.accuracy:.3f}, "
            f"{'nondominated' if r.front else 'dominated'}"
            for r in part[part["own"]].itertuples()
        )
        told.append(f"{protocol}, {kind}: {mine or 'no policy of a reader'}")
    panels[-1, 0].set_xlabel("task success")
    _legend(panels[0, 0], list(dict.fromkeys(board["policy"])), own)
    return Drawing(figure, name, f"Accuracy against task success of every policy; {'. '.join(told)}.")


@styled
def plot_transfer(board: pd.DataFrame, name: str = "lab-transfer") -> Drawing:
    """Draw each policy's gain over Simple on the design seeds against that on the held-out seeds.

    Args:
        board: from `boards.leaderboard`, of a contest with held-out seeds.
        name: of the figure; one of its own on each page.
    """
    own = _own(board)
    protocols = list(dict.fromkeys(board["protocol"]))
    figure, panels = canvas(3.3 * len(protocols) + 0.9, rows=len(protocols))
    told = []
    for axes, protocol in zip(panels[:, 0], protocols, strict=True):
        part = board[(board["protocol"] == protocol) & (board["policy"] != "simple")]
        sides = part[part["set"] == DESIGN].merge(
            part[part["set"] == HELD_OUT], on="policy", suffixes=("_design", "_held")
        )
        x, y = sides["minus_simple_design"], sides["minus_simple_held"]
        ends = np.array([min(x.min(), y.min()), max(x.max(), y.max())])
        axes.plot(ends, ends, color=GREY, lw=1.0, zorder=0)
        axes.axhline(0, color=GREY, lw=0.6, ls=(0, (3, 3)), zorder=0)
        axes.axvline(0, color=GREY, lw=0.6, ls=(0, (3, 3)), zorder=0)
        for row in sides.sort_values("own_design", kind="stable").itertuples():
            axes.errorbar(
                row.minus_simple_design,
                row.minus_simple_held,
                xerr=[
                    [row.minus_simple_design - row.minus_simple_low_design],
                    [row.minus_simple_high_design - row.minus_simple_design],
                ],
                yerr=[
                    [row.minus_simple_held - row.minus_simple_low_held],
                    [row.minus_simple_high_held - row.minus_simple_held],
                ],
                **style_of(row.policy, own).dot(
                    elinewidth=1.1 if row.own_design else 0.5,
                    markersize=OWN_SIZE if row.own_design else RIVAL_SIZE,
                ),
            )
        _name_own(axes, sides[sides["own_design"]], "minus_simple_design", "minus_simple_held")
        below = int((y < x).sum())
        told.append(f"{protocol}: {below} of {len(sides)} lie below the diagonal")
        axes.set_title(protocol, loc="left")
        axes.set_ylabel("held-out, points over Simple")
        axes.grid()
    panels[-1, 0].set_xlabel("design, points over Simple")
    shown = [policy for policy in dict.fromkeys(board["policy"]) if policy != "simple"]
    _legend(panels[0, 0], shown, own)
    return Drawing(
        figure,
        name,
        f"Gain in accuracy over EnvProbe-Simple on design seeds against held-out seeds; {'. '.join(told)}.",
    )


def _own(board: pd.DataFrame) -> list[str]:
    return sorted(set(board.loc[board["own"], "policy"]))


def _name_own(axes: Axes, rows: pd.DataFrame, x: str, y: str) -> None:
    """Write the names of a reader's policies, if they are few, beside their marks: left ones to the left."""
    if len(rows) > len(OWN_STYLES):
        return
    for place, row in enumerate(rows.sort_values(x).to_dict("records")):
        left, above = place < len(rows) // 2, place % 2
        shift = (-6 if left else 6, 7 if above else -15)  # points
        look = {"textcoords": "offset points", "fontsize": 8.5, "ha": "right" if left else "left"}
        axes.annotate(row["policy"], (row[x], row[y]), shift, **look)


def _legend(axes: Axes, policies: list[str], own: list[str]) -> None:
    """Name every policy below the figure, a reader's own first; beyond a dozen of them, as a group."""
    from matplotlib.lines import Line2D

    named = own if len(own) <= len(OWN_STYLES) else []
    marks = []
    for policy in (*named, *(p for p in policies if p not in own)):
        style = style_of(policy, own)
        marks.append(
            Line2D([], [], ls="none", marker=style.marker, color=style.colour, label=title_of(policy))
        )
    if len(own) > len(named):
        label = f"{len(own)} policies of your own"
        marks.insert(0, Line2D([], [], ls="none", marker="h", color=INK, label=label))
    figure = axes.get_figure()
    figure.legend(handles=marks, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
