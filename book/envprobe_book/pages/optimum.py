"""The drawing of an optimum: policies as points beneath the lines that none can pass."""

from collections.abc import Iterable

import pandas as pd

from envprobe_book.pages.figures import (
    GREY,
    INK,
    POLICY_STYLES,
    Choice,
    Drawing,
    canvas,
    policy_title,
    styled,
)
from envprobe_book.pages.markup import number

LINES = {"optimum": (INK, "-"), "optimum that sees gold": (GREY, (0, (4, 2)))}
MARGIN = 0.03  # by which a line is drawn past the last point


def draw_optimum(points: pd.DataFrame, corners: pd.DataFrame, loud: Iterable[str]) -> Choice:
    """Points beneath the lines that none can pass; past a line's corners lies what is given away.

    Args:
        points: a row a policy, with `panel`, `policy`, `accuracy` and `success`.
        corners: a row a corner, with `panel`, `line` (one of `LINES`), `accuracy` and `success`, along each
            line from the most success to the most accuracy.
        loud: the policies in colour and with names, the others being grey.
    """
    named, drawings, said = set(loud), {}, []
    for place, (group, own) in enumerate(points.groupby("panel", sort=False)):
        lines = corners[corners["panel"] == group]
        told = [
            f"{group}, {policy_title(row.policy)} {number(row.success)}, {number(row.accuracy)}"
            for row in own.itertuples()
        ]
        drawings[str(group)] = _draw(own, lines, named, f"bound-optimum-{place}", _described(told))
        said += told
    return Choice(drawings, "bound-optimum", _described(said))


def _described(told: Iterable[str]) -> str:
    alt = "Accuracy against task success on small worlds, with the frontier of the optimum above all points"
    return f"{alt}. Success and accuracy: {'; '.join(told)}."


@styled
def _draw(own: pd.DataFrame, lines: pd.DataFrame, named: set[str], name: str, alt: str) -> Drawing:
    """One panel."""
    figure, panels = canvas(3.6)
    axes = panels[0, 0]
    floor, least = own["accuracy"].min() - MARGIN, own["success"].min() - MARGIN
    for line, part in lines.groupby("line", sort=False):
        success = [part["success"].iloc[0], *part["success"], min(least, part["success"].min())]
        accuracy = [floor, *part["accuracy"], part["accuracy"].iloc[-1]]
        colour, dashes = LINES[line]
        axes.plot(success, accuracy, color=colour, ls=dashes, lw=1.3, zorder=1, label=line)
    others = own[~own["policy"].isin(named)]
    axes.plot(others["success"], others["accuracy"], "o", color=GREY, ms=3.5, label="other policies")
    for row in own[own["policy"].isin(named)].itertuples():
        title = policy_title(row.policy)
        axes.plot(row.success, row.accuracy, label=title, **POLICY_STYLES[row.policy].dot(ms=7))
    axes.grid()
    axes.set_ylabel("accuracy $A_H$")
    axes.set_xlabel("task success")
    figure.legend(loc="outside lower center", ncols=2, labelspacing=0.1)
    return Drawing(figure, name, alt)
