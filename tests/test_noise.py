"""The counter-based draws: known words, uniformity, independence of everything but their key."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from envprobe_core.engine import noise
from envprobe_core.engine.compiling import entry
from envprobe_core.engine.noise import MUTATION, STREAMS, WRITE, level16, level32
from envprobe_core.engine.records import FIELDS

GOLDEN = 0x9E3779B97F4A7C15
WRAP = (1 << 64) - 1
SLOTS = int(noise.SLOTS)


@entry
def draw_words(seeds, code, stream, clocks, words):
    """Fill in the words of a stream, [seed, clock, field]."""
    keys = np.zeros(STREAMS, np.uint64)
    for row in range(len(seeds)):
        noise.stream_keys(seeds[row], code, keys)
        for i in range(len(clocks)):
            for field in range(words.shape[2]):
                words[row, i, field] = noise.draw(keys[stream], clocks[i], field)


@entry
def count_words(seeds, code, stream, words):
    """Fill in the words that are numbered 0, 1, ..., [seed, number]."""
    keys = np.zeros(STREAMS, np.uint64)
    for row in range(len(seeds)):
        noise.stream_keys(seeds[row], code, keys)
        for number in range(words.shape[1]):
            words[row, number] = noise.numbered(keys[stream], number)


@entry
def finish(word):
    return noise.mix(word)


@entry
def take_apart(word, count, level, parts):
    """Fill in the four quarters, a choice by each, one by the upper half, and whether an event happens."""
    for which in range(4):
        parts[which] = noise.quarter(word, which)
        parts[4 + which] = noise.quarter_choice(word, which, count)
    parts[8] = noise.choice(word, count)
    parts[9] = noise.happens(word, level)


def words_of(seeds, world, stream, clocks, fields):
    words = np.zeros((len(seeds), len(clocks), fields), dtype=np.uint64)
    draw_words(np.array(seeds, dtype=np.int64), world, int(stream), np.array(clocks), words)
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
        assert int(finish(np.uint64(state) + np.uint64(GOLDEN))) == word


@settings(deadline=None)
@given(st.integers(0, 2**63 - 1), st.integers(1, 3), st.sampled_from(range(1, STREAMS)), st.integers(0, 60))
def test_words_are_those_of_plain_integers(seed, world, stream, clock):
    expected = [naive_word(seed, world, stream, clock, field) for field in range(SLOTS)]
    assert words_of([seed], world, stream, [clock], SLOTS)[0, 0].tolist() == expected
    first = np.zeros((1, 4 * SLOTS), dtype=np.uint64)
    count_words(np.array([seed]), world, int(stream), first)
    number = clock % 4 * SLOTS  # words are numbered on from clock to clock
    assert first[0, number : number + SLOTS].tolist() == [
        naive_word(seed, world, stream, clock % 4, field) for field in range(SLOTS)
    ]


@settings(deadline=None)
@given(st.integers(0, 2**64 - 1), st.integers(1, 1000), st.floats(0.0, 1.0))
def test_parts_of_a_word(word, count, probability):
    parts = np.zeros(10, dtype=np.int64)
    take_apart(np.uint64(word), count, level32(probability), parts)
    quarters = [(word >> 16 * i) & 0xFFFF for i in range(4)]
    assert parts[:4].tolist() == quarters
    assert parts[4:8].tolist() == [quarter * count >> 16 for quarter in quarters]
    assert parts[8] == (word >> 32) * count >> 32
    assert parts[9] == ((word & 0xFFFFFFFF) < int(level32(probability)))


@pytest.mark.parametrize("probability", [0.0, 0.02, 0.5, 1.0])
def test_levels_give_their_probability(probability):
    draws = words_of(list(range(2000)), 1, MUTATION, [3], 20).ravel()
    low, high = draws & np.uint64(0xFFFFFFFF), draws >> np.uint64(48)
    for hits in (low < level32(probability), high < level16(probability)):
        assert stats.binomtest(int(hits.sum()), draws.size, probability).pvalue > 1e-6


def test_draws_are_uniform_and_streams_unrelated():
    seeds = list(range(20_000))
    columns = [
        (words_of(seeds, world, stream, [clock], field + 1)[:, 0, field] >> np.uint64(11)) * 2.0**-53
        for world, stream, clock, field in [
            (1, MUTATION, 0, 0),
            (1, MUTATION, 0, 1),
            (1, MUTATION, 1, 0),
            (1, WRITE, 0, 0),
            (2, MUTATION, 0, 0),
        ]
    ]
    for column in columns:
        assert stats.kstest(column, "uniform").pvalue > 1e-6
    correlations = np.corrcoef(columns)[np.triu_indices(len(columns), 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(len(seeds))
    words = [words_of(list(range(500)), 1, stream, [0, 1], SLOTS) for stream in range(1, STREAMS)]
    assert len(np.unique(words)) == np.size(words), "neighbours share no words"
    assert FIELDS <= SLOTS
