"""The measures of arrays on hand-worked episodes, and against plain loops on random ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import mannwhitneyu
from strategies import cells, seeds

from envprobe_core import measures
from envprobe_core.sweep import Piece, Task, simulate

BELIEF = np.array([[[1, 0, -1], [1, 1, 0], [0, 1, 1]]], dtype=np.int8)
GOLD = np.array([[[1, 0, 1], [1, 0, 1], [0, 1, 0]]], dtype=np.int8)


@given(arrays.arrays(bool, arrays.array_shapes(min_dims=1, max_dims=3, max_side=127)))
def test_count_true(members: np.ndarray) -> None:
    assert measures.count_true(members).tolist() == members.sum(axis=-1).tolist()


def test_right_fields() -> None:
    assert measures.right_fields(BELIEF, GOLD).tolist() == [[2, 1, 2]]


def test_at_end_and_mean_over_steps() -> None:
    track = np.array([[1.0, 2.0, 4.0], [5.0, 7.0, 11.0]])
    assert measures.at_end(track, np.array([2, 0])).tolist() == [4.0, 5.0]
    assert measures.mean_over_steps(track, np.array([3, 2])).tolist() == [7 / 3, 6.0]
    assert measures.mean_over_steps(track, np.array([1, 0])).tolist() == [1.0, 0.0]


def test_repeated_probes() -> None:
    probe = np.array([[2, -1, 2, 2, 0], [-1, -1, -1, -1, -1], [3, 0, 1, 2, -1]])
    assert measures.repeated_probes(probe, 4).tolist() == [2, 0, 0]


def test_useful_probe_rate() -> None:
    useful, probes = np.array([2, 0, 0]), np.array([4, 0, 3])
    np.testing.assert_array_equal(measures.useful_probe_rate(useful, probes), [0.5, np.nan, 0.0])
    one = np.array([1])
    assert measures.useful_probe_rate(one, one).tolist() == [1.0]


@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 40), st.randoms(use_true_random=False))
def test_right_fields_against_plain_loops(rows: int, times: int, fields: int, random: object) -> None:
    draw = np.random.default_rng(random.getrandbits(32))
    belief = draw.integers(-1, 3, (rows, times, fields)).astype(np.int8)
    gold = draw.integers(0, 3, (rows, times, fields)).astype(np.int8)
    right = measures.right_fields(belief, gold)
    for row in range(rows):
        for time in range(times):
            count = sum(int(b == g) for b, g in zip(belief[row, time], gold[row, time], strict=True))
            assert right[row, time] == count


# confidence

counts = st.lists(st.integers(0, 6), min_size=101, max_size=101).map(np.array)


@settings(max_examples=25, deadline=None)
@given(counts, counts)
def test_auc_equals_mann_whitney(right, wrong):
    percents = np.arange(101)
    ours = float(measures.area_under_curve(right, wrong))
    if not right.sum() or not wrong.sum():
        assert np.isnan(ours)
        return
    one, other = np.repeat(percents, right), np.repeat(percents, wrong)
    expected = mannwhitneyu(one, other).statistic / (len(one) * len(other))
    assert ours == pytest.approx(expected, abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(counts, counts)
def test_ece_equals_its_definition(right, wrong):
    total = right + wrong
    if not total.sum():
        return
    gap = 0.0
    for low in range(0, 100, 10):
        inside = slice(low, 101 if low == 90 else low + 10)
        count = total[inside].sum()
        if count:
            sure = (total[inside] * np.arange(101)[inside] / 100).sum() / count
            gap += count / total.sum() * abs(right[inside].sum() / count - sure)
    assert float(measures.expected_calibration_error(right, wrong)) == pytest.approx(gap, abs=1e-12)
    assert measures.reliability(right, wrong)["count"].sum() == total.sum()


def test_a_perfect_and_a_useless_confidence():
    right, wrong = np.zeros(101), np.zeros(101)
    right[100], wrong[0] = 5, 7
    assert measures.area_under_curve(right, wrong) == 1
    assert measures.expected_calibration_error(right, wrong) == 0
    assert measures.area_under_curve(wrong, right) == 0
    assert measures.area_under_curve(right, right) == 0.5


@settings(max_examples=25, deadline=None)
@given(cells(), seeds)
def test_audit_counts_fit_together(cell, own):
    recording = simulate(Task((Piece(0, cell, own),)), reports=True)
    found = measures.audit_counts(recording, cell.protocol, own)
    right, wrong = measures.confidence_histogram(recording, cell.protocol)
    canonical = measures.confident_counts(recording, cell.protocol)
    np.testing.assert_array_equal(found["confident"], canonical["confident"])
    np.testing.assert_array_equal((right + wrong)[:, 70:].sum(axis=1), found["confident"])
    np.testing.assert_array_equal(wrong[:, 70:].sum(axis=1), found["confident_wrong"])
    np.testing.assert_array_equal(wrong.sum(axis=1), found["wrong_known"])
    assert (found["low_consistent"] <= found["low_steps"]).all()
    assert (found["scan_wrong"] <= found["scan_confident"]).all()
    assert (found["scan_confident"] <= found["scan_beliefs"]).all()
    inside = own % measures.SAMPLE == 0
    np.testing.assert_array_equal(found["sample_wrong"], np.where(inside, found["confident_wrong"], 0))


def test_the_self_check_is_the_last_own_action():
    acted = np.array([[True, False, True, False, False]])
    valid = np.array([[False, False, True, False, False]])
    expected = [[True, False, False, True, True]]
    np.testing.assert_array_equal(measures.consistent(acted, valid), expected)


@settings(max_examples=25, deadline=None)
@given(cells(), seeds)
def test_low_steps_by_naive_loops(cell, own):
    recording = simulate(Task((Piece(0, cell, own),)), reports=True)
    accuracy = measures.step_accuracy(recording, cell.protocol)
    found = measures.audit_counts(recording, cell.protocol, own)
    for row in range(len(own)):
        low = passed = 0
        sure = True
        for t in range(int(recording.steps[row])):
            if recording.acted[row, t]:
                if accuracy[row, t] < 0.6:
                    low += 1
                    passed += sure
                sure = bool(recording.valid[row, t])
        assert (found["low_steps"][row], found["low_consistent"][row]) == (low, passed)
