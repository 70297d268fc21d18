"""The figure of the two onsets: which comes first, the fall of accuracy or the failure of actions?"""

from __future__ import annotations

import pandas as pd

from envprobe_core.show.figures import (
    AMBER,
    BLUE,
    GREY,
    PURPLE,
    STRATA,
    STRATUM_TITLES,
    WORLD_TITLES,
    Drawing,
    canvas,
    styled,
)

COLOURS = {"tooldag": BLUE, "objectstate": AMBER, "graphnav": PURPLE}


@styled
def draw_onsets(frame: pd.DataFrame, name: str = "onsets") -> Drawing:
    """Draw action onset against drift onset; episodes on the same spot are one dot of their number.

    Args:
        frame: a row an episode.
        name: a name no other figure of the page has.
    """
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
            title = f"{protocol}, {STRATUM_TITLES[stratum]}"
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
