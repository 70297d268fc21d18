"""The tables of the section on environments, and those that several sections show.

Each `show_*` takes the section's frame and returns a `markup.Table`; `main_tables` has those of the main
results. Labels are fixed, so that text may refer to a table whatever the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core import environments
from envprobe_core.cells import find_profile
from envprobe_core.claims.judge import HOLDS, INCONCLUSIVE, INPUT, NOT_TESTED, OTHER_SIZE, REVERSES
from envprobe_core.figures import WORLD_TITLES
from envprobe_core.markup import EMPTY, FIXED, Table, bracket, chunked, number, percent
from envprobe_core.protocols import parse_protocol
from envprobe_core.regimes import REGIMES

if TYPE_CHECKING:
    import pandas as pd

BADGES = {
    HOLDS: "bdg-success",
    OTHER_SIZE: "bdg-info",
    INCONCLUSIVE: "bdg-muted-line",
    REVERSES: "bdg-danger",
    INPUT: "bdg-warning",
    NOT_TESTED: "bdg-light",
}
HABITS = {  # what each number of an agent profile means
    "omit": ("share of news it fails to write down", True),
    "overwrite": ("chance a step that it spoils a random belief", True),
    "slip": ("chance a step that it proposes a random action", True),
    "quit": ("chance a step that it takes its task for finished", True),
    "misreport": ("share of reports with a wrong staleness", True),
    "hedge": ("share of reports with a low confidence", True),
    "confidence": ("confidence it reports for what it has just written, percent", False),
    "spread": ("how far below that a report may lie, percent", False),
    "fade": ("percent of confidence it loses a step without news", False),
    "single_report": ("reports a single belief a step", False),
    "writes": ("how it writes the value of a loaded tool", False),
    "keeps_open": ("keeps its list of open tools", False),
}


def badge(verdict: str) -> str:
    """Return a verdict as a coloured label; the word says it all without its colour."""
    return f"{{{BADGES[verdict]}}}`{verdict}`" if verdict in BADGES else EMPTY


def show_profile(profile: str, label: str = "tab-profile") -> Table:
    """Show the assumptions of an agent profile.

    Args:
        profile: its name.
        label: the table's label, one of its own on each page.
    """
    habits = find_profile(profile)
    rows = []
    for name, (meaning, rate) in HABITS.items():
        value = getattr(habits, name)
        text = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
        rows.append([f"`{name}`", percent(value) if rate else text, meaning])
    caption = f"The simulated agent of this page: profile `{profile}`. {habits.assumption}"
    return Table(label, caption, ("habit", "value", "meaning"), rows, "lrl")


def show_worlds(regime: str, protocols: Sequence[str]) -> Table:
    """Show sizes, fields, actions, horizon, budget and rate of every world in S1, S2, S3 and one regime.

    Args:
        regime: name of a regime.
        protocols: names; sizes are the same under all, rates are shown for each table of rates among them.
    """
    regimes = list(dict.fromkeys(("S1", "S2", "S3", regime)))
    switches: dict[str, str] = {}  # one protocol for each table of rates
    for name in protocols:
        switches.setdefault(parse_protocol(name).rates, name)
    facts = {name: environments.describe_worlds(regimes, parse_protocol(name)) for name in switches.values()}
    rows = []
    for place, row in enumerate(facts[next(iter(facts))].itertuples()):
        rates = [
            0.0 if np.isnan(other.loc[place, "rate"]) else other.loc[place, "rate"]
            for other in facts.values()
        ]
        rows.append(
            [
                f"`{row.regime}`" if row.world == "tooldag" else "",
                WORLD_TITLES[row.world],
                row.sizes,
                str(row.fields),
                str(row.procedural),
                str(row.spatial),
                str(row.actions),
                str(row.horizon),
                str(row.budget),
                *(number(rate, 2) for rate in rates),
                row.observation,
            ]
        )
    titles = "; ".join(f"`{name}`: {REGIMES[name].title}" for name in regimes)
    head = (
        "regime", "world", "sizes", "fields", "proc.", "spat.", "actions", "$H$", "$B$",
        *(f"rate, `{name}`" for name in facts), "observations",
    )  # fmt: skip
    caption = f"The three worlds in each regime, with nominal mutation rates. {titles}."
    return Table("tab-worlds", caption, head, rows, "lllrrrrrr" + "r" * len(facts) + "l")


def _named(protocols: pd.Series) -> list[str]:
    """Name a protocol in its first row only."""
    names = protocols.tolist()
    return ["" if name == last else f"`{name}`" for name, last in zip(names, [None, *names], strict=False)]


def show_mutation(mutation: pd.DataFrame, regime: str) -> Table:
    """Show the nominal mutation rate beside what the draws gave and what they changed.

    Args:
        mutation: from `environments.summarise_mutation`.
        regime: the regime it is about.
    """
    rows = [
        [
            name,
            WORLD_TITLES[row.world],
            f"{row.mutable} of {row.fields}",
            number(row.rate, 2),
            f"{number(row.drawn, 4)} {bracket(row.drawn_low, row.drawn_high, 4)}",
            f"{number(row.changed, 4)} {bracket(row.changed_low, row.changed_high, 4)}",
            number(row.changed_all, 4),
            f"{row.half_life:.1f}" if np.isfinite(row.half_life) else "never",
        ]
        for name, row in zip(_named(mutation["protocol"]), mutation.itertuples(), strict=True)
    ]
    caption = (
        f"Mutation in `{regime}`: events drawn and values changed, a mutable field and tick, with 95% "
        "intervals over episodes; values changed, a field of any kind; half-life in ticks. Draws are counted "
        "over all $H$ ticks, changes over the ticks that an episode ran, so that changes may seem the more."
    )
    head = ("protocol", "world", "mutable", "nominal", "drawn", "changed", "of all fields", "half-life")
    return Table("tab-mutation", caption, head, rows, "llrrrrrr")


def show_start(drift: pd.DataFrame, regime: str) -> Table:
    """Show how right the agent's table is at the start, at best and at the end if it never probes.

    Args:
        drift: from `environments.summarise_drift`.
        regime: the regime it is about.
    """
    rows = [
        [
            name,
            WORLD_TITLES[row.world],
            _mean(row.start, row.start_low, row.start_high),
            percent(row.below),
            percent(row.early),
            f"{number(row.top, 3)}{FIXED}at{FIXED}{row.top_step}",
            _mean(row.end, row.end_low, row.end_high),
        ]
        for name, row in zip(_named(drift["protocol"]), drift.itertuples(), strict=True)
    ]
    caption = (
        f"The table of an agent that never probes, in `{regime}`, with 95% intervals over episodes. *Early*: "
        "collapsed by the protocol's own rule within the first two scored times. *At the end*: each episode "
        "at its own last step, those that stopped at success included; *highest*: the mean over the episodes "
        "still running, and its step."
    )
    head = ("protocol", "world", "$A_0$", "$A_0 < .6$", "early", "highest $A_t$", "at the end")
    return Table("tab-start", caption, head, rows, "llrrrrr")


def _mean(mean: float, low: float, high: float) -> str:
    """Write a mean with its interval, or alone where every episode has the same value."""
    return number(mean, 3) if low == high else f"{number(mean, 3)} {bracket(low, high, 3)}"


def show_ledger(verdicts: pd.DataFrame, label: str, caption: str) -> Table:
    """Show the verdict on every claim that is not about a level, with what was measured.

    Args:
        verdicts: from `claims.judge.judge`.
        label: the table's label.
        caption: what the claims are about.
    """
    protocols = list(dict.fromkeys(verdicts["protocol"]))
    rows = []
    for _, claim in without_levels(verdicts).groupby("claim", sort=False):
        own = claim.set_index("protocol")
        first = claim.iloc[0]
        cells = [
            f"{badge(own.loc[name, 'verdict'])} {_amount(own.loc[name], 'estimate')}" for name in protocols
        ]
        rows.append([chunked(first["statement"]), f"{_amount(first, 'paper_value')} {first['unit']}", *cells])
    head = ("the paper's claim, in our words", "printed", *(f"`{name}`" for name in protocols))
    return Table(label, caption, head, rows, "lr" + "l" * len(protocols))


def without_levels(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Leave out the claims that a level is the printed one; their names begin with `level-`."""
    return verdicts[~verdicts["claim"].str.startswith("level-")]


def _amount(verdict: pd.Series, name: str) -> str:
    """Write a number of a verdict with the digits its unit asks for."""
    value = verdict[name]
    return number(None if value is None else float(value), 3 if verdict["unit"] == "share" else 2)
