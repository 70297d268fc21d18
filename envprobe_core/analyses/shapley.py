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

from envprobe_core.errors import InputError

Floats = npt.NDArray[np.float64]
MOST_PLAYERS = 12


def count_players(games: npt.ArrayLike) -> int:
    """Return n for games [..., 2**n].

    Raises:
        InputError: if the last axis is no power of two from 2**1 to 2**12.
    """
    size = np.shape(games)[-1] if np.ndim(games) else 0
    players = size.bit_length() - 1
    if size != 1 << max(players, 0) or not 1 <= players <= MOST_PLAYERS:
        raise InputError(
            f"a game has {size} coalitions; a power of two from 2 to {1 << MOST_PLAYERS} is accepted"
        )
    return players


def without(players: int, left_out: int) -> npt.NDArray[np.int64]:
    """Return the coalitions that hold none of the players of a bit mask, in ascending order."""
    coalitions = np.arange(1 << players)
    return coalitions[coalitions & left_out == 0]


def size_weights(players: int) -> Floats:
    """Return |S|! (n - |S| - 1)! / n! for each size |S| of a coalition without one player, [size]."""
    return np.array([1 / (players * comb(players - 1, size)) for size in range(players)])


def shapley_values(games: npt.ArrayLike) -> Floats:
    """Split each game among its players, [..., player]; the shares sum to v(all) - v(none).

    A player's share is the mean of what it adds over all orders in which the players may come; one that
    never adds anything gets exactly 0.

    Args:
        games: [..., 2**n].
    """
    players, value = count_players(games), np.asarray(games, dtype=np.float64)
    shares = []
    for player in range(players):
        rest = without(players, 1 << player)
        weights = size_weights(players)[np.bitwise_count(rest)]
        shares.append(((value[..., rest | 1 << player] - value[..., rest]) * weights).sum(axis=-1))
    return np.stack(shares, axis=-1)


def pairs(players: int) -> tuple[tuple[int, int], ...]:
    """Return the pairs of players in the order of `interactions`."""
    return tuple(combinations(range(players), 2))


def interactions(games: npt.ArrayLike) -> Floats:
    """Return how much more each pair adds together than one by one, [..., pair], in the order of `pairs`.

    The Shapley interaction index: positive where one factor makes the other worth more.

    Args:
        games: [..., 2**n] with n of 2 or more.

    Raises:
        InputError: for a game of one player.
    """
    players, value = count_players(games), np.asarray(games, dtype=np.float64)
    if players < 2:
        raise InputError("a game of 1 player has no pair; 2 players or more are accepted")
    found = []
    for first, second in pairs(players):
        one, other = 1 << first, 1 << second
        rest = without(players, one | other)
        weights = size_weights(players - 1)[np.bitwise_count(rest)]
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
    count_players(games)
    chosen = [
        others | sum(1 << player for bit, player in enumerate(players) if coalition >> bit & 1)
        for coalition in range(1 << len(players))
    ]
    return np.asarray(games, dtype=np.float64)[..., chosen]
