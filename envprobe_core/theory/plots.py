"""The figures of the theory section; each returns a `Drawing`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from envprobe_core.figures import (
    GREY,
    GROUND,
    INK,
    POLICY_STYLES,
    WORLD_TITLES,
    Drawing,
    canvas,
    interval,
    policy_title,
    styled,
)
from envprobe_core.markup import listed, number, signed
from envprobe_core.theory.gains import SCORES
from envprobe_core.theory.quality import EPISODE_POLICIES
from envprobe_core.theory.singles import SingleGains, mean_gains
from envprobe_core.theory.tables import POINTS, score_title, title_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN_FIELDS = 8
PROXY = {"color": GREY, "marker": "d", "markerfacecolor": GROUND, "linestyle": "none", "elinewidth": 1.0}


@styled
def plot_quality(quality: pd.DataFrame) -> Drawing:
    """Draw gamma of every score by definition and by proxy, a panel a world and type that has gains.

    Args:
        quality: from `gains.quality_frame`.
    """
    kinds = [
        key for key, part in quality.groupby(["world", "kind"], sort=False) if part["gamma"].notna().any()
    ]
    shown = kinds or [tuple(quality[["world", "kind"]].iloc[0])]
    figure, panels = canvas(0.5 + 2.9 * len(shown), rows=len(shown), sharex=True)
    told = []
    for axes, (world, kind) in zip(panels[:, 0], shown, strict=True):
        rows = quality[(quality["world"] == world) & (quality["kind"] == kind)].set_index("score")
        for place, score in enumerate(SCORES):
            row = rows.loc[score]
            if row["gamma"] == row["gamma"]:
                style = POLICY_STYLES.get(EPISODE_POLICIES.get(score, ""), POLICY_STYLES["no-probe"])
                interval(axes, row["proxy"], row["proxy_low"], row["proxy_high"], place + 0.22, **PROXY)
                interval(axes, row["gamma"], row["gamma_low"], row["gamma_high"], place - 0.12, **style.dot())
        axes.axvline(0, color=INK, lw=0.9)
        axes.axvline(1, color=INK, lw=0.8, ls=(0, (1, 3)))
        axes.grid(axis="x")
        axes.set_yticks(range(len(SCORES)), [score_title(score) for score in SCORES])
        axes.set_ylim(len(SCORES) - 0.5, -0.5)
        axes.set_title(title_of(world, kind), loc="left")
        named = [f"{score_title(s)} {number(rows.loc[s]['gamma'])}" for s in SCORES]
        told.append(f"{title_of(world, kind)}: {', '.join(named)}")
    panels[-1, 0].set_xlabel("marginal quality γ (coloured), gain over Oracle-TW's (grey)")
    alt = f"Marginal quality of each score by definition, with intervals. {'; '.join(told)}."
    return Drawing(figure, "theory-quality", alt)


@styled
def plot_single_gains(runs: Sequence[SingleGains], resamples: int) -> Drawing:
    """Draw the gain of repairing each field alone, the largest first, with the uniform mean.

    Args:
        runs: from `singles.load_singles`.
        resamples: of the intervals.
    """
    kinds = [(run, kind) for run in runs for kind in run.setting.types]
    figure, panels = canvas(0.4 + 2.0 * len(kinds), rows=len(kinds), sharex=True)
    told = []
    for axes, (run, kind) in zip(panels[:, 0], kinds, strict=True):
        gains = mean_gains(run, kind, resamples)
        shown = gains.head(SHOWN_FIELDS)
        mean = POINTS * gains["q"].mean()
        for place, row in enumerate(shown.itertuples()):
            ends = (POINTS * row.low, POINTS * row.high)
            interval(axes, POINTS * row.q, *ends, place, **POLICY_STYLES["simple"].dot())
        axes.axvline(mean, color=INK, lw=1.0, ls=(0, (5, 2)))
        axes.axvline(0, color=INK, lw=0.9)
        axes.grid(axis="x")
        axes.set_yticks(range(len(shown)), shown["field"])
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.set_title(f"{title_of(run.setting.world.name, kind)}: {len(gains)} fields", loc="left")
        first = shown.iloc[0]
        told.append(
            f"{title_of(run.setting.world.name, kind)}: mean {signed(mean, 2)}, largest {first['field']} "
            f"{signed(POINTS * first['q'], 2)}"
        )
    panels[-1, 0].set_xlabel("gain of repairing the field alone, $q_i$ [points]; dashed: mean of all fields")
    return Drawing(figure, "theory-singles", f"Gain of single repairs with intervals. {'; '.join(told)}.")


@styled
def plot_displacement(table: pd.DataFrame) -> Drawing:
    """Draw measured success against the displacement bound, a panel a world and protocol.

    Args:
        table: from `displacement.load_displacement`.
    """
    figure, panels = _by_world_and_protocol(table, "success")
    told = []
    for axes, world, protocol, rows in panels:
        axes.plot([0, 1], [0, 1], color=INK, lw=0.9, ls=(0, (5, 2)))
        for row in rows.itertuples():
            error = [[max(0.0, row.success - row.low)], [max(0.0, row.high - row.success)]]
            axes.errorbar(
                [row.bound], [row.success], yerr=error, capsize=2, label=policy_title(row.policy),
                **POLICY_STYLES[row.policy].dot(elinewidth=1.2),
            )  # fmt: skip
        axes.set_xlim(0, 1.05)
        axes.set_ylim(0, 1.05)
        above = [policy_title(row.policy) for row in rows.itertuples() if row.exceeds]
        told.append(f"{WORLD_TITLES[world]} under {protocol}: above the line {listed(above)}")
    figure.supxlabel(r"displacement bound $E[\min(1, \eta N / K)]$", fontsize=10)
    _legend(figure, panels[0][0])
    return Drawing(figure, "theory-displacement", f"Success against its bound. {'; '.join(told)}.")


@styled
def plot_frontier(frontier: pd.DataFrame) -> Drawing:
    """Draw accuracy against success as the budget grows, a panel a world and protocol.

    Args:
        frontier: from `frontier.frontier_frame`.
    """
    figure, panels = _by_world_and_protocol(frontier, "accuracy $A_H$")
    told = []
    for axes, world, protocol, here in panels:
        for policy in dict.fromkeys(here["policy"]):
            rows = here[here["policy"] == policy].sort_values("budget")
            style = POLICY_STYLES[policy]
            error = [
                [
                    (rows[name] - rows[f"{name}_low"]).clip(lower=0),
                    (rows[f"{name}_high"] - rows[name]).clip(lower=0),
                ]
                for name in ("success", "accuracy")
            ]
            axes.plot(rows["success"], rows["accuracy"], color=style.colour, lw=1.0)
            axes.errorbar(
                rows["success"], rows["accuracy"], xerr=error[0], yerr=error[1],
                label=policy_title(policy), **style.dot(elinewidth=0.6, ms=3),
            )  # fmt: skip
            ends = [rows.iloc[place] for place in (0, -1)]
            path = [f"({number(e['success'])}, {number(e['accuracy'])})" for e in ends]
            told.append(
                f"{WORLD_TITLES[world]}, {protocol}, {policy_title(policy)} from {path[0]} to {path[1]}"
            )
        start = here[here["budget"] == 0].iloc[0]
        axes.errorbar(
            [start["success"]], [start["accuracy"]], **POLICY_STYLES["no-probe"].dot(ms=9, zorder=5)
        )
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(0, 1.02)
    figure.supxlabel("task success; the open circle is a budget of 0", fontsize=10)
    _legend(figure, panels[0][0])
    alt = f"Success and accuracy as the budget grows from none to the horizon. {'; '.join(told)}."
    return Drawing(figure, "theory-frontier", alt)


def _by_world_and_protocol(
    frame: pd.DataFrame, measure: str
) -> tuple[Figure, list[tuple[Axes, str, str, pd.DataFrame]]]:
    """Lay out a panel a world (down) and protocol (across), each with its rows of the frame."""
    worlds, protocols = list(dict.fromkeys(frame["world"])), list(dict.fromkeys(frame["protocol"]))
    figure, grid = canvas(
        0.9 + 1.9 * len(worlds), rows=len(worlds), columns=len(protocols), sharex=True, sharey=True
    )
    panels = []
    for across, protocol in enumerate(protocols):
        for down, world in enumerate(worlds):
            axes = grid[down, across]
            axes.grid()
            axes.set_title(protocol if down == 0 else "", loc="left")
            if across == 0:
                axes.set_ylabel(f"{measure}\n{WORLD_TITLES[world]}")
            rows = frame[(frame["world"] == world) & (frame["protocol"] == protocol)]
            panels.append((axes, world, protocol, rows))
    return figure, panels


def _legend(figure: Figure, axes: Axes) -> None:
    """Put the legend of one panel above them all."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4)
