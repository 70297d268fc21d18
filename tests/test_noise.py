"""The counter-based draws: known words, uniformity, independence of everything but their key."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from envprobe_core.compiled import noise
from envprobe_core.compiled.noise import MUTATION, STREAMS, WRITE, level16, level32
from envprobe_core.compiled.numba_support import kernel
from envprobe_core.compiled.records import FIELDS

GOLDEN, WRAP, SLOTS = 0x9E3779B97F4A7C15, (1 << 64) - 1, int(noise.SLOTS)


@kernel
def fill_in(seeds, code, stream, clock, words, numbered):
    """Fill in the words of a clock, and those that are numbered 0, 1, ..., [seed, field] each."""
    keys = np.zeros(STREAMS, np.uint64)
    for row in range(len(seeds)):
        noise.stream_keys(seeds[row], code, keys)
        for field in range(words.shape[1]):
            words[row, field] = noise.draw(keys[stream], clock, field)
            numbered[row, field] = noise.numbered(keys[stream], field)


@kernel
def take_apart(word, count, level, parts):
    """Fill in the four quarters, a choice by each, one by the upper half, and whether an event happens."""
    for which in range(4):
        parts[which] = noise.quarter(word, which)
        parts[4 + which] = noise.quarter_choice(word, which, count)
    parts[8], parts[9] = noise.choice(word, count), noise.happens(word, level)


def words_of(seeds, world, stream, clock, fields):
    words = np.zeros((2, len(seeds), fields), dtype=np.uint64)
    fill_in(np.array(seeds, dtype=np.int64), world, stream, clock, *words)
    return words


def split_mix(state):
    """SplitMix64's finalizer in plain integers."""
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & WRAP
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & WRAP
    return state ^ (state >> 31)


def naive_word(seed, world, stream, clock, field):
    salt = split_mix((((world << 32) + stream) * GOLDEN) & WRAP)
    key = split_mix(split_mix((seed + GOLDEN) & WRAP) ^ salt)
    return split_mix((key + (clock * SLOTS + field + 1) * GOLDEN) & WRAP)


def test_the_finalizer_is_the_published_one():
    # first outputs of SplitMix64 from state 0 and from state 1234567, as published with the algorithm
    for state, word in ((0, 0xE220A8397B1DCDAF), (1234567, 6457827717110365317)):
        assert split_mix((state + GOLDEN) & WRAP) == word


@given(st.integers(0, 2**63 - 1), st.integers(1, 3), st.integers(1, STREAMS - 1), st.integers(0, 60))
def test_words_are_those_of_plain_integers(seed, world, stream, clock):
    drawn, numbered = words_of([seed], world, stream, clock, SLOTS)[:, 0].tolist()
    assert drawn == [naive_word(seed, world, stream, clock, field) for field in range(SLOTS)]
    assert numbered == [naive_word(seed, world, stream, 0, field) for field in range(SLOTS)]


@given(st.integers(0, 2**64 - 1), st.integers(1, 1000), st.floats(0.0, 1.0))
def test_parts_of_a_word(word, count, probability):
    parts = np.zeros(10, dtype=np.int64)
    take_apart(np.uint64(word), count, level32(probability), parts)
    quarters = [(word >> 16 * i) & 0xFFFF for i in range(4)]
    assert parts[:8].tolist() == quarters + [quarter * count >> 16 for quarter in quarters]
    assert parts[8:].tolist() == [(word >> 32) * count >> 32, (word & 0xFFFFFFFF) < int(level32(probability))]


@pytest.mark.parametrize("probability", [0.0, 0.02, 0.5, 1.0])
def test_levels_give_their_probability(probability):
    draws = words_of(range(2000), 1, MUTATION, 3, 20)[0].ravel()
    low, high = draws & np.uint64(0xFFFFFFFF), draws >> np.uint64(48)
    for hits in (low < level32(probability), high < level16(probability)):
        assert stats.binomtest(int(hits.sum()), draws.size, probability).pvalue > 1e-6


def test_draws_are_uniform_and_streams_unrelated():
    seeds, places = range(20_000), [(1, MUTATION, 0), (1, MUTATION, 1), (1, WRITE, 0), (2, MUTATION, 0)]
    words = np.hstack([words_of(seeds, *place, 2)[0] for place in places])
    for column in (words >> np.uint64(11)).T * 2.0**-53:
        assert stats.kstest(column, "uniform").pvalue > 1e-6
    correlations = np.corrcoef(words.T.astype(float))[np.triu_indices(words.shape[1], 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(len(seeds))
    near = [words_of(range(500), 1, *key, SLOTS)[0] for key in product(range(1, STREAMS), (0, 1))]
    assert len(np.unique(near)) == np.size(near), "neighbours share no words"
    assert FIELDS <= SLOTS
