"""What reported confidence says about truth (section *confident-wrong*)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.audit import (
    BINS,
    LEVELS,
    SCAN,
    area_under_curve,
    expected_calibration_error,
    reliability,
)
from envprobe_core.experiments import (
    PAPER_POLICIES,
)
from envprobe_core.figures import BLUE, GREY, GROUND, INK, Drawing, canvas
from envprobe_core.markup import Table, Text, bracket, listed, number, percent
from envprobe_core.policies.rules import SELF_UNCERTAINTY_ALPHA
from envprobe_core.statistics import RESAMPLES, bootstrap_means, percentile_interval

if TYPE_CHECKING:
    import pandas as pd
from envprobe_core.sections.confident import Confidence, ends, pooled_rate

CONDITIONALS = {  # what else the same beliefs say: title, numerator, denominator
    "wrong given confident": ("confident_wrong", "confident"),
    "confident given wrong": ("confident_wrong", "wrong"),
    "confident given wrong, known values": ("confident_wrong", "wrong_known"),
    "confident, below accuracy .5": ("scan_confident", "scan_beliefs"),
    "wrong": ("wrong", "total"),
}


def conditionals(data: Confidence, resamples: int = RESAMPLES) -> pd.DataFrame:
    """Estimate the other shares of the same beliefs, and ECE and AUC, under each protocol.

    Returns:
        One row a protocol and quantity: `protocol quantity rate low high`.
    """
    import pandas as pd

    rows = []
    for protocol, part in data.frame.groupby("protocol", sort=False):
        for name, (top, bottom) in CONDITIONALS.items():
            rate = pooled_rate(part, top, bottom, PAPER_POLICIES, resamples)
            rows.append((protocol, name, *ends(rate)))
        right, wrong = data.right[protocol], data.wrong[protocol]
        draws = bootstrap_means(
            np.concatenate([right, wrong], axis=1), data.worlds[protocol], resamples=resamples
        )
        for name, measure in (("ECE", expected_calibration_error), ("AUC", area_under_curve)):
            value = float(measure(right.sum(axis=0), wrong.sum(axis=0)))
            resampled = measure(draws[:, :LEVELS], draws[:, LEVELS:])
            resampled = resampled[np.isfinite(resampled)]
            low, high = percentile_interval(resampled) if np.isfinite(value) else (np.nan, np.nan)
            rows.append((protocol, name, value, float(low), float(high)))
    return pd.DataFrame(rows, columns=["protocol", "quantity", "rate", "low", "high"])


def show_conditionals(table: pd.DataFrame) -> Table:
    """Show both conditionals, and ECE and AUC, a column a protocol."""
    protocols = list(dict.fromkeys(table["protocol"]))
    titles = {
        "wrong given confident": "Pr(wrong | confident), canonical",
        "confident given wrong": "Pr(confident | wrong), enters $1 - p_{\\mathrm{cw}}$",
        "confident given wrong, known values": "Pr(confident | wrong, value known)",
        "confident, below accuracy .5": f"Pr(confident), at times below accuracy {SCAN}",
        "wrong": "Pr(wrong), all fields",
        "ECE": "expected calibration error",
        "AUC": "AUC of confidence (.5: says nothing)",
    }
    at = table.set_index(["quantity", "protocol"])
    rows = [
        (
            title,
            *(
                f"{number(at.loc[(name, p), 'rate'], 3)} "
                f"{bracket(at.loc[(name, p), 'low'], at.loc[(name, p), 'high'], 3)}"
                for p in protocols
            ),
        )
        for name, title in titles.items()
    ]
    return Table(
        "tab-confidence",
        "What confidence says about truth, with 95% intervals clustered by seed. *Confident*: reported at .7 "
        "or more. An unknown field is wrong and never confident; ECE and AUC look at known values only.",
        ("quantity", *(f"`{p}`" for p in protocols)),
        rows,
        "l" + "r" * len(protocols),
    )


def plot_reliability(data: Confidence, name: str = "reliability") -> Drawing:
    """Draw share right against reported confidence, and below it how many beliefs each bin holds."""
    protocols = list(data.right)
    figure, panels = canvas(
        3.9, rows=2, columns=len(protocols), sharex=True, sharey="row", height_ratios=(3, 1)
    )
    said = []
    middles = (np.arange(BINS) + 0.5) / BINS
    for (top, bottom), protocol in zip(panels.T, protocols, strict=True):
        bins = reliability(data.right[protocol].sum(axis=0), data.wrong[protocol].sum(axis=0))
        there = bins["count"] > 0
        share = bins["count"] / bins["count"].sum()
        top.plot([0, 1], [0, 1], color=GREY, linestyle=(0, (4, 3)), linewidth=1)
        top.plot(
            bins["confidence"][there], bins["accuracy"][there], color=BLUE, marker="o", markerfacecolor=BLUE
        )
        bottom.bar(middles, share, width=0.9 / BINS, color=BLUE, edgecolor=GROUND)
        top.set_title(protocol)
        top.set_ylim(0, 1.02)
        bottom.set_ylim(0, 1)
        bottom.set_xlabel("reported confidence")
        bottom.axvline(SELF_UNCERTAINTY_ALPHA / 100, color=INK, linestyle=(0, (1, 2)), linewidth=1)
        top.axvline(SELF_UNCERTAINTY_ALPHA / 100, color=INK, linestyle=(0, (1, 2)), linewidth=1)
        last = int(np.flatnonzero(there)[-1])
        said.append(
            f"{protocol}: in the highest bin, {percent(share[last])} of the beliefs, mean confidence "
            f"{bins['confidence'][last]:.2f} meets a share right of {bins['accuracy'][last]:.2f}"
        )
    panels[0, 0].set_ylabel("share right")
    panels[1, 0].set_ylabel("beliefs\n(share)")
    alt = f"Reliability diagram in ten bins, a dotted line at confidence .7. {listed(said)}."
    return Drawing(figure, name, alt)


def tell_conditionals(table: pd.DataFrame) -> Text:
    """Say which conditional bounds the recall of an uncertainty-only policy, and what confidence is worth."""
    at = table.set_index(["protocol", "quantity"])
    lines = []
    for protocol in dict.fromkeys(table["protocol"]):
        rate = {name: at.loc[(protocol, name)] for name in at.loc[protocol].index}
        wrong, sure = rate["wrong given confident"]["rate"], rate["confident given wrong"]["rate"]
        auc = rate["AUC"]
        worth = (
            "cannot be told here"
            if np.isnan(auc["rate"])
            else "points to truth"
            if auc["low"] > 0.5
            else "points away from truth"
            if auc["high"] < 0.5
            else "says nothing that can be told from chance"
        )
        lines.append(
            f"* `{protocol}`: the proposition's ceiling on recall is 1 − {number(sure, 3)} = "
            f"{number(1 - sure, 3)}; with the canonical rate in its place it would read "
            f"{number(1 - wrong, 3)}. "
            f"Reported confidence {worth} (AUC {number(auc['rate'], 3)})."
        )
    return Text("\n".join(lines))
