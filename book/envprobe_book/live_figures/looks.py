"""What a look is worth by its step, and how many pay by hazard and price, under the reader's hand.

Every number that the page shows was made by `analyses.looks` at the points of a grid; the page looks them up.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from envprobe_book.analyses.looks import (
    best_step,
    budget,
    lost_mean,
    net_worth,
    regret,
    worth_end,
    worth_mean,
)
from envprobe_book.pages.figures import GREY, INK, Drawing, canvas, styled
from envprobe_book.pages.markup import script_json
from envprobe_core.regimes import REGIMES

RATES = (
    0.005, 0.006, 0.008, 0.01, 0.012, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.1, 0.12, 0.15,
    0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6,
)  # fmt: skip
PRICES = tuple(round(0.05 * place, 2) for place in range(1, 20))
HORIZONS = (10, 20, 30, 40, 60)
MARK = {"horizon": 30, "rate": 0.1, "price": 0.2}
WRONG = (1 / 3, 3.0)  # a rate that is told is so many times the true one
HIGHEST_RATE = 0.95


SCORES = {  # what one look at a step is worth, at a hazard, in so many steps
    "scored at the end": lambda t, horizon, rate: worth_end(t, horizon, 1 - rate),
    "averaged over the steps": lambda t, horizon, rate: worth_mean(t, horizon, 1 - rate),
    "averaged, a field lost for good": lost_mean,
}
BESIDE = (0.02, 0.1, 0.3)  # hazards whose curves stand beside the chosen one


@dataclass(frozen=True)
class Worths:
    """What one look is worth by its step and the hazard, for one score at a time."""

    horizon: int = MARK["horizon"]
    rate: float = MARK["rate"]

    def curve(self, score: str, rate: float) -> list[float]:
        """The worth of a look at each step, [step], in fields that are right because of it."""
        return [round(SCORES[score](t, self.horizon, rate), 4) for t in range(self.horizon)]

    @property
    def drawing(self) -> Drawing:
        """The first score as a still figure, its hazards beside each other."""
        return _draw_worths({rate: self.curve(next(iter(SCORES)), rate) for rate in BESIDE})

    def as_data(self) -> dict[str, Any]:
        """What the page shows: a curve a score and rate, and where the reader begins."""
        curves = {score: [self.curve(score, rate) for rate in RATES] for score in SCORES}
        beside = [RATES.index(rate) for rate in BESIDE]
        at = min(range(len(RATES)), key=lambda place: abs(RATES[place] - self.rate))
        return {"rates": RATES, "horizon": self.horizon, "curves": curves, "beside": beside, "at": at}

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return _on_a_page("live-worths", self.drawing, self.as_data())


@dataclass(frozen=True)
class Looks:
    """How many looks pay, at each rate and price of a grid, for each horizon."""

    limit: float = 1.0  # the share that is wrong in the end, without a look

    def cells(self, horizon: int) -> list[list[list[float]]]:
        """Looks that pay, their net worth, and what two wrong rates cost, [price, rate, part], in fields."""
        return [[self._cell(horizon, rate, price) for rate in RATES] for price in PRICES]

    def _cell(self, horizon: int, rate: float, price: float) -> list[float]:
        looks = budget(horizon, 1 - rate, self.limit, price)
        net = net_worth(looks, horizon, 1 - rate, self.limit, price)
        told = (min(HIGHEST_RATE, times * rate) for times in WRONG)
        lost = [regret(horizon, rate, one, self.limit, price) for one in told]
        return [looks, *(round(value, 2) for value in (net, *lost))]

    @property
    def drawing(self) -> Drawing:
        """The plane of the paper's horizon as a still figure."""
        return _draw(self.cells(MARK["horizon"]))

    def as_data(self) -> dict[str, Any]:
        """What the page shows: cells by horizon, what stands at their places, and where the reader begins."""
        own = {str(horizon): self.cells(horizon) for horizon in HORIZONS}
        middle = {str(horizon): best_step(worth_mean, horizon, 1 - MARK["rate"]) for horizon in HORIZONS}
        paper = {str(regime.horizon): regime.budget for regime in REGIMES.values()}
        axes = {"rates": RATES, "prices": PRICES, "horizons": HORIZONS}
        return axes | {"cells": own, "middle": middle, "paper": paper, "mark": MARK}

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return _on_a_page("live-looks", self.drawing, self.as_data())


def _on_a_page(kind: str, drawing: Drawing, data: dict[str, Any]) -> dict[str, str]:
    """A still figure, and what the page's script puts in its place."""
    page = (
        f'<div class="{kind}" data-engine><div class="live-static">{drawing.svg()}</div>'
        f'<script type="application/json">{script_json(data)}</script></div>'
    )
    return {"text/html": page, "text/plain": drawing.alt}


@styled
def _draw_worths(curves: dict[float, list[float]]) -> Drawing:
    figure, panels = canvas(3.0)
    axes = panels[0, 0]
    for (rate, curve), style in zip(curves.items(), ("-", "--", ":"), strict=True):
        axes.plot(curve, style, color=INK, label=f"h = {rate}")
    axes.set(xlabel="step of the look", ylabel="worth of one look [fields]", ylim=(0, 1))
    axes.legend(frameon=False)
    best = {rate: curve.index(max(curve)) for rate, curve in curves.items()}
    told = ", ".join(f"at a hazard of {rate} step {step}" for rate, step in best.items())
    alt = f"What one look is worth by its step, where the end is scored; the best one is {told}."
    return Drawing(figure, "worth-by-step", alt)


@styled
def _draw(cells: list[list[list[float]]]) -> Drawing:
    figure, panels = canvas(3.0)
    axes, looks = panels[0, 0], np.array(cells)[:, :, 0]
    shown = axes.pcolormesh(RATES, PRICES, looks, shading="nearest", cmap="Greys", vmin=0, vmax=30)
    axes.contour(RATES, PRICES, looks, levels=[6.5, 7.5], colors=INK, linewidths=0.9)
    axes.plot(MARK["rate"], MARK["price"], "+", color=INK, markersize=9, markeredgewidth=1.6)
    axes.set(xscale="log", xlabel="hazard h, a step", ylabel="price of a look [fields]")
    axes.set_xticks([0.01, 0.03, 0.1, 0.3], ["0.01", "0.03", "0.1", "0.3"])
    axes.minorticks_off()
    axes.tick_params(colors=GREY, labelcolor=INK)
    figure.colorbar(shown, label="looks that pay")
    alt = (
        "How many looks pay for a score at the end of 30 steps, by hazard and price, between the lines the "
        f"paper's 7; at a hazard of {MARK['rate']} and a price of {MARK['price']} it is "
        f"{budget(MARK['horizon'], 1 - MARK['rate'], 1.0, MARK['price'])}."
    )
    return Drawing(figure, "looks-plane", alt)
