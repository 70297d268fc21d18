"""Set functions over k items: the mathematics behind the repair bound of Section 5.1.

A set function is an array [2**k]: entry `mask` is the value of the set whose members are the bits of `mask`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from envprobe_core.errors import InputError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
TOLERANCE = 1e-12


def items_of(values: Floats) -> int:
    """Return the number of items k of a set function [..., 2**k]; other lengths are refused."""
    length = values.shape[-1]
    k = length.bit_length() - 1
    if length != 1 << k:
        raise InputError(f"a set function has 2**k values, not {length}")
    return k


def members(mask: int, items: int) -> list[int]:
    """List the members of a set given as a mask."""
    return [item for item in range(items) if mask >> item & 1]


def subsets(items: int) -> npt.NDArray[np.bool_]:
    """Return every set as a row, [2**item, item]."""
    return (np.arange(1 << items)[:, None] >> np.arange(items)) & 1 == 1


def sizes(items: int) -> Ints:
    """Return the size of every set, [2**item]."""
    return subsets(items).sum(axis=1)


def coverage(covers: npt.NDArray[np.bool_], weights: Floats) -> Floats:
    """Return the weighted coverage function, [2**item]: monotone, submodular and 0 at the empty set.

    Args:
        covers: [item, point], which points an item covers.
        weights: [point], from 0.
    """
    return ((subsets(len(covers))[:, :, None] & covers).any(axis=1) * weights).sum(axis=1)


def first_differences(values: Floats) -> tuple[Ints, Ints, Floats]:
    """Return (set, item, Delta(item | set)) of every set and item outside it; [..., 2**k] is accepted."""
    items = items_of(values)
    pairs = [(s, i) for s in range(1 << items) for i in range(items) if not s >> i & 1]
    sets, item = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    return sets, item, values[..., sets | 1 << item] - values[..., sets]


def second_differences(values: Floats) -> tuple[Ints, Ints, Ints, Floats]:
    """Return (S, j, i, Delta(i | S) - Delta(i | S + j)) of every S and unordered pair outside it, j before i.

    A set function is submodular if and only if none of them is negative: one further member suffices.
    """
    items = items_of(values)
    triples = [
        (s, j, i)
        for s in range(1 << items)
        for j in range(items)
        for i in range(j + 1, items)
        if not s >> i & 1 and not s >> j & 1
    ]
    sets, other, item = np.array(triples, dtype=np.int64).reshape(-1, 3).T
    larger = sets | 1 << other
    gain = values[..., sets | 1 << item] - values[..., sets]
    return sets, other, item, gain - (values[..., larger | 1 << item] - values[..., larger])


def is_monotone(values: Floats) -> bool:
    """Say whether no added member lowers the value."""
    return bool((first_differences(values)[2] >= -TOLERANCE).all())


def is_submodular(values: Floats) -> bool:
    """Say whether no marginal gain grows with the set."""
    return bool((second_differences(values)[3] >= -TOLERANCE).all())


def best_of_size(values: Floats, size: int) -> float:
    """Return the largest value of a set of at most `size` members: G(S*(B))."""
    return float(values[sizes(items_of(values)) <= size].max())


def marginal_quality(values: Floats, order: Sequence[int], steps: int) -> float:
    """Return gamma of a fixed order on the sets it visits: the least realized over best marginal gain.

    Sets at which no item has a positive gain left ask nothing of the score.

    Args:
        values: a set function [2**k].
        order: the items as the score ranks them.
        steps: how many are chosen, at most k.
    """
    mask, quality = 0, 1.0
    for item in order[:steps]:
        gains = [
            values[mask | 1 << other] - values[mask]
            for other in range(items_of(values))
            if not mask >> other & 1
        ]
        if max(gains) > TOLERANCE:
            quality = min(quality, (values[mask | 1 << item] - values[mask]) / max(gains))
        mask |= 1 << item
    return max(0.0, quality)
