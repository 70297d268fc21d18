"""Where a gain comes from: six factors, every combination of them run, and the gain split among them (ours).

A probe may bring an answer, which a table keeps or loses, spends a step in a world that moves or waits, is
aimed at a field and falls on a moment; at last accuracy is counted in one way or another. Selection and
timing are taken apart with hybrids: the gate of one policy says when to probe, another names the field.

A *game* of n players is an array [..., 2**n]: entry k is the value of the coalition whose members are the set
bits of k. Sources: Shapley (1953); Grabisch and Roubens (1999) for the interaction of pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import comb

import numpy as np
import numpy.typing as npt
import pandas as pd

from envprobe_core.cells import Cell, Names, find_profile, find_regime, names, parse_seeds
from envprobe_core.grid import run_cells
from envprobe_core.policies import POLICIES, Policy, hybrid
from envprobe_core.protocols import PROTOCOLS, Protocol, parse_protocol, turned
from envprobe_core.statistics import RESAMPLES, mean_intervals
from envprobe_core.worlds import WORLDS
from envprobe_core.worlds.base import Floats

BLIND = "periodic"  # whose times and fields are the lower levels of timing and selection
IDLE = "no-probe"
SPLIT = (  # the policies that are taken apart, in the order of tables and figures
    "periodic", "random", "self-uncertainty", "simple", "minus-c", "minus-s", "minus-u", "minus-d", "cd",
    "judge", "oracle", "oracle-tw",
)  # fmt: skip

# Shapley values


def _without(players: int, left_out: int) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the coalitions that hold none of the players of a bit mask, and the weight of each.

    Of n players left, a coalition S weighs |S|! (n - |S|)! / (n + 1)!, as in the mean over all orders.
    """
    coalitions = np.arange(1 << players)
    coalitions = coalitions[coalitions & left_out == 0]
    most = players - left_out.bit_count() + 1
    weights = np.array([1 / (most * comb(most - 1, size)) for size in range(most)])
    return coalitions, weights[np.bitwise_count(coalitions)]


def shapley_values(games: npt.ArrayLike) -> Floats:
    """Split each game [..., 2**n] among its players, [..., player]; the shares sum to v(all) - v(none).

    A player's share is the mean of what it adds over all orders in which the players may come; one that
    never adds anything gets exactly 0.
    """
    value, shares = np.asarray(games, dtype=np.float64), []
    players = value.shape[-1].bit_length() - 1
    for player in range(players):
        rest, weights = _without(players, 1 << player)
        shares.append(((value[..., rest | 1 << player] - value[..., rest]) * weights).sum(axis=-1))
    return np.stack(shares, axis=-1)


def pairs(players: int) -> tuple[tuple[int, int], ...]:
    """Return the pairs of players in the order of `interactions`."""
    return tuple(combinations(range(players), 2))


def interactions(games: npt.ArrayLike) -> Floats:
    """Return how much more each pair adds together than one by one, [..., pair], in the order of `pairs`.

    The Shapley interaction index: positive where one factor makes the other worth more.
    """
    value, found = np.asarray(games, dtype=np.float64), []
    players = value.shape[-1].bit_length() - 1
    for first, second in pairs(players):
        one, other = 1 << first, 1 << second
        rest, weights = _without(players, one | other)
        alone = value[..., rest | one] - value[..., rest]
        joined = value[..., rest | one | other] - value[..., rest | other]
        found.append(((joined - alone) * weights).sum(axis=-1))
    return np.stack(found, axis=-1)


def restrict(games: npt.ArrayLike, players: Sequence[int], others: int = 0) -> Floats:
    """Return the games among some players, [..., 2**len(players)], while the rest stays where it is.

    Args:
        games: [..., 2**n].
        players: who still plays, in their new order.
        others: bit mask of the rest that is turned on throughout.
    """
    chosen = [
        others | sum(1 << player for bit, player in enumerate(players) if coalition >> bit & 1)
        for coalition in range(1 << len(players))
    ]
    return np.asarray(games, dtype=np.float64)[..., chosen]


# the factors

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
SWITCHED = {  # the factors that a protocol turns on: by which switch and value
    INFORMATION: ("answer", "delivered"),
    MEMORY: ("memory", "kept"),
    TIME: ("clock", "stands"),
    METRIC: ("accuracy", "slots"),
}


def own_level(protocol: str) -> int:
    """Return the coalition of a policy under a protocol as it is: what the protocol itself turns on."""
    rules = parse_protocol(protocol)
    on = (factor for factor, (switch, value) in SWITCHED.items() if getattr(rules, switch) == value)
    return SELECTION | TIMING | sum(on)


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


# the runs


@dataclass(frozen=True)
class Factorial:
    """Outcomes in points, paired by seed; a key is (protocol, world, policy)."""

    protocols: tuple[str, ...]  # names, in order, here and below
    worlds: tuple[str, ...]
    policies: tuple[str, ...]
    outcome: dict[tuple[str, str, str], Floats]  # -> [episode, coalition], accuracy in points
    idle: dict[tuple[str, str], Floats]  # -> [episode, 4], No-Probe by metric's and, within, memory's levels
    probes: dict[tuple[str, str, str], Floats]  # -> [coalition], mean number of probes of an arm
    fired: dict[tuple[str, str, str], float]  # -> share of episodes with a probe, the protocol as it is


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

    where, every = list(product(asked, WORLDS)), range(ALL + 1)
    arms = {(*key, name): [add(*key, arm(name, k), k) for k in every] for key in where for name in split}
    idle = {key: [add(*key, POLICIES[IDLE], k) for k in (0, MEMORY)] for key in where}
    columns = run_cells(cells, chosen)
    wanted = ("accuracy", "accuracy_terminal", "accuracy_slot", "probes")
    found = {name: columns[name].reshape(len(cells), len(chosen)) for name in wanted}

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
    outcome, coalitions = runs.outcome[protocol, world, policy], np.arange(ALL + 1)
    if reference == BLIND:
        return outcome - outcome[:, coalitions & ~(SELECTION | TIMING)]
    level = 2 * (coalitions & METRIC > 0) + (coalitions & MEMORY > 0)
    return outcome - runs.idle[protocol, world][:, level]


# the split


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
        whole: whether all six factors play, not only those that the protocol itself turns on; the others
            stay at their lower level and get no share.
        resamples: bootstrap resamples; episodes are resampled whole, so all arms of a seed stay together.

    Returns:
        A row a part: `protocol world policy part value value_low value_high`, in points. Parts are, in this
        order: `gain`, the sum of all that follow; `start`, the value with every factor at its lower level;
        the factors' shares.
    """
    keys, columns = [], []
    chosen = runs.policies if policies is None else names(policies)
    for protocol, world, policy in product(runs.protocols, runs.worlds, chosen):
        if policy == reference:
            continue
        game = gains(runs, protocol, world, policy, reference)
        coalition = ALL if whole else own_level(protocol)
        playing = [place for place in range(len(FACTORS)) if coalition >> place & 1]
        parts = {"gain": game[:, coalition]} | ({} if reference == BLIND else {"start": game[:, 0]})
        shares = shapley_values(restrict(game, playing)).T
        parts |= zip((FACTOR_NAMES[factor] for factor in playing), shares, strict=True)
        keys += [(protocol, world, policy, part) for part in parts]
        columns += parts.values()
    frame = pd.DataFrame(keys, columns=["protocol", "world", "policy", "part"])
    ends = mean_intervals(np.stack(columns, axis=1), resamples=resamples)
    order = pd.CategoricalDtype(("gain", "start", *FACTOR_NAMES), ordered=True)
    return frame.assign(
        part=frame["part"].astype(order), **dict(zip(("value", "value_low", "value_high"), ends, strict=True))
    )
