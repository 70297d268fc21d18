"""The counter-based draws: known words, uniformity, independence of everything but their key."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from envprobe_core import noise
from envprobe_core.noise import Stream

GOLDEN = 0x9E3779B97F4A7C15
WRAP = (1 << 64) - 1


def split_mix(state: int) -> int:
    """SplitMix64's finalizer in plain integers."""
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & WRAP
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & WRAP
    return state ^ (state >> 31)


def naive_word(seed: int, world: int, stream: int, clock: int, field: int) -> int:
    salt = split_mix((((world << 32) + stream) * GOLDEN) & WRAP)
    key = split_mix(split_mix((seed + GOLDEN) & WRAP) ^ salt)
    return split_mix((key + (clock * noise.FIELD_SLOTS + field + 1) * GOLDEN) & WRAP)


def test_the_finalizer_is_the_published_one() -> None:
    # first outputs of SplitMix64 from state 0 and from state 1234567, as published with the algorithm
    assert split_mix(GOLDEN) == 0xE220A8397B1DCDAF
    assert split_mix((1234567 + GOLDEN) & WRAP) == 6457827717110365317


@given(
    st.integers(0, 2**63 - 1),
    st.integers(1, 3),
    st.sampled_from(list(Stream)),
    st.integers(0, 60),
    st.integers(0, 63),
)
def test_every_way_to_draw_gives_the_same_word(
    seed: int, world: int, stream: Stream, clock: int, field: int
) -> None:
    key = noise.keys([seed], world, stream)
    expected = naive_word(seed, world, stream, clock, field)
    assert int(noise.word(key, clock, field)[0]) == expected
    assert int(noise.words(key, clock, 64)[0, field]) == expected
    assert int(noise.words(key, np.array([clock]), 64)[0, field]) == expected
    assert int(noise.at_clock(noise.field_keys(key, 64)[:, field], clock)[0]) == expected
    if clock == 0:
        assert int(noise.wide_words(key, 64)[0, field]) == expected


@given(st.integers(0, 2**64 - 1), st.integers(1, 1000))
def test_parts_of_a_word(word: int, count: int) -> None:
    drawn = np.array([word], dtype=np.uint64)
    assert int(noise.low(drawn)[0]) == word & 0xFFFFFFFF
    assert int(noise.high_choice(drawn, count)[0]) == (word >> 32) * count >> 32
    assert [int(noise.quarter(drawn, i)[0]) for i in range(4)] == [
        (word >> 16 * i) & 0xFFFF for i in range(4)
    ]
    chosen = noise.quarter_choice(noise.quarter(drawn, 1), count)
    assert int(chosen[0]) == ((word >> 16) & 0xFFFF) * count >> 16


@pytest.mark.parametrize("probability", [0.0, 0.02, 0.1, 0.3, 0.5, 1.0])
def test_levels_give_their_probability(probability: float) -> None:
    assert abs(int(noise.level32(probability)) / 2**32 - probability) < 2**-32
    assert abs(int(noise.level16(probability)) / 2**16 - probability) <= 2**-17
    draws = noise.words(noise.keys(np.arange(2000), 1, Stream.MUTATION), 3, 20).ravel()
    hits = int((noise.low(draws) < noise.level32(probability)).sum())
    assert stats.binomtest(hits, draws.size, probability).pvalue > 1e-6


def test_draws_are_uniform_and_streams_unrelated() -> None:
    seeds = np.arange(20_000)
    columns = [
        (noise.word(noise.keys(seeds, world, stream), clock, field) >> np.uint64(11)) * 2.0**-53
        for world, stream, clock, field in [
            (1, Stream.MUTATION, 0, 0),
            (1, Stream.MUTATION, 0, 1),
            (1, Stream.MUTATION, 1, 0),
            (1, Stream.WRITE, 0, 0),
            (2, Stream.MUTATION, 0, 0),
        ]
    ]
    for column in columns:
        assert stats.kstest(column, "uniform").pvalue > 1e-6
    correlations = np.corrcoef(columns)[np.triu_indices(len(columns), 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(len(seeds))


def test_neighbouring_seeds_share_no_words() -> None:
    words = noise.words(noise.keys(np.arange(500), 1, Stream.WRITE), 0, 64)
    assert len(np.unique(words)) == words.size
