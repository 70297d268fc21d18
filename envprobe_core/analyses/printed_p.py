"""Which side the paper's p-values have, and where its lower bound can come from: arithmetic on print alone.

A printed 95% interval implies a standard error and so both p-values of its mean. Source: `tab:g4_main`
and, for comparison, the staleness row of `tab:ablation`.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import pandas as pd

from envprobe_core.analyses.beside import as_printed
from envprobe_core.claims import PaperValue, paper_value
from envprobe_core.statistics import LEVEL, wilson

SPATIAL = "spatial: simple vs random"
SIDES = (  # p-values whose side can be read off a printed interval
    ("tab:g4_main", "spatial: simple vs random", "useful_probe_rate"),
    ("tab:g4_main", "combined: simple vs random", "useful_probe_rate"),
    ("tab:g4_main", "procedural: simple vs random", "useful_probe_rate"),
    ("tab:ablation", "procedural: minus-s vs simple", "accuracy"),
)


def implied_p(value: float, low: float, high: float) -> tuple[float, float]:
    """Return the p-values that a printed 95% interval implies: one-sided (greater) and two-sided.

    Takes the interval for normal, its half-width for 1.96 standard errors.

    Args:
        value: the estimate.
        low: the interval's lower end.
        high: its upper end.
    """
    error = (high - low) / 2 / NormalDist().inv_cdf((1 + LEVEL) / 2)
    z = value / error
    return 1 - NormalDist().cdf(z), 2 * (1 - NormalDist().cdf(abs(z)))


def which_side(p: PaperValue, one_sided: float, two_sided: float) -> str:
    """Say which of two p-values a printed one agrees with: one-sided, two-sided, both, or neither.

    A number agrees within a factor of two (the interval is only near to normal), a bound if it is kept.
    """
    fits = []
    for name, value in (("one-sided", one_sided), ("two-sided", two_sided)):
        agrees = {
            "<": value < p.value,
            ">": value > p.value,
            "=": max(value, 1e-12) / p.value <= 2 and p.value / max(value, 1e-12) <= 2,
        }[p.relation]
        if agrees:
            fits.append(name)
    if p.relation == "=" and len(fits) == 2:
        near = min((abs(math.log(v / p.value)), n) for n, v in zip(fits, (one_sided, two_sided), strict=True))
        return near[1]
    return "both" if len(fits) == 2 else fits[0] if fits else "neither"


def p_sides() -> pd.DataFrame:
    """Read the side of printed p-values off their intervals.

    Returns:
        Columns `source row printed one_sided two_sided side`, in the order of `SIDES`.
    """
    rows = []
    for source, row, name in SIDES:
        gap, p = paper_value(source, row, f"{name}_difference_pct"), paper_value(source, row, f"{name}_p")
        one, two = implied_p(gap.value, gap.low or 0.0, gap.high or 0.0)
        rows.append((source, row, as_printed(p), one, two, which_side(p, one, two)))
    return pd.DataFrame(rows, columns=["source", "row", "printed", "one_sided", "two_sided", "side"])


def printed_floors() -> dict[str, float]:
    """Return lower ends that the paper's own rate and n allow, by name, beside the one it prints.

    The printed bound is unexplained. Wilson's interval and Hoeffding's bound are taken at the printed number
    of pairs, each one-sided, two-sided, and two-sided adjusted for six comparisons.
    """
    rate = paper_value("tab:g4_main", SPATIAL, "method_useful_probe_rate")
    n = rate.n or 0
    floors = {}
    for name, tail in (("one-sided", 0.05), ("two-sided", 0.025), ("adjusted for six", 0.025 / 6)):
        floors[f"Wilson, {name}"] = wilson(round(rate.value * n), n, 1 - 2 * tail).low
        floors[f"Hoeffding, {name}"] = rate.value - math.sqrt(math.log(1 / tail) / (2 * n))
    return floors
