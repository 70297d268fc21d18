"""The figures of the lab: the plane of success and accuracy, and design against held-out accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from envprobe_core.analyses import nondominated
from envprobe_core.lab.contest import DESIGN, HELD_OUT
from envprobe_core.protocols import in_words
from envprobe_core.show import figures as book
from envprobe_core.show.figures import GREY, Drawing, Style, canvas, policy_title, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OWN_STYLES = (
    Style(book.VERMILLION, "h"), Style(book.GREEN, "8"), Style(book.PURPLE, "d"), Style(book.AMBER, "H"),
)  # fmt: skip
OWN_SIZE, RIVAL_SIZE = 9.0, 5.0


def style_of(policy: str, own: list[str]) -> Style:
    """Return a policy's style: the book's, or for a reader's own one of four, in turn."""
    if policy in own:
        return OWN_STYLES[own.index(policy) % len(OWN_STYLES)]
    return book.POLICY_STYLES.get(policy, Style(GREY, "."))


@styled
def plot_plane(board: pd.DataFrame, name: str = "lab-plane") -> Drawing:
    """Draw a leaderboard's accuracy against success: a row of panels a protocol, design above held-out."""
    groups = list(board.groupby(["protocol", "set"], sort=False))
    own = _own(board)
    figure, panels = canvas(2.8 * len(groups) + 0.9, rows=len(groups), sharex=True)
    told = []
    for axes, ((protocol, kind), part) in zip(panels[:, 0], groups, strict=True):
        able = part[part["deployable"]]
        front = able[nondominated(able[["success", "accuracy"]].to_numpy())]
        part = part.assign(front=part.index.isin(front.index))
        front = front.sort_values(["success", "accuracy"], ascending=[True, False])
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
def plot_transfer(board: pd.DataFrame, name: str = "lab-transfer") -> Drawing:
    """Draw each policy's gain over Simple on the design seeds against that on the held-out seeds."""
    own, board = _own(board), board[board["policy"] != "simple"]
    groups = list(board.groupby("protocol", sort=False))
    figure, panels = canvas(3.3 * len(groups) + 0.9, rows=len(groups))
    told = []
    for axes, (protocol, part) in zip(panels[:, 0], groups, strict=True):
        held = part[part["set"] == HELD_OUT].set_index("policy").filter(like="minus_simple")
        sides = part[part["set"] == DESIGN].join(held.add_prefix("held_"), on="policy")
        x, y = sides["minus_simple"], sides["held_minus_simple"]
        corners = np.array([min(x.min(), y.min()), max(x.max(), y.max())])
        axes.plot(corners, corners, color=GREY, lw=1.0, zorder=0)
        for line in (axes.axhline, axes.axvline):
            line(0, color=GREY, lw=0.6, ls=(0, (3, 3)), zorder=0)
        _points(axes, sides, "minus_simple", "held_minus_simple", own)
        told.append(f"{protocol}: {int((y < x).sum())} of {len(sides)} lie below the diagonal")
        axes.set_title(in_words(protocol), loc="left")
        axes.set_ylabel("held-out, points over Simple")
        axes.grid()
    panels[-1, 0].set_xlabel("design, points over Simple")
    _legend(panels[0, 0], list(dict.fromkeys(board["policy"])), own, filled=False)
    what = "Gain in accuracy over EnvProbe-Simple on design seeds against held-out seeds"
    return Drawing(figure, name, f"{what}; {'. '.join(told)}.")


def _own(board: pd.DataFrame) -> list[str]:
    return sorted(set(board.loc[board["own"], "policy"]))


def _points(
    axes: Axes, part: pd.DataFrame, x: str, y: str, own: list[str], hollow: pd.Series | None = None
) -> None:
    """Draw a mark with its intervals for each row, a reader's own large, last, and by name."""

    def spread(row: pd.Series, column: str) -> list[list[float]]:
        return [[row[column] - row[f"{column}_low"]], [row[f"{column}_high"] - row[column]]]

    for index, row in part.sort_values("own", kind="stable").iterrows():
        style = style_of(row["policy"], own)
        look: dict[str, Any] = {"elinewidth": 0.5, "markersize": RIVAL_SIZE}
        if row["own"]:
            look = {"elinewidth": 1.1, "markersize": OWN_SIZE}
        if hollow is not None:
            look["markerfacecolor"] = book.GROUND if hollow[index] else style.colour
        axes.errorbar(row[x], row[y], xerr=spread(row, x), yerr=spread(row, y), **style.dot(**look))
    for place, row in enumerate(part[part["own"]].sort_values(x).to_dict("records")):
        shift, side = ((12, -22), "left") if place % 3 else ((-12, 16), "right")  # points, off the diagonal
        line = {"arrowstyle": "-", "color": GREY, "linewidth": 0.7, "shrinkB": 5}
        look = {"textcoords": "offset points", "fontsize": 8.5, "ha": side, "arrowprops": line}
        axes.annotate(row["policy"], (row[x], row[y]), shift, **look)


def _legend(axes: Axes, policies: list[str], own: list[str], *, filled: bool = True) -> None:
    """Name every policy below the figure, a reader's own first.

    `filled`: whether every mark is, where being hollow means something else.
    """
    from matplotlib.lines import Line2D

    marks = []
    for policy in (*own, *(name for name in policies if name not in own)):
        style = style_of(policy, own)
        look = style.dot(**({"markerfacecolor": style.colour} if filled else {}))
        marks.append(Line2D([], [], label=policy_title(policy), **look))
    axes.get_figure().legend(handles=marks, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
