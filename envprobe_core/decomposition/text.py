"""The sentences of section *decomposition*; every number and direction in them is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.decomposition.hybrids import (
    ALL,
    FACTOR_NAMES,
    IDLE,
    INFORMATION,
    SELECTION,
    TIMING,
    own_level,
)
from envprobe_core.decomposition.running import Factorial, gains
from envprobe_core.decomposition.shapley import restrict, shapley_values
from envprobe_core.decomposition.splitting import GAIN, START, UNANSWERED
from envprobe_core.decomposition.tables import clear
from envprobe_core.figures import WORLD_TITLES, policy_title
from envprobe_core.markup import Text, code, counted, listed, number, percent, signed, span
from envprobe_core.sections.paired import PRIMARY_REGIME
from envprobe_core.sections.report import withheld

if TYPE_CHECKING:
    import pandas as pd

DIGITS = 3  # of the worked case


def tell_runs(runs: Factorial) -> Text:
    """Say whose numbers these are and how many arms there are."""
    text = (
        f"The agent on this page is a simulation with the profile `{runs.profile}`; no language model was "
        f"called. Each of the {ALL + 1} arms of {counted(len(runs.policies))} policies meets the same "
        f"{runs.episodes} seeds of regime {runs.regime} in each world, in the context of "
        f"{code(runs.protocols)}."
    )
    if runs.regime != PRIMARY_REGIME:
        text += f" The paper prints its gains for {PRIMARY_REGIME}; those of this page are another regime's."
    return Text(text)


def tell_case(runs: Factorial, policy: str = "simple") -> Text:
    """Work one split by hand: two factors, one world, the four numbers and the two shares.

    The world is that of the first protocol in which information and timing differ most from adding up.
    """
    protocol = runs.protocols[0]
    others = own_level(protocol) & ~(INFORMATION | TIMING) | SELECTION
    players = (FACTOR_NAMES.index("information"), FACTOR_NAMES.index("timing"))
    games = {
        world: restrict(gains(runs, protocol, world, policy, IDLE), players, others).mean(axis=0)
        for world in runs.worlds
    }
    world = max(games, key=lambda name: abs(games[name] @ np.array([1, -1, -1, 1])))
    none, told, timed, both = (float(value) for value in games[world])
    information, timing = (float(value) for value in shapley_values(games[world]))
    v = {name: number(value, DIGITS) for name, value in zip("0itb", (none, told, timed, both), strict=True)}
    together = both - told - timed + none
    lines = [
        f"Take {policy_title(policy)} in {WORLD_TITLES[world]} in the context of `{protocol}`, its own "
        "choice of fields throughout, time and metric as the protocol has them, and let only information and "
        f"timing vary. The gain over {policy_title(IDLE)}, in points, is {v['0']} with neither (Periodic's "
        f"times, no answers), {v['i']} with answers alone, {v['t']} with its own times alone, and {v['b']} "
        "with both. Information enters first or second, so its share is the mean of two steps:",
        "",
        "$$",
        r"\begin{aligned}",
        rf"\varphi_{{\text{{information}}}} &= \tfrac12\bigl[({_tex(told)} - {_tex(none)}) + ({_tex(both)} - "
        rf"{_tex(timed)})\bigr] = {information:.{DIGITS}f}, \\",
        rf"\varphi_{{\text{{timing}}}} &= \tfrac12\bigl[({_tex(timed)} - {_tex(none)}) + ({_tex(both)} - "
        rf"{_tex(told)})\bigr] = {timing:.{DIGITS}f}.",
        r"\end{aligned}",
        "$$",
        "",
        f"The two shares and what was there before add up: {v['0']} + ({number(information, DIGITS)}) + "
        f"({number(timing, DIGITS)}) = {number(none + information + timing, DIGITS)}, the gain with both "
        "(last digits are rounded). "
        f"Together they make {signed(together, DIGITS)} points of difference to the sum of what each adds "
        "alone, and each share carries half of that.",
    ]
    return Text("\n".join(lines))


def _tex(value: float) -> str:
    text = f"{value:.{DIGITS}f}"
    return f"({text})" if text.startswith("-") else text


def _rows(part: pd.DataFrame) -> dict[str, object]:
    return {row.part: row for row in part.itertuples()}


def tell_split(splits: pd.DataFrame, reference: str, policy: str = "simple") -> Text:
    """Say for every protocol and world what makes up one policy's gain, largest part first."""
    own = splits[
        (splits["reference"] == reference) & (splits["policy"] == policy) & (splits["game"] == "own")
    ]
    lines = []
    for (protocol, world), part in own.groupby(["protocol", "world"], sort=False):
        rows = _rows(part)
        gain = rows[GAIN]
        factors = [rows[name] for name in FACTOR_NAMES if name in rows]
        sure = sorted((row for row in factors if clear(row)), key=lambda row: -abs(row.value))
        said = [f"{row.part} ({signed(row.value)})" for row in sure]
        open_ = [row.part for row in factors if not clear(row)]
        line = f"* `{protocol}`, {WORLD_TITLES[world]}: {signed(gain.value)} points "
        line += f"({span(gain.low, gain.high)}). "
        line += f"Told from 0: {listed(said)}." if said else "No factor can be told from 0."
        if said and open_:
            line += f" Not told from 0: {listed(open_)}."
        if reference == IDLE:
            line += f" Blind unanswered probes alone make {signed(rows[START].value)}."
        lines.append(line)
    return Text("\n".join(lines))


def tell_unanswered(splits: pd.DataFrame, policy: str = "simple", reference: str = "periodic") -> Text:
    """Say what gain is left when no probe is ever answered, neither the policy's nor the reference's."""
    own = splits[
        (splits["reference"] == reference) & (splits["policy"] == policy) & (splits["game"] == "own")
    ]
    without = set(withheld(list(dict.fromkeys(own["protocol"]))))
    lines = []
    for protocol, part in own.groupby("protocol", sort=False):
        told, positive = [], []
        for world, rows in part.groupby("world", sort=False):
            row = _rows(rows)[UNANSWERED]
            told.append(f"{signed(row.value)} ({span(row.low, row.high)}) in {WORLD_TITLES[world]}")
            if row.low > 0:
                positive.append(WORLD_TITLES[world])
        if protocol in without:
            head = f"* Under `{protocol}` no probe is answered in the first place: the gain is "
        else:
            head = f"* Under `{protocol}` with all answers withheld the gain is "
        count = part["world"].nunique()
        tail = f"It lies above 0 in {counted(len(positive))} of {counted(count)} worlds"
        lines.append(head + f"{listed(told)}. {tail}, where nothing that a probe found can have caused it.")
        if not positive:
            lines[-1] = head + f"{listed(told)}. {tail}."
    return Text("\n".join(lines))


def tell_policies(splits: pd.DataFrame, reference: str) -> Text:
    """Say over all policies and worlds which factor weighs most, and how often each can be told from 0."""
    own = splits[(splits["reference"] == reference) & (splits["game"] == "own")]
    lines = []
    for protocol, part in own.groupby("protocol", sort=False):
        shares = part[part["part"].isin(FACTOR_NAMES)]
        table = shares.assign(size=shares["value"].abs(), clear=(shares["low"] > 0) | (shares["high"] < 0))
        count = int(part.groupby(["world", "policy"], sort=False).ngroups)
        size = table.groupby("part", sort=False)["size"].mean().sort_values(ascending=False, kind="stable")
        told = table.groupby("part", sort=False)["clear"].sum()
        said = [f"{name} {number(size[name])} ({int(told[name])} of {count})" for name in size.index]
        gain = part[part["part"] == GAIN]
        up, down = int((gain["low"] > 0).sum()), int((gain["high"] < 0).sum())
        lines.append(
            f"* `{protocol}`: of {count} gains over {policy_title(reference)}, {counted(up)} lie above 0 and "
            f"{counted(down)} below. Mean size of a share in points, and in how many of them it can be told "
            f"from 0: {listed(said)}."
        )
    return Text("\n".join(lines))


def tell_cross(crossed: pd.DataFrame) -> Text:
    """Name the strongest interaction under every protocol, and say which pairs never interact."""
    lines = []
    for protocol, part in crossed.groupby("protocol", sort=False):
        top = part.loc[part["value"].abs().idxmax()]
        sure = int(((part["low"] > 0) | (part["high"] < 0)).sum())
        what = "more" if top["value"] > 0 else "less"
        lines.append(
            f"* `{protocol}`: {counted(sure)} of {len(part)} interactions can be told from 0. The strongest "
            f"is that of {top['first']} and {top['second']} in {WORLD_TITLES[top['world']]}: together "
            f"{number(abs(top['value']))} points {what} than one by one ({span(top['low'], top['high'])})."
        )
    return Text("\n".join(lines))


def tell_placebos(valued: pd.DataFrame) -> Text:
    """Say whether answers help by themselves, and whether the choices they change help or hurt."""
    lines = []
    for protocol, part in valued.groupby("protocol", sort=False):
        told = []
        for against, what in (
            ("yoked", "the worth of answers alone is"),
            ("choice", "that of the choices they change is"),
        ):
            rows = part[part["against"] == against]
            up, down = int((rows["low"] > 0).sum()), int((rows["high"] < 0).sum())
            told.append(
                f"{what} {span(rows['value'].min(), rows['value'].max())} points (above 0 in "
                f"{counted(up)} of {counted(len(rows))} worlds, below in {counted(down)})"
            )
        lines.append(f"* `{protocol}`: {listed(told)}.")
    return Text("\n".join(lines))


def tell_identified(runs: Factorial) -> Text:
    """Say where a contrast rests on few or no probes."""
    lines = []
    for protocol in runs.protocols:
        silent = []
        for policy in runs.policies:
            share = float(np.mean([runs.fired[protocol, world, policy] for world in runs.worlds]))
            if share < 1:
                silent.append(f"{policy_title(policy)} ({percent(1 - share, 1)})")
        own = own_level(protocol)
        counts = {
            policy: np.mean(
                [runs.probes[protocol, world, policy][[own, own & ~TIMING]] for world in runs.worlds], axis=0
            )
            for policy in runs.policies
        }
        gap = max(counts, key=lambda name: abs(counts[name][0] - counts[name][1]))
        fired = (
            f"episodes without a probe: {listed(silent)}" if silent else "every policy fires in every episode"
        )
        line = (
            f"* `{protocol}`: {fired}. Own times change the number of probes most for {policy_title(gap)}: "
            f"{number(counts[gap][0])} an episode against {number(counts[gap][1])} at Periodic's times."
        )
        lines.append(line)
    return Text("\n".join(lines))
