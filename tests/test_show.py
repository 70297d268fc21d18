"""Tables and figures over frames: what is written, and what is marked."""

import numpy as np
import pandas as pd
import pytest

from envprobe_core import draw

ROWS = pd.DataFrame(
    {
        "policy": ["simple", "cd"],
        "mean": [0.5, 0.6],
        "mean_low": [0.4, 0.5],
        "mean_high": [0.6, 0.7],
        "share": [0.1, 0.3],
        "printed_mean": [np.nan, 0.55],
        "printed_share": [np.nan, 0.2],
        "nondominated": [False, True],
    }
)


@pytest.mark.parametrize("kind", ["forest", "bars"])
def test_printed_numbers_are_diamonds_on_their_rows(kind):
    axes = draw(kind, ROWS, "figure", "mean", x="policy").figure.axes[0]
    diamonds = [one for one in axes.lines if one.get_marker() == "d" and np.isfinite(one.get_xdata()).all()]
    assert [(one.get_xdata()[0], one.get_ydata()[0]) for one in diamonds] == [(0.55, 1)]


def test_the_frontier_joins_and_fills_what_is_nondominated():
    drawing = draw(
        "frontier", ROWS, "figure", "mean", x="share", series="policy", label="accuracy", across="success"
    )
    axes = drawing.figure.axes[0]
    assert axes.lines[0].get_xdata().tolist() == [0.3]
    dots = [line for line in axes.lines if not line.get_label().startswith("_")]
    hollow = [dot.get_markerfacecolor() == "#ffffff" for dot in dots]
    assert hollow == [True, False]
    assert "nondominated: EnvProbe-(c+d);" in drawing.alt
