"""The pure mathematics of Section 5, free of worlds and agents, and where a statement needs a condition more.

A set function over k items is an array [2**k]: entry `mask` is the value of the set whose members are the
bits of `mask`. Every bound is a function of its own, so that property tests can try it on random instances.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from envprobe_core.errors import InputError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
TOLERANCE = 1e-12


def items_of(values: Floats) -> int:
    """Return the number of items k of a set function [2**k]; other lengths are refused."""
    k = len(values).bit_length() - 1
    if len(values) != 1 << k:
        raise InputError(f"a set function has 2**k values, not {len(values)}")
    return k


def members(mask: int, items: int) -> list[int]:
    """List the members of a set given as a mask."""
    return [item for item in range(items) if mask >> item & 1]


def coverage(covers: npt.NDArray[np.bool_], weights: Floats) -> Floats:
    """Return the weighted coverage function, [2**item]: monotone, submodular and 0 at the empty set.

    Args:
        covers: [item, point], which points an item covers.
        weights: [point], from 0.
    """
    items = len(covers)
    chosen = (np.arange(1 << items)[:, None] >> np.arange(items)) & 1 == 1
    return ((chosen[:, :, None] & covers).any(axis=1) * weights).sum(axis=1)


def first_differences(values: Floats) -> tuple[Ints, Ints, Floats]:
    """Return (set, item, Delta(item | set)) of every set and item outside it; [..., 2**k] is accepted."""
    items = items_of(values if values.ndim == 1 else values[0])
    pairs = [(s, i) for s in range(1 << items) for i in range(items) if not s >> i & 1]
    sets, item = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    return sets, item, values[..., sets | 1 << item] - values[..., sets]


def second_differences(values: Floats) -> tuple[Ints, Ints, Ints, Floats]:
    """Return (S, j, i, Delta(i | S) - Delta(i | S + j)) of every S and ordered pair outside it.

    A set function is submodular if and only if none of them is negative (one further member suffices).
    They are symmetric in i and j; each unordered pair is listed once, j before i.
    """
    items = items_of(values if values.ndim == 1 else values[0])
    triples = [
        (s, j, i)
        for s in range(1 << items)
        for j in range(items)
        for i in range(j + 1, items)
        if not s >> i & 1 and not s >> j & 1
    ]
    if not triples:
        none = np.zeros(0, dtype=np.int64)
        return none, none, none, np.zeros((*values.shape[:-1], 0))
    sets, other, item = (np.array(column, dtype=np.int64) for column in zip(*triples, strict=True))
    with_j = sets | 1 << other
    gain = values[..., sets | 1 << item] - values[..., sets]
    later = values[..., with_j | 1 << item] - values[..., with_j]
    return sets, other, item, gain - later


def is_monotone(values: Floats) -> bool:
    """Say whether no added member lowers the value."""
    return bool((first_differences(values)[2] >= -TOLERANCE).all())


def is_submodular(values: Floats) -> bool:
    """Say whether no marginal gain grows with the set."""
    return bool((second_differences(values)[3] >= -TOLERANCE).all())


def best_of_size(values: Floats, size: int) -> float:
    """Return the largest value of a set of at most `size` members: G(S*(B))."""
    sizes = np.bitwise_count(np.arange(len(values), dtype=np.uint64))
    return float(values[sizes <= size].max())


def marginal_quality(values: Floats, order: Sequence[int], steps: int) -> float:
    """Return gamma of a fixed order on the sets it visits: the least realized over best marginal gain.

    Sets at which no item has a positive gain left ask nothing of the score. Items are chosen as listed.

    Args:
        values: a set function [2**k].
        order: the items as the score ranks them.
        steps: how many are chosen, at most k.
    """
    items, mask, quality = items_of(values), 0, 1.0
    for item in order[:steps]:
        best = max(values[mask | 1 << j] - values[mask] for j in range(items) if not mask >> j & 1)
        if best > TOLERANCE:
            quality = min(quality, (values[mask | 1 << item] - values[mask]) / best)
        mask |= 1 << item
    return max(0.0, quality)


def value_of_order(values: Floats, order: Sequence[int], steps: int) -> float:
    """Return the value of the first `steps` items of an order."""
    return float(values[sum(1 << item for item in order[:steps])])


def repair_bound(gamma: float, best: float) -> float:
    """Return the right side of the targeted-repair bound, (1 - exp(-gamma)) G(S*)."""
    return (1.0 - math.exp(-gamma)) * best


def recall_ceiling(wrong: npt.NDArray[np.bool_], confident: npt.NDArray[np.bool_]) -> float:
    """Return |E minus C| / |E|, the share of wrong fields that an uncertainty-only selector may probe."""
    errors = np.count_nonzero(wrong)
    if errors == 0:
        raise InputError("no field is wrong; recall needs at least one")
    return float(1.0 - np.count_nonzero(wrong & confident) / errors)


def uniform_efficiency(gains: Floats) -> float:
    """Return mean gain over best gain; NaN where no gain is positive (the quotient then says nothing)."""
    best = float(np.max(gains))
    return float(np.mean(gains)) / best if best > 0 else math.nan


def displacement_bound(eta: float | Floats, slots: Ints | Floats, needed: Ints | Floats) -> float:
    """Return E[min(1, eta N / K)] over episodes, [row]; a K of 0 gives 1 (nothing is needed)."""
    slots, needed = np.broadcast_arrays(np.asarray(slots, float), np.asarray(needed, float))
    ratio = np.divide(eta * slots, needed, out=np.full(needed.shape, np.inf), where=needed > 0)
    return float(np.minimum(1.0, ratio).mean())


@dataclass(frozen=True)
class SelfReportInstance:
    """A finite joint law of features and gains of several fields.

    Attributes:
        probability: [case], sums to 1.
        h, z: [case, field], structural and self-report features, as whole numbers.
        gain: [case, field], the expected gain of probing the field in that case.
    """

    probability: Floats
    h: Ints
    z: Ints
    gain: Floats

    def conditional_mean(self, *features: Ints) -> Floats:
        """Return each field's mean gain given its own features, spread back to [case, field]."""
        mean = np.empty_like(self.gain)
        for field in range(self.gain.shape[1]):
            own = np.stack([feature[:, field] for feature in features], axis=1)
            _, group = np.unique(own, axis=0, return_inverse=True)
            mass = np.bincount(group, self.probability)
            mean[:, field] = (np.bincount(group, self.probability * self.gain[:, field]) / mass)[group]
        return mean

    @property
    def epsilon(self) -> float:
        """Return the largest |m_i(h, z) - m0_i(h)|."""
        return float(np.abs(self.conditional_mean(self.h, self.z) - self.conditional_mean(self.h)).max())

    def best_rule(self, *features: Ints) -> float:
        """Return the largest expected gain of a rule that sees these features of *all* fields."""
        seen = np.concatenate(features, axis=1)
        _, group = np.unique(seen, axis=0, return_inverse=True)
        best = 0.0
        for value in range(group.max() + 1):
            inside = group == value
            best += float((self.probability[inside, None] * self.gain[inside]).sum(axis=0).max())
        return best

    @property
    def advantage(self) -> float:
        """Return what the best rule gains by seeing z beside h."""
        return self.best_rule(self.h, self.z) - self.best_rule(self.h)


def neighbour_tells() -> SelfReportInstance:
    """A field's gain is told by *another* field's self-report: epsilon is 0, the advantage is not."""
    return SelfReportInstance(
        probability=np.array([0.5, 0.5]),
        h=np.zeros((2, 2), dtype=np.int64),
        z=np.array([[1, 0], [0, 0]]),
        gain=np.array([[0.5, 1.0], [0.5, 0.0]]),
    )


@dataclass(frozen=True)
class AdaptiveSlots:
    """Kinds of episodes with their own number of task slots and effective actions.

    Attributes:
        probability: [kind].
        slots: [kind], N.
        effective: [kind], how many of the slots are effective, for certain.
        needed: K.
    """

    probability: Floats
    slots: Ints
    effective: Ints
    needed: int

    @property
    def success(self) -> float:
        """Return the probability of at least K effective actions."""
        return float(self.probability[self.effective >= self.needed].sum())

    @property
    def pooled_share(self) -> float:
        """Return E[M] / E[N], the share of effective actions counted over all slots."""
        return float((self.probability * self.effective).sum() / (self.probability * self.slots).sum())

    def bound(self, eta: float | Floats) -> float:
        """Return E[min(1, eta N / K)]; eta is one number or [kind]."""
        return float((self.probability * np.minimum(1.0, eta * self.slots / self.needed)).sum())


def stuck_agents_act_longest() -> AdaptiveSlots:
    """Most episodes succeed in few slots, a few flounder through many: the pooled share understates eta."""
    return AdaptiveSlots(np.array([0.9, 0.1]), np.array([10, 910]), np.array([10, 9]), 10)


def redundant_pair() -> Floats:
    """Two repairs that only help together, [2**2]: monotone, not submodular."""
    return np.array([0.0, 0.0, 0.0, 1.0])


def harmful_gains() -> Floats:
    """Single-probe gains that are all negative, [field]: the uniform policy looks better than the best."""
    return np.array([-1.0, -3.0])
