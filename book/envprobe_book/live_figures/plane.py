"""The plane of budget and threshold: what probing by score gains at each pair, for the front page.

A cell is the mean paired difference of EnvProbe-Simple and another rule over all worlds, Periodic at first.
The page shows the plane of one protocol, a cross at the paper's point, and a ring where the reader is; two
sliders along its edges move the bar's values, and so does a click in the plane.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from envprobe_book.live_figures.estimates import evaluate, gain
from envprobe_book.live_figures.figure import HIGHEST, LiveFigure
from envprobe_book.pages.figures import GREY, INK, Drawing, canvas, styled
from envprobe_book.pages.markup import script_json
from envprobe_core.conditions import find_regime
from envprobe_core.policies import THRESHOLD
from envprobe_core.protocols import in_words
from envprobe_core.statistics import RESAMPLES
from envprobe_core.worlds.base import Floats

BUDGETS = tuple(range(16))
THRESHOLDS = tuple(float(value) for value in np.arange(0.0, HIGHEST + 0.25, 0.25))
DIGITS = 4  # of a cell's points in a page
BLUE, ORANGE = (0, 114, 178), (213, 94, 0)  # ahead and behind, as in draw.js; and so is FULL
FULL = 8.0  # points at which a colour is full


@dataclass(frozen=True)
class Plane:
    """The gain at each budget and threshold.

    Attributes:
        cells: of each protocol [threshold, budget, part], the parts value, low and high, in points.
        numbers: a figure of kind `numbers`, whose rows the page's sentences follow.
        body: HTML that stands beside the plane.
        lead: HTML of the sentence above both.
        against: the rule of `cells`, and how a page calls it.
        others: the cells against other rules, likewise by how a page calls them.
        headline: the name of a figure of numbers whose rows are the first cells' gains, one a protocol: a
            page knows them at every cell, and runs nothing for the sentence that reads them.
    """

    cells: dict[str, Floats]
    numbers: LiveFigure
    body: str = ""
    lead: str = ""
    against: tuple[str, str] = ("periodic", "a fixed schedule")
    others: Mapping[tuple[str, str], dict[str, Floats]] = field(default_factory=dict)
    headline: LiveFigure | None = None

    @cached_property
    def drawing(self) -> Drawing:
        """The plane of each protocol as a still figure."""
        return _draw(self.cells)

    def as_data(self) -> dict[str, Any]:
        """What the page draws."""
        planes = {self.against: self.cells, **self.others}
        cells = {
            rule: {name: np.round(own, DIGITS).tolist() for name, own in plane.items()}
            for (rule, _), plane in planes.items()
        }
        titles = {name: in_words(name) for name in self.cells}
        mark = {"x": find_regime("S2").budget, "y": THRESHOLD}
        axes = {"budgets": list(BUDGETS), "thresholds": list(THRESHOLDS)}
        return axes | {"cells": cells, "titles": titles, "against": dict(list(planes)), "mark": mark} | {
            "full": f"{FULL:g}", "headline": self.headline.name if self.headline else "",
        }  # fmt: skip

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        data = script_json(self.as_data())
        page = (
            f'<div class="live-plane" data-engine><p class="live-plane-lead">{self.lead}</p>'
            '<div class="live-plane-picture">'
            f'<div class="live-static">{self.drawing.svg()}</div>'
            f'<script type="application/json">{data}</script></div>'
            f'<div class="live-plane-body">{self.body}</div></div>{self.numbers.page_html()}'
            f"{self.headline.page_html() if self.headline else ''}"
        )
        return {"text/html": page, "text/plain": self.drawing.alt}


def planes_of(
    protocols: Sequence[str],
    against: Sequence[str] = ("periodic",),
    seeds: str = "default",
    resamples: int = RESAMPLES,
    profile: str = "typical",
) -> dict[str, dict[str, Floats]]:
    """The cells of each protocol against each rule, every pair of budget and threshold run anew.

    >>> planes_of(["paper"], ["periodic"], "0:12", resamples=100)["periodic"]["paper"].shape
    (17, 16, 3)
    """
    pairs = [{"budget": x, "threshold": y} for y in THRESHOLDS for x in BUDGETS]
    planes: dict[str, dict[str, Floats]] = {other: {} for other in against}
    for rule in protocols:
        own = {"protocol": rule, "profile": profile}
        asked = [gain("simple", other, **own, **pair) for other in against for pair in pairs]
        found = [[one["value"], one["low"], one["high"]] for one in evaluate(asked, {}, seeds, resamples)]
        shape = (len(against), len(THRESHOLDS), len(BUDGETS), 3)
        for other, cells in zip(against, np.reshape(found, shape), strict=True):
            planes[other][rule] = cells
    return planes


def colour_of(value: float, low: float, high: float) -> tuple[float, float, float]:
    """The colour of a cell: blue where the score is ahead, orange where it is behind, white in between.

    >>> colour_of(0.5, -1.0, 2.0)
    (1.0, 1.0, 1.0)
    """
    if low <= 0 <= high:
        return (1.0, 1.0, 1.0)
    share = min(1.0, abs(value) / FULL)
    ink = BLUE if value > 0 else ORANGE
    red, green, blue = (1 - share * (1 - part / 255) for part in ink)
    return (red, green, blue)


@styled
def _draw(cells: dict[str, Floats]) -> Drawing:
    figure, panels = canvas(2.6, columns=len(cells), sharey=True)
    told = []
    for axes, (rule, own) in zip(panels[0], cells.items(), strict=True):
        colours = np.array([[colour_of(*cell) for cell in line] for line in own])
        edges = (-0.5, len(BUDGETS) - 0.5, -THRESHOLDS[1] / 2, HIGHEST + THRESHOLDS[1] / 2)
        axes.imshow(colours, origin="lower", extent=edges, aspect="auto", interpolation="nearest")
        budget = find_regime("S2").budget
        axes.plot(budget, THRESHOLD, "+", color=INK, markersize=9, markeredgewidth=1.6)
        axes.set_title(in_words(rule), loc="left")
        axes.set_xlabel("budget")
        axes.tick_params(colors=GREY, labelcolor=INK)
        value = own[THRESHOLDS.index(THRESHOLD), budget, 0]
        told.append(f"{in_words(rule)} {value:+.1f} points at the paper's budget and threshold")
    panels[0, 0].set_ylabel("threshold")
    alt = (
        "Gain of EnvProbe-Simple over Periodic by budget and threshold, blue ahead, orange behind, white open"
    )
    return Drawing(figure, "plane", f"{alt}: {'; '.join(told)}.")
