"""The factorial runs: every arm of every policy in one call of the engine, outcomes paired by seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from envprobe_core.cells import Cell, find_profile, find_regime, parse_seeds
from envprobe_core.decomposition.hybrids import (
    ALL,
    BLIND,
    IDLE,
    METRIC,
    SELECTION,
    SPLIT,
    TIMING,
    arm,
    context,
    own_level,
)
from envprobe_core.experiments import PROTOCOLS, Names, names
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import parse_protocol
from envprobe_core.sweep import run_cells
from envprobe_core.worlds import WORLDS

Floats = npt.NDArray[np.float64]
Key = tuple[str, str, str]  # protocol, world, policy


@dataclass(frozen=True)
class Factorial:
    """Outcomes in points, paired by seed.

    Attributes:
        protocols, worlds, policies: names, in order.
        regime, profile: names.
        episodes: seeds of each arm.
        outcome: (protocol, world, policy) -> [episode, coalition], accuracy in points.
        idle: (protocol, world) -> [episode, 2], No-Probe by the metric's lower and upper level.
        probes: (protocol, world, policy) -> [coalition], mean number of probes of an arm.
        fired: (protocol, world, policy) -> share of the episodes in which the policy, under the protocol as
            it is, probes at all.
        unanswered: (protocol, world, name) -> [episode], accuracy of Simple (`simple`), of its Placebo and
            of its Yoked Placebo in the protocol's own measure and clock, answers delivered to Simple.
    """

    protocols: tuple[str, ...]
    worlds: tuple[str, ...]
    policies: tuple[str, ...]
    regime: str
    profile: str
    episodes: int
    outcome: dict[Key, Floats]
    idle: dict[tuple[str, str], Floats]
    probes: dict[Key, Floats]
    fired: dict[Key, float]
    unanswered: dict[Key, Floats]


def load_factorial(
    regime: str = "S2",
    protocols: Names = PROTOCOLS,
    profile: str = "typical",
    seeds: str = "0:220",
    policies: Names = SPLIT,
) -> Factorial:
    """Run the whole factorial of every policy in every world, in the context of every protocol.

    An arm fixes answers, clock, times and fields; both metrics score the same episodes, and arms that two
    policies share are run once. All other switches stay as the protocol has them.

    Args:
        regime: name of a regime.
        protocols: names, with or without switches turned.
        profile: name of an agent profile.
        seeds: as `cells.parse_seeds` reads them.
        policies: names of the policies to take apart.
    """
    chosen, asked, split = parse_seeds(seeds), names(protocols), names(policies)
    place: dict[tuple[str, str, str, str], int] = {}
    cells: list[Cell] = []

    def add(protocol: str, world: str, policy: object, coalition: int) -> int:
        own = context(protocol, coalition)
        key = (protocol, world, policy.name, own.clock)
        if key not in place:
            place[key] = len(cells)
            cells.append(Cell(world, policy, find_regime(regime), own, find_profile(profile)))
        return place[key]

    arms: dict[Key, list[int]] = {}
    idle: dict[tuple[str, str], int] = {}
    placebo: dict[Key, int] = {}
    for protocol in asked:
        for world in WORLDS:
            idle[protocol, world] = add(protocol, world, POLICIES[IDLE], 0)
            for policy in split:
                arms[protocol, world, policy] = [
                    add(protocol, world, arm(policy, coalition), coalition) for coalition in range(ALL + 1)
                ]
            for policy in ("simple", "placebo", "yoked"):
                placebo[protocol, world, policy] = add(protocol, world, POLICIES[policy], own_level(protocol))
    columns = run_cells(cells, chosen)
    n = len(chosen)
    table = {name: columns[name].reshape(len(cells), n) for name in ("accuracy_slot", "probes")}
    scored = {name: columns[name].reshape(len(cells), n) for name in ("accuracy", "accuracy_terminal")}

    def measured(protocol: str, cell: int, metric: bool) -> Floats:
        if metric:
            return 100 * table["accuracy_slot"][cell]
        own = parse_protocol(protocol).accuracy == "terminal"
        return 100 * scored["accuracy" if own else "accuracy_terminal"][cell]

    return Factorial(
        protocols=asked,
        worlds=tuple(WORLDS),
        policies=split,
        regime=regime,
        profile=profile,
        episodes=n,
        outcome={
            key: np.stack([measured(key[0], cell, bool(k & METRIC)) for k, cell in enumerate(own)], axis=1)
            for key, own in arms.items()
        },
        idle={
            key: np.stack([measured(key[0], cell, metric) for metric in (False, True)], axis=1)
            for key, cell in idle.items()
        },
        probes={key: table["probes"][own].mean(axis=1) for key, own in arms.items()},
        fired={key: float((table["probes"][own[own_level(key[0])]] > 0).mean()) for key, own in arms.items()},
        unanswered={
            key: measured(key[0], cell, bool(own_level(key[0]) & METRIC)) for key, cell in placebo.items()
        },
    )


def gains(runs: Factorial, protocol: str, world: str, policy: str, reference: str) -> Floats:
    """Return the game of a gain, [episode, coalition] in points.

    Args:
        runs: the factorial.
        protocol: its context.
        world: its world.
        policy: whose gain.
        reference: `no-probe`: every arm minus the episode without probes, in the arm's metric. `periodic`:
            every arm minus the arm with Periodic's times and fields at the same levels of all else.
    """
    outcome = runs.outcome[protocol, world, policy]
    coalitions = np.arange(ALL + 1)
    if reference == IDLE:
        return outcome - runs.idle[protocol, world][:, (coalitions & METRIC > 0).astype(int)]
    if reference == BLIND:
        return outcome - outcome[:, coalitions & ~(SELECTION | TIMING)]
    raise ValueError(f"no gain over {reference!r} here; accepted: {IDLE}, {BLIND}")
