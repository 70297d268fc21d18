"""The drawing of an optimum: policies as points beneath the lines that none can pass."""

from collections.abc import Iterable

import pandas as pd

from envprobe_book.pages.figures import GREY, INK, POLICY_STYLES, Drawing, canvas, policy_title, styled
from envprobe_book.pages.markup import number

LINES = {"optimum": (INK, "-"), "optimum that sees gold": (GREY, (0, (4, 2)))}
MARGIN = 0.03  # by which a line is drawn past the last point


@styled
def draw_optimum(points: pd.DataFrame, corners: pd.DataFrame, loud: Iterable[str]) -> Drawing:
    """Points beneath the lines that none can pass; past a line's corners lies what is given away.

    Args:
        points: a row a policy, with `panel`, `policy`, `accuracy` and `success`.
        corners: a row a corner, with `panel`, `line` (one of `LINES`), `accuracy` and `success`, along each
            line from the most success to the most accuracy.
        loud: the policies in colour and with names, the others being grey.
    """
    named = set(loud)
    groups = list(dict.fromkeys(points["panel"]))
    rows = -(-len(groups) // 2)
    figure, panels = canvas(1.55 * rows + 1.1, rows=rows, columns=2)
    said = []
    for axes, group in zip(panels.flat, groups, strict=False):
        own = points[points["panel"] == group]
        floor, least = own["accuracy"].min() - MARGIN, own["success"].min() - MARGIN
        for line, part in corners[corners["panel"] == group].groupby("line", sort=False):
            success = [part["success"].iloc[0], *part["success"], min(least, part["success"].min())]
            accuracy = [floor, *part["accuracy"], part["accuracy"].iloc[-1]]
            colour, dashes = LINES[line]
            axes.plot(success, accuracy, color=colour, ls=dashes, lw=1.3, zorder=1, label=line)
        others = own[~own["policy"].isin(named)]
        axes.plot(others["success"], others["accuracy"], "o", color=GREY, ms=2.5, label="other policies")
        for row in own.itertuples():
            title = policy_title(row.policy)
            if row.policy in named:
                axes.plot(row.success, row.accuracy, label=title, **POLICY_STYLES[row.policy].dot(ms=5))
            said.append(f"{group}, {title} {number(row.success)}, {number(row.accuracy)}")
        axes.set_title(group, loc="left", fontsize=9)
        axes.grid()
    for axes in panels.flat[len(groups) :]:
        axes.set_visible(False)
    for row in panels:
        row[0].set_ylabel("accuracy $A_H$")
    for axes in panels[-1]:
        axes.set_xlabel("task success")
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, labelspacing=0.1)
    alt = "Accuracy against task success on small worlds, with the frontier of the optimum above all points"
    return Drawing(figure, "bound-optimum", f"{alt}. Success and accuracy: {'; '.join(said)}.")
