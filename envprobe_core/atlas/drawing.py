"""The atlas in figures; place says what colour says, for the colour-blind and for both page colours."""

from __future__ import annotations

from typing import Any

import numpy as np

from envprobe_core.atlas.deciding import DECIDES, Sensitivity, slices
from envprobe_core.atlas.design import BOX, NAMES, values_of
from envprobe_core.atlas.fitting import Subset
from envprobe_core.atlas.questions import HEADLINES
from envprobe_core.atlas.running import Atlas
from envprobe_core.atlas.tables import is_level, sections, shares
from envprobe_core.claims import Claim
from envprobe_core.figures import BLUE, GREY, INK, VERMILLION, Drawing, canvas
from envprobe_core.markup import percent

ROW = 0.165  # inches
MARK: dict[str, Any] = {"linestyle": "none", "color": INK, "markersize": 5, "markeredgewidth": 1.6}


def plot_shares(atlas: Atlas, subset: Subset | None) -> Drawing:
    """Draw each comparison's shares of agents: holds from the left, reverses from the right.

    Claims that a number comes out as printed are left to the tables.
    """
    groups = [[at for at in part if not is_level(atlas.claims[at])] for _, part in sections(atlas)]
    groups = [positions for positions in groups if positions]
    order = [at for positions in groups for at in positions]
    box = shares(atlas)
    near = None if subset is None else shares(atlas, subset.members)
    figure, panels = canvas(1.0 + ROW * len(order), columns=len(atlas.protocols), sharex=True, sharey=True)
    y = np.arange(len(order))
    for protocol, axes in enumerate(panels[0]):
        part = np.nan_to_num(box[protocol, order])
        axes.barh(y, part[:, 0], height=0.78, color=BLUE, linewidth=0, label="holds")
        axes.barh(
            y, part[:, 2], left=1 - part[:, 2], height=0.78, color=VERMILLION, linewidth=0, label="reverses"
        )
        untested = np.flatnonzero(np.isnan(box[protocol, order, 0]))
        axes.plot(np.full(len(untested), 0.5), untested, label="not testable", **MARK | {"marker": "_"})
        if near is not None and subset is not None:
            held = near[protocol, order, 0]
            axes.plot(held, y, label=f"holds, {subset.title}", **MARK | {"marker": "|"})
        start = 0
        for positions in groups[:-1]:
            start += len(positions)
            axes.axhline(start - 0.5, color=GREY, linewidth=0.5)
        axes.set_title(atlas.protocols[protocol], fontsize=9)
        axes.set_xlim(-0.02, 1.02)
        axes.set_xticks([0, 0.5, 1], ["0", "50", "100"])
        axes.tick_params(axis="y", length=0, labelsize=6.5)
    first = panels[0, 0]
    first.set_yticks(y, [atlas.claims[at].id for at in order])
    first.set_ylim(len(order) - 0.5, -0.5)
    figure.supxlabel("agents [percent]", fontsize=9)
    handles, labels = first.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, fontsize=8)
    told = [
        f"under {name}, {np.mean(box[row, order, 0] > 0.5):.0%} of them hold and "
        f"{np.mean(box[row, order, 2] > 0.5):.0%} reverse for most agents"
        for row, name in enumerate(atlas.protocols)
    ]
    alt = f"Bars of {len(order)} comparisons by {len(atlas.protocols)} protocols: {'; '.join(told)}."
    return Drawing(figure, "atlas-shares", alt)


def plot_deciding(atlas: Atlas, found: Sensitivity, claims: tuple[str, ...] = HEADLINES) -> Drawing:
    """Draw the support of some claims along the behaviour that explains most of it."""
    figure, panels = canvas(
        0.4 + 1.65 * len(claims), rows=len(claims), columns=len(atlas.protocols), sharey="row"
    )
    values = np.array([values_of(profile) for profile in atlas.profiles])
    told = []
    for row, name in enumerate(claims):
        at = next(place for place, claim in enumerate(atlas.claims) if claim.id == name)
        claim = atlas.claims[at]
        for column, protocol in enumerate(atlas.protocols):
            axes, axis = panels[row, column], max(int(found.first[column, at]), 0)
            if found.first[column, at] < 0:
                axes.spines[:].set_visible(False)
                axes.tick_params(left=False, bottom=False, labelleft=False, labelbottom=False)
                axes.text(0.5, 0.5, "never varies,\nor not testable", ha="center", transform=axes.transAxes)
                axes.set_title(protocol if row == 0 else "", fontsize=9.5)
                continue
            _bands(axes, values[:, axis], atlas.support[column, :, at])
            share = found.share[column, at, axis]
            axes.set_xlabel(f"{NAMES[axis]} ({percent(share)})", fontsize=8, labelpad=1)
            axes.tick_params(labelsize=7.5)
            if BOX[axis].kind == "habit":
                axes.set_xticks([0, 1], ["no", "yes"])
            if row == 0:
                axes.set_title(protocol, fontsize=9.5)
            if share >= DECIDES:
                told.append(f"{name} under {protocol} by {NAMES[axis]}")
        panels[row, 0].set_ylabel(f"{name}\n[{_unit(claim)}]", fontsize=8)
    alt = (
        "Support of claims along the behaviour that explains most of it, zero is the border between support "
    )
    alt += f"and refutation. Decided: {'; '.join(told) or 'none by a single behaviour'}."
    return Drawing(figure, "atlas-deciding", alt)


def _unit(claim: Claim) -> str:
    return {"points": "points", "share": "share", "steps": "steps", "count": "probes"}[claim.unit]


def _bands(axes: Any, values: np.ndarray, support: np.ndarray) -> None:
    """Draw, slice by slice along a behaviour, the median support and where the middle 80% of agents lie."""
    known = ~np.isnan(support)
    axes.axhline(0, color=GREY, linewidth=0.8, linestyle=(0, (3, 2)))
    if not known.any():
        return
    values, support = values[known], support[known]
    cut = slices(values)
    for number in range(cut.max() + 1):
        own = cut == number
        if not own.any():
            continue
        low, middle, high = np.quantile(support[own], [0.1, 0.5, 0.9])
        colour, marker = (BLUE, "o") if middle > 0 else (VERMILLION, "v")
        x = values[own].mean()
        axes.plot([x, x], [low, high], color=colour, linewidth=1.3)
        axes.plot([x], [middle], color=colour, marker=marker, markersize=4.5, linestyle="none")
