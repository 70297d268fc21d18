"""The figure of the optimum: every policy as a point beneath it."""

from __future__ import annotations

from collections.abc import Sequence

from envprobe_core.bound.comparing import SHOWN, VOI, WEIGHTS, Board, voi_name
from envprobe_core.bound.optimum import Solution
from envprobe_core.bound.tables import describe, shape_title
from envprobe_core.figures import GREY, GROUND, INK, POLICY_STYLES, Drawing, canvas, policy_title, styled
from envprobe_core.markup import listed, number

MARGIN = 0.03  # by which the optimum's line is drawn past the last point


@styled
def plot_optimum(boards: Sequence[Board]) -> Drawing:
    """Draw accuracy against success: a row a protocol, a column a shape of the small world."""
    protocols = list(dict.fromkeys(board.setting.protocol.name for board in boards))
    columns = len(boards) // len(protocols)
    figure, panels = canvas(2.3 * len(protocols) + 1.1, rows=len(protocols), columns=columns)
    for axes, board in zip(panels.flat, boards, strict=True):
        for corners, dashes, colour in ((board.told_gold, (0, (4, 2)), GREY), (board.optimum, "-", INK)):
            axes.plot(*_outline(corners, board), color=colour, ls=dashes, lw=1.3, zorder=1)
        _dots(axes, board)
        axes.set_title(f"{shape_title(board)}, {board.setting.protocol.name}", loc="left", fontsize=8)
        axes.tick_params(labelsize=7)
        axes.grid()
    for row in panels:
        row[0].set_ylabel("accuracy $A_H$")
    for axes in panels[-1]:
        axes.set_xlabel("task success")
    figure.legend(handles=_legend(), loc="outside lower center", ncols=3, frameon=False, fontsize=7.5)
    told = "; ".join(
        f"{describe(board)}: at equal weights Simple is {number(100 * board.distance('simple', 0.5), 1)} "
        "points "
        f"below the optimum and VoI {number(100 * board.distance(voi_name(0.5), 0.5), 1)}"
        for board in boards
    )
    alt = f"Accuracy against task success with the frontier of the optimum above all points. {told}."
    return Drawing(figure, "bound-optimum", alt)


def _outline(corners: Sequence[Solution], board: Board) -> tuple[list[float], list[float]]:
    """Return the frontier's line: mixtures between corners, and what is given away at its two ends."""
    floor, least = (min(point[part] for point in board.points.values()) - MARGIN for part in (0, 1))
    least = min(least, *(corner.success for corner in corners))
    success = [corners[0].success, *(corner.success for corner in corners), least]
    return success, [floor, *(corner.accuracy for corner in corners), corners[-1].accuracy]


def _dots(axes: object, board: Board) -> None:
    style = POLICY_STYLES["voi"]
    line = [board.points[voi_name(weight)] for weight in WEIGHTS]
    axes.plot(  # type: ignore[attr-defined]
        [point[1] for point in line], [point[0] for point in line],
        color=style.colour, marker=style.marker, ms=5, lw=1.2, zorder=3,
    )  # fmt: skip
    for name in (name for name in SHOWN if name not in VOI.values()):
        mark, (accuracy, success) = POLICY_STYLES[name], board.points[name]
        face = mark.colour if mark.filled else GROUND
        axes.plot(  # type: ignore[attr-defined]
            success, accuracy, marker=mark.marker, ms=4.5, color=mark.colour, markerfacecolor=face, zorder=2
        )


def _legend() -> list[object]:
    from matplotlib.lines import Line2D

    marks: list[object] = []
    for name in (name for name in SHOWN if name not in VOI.values()):
        dot = POLICY_STYLES[name].dot(ms=4.5, label=policy_title(name))
        marks.append(Line2D([], [], **{key: value for key, value in dot.items() if key != "elinewidth"}))
    style = POLICY_STYLES["voi"]
    weights = listed(f"{weight:g}" for weight in (WEIGHTS[0], WEIGHTS[-1]))
    voi = f"VoI, weights {weights.replace('and', 'to')}"
    marks.append(Line2D([], [], color=style.colour, marker=style.marker, ms=5, label=voi))
    marks.append(Line2D([], [], color=INK, label="optimum"))
    marks.append(Line2D([], [], color=GREY, ls=(0, (4, 2)), label="optimum that sees gold"))
    return marks
