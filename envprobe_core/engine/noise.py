"""Every random draw of the companion: a counter-based hash, no generator objects.

A word depends on (seed, world, stream, clock, field) and on nothing else, so two policies that run on one
seed meet the same draws, in any order, block or process.
"""

import numpy as np

from envprobe_core.engine.compiling import compiled

U = np.uint64
GOLDEN = U(0x9E3779B97F4A7C15)
FIRST, SECOND = U(0xBF58476D1CE4E5B9), U(0x94D049BB133111EB)
SLOTS, ONE, LOW, QUARTER = U(64), U(1), U(0xFFFFFFFF), U(0xFFFF)

# what a draw is used for: streams never share words
INSTANCE, MUTATION, VISIBLE, WRITE, STALENESS, IMPULSE, PROBE = range(1, 8)
STREAMS = 8


@compiled
def mix(word):
    """Finish a word (SplitMix64; Steele, Lea and Flood, 2014)."""
    word = (word ^ (word >> U(30))) * FIRST
    word = (word ^ (word >> U(27))) * SECOND
    return word ^ (word >> U(31))


@compiled
def stream_keys(seed, code, keys):
    """Fill in the key of every stream of a seed in the world of that code, [stream]."""
    own = mix(U(seed) + GOLDEN)
    for stream in range(STREAMS):
        keys[stream] = mix(own ^ mix(((U(code) << U(32)) + U(stream)) * GOLDEN))


@compiled
def numbered(key, number):
    """Draw the word of a number, 0, 1, ..."""
    return mix(key + (U(number) + ONE) * GOLDEN)


@compiled
def draw(key, clock, field):
    """Draw the word of a clock and a field."""
    return mix(key + (U(clock) * SLOTS + U(field) + ONE) * GOLDEN)


@compiled
def happens(word, level):
    """Say by the lower half of a word whether an event of that level (`level32`) happens."""
    return word & LOW < level


@compiled
def choice(word, count):
    """Choose one of `count` by the upper half."""
    return np.int64(((word >> U(32)) * U(count)) >> U(32))


@compiled
def quarter(word, which):
    """Return one of the four 16-bit quarters, the lowest first."""
    return np.int64((word >> U(16 * which)) & QUARTER)


@compiled
def quarter_choice(word, which, count):
    """Choose one of `count` by a quarter."""
    return (quarter(word, which) * count) >> 16


def level32(probability: float) -> np.uint64:
    """Return the number a lower half must stay below for an event of this probability."""
    return U(int(probability * 2.0**32 + 0.5))


def level16(probability: float) -> int:
    """Return the number a quarter must stay below for an event of this probability."""
    return int(probability * 2.0**16 + 0.5)
