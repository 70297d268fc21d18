"""The figures of section *protocol-audit*."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.figures import BLUE, GREY, INK, VERMILLION, Drawing, canvas, interval, styled
from envprobe_core.markup import number, signed
from envprobe_core.plots import folded
from envprobe_core.protocol_audit.headlines import HEADLINES
from envprobe_core.protocol_audit.tables import bases
from envprobe_core.sections.report import rows_from_top

if TYPE_CHECKING:
    import pandas as pd


@styled
def plot_tornado(effects: pd.DataFrame, claim: str) -> Drawing:
    """Draw what each switch, turned alone, makes of a headline: one panel a protocol started from.

    Bars lead from the figure as it is to the figure after the switch is turned, the widest on top; whiskers
    are the paired interval of the change.

    Args:
        effects: from `turning.turned_alone`.
        claim: the headline's name.
    """
    (headline,) = (one for one in HEADLINES if one.claim == claim)
    shown = effects[effects["claim"] == claim]
    starts = bases(effects)
    count = int((shown["switch"] != "").sum()) // len(starts)
    figure, panels = canvas(0.6 + (0.45 + 0.2 * count) * len(starts), rows=len(starts), sharex=True)
    told = []
    for axes, base in zip(panels[:, 0], starts, strict=True):
        part = shown[shown["base"] == base]
        own = part[part["switch"] == ""].iloc[0]
        turned = part[part["switch"] != ""]
        order = np.argsort(-turned["estimate"].abs().fillna(-1.0).to_numpy(), kind="stable")
        turned = turned.iloc[order]
        before = own["estimate"]
        for place, row in enumerate(turned.itertuples()):
            if not np.isfinite(row.estimate):
                continue
            colour = BLUE if row.estimate > 0 else VERMILLION if row.estimate < 0 else GREY
            axes.barh(place, row.estimate, left=before, height=0.66, color=colour, alpha=0.45, lw=0)
            dot = {"color": colour, "marker": "o", "markersize": 3.5, "linestyle": "none", "elinewidth": 1.3}
            interval(axes, row.after, before + row.low, before + row.high, place, ends=False, **dot)
        axes.axvline(before, color=INK, lw=1.0)
        axes.axvline(0, color=INK, lw=0.8, ls=(0, (1, 3)))
        axes.grid(axis="x")
        axes.set_title(f"from {folded(base)}: {number(before, 1)}", loc="left")
        rows_from_top(axes, [f"{row.switch}={row.value}" for row in turned.itertuples()])
        axes.tick_params(axis="y", labelsize=8)
        moved = [
            f"{row.switch}={row.value} {signed(row.estimate, 1)}"
            for row in turned.itertuples()
            if row.estimate
        ]
        told.append(f"from {base} ({number(before, 1)}): {', '.join(moved) or 'nothing moves'}")
    figure.supxlabel(f"{headline.title} [{headline.unit}]", fontsize=9.5)
    alt = f"What each switch, turned alone, changes in: {headline.title}. {'; '.join(told)}."
    return Drawing(figure, f"audit-{claim}", alt)
