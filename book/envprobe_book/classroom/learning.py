"""A policy that learns when to ask: a policy gradient in NumPy on the Gymnasium environments.

Each step the learner does what the agent proposes, or asks about a field. It asks about field i with odds of
exp(w . phi_i) to 1, phi_i being `FEATURES` of the field and of the moment, and climbs the gradient of the
mean accuracy at the end (REINFORCE, Williams 1992) by steps of Adam (Kingma and Ba 2015).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from envprobe_core.worlds.base import Floats

FEATURES = ("c", "s", "u", "d", "always", "late", "left", "now or never")
"""The paper's terms of a field; of the moment one, the share of the horizon that is over, the share of the
budget that is left, and whether as many probes are left as steps."""
SELDOM = -3.0  # the first weight of `always`: one step in three begins with a question, among 27 fields
MEMORY, LONG_MEMORY = 0.9, 0.99  # of Adam: shares of the gradient's mean, and of its square's, that are kept
LEAST = 1e-8


class Round(NamedTuple):
    """What a round of episodes came to."""

    accuracy: Floats  # [env], A_H as the protocol scores it
    slope: Floats  # [env, feature], the gradient of the log chance of what was chosen
    asked: Floats  # [step], the share of episodes that asked


class Learned(NamedTuple):
    """What was learned, and on the way."""

    weights: Floats  # [round + 1, feature], before the first round and after each
    accuracy: Floats  # [round], the mean of its episodes
    asked: Floats  # [round, step], the share of episodes that asked


def features(c: Any, s: Any, u: Any, d: Any, step: Any, horizon: int, left: Any, budget: int) -> Floats:
    """`FEATURES` of every field, [..., field, feature].

    Args:
        c: [..., field], and so s, u and d: the paper's terms.
        step: [...], from 0.
        horizon: the number of steps.
        left: [...], probes.
        budget: probes at first.

    >>> terms = np.array([1.0, 0.5])
    >>> features(terms, terms, terms, terms, 20, 40, 5, 10)[1].tolist()
    [0.5, 0.5, 0.5, 0.5, 1.0, 0.5, 0.5, 0.0]
    """
    step, left = np.asarray(step)[..., None], np.asarray(left)[..., None]
    moment = 1.0, step / horizon, left / max(budget, 1), left >= horizon - step
    return np.stack(np.broadcast_arrays(c, s, u, d, *moment), axis=-1)


def play_round(envs: Any, weights: Floats, seed: int, random: np.random.Generator) -> Round:
    """A round of episodes, one an environment, on a seed and those behind it.

    Args:
        envs: `gymnasium.make_vec` of a world, of a protocol under which every episode goes on to the horizon.
        weights: [feature].
        seed: of the first environment's episode.
        random: draws what is done.
    """
    rows, rest = np.arange(envs.num_envs), envs.unwrapped.rows
    shown, info = envs.reset(seed=seed)
    slope, asked = np.zeros((len(rows), len(FEATURES))), np.zeros(rest.horizon)
    for step in range(rest.horizon):
        s, u = np.minimum(shown["staleness"], 10) / 10, 1 - shown["confidence"] / 100
        moment = shown["step"], rest.horizon, shown["probes_left"], rest.budget
        phi = features(shown["c"], s, u, shown["d"], *moment)
        odds = np.exp((phi * weights).sum(axis=-1)) * info["action_mask"][:, rest.probing :]
        chance = odds / (1 + odds.sum(axis=1, keepdims=True))  # [env, field]
        drawn = random.random((len(rows), 1)) < chance.cumsum(axis=1)
        asks, field = drawn.any(axis=1), drawn.argmax(axis=1)
        slope += asks[:, None] * phi[rows, field] - (chance[..., None] * phi).sum(axis=1)
        acts = np.where(shown["proposal"] >= 0, shown["proposal"], rest.world.actions)  # the last one waits
        shown, *_, info = envs.step(np.where(asks, rest.probing + field, acts))
        asked[step] = asks.mean()
    return Round(info["measures"]["accuracy"], slope, asked)


def ascent(accuracy: Floats, slope: Floats) -> Floats:
    """The gradient of the mean accuracy, in its standard deviations, [feature].

    >>> ascent(np.array([1.0, 0.0]), np.array([[2.0], [0.0]])).tolist()
    [1.0]
    """
    return ((accuracy - accuracy.mean())[:, None] * slope).mean(axis=0) / max(accuracy.std(), LEAST)


def learn(envs: Any, rounds: int, training: int, rate: float) -> Learned:
    """Weights that were learned in some rounds, each on seeds of its own from `training` on.

    The same arguments give the same weights: what is done is drawn from a generator of seed 0.
    """
    weights, random = [np.where(np.array(FEATURES) == "always", SELDOM, 0.0)], np.random.default_rng(0)
    accuracy, asked, mean, square = [], [], 0.0, 0.0
    for number in range(1, rounds + 1):
        found = play_round(envs, weights[-1], training + envs.num_envs * (number - 1), random)
        climb = ascent(found.accuracy, found.slope)
        mean = MEMORY * mean + (1 - MEMORY) * climb
        square = LONG_MEMORY * square + (1 - LONG_MEMORY) * climb**2
        size = np.sqrt(square / (1 - LONG_MEMORY**number)) + LEAST
        weights.append(weights[-1] + rate * mean / (1 - MEMORY**number) / size)
        accuracy.append(found.accuracy.mean())
        asked.append(found.asked)
    return Learned(np.array(weights), np.array(accuracy), np.array(asked))


def greedy(weights: Floats) -> Any:
    """The score function of learned weights: above the gate where asking is likelier than acting."""

    def score(view: Any) -> Floats:
        moment = view.step, view.horizon, view.budget - view.used, view.budget
        return (features(view.c, view.s, view.u, view.d, *moment) * weights).sum(axis=-1) + view.threshold

    return score
