"""Figures of points: two onsets against each other, and policies beneath the line that none can pass."""

from __future__ import annotations

import pandas as pd

from envprobe_core.protocols import in_words
from envprobe_core.show.figures import (
    AMBER,
    BLUE,
    GREY,
    INK,
    POLICY_STYLES,
    PURPLE,
    STRATA,
    STRATUM_TITLES,
    WORLD_TITLES,
    Drawing,
    canvas,
    policy_title,
    styled,
)  # fmt: skip
from envprobe_core.show.markup import number

COLOURS = {"tooldag": BLUE, "objectstate": AMBER, "graphnav": PURPLE}

MARGIN = 0.03  # by which the line is drawn past the last point
LINES = {"optimum": (INK, "-"), "optimum that sees gold": (GREY, (0, (4, 2)))}


@styled
def draw_onsets(frame: pd.DataFrame, name: str = "onsets") -> Drawing:
    """Draw action onset against drift onset; episodes on the same spot are one dot of their number."""
    protocols, strata = list(dict.fromkeys(frame["protocol"])), ("spatial", "procedural")
    figure, panels = canvas(
        0.7 + 2.0 * len(protocols), rows=len(protocols), columns=len(strata), sharex=True, sharey=True
    )
    far, told, handles = int(frame["horizon"].max()) + 1, [], {}
    for protocol, line in zip(protocols, panels, strict=True):
        for stratum, axes in zip(strata, line, strict=True):
            own = frame[(frame["protocol"] == protocol) & frame["world"].isin(STRATA[stratum])]
            both = own.dropna(subset=["collapse_onset", "action_onset"])
            for world, part in both.groupby("world", sort=False):
                dots = part.groupby(["collapse_onset", "action_onset"]).size().reset_index(name="n")
                handles[WORLD_TITLES[world]] = axes.scatter(
                    dots["collapse_onset"], dots["action_onset"], s=6 + 1.6 * dots["n"],
                    color=COLOURS[world], alpha=0.55, linewidths=0,
                )  # fmt: skip
            axes.plot([-1, far], [-1, far], color=GREY, linestyle=(0, (4, 3)), linewidth=1)
            axes.set(xlim=(-1, far), ylim=(-1, far))
            above = int((both["action_onset"] > both["collapse_onset"]).sum())
            title = f"{in_words(protocol)}, {STRATUM_TITLES[stratum]}"
            axes.set_title(f"{title}:\n{above:,} of {len(both):,} above", fontsize=9)
            told.append(f"{title}: {above:,} of {len(both):,} episodes above the diagonal")
    figure.supylabel("action onset (step)", fontsize=9.5)
    for axes in panels[-1]:
        axes.set_xlabel("drift onset (step)")
    if handles:
        legend = figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)
        for mark in legend.legend_handles:
            mark.set_sizes([40])
    alt = (
        "Action onset against drift onset; the area of a dot is its number of episodes; dashed: the diagonal."
    )
    return Drawing(figure, name, f"{alt} {'; '.join(told)}.")


@styled
def draw_optimum(points: pd.DataFrame, corners: pd.DataFrame, name: str, about: str) -> Drawing:
    """Draw accuracy against success, two panels a row.

    Args:
        points: a row a point: `panel policy accuracy success`.
        corners: a row a corner of a line, from the most success to the most accuracy: `panel line accuracy
            success`; lines are the names of `LINES`. Between corners lie mixtures, past them what is given
            away.
    """
    groups = list(dict.fromkeys(points["panel"]))
    rows = -(-len(groups) // 2)
    figure, panels = canvas(2.3 * rows + 1.1, rows=rows, columns=2)
    told = []
    for axes, group in zip(panels.flat, groups, strict=False):
        own = points[points["panel"] == group]
        floor, least = own["accuracy"].min() - MARGIN, own["success"].min() - MARGIN
        for line, part in corners[corners["panel"] == group].groupby("line", sort=False):
            success = [part["success"].iloc[0], *part["success"], min(least, part["success"].min())]
            accuracy = [floor, *part["accuracy"], part["accuracy"].iloc[-1]]
            colour, dashes = LINES[line]
            axes.plot(success, accuracy, color=colour, ls=dashes, lw=1.3, zorder=1, label=line)
        for row in own.itertuples():
            dot = POLICY_STYLES[row.policy].dot(ms=4.5)
            axes.plot(row.success, row.accuracy, label=policy_title(row.policy), **dot)
            told.append(f"{group}, {policy_title(row.policy)} {number(row.success)}, {number(row.accuracy)}")
        axes.set_title(in_words(group), loc="left", fontsize=9)
        axes.grid()
    for axes in panels.flat[len(groups) :]:
        axes.set_visible(False)
    for row in panels:
        row[0].set_ylabel("accuracy $A_H$")
    for axes in panels[-1]:
        axes.set_xlabel("task success")
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return Drawing(figure, name, f"{about}. Success and accuracy: {'; '.join(told)}.")
