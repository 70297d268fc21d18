"""The figures of section *decomposition*."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.decomposition.hybrids import FACTOR_NAMES
from envprobe_core.decomposition.splitting import GAIN, START
from envprobe_core.decomposition.tables import shown_parts
from envprobe_core.figures import (
    AMBER,
    BLUE,
    GREEN,
    GREY,
    INK,
    POLICY_STYLES,
    PURPLE,
    VERMILLION,
    WORLD_TITLES,
    Drawing,
    canvas,
    interval,
    policy_title,
    styled,
)
from envprobe_core.markup import signed
from envprobe_core.plots import folded
from envprobe_core.sections.report import rows_from_top

if TYPE_CHECKING:
    import pandas as pd

COLOURS = {START: GREY} | dict(zip(FACTOR_NAMES, (BLUE, VERMILLION, GREEN, PURPLE, AMBER), strict=True))


@styled
def plot_parts(splits: pd.DataFrame, reference: str, policy: str = "simple") -> Drawing:
    """Draw the parts of one policy's gain with their intervals, a panel a protocol and world.

    Args:
        splits: from `splitting.split_gains`.
        reference: `periodic` or `no-probe`.
        policy: whose gain.
    """
    own = splits[
        (splits["reference"] == reference) & (splits["policy"] == policy) & (splits["game"] == "own")
    ]
    protocols, worlds = (list(dict.fromkeys(own[name])) for name in ("protocol", "world"))
    figure, panels = canvas(
        0.5 + 1.75 * len(protocols), rows=len(protocols), columns=len(worlds), sharex=True, sharey=True
    )
    parts, told = shown_parts(reference), []
    for down, protocol in enumerate(protocols):
        for across, world in enumerate(worlds):
            axes = panels[down, across]
            part = own[(own["protocol"] == protocol) & (own["world"] == world)]
            axes.axvline(0, color=INK, lw=0.8)
            for row in part[part["part"].isin(parts)].itertuples():
                place = parts.index(row.part)
                colour = INK if row.part == GAIN else COLOURS[row.part]
                axes.barh(place, row.value, height=0.6, color=colour, alpha=0.4, lw=0)
                style = POLICY_STYLES[policy].dot(color=colour, marker="none")
                interval(axes, row.value, row.low, row.high, place, **style)
            axes.grid(axis="x")
            axes.locator_params(axis="x", nbins=5)
            if down == 0:
                axes.set_title(WORLD_TITLES[world], loc="left", fontsize=8.5)
            if across == 0:
                axes.set_ylabel(folded(protocol))
            values = ", ".join(
                f"{row.part} {signed(row.value, 1)}"
                for row in part.itertuples()
                if row.part in parts and row.value
            )
            told.append(f"{WORLD_TITLES[world]} under {protocol}: {values}")
    rows_from_top(panels[0, 0], parts)
    figure.supxlabel("points of accuracy", fontsize=9.5)
    alt = (
        f"Parts of the gain of {policy_title(policy)} over {policy_title(reference)}, in points. "
        f"{'; '.join(told)}."
    )
    return Drawing(figure, f"decomposition-parts-{reference}", alt)


@styled
def plot_stacks(splits: pd.DataFrame, reference: str) -> Drawing:
    """Draw every policy's gain as a stack of its parts, gains to the right of 0 and losses to the left.

    Args:
        splits: from `splitting.split_gains`.
        reference: `periodic` or `no-probe`.
    """
    from matplotlib.patches import Patch

    own = splits[(splits["reference"] == reference) & (splits["game"] == "own")]
    protocols, worlds, policies = (list(dict.fromkeys(own[name])) for name in ("protocol", "world", "policy"))
    figure, panels = canvas(
        0.9 + (0.35 + 0.19 * len(policies)) * len(protocols),
        rows=len(protocols),
        columns=len(worlds),
        sharex=True,
        sharey=True,
    )
    told = []
    keyed = {(row.protocol, row.world, row.policy, row.part): row for row in own.itertuples()}
    for down, protocol in enumerate(protocols):
        for across, world in enumerate(worlds):
            axes = panels[down, across]
            ends = np.zeros((2, len(policies)))  # where the next piece begins, left and right of 0
            for name, colour in COLOURS.items():
                rows = [keyed.get((protocol, world, policy, name)) for policy in policies]
                sizes = np.array([row.value if row else 0.0 for row in rows])
                if sizes.any():
                    side, places = (sizes > 0).astype(int), np.arange(len(policies))
                    axes.barh(places, sizes, left=ends[side, places], height=0.72, color=colour, lw=0)
                    ends[side, places] += sizes
            whole = [keyed[protocol, world, policy, GAIN] for policy in policies]
            value, low, high = (
                np.array([getattr(row, name) for row in whole]) for name in ("value", "low", "high")
            )
            error = np.nan_to_num(np.maximum([value - low, high - value], 0.0))
            dot = POLICY_STYLES["no-probe"].dot(markersize=3.6, elinewidth=1.1)
            axes.errorbar(value, range(len(policies)), xerr=error, **dot)
            told += [
                f"{policy_title(row.policy)} in {WORLD_TITLES[world]} under {protocol} {signed(row.value, 1)}"
                for row in whole
            ]
            axes.axvline(0, color=INK, lw=0.8)
            axes.grid(axis="x")
            axes.locator_params(axis="x", nbins=5)
            if down == 0:
                axes.set_title(WORLD_TITLES[world], loc="left", fontsize=8.5)
            if across == 0:
                axes.set_ylabel(folded(protocol))
    rows_from_top(panels[0, 0], [policy_title(name) for name in policies])
    for axes in panels[:, 0]:
        axes.tick_params(axis="y", labelsize=7.5)
    shown = [name for name in COLOURS if name in shown_parts(reference) and name in set(own["part"])]
    handles = [Patch(facecolor=COLOURS[name], label=name, lw=0) for name in shown]
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    figure.supxlabel(f"gain over {policy_title(reference)}, points of accuracy", fontsize=9.5)
    alt = (
        f"Gains over {policy_title(reference)} as stacks of five factors, with the total and its interval. "
        f"Totals in points: {'; '.join(told)}."
    )
    return Drawing(figure, f"decomposition-stacks-{reference}", alt)
