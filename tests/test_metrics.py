"""The measures of arrays on hand-worked episodes, and against plain loops on random ones."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from envprobe_core import metrics

BELIEF = np.array([[[1, 0, -1], [1, 1, 0], [0, 1, 1]]], dtype=np.int8)
GOLD = np.array([[[1, 0, 1], [1, 0, 1], [0, 1, 0]]], dtype=np.int8)


@given(arrays.arrays(bool, arrays.array_shapes(min_dims=1, max_dims=3, max_side=127)))
def test_count_true(members: np.ndarray) -> None:
    assert metrics.count_true(members).tolist() == members.sum(axis=-1).tolist()


def test_right_fields() -> None:
    assert metrics.right_fields(BELIEF, GOLD).tolist() == [[2, 1, 2]]


def test_at_end_and_mean_over_steps() -> None:
    track = np.array([[1.0, 2.0, 4.0], [5.0, 7.0, 11.0]])
    assert metrics.at_end(track, np.array([2, 0])).tolist() == [4.0, 5.0]
    assert metrics.mean_over_steps(track, np.array([3, 2])).tolist() == [7 / 3, 6.0]
    assert metrics.mean_over_steps(track, np.array([1, 0])).tolist() == [1.0, 0.0]


def test_repeated_probes() -> None:
    probe = np.array([[2, -1, 2, 2, 0], [-1, -1, -1, -1, -1], [3, 0, 1, 2, -1]])
    assert metrics.repeated_probes(probe, 4).tolist() == [2, 0, 0]


def test_useful_probe_rate() -> None:
    useful, probes = np.array([2, 0, 0]), np.array([4, 0, 3])
    np.testing.assert_array_equal(metrics.useful_probe_rate(useful, probes), [0.5, np.nan, 0.0])
    one = np.array([1])
    assert metrics.useful_probe_rate(one, one).tolist() == [1.0]


@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 40), st.randoms(use_true_random=False))
def test_right_fields_against_plain_loops(rows: int, times: int, fields: int, random: object) -> None:
    draw = np.random.default_rng(random.getrandbits(32))
    belief = draw.integers(-1, 3, (rows, times, fields)).astype(np.int8)
    gold = draw.integers(0, 3, (rows, times, fields)).astype(np.int8)
    right = metrics.right_fields(belief, gold)
    for row in range(rows):
        for time in range(times):
            count = sum(int(b == g) for b, g in zip(belief[row, time], gold[row, time], strict=True))
            assert right[row, time] == count
