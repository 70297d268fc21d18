"""Figures of the atlas: agents by number, and what becomes of the claims under them.

No mark has a hue, for hues belong to policies: what holds is dark or filled, what reverses pale or hollow.
"""

from textwrap import fill
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes

from envprobe_book.analyses.atlas import BOX, Atlas, values_of
from envprobe_book.analyses.sensitivity import DECIDES, MOST_SLICES, NOBODY, slices_of
from envprobe_book.pages.draw import PRINTED
from envprobe_book.pages.figures import GREY, GROUND, INK, Drawing, canvas, styled
from envprobe_book.pages.markup import number, percent
from envprobe_core.protocols import in_words

ROW = 0.145  # inches, of a claim
DASHED = {"color": GREY, "linewidth": 0.8, "linestyle": (0, (4, 3))}
SIGN = {"linestyle": "none", "color": INK, "markersize": 5, "markeredgewidth": 1.6}
AGENT_MARKERS = {"calibrated": "o", "typical": "s", "careful": "^", "overconfident": "v", "perfect": "P"}
OTHER_AGENT = "X"
HOLDS_BAR, REVERSES_BAR = {"color": INK, "alpha": 0.55}, {"color": INK, "alpha": 0.2}


@styled
def draw_space(agents: pd.DataFrame, paper: dict[str, float], planes: tuple[tuple[str, str], ...]) -> Drawing:
    """Agents in planes of two targets, beside the point that the paper prints.

    Args:
        agents: [agent, target], shares; sampled agents have names that begin with `atlas-`.
        paper: what it prints, by target.
        planes: which target is across and which is up; the first plane has equal axes.
    """
    sampled, said = agents.index.str.startswith("atlas-"), []
    figure, panels = canvas(3.5, columns=len(planes))
    for axes, (x, y) in zip(panels[0], planes, strict=True):
        cloud = f"{sampled.sum()} sampled agents"
        axes.plot(agents[x][sampled], agents[y][sampled], ".", color=GREY, label=cloud)
        for agent in agents.index[~sampled]:
            marker = AGENT_MARKERS.get(agent, OTHER_AGENT)
            axes.plot(agents[x][agent], agents[y][agent], marker=marker, color=INK, ls="none", label=agent)
        axes.plot(
            paper[x], paper[y], label="the paper", **PRINTED | {"markerfacecolor": GROUND, "markersize": 8}
        )
        axes.set_xlabel(f"{x}\n(share)")
        axes.set_ylabel(f"{y} (share)")
        axes.margins(0.08)
        across, up = (f"{number(agents[name].min())} to {number(agents[name].max())}" for name in (x, y))
        said.append(
            f"{y} against {x}: the paper at ({number(paper[x], 3)}, {number(paper[y], 3)}), all agents from "
            f"{across} across and {up} up"
        )
    panels[0, 0].axline((0.25, 0.25), (0.6, 0.6), **DASHED)
    panels[0, -1].set_ylim(0, 1)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    alt = f"Agents in the space of targets. {'; '.join(said)}. A dashed line marks equal spatial accuracies."
    return Drawing(figure, "calibration-space", alt)


@styled
def draw_shares(box: pd.DataFrame, near: pd.DataFrame | None = None, near_title: str = "") -> Drawing:
    """Each comparison's shares of agents by section: holds from the left, reverses from the right.

    Args:
        box: of all agents, as `atlas.shares_of` gives it.
        near: of some of them, of which a line marks how many hold.
        near_title: what the legend calls them.
    """
    compared = box[~box["level"]]  # not the claims that a number comes out as printed
    order, shown = compared[["section", "claim"]].drop_duplicates(), list(compared["protocol"].unique())
    count, section = len(order), order["section"].to_numpy()
    figure, panels = canvas(1.0 + ROW * count, columns=len(shown), sharex=True, sharey=True)
    y, said = np.arange(count), []
    for name, axes in zip(shown, panels[0], strict=True):
        own = compared[compared["protocol"] == name].set_index("claim").loc[order["claim"]]
        held, against = own["holds"].fillna(0), own["reverses"].fillna(0)
        bar: dict[str, Any] = {"height": 0.78, "linewidth": 0}
        axes.barh(y, held, label="holds", **bar, **HOLDS_BAR)
        axes.barh(y, against, left=100 - against, label="reverses", **bar, **REVERSES_BAR)
        untested = np.flatnonzero(own["holds"].isna())
        axes.plot(np.full(len(untested), 50), untested, label="not testable", **SIGN | {"marker": "_"})
        if near is not None:
            marks = near[near["protocol"] == name].set_index("claim").loc[order["claim"], "holds"]
            axes.plot(marks, y, label=f"holds, {near_title}", **SIGN | {"marker": "|"})
        for end in np.flatnonzero(section[1:] != section[:-1]) + 0.5:
            axes.axhline(end, color=GREY, linewidth=0.5)
        axes.set_title(in_words(name), fontsize=9)
        axes.set(xlim=(-2, 102), xticks=[0, 50, 100])
        axes.tick_params(axis="y", length=0, labelsize=8)
        said.append(
            f"{in_words(name)}, {np.mean(own['holds'] > 50):.0%} of them hold and "
            f"{np.mean(own['reverses'] > 50):.0%} reverse for most agents"
        )
    middles = pd.Series(y).groupby(section, sort=False).mean()
    panels[0, 0].set_yticks(middles, [name.replace("-", " ") for name in middles.index])
    panels[0, 0].set_ylim(count - 0.5, -0.5)
    figure.supxlabel("agents [percent]", fontsize=9)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, fontsize=8)
    alt = f"Bars of {count} comparisons by {len(shown)} protocols: {'; '.join(said)}."
    return Drawing(figure, "atlas-shares", alt)


@styled
def draw_wide(narrow: pd.DataFrame, broad: pd.DataFrame) -> Drawing:
    """Each comparison's share of agents in the box across, and with the later habits up.

    Args:
        narrow, broad: as `atlas.shares_of` gives them, of the same claims and protocols.
    """
    shown, said = list(dict.fromkeys(narrow["protocol"])), []
    figure, panels = canvas(2.2, columns=len(shown), sharex=True, sharey=True)
    for name, axes in zip(shown, panels[0], strict=True):
        one, other = (part[part["protocol"] == name] for part in (narrow, broad))
        axes.axline((0, 0), (100, 100), **DASHED)
        for word, marker, face in (("holds", "o", INK), ("reverses", "v", "none")):
            look = {"color": INK, "markerfacecolor": face, "markersize": 4.5, "alpha": 0.6, "linewidth": 0}
            axes.plot(one[word], other[word], marker, label=word, **look)
            away = (other[word] - one[word]).mean()
            sign = "+" if away > 0 else "−"
            said.append(f"{in_words(name)}, {word} {sign}{abs(away):.0f} percent on average")
        axes.set_title(in_words(name), fontsize=9)
        axes.set(xlim=(-4, 104), ylim=(-4, 104), xticks=[0, 50, 100], yticks=[0, 50, 100], aspect="equal")
    panels[0, 0].set_ylabel("with the later habits")
    figure.supxlabel("in the box [percent of agents]", fontsize=9)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, fontsize=8)
    alt = (
        f"{narrow['claim'].nunique()} comparisons, share of agents in the box against the share with the "
        f"later habits: {'; '.join(said)}."
    )
    return Drawing(figure, "atlas-wide", alt)


@styled
def draw_deciding(atlas: Atlas, deciders: pd.DataFrame) -> Drawing:
    """The support of each claim along the habit that explains most of it, a panel a claim and protocol.

    Args:
        atlas: drawn from `BOX`.
        deciders: as `sensitivity.find_deciders` gives it.
    """
    behaviours = np.array([values_of(agent) for agent in atlas.profiles])  # [agent, axis]
    claims, protocols = deciders["claim"].unique(), list(atlas.protocols)
    figure, panels = canvas(0.4 + 1.75 * len(claims), rows=len(claims), columns=len(protocols), sharey="row")
    told = []
    for place, own in enumerate(deciders.itertuples()):
        row, column = divmod(place, len(protocols))
        axes = panels[row, column]
        axes.set_title(in_words(own.protocol) if row == 0 else "", fontsize=9.5)
        if own.axis != NOBODY:
            _draw_bands(axes, behaviours[:, own.axis], own.support)
        if column == 0:
            named = f"{own.statement} [{own.unit}]"
            axes.set_ylabel(fill(named, 30, break_on_hyphens=False), fontsize=8)
        if own.axis == NOBODY:
            axes.spines[:].set_visible(False)
            axes.tick_params(left=False, bottom=False, labelleft=False, labelbottom=False)
            axes.text(0.5, 0.5, "never varies,\nor not testable", ha="center", transform=axes.transAxes)
            continue
        axes.tick_params(labelleft=(deciders["axis"].iloc[place - column : place] == NOBODY).all())
        axes.set_xlabel(f"{own.behaviour}\n({percent(own.explains)})", fontsize=8, labelpad=1)
        axes.tick_params(labelsize=7.5)
        if BOX[own.axis].kind == "habit":
            axes.set_xticks([0, 1], ["no", "yes"])
        if own.explains >= DECIDES:
            told.append(f"{own.statement} ({in_words(own.protocol)}): by {own.behaviour}")
    alt = (
        "Support of claims along the behaviour that explains most of it, zero is the border between support "
        f"and refutation. Decided: {'; '.join(told) or 'none by a single behaviour'}."
    )
    return Drawing(figure, "atlas-deciding", alt)


def _draw_bands(axes: Axes, values: npt.NDArray[Any], support: npt.NDArray[Any]) -> None:
    """Draw, slice by slice along a habit, the median support and where the middle 80% of agents lie."""
    import seaborn as sns

    known = ~np.isnan(support)
    agents = pd.DataFrame({"habit": values[known], "support": support[known]})
    slices = agents.groupby(slices_of(agents["habit"], MOST_SLICES))
    agents["slice"] = slices["habit"].transform("mean")
    supported = slices["support"].transform("median") > 0
    axes.axhline(0, color=GREY, linewidth=0.8, linestyle=(0, (3, 2)))
    for part, marker, face in ((agents[supported], "o", INK), (agents[~supported], "v", GROUND)):
        if len(part):
            sns.pointplot(
                part,
                x="slice",
                y="support",
                estimator="median",
                errorbar=("pi", 80),
                native_scale=True,
                color=INK,
                marker=marker,
                markerfacecolor=face,
                markersize=4.5,
                markeredgewidth=1,
                linestyle="none",
                err_kws={"linewidth": 1.3},
                ax=axes,
            )
    axes.set(xlabel="", ylabel="")
