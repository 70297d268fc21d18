"""Shapley values of small games: a total split among its factors, whatever order they are turned in.

A game of n players is an array [..., 2**n]: entry k is the value of the coalition whose members are the set
bits of k. Sources: Shapley (1953); Grabisch and Roubens (1999) for the interaction of pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb

import numpy as np
import numpy.typing as npt

from envprobe_core.worlds.base import Floats


def players_of(games: Floats) -> int:
    """Return n for games [..., 2**n]."""
    return games.shape[-1].bit_length() - 1


def without(players: int, left_out: int) -> tuple[npt.NDArray[np.int64], Floats]:
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
    for player in range(players_of(value)):
        rest, weights = without(players_of(value), 1 << player)
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
    for first, second in pairs(players_of(value)):
        one, other = 1 << first, 1 << second
        rest, weights = without(players_of(value), one | other)
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
