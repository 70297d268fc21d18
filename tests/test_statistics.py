"""Statistics against naive twins, hand-worked values and SciPy."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from envprobe_core import resampling
from envprobe_core import statistics as stats
from envprobe_core.compiled import noise
from envprobe_core.errors import InputError

FINITE = st.floats(-1e6, 1e6, allow_nan=False, allow_subnormal=False)
VALUES = st.lists(FINITE, min_size=2, max_size=12)
SEED = st.integers(0, 2**32 - 1)


def normal(size, seed=0, shift=0.0):
    return np.random.default_rng(seed).normal(shift, 1.0, size)


# naive twins: plain Python, one resample at a time


def naive_means(values, counts):
    return [
        math.fsum(int(k) * float(v) for k, v in zip(row, values, strict=True)) / len(values) for row in counts
    ]


def naive_counts(n, resamples, seed=0):
    """How often each unit is drawn, [resample, unit]: the definition of the draws in whole numbers."""
    golden, mask = 0x9E3779B97F4A7C15, 2**64 - 1

    def mix(word):
        word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & mask
        word = (word ^ word >> 27) * 0x94D049BB133111EB & mask
        return word ^ word >> 31

    key = mix(mix(seed + golden & mask) ^ mix(((n << 32) + 8) * golden & mask))
    words = np.arange(1, resamples * n + 1, dtype=np.uint64) * golden + key  # which wraps at 2**64
    units = np.repeat(np.arange(resamples) * n, n) + (mix(words) >> 32).astype(int) * n // 2**32
    return np.bincount(units, minlength=resamples * n).reshape(resamples, n)


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
    assert (result.mean, result.n) == (pytest.approx(mean), n)
    assert (result.p, result.p_greater, result.p_less) == pytest.approx((p, greater, less))
    assert result.p_adjusted == pytest.approx(min(1, family * p))
    for ends, at in (
        ((result.low, result.high), tail),
        ((result.low_adjusted, result.high_adjusted), tail / family),
    ):
        assert ends == pytest.approx((naive_quantile(draws, at), naive_quantile(draws, 1 - at)))


# resampling


@settings(max_examples=20)
@given(st.integers(2, 300), st.integers(1, 4), st.integers(0, 2**53 - 1))
def test_units_are_drawn_as_defined_and_no_resample_depends_on_how_many_there_are(n, resamples, seed):
    for many in (resamples, resamples + 3):
        drawn = stats.bootstrap_means(np.eye(n), resamples=many, seed=seed)[:resamples] * n
        np.testing.assert_array_equal(np.rint(drawn), naive_counts(n, resamples, seed))


def test_resamples_are_drawn_in_a_stream_that_the_engine_does_not_use():
    streams = [noise.INSTANCE, noise.MUTATION, noise.VISIBLE, noise.WRITE, noise.STALENESS, noise.IMPULSE]
    assert max(*streams, noise.PROBE) < noise.STREAMS == resampling.RESAMPLING


@pytest.mark.parametrize("n", [2, 7, 220])
def test_counts_are_multinomial_within_monte_carlo_error(n):
    """Chance, variance and covariance of counts, and how the extremes of a row lie, against NumPy's draws."""
    resamples = 20_000
    counts = naive_counts(n, resamples).astype(float)
    reference = np.random.default_rng(1).multinomial(n, np.full(n, 1 / n), size=resamples).astype(float)
    totals = counts.sum(axis=0)  # multinomial itself: n resamples units, all equally likely
    assert 1e-4 < scipy_stats.chi2.sf(((totals - resamples) ** 2 / resamples).sum(), n - 1) < 1 - 1e-4
    for told in (
        lambda c: c.max(axis=1),
        lambda c: (c == 0).sum(axis=1),
        lambda c: c[:, 0],
        lambda c: c[:, -1],
    ):
        values, theirs = (np.bincount(told(c).astype(int), minlength=n + 1) for c in (counts, reference))
        seen = (values + theirs) > 20
        table = np.stack([values[seen], theirs[seen]])
        assert len(table[0]) == 1 or scipy_stats.chi2_contingency(table).pvalue > 1e-4
    neighbours = np.corrcoef(counts[:, 0], counts[:, 1])[0, 1]
    assert neighbours == pytest.approx(-1 / (n - 1), abs=4 / math.sqrt(resamples))
    following = np.corrcoef(counts[:-1, 0], counts[1:, 0])[0, 1]
    assert following == pytest.approx(0, abs=4 / math.sqrt(resamples))


@pytest.mark.parametrize("shift", [0.0, 0.1])
def test_intervals_and_p_are_scipys_within_monte_carlo_error(shift):
    values = normal(220, seed=4, shift=shift)
    ours = stats.paired_bootstrap(values)
    theirs = [
        scipy_stats.bootstrap(
            (values,), np.mean, n_resamples=10_000, method="percentile", rng=np.random.default_rng(seed)
        )
        for seed in range(8)
    ]
    for end, own in (("low", ours.low), ("high", ours.high)):
        ends = [getattr(one.confidence_interval, end) for one in theirs]
        assert abs(own - np.mean(ends)) < 4 * np.std(ends, ddof=1)
    below = np.mean([(one.bootstrap_distribution <= 0).mean() for one in theirs])
    assert ours.p_greater == pytest.approx(below, abs=4 * math.sqrt(below * (1 - below) / 10_000) + 1e-4)


def test_strata_are_resampled_within_and_drawn_independently():
    values = np.array([1.0, 2.0, 4.0, 10.0, 20.0, 40.0, 80.0])
    strata = np.array(["b", "a", "b", "a", "b", "a", "a"])
    means = stats.bootstrap_means(values, strata, resamples=300)
    first = np.array(naive_means(values[strata == "a"], naive_counts(4, 300)))
    second = np.array(naive_means(values[strata == "b"], naive_counts(3, 300)))
    assert means == pytest.approx((4 * first + 3 * np.roll(second, 1)) / 7)
    pair = np.concatenate([normal(50), -normal(50)])  # one matrix for both would give 0 always
    spread = stats.bootstrap_means(pair, np.repeat([0, 1], 50)).std()
    assert spread == pytest.approx(normal(50).std() / math.sqrt(100), rel=0.05)


@settings(max_examples=40)
@given(VALUES, st.data())
def test_means_are_exact_whatever_stands_beside_them(values, data):
    others = data.draw(st.lists(FINITE, min_size=len(values), max_size=len(values)))
    order = data.draw(st.permutations(range(len(values))))
    alone = stats.bootstrap_means(values, resamples=30)
    np.testing.assert_array_equal(
        alone, stats.bootstrap_means(np.stack([others, values], axis=1), resamples=30)[:, 1]
    )
    np.testing.assert_array_equal(-alone, stats.bootstrap_means(np.negative(values), resamples=30))
    units, counts = np.array(values)[order], naive_counts(len(values), 30)[:, order]
    largest = max(map(abs, values))
    assert alone == pytest.approx(naive_means(units, counts), rel=1e-12, abs=1e-12 * largest)
    thirds = np.resize([1 / 3, -1 / 3], 8)
    signs = naive_counts(8, 30) @ np.resize([1, -1], 8)
    np.testing.assert_array_equal(np.sign(stats.bootstrap_means(thirds, resamples=30)), np.sign(signs))


# what resamples say


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
    found = np.empty(resampling.PARTS)
    resampling.summed_up(np.array(draws), null, 0.95, 1.0, found)
    assert (found[resampling.P_GREATER], found[resampling.P_LESS]) == expected


def test_defaults_are_those_of_the_paper():
    values, ones, first = normal(9), np.ones(9), np.arange(9) < 4
    plain = {"resamples": 10_000, "level": 0.95, "seed": 0}
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
    assert len(stats.bootstrap_means(values)) == 10_000
    np.testing.assert_array_equal(stats.percentile_interval(values), stats.percentile_interval(values, 0.95))


def test_paired_bootstrap_equals_the_naive_twin():
    values = normal(15, seed=5, shift=0.4)
    result = stats.paired_bootstrap(values, None, 400, level=0.9, family=3, null=0.1, seed=2)
    draws = naive_means(values, naive_counts(15, 400, 2))
    check(result, draws, values.mean(), 15, null=0.1, level=0.9, family=3)
    assert 0.02 < result.p < 0.3, "an uninformative example"
    none = stats.paired_bootstrap(np.zeros(6), family=6)
    assert none == (0, 0, 0, 1, 6, 0, 0, 1, 1, 1)
    clear = stats.paired_bootstrap(np.full(5, 0.25), resamples=99, family=6)
    assert clear == (0.25, 0.25, 0.25, 2 / 100, 5, 0.25, 0.25, pytest.approx(0.12), 1 / 100, 1.0)


def test_clustered_rate_equals_the_naive_twin():
    top, bottom = np.array([1.0, 0.0, 0.0, 3.0, 0.0]), np.array([4.0, 0.0, 0.0, 5.0, 0.0])
    result = stats.clustered_rate(top, bottom, null=0.3, level=0.8, family=2, resamples=300, seed=1)
    counts = naive_counts(5, 300, 1)
    draws = [math.fsum(row * top) / math.fsum(row * bottom) for row in counts if (row * bottom).any()]
    assert len(draws) < 300, "no resample without events: an uninformative example"
    check(result, draws, 4 / 9, 2, null=0.3, level=0.8, family=2)


@settings(max_examples=30)
@given(SEED, st.booleans())
def test_every_column_is_estimated_as_if_it_were_alone(seed, contrasted):
    rng = np.random.default_rng(seed)
    bottom = rng.integers(0, 3, (9, 4)).astype(float)
    bottom[:2] = 1  # every column has events in both groups
    bottom[:, 3] = 2  # the same for every unit
    top = bottom * rng.random((9, 4))
    own = {"strata": rng.permutation([0] * 4 + [1] * 5), "family": 3, "resamples": 60, "null": 0.4}
    own["first"] = np.arange(9) % 2 == 0 if contrasted else None
    both = stats.clustered_rate(top, bottom, **own)
    for column in range(4):
        alone = stats.clustered_rate(top[:, column], bottom[:, column], **own)
        assert tuple(part[column] for part in both) == alone
        assert alone.low_adjusted <= alone.low <= alone.high <= alone.high_adjusted
        assert 0 < alone.p <= alone.p_adjusted <= 1


def test_a_contrast_of_two_groups_equals_the_naive_twin():
    values = np.array([3.0, 1.0, 4.0, 10.0, 5.0, 9.0, 2.0])
    first = np.array([True, False, True, False, False, True, False])
    own = {"level": 0.9, "family": 2, "seed": 3, "resamples": 300}
    result = stats.clustered_rate(values, np.ones(7), first=first, **own)
    inside = np.array(naive_means(values[first], naive_counts(3, 300, 3)))
    outside = np.array(naive_means(values[~first], naive_counts(4, 300, 3)))
    draws = np.roll(inside, 1) - outside  # strata in sorted order: False, True
    check(result, draws, 16 / 3 - 18 / 4, 7, level=0.9, family=2)
    own = {"first": [1, 1, 1, 1, 0, 0], "resamples": 40}
    fine = stats.clustered_rate([1, 1, 5, 5, 2, 2], np.ones(6), [0, 0, 1, 1, 2, 2], **own)
    assert fine[:3] == (1.0, 1.0, 1.0)
    own["first"] = [1, 1, 1, 0, 0, 0]
    rates = stats.clustered_rate([1, 2, 0, 1, 6, 0], [2, 4, 0, 1, 6, 0], **own)
    assert (*rates[:3], rates.n) == (-0.5, -0.5, -0.5, 4)


def naive_unseen(units, resamples, seed=0, side=0):
    """How often a pair that nobody saw is drawn to the one side more than to the other, [resample]."""
    golden, mask = 0x9E3779B97F4A7C15, 2**64 - 1

    def mix(word):
        word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & mask
        word = (word ^ word >> 27) * 0x94D049BB133111EB & mask
        return word ^ word >> 31

    key = mix(mix(seed + golden & mask) ^ mix(((units << 32) + 9 + side) * golden & mask))
    words = [mix(key + number * golden & mask) for number in range(1, resamples + 1)]
    halves = np.array([[word >> 32, word & 0xFFFFFFFF] for word in words])
    first, second = scipy_stats.poisson.ppf((halves + 0.5) / 2**32, 1.0).T
    return first - second


@pytest.mark.parametrize(("reach", "furthest"), [(1.0, -1.0), (0.0, 1.5 * -0.75), (None, 0.0)])
def test_pairs_that_hardly_differ_are_resampled_with_two_that_nobody_saw(reach, furthest):
    values = np.zeros(40)
    values[[3, 17]] = 0.5, -0.75
    draws = np.array(naive_means(values, naive_counts(40, 400)))
    draws += furthest * naive_unseen(40, 400) / 40
    asked = {"resamples": 400, "reach": reach, "null": 0.003, "family": 3}
    check(stats.clustered_rate(values, np.ones(40), **asked), draws, values.mean(), 40, null=0.003, family=3)
    enough = np.resize([0.0] * 9 + [1.0], 40)  # one of ten differs
    assert stats.paired_bootstrap(enough, reach=1.0) == stats.paired_bootstrap(enough, reach=None)


def test_both_sides_of_a_contrast_have_their_own_unseen_pairs():
    flat, ones = np.zeros((40, 2)), np.ones((40, 2))
    found = stats.ratios(flat, ones, contrasted=True, resamples=400, reach=1.0)
    draws = (naive_unseen(40, 400) - naive_unseen(40, 400, side=1)) / 40
    assert found.low[0] == pytest.approx(naive_quantile(draws, 0.025))
    alike = stats.paired_bootstrap(np.zeros(220), reach=1.0)
    assert (alike.low, alike.mean, alike.high, alike.p) == pytest.approx((-3 / 220, 0, 3 / 220, 1))
    assert stats.paired_bootstrap(np.zeros(220))[1:3] == (0, 0)  # nobody knows how far these could differ


def test_intervals_of_pairs_that_hardly_differ_hold_what_they_promise():
    law, luck = np.repeat([1.0, 0.0], [1, 99]), np.random.default_rng(2)
    held = {}
    for name, reach in (("resampled", None), ("book", 1.0)):
        sample = luck.choice(law, (220, 600))
        found = stats.ratios(sample, np.ones_like(sample), resamples=400, reach=reach)
        held[name] = np.mean((found.low <= 0.01) & (found.high >= 0.01))
    assert held["resampled"] < 0.92
    assert held["book"] > 0.94


@settings(max_examples=30)
@given(SEED)
def test_medians_equal_numpys_resample_by_resample(seed):
    rng = np.random.default_rng(seed)
    values = rng.choice([np.nan, 1.0, 2.0, 5.0, 6.5], (7, 2))
    values[0, 0] = 3.0
    result = stats.median_bootstrap(values, null=2.0, family=2, resamples=40, seed=1)
    laid = (np.repeat(values, row, axis=0).ravel() for row in naive_counts(7, 40, 1))
    draws = [np.nanmedian(own) for own in laid if not np.isnan(own).all()]
    n = np.count_nonzero(~np.isnan(values).all(axis=1))
    check(result, draws, np.nanmedian(values), n, null=2.0, family=2)


# means and shares


def test_a_mean_has_the_interval_of_its_differences_from_zero():
    lonely = stats.mean_interval([0.25])
    assert (lonely.value, lonely.n, *np.isnan(lonely[1:3])) == (0.25, 1, True, True)
    for values, strata in (([2.0], None), ([1.0, 1.0, 4.0], [0, 0, 1])):  # alone, or alone in its stratum
        assert np.isnan(stats.mean_interval(values, strata)[1:3]).all()
        alone = stats.clustered_rate(values, [3.0, 1.0, 2.0][: len(values)], strata, resamples=9)
        assert np.isnan(alone).tolist() == [False, True, True, True, False, *[True] * 5]
    values, strata = normal(40), np.repeat([0, 1], 20)
    for labels in (None, strata):
        interval = stats.mean_interval(values, labels, level=0.9, resamples=100, seed=2)
        result = stats.paired_bootstrap(values, labels, level=0.9, resamples=100, seed=2)
        assert interval == (*result[:3], 40)
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
    half = scipy_stats.norm.ppf(0.95) * np.std(values) / math.sqrt(300)
    expected = (values.mean(), values.mean() - half, values.mean() + half, 300)
    assert stats.mean_interval(values, level=0.9) == pytest.approx(expected)
    assert stats.mean_interval(values, np.zeros(300)) == resampled
    both = stats.mean_intervals(np.stack([values, 2 * values], axis=1))
    assert both[1] == pytest.approx(resampled.low * np.array([1, 2]), rel=0.02)


def test_a_track_is_averaged_over_the_episodes_that_still_run():
    few = stats.MIN_RUNNING
    track = np.array([[1.0, 0.5], [0.0, np.nan]] * few)
    found = stats.mean_track(track, 200)
    draws = naive_means(track[:, 0], naive_counts(2 * few, 200))
    ends = (naive_quantile(draws, 0.025), naive_quantile(draws, 0.975))
    expected = {"t": [0, 1], "accuracy": [0.5, 0.5], "running": [2 * few, few], "n": [2 * few] * 2}
    expected |= {name: [pytest.approx(end), 0.5] for name, end in zip(("low", "high"), ends, strict=True)}
    assert {name: column.tolist() for name, column in found.items()} == expected
    assert np.isnan(stats.mean_track(track[1:], 200)["accuracy"]).tolist() == [False, True]
    single = stats.mean_track(np.array([[0.25, np.nan]]), 200)
    assert (single["accuracy"][0], *np.isnan(single["low"])) == (0.25, True, True)


@settings(max_examples=50)
@given(st.integers(1, 5000), st.data(), st.floats(0.5, 0.999))
def test_wilson_s_interval_is_scipys(n, data, level):
    successes = data.draw(st.integers(0, n))
    share, low, high, trials = stats.wilson(successes, n, level)
    assert (share, trials) == (successes / n, n)
    ends = scipy_stats.binomtest(successes, n).proportion_ci(level, "wilson")
    assert (low, high) == pytest.approx((ends.low, ends.high), abs=1e-12)
    assert (stats.wilson(0, n).low, stats.wilson(n, n).high) == (0.0, 1.0)


def test_closed_forms_by_hand():
    by_hand = {(0, 0): 1.0, (0, 3): 0.25, (1, 4): 0.375, (2, 2): 1.0, (2, 9): 2 * 67 / 2048, (0, 2000): 0.0}
    assert {pair: stats.mcnemar_exact(*pair) for pair in by_hand} == pytest.approx(by_hand, rel=1e-12)
    assert stats.mcnemar_exact(9, 2) == stats.mcnemar_exact(2, 9)
    assert stats.wilson(45, 220)[1:3] == pytest.approx((0.1565, 0.2627), abs=1e-4)


@settings(max_examples=50)
@given(st.integers(1, 3000), st.data(), st.floats(0.5, 0.9999))
def test_exact_ends_are_where_what_was_seen_has_the_probability_of_a_tail(n, data, level):
    successes = data.draw(st.integers(0, n))
    share, low, high, trials = stats.exact_interval(successes, n, level)
    assert (share, trials) == (successes / n, n)
    tail = pytest.approx((1 - level) / 2, rel=1e-6)
    assert (low == 0.0) if successes == 0 else scipy_stats.binom.sf(successes - 1, n, low) == tail
    assert (high == 1.0) if successes == n else scipy_stats.binom.cdf(successes, n, high) == tail


@pytest.mark.parametrize(
    ("statistic", "given", "asked", "message"),
    [
        *((stats.bootstrap_means, given, {}, message) for given, message in (
            (([],), "values of shape (0,); [unit] or [unit, column], not empty, is"),
            ((np.zeros((2, 2, 2)),), "values of shape (2, 2, 2); [unit] or"),
            (([[1.0, 2.0], [np.inf, 2.0]],), "values hold inf at unit 1; finite numbers"),
            (([1.0, 2.0], [0]), "strata of shape (1,), 2 units; one label a unit"),
            (([1.0, 2.0, 3.0], [np.nan, 0, 0]), "strata hold nan; a label for every unit"),
        )),
        (stats.bootstrap_means, ([1.0, 2.0],), {"seed": -1}, "the seed is -1; a whole number from 0"),
        (stats.bootstrap_means, ([1.0, 2.0],), {"seed": 2**53}, "the seed is 9007199254740992; a whole"),
        *((statistic, (given,), {}, message) for statistic, given, message in (
            (stats.paired_bootstrap, [], "values of shape (0,); [unit], not empty"),
            (stats.median_bootstrap, [1.0, 2.0], "values of shape (2,); [unit, arm], not empty"),
            (stats.mean_intervals, [1.0, 2.0], "values of shape (2,); [unit, column], not empty"),
            (stats.mean_track, np.ones(3), "values of shape (3,); [episode, time], not empty"),
        )),
        *((statistic, given, {"level": level}, f"level {level!r}") for level in (0, 1, np.nan, "95%")
          for statistic, given in (
            (stats.wilson, (1, 3)), (stats.percentile_interval, ([1.0, 2.0],)),
            (stats.normal_half_width, (1.0, 3)), (stats.paired_bootstrap, ([1.0, 2.0],)),
        )),
        (stats.paired_bootstrap, ([1.0, 2.0], None, 0), {}, "resamples are 0; a whole number from 1"),
        *((stats.clustered_rate, ([1.0, 2.0], below), asked, message) for below, asked, message in (
            ([1.0], {}, "numerators of shape (2,), denominators of (1,), first of"),
            (1.0, {}, "numerators of shape (2,), denominators of (), first of (2,)"),
            ([1.0, -2.0], {}, "denominators hold -2.0; numbers from 0"),
            ([0.0, 0.0], {}, "denominators are all 0; at least one event is needed"),
            ([1.0, np.nan], {}, "values hold nan at unit 1; finite numbers"),
            ([1.0, 1.0], {"family": 0}, "level 0.95, family 0: a level in (0, 1)"),
            ([1.0, 1.0], {"first": [True]}, "numerators of shape (2,), denominators of (2,), first of (1,)"),
            ([1.0, 1.0], {"first": [True, True]}, "first leaves a group without events"),
            ([0.0, 1.0], {"resamples": 1, "seed": 2}, "none of 1 resamples holds an event"),
        )),
        (stats.mean_interval, ([],), {}, "values of shape (0,); [unit], not empty"),
        (stats.mean_intervals, ([[1.0, np.nan]],), {}, "values hold NaN or infinity; finite"),
        (stats.median_bootstrap, ([[np.nan]],), {}, "values are all undefined; at least one value is needed"),
        (stats.wilson, (0, 0), {}, "0 successes of 0; n from 1"),
        (stats.wilson, (-1, 3), {}, "-1 successes of 3; n from 1 and successes from 0 to n"),
        (stats.wilson, (4, 3), {}, "4 successes of 3"),
        (stats.mcnemar_exact, (-1, 0), {}, "-1 and 0 discordant pairs; whole numbers from 0"),
        (stats.wilson, (1, np.inf), {}, "1 successes of inf"),
        (stats.exact_interval, (4, 3), {}, "4 successes of 3; n from 1"),
        (stats.exact_interval, (1.5, 3), {}, "1.5 successes of 3; whole numbers"),
        (stats.exact_interval, (1, 3, 1), {}, "level 1"),
        (stats.mcnemar_exact, (1.5, 1.5), {}, "1.5 and 1.5 discordant pairs"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_by_name(statistic, given, asked, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        statistic(*given, **asked)
