"""Every random draw of the companion: a counter-based hash, no generator objects.

A word depends on (seed, world, stream, clock, field) and on nothing else, so two policies that run on one
seed meet the same draws, in any order, block size or process.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Quarters = npt.NDArray[np.int32]

_GOLDEN = 0x9E3779B97F4A7C15
_WRAP = (1 << 64) - 1
FIELD_SLOTS = 64
LOW = np.uint64(0xFFFFFFFF)
_BITS32 = np.uint64(32)


class Stream(IntEnum):
    """What a draw is used for; streams never share words."""

    INSTANCE = 1
    MUTATION = 2
    VISIBLE = 3
    WRITE = 4
    STALENESS = 5
    IMPULSE = 6
    PROBE = 7


def _mix(words: Words) -> Words:
    """Finish a word in place with the SplitMix64 finalizer (Steele, Lea and Flood, 2014)."""
    words ^= words >> np.uint64(30)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words


def keys(seeds: npt.ArrayLike, world_code: int, stream: Stream) -> Words:
    """Return the stream's key of every row.

    Args:
        seeds: [row], integers from 0 to 2**63 - 1.
        world_code: the world's number.
        stream: what the draws are for.

    Returns:
        [row] 64-bit keys for `words` and `words_at`.
    """
    rows = np.asarray(seeds, dtype=np.uint64)
    salt = np.array([(world_code << 32) + int(stream)], dtype=np.uint64) * np.uint64(_GOLDEN)
    return _mix(_mix(rows + np.uint64(_GOLDEN)) ^ _mix(salt))


def _offset(clock: int, field: int) -> int:
    return ((clock * FIELD_SLOTS + field + 1) * _GOLDEN) & _WRAP


def words(key: Words, clock: int | npt.NDArray[np.int64], fields: int) -> Words:
    """Draw one word for each of the first fields at a clock.

    Args:
        key: [row] from `keys`.
        clock: one clock for all rows, or [row].
        fields: how many fields, at most FIELD_SLOTS.

    Returns:
        [row, field] words; in memory all rows of a field lie together.
    """
    if isinstance(clock, int):
        rows = key + np.uint64(_offset(clock, 0))
    else:
        rows = key + (clock.astype(np.uint64) * np.uint64(FIELD_SLOTS) + np.uint64(1)) * np.uint64(_GOLDEN)
    steps = np.arange(fields, dtype=np.uint64) * np.uint64(_GOLDEN)
    return _mix(steps[:, None] + rows).T


def field_keys(key: Words, fields: int) -> Words:
    """Return the key of every field: [row, field] for `at_clock`, from [row]."""
    return key[:, None] + np.arange(fields, dtype=np.uint64) * np.uint64(_GOLDEN)


def at_clock(key: Words, clock: int) -> Words:
    """Draw the words of chosen fields: keys [draw] from `field_keys`, result [draw]."""
    return _mix(key + np.uint64(_offset(clock, 0)))


def word(key: Words, clock: int, field: int) -> Words:
    """Draw the words of one field for every row: result [row]."""
    return _mix(key + np.uint64(_offset(clock, field)))


def wide_words(key: Words, count: int) -> Words:
    """Draw `count` words of clock 0 for every row, past FIELD_SLOTS if need be: result [row, draw]."""
    steps = (np.arange(count, dtype=np.uint64) + np.uint64(1)) * np.uint64(_GOLDEN)
    return _mix(key[:, None] + steps)


def level32(probability: float | npt.NDArray[np.float64]) -> Words:
    """Return the threshold a word's lower half must stay below for an event of this probability."""
    return np.floor(np.asarray(probability, dtype=np.float64) * 2.0**32 + 0.5).astype(np.uint64)


def level16(probability: float | npt.NDArray[np.float64]) -> Quarters:
    """Return the threshold a word's quarter must stay below for an event of this probability."""
    return np.floor(np.asarray(probability, dtype=np.float64) * 2.0**16 + 0.5).astype(np.int32)


def low(draws: Words) -> Words:
    """Return the lower 32 bits."""
    return draws & LOW


def high_choice(draws: Words, count: int | npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Choose uniformly among `count` (at most 2**31) by the upper 32 bits."""
    return (((draws >> _BITS32) * np.asarray(count, dtype=np.uint64)) >> _BITS32).astype(np.int64)


def quarter(draws: Words, which: int) -> Quarters:
    """Return one of the four 16-bit quarters of each word, the lowest first, [draw]."""
    return draws.astype("<u8", copy=False).view("<u2")[which::4].astype(np.int32)


def quarter_choice(quarter: Quarters, count: int | Quarters) -> Quarters:
    """Choose uniformly among `count` (at most 2**15) by one quarter of a word."""
    return (quarter * count) >> np.int32(16)
