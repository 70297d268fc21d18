"""Section *calibration*: the targets, the fitted agent, and how far it is from them.

Why it gets no nearer is in `calibration_space`, what it says of the rest of the paper in
`calibration_outside`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from envprobe_core import places
from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.calibration import (
    BASE,
    FREE,
    PROTOCOL,
    REGIME,
    SCALE,
    TARGET_POLICIES,
    TARGETS,
    compare_targets,
    independent,
    loss,
    target_values,
)
from envprobe_core.calibration_search import Search, Settings, fit_record, read_fit
from envprobe_core.cells import find_profile
from envprobe_core.claims.printed import paper_value
from envprobe_core.experiments import Names, names
from envprobe_core.figures import (
    AMBER,
    BLUE,
    GREEN,
    GROUND,
    INK,
    PURPLE,
    SKY,
    VERMILLION,
    Drawing,
    canvas,
    styled,
)
from envprobe_core.markup import Table, Text, counted, listed, number, percent, signed
from envprobe_core.policies import POLICIES

if TYPE_CHECKING:
    import pandas as pd

SHOWN = "calibrated typical careful overconfident"
COMMITTED = "calibrated"
SHORT = Settings(population=16, generations=8)  # what a page may spend on a fit of its own
STYLES = {
    COMMITTED: ("o", BLUE),
    "typical": ("s", VERMILLION),
    "careful": ("^", GREEN),
    "overconfident": ("v", PURPLE),
    "perfect": ("P", AMBER),
}
PAPER_STYLE = {"marker": "d", "color": INK, "markerfacecolor": GROUND, "linestyle": "none", "markersize": 8}


def style_of(agent: str) -> tuple[str, str]:
    """Return the marker and colour of an agent in the figures of this section."""
    return STYLES.get(agent, ("X", SKY))


@dataclass(frozen=True)
class Fitted:
    """A fitted agent as the page shows it.

    Attributes:
        profile: the agent.
        fit: what its file says of the fit, or the same of a fit of this page's own.
        fresh: whether this page fitted it itself.
    """

    profile: AgentProfile
    fit: dict[str, Any]
    fresh: bool


def load_fit(refit: bool = False) -> Fitted:
    """Read the committed fit, or search again for a bounded time.

    Args:
        refit: search again, shorter than for the committed profile; its result may differ from that.
    """
    if not refit:
        return Fitted(find_profile(COMMITTED), read_fit(COMMITTED), False)
    search = Search()
    found = search.run(settings=SHORT)
    return Fitted(found.profile, fit_record(found, [], search, SHORT)["fit"], True)


def load_targets(fitted: Fitted, others: Names = SHOWN) -> pd.DataFrame:
    """Measure the targets for the fitted agent and for others; see `calibration.compare_targets`."""
    profiles = [find_profile(name) for name in dict.fromkeys(names(others)) if name != COMMITTED]
    return compare_targets([fitted.profile, *profiles])


def show_targets() -> Table:
    """Show what the fit may use, where the paper prints it, and what else it prints for the same."""
    rows = []
    for target in TARGETS:
        again = [f"{paper_value(*place)} ({places.PLACES[place[0]]})" for place in target.repeats]
        rows.append(
            [
                target.name,
                str(target.printed),
                places.PLACES[target.place[0]],
                listed(again) if again else "–",
                "yes" if target.follows else "no",
            ]
        )
    caption = (
        f"What the agent is fitted to: all that the paper prints for {_policies()} in accuracy, and the "
        f"confident-wrong rate that its audit calls canonical."
    )
    head = ("target", "printed", "where", "printed again as", "follows from the others")
    return Table("tab-calibration-targets", caption, head, rows, "lrlll")


def _policies() -> str:
    return listed(POLICIES[name].title for name in TARGET_POLICIES)


def tell_rules() -> Text:
    """State the rules of the fit: targets against free rates, protocol, what is never looked at."""
    free = independent()
    follow = len(TARGETS) - free
    return Text(
        f"The paper prints {counted(len(TARGETS))} such numbers; {counted(follow)} of them "
        f"{'follows' if follow == 1 else 'follow'} from the others by arithmetic, which leaves "
        f"{counted(free)} against {counted(len(FREE))} free rates. Everything else the agent does stays as "
        f"in `{BASE.name}`. The targets are measured under `{PROTOCOL.name}` in regime {REGIME.name}, "
        f"because that is what the paper's figures were measured with. The search runs {_policies()} and no "
        "other policy, and never looks at task success."
    )


def show_rates(fitted: Fitted) -> Table:
    """Show the free rates: range, value before and after, and why each is free."""
    rows = [
        [
            f"`{item.name}`",
            f"{item.low:g} to {item.high:g}",
            number(getattr(BASE, item.name), 3),
            number(getattr(fitted.profile, item.name), 3),
            item.why,
        ]
        for item in FREE
    ]
    how = "found by this page" if fitted.fresh else "as committed in `data/profiles/calibrated.json`"
    caption = f"The free rates of the agent, {how}. All other behaviours are those of `{BASE.name}`."
    head = ("rate", "range", f"`{BASE.name}`", "fitted", "why it is free")
    return Table("tab-calibration-rates", caption, head, rows, "llrrl")


def tell_fit(fitted: Fitted) -> Text:
    """Say how the fit was made, and what kind of agent came out."""
    optimizer, objective = fitted.fit["optimizer"], fitted.fit["objective"]
    made = (
        "This page searched by itself"
        if fitted.fresh
        else f"The profile was made by `{fitted.fit['command']}`"
    )
    text = (
        f"{made}: differential evolution over {fitted.fit['evaluations']:,} distinct candidates "
        f"(population {optimizer['population']}, seed {optimizer['seed']}), each on the seeds "
        f"{fitted.fit['seeds']} of {counted(len(TARGET_POLICIES))} policies in three worlds. The objective "
        f"fell from {number(objective['first_generation'], 2)} for the best of the first generation to "
        f"{number(objective['value'], 2)}."
    )
    return Text(text + " " + _kind_of_agent(fitted.profile))


def _kind_of_agent(profile: AgentProfile) -> str:
    edges = [
        f"`{item.name}` is at the {'upper' if near_high else 'lower'} end of its range"
        for item in FREE
        for near_high, near in (
            (True, item.high - getattr(profile, item.name) <= 0.01 * (item.high - item.low)),
            (False, getattr(profile, item.name) - item.low <= 0.01 * (item.high - item.low)),
        )
        if near
    ]
    said = (
        f"The agent that comes out misses {percent(profile.omit, 1)} of its news, spoils a belief in "
        f"{percent(profile.overwrite, 1)} of its steps and gives up in {percent(profile.quit, 1)} of them"
    )
    if not edges:
        return f"{said}. No rate lies at an end of its range."
    return (
        f"{said}: {listed(edges)}. Such an agent is an account of the printed figures rather than a likely "
        "agent: it says what our simulation has to be like to come this near to them."
    )


def show_residuals(residuals: pd.DataFrame) -> Table:
    """Show each target, printed and as each agent gives it, with the residual."""
    agents = list(dict.fromkeys(residuals["profile"]))
    rows = []
    for target in TARGETS:
        part = residuals[residuals["target"] == target.name].set_index("profile")
        cells = [f"{number(part.loc[a, 'ours'], 3)} ({signed(part.loc[a, 'residual'], 3)})" for a in agents]
        rows.append([target.name, str(target.printed), *cells])
    values = [_loss_of(residuals, agent) for agent in agents]
    rows.append(["*objective* {eq}`eq-calibration`", "", *(number(value, 1) for value in values)])
    caption = (
        f"The targets, printed and recomputed now under `{PROTOCOL.name}`; in brackets ours minus the "
        "paper's. All but the first agent were settled without them."
    )
    head = ("target", "printed", *(f"`{agent}`" for agent in agents))
    return Table("tab-calibration-residuals", caption, head, rows, "lr" + "r" * len(agents))


def _loss_of(residuals: pd.DataFrame, agent: str) -> float:
    ours = residuals[residuals["profile"] == agent]["ours"].to_numpy(dtype=float)
    return float(loss(ours, target_values()))


@styled
def plot_residuals(residuals: pd.DataFrame) -> Drawing:
    """Draw each target on a line: the paper's number and every agent's."""
    agents = list(dict.fromkeys(residuals["profile"]))
    figure, panels = canvas(3.4)
    axes = panels[0, 0]
    symbols = [target.symbol for target in TARGETS]
    for place, agent in enumerate(agents):
        part = residuals[residuals["profile"] == agent].set_index("symbol")
        lane = 0.13 * (place - (len(agents) - 1) / 2)  # agents that agree stay apart
        marker, colour = style_of(agent)
        spots = [part.loc[symbol, "ours"] for symbol in symbols]
        axes.plot(
            spots, lane + np.arange(len(symbols)), marker=marker, color=colour, linestyle="none", label=agent
        )
    axes.plot(target_values(), range(len(symbols)), label="the paper", **PAPER_STYLE)
    axes.set_yticks(range(len(symbols)), symbols)
    axes.set_ylim(len(symbols) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.set_xlabel("share (accuracy, or wrong among confident beliefs)")
    axes.grid(axis="x")
    figure.legend(loc="outside upper center", ncols=3)
    told = [
        f"{target.symbol}: printed {target.printed}, "
        + listed(
            f"{row.profile} {number(row.ours, 3)}"
            for row in residuals[residuals["target"] == target.name].itertuples()
        )
        for target in TARGETS
    ]
    return Drawing(figure, "calibration-residuals", f"Targets of the fit. {'; '.join(told)}.")


def tell_residuals(residuals: pd.DataFrame, fitted: Fitted) -> Text:
    """Say which targets are met, which is missed most, and whether the committed residuals still stand."""
    own = residuals[residuals["profile"] == fitted.profile.name]
    met = own[own["residual"].abs() <= SCALE]
    worst = own.loc[own["residual"].abs().idxmax()]
    side = "above" if worst["residual"] > 0 else "below"
    lines = [
        f"The fitted agent comes within {number(SCALE, 2)} of {counted(len(met))} of {counted(len(own))} "
        f"targets{': ' + listed(met['symbol']) if 0 < len(met) < len(own) else ''}. It misses the "
        f"{worst['symbol']} most: {number(worst['ours'], 3)}, {number(abs(worst['residual']), 3)} {side} the "
        f"printed {number(worst['paper'], 3)}."
    ]
    losses = {agent: _loss_of(residuals, agent) for agent in dict.fromkeys(residuals["profile"])}
    others = [agent for agent in losses if agent != fitted.profile.name]
    nearest = min(others, key=losses.__getitem__, default=None)
    if nearest is not None:
        better = losses[nearest] - losses[fitted.profile.name]
        word = "lowers" if better > 0 else "raises"
        lines.append(
            f"Against `{nearest}`, the nearest of the agents settled beforehand, the fit {word} the "
            f"objective by {number(abs(better), 1)}."
        )
    if not fitted.fresh:
        stored = np.array([entry["ours"] for entry in fitted.fit["targets"]])
        gap = float(np.abs(stored - own["ours"].to_numpy(dtype=float)).max())
        said = (
            "are what this page finds"
            if gap < 1e-12
            else f"differ from what this page finds by up to {gap:.2g}"
        )
        lines.append(f"The residuals in the committed file {said}.")
    return Text(" ".join(lines))
