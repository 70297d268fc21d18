"""What the gain of a policy is made of: its arms by six factors, and the shares of these (ours).

An arm is a policy and a protocol with some of the factors at their upper level, written as a bit mask, a
*coalition*. The accuracies of all arms on one seed are a *game*; how a game is shared among its players (the
Shapley value) is the section's equation and is passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from envprobe_core.policies import POLICIES, Policy, hybrid
from envprobe_core.protocols import parse_protocol, turned
from envprobe_core.statistics import mean_intervals
from envprobe_core.worlds import WORLDS
from envprobe_core.worlds.base import Floats, Ints

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
INFORMATION, MEMORY, TIME, SELECTION, TIMING, METRIC = (1 << bit for bit in range(len(FACTORS)))
ALL = (1 << len(FACTORS)) - 1
SWITCHED = {  # the factors that a protocol turns on: by which switch and value
    INFORMATION: ("answer", "delivered"), MEMORY: ("memory", "kept"), TIME: ("clock", "stands"),
    METRIC: ("accuracy", "slots"),
}  # fmt: skip
SPLIT = (  # the policies that are taken apart, in the order of tables and figures
    "periodic", "random", "self-uncertainty", "simple", "minus-c", "minus-s", "minus-u", "minus-d", "cd",
    "judge", "oracle", "oracle-tw",
)  # fmt: skip

Shares = Callable[[Floats], Floats]
"""What each player of a game is worth: of [..., coalition], [..., player]."""

# arms


def own_level(name: str) -> int:
    """The coalition of a policy under a protocol as it is: what the protocol itself turns on.

    >>> own_level("paper") == SELECTION | TIMING | INFORMATION | MEMORY
    True
    """
    rules = parse_protocol(name)
    on = (factor for factor, (switch, value) in SWITCHED.items() if getattr(rules, switch) == value)
    return SELECTION | TIMING | sum(on)


def arm(policy: str, coalition: int) -> Policy:
    """The policy of an arm: its times, its fields, answered or not, as the coalition has them.

    A probe that is not answered leaves no trace of its field, so that arms without answers are the same
    whatever selects the field, and are run once.

    >>> arm("simple", INFORMATION | TIMING).name
    'simple/periodic'
    """
    own, blind = POLICIES[policy], POLICIES["periodic"]
    gate = own if coalition & TIMING else blind
    chosen = coalition & (SELECTION if coalition & INFORMATION else TIMING)
    return hybrid(gate, own if chosen else blind, answered=bool(coalition & INFORMATION))


def context(name: str, coalition: int) -> str:
    """The protocol of an arm: answers delivered (the arm decides), clock and memory as it says.

    >>> context("released", TIME)
    'released:answer=delivered'
    """
    clock, memory = "stands" if coalition & TIME else "runs", "kept" if coalition & MEMORY else "none"
    return turned(parse_protocol(name), answer="delivered", clock=clock, memory=memory).name


def by_cell(frame: pd.DataFrame) -> tuple[dict[tuple[str, str, str], int], dict[str, npt.NDArray[Any]]]:
    """The place of each cell among those that were run, and the columns, [cell, episode] each."""
    n = frame["seed"].nunique()  # episodes of a cell, which stand together
    cells = frame[["protocol", "world", "policy"]].iloc[::n].itertuples(index=False, name=None)
    columns = {name: column.to_numpy().reshape(-1, n) for name, column in frame.items()}
    return {cell: row for row, cell in enumerate(cells)}, columns


@dataclass(frozen=True)
class Arms:
    """The arms of some policies under some protocols, with what was measured of them."""

    policies: Mapping[str, Sequence[Policy]]  # by policy, [coalition]
    contexts: Mapping[str, Sequence[str]]  # by protocol, [coalition]
    row_of: Mapping[tuple[str, str, str], int]  # as `by_cell` returns them
    columns: Mapping[str, npt.NDArray[Any]]

    @property
    def coalitions(self) -> Ints:
        """Every set of factors, [coalition]."""
        return np.arange(1 << len(FACTORS))

    def cells_of(self, name: str, world: str, policy: str) -> list[int]:
        """The places of a policy's arms among the cells that were run, [coalition]."""
        contexts, policies = self.contexts[name], self.policies[policy]
        return [self.row_of[contexts[s], world, policies[s].name] for s in self.coalitions]

    def outcomes(self, name: str, world: str, policy: str) -> Floats:
        """The accuracy of every arm, [episode, coalition], in points."""
        lower = "accuracy" if parse_protocol(name).accuracy == "terminal" else "accuracy_terminal"
        cells = self.cells_of(name, world, policy)
        slots, terminal = self.columns["accuracy_slot"][cells].T, self.columns[lower][cells].T
        return 100 * np.where(self.coalitions & METRIC, slots, terminal)

    def gains(self, name: str, world: str, policy: str, reference: str) -> Floats:
        """The game of a gain, [episode, coalition], in points.

        Over `no-probe`: every arm minus the episode without probes, in the arm's metric; over `periodic`:
        every arm minus the arm with Periodic's times and fields at the same levels of all else.
        """
        own = self.outcomes(name, world, policy)
        blind = own[:, self.coalitions & ~(SELECTION | TIMING)]
        return own - (blind if reference == "periodic" else self.outcomes(name, world, reference))


# games


def given(game: Floats, player: int, there: bool) -> Floats:
    """The game of the others while a player is there, or is not, [..., coalition].

    >>> given(np.array([0, 1, 2, 3]), 1, True)
    array([2, 3])
    """
    halves = game.reshape(*game.shape[:-1], -1, 2, 1 << player)
    return halves[..., int(there), :].reshape(*game.shape[:-1], -1)


def split_gains(
    arms: Arms, reference: str, policies: Sequence[str], shares: Shares, resamples: int, whole: bool = False
) -> pd.DataFrame:
    """Gains over a reference, split: a row a protocol, world, policy and part, in points with intervals.

    Parts are, in this order, `gain`, the sum of all that follow; `start`, the value with every factor at its
    lower level, which over Periodic is nothing; the shares of the factors that the protocol itself turns on,
    or of all (`whole`). Episodes are resampled whole, so all arms of a seed stay together.
    """
    keys, columns = [], []
    for key in product(arms.contexts, WORLDS, policies):
        if key[-1] == reference:
            continue
        game, playing = arms.gains(*key, reference), ALL if whole else own_level(key[0])
        parts = {"gain": game[:, playing]} | ({} if reference == "periodic" else {"start": game[:, 0]})
        for factor in reversed(range(len(FACTORS))):
            if not playing >> factor & 1:  # stays at its lower level and gets no share
                game = given(game, factor, False)
        in_play = (name for factor, name in enumerate(FACTORS) if playing >> factor & 1)
        parts |= zip(in_play, shares(game).T, strict=True)
        keys += [(*key, part) for part in parts]
        columns += parts.values()
    split = pd.DataFrame(keys, columns=["protocol", "world", "policy", "part"])
    split["part"] = pd.Categorical(split["part"], ["gain", "start", *FACTORS], ordered=True)
    ends = mean_intervals(np.stack(columns, axis=1), resamples=resamples)
    return split.assign(**dict(zip(("value", "value_low", "value_high"), ends, strict=True)))


def interactions(game: Floats, shares: Shares) -> Floats:
    """What each pair adds together beyond what each adds alone, [..., pair]: how j moves i's share."""
    players = game.shape[-1].bit_length() - 1
    moved = [shares(given(game, j, True)) - shares(given(game, j, False)) for j in range(players)]
    return np.stack([moved[j][..., i] for i, j in combinations(range(players), 2)], axis=-1)
