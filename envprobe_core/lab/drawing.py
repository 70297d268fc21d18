"""The figures of the lab: the plane of success and accuracy, and design against held-out accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from envprobe_core.analyses.frontier import nondominated
from envprobe_core.lab.contest import DESIGN, HELD_OUT
from envprobe_core.lab.guard import known_keywords
from envprobe_core.protocols import in_words
from envprobe_core.show.figures import (
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
    policy_title,
    styled,
)

if TYPE_CHECKING:
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
@known_keywords
def plot_plane(board: pd.DataFrame, name: str = "lab-plane") -> Drawing:
    """Draw a leaderboard's accuracy against success: panels in a row a protocol, design above held-out."""
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
        _points(axes, part, "success", "accuracy", own, hollow=~part["front"])
        axes.set_title(f"{in_words(protocol)}, {kind} seeds", loc="left")
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
@known_keywords
def plot_transfer(board: pd.DataFrame, name: str = "lab-transfer") -> Drawing:
    """Draw each policy's gain over Simple on the design seeds against that on the held-out seeds."""
    own = _own(board)
    protocols = list(dict.fromkeys(board["protocol"]))
    figure, panels = canvas(3.3 * len(protocols) + 0.9, rows=len(protocols))
    told = []
    for axes, protocol in zip(panels[:, 0], protocols, strict=True):
        part = board[(board["protocol"] == protocol) & (board["policy"] != "simple")]
        ends = ["minus_simple", "minus_simple_low", "minus_simple_high"]
        sides = part.loc[part["set"] == DESIGN, ["policy", "own", *ends]]
        held = (
            part[part["set"] == HELD_OUT].set_index("policy")[ends].rename(columns=lambda end: f"held_{end}")
        )
        sides = sides.join(held, on="policy")
        x, y = sides["minus_simple"], sides["held_minus_simple"]
        corners = np.array([min(x.min(), y.min()), max(x.max(), y.max())])
        axes.plot(corners, corners, color=GREY, lw=1.0, zorder=0)
        for line in (axes.axhline, axes.axvline):
            line(0, color=GREY, lw=0.6, ls=(0, (3, 3)), zorder=0)
        _points(axes, sides, "minus_simple", "held_minus_simple", own)
        below = int((y < x).sum())
        told.append(f"{protocol}: {below} of {len(sides)} lie below the diagonal")
        axes.set_title(in_words(protocol), loc="left")
        axes.set_ylabel("held-out, points over Simple")
        axes.grid()
    panels[-1, 0].set_xlabel("design, points over Simple")
    shown = [policy for policy in dict.fromkeys(board["policy"]) if policy != "simple"]
    _legend(panels[0, 0], shown, own, filled=False)
    return Drawing(
        figure,
        name,
        f"Gain in accuracy over EnvProbe-Simple on design seeds against held-out seeds; {'. '.join(told)}.",
    )


def _own(board: pd.DataFrame) -> list[str]:
    return sorted(set(board.loc[board["own"], "policy"]))


def _points(
    axes: Axes, part: pd.DataFrame, x: str, y: str, own: list[str], hollow: pd.Series | None = None
) -> None:
    """Draw a mark with its intervals for each row, a reader's own large, last, and by name if few."""

    def spread(row: pd.Series, column: str) -> list[list[float]]:
        return [[row[column] - row[f"{column}_low"]], [row[f"{column}_high"] - row[column]]]

    for index, row in part.sort_values("own", kind="stable").iterrows():
        style = style_of(row["policy"], own)
        look: dict[str, Any] = {"elinewidth": 0.5, "markersize": RIVAL_SIZE}
        if row["own"]:
            look = {"elinewidth": 1.1, "markersize": OWN_SIZE}
        if hollow is not None:
            look["markerfacecolor"] = GROUND if hollow[index] else style.colour
        axes.errorbar(row[x], row[y], xerr=spread(row, x), yerr=spread(row, y), **style.dot(**look))
    mine = part[part["own"]]
    if len(mine) > len(OWN_STYLES):
        return
    for place, row in enumerate(mine.sort_values(x).to_dict("records")):
        shift, side = ((12, -22), "left") if place % 3 else ((-12, 16), "right")  # points, off the diagonal
        line = {"arrowstyle": "-", "color": GREY, "linewidth": 0.7, "shrinkB": 5}
        look = {"textcoords": "offset points", "fontsize": 8.5, "ha": side, "arrowprops": line}
        axes.annotate(row["policy"], (row[x], row[y]), shift, **look)


def _legend(axes: Axes, policies: list[str], own: list[str], *, filled: bool = True) -> None:
    """Name every policy below the figure, a reader's own first; beyond a dozen of them, as a group.

    `filled`: whether every mark is, where being hollow means something else.
    """
    from matplotlib.lines import Line2D

    named = own if len(own) <= len(OWN_STYLES) else []
    marks = []
    for policy in (*named, *(p for p in policies if p not in own)):
        style = style_of(policy, own)
        look = style.dot(**({"markerfacecolor": style.colour} if filled else {}))
        marks.append(Line2D([], [], label=policy_title(policy), **look))
    if len(own) > len(named):
        label = f"{len(own)} policies of your own"
        marks.insert(0, Line2D([], [], ls="none", marker="h", color=INK, label=label))
    axes.get_figure().legend(handles=marks, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
