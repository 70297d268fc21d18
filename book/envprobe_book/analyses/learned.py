"""Learned weights of the score's terms: how well c, s, u and d tell a wrong belief, alone and together.

A logistic regression on recordings of No-Probe, in which no probe has repaired anything, says which weights
tell wrong beliefs from right ones best. The policy made of them is then asked on other seeds what it gains.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import rankdata

from envprobe_book.facts.replay import Witnessed
from envprobe_core.conditions import Condition, Seeds
from envprobe_core.engine.batch import simulate, simulate_logged
from envprobe_core.errors import InputError
from envprobe_core.policies import TERMS, Policy, weighted_policy
from envprobe_core.worlds.base import Floats, Mask

RIDGE = 1e-4  # on the weights, so that terms which are always equal share theirs
GATES = tuple(np.arange(0, 4.01, 0.25).tolist())
"""Thresholds among which a learned policy's gate is chosen: those of the book's sweeps."""


class Beliefs(NamedTuple):
    """Beliefs at decision steps, with what a policy sees of each."""

    terms: Floats  # [belief, term], c, s, u, d
    wrong: Mask  # [belief], whether it is not gold; an unknown value is wrong


def beliefs_of(condition: Condition, seeds: Seeds) -> Beliefs:
    """The beliefs that a condition's agent holds at every step of some episodes.

    >>> from envprobe_core.conditions import make_condition
    >>> found = beliefs_of(make_condition("tooldag", "no-probe"), np.arange(2))
    >>> found.terms.shape[1], len(found.terms) == len(found.wrong)
    (4, True)
    """
    seen = Witnessed(condition, seeds, simulate_logged(condition, seeds))
    recording = seen.trajectory
    steps = seen.lived()[:, 1:]  # those at which it decided
    wrong = (recording.belief != recording.gold)[:, :-1]
    return Beliefs(seen.terms[steps].reshape(-1, len(TERMS)), wrong[steps].ravel())


def auc(score: npt.ArrayLike, wrong: npt.ArrayLike) -> float:
    """The chance that a wrong belief scores higher than a right one, ties counted half.

    Args:
        score: [belief].
        wrong: [belief], with both kinds among them.

    Raises:
        InputError: if all are wrong or all are right.

    >>> auc([0.1, 0.4, 0.4, 0.9], [False, False, True, True])
    0.875
    """
    hit = np.asarray(wrong, dtype=bool)
    ones, zeros = int(hit.sum()), int((~hit).sum())
    if not ones or not zeros:
        raise InputError(f"{ones} wrong and {zeros} right beliefs; at least one of each is needed")
    ranks = rankdata(score)
    return float((ranks[hit].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def fit_weights(beliefs: Beliefs) -> Floats:
    """Weights of a logistic regression of *wrong* on the terms, [term], scaled so that the largest is 1.

    The intercept is left out: a score ranks fields, and its gate is chosen apart.

    Raises:
        InputError: if all beliefs are wrong or all are right.

    >>> terms = np.array([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]] * 20)
    >>> fit_weights(Beliefs(terms, terms[:, 1] > 0)).round(2).tolist()
    [0.0, 1.0, 0.0, 0.0]
    """
    auc(beliefs.terms[:, 0], beliefs.wrong)  # refuses what holds one kind alone
    inputs = np.column_stack([beliefs.terms, np.ones(len(beliefs.terms))])
    target = beliefs.wrong.astype(float)

    def loss(weights: Floats) -> tuple[float, Floats]:
        linear, own = inputs @ weights, np.append(weights[:-1], 0.0)
        gap = expit(linear) - target
        value = np.mean(np.logaddexp(0.0, linear) - target * linear) + RIDGE * own @ own
        return float(value), inputs.T @ gap / len(target) + 2 * RIDGE * own

    found = minimize(loss, np.zeros(inputs.shape[1]), jac=True, method="BFGS").x[:-1]
    largest = np.abs(found).max()
    return found / largest if largest > 0 else found


def learned_policy(setting: Condition, seeds: Seeds, gates: Iterable[float] = GATES) -> tuple[Policy, float]:
    """A policy with learned weights and its threshold: the most accurate of some gates on the same seeds.

    Args:
        setting: a condition of No-Probe, which is recorded; the policy is for the same.
        seeds: of these episodes; results belong on others.
        gates: thresholds; of equal ones the first is taken.

    >>> from envprobe_core.conditions import make_condition
    >>> policy, gate = learned_policy(make_condition("tooldag", "no-probe"), np.arange(9000, 9004), [1.0])
    >>> policy.title, gate
    ('Learned weights', 1.0)
    """
    policy = weighted_policy("learned", "Learned weights", fit_weights(beliefs_of(setting, seeds)))
    return policy, best_gate(policy, setting, seeds, tuple(gates))


def best_gate(policy: Policy, setting: Condition, seeds: Seeds, gates: Sequence[float]) -> float:
    """The threshold with which a policy is most accurate on some seeds; of equal ones the first.

    Args:
        setting: a condition whose world, regime, protocol, profile and budget are used.

    >>> from envprobe_core.conditions import make_condition
    >>> from envprobe_core.policies import find_policy
    >>> best_gate(find_policy("simple"), make_condition("tooldag", "simple"), np.arange(4), [9.0, 99.0])
    9.0
    """
    conditions = [replace(setting, policy=policy, threshold=gate) for gate in gates]
    means = [simulate(condition, seeds)["accuracy"].mean() for condition in conditions]
    return float(gates[int(np.argmax(means))])
