"""Rates of useful probes: per probe fired and per probe allowed, beside what the paper prints."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from envprobe_book.analyses.scoreboard import as_printed, printed_at
from envprobe_book.claims import PaperValue, paper_value
from envprobe_book.pages.markup import number, p_value
from envprobe_core.statistics import clustered_rate, wilson

FAMILY = 6  # tests that the paper adjusts for together
ALLOWED = {  # of the paper's table of rates per probe allowed
    "procedural": ("tooldag",),
    "objectstate": ("objectstate",),
    "graphnav": ("graphnav",),
    "spatial": ("objectstate", "graphnav"),
}


def printed_pairs(stratum: str) -> dict[str, Any]:
    """The paper's own row of a stratum: both rates over the pairs that it kept, and their difference."""
    columns = ("{}_difference_pct", "method_{}", "reference_{}", "{}_p", "method_{}_lcb")
    gap, simple, random, p, floor = (
        printed_at(["tab:g4_main"], f"{stratum}: simple vs random", column.format("useful_probe_rate"))
        for column in columns
    )
    return (
        {"source": "printed", "n": gap.n, "simple": simple.value, "random": random.value}
        | {"estimate": gap.value, "low": gap.low, "high": gap.high}
        | {"p_greater": as_printed(p), "floors": as_printed(floor)}
    )


def pairs_that_fired(episodes: pd.DataFrame, resamples: int) -> dict[str, Any]:
    """Both rates over the pairs in which Simple and Random both fired, and bounds of Simple's from below.

    Args:
        episodes: of one protocol and any worlds.
        resamples: of seeds, world by world.

    Returns:
        The number of pairs `n`, the means `simple` and `random`, the one-sided `p_greater`, and `floors` as a
        text: bootstrap, bootstrap adjusted for the paper's family, Wilson on the pooled probes. The last two
        are dashes where a world has fewer than two pairs.
    """
    both = episodes.pivot(index=["world", "seed"], columns="policy", values=["useful", "probes"])
    both = both[(both["probes"][["simple", "random"]] > 0).all(axis=1)].astype(float)
    rates = (both["useful"] / both["probes"])[["simple", "random"]]
    row = {"n": len(both), **rates.mean(), "p_greater": "–", "floors": "–"}
    worlds = both.index.get_level_values("world").to_numpy(dtype=str)
    if not len(both) or min(np.unique(worlds, return_counts=True)[1]) < 2:
        return row
    asked = {"family": FAMILY, "resamples": resamples}
    every = np.ones(len(both))
    gap = clustered_rate(rates["simple"] - rates["random"], every, worlds, **asked)
    own = clustered_rate(rates["simple"], every, worlds, **asked)
    pooled = wilson(*both[[("useful", "simple"), ("probes", "simple")]].sum().astype(int))
    floors = " / ".join(number(floor, 3) for floor in (own.low, own.low_adjusted, pooled.low))
    return row | {"p_greater": p_value(gap.p_greater), "floors": floors}


def beside_printed(rates: pd.DataFrame, policies: Sequence[str]) -> pd.DataFrame:
    """Rates per probe allowed with what the paper prints (`printed_mean`) and the `difference`, in its order.

    Args:
        rates: a row a stratum (of `ALLOWED`), protocol and policy, with its `mean`.
        policies: in the order of rows.
    """
    order = rates["stratum"].map(list(ALLOWED).index) * 10 + rates["policy"].map(policies.index)
    found = rates.iloc[np.argsort(order, kind="stable")]
    names = (found["stratum"] + ": " + found["policy"]).to_numpy()
    printed = [paper_value("tab:g4_norm", name, "useful_per_budget").value for name in names]
    return found.assign(printed_mean=printed, difference=found["mean"] - printed)


def sides_that_fit(gap: PaperValue, p: PaperValue) -> tuple[dict[str, float], str]:
    """Both p-values that a printed interval implies, by side, and which side the printed one fits.

    An interval that is near to normal implies a standard error. A p-value fits within a factor of two, a
    bound if it is kept; of two sides that fit an exact value the nearer one is named.

    Args:
        gap: a difference with its 95% interval.
        p: the p-value printed beside it.

    >>> row = ("tab:g4_main", "combined: simple vs random")
    >>> gap = paper_value(*row, "useful_probe_rate_difference_pct")
    >>> sides_that_fit(gap, paper_value(*row, "useful_probe_rate_p"))[1]
    'one-sided'
    """
    z = gap.value / ((gap.high - gap.low) / 2 / NormalDist().inv_cdf(0.975))
    sides = {"one-sided": 1 - NormalDist().cdf(z), "two-sided": 2 * (1 - NormalDist().cdf(abs(z)))}
    fitting = [side for side, value in sides.items() if _agrees(p, value)]
    if p.relation == "=":
        fitting = sorted(fitting, key=lambda side: abs(np.log(sides[side] / p.value)))[:1]
    return sides, "both" if len(fitting) == 2 else fitting[0] if fitting else "neither"


def _agrees(p: PaperValue, value: float) -> bool:
    return {"<": value < p.value, ">": value > p.value, "=": 0.5 <= value / p.value <= 2}[p.relation]
