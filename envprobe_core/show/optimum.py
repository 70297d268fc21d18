"""The figure of the optimum: policies as points beneath a line that none of them can pass."""

from __future__ import annotations

import pandas as pd

from envprobe_core.show.figures import GREY, INK, POLICY_STYLES, Drawing, canvas, policy_title, styled
from envprobe_core.show.markup import number

MARGIN = 0.03  # by which the line is drawn past the last point
LINES = {"optimum": (INK, "-"), "optimum that sees gold": (GREY, (0, (4, 2)))}


@styled
def draw_optimum(points: pd.DataFrame, corners: pd.DataFrame, name: str, about: str) -> Drawing:
    """Draw accuracy against success, two panels a row.

    Args:
        points: a row a point: `panel policy accuracy success`.
        corners: a row a corner of a line, from the most success to the most accuracy: `panel line accuracy
            success`; lines are the names of `LINES`. Between corners lie mixtures, past them what is given
            away.
        name: a name no other figure of the page has.
        about: what the figure shows, for those who do not see it.
    """
    groups = list(dict.fromkeys(points["panel"]))
    rows = -(-len(groups) // 2)
    figure, panels = canvas(2.3 * rows + 1.1, rows=rows, columns=2)
    told = []
    for axes, group in zip(panels.flat, groups, strict=False):
        own = points[points["panel"] == group]
        floor, least = own["accuracy"].min() - MARGIN, own["success"].min() - MARGIN
        for line, part in corners[corners["panel"] == group].groupby("line", sort=False):
            success = [part["success"].iloc[0], *part["success"], min(least, part["success"].min())]
            accuracy = [floor, *part["accuracy"], part["accuracy"].iloc[-1]]
            colour, dashes = LINES[line]
            axes.plot(success, accuracy, color=colour, ls=dashes, lw=1.3, zorder=1, label=line)
        for row in own.itertuples():
            dot = POLICY_STYLES[row.policy].dot(ms=4.5, elinewidth=0)
            axes.errorbar(row.success, row.accuracy, label=policy_title(row.policy), **dot)
            told.append(f"{group}, {policy_title(row.policy)} {number(row.success)}, {number(row.accuracy)}")
        axes.set_title(group, loc="left", fontsize=9)
        axes.grid()
    for axes in panels.flat[len(groups) :]:
        axes.set_visible(False)
    for row in panels:
        row[0].set_ylabel("accuracy $A_H$")
    for axes in panels[-1]:
        axes.set_xlabel("task success")
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return Drawing(figure, name, f"{about}. Success and accuracy: {'; '.join(told)}.")
