"""Every random draw of the companion: a counter-based hash, no generator objects.

A word depends on (seed, world, stream, clock, field) and on nothing else, so two policies that run on one
seed meet the same draws, in any order, block or process.
"""

import numpy as np

from envprobe_core.compiled.numba_support import inline

u64 = np.uint64
GOLDEN = u64(0x9E3779B97F4A7C15)
FIRST, SECOND = u64(0xBF58476D1CE4E5B9), u64(0x94D049BB133111EB)
SLOTS, ONE, LOW, QUARTER = u64(64), u64(1), u64(0xFFFFFFFF), u64(0xFFFF)
HALF_PERCENT, HUNDRED = u64(50), u64(100)  # a division rounds down

# what a draw is used for: streams never share words
INSTANCE, MUTATION, VISIBLE, WRITE, STALENESS, IMPULSE, PROBE = range(1, 8)
STREAMS = 8


@inline
def mix(word):
    """Finish a word (SplitMix64; Steele, Lea and Flood, 2014)."""
    word = (word ^ (word >> u64(30))) * FIRST
    word = (word ^ (word >> u64(27))) * SECOND
    return word ^ (word >> u64(31))


@inline
def stream_keys(seed, code, keys):
    """Fill in the key of every stream of a seed in the world of that code, [stream]."""
    whole = mix(u64(seed) + GOLDEN)
    for stream in range(STREAMS):
        keys[stream] = mix(whole ^ mix(((u64(code) << u64(32)) + u64(stream)) * GOLDEN))


@inline
def own_key(key, arm, budget):
    """Return the key of one arm's own luck, from the seed's: an arm is a policy with its budget."""
    return mix(key ^ mix((u64(arm) + (u64(budget) << u64(32)) + ONE) * GOLDEN))


@inline
def numbered(key, number):
    """Draw the word of a number, 0, 1, ..."""
    return mix(key + (u64(number) + ONE) * GOLDEN)


@inline
def draw(key, clock, field):
    """Draw the word of a clock and a field."""
    return mix(key + (u64(clock) * SLOTS + u64(field) + ONE) * GOLDEN)


@inline
def happens(word, level):
    """Say by the lower half of a word whether an event of that level (`level32`) happens."""
    return word & LOW < level


@inline
def choice(word, count):
    """Choose one of `count` by the upper half."""
    return np.int64(((word >> u64(32)) * u64(count)) >> u64(32))


@inline
def quarter(word, which):
    """One of the four 16-bit quarters, the lowest first."""
    return np.int64((word >> u64(16 * which)) & QUARTER)


@inline
def quarter_choice(word, which, count):
    """Choose one of `count` by a quarter."""
    return (quarter(word, which) * count) >> 16


@inline
def percent(count):
    """The level (`level32`) of an event that happens in so many cases of a hundred."""
    return ((u64(count) << u64(32)) + HALF_PERCENT) // HUNDRED


def level32(probability: float) -> np.uint64:
    """The number a lower half must stay below for an event of this probability.

    >>> int(level32(0.5)) == 2**31
    True
    """
    return u64(int(probability * 2.0**32 + 0.5))


def level16(probability: float) -> int:
    """The number a quarter must stay below for an event of this probability.

    >>> level16(0.25)
    16384
    """
    return int(probability * 2.0**16 + 0.5)
