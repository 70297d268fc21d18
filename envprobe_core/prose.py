"""Sentences with numbers, made from frames: the text of the section on environments.

Every number, direction word and verdict is taken from the frame, so that the text stays true whatever the
parameters. Each `tell_*` returns a `markup.Text`; `main_prose` has those of the main results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.claims.judge import HOLDS, NOT_TESTED, OTHER_SIZE, REVERSES
from envprobe_core.claims.printed import paper_value
from envprobe_core.environments import describe_worlds
from envprobe_core.figures import WORLD_TITLES
from envprobe_core.markup import Text, code, counted, listed, number, percent, under_each
from envprobe_core.protocols import parse_protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.tables import without_levels

if TYPE_CHECKING:
    import pandas as pd

PLACES = {"tooldag": "on tools", "objectstate": "in rooms", "graphnav": "on the graph"}
LOSSES = {  # why an event need not change anything
    "tooldag": "a tool that is not loaded has nothing to lose",
    "objectstate": "an object that is held cannot drift, and one that drifts may land where it lay",
    "graphnav": "a key that is held cannot drift, and one that drifts may land where it lay",
}
FLAT = 0.02  # a change of mean A_t no larger than this is told as none


def lean(low: float, high: float) -> int | None:
    """Say on which side of zero an interval lies: 1, -1, 0 (it holds zero), None (there is none)."""
    if np.isnan(low) or np.isnan(high):
        return None
    return 1 if low > 0 else -1 if high < 0 else 0


def tell_worlds(regime: str, protocols: Sequence[str]) -> Text:
    """Say how many fields of which type each world has, and how long its episodes are.

    Args:
        regime: name of the regime.
        protocols: names; sizes are the same under all.
    """
    parts = []
    for row in describe_worlds([regime], parse_protocol(protocols[0])).itertuples():
        kinds = f"{row.procedural} procedural and {row.spatial} spatial"
        kinds = "all procedural" if not row.spatial else "all spatial" if not row.procedural else kinds
        parts.append(f"{WORLD_TITLES[row.world]} has {row.fields} fields ({kinds})")
    settings = REGIMES[regime]
    return Text(
        f"In `{regime}`, {settings.title}, {listed(parts)}. An episode has $H = {settings.horizon}$ steps, "
        f"of which at most $B = \\lfloor H/4 \\rfloor = {settings.budget}$ may be probes."
    )


def tell_mutation(mutation: pd.DataFrame, regime: str) -> Text:
    """Say whether the draws gave the nominal rate, and how much of it reached the fields.

    Args:
        mutation: from `environments.summarise_mutation`.
        regime: name of the regime.
    """
    told = {}
    for protocol, rows in mutation.groupby("protocol", sort=False):
        moving = rows[rows["rate"] > 0]
        if moving.empty:
            told[protocol] = f" nothing mutates in `{regime}`: every nominal rate is 0."
            continue
        parts = [
            f"{number(row.drawn, 4)} {PLACES[row.world]}, against {number(row.rate, 2)}{_agreement(row)}"
            for row in moving.itertuples()
        ]
        told[protocol] = f" the rate drawn is {'; '.join(parts)}."
        arrived = moving["changed"] / moving["drawn"].where(moving["drawn"] > 0)
        if arrived.min() < 0.98:
            least = moving.loc[arrived.idxmin(), "world"]
            told[protocol] += (
                f" The smallest share of events that change a value is {percent(arrived.min())} "
                f"{PLACES[least]}: {LOSSES[least]}."
            )
    return Text(under_each(told))


def _agreement(row: object) -> str:
    """Say whether the nominal rate lies in the interval of the drawn one."""
    if np.isnan(row.drawn_low):
        return ""
    inside = row.drawn_low <= row.rate <= row.drawn_high
    return " (inside its interval)" if inside else " (outside its interval)"


def tell_chains(chains: pd.DataFrame, regime: str) -> Text:
    """Say how long the shortest plans are, beside the paper's figures.

    Args:
        chains: from `environments.summarise_chains`.
        regime: name of the regime.
    """
    tools = paper_value("fig:pareto_spatial", "procedural", "chain").value
    low = paper_value("fig:pareto_spatial", "spatial", "chain_min").value
    high = paper_value("fig:pareto_spatial", "spatial", "chain_max").value
    told = {}
    for protocol, rows in chains.groupby("protocol", sort=False):
        own = rows.set_index("world")
        parts = []
        for world, row in own.iterrows():
            same = row["shortest"] == row["longest"]
            reach = "always" if same else f"{row['shortest']:.0f} to {row['longest']:.0f}"
            parts.append(f"{number(row['length'], 1)} actions {PLACES[world]} ({reach})")
        spatial = own.loc[["objectstate", "graphnav"], "length"].mean()
        line = f" the shortest plan takes {listed(parts)} on average. "
        line += f"The spatial worlds together need {number(spatial, 1)}, "
        line += _against(spatial, low, high, f"the paper's {low:.0f} to {high:.0f}")
        line += f"; tools need {_against(own.loc['tooldag', 'length'], tools, tools, f'its {tools:.0f}')}."
        share, tight = own["fits"].min(), own["fits"].idxmin()
        line += " Plan and full probe budget fit into the horizon together "
        line += (
            "in every instance."
            if share == 1
            else f"in {percent(share)} of the instances {PLACES[tight]}, and in no smaller share elsewhere."
        )
        told[protocol] = line
    return Text(under_each(told))


def _against(value: float, low: float, high: float, name: str) -> str:
    """Say where a mean lies against a range of the paper's; half a step is no difference."""
    if value > high + 0.5:
        return f"more than {name}"
    return f"fewer than {name}" if value < low - 0.5 else f"about {name}"


def tell_drift(drift: pd.DataFrame) -> Text:
    """Say where an unchecked table begins and how it goes on, and where that is drift.

    Args:
        drift: from `environments.summarise_drift`.
    """
    told = {}
    for protocol, rows in drift.groupby("protocol", sort=False):
        parts = [f"{PLACES[row.world]} it {_course(row)}" for row in rows.itertuples()]
        line = f", {'; '.join(parts)}. Of the episodes, {listed(_shares(rows, 'below'))} begin below .6."
        ended = rows[rows["running"] < rows["n"]]
        if len(ended):
            left = [f"{row.running} of {row.n} {PLACES[row.world]}" for row in ended.itertuples()]
            line += f" Episodes end with success, so that fewer reach the last step drawn: {listed(left)}."
        told[protocol] = line
    right = [name for name, rows in drift.groupby("protocol", sort=False) if (rows["start"] == 1).all()]
    empty = [name for name in dict.fromkeys(drift["protocol"]) if name not in right]
    closing = []
    if right:
        closing.append(
            f"Under {code(right)} the table begins correct, and what changes is for the worse: that is drift."
        )
    if empty:
        closing.append(
            f"Under {code(empty)} most of what is wrong at first was never known. Accuracy there measures "
            "how quickly the agent finds out as much as how quickly it forgets."
        )
    return Text(under_each(told) + "\n\n" + " ".join(closing))


def _course(row: object) -> str:
    """Tell the course of a curve from its start, top and last value."""
    start, top, last = (number(value, 2) for value in (row.start, row.top, row.last))
    if row.top > row.start + FLAT and row.top > row.last + FLAT:
        return f"rises from {start} to {top} at step {row.top_step} and falls back to {last}"
    if row.last > row.start + FLAT:
        return f"rises from {start} to {last}"
    return f"falls from {start} to {last}" if row.last < row.start - FLAT else f"stays near {start}"


def _shares(rows: pd.DataFrame, column: str) -> list[str]:
    """List a share world by world, or once where it is the same everywhere."""
    if rows[column].nunique() == 1:
        share = rows[column].iloc[0]
        return ["none"] if share == 0 else ["all"] if share == 1 else [percent(share)]
    return [f"{percent(row[column])} {PLACES[row['world']]}" for _, row in rows.iterrows()]


def tell_ledger(verdicts: pd.DataFrame) -> Text:
    """Say how many claims hold under each protocol, and which go wrong whatever the protocol.

    Args:
        verdicts: from `claims.judge.judge`; claims about a level are left out.
    """
    everything, verdicts = verdicts, without_levels(verdicts)
    held = verdicts["verdict"].isin([HOLDS, OTHER_SIZE])
    counts = [
        f"{counted(int(held[rows.index].sum()))} of {counted(len(rows))} under `{protocol}`"
        for protocol, rows in verdicts.groupby("protocol", sort=False)
    ]
    reverses, holds = (
        found.groupby(verdicts["claim"], sort=False).all()
        for found in (verdicts["verdict"] == REVERSES, held)
    )
    statements = verdicts.drop_duplicates("claim").set_index("claim")["statement"]
    aside = "Levels aside, claims" if len(verdicts) < len(everything) else "Claims"
    text = f"{aside} that hold: {listed(counts)}."
    everywhere = "under every protocol shown"
    if holds.any() and verdicts["protocol"].nunique() > 1:
        verb = "holds" if holds.sum() == 1 else "hold"
        text += f" {counted(int(holds.sum())).capitalize()} {verb} {everywhere}."
    if reverses.any():
        text += f" What reverses {everywhere}:\n\n"
        text += "\n".join(f"* “{statements[claim]}”" for claim in reverses.index[reverses])
    else:
        text += f" None reverses {everywhere}."
    untested = verdicts[verdicts["verdict"] == NOT_TESTED]
    if len(untested):
        text += f"\n\nNot tested, for want of episodes or of a column: {counted(len(untested))}."
    return Text(text)


def tell_starts(verdicts: pd.DataFrame) -> Text:
    """Set two statements of the paper about the start side by side: can one experiment have both?

    Args:
        verdicts: from `claims.judge.judge`, of the claims about the environments.
    """
    held = verdicts[verdicts["verdict"].isin([HOLDS, OTHER_SIZE])]
    correct, low = (
        [
            name
            for name in dict.fromkeys(verdicts["protocol"])
            if ((held["claim"] == claim) & (held["protocol"] == name)).any()
        ]
        for claim in ("start-correct", "spatial-starts-collapsed")
    )
    both = [name for name in correct if name in low]
    text = (
        "Two of these statements are about the start. The paper's algorithm begins with a table equal to "
        "the truth; its results say that spatial episodes begin below .6. "
    )
    parts = [
        f"the {word} holds under {code(protocols)}"
        if protocols
        else f"the {word} holds under no protocol shown"
        for word, protocols in (("first", correct), ("second", low))
    ]
    text += f"Here {listed(parts)}"
    text += f", and both under {code(both)}." if both else ", and both together under none."
    return Text(text)
