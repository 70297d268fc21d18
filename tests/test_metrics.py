"""The paper's measures on hand-worked episodes, and against naive twins on random ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envprobe_core import metrics

BELIEF = np.array([[[1, 0, -1], [1, 1, 0], [0, 1, 1]]], dtype=np.int8)
GOLD = np.array([[[1, 0, 1], [1, 0, 1], [0, 1, 0]]], dtype=np.int8)


def test_right_fields() -> None:
    assert metrics.right_fields(BELIEF, GOLD).tolist() == [[2, 1, 2]]


def test_lagged_right_fields_compare_the_belief_before_with_gold_after() -> None:
    # time 0: b0 with g0; time 1: b0 = 1 0 ? with g1 = 1 0 1; time 2: b1 = 1 1 0 with g2 = 0 1 0
    assert metrics.lagged_right_fields(BELIEF, GOLD).tolist() == [[2, 2, 2]]
    apart = BELIEF.copy()
    apart[0, 1] = [0, 1, 0]
    assert metrics.lagged_right_fields(apart, GOLD).tolist() == [[2, 2, 3]]


def test_first_true() -> None:
    condition = np.array([[False, True, True], [False, False, False], [True, False, False]])
    np.testing.assert_array_equal(metrics.first_true(condition), [1.0, np.nan, 0.0])


@pytest.mark.parametrize(
    ("track", "steps", "first_time", "rule", "onset"),
    [
        ([0.9, 0.6, 0.59, 0.9], 3, 0, "first", 2),
        ([0.5, 0.9, 0.9, 0.9], 3, 0, "first", 0),
        ([0.6, 0.6, 0.6, 0.6], 3, 0, "first", None),
        ([0.9, 0.9, 0.9, 0.1], 2, 0, "first", None),
        ([0.9, 0.9, 0.1, 0.9], 2, 0, "first", 2),
        ([0.5, 0.9, 0.5, 0.5], 4, 1, "two-below", 3),
        ([0.5, 0.5, 0.9, 0.9], 4, 1, "two-below", 1),
        ([0.9, 0.5, 0.9, 0.5], 4, 1, "two-below", 4),
        ([0.9, 0.5, 0.9, 0.5], 3, 1, "two-below", None),
        ([0.9, 0.5, 0.5, 0.9], 2, 1, "two-below", 2),
        ([0.9, 0.5, 0.9, 0.9], 4, 1, "first", 2),
        ([0.9, 0.9, 0.9, 0.59], 4, 1, "first", 4),
    ],
)
def test_collapse_onset(
    track: list[float], steps: int, first_time: int, rule: str, onset: int | None
) -> None:
    found = metrics.collapse_onset(np.array([track]), np.array([steps]), first_time, rule)
    np.testing.assert_array_equal(found, [np.nan if onset is None else onset])


def test_action_onset_counts_valid_task_actions_only() -> None:
    acted = np.array([[1, 1, 0, 1, 1], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]], dtype=bool)
    valid = np.array([[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0, 0, 0, 0, 0], [0, 1, 1, 1, 1]], dtype=bool)
    # row 0: 1/1, 2/2, probe, 2/3, 2/4 < .6 at step 4; row 1: 3/5 is not below .6; row 3: 0/1 at once
    np.testing.assert_array_equal(metrics.action_onset(acted, valid), [4, np.nan, np.nan, 0])


def test_at_end_and_mean_over_steps() -> None:
    track = np.array([[1.0, 2.0, 4.0], [5.0, 7.0, 11.0]])
    assert metrics.at_end(track, np.array([2, 0])).tolist() == [4.0, 5.0]
    assert metrics.mean_over_steps(track, np.array([3, 2])).tolist() == [7 / 3, 6.0]
    assert metrics.mean_over_steps(track, np.array([1, 0])).tolist() == [1.0, 0.0]


def test_repeated_probes() -> None:
    probe = np.array([[2, -1, 2, 2, 0], [-1, -1, -1, -1, -1], [3, 0, 1, 2, -1]])
    assert metrics.repeated_probes(probe, 4).tolist() == [2, 0, 0]


def test_useful_probe_rates() -> None:
    useful, probes, budget = np.array([2, 0, 0]), np.array([4, 0, 3]), np.array([7, 7, 0])
    np.testing.assert_array_equal(metrics.useful_probe_rate(useful, probes), [0.5, np.nan, 0.0])
    np.testing.assert_array_equal(metrics.normalized_useful_probe_rate(useful, budget), [2 / 7, 0.0, np.nan])
    one = np.array([1])
    assert metrics.useful_probe_rate(one, one).tolist() == [1.0]
    assert metrics.normalized_useful_probe_rate(one, one).tolist() == [1.0]


@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 40), st.randoms(use_true_random=False))
def test_against_plain_loops(rows: int, times: int, fields: int, random: object) -> None:
    draw = np.random.default_rng(random.getrandbits(32))
    belief = draw.integers(-1, 3, (rows, times, fields)).astype(np.int8)
    gold = draw.integers(0, 3, (rows, times, fields)).astype(np.int8)
    right = metrics.right_fields(belief, gold)
    lagged = metrics.lagged_right_fields(belief, gold)
    for row in range(rows):
        for time in range(times):
            count = sum(int(b == g) for b, g in zip(belief[row, time], gold[row, time], strict=True))
            assert right[row, time] == count
            before = belief[row, max(time - 1, 0)]
            assert lagged[row, time] == sum(int(b == g) for b, g in zip(before, gold[row, time], strict=True))


@given(st.lists(st.sampled_from([0.0, 0.59, 0.6, 1.0]), min_size=1, max_size=12), st.data())
def test_onset_against_a_plain_loop(track: list[float], data: st.DataObject) -> None:
    first_time = data.draw(st.sampled_from([0, 1]))
    steps = data.draw(st.integers(first_time, len(track) - 1 + first_time))
    times = {first_time + k: value for k, value in enumerate(track) if first_time + k <= steps}
    single = [t for t, value in times.items() if value < 0.6]
    double = [t for t in single if t == steps or times[t + 1] < 0.6]
    for rule, hits in (("first", single), ("two-below", double)):
        found = metrics.collapse_onset(np.array([track]), np.array([steps]), first_time, rule)
        np.testing.assert_array_equal(found, [hits[0] if hits else np.nan])
