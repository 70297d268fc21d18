"""Statistics against hand-worked values, naive twins, SciPy and statsmodels."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from envprobe_core import statistics as stats
from envprobe_core.errors import InputError

FINITE = st.floats(-1e6, 1e6, allow_nan=False, allow_subnormal=False)
VALUES = st.lists(FINITE, min_size=2, max_size=12)


def normal(size, seed=0, shift=0.0):
    return np.random.default_rng(seed).normal(shift, 1.0, size)


# naive twins: plain Python, one resample at a time


def naive_means(values, counts):
    return [
        math.fsum(int(k) * float(v) for k, v in zip(row, values, strict=True)) / len(values) for row in counts
    ]


def naive_quantile(draws, q):
    ordered = sorted(draws)
    place = q * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def check(result, draws, mean, n, *, null=0.0, level=0.95, family=1):
    """An estimate is what its resampled statistics say."""
    greater = (1 + sum(d <= null for d in draws)) / (1 + len(draws))
    less = (1 + sum(d >= null for d in draws)) / (1 + len(draws))
    p, tail = min(1, 2 * min(greater, less)), (1 - level) / 2
    assert (result.mean, result.n, result.level, result.family) == (pytest.approx(mean), n, level, family)
    assert (result.p, result.p_greater, result.p_less) == pytest.approx((p, greater, less))
    assert result.p_adjusted == pytest.approx(min(1, family * p))
    for ends, at in (
        ((result.low, result.high), tail),
        ((result.low_adjusted, result.high_adjusted), tail / family),
    ):
        assert ends == pytest.approx((naive_quantile(draws, at), naive_quantile(draws, 1 - at)))


# resample counts and resampled means


def test_counts_are_a_bootstraps_made_once_and_read_only():
    counts = stats.resample_counts(20, 5000)
    assert counts.shape == (5000, 20)
    assert (counts.dtype, stats.resample_counts(256, 10).dtype) == (np.uint8, np.uint16)
    assert (counts.sum(axis=1) == 20).all()
    assert counts.var() == pytest.approx(1 - 1 / 20, abs=0.03)  # binomial: n (1/n) (1 - 1/n)
    first = stats.resample_counts(7, 50)
    assert stats.resample_counts(7, 50) is first
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0] = 9
    kept = first.copy()
    stats.resample_counts.cache_clear()
    stats.resample_counts(5, 50)
    np.testing.assert_array_equal(stats.resample_counts(7, 50), kept)
    source = np.random.Generator(np.random.PCG64(np.random.SeedSequence((3, 7))))
    drawn = source.multinomial(7, [1 / 7] * 7, size=50)
    np.testing.assert_array_equal(stats.resample_counts(7, 50, seed=3), drawn)
    assert not np.array_equal(drawn, kept)


def test_counts_do_not_depend_on_the_block_size(monkeypatch):
    whole = stats.resample_counts(6, 40).copy()
    monkeypatch.setattr(stats, "DRAWS_AT_ONCE", 50)
    stats.resample_counts.cache_clear()
    np.testing.assert_array_equal(stats.resample_counts(6, 40, 0), whole)
    assert [len(b) for b in stats._count_blocks(6, 40, 0)] == [9, 9, 9, 9, 4]
    values = normal(6)
    by_blocks = stats.bootstrap_means(values, resamples=40)
    assert stats.resample_counts.cache_info().misses == 1
    monkeypatch.setattr(stats, "KEPT_UNITS", 5)
    np.testing.assert_array_equal(by_blocks, stats.bootstrap_means(values, resamples=40))
    assert by_blocks == pytest.approx(naive_means(values, whole))


def test_defaults_are_those_of_the_paper():
    values, ones, first = normal(9), np.ones(9), np.arange(9) < 4
    plain = {"resamples": 10_000, "level": 0.95, "seed": 0}
    assert len(stats.bootstrap_means(values)) == len(stats.resample_counts(2)) == 10_000
    for call in (
        lambda **own: stats.paired_bootstrap(values, **own),
        lambda **own: stats.clustered_rate(values, ones, **own),
        lambda **own: stats.clustered_rate(values, ones, first=first, **own),
        lambda **own: stats.median_bootstrap(values[:, None], **own),
        lambda **own: stats.mean_interval(values, **own),
    ):
        assert call() == call(**plain)
    assert stats.paired_bootstrap(values) == stats.paired_bootstrap(values, family=1, null=0.0)
    assert stats.wilson(3, 9) == stats.wilson(3, 9, 0.95)
    np.testing.assert_array_equal(stats.percentile_interval(values), stats.percentile_interval(values, 0.95))


def test_means_equal_the_naive_twin_with_and_without_columns():
    values = normal(9)
    means = stats.bootstrap_means(values, resamples=200, seed=4)
    assert means.shape == (200,)
    assert means == pytest.approx(naive_means(values, stats.resample_counts(9, 200, 4)), rel=1e-12)
    both = stats.bootstrap_means(np.stack([values, 3 * values, np.zeros(9)], axis=1), resamples=200, seed=4)
    assert both.shape == (200, 3)
    np.testing.assert_array_equal(both[:, 0], means)
    assert both[:, 1] == pytest.approx(3 * means)
    assert not both[:, 2].any()


def test_strata_are_resampled_within_and_drawn_independently():
    values = np.array([1.0, 2.0, 4.0, 10.0, 20.0, 40.0, 80.0])
    strata = np.array(["b", "a", "b", "a", "b", "a", "a"])
    means = stats.bootstrap_means(values, strata, resamples=300)
    first = np.array(naive_means(values[strata == "a"], stats.resample_counts(4, 300)))
    second = np.array(naive_means(values[strata == "b"], stats.resample_counts(3, 300)))
    assert means == pytest.approx((4 * first + 3 * np.roll(second, 1)) / 7)
    pair = np.concatenate([normal(50), -normal(50)])  # one matrix for both would give 0 always
    spread = stats.bootstrap_means(pair, np.repeat([0, 1], 50)).std()
    assert spread == pytest.approx(normal(50).std() / math.sqrt(100), rel=0.05)


@settings(max_examples=60, deadline=None)
@given(VALUES, st.data())
def test_means_do_not_depend_on_the_other_columns_and_stay_in_range(values, data):
    others = data.draw(st.lists(FINITE, min_size=len(values), max_size=len(values)))
    alone = stats.bootstrap_means(values, resamples=30)
    beside = stats.bootstrap_means(np.stack([others, values], axis=1), resamples=30)[:, 1]
    np.testing.assert_array_equal(alone, beside)
    scale = max(abs(v) for v in values)
    assert alone.max() <= max(values) + 1e-12 * scale
    assert alone.min() >= min(values) - 1e-12 * scale
    np.testing.assert_array_equal(-alone, stats.bootstrap_means(np.negative(values), resamples=30))


def test_sums_are_exact_where_floats_are_not():
    values = np.array([1 / 3, -1 / 3] * 4)
    means = stats.bootstrap_means(values, resamples=500)
    signs = stats.resample_counts(8, 500) @ np.array([1, -1] * 4)
    np.testing.assert_array_equal(np.sign(means), np.sign(signs))
    assert means == pytest.approx(signs / 24, rel=1e-15)
    large = stats.bootstrap_means(np.full(5, 2.0**40), resamples=3)
    np.testing.assert_array_equal(large, np.full(3, 2.0**40))


# intervals and p-values


@pytest.mark.parametrize(
    ("draws", "null", "expected"),
    [
        ([-1.0, 0.0, 2.0, 3.0], 0.0, (3 / 5, 4 / 5)),
        ([1.0, 2.0, 3.0], 0.0, (1 / 4, 1.0)),
        ([4.0, 5.0, 7.0], 5.0, (3 / 4, 3 / 4)),
        ([1.0, 1e-13, -1e-13], 0.0, (3 / 4, 1.0)),  # within the slack: ties
        ([1.0, 1e-11, -1e-11], 0.0, (2 / 4, 3 / 4)),  # beyond it
        ([1e-13, 1e-13], 1.0, (1.0, 1 / 3)),
        ([8.0 + 4e-12, 8.0], 8.0, (1.0, 1.0)),
        ([0.0, 4e-12], -8.0, (1 / 3, 1.0)),
        ([0.0, 5e-13 - 1], -1.0, (2 / 3, 1.0)),
    ],
)
def test_one_sided_p_counts_ties_on_both_sides_and_is_never_zero(draws, null, expected):
    assert stats.one_sided(draws, null) == expected
    columns = stats.one_sided(np.stack([draws, np.full(len(draws), 1e6)], axis=1), null)
    assert tuple(own[0] for own in columns) == expected, "a column's slack is its own"


def test_paired_bootstrap_equals_the_naive_twin():
    values = normal(15, seed=5, shift=0.4)
    result = stats.paired_bootstrap(values, None, 400, 0.9, 3, null=0.1, seed=2)
    draws = naive_means(values, stats.resample_counts(15, 400, 2))
    check(result, draws, values.mean(), 15, null=0.1, level=0.9, family=3)
    assert 0.02 < result.p < 0.3, "an uninformative example"
    mirrored = stats.paired_bootstrap(-values, None, 400, 0.9, 3, null=-0.1, seed=2)
    assert (mirrored.p, mirrored.p_greater, mirrored.p_less) == (result.p, result.p_less, result.p_greater)
    assert (mirrored.low, mirrored.high) == pytest.approx((-result.high, -result.low))


def test_no_difference_anywhere_has_p_one_and_a_clear_one_the_smallest():
    none = stats.paired_bootstrap(np.zeros(6), family=6)
    assert (none.mean, none.low, none.high, none.low_adjusted, none.high_adjusted) == (0, 0, 0, 0, 0)
    assert (none.p, none.p_adjusted, none.p_greater, none.p_less) == (1, 1, 1, 1)
    clear = stats.paired_bootstrap(np.full(5, 0.25), resamples=99, family=6)
    assert (clear.mean, clear.low, clear.high) == (0.25, 0.25, 0.25)
    assert (clear.p, clear.p_adjusted) == (2 / 100, pytest.approx(0.12))
    assert (clear.p_greater, clear.p_less) == (1 / 100, 1.0)


@settings(max_examples=40, deadline=None)
@given(VALUES, st.floats(-100, 100), st.integers(1, 9))
def test_properties_of_the_paired_bootstrap(values, shift, family):
    result = stats.paired_bootstrap(values, resamples=50, family=family)
    scale = 1e-9 * (max(abs(v) for v in values) + abs(shift) + 1)
    assert result.low_adjusted <= result.low <= result.high <= result.high_adjusted
    assert 0 < result.p <= result.p_adjusted <= 1
    moved = stats.paired_bootstrap(np.add(values, shift), resamples=50, family=family)
    assert moved.low == pytest.approx(result.low + shift, abs=scale)
    assert moved.high_adjusted == pytest.approx(result.high_adjusted + shift, abs=scale)


# rates, contrasts, medians


def test_clustered_rate_equals_the_naive_twin():
    top, bottom = np.array([1.0, 0.0, 0.0, 3.0, 0.0]), np.array([4.0, 0.0, 0.0, 5.0, 0.0])
    result = stats.clustered_rate(top, bottom, null=0.3, level=0.8, family=2, resamples=300, seed=1)
    counts = stats.resample_counts(5, 300, 1)
    draws = [math.fsum(row * top) / math.fsum(row * bottom) for row in counts if (row * bottom).any()]
    assert len(draws) < 300, "no resample without events: an uninformative example"
    check(result, draws, 4 / 9, 2, null=0.3, level=0.8, family=2)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_every_column_is_estimated_as_if_it_were_alone(seed, contrasted):
    rng = np.random.default_rng(seed)
    bottom = rng.integers(0, 3, (9, 4)).astype(float)
    bottom[:2] = 1  # every column has events in both groups
    bottom[:, 3] = 2  # the same for every unit
    top = bottom * rng.random((9, 4))
    own = {"strata": rng.permutation([0] * 4 + [1] * 5), "family": 3, "resamples": 60}
    own["first"] = np.arange(9) % 2 == 0 if contrasted else None
    both = stats.clustered_rate(top, bottom, null=0.4, **own)
    for column in range(4):
        alone = stats.clustered_rate(top[:, column], bottom[:, column], null=0.4, **own)
        for name in ("mean", "low", "high", "p", "n", "low_adjusted", "high_adjusted", "p_adjusted"):
            assert getattr(both, name)[column] == getattr(alone, name), name


def test_contrast_of_two_groups_equals_the_naive_twin():
    values = np.array([3.0, 1.0, 4.0, 10.0, 5.0, 9.0, 2.0])
    first = np.array([True, False, True, False, False, True, False])
    own = {"level": 0.9, "family": 2, "seed": 3, "resamples": 300}
    result = stats.clustered_rate(values, np.ones(7), first=first, **own)
    inside = np.array(naive_means(values[first], stats.resample_counts(3, 300, 3)))
    outside = np.array(naive_means(values[~first], stats.resample_counts(4, 300, 3)))
    draws = np.roll(inside, 1) - outside  # strata in sorted order: False, True
    check(result, draws, 16 / 3 - 18 / 4, 7, level=0.9, family=2)
    fine = stats.clustered_rate(
        [1, 1, 5, 5, 2, 2], np.ones(6), [0, 0, 1, 1, 2, 2], first=[1, 1, 1, 1, 0, 0], resamples=40
    )
    assert (fine.mean, fine.low, fine.high) == (1.0, 1.0, 1.0)
    rates = stats.clustered_rate(
        [1, 2, 0, 1, 6, 0], [2, 4, 0, 1, 6, 0], first=[1, 1, 1, 0, 0, 0], resamples=40
    )
    assert (rates.mean, rates.low, rates.high, rates.n) == (-0.5, -0.5, -0.5, 4)
    with pytest.raises(InputError, match=r"^first leaves a group without events"):
        stats.clustered_rate(np.ones((2, 2)), [[1, 1], [1, 0]], first=[True, False])  # of the second column
    for wrong, said in (
        ([True], "has 1 units, numerators has 2"),
        ([False, True], "leaves a group without events"),
    ):
        with pytest.raises(InputError, match=f"^first {said}"):
            stats.clustered_rate([1.0, 2.0], [1, 0], first=wrong)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_medians_equal_numpys_resample_by_resample(seed):
    rng = np.random.default_rng(seed)
    values = rng.choice([np.nan, 1.0, 2.0, 5.0, 6.5], (7, 2))
    values[0, 0] = 3.0
    result = stats.median_bootstrap(values, null=2.0, family=2, resamples=40, seed=1)
    laid = (np.repeat(values, row, axis=0).ravel() for row in stats.resample_counts(7, 40, 1))
    draws = [np.nanmedian(own) for own in laid if not np.isnan(own).all()]
    n = np.count_nonzero(~np.isnan(values).all(axis=1))
    check(result, draws, np.nanmedian(values), n, null=2.0, family=2)


# means


def test_mean_interval_equals_the_paired_bootstrap_and_its_columns():
    lonely = stats.mean_interval([0.25])
    assert (lonely.value, lonely.n) == (0.25, 1)
    assert np.isnan([lonely.low, lonely.high]).all(), "one unit carries no interval"
    values, strata = normal(40), np.repeat([0, 1], 20)
    for labels in (None, strata):
        interval = stats.mean_interval(values, labels, level=0.9, resamples=100, seed=2)
        result = stats.paired_bootstrap(values, labels, level=0.9, resamples=100, seed=2)
        assert interval == (result.mean, result.low, result.high, 40)
        columns = np.stack([normal(40, 1), values], axis=1)
        ends = stats.mean_intervals(columns, labels, 0.9, resamples=100, seed=2)
        assert tuple(end[1] for end in ends) == interval[:3]
    assert stats.mean_interval([0.1] * 10, resamples=9).value == 0.1


def test_large_samples_use_the_normal_limit(monkeypatch):
    assert stats.LARGE == 10_000
    values = normal(300) ** 2
    resampled = stats.mean_interval(values)
    monkeypatch.setattr(stats, "LARGE", 300)
    assert stats.mean_interval(values) == resampled
    monkeypatch.setattr(stats, "LARGE", 299)
    mean, low, high, n = stats.mean_interval(values, level=0.9)
    half = scipy_stats.norm.ppf(0.95) * np.std(values) / math.sqrt(300)
    assert (mean, low, high, n) == pytest.approx((values.mean(), mean - half, mean + half, 300))
    assert stats.mean_interval(values, np.zeros(300)) == resampled
    both = stats.mean_intervals(np.stack([values, 2 * values], axis=1))
    assert both[1] == pytest.approx(resampled.low * np.array([1, 2]), rel=0.02)


def test_a_track_is_averaged_over_the_episodes_that_still_run():
    few = stats.MIN_RUNNING
    track = np.array([[1.0, 0.5], [0.0, np.nan]] * few)
    found = stats.mean_track(track, 200)
    assert found["t"].tolist() == [0, 1]
    assert found["accuracy"].tolist() == [0.5, 0.5]
    assert found["running"].tolist() == [2 * few, few]
    assert found["n"].tolist() == [2 * few] * 2
    draws = naive_means(track[:, 0], stats.resample_counts(2 * few, 200))
    ends = (naive_quantile(draws, 0.025), naive_quantile(draws, 0.975))
    assert (found["low"][0], found["high"][0]) == pytest.approx(ends)
    assert found["low"][1] == found["high"][1] == 0.5  # every running episode has the same
    assert np.isnan(stats.mean_track(track[1:], 200)["accuracy"]).tolist() == [False, True]
    single = stats.mean_track(np.array([[0.25, np.nan]]), 200)
    assert single["accuracy"][0] == 0.25
    assert np.isnan(single["low"]).all()


# closed forms


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 5000), st.data(), st.floats(0.5, 0.999))
def test_wilson_equals_scipy(n, data, level):
    successes = data.draw(st.integers(0, n))
    share, low, high, trials = stats.wilson(successes, n, level)
    assert (share, trials) == (successes / n, n)
    theirs = scipy_stats.binomtest(successes, n).proportion_ci(level, "wilson")
    assert (low, high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)
    assert (stats.wilson(0, n).low, stats.wilson(n, n).high) == (0.0, 1.0)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_equals_scipy(b, c):
    expected = scipy_stats.binomtest(b, b + c).pvalue if b + c else 1.0
    assert stats.mcnemar_exact(b, c) == stats.mcnemar_exact(c, b) == pytest.approx(expected, rel=1e-9)


def test_closed_forms_by_hand():
    by_hand = {(0, 0): 1.0, (0, 3): 0.25, (1, 4): 0.375, (2, 2): 1.0, (2, 9): 2 * 67 / 2048, (0, 2000): 0.0}
    assert {pair: stats.mcnemar_exact(*pair) for pair in by_hand} == by_hand
    assert stats.wilson(45, 220)[1:3] == pytest.approx((0.1565, 0.2627), abs=1e-4)


# refusals


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("resample_counts", (2.5,), "n is 2.5; a whole number from 1"),
        ("resample_counts", (3, 0), "resamples is 0; a whole number from 1"),
        ("resample_counts", (3, 5, -1), "seed is -1; a whole number from 0"),
        ("bootstrap_means", ([],), "values is empty; at least one value is needed"),
        ("bootstrap_means", ([[1.0, 2.0], [np.inf, 2.0]],), "values holds inf at unit 1; finite numbers"),
        ("bootstrap_means", (np.zeros((2, 2, 2)),), "values has 3 dimensions; [unit] or [unit, column]"),
        ("bootstrap_means", ([1.0, 2.0], [0]), "strata has 1 units, values has 2; equal lengths"),
        ("bootstrap_means", ([1.0],), "the sample has 1 unit; a bootstrap needs at least 2"),
        ("bootstrap_means", ([1.0, 2.0, 3.0], ["a", "b", "a"]),
         "stratum b has 1 unit; a bootstrap needs at least 2"),
        ("one_sided", ([],), "draws is empty; at least one value is needed"),
        ("percentile_interval", ([1.0], 1), "level is 1; a number between 0 and 1"),
        ("mean_interval", ([1.0], None, np.nan), "level is nan; a number between 0 and 1"),
        ("mean_interval", ([[1.0]],), "values has 2 dimensions; [unit]"),
        ("paired_bootstrap", ([1.0, 2.0], None, 9, 0.9, 0), "family is 0; a whole number from 1"),
        ("clustered_rate", ([1.0], [1.0, 2.0]),
         "numerators has 1 units, denominators has 2; equal lengths"),
        ("clustered_rate", ([1.0, 1.0], [1.0, -2.0]), "denominators hold -2.0; numbers from 0"),
        ("clustered_rate", ([1.0, 1.0], [0.0, 0.0]), "denominators are all 0; at least one event is needed"),
        ("median_bootstrap", (np.zeros(3),), "values have 1 dimensions; [unit, column]"),
        ("median_bootstrap", ([[np.nan]],), "values are all undefined; at least one value is needed"),
        ("mean_intervals", ([],), "values is empty; at least one value is needed"),
        ("paired_bootstrap", ([[1.0]],), "differences has 2 dimensions; [unit]"),
        ("clustered_rate", ([1.0], [np.nan]), "denominators holds nan at unit 0; finite numbers"),
        ("wilson", (0, 0), "n is 0; a whole number from 1"),
        ("wilson", (-1, 3), "successes is -1; a whole number from 0"),
        ("mcnemar_exact", (-1, 0), "only_first is -1; a whole number from 0"),
        ("wilson", (4, 3), "successes is 4; a number from 0 to 3"),
        ("mcnemar_exact", (0, 1.5), "only_second is 1.5; a whole number from 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_by_name(name, arguments, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        getattr(stats, name)(*arguments)
