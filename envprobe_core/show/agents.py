"""Figures of many agents: the shares of the atlas, what decides a claim, the space of targets."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd

from envprobe_core.analyses.calibration import TARGETS
from envprobe_core.atlas.deciding import DECIDES, Sensitivity, slices
from envprobe_core.atlas.design import BOX, NAMES, values_of
from envprobe_core.atlas.questions import HEADLINES
from envprobe_core.atlas.running import Atlas
from envprobe_core.protocols import in_words
from envprobe_core.show.figures import (
    AMBER,
    BLUE,
    GREEN,
    GREY,
    GROUND,
    INK,
    PURPLE,
    SKY,
    VERMILLION,
    Drawing,
    canvas,
    styled,
)
from envprobe_core.show.markup import number, percent

ROW = 0.145  # inches
MARK: dict[str, Any] = {"linestyle": "none", "color": INK, "markersize": 5, "markeredgewidth": 1.6}
PAPER_STYLE = {"marker": "d", "color": INK, "markerfacecolor": GROUND, "linestyle": "none", "markersize": 8}
STYLES = {
    "calibrated": ("o", BLUE),
    "typical": ("s", VERMILLION),
    "careful": ("^", GREEN),
    "overconfident": ("v", PURPLE),
    "perfect": ("P", AMBER),
}
UNITS = {"points": "points", "share": "share", "steps": "steps", "count": "probes"}


@styled
def draw_shares(box: pd.DataFrame, near: pd.DataFrame | None = None, title: str = "") -> Drawing:
    """Draw each comparison's shares of agents by section: holds from the left, reverses from the right.

    Args:
        box: from `atlas.sharing.shares`; claims that a number comes out as printed are left out.
        near: the same of some agents.
        title: what to call those.
    """
    box = box[~box["level"]]
    order = box[["section", "claim"]].drop_duplicates()
    names, protocols = list(order["claim"]), list(box["protocol"].unique())
    figure, panels = canvas(1.0 + ROW * len(names), columns=len(protocols), sharex=True, sharey=True)
    y, told = np.arange(len(names)), []
    ends = np.flatnonzero(order["section"].to_numpy()[1:] != order["section"].to_numpy()[:-1]) + 0.5
    for protocol, axes in zip(protocols, panels[0], strict=True):
        own = box[box["protocol"] == protocol].set_index("claim").loc[names]
        held, against = own["holds"].fillna(0), own["reverses"].fillna(0)
        axes.barh(y, held, height=0.78, color=BLUE, linewidth=0, label="holds")
        axes.barh(
            y, against, left=100 - against, height=0.78, color=VERMILLION, linewidth=0, label="reverses"
        )
        untested = np.flatnonzero(own["holds"].isna())
        axes.plot(np.full(len(untested), 50), untested, label="not testable", **MARK | {"marker": "_"})
        if near is not None:
            marks = near[near["protocol"] == protocol].set_index("claim").loc[names, "holds"]
            axes.plot(marks, y, label=f"holds, {title}", **MARK | {"marker": "|"})
        for end in ends:
            axes.axhline(end, color=GREY, linewidth=0.5)
        axes.set_title(in_words(protocol), fontsize=9)
        axes.set_xlim(-2, 102)
        axes.set_xticks([0, 50, 100])
        axes.tick_params(axis="y", length=0, labelsize=8)
        told.append(
            f"{in_words(protocol)}, {np.mean(own['holds'] > 50):.0%} of them hold and "
            f"{np.mean(own['reverses'] > 50):.0%} reverse for most agents"
        )
    sections = pd.Series(y).groupby(order["section"].to_numpy(), sort=False).mean()
    panels[0, 0].set_yticks(sections, [name.replace("-", " ") for name in sections.index])
    panels[0, 0].set_ylim(len(names) - 0.5, -0.5)
    figure.supxlabel("agents [percent]", fontsize=9)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, fontsize=8)
    alt = f"Bars of {len(names)} comparisons by {len(protocols)} protocols: {'; '.join(told)}."
    return Drawing(figure, "atlas-shares", alt)


@styled
def draw_deciding(atlas: Atlas, found: Sensitivity, claims: tuple[str, ...] = HEADLINES) -> Drawing:
    """Draw the support of some claims along the behaviour that explains most of it."""
    figure, panels = canvas(
        0.4 + 1.65 * len(claims), rows=len(claims), columns=len(atlas.protocols), sharey="row"
    )
    values = np.array([values_of(profile) for profile in atlas.profiles])
    told = []
    for row, name in enumerate(claims):
        at, claim = next((place, one) for place, one in enumerate(atlas.claims) if one.id == name)
        for column, protocol in enumerate(atlas.protocols):
            axes, axis = panels[row, column], max(int(found.first[column, at]), 0)
            axes.set_title(in_words(protocol) if row == 0 else "", fontsize=9.5)
            if found.first[column, at] < 0:
                axes.spines[:].set_visible(False)
                axes.tick_params(left=False, bottom=False, labelleft=False, labelbottom=False)
                axes.text(0.5, 0.5, "never varies,\nor not testable", ha="center", transform=axes.transAxes)
                continue
            _bands(axes, values[:, axis], atlas.support[column, :, at])
            axes.tick_params(labelleft=not (found.first[:column, at] >= 0).any())
            share = found.share[column, at, axis]
            axes.set_xlabel(f"{NAMES[axis]} ({percent(share)})", fontsize=8, labelpad=1)
            axes.tick_params(labelsize=7.5)
            if BOX[axis].kind == "habit":
                axes.set_xticks([0, 1], ["no", "yes"])
            if share >= DECIDES:
                told.append(f"{claim.statement} ({in_words(protocol)}): by {NAMES[axis]}")
        named = f"{claim.statement} [{UNITS[claim.unit]}]"
        panels[row, 0].set_ylabel(fill(named, 30, break_on_hyphens=False), fontsize=8)
    alt = (
        "Support of claims along the behaviour that explains most of it, zero is the border between support "
        f"and refutation. Decided: {'; '.join(told) or 'none by a single behaviour'}."
    )
    return Drawing(figure, "atlas-deciding", alt)


def _bands(axes: Any, values: np.ndarray, support: np.ndarray) -> None:
    """Draw, slice by slice along a behaviour, the median support and where the middle 80% of agents lie."""
    known = ~np.isnan(support)
    axes.axhline(0, color=GREY, linewidth=0.8, linestyle=(0, (3, 2)))
    values, support = values[known], support[known]
    cut = slices(values) if len(values) else values
    for own in (cut == place for place in np.unique(cut)):
        low, middle, high = np.quantile(support[own], [0.1, 0.5, 0.9])
        colour, marker = (BLUE, "o") if middle > 0 else (VERMILLION, "v")
        x = values[own].mean()
        axes.plot([x, x], [low, high], color=colour, linewidth=1.3)
        axes.plot([x], [middle], color=colour, marker=marker, markersize=4.5, linestyle="none")


@styled
def draw_space(space: pd.DataFrame) -> Drawing:
    """Draw agents in the space of targets: two accuracies on spatial worlds, and tools against p_cw.

    Args:
        space: from `calibration.compare_targets`; agents of the atlas are drawn as one cloud.
    """
    wide, paper = (
        space.pivot(index="profile", columns="symbol", values="ours"),
        {target.symbol: target.value for target in TARGETS},
    )
    pairs = (("No-Probe (spatial)", "Periodic (spatial)"), ("Periodic (procedural)", "confident-wrong rate"))
    figure, panels = canvas(3.5, columns=2)
    sampled, told = wide.index.str.startswith("atlas-"), []
    for axes, (x, y) in zip(panels[0], pairs, strict=True):
        axes.plot(
            wide[x][sampled], wide[y][sampled], ".", color=GREY, label=f"{sampled.sum()} sampled agents"
        )
        for agent in wide.index[~sampled]:
            marker, colour = STYLES.get(agent, ("X", SKY))
            axes.plot(wide[x][agent], wide[y][agent], marker=marker, color=colour, ls="none", label=agent)
        axes.plot(paper[x], paper[y], label="the paper", **PAPER_STYLE)
        axes.set_xlabel(f"{x} (share)")
        axes.set_ylabel(f"{y} (share)")
        axes.margins(0.08)
        ends = ((number(wide[name].min(), 2), number(wide[name].max(), 2)) for name in (x, y))
        across, up = (" to ".join(one) for one in ends)
        told.append(
            f"{y} against {x}: the paper at ({number(paper[x], 3)}, {number(paper[y], 3)}), all agents from "
            f"{across} across and {up} up"
        )
    panels[0, 0].axline((0.25, 0.25), (0.6, 0.6), color=GREY, linewidth=0.8, linestyle=(0, (4, 3)))
    panels[0, 1].set_ylim(0, 1)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    alt = f"Agents in the space of targets. {'; '.join(told)}. A dashed line marks equal spatial accuracies."
    return Drawing(figure, "calibration-space", alt)
