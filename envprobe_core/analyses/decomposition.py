"""Where a gain comes from: six factors, every combination of them run, and the gain split among them (ours).

A probe may bring an answer, which a table keeps or loses, spends a step in a world that moves or waits, is
aimed at a field and falls on a moment; at last accuracy is counted in one way or another. Selection and
timing are taken apart with hybrids: the gate of one policy says when to probe, another names the field.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from envprobe_core.analyses.shapley import interactions, pairs, restrict, shapley_values
from envprobe_core.cells import Cell, Names, find_profile, find_regime, names, parse_seeds
from envprobe_core.policies import POLICIES, Policy, hybrid
from envprobe_core.protocols import PROTOCOLS, Protocol, parse_protocol, turned
from envprobe_core.show.markup import code
from envprobe_core.statistics import RESAMPLES, mean_intervals
from envprobe_core.sweep import run_cells
from envprobe_core.worlds import WORLDS
from envprobe_core.worlds.base import Floats

Key = tuple[str, str, str]  # protocol, world, policy
BLIND = "periodic"  # whose times and fields are the lower levels of timing and selection
IDLE = "no-probe"
SPLIT = (  # the policies that are taken apart, in the order of tables and figures
    "periodic", "random", "self-uncertainty", "simple", "minus-c", "minus-s", "minus-u", "minus-d", "cd",
    "judge", "oracle", "oracle-tw",
)  # fmt: skip


# --- the factors --------------------------------------------------------------------------------------


FACTORS = {  # by name: the lower and the upper level
    "information": ("a probe's answer is withheld", "the answer replaces the belief"),
    "memory": ("the table is written anew from each observation", "the table is kept"),
    "time": ("the world moves on during a probe", "the world stands still during a probe"),
    "selection": ("the field that Periodic would probe", "the field that the policy ranks first"),
    "timing": ("probes at Periodic's times K - 1, 2K - 1, ...", "probes when the policy's own gate opens"),
    "metric": (
        "share of fields right at the end, belief and world of the same step",
        "mean slot overlap over the executed steps, paired and encoded as the protocol says",
    ),
}
FACTOR_NAMES = tuple(FACTORS)
INFORMATION, MEMORY, TIME, SELECTION, TIMING, METRIC = (1 << k for k in range(len(FACTORS)))
ALL = (1 << len(FACTORS)) - 1
PARTS = ("gain", "start", *FACTOR_NAMES)


def own_level(protocol: str) -> int:
    """Return the coalition of a policy under a protocol as it is: what the protocol itself turns on."""
    switches = parse_protocol(protocol)
    return (
        SELECTION
        | TIMING
        | (INFORMATION if switches.answer == "delivered" else 0)
        | (MEMORY if switches.memory == "kept" else 0)
        | (TIME if switches.clock == "stands" else 0)
        | (METRIC if switches.accuracy == "slots" else 0)
    )


def members(coalition: int) -> tuple[int, ...]:
    """Return the positions of the factors that a coalition turns on."""
    return tuple(place for place in range(len(FACTORS)) if coalition >> place & 1)


def describe_factors(protocols: Names) -> pd.DataFrame:
    """List the factors: `name lower upper`, and `whose`, who has the upper level without being turned."""
    rows = []
    for place, (name, levels) in enumerate(FACTORS.items()):
        on = [protocol for protocol in names(protocols) if own_level(protocol) >> place & 1]
        rows.append(
            (name, *levels, "every policy but Periodic" if name in ("selection", "timing") else code(on))
        )
    return pd.DataFrame(rows, columns=["name", "lower", "upper", "whose"])


def arm(policy: str, coalition: int) -> Policy:
    """Return the policy of an arm: its times, its fields, answered or not, as the coalition has them.

    A probe that is not answered leaves no trace of its field, so that arms without answers are the same
    whatever selects the field, and are run once.
    """
    own, blind = POLICIES[policy], POLICIES[BLIND]
    chosen = coalition & (SELECTION if coalition & INFORMATION else TIMING)
    return hybrid(
        own if coalition & TIMING else blind, own if chosen else blind, answered=bool(coalition & INFORMATION)
    )


def context(protocol: str, coalition: int) -> Protocol:
    """Return the protocol of an arm: answers delivered (the arm decides), clock and memory as it says."""
    clock, memory = "stands" if coalition & TIME else "runs", "kept" if coalition & MEMORY else "none"
    return turned(parse_protocol(protocol), answer="delivered", clock=clock, memory=memory)


# --- the runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Factorial:
    """Outcomes in points, paired by seed; a key is (protocol, world, policy)."""

    protocols: tuple[str, ...]  # names, in order, here and below
    worlds: tuple[str, ...]
    policies: tuple[str, ...]
    outcome: dict[Key, Floats]  # -> [episode, coalition], accuracy in points
    idle: dict[tuple[str, str], Floats]  # -> [episode, 4], No-Probe by metric's and, within, memory's levels
    probes: dict[Key, Floats]  # -> [coalition], mean number of probes of an arm
    fired: dict[Key, float]  # -> share of episodes in which it probes, under the protocol as it is


def run_factorial(
    protocols: Names = tuple(PROTOCOLS),
    regime: str = "S2",
    profile: str = "typical",
    seeds: str = "0:220",
    budget: int = -1,
    threshold: float = -1,
    policies: Names = SPLIT,
) -> Factorial:
    """Run the whole factorial of every policy in every world, in the context of every protocol.

    An arm fixes answers, clock, times and fields; both metrics score the same episodes, and arms that two
    policies share are run once. All other switches stay as the protocol has them.

    Args:
        protocols: names, with or without switches turned.
        seeds: as `cells.parse_seeds` reads them.
        budget: probes an episode may spend; -1 is the regime's own.
        threshold: of the policies that have one; -1 is 1.5.
    """
    chosen, asked, split = parse_seeds(seeds), names(protocols), names(policies)
    level, agent, spend = find_regime(regime), find_profile(profile), None if budget == -1 else budget
    place: dict[tuple[str, str, str, str], int] = {}
    cells: list[Cell] = []

    def add(protocol: str, world: str, policy: Policy, coalition: int) -> int:
        own = context(protocol, coalition)
        key = (protocol, world, policy.name, own.name)
        if key not in place:
            place[key] = len(cells)
            gate = threshold if threshold != -1 and policy.has_threshold else None
            cells.append(Cell(world, policy, level, own, agent, spend, gate))
        return place[key]

    where = list(product(asked, WORLDS))
    every = range(ALL + 1)
    arms = {(*key, name): [add(*key, arm(name, k), k) for k in every] for key in where for name in split}
    idle = {key: [add(*key, POLICIES[IDLE], k) for k in (0, MEMORY)] for key in where}
    columns = run_cells(cells, chosen)
    found = {
        name: columns[name].reshape(len(cells), len(chosen))
        for name in ("accuracy", "accuracy_terminal", "accuracy_slot", "probes")
    }

    def measured(protocol: str, cell: int, metric: int) -> Floats:
        lower = "accuracy" if parse_protocol(protocol).accuracy == "terminal" else "accuracy_terminal"
        return 100 * found["accuracy_slot" if metric else lower][cell]

    return Factorial(
        asked, tuple(WORLDS), split,
        outcome={
            key: np.stack([measured(key[0], cell, k & METRIC) for k, cell in enumerate(own)], axis=1)
            for key, own in arms.items()
        },
        idle={
            key: np.stack([measured(key[0], cell, metric) for metric in (0, 1) for cell in own], axis=1)
            for key, own in idle.items()
        },
        probes={key: found["probes"][own].mean(axis=1) for key, own in arms.items()},
        fired={key: float((found["probes"][own[own_level(key[0])]] > 0).mean()) for key, own in arms.items()},
    )  # fmt: skip


def gains(runs: Factorial, protocol: str, world: str, policy: str, reference: str) -> Floats:
    """Return the game of a gain, [episode, coalition] in points.

    Args:
        reference: `no-probe`: every arm minus the episode without probes, in the arm's metric. `periodic`:
            every arm minus the arm with Periodic's times and fields at the same levels of all else.
    """
    outcome = runs.outcome[protocol, world, policy]
    coalitions = np.arange(ALL + 1)
    if reference == IDLE:
        level = 2 * (coalitions & METRIC > 0) + (coalitions & MEMORY > 0)
        return outcome - runs.idle[protocol, world][:, level]
    if reference == BLIND:
        return outcome - outcome[:, coalitions & ~(SELECTION | TIMING)]
    raise ValueError(f"no gain over {reference!r} here; accepted: {IDLE}, {BLIND}")


# --- the split ----------------------------------------------------------------------------------------


def split_episodes(game: Floats, coalition: int) -> dict[str, Floats]:
    """Split the gain of every episode among the factors that a coalition turns on.

    Args:
        game: [episode, coalition], from `gains`.
        coalition: where the gain is read; factors outside it stay at their lower level and get no share.

    Returns:
        [episode] each: `gain`, the sum of all that follow; `start`, the value with every factor at its lower
        level; the factors' shares.
    """
    playing = members(coalition)
    shares = shapley_values(restrict(game, playing))
    return {"gain": game[:, coalition], "start": game[:, 0]} | {
        FACTOR_NAMES[factor]: shares[:, place] for place, factor in enumerate(playing)
    }


def split_gains(
    runs: Factorial,
    reference: str,
    policies: Names | None = None,
    *,
    whole: bool = False,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Split the gains of some policies in every world and under every protocol.

    Args:
        reference: `no-probe` or `periodic`; over the latter nothing is there before a factor is turned, so
            that there is no `start`.
        policies: whose gains; by default all.
        whole: whether all six factors play, not only those that the protocol itself turns on.
        resamples: bootstrap resamples; episodes are resampled whole, so all arms of a seed stay together.

    Returns:
        A row a part: `protocol world policy part value value_low value_high`, in points; `part` is one of
        `PARTS`, in this order.
    """
    keys, columns = [], []
    chosen = runs.policies if policies is None else names(policies)
    for protocol, world, policy in product(runs.protocols, runs.worlds, chosen):
        if policy != reference:
            game = gains(runs, protocol, world, policy, reference)
            parts = split_episodes(game, ALL if whole else own_level(protocol))
            keys += [(protocol, world, policy, part) for part in parts]
            columns += parts.values()
    frame = _intervals(keys, columns, resamples, "protocol world policy part")
    if reference == BLIND:
        frame = frame[frame["part"] != "start"]
    return frame.assign(part=pd.Categorical(frame["part"], PARTS, ordered=True))


def cross(
    runs: Factorial, policy: str = "simple", reference: str = BLIND, resamples: int = RESAMPLES
) -> pd.DataFrame:
    """Measure how much more two factors add together than one by one, all six playing.

    Returns:
        A row a protocol, world and pair: `protocol world pair value value_low value_high`, in points.
    """
    titles = [f"{FACTOR_NAMES[first]} × {FACTOR_NAMES[second]}" for first, second in pairs(len(FACTORS))]
    keys, columns = [], []
    for protocol, world in product(runs.protocols, runs.worlds):
        keys += [(protocol, world, title) for title in titles]
        columns += list(interactions(gains(runs, protocol, world, policy, reference)).T)
    return _intervals(keys, columns, resamples, "protocol world pair")


def _intervals(
    keys: Iterable[tuple[str, ...]], columns: Iterable[Floats], resamples: int, titles: str
) -> pd.DataFrame:
    frame = pd.DataFrame(keys, columns=titles.split())
    ends = mean_intervals(np.stack(list(columns), axis=1), resamples=resamples)
    return frame.assign(**dict(zip(("value", "value_low", "value_high"), ends, strict=True)))


# --- what the split rests on --------------------------------------------------------------------------


def list_arms(runs: Factorial, world: str = "tooldag", policy: str = "simple") -> pd.DataFrame:
    """List the mean outcome of all 64 arms of one policy in one world.

    Returns:
        A row an arm: `protocol metric memory clock answer probes mean own`; `probes` says whose times and
        fields, `own` whether the arm is the policy under the protocol as it is.
    """
    sides = {  # how the table calls the two levels of each factor
        METRIC: ("terminal", "slots"),
        MEMORY: ("none", "kept"),
        TIME: ("moves", "stands"),
        INFORMATION: ("withheld", "returned"),
    }
    whose = {
        "Periodic's times and fields": 0,
        "Periodic's times, own fields": SELECTION,
        "own times, Periodic's fields": TIMING,
        "own times and fields": SELECTION | TIMING,
    }
    rows = []
    for protocol in runs.protocols:
        means = runs.outcome[protocol, world, policy].mean(axis=0)
        for *turned_on, title in product(*((0, factor) for factor in sides), whose):
            coalition = sum(turned_on) | whose[title]
            levels = (words[own > 0] for words, own in zip(sides.values(), turned_on, strict=True))
            rows.append((protocol, *levels, title, means[coalition], coalition == own_level(protocol)))
    columns = ["protocol", "metric", "memory", "clock", "answer", "probes", "mean", "own"]
    return pd.DataFrame(rows, columns=columns)


def count_probes(runs: Factorial) -> pd.DataFrame:
    """Count what each contrast has to work with, over the worlds.

    Returns:
        A row a protocol and policy: `fired` (share of episodes with a probe) and probes an episode in four
        arms at the protocol's own levels of all else: `own` times and fields, `times` and `fields` alone,
        `blind`.
    """
    rows = []
    for protocol, policy in product(runs.protocols, runs.policies):
        own = own_level(protocol)
        arms = [own, own & ~SELECTION, own & ~TIMING, own & ~(SELECTION | TIMING)]
        keys = [(protocol, world, policy) for world in runs.worlds]
        fired = sum(runs.fired[key] for key in keys) / len(keys)
        counts = sum(runs.probes[key][arms] for key in keys) / len(keys)
        rows.append((protocol, policy, fired, *counts))
    return pd.DataFrame(rows, columns=["protocol", "policy", "fired", "own", "times", "fields", "blind"])
