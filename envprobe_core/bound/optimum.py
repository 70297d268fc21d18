"""The best policy over the information states, by backward induction, for each weight lambda.

U = lambda A_H + (1 - lambda) success; the last step's states are worth their expected U, and a state is worth
the best of its choices' expected worth. The optimum over lambda is the frontier of all policies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from envprobe_core.bound.states import ACT, InformationTree, Steps
from envprobe_core.worlds.base import Floats, Ints

TIE = 1e-12  # choices whose worth differs by less are equal; the tolerance of the whole computation is 1e-9
LEAST_GAIN = 1e-10
Point = tuple[float, float]  # accuracy and success


@dataclass(frozen=True)
class Solution:
    """The best policy for one weight."""

    weight: float  # lambda
    accuracy: float  # exact mean
    success: float  # exact mean
    choices: list[Ints]  # [step] of [state], ACT or the field to probe

    @property
    def worth(self) -> float:
        """Return U."""
        return worth(self.weight, (self.accuracy, self.success))


def worth(weight: float, point: Point) -> float:
    """Return U = lambda accuracy + (1 - lambda) success."""
    return weight * point[0] + (1.0 - weight) * point[1]


def solve(tree: InformationTree, weight: float) -> Solution:
    """Find the best policy for a weight; among equals the better sum of both measures counts."""
    accuracy, success, choices = tree.accuracy, tree.success, []
    for steps in reversed(tree.steps):
        options = Options(steps)
        both = options.mean(accuracy), options.mean(success)
        best = options.best(weight * both[0] + (1.0 - weight) * both[1], both[0] + both[1])
        accuracy, success = both[0][best], both[1][best]
        choices.append(options.choice[best])
    return Solution(weight, float(accuracy[0]), float(success[0]), choices[::-1])


class Options:
    """The choices in every state of a layer, one entry a state and choice."""

    def __init__(self, steps: Steps) -> None:
        """Group the outcomes, which are ordered by state and choice."""
        new = (np.diff(steps.state, prepend=-1) != 0) | (np.diff(steps.choice, prepend=ACT - 1) != 0)
        self._steps, self._first = steps, np.flatnonzero(new)
        self.state, self.choice = steps.state[self._first], steps.choice[self._first]
        self.states = np.flatnonzero(np.diff(self.state, prepend=-1))

    def mean(self, of_child: Floats) -> Floats:
        """Return the expectation of what the next layer's states are worth, [option]."""
        return np.add.reduceat(self._steps.chance * of_child[self._steps.child], self._first)

    def best(self, first: Floats, second: Floats) -> Ints:
        """Return each state's best option by the first measure, by the second among equals."""
        top = np.maximum.reduceat(first, self.states)[self.state]
        second = np.where(first >= top - TIE, second, -np.inf)
        top = np.maximum.reduceat(second, self.states)[self.state]
        among = np.flatnonzero(second >= top - TIE)
        return among[np.unique(self.state[among], return_index=True)[1]]


def frontier(tree: InformationTree) -> list[Solution]:
    """Return the corners of the optimum over all weights, from the most success to the most accuracy."""

    def between(left: Solution, right: Solution) -> list[Solution]:
        rise, run = right.accuracy - left.accuracy, left.success - right.success
        if rise <= LEAST_GAIN or run <= LEAST_GAIN:
            return []
        middle = solve(tree, run / (rise + run))
        gain = middle.worth - worth(middle.weight, (left.accuracy, left.success))
        if gain <= LEAST_GAIN:
            return []
        return [*between(left, middle), middle, *between(middle, right)]

    first, last = solve(tree, 0.0), solve(tree, 1.0)
    return [first, *between(first, last), last]


def random_policy(tree: InformationTree) -> Point:
    """Return the exact means of Random: with chance B/H a uniformly drawn field, while budget is left."""
    setting, both = tree.setting, [tree.accuracy, tree.success]
    chance = (setting.budget << 32) // setting.horizon / 2.0**32
    for t in reversed(range(len(tree.steps))):
        options = Options(tree.steps[t])
        left = tree.layers[t].used[options.state] < setting.budget
        probing = np.where(left, chance, 0.0)
        share = np.where(options.choice == ACT, 1.0 - probing, probing / setting.world.fields)
        both = [np.add.reduceat(share * options.mean(value), options.states) for value in both]
    return float(both[0][0]), float(both[1][0])


def continuation(tree: InformationTree, solution: Solution, step: int) -> tuple[Floats, Floats]:
    """Return what every state at a step is worth if the policy is followed: accuracy and success, [state]."""
    both = [tree.accuracy, tree.success]
    for t in reversed(range(step, len(tree.steps))):
        options = Options(tree.steps[t])
        chosen = np.flatnonzero(options.choice == solution.choices[t][options.state])
        both = [options.mean(value)[chosen] for value in both]
    return both[0], both[1]


def reached_under(tree: InformationTree, solution: Solution) -> list[Floats]:
    """Return each state's chance to be met under a policy, [time] of [state]."""
    chances = [np.ones(1)]
    for steps, choices in zip(tree.steps, solution.choices, strict=True):
        taken = steps.choice == choices[steps.state]
        following = np.zeros(int(steps.child.max()) + 1)
        np.add.at(following, steps.child[taken], chances[-1][steps.state[taken]] * steps.chance[taken])
        chances.append(following)
    return chances
