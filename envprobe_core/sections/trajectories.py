"""Mean accuracy by time as each protocol watches it (section *collapse*)."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from envprobe_core.cells import Cell, make_cell
from envprobe_core.experiments import (
    DEFAULT_SEEDS,
    PROTOCOLS,
    Names,
    find_protocols,
    mean_track,
    names,
    read_seeds,
    record,
)
from envprobe_core.figures import GREY, POLICY_STYLES, WORLD_TITLES, Drawing, canvas, policy_title
from envprobe_core.markup import (
    Text,
    code,
    counted,
    listed,
)
from envprobe_core.metrics import COLLAPSE
from envprobe_core.protocols import parse_protocol
from envprobe_core.statistics import RESAMPLES
from envprobe_core.worlds import WORLDS

if TYPE_CHECKING:
    import pandas as pd
from envprobe_core.sections.collapse import SHOWN


def load_trajectories(
    policies: Names = SHOWN,
    regime: str = "S2",
    protocols: Names = PROTOCOLS,
    profile: str = "typical",
    seeds: str = DEFAULT_SEEDS,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Average the accuracy that each protocol watches, over the episodes that still run.

    Parameters are those of `load_grid`; `resamples` are the bootstrap's, over episodes.

    Returns:
        One row a protocol, world, policy and time: `protocol world policy` and the columns of `mean_track`.
    """
    import pandas as pd

    cells = [
        make_cell(world, policy, regime, protocol, profile)
        for protocol in find_protocols(protocols)
        for world in WORLDS
        for policy in names(policies)
    ]
    chosen = read_seeds(seeds)
    own = [cell.default_seeds() if chosen is None else chosen for cell in cells]
    tracks: dict[Cell, list[npt.NDArray[np.float64]]] = {cell: [] for cell in cells}
    for cell, _, recording in record(cells, own):
        tracks[cell].append(recording.accuracy)
    parts = []
    for (protocol, world), group in groupby(cells, key=lambda cell: (cell.protocol.name, cell.world)):
        several = [np.concatenate(tracks[cell]) for cell in group]  # one resampling for all policies
        curve = pd.DataFrame(mean_track(np.concatenate(several, axis=1), resamples))
        times = several[0].shape[1]
        curve["t"] %= times
        curve["policy"] = np.repeat(names(policies), times)
        parts.append(curve.assign(protocol=protocol, world=world))
    return pd.concat(parts, ignore_index=True)


def plot_trajectories(curves: pd.DataFrame, name: str = "trajectories") -> Drawing:
    """Draw the mean accuracy by time: a column a world, a row a protocol, a line a policy."""
    protocols, worlds = list(dict.fromkeys(curves["protocol"])), list(WORLDS)
    policies = list(dict.fromkeys(curves["policy"]))
    figure, panels = canvas(
        0.9 + 1.9 * len(protocols), rows=len(protocols), columns=len(worlds), sharex=True, sharey=True
    )
    for (protocol, world, policy), curve in curves.groupby(["protocol", "world", "policy"], sort=False):
        axes = panels[protocols.index(protocol), worlds.index(world)]
        style = POLICY_STYLES[policy]
        times = curve["t"].to_numpy()
        axes.fill_between(times, curve["low"], curve["high"], color=style.colour, alpha=0.18, linewidth=0)
        axes.plot(
            times, curve["accuracy"], color=style.colour, marker=style.marker, markevery=5, markersize=4,
            markerfacecolor=style.dot()["markerfacecolor"], label=policy_title(policy),
        )  # fmt: skip
    for axes in panels.ravel():
        axes.axhline(COLLAPSE, color=GREY, linestyle=(0, (4, 3)), linewidth=1)
        axes.set_ylim(0, 1.02)
    for axes, world in zip(panels[0], worlds, strict=True):
        axes.set_title(WORLD_TITLES[world])
    for axes, protocol in zip(panels[:, 0], protocols, strict=True):
        axes.set_ylabel(f"{protocol}\naccuracy (share)")
    panels[-1, len(worlds) // 2].set_xlabel("time t (steps)")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=min(len(labels), 3),
        columnspacing=1.2,
        frameon=False,
    )
    ends = curves[curves["accuracy"].notna()]
    least, most = ends["accuracy"].min(), ends["accuracy"].max()
    alt = (
        f"Mean accuracy by time for {listed([policy_title(p) for p in policies])} in three worlds under "
        f"{listed(protocols)}, between {least:.2f} and {most:.2f}; a dashed line marks {COLLAPSE}. "
        + _crossings(curves)
    )
    return Drawing(figure, name, alt)


def _crossings(curves: pd.DataFrame) -> str:
    """Say for each protocol which share of the mean curves ever runs below the threshold."""
    said = []
    for protocol, part in curves.groupby("protocol", sort=False):
        lowest = part.groupby(["world", "policy"])["accuracy"].min()
        below = int((lowest < COLLAPSE).sum())
        said.append(f"{below} of {len(lowest)} curves fall below it under {protocol}")
    return listed(said) + "."


def tell_reading(curves: pd.DataFrame) -> Text:
    """Say which accuracy each protocol watches and how many episodes carry the last points."""
    lines = []
    for protocol, part in curves.groupby("protocol", sort=False):
        rules = parse_protocol(str(protocol))
        what = (
            "the share of fields believed right"
            if rules.accuracy == "terminal"
            else "the weighted slot overlap"
        )
        when = (
            "" if rules.pairing == "same-step" else ", the belief before an action against the world after it"
        )
        last = part[part["t"] == part["t"].max()]
        ends = "" if rules.end == "horizon" else (
            f"; episodes stop at success, and {counted(int(last['running'].min()))} to "
            f"{counted(int(last['running'].max()))} of {counted(int(last['n'].max()))} still run at the end"
        )  # fmt: skip
        lines.append(f"* {code([str(protocol)])}: {what}{when}{ends}.")
    return Text("\n".join(lines))
