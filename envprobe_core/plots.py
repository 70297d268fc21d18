"""The figures of results: each `plot_*` takes a frame of the same section and returns a `Drawing`."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.claims.printed import paper_value
from envprobe_core.environments import idle
from envprobe_core.figures import (
    GREY,
    GROUND,
    INK,
    OTHER_DASHES,
    POLICY_STYLES,
    PROTOCOL_DASHES,
    STRATA,
    WORLD_TITLES,
    Drawing,
    canvas,
    interval,
    policy_title,
    styled,
)
from envprobe_core.markup import listed, number, signed
from envprobe_core.measures import COLLAPSE
from envprobe_core.worlds import WORLDS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

PRINTED = {"color": INK, "marker": "d", "markerfacecolor": GROUND, "linestyle": "none", "elinewidth": 1.2}
PRINTED_CHAINS = {  # where the paper prints the least and greatest chain length
    "tooldag": (("procedural", "chain"), ("procedural", "chain")),
    "objectstate": (("spatial", "chain_min"), ("spatial", "chain_max")),
    "graphnav": (("spatial", "chain_min"), ("spatial", "chain_max")),
}
STRATUM_WORLDS = {"procedural": "tools", "spatial": "rooms and graph", "combined": "all three worlds"}
COMPARED = ("no-probe", "periodic", "placebo", "simple")


@styled
def plot_gains(comparisons: pd.DataFrame) -> Drawing:
    """Draw the gain of Simple over Periodic in each stratum, ours under each protocol and the paper's.

    Args:
        comparisons: from `comparisons.load_comparisons`.
    """
    gains = comparisons[comparisons["reference"] == "periodic"]
    strata = [name for name in STRATA if name in set(gains["stratum"])]
    protocols = list(dict.fromkeys(gains["protocol"]))
    figure, panels = canvas(
        0.55 + len(strata) * (0.42 + 0.27 * (len(protocols) + 1)), rows=len(strata), sharex=True
    )
    told = []
    for axes, stratum in zip(panels[:, 0], strata, strict=True):
        rows = gains[gains["stratum"] == stratum].set_index("protocol")
        first = rows.iloc[0]
        interval(axes, first["paper_value"], first["paper_low"], first["paper_high"], 0, **PRINTED)
        for place, protocol in enumerate(protocols, start=1):
            row = rows.loc[protocol]
            interval(axes, row["estimate"], row["low"], row["high"], place, **POLICY_STYLES["simple"].dot())
        own = [f"{signed(rows.loc[p]['estimate'], 1)} under {p}" for p in protocols]
        told.append(f"{stratum}: {signed(first['paper_value'], 1)} in the paper, {listed(own)}")
        _zero(axes)
        axes.set_title(f"{stratum} ({STRATUM_WORLDS[stratum]})", loc="left")
        _rows(axes, ["printed", *(folded(f"ours: {name}") for name in protocols)])
    figure.supxlabel("gain in world-state accuracy, Simple − Periodic [points]", fontsize=9.5)
    alt = f"Gain of EnvProbe-Simple over Periodic in points, with intervals. {'; '.join(told)}."
    return Drawing(figure, "gains", alt)


@styled
def plot_accuracies(grid: pd.DataFrame, summary: pd.DataFrame) -> Drawing:
    """Draw the accuracy of No-Probe, Periodic, Placebo and Simple, a panel a world and protocol.

    Args:
        grid: episodes, for the order of protocols.
        summary: from `averages.mean_by(grid, "accuracy", ("protocol", "world", "policy"))`.
    """
    protocols = list(dict.fromkeys(grid["protocol"]))
    figure, panels = canvas(
        1.55 * len(WORLDS) + 0.5, rows=len(WORLDS), columns=len(protocols), sharex=True, sharey=True
    )
    told = []
    for across, protocol in enumerate(protocols):
        for down, world in enumerate(WORLDS):
            axes = panels[down, across]
            rows = summary[(summary["protocol"] == protocol) & (summary["world"] == world)].set_index(
                "policy"
            )
            for place, policy in enumerate(COMPARED):
                row = rows.loc[policy]
                interval(axes, row["mean"], row["low"], row["high"], place, **POLICY_STYLES[policy].dot())
            means = [f"{policy_title(p)} {number(rows.loc[p]['mean'], 2)}" for p in COMPARED]
            told.append(f"{WORLD_TITLES[world]} under {protocol}: {', '.join(means)}")
            axes.grid(axis="x")
            axes.set_title(folded(protocol) if down == 0 else "", loc="left")
            if across == 0:
                _rows(axes, [policy_title(policy) for policy in COMPARED])
                axes.set_ylabel(WORLD_TITLES[world])
    figure.supxlabel("world-state accuracy, by the protocol's own measure", fontsize=9.5)
    alt = f"World-state accuracy of four policies with intervals. {'; '.join(told)}."
    return Drawing(figure, "accuracies", alt)


@styled
def plot_drift(drift: pd.DataFrame) -> Drawing:
    """Draw the accuracy A_t of No-Probe through the episode, a panel a world, a line a protocol.

    Args:
        drift: from `experiments.load_drift`.
    """
    protocols = list(dict.fromkeys(drift["protocol"]))
    figure, panels = canvas(2.15 * len(WORLDS) + 0.4, rows=len(WORLDS), sharex=True, sharey=True)
    told = []
    for axes, world in zip(panels[:, 0], WORLDS, strict=True):
        for protocol, dash in zip(protocols, _dashes(protocols), strict=True):
            curve = drift[(drift["world"] == world) & (drift["protocol"] == protocol)]
            axes.fill_between(curve["t"], curve["low"], curve["high"], color=GREY, alpha=0.3, lw=0)
            axes.plot(curve["t"], curve["accuracy"], color=INK, ls=dash, label=folded(protocol))
            seen = curve[curve["accuracy"].notna()]
            ends = [number(seen["accuracy"].iloc[place], 2) for place in (0, -1)]
            told.append(f"{WORLD_TITLES[world]} under {protocol} from {ends[0]} to {ends[1]}")
        axes.axhline(COLLAPSE, color=INK, lw=0.8, ls=(0, (1, 3)))
        axes.grid(axis="y")
        axes.set_ylim(0, 1.02)
        axes.set_xlim(0, drift["t"].max())
        axes.set_title(WORLD_TITLES[world], loc="left")
        axes.set_ylabel("accuracy")
    panels[-1, 0].set_xlabel("step")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(protocols), handlelength=3)
    alt = f"Accuracy of No-Probe by step, with intervals: {'; '.join(told)}."
    return Drawing(figure, "drift", alt)


@styled
def plot_chains(frame: pd.DataFrame, regime: str = "S2") -> Drawing:
    """Draw how the lengths of shortest plans are distributed, with the paper's figures.

    Args:
        frame: from `experiments.load_environments`.
        regime: name of a regime of the frame.
    """
    chosen = idle(frame, regime)
    longest = int(chosen["chain_length"].max())
    figure, panels = canvas(1.75 * len(WORLDS) + 0.4, rows=len(WORLDS), sharex=True)
    told = []
    for axes, world in zip(panels[:, 0], WORLDS, strict=True):
        low, high = (paper_value("fig:pareto_spatial", *name).value for name in PRINTED_CHAINS[world])
        axes.axvspan(low - 0.5, high + 0.5, color=GREY, alpha=0.25, lw=0)
        for protocols, lengths in _distributions(chosen[chosen["world"] == world]).items():
            values, counts = np.unique(lengths, return_counts=True)
            shares = counts / len(lengths)
            first = not axes.lines
            axes.vlines(values, 0, shares, color=INK, lw=1.2, ls="-" if first else (0, (2, 2)))
            face = INK if first else GROUND
            axes.plot(values, shares, "o", ms=5, color=INK, markerfacecolor=face, label=listed(protocols))
            told.append(
                f"{WORLD_TITLES[world]} under {listed(protocols)}: mean {number(lengths.mean(), 1)}, "
                f"from {int(lengths.min())} to {int(lengths.max())}"
            )
        axes.set_title(WORLD_TITLES[world], loc="left")
        axes.set_ylabel("share")
        axes.set_ylim(0, None)
        axes.set_xlim(0, longest + 1)
        axes.legend(loc="upper right", handletextpad=0.2)
    panels[-1, 0].set_xlabel("length of the shortest plan at step 0 [actions]")
    alt = (
        f"Distribution of chain lengths. {'; '.join(told)}. The paper gives 9 for tools and 3 to 5 elsewhere."
    )
    return Drawing(figure, "chains", alt)


def folded(name: str) -> str:
    """Break the name of a protocol with switches turned after each of them."""
    return (
        name.replace(":", ":\n", 1).replace("ours:\n", "ours: ", 1).replace(",", ",\n")
        if "=" in name
        else name
    )


def _distributions(rows: pd.DataFrame) -> dict[tuple[str, ...], np.ndarray]:
    """Group protocols whose instances have the same plan lengths: protocols -> lengths [seed]."""
    found: dict[bytes, tuple[list[str], np.ndarray]] = {}
    for protocol in dict.fromkeys(rows["protocol"]):
        lengths = np.sort(rows.loc[rows["protocol"] == protocol, "chain_length"].to_numpy())
        found.setdefault(lengths.tobytes(), ([], lengths))[0].append(protocol)
    return {tuple(protocols): lengths for protocols, lengths in found.values()}


def _dashes(protocols: list[str]) -> list[object]:
    """Return each protocol's line style: its own, or the next free one where switches are turned."""
    others = itertools.cycle(OTHER_DASHES)
    return [PROTOCOL_DASHES[name] if name in PROTOCOL_DASHES else next(others) for name in protocols]


def _rows(axes: Axes, labels: list[str]) -> None:
    """Label the rows of a panel from top to bottom."""
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.5, -0.5)


def _zero(axes: Axes) -> None:
    """Mark zero on the horizontal axis."""
    axes.axvline(0, color=INK, lw=0.9)
    axes.grid(axis="x")
