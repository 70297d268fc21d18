"""Every policy against the optimum on the small worlds: exact points, distances, and what VoI closes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from envprobe_core.analyses.voi import ORACLES, RIVALS, WEIGHTED
from envprobe_core.bound.exact import Leaves, accuracy, leaves, run
from envprobe_core.bound.optimum import Point, Solution, frontier, random_policy, worth
from envprobe_core.bound.small import MUTATIONS, SOLVED, Setting, can_be_solved
from envprobe_core.bound.states import InformationTree, grow
from envprobe_core.cells import find_regime
from envprobe_core.errors import InputError
from envprobe_core.experiments import Names, find_protocols, read_seeds
from envprobe_core.policies import POLICIES, Policy

DENSITIES = (0, 1)
VOI = {0.0: "voi-success", 0.5: "voi", 1.0: "voi-accuracy"}
WEIGHTS, COMPETING, DIAGNOSTIC = tuple(WEIGHTED), RIVALS, ORACLES
SHOWN = (*COMPETING, "placebo", *DIAGNOSTIC, *VOI.values())
LEAST = 1e-6  # a distance below which there is nothing to close
BALANCED = 0.5  # the weight of `voi`


@dataclass(frozen=True)
class Board:
    """One small world with everything known about it.

    Attributes:
        setting: the small world.
        leaves: of every policy but Random, by name (`voi_name` for VoI's weights).
    """

    setting: Setting
    leaves: dict[str, Leaves]

    @cached_property
    def tree(self) -> InformationTree:
        """Return the information states of a deployable policy."""
        return grow(self.setting)

    @cached_property
    def optimum(self) -> list[Solution]:
        """Return the corners of the optimum over all weights."""
        return frontier(self.tree)

    @cached_property
    def told_gold(self) -> list[Solution]:
        """Return the corners of the optimum of a policy that is shown gold."""
        return frontier(grow(self.setting, sees_gold=True))

    @cached_property
    def points(self) -> dict[str, Point]:
        """Return every policy's exact accuracy and success."""
        exact = {name: own.means(self.setting.rate) for name, own in self.leaves.items()}
        first = next(iter(exact))
        return {first: exact.pop(first), "random": random_policy(self.tree), **exact}

    def best(self, weight: float, *, sees_gold: bool = False) -> float:
        """Return the greatest U of any policy for a weight."""
        corners = self.told_gold if sees_gold else self.optimum
        return max(worth(weight, (corner.accuracy, corner.success)) for corner in corners)

    def distance(self, name: str, weight: float) -> float:
        """Return how far a policy's U is below the optimum."""
        return self.best(weight) - worth(weight, self.points[name])

    def closed(self, weight: float) -> float:
        """Return the share of Simple's distance that VoI with this weight closes; NaN where there is none."""
        far = self.distance("simple", weight)
        return float("nan") if far < LEAST else 1.0 - self.distance(voi_name(weight), weight) / far


def voi_name(weight: float) -> str:
    """Return the name of VoI with a weight."""
    return WEIGHTED[weight].name


def solvable(protocols: Names) -> list[str]:
    """Return the names of those protocols under which the small world is solved."""
    return [protocol.name for protocol in find_protocols(protocols) if can_be_solved(protocol)]


def load_boards(protocols: Names, horizon: int, budget: int) -> list[Board]:
    """Solve the small worlds and run every policy on them.

    Returns:
        A board for each protocol that can be solved, density and mutation level, in this order.

    Raises:
        InputError: if no protocol can be.
    """
    if not solvable(protocols):
        raise InputError(f"protocols {protocols!r}: none of them can be solved exactly; {SOLVED}")
    drawn = [*(name for name in SHOWN if name != "random"), *(voi_name(weight) for weight in WEIGHTS)]
    policies = [_named(name) for name in dict.fromkeys(drawn)]
    boards = []
    for protocol in find_protocols(protocols):
        if not can_be_solved(protocol):
            continue
        for density in DENSITIES:
            setting = Setting(density, MUTATIONS[-1], horizon, budget, protocol)
            found = {policy.name: leaves(setting, policy) for policy in policies}
            boards += [Board(replace(setting, mutation=level), found) for level in MUTATIONS]
    return boards


def with_mutation(boards: Sequence[Board], level: int) -> list[Board]:
    """Return the boards of one mutation level."""
    return [board for board in boards if board.setting.mutation == level]


@dataclass(frozen=True)
class Check:
    """The engine's own draws against the exact means: [sample minus exact] / standard error, by policy."""

    episodes: int
    scores: dict[str, tuple[float, float]]

    @property
    def largest(self) -> float:
        """Return the largest score, in absolute value."""
        return max(abs(score) for pair in self.scores.values() for score in pair)


def check_sampling(board: Board, seeds: str) -> Check:
    """Run every policy on seeds, with the engine's hash, and compare with its exact means."""
    setting, some = board.setting, read_seeds(seeds)
    if some is None:
        some = np.arange(*find_regime("S2").seeds)
    scores = {}
    for name, own in board.leaves.items():
        found = run(setting, _named(name), some)
        chance = own.chances(setting.rate)
        pair = []
        for exact, sample, values in zip(
            own.means(setting.rate),
            (accuracy(found).mean(), found.success.mean()),
            (own.right, own.success),
            strict=True,
        ):
            error = np.sqrt((chance * (values - exact) ** 2).sum() / len(some))
            pair.append(
                float((sample - exact) / error) if error > LEAST else float(abs(sample - exact) > LEAST)
            )
        scores[name] = (pair[0], pair[1])
    return Check(len(some), scores)


def _named(name: str) -> Policy:
    return POLICIES[name] if name in POLICIES else WEIGHTED[float(name.partition("@")[2])]
