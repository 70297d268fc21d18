"""Paired differences and means of episodes: against naive twins, and whatever the order of rows."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from envprobe_core.claims.judge import judge
from envprobe_core.comparing import SHARE, STRATA, compare, summarize
from envprobe_core.errors import InputError
from envprobe_core.policies import POLICIES
from envprobe_core.statistics import clustered_rate, mean_interval, mean_intervals, wilson
from envprobe_core.worlds import WORLDS

N = 24


def grid(policies=("simple", "periodic"), worlds=tuple(WORLDS), protocols=("paper",), n=N, seed=0, **columns):
    """Random episodes; every policy meets the same seeds."""
    rng = np.random.default_rng(seed)
    parts = []
    for protocol in protocols:
        for world in worlds:
            for policy in policies:
                drawn = {
                    "accuracy": rng.integers(0, 28, n) / 27,
                    "success": rng.random(n) < 0.4,
                    "probes": rng.integers(0, 3, n),
                    "useful": 0,
                    "collapse_onset": rng.choice([np.nan, 2, 5, 9], n),
                }
                keys = {"world": world, "policy": policy, "protocol": protocol, "regime": "S2"}
                keys |= {"profile": "typical", "budget": 7, "seed": np.arange(n)}
                parts.append(pd.DataFrame(keys | drawn | columns))
    return pd.concat(parts, ignore_index=True)


def gaps_of(frame, worlds, measure="accuracy"):
    """Differences Simple - Periodic by world and seed, and the worlds' positions: one pair at a time."""
    value = {(r.world, r.policy, r.seed): float(getattr(r, measure)) for r in frame.itertuples()}
    pairs = [
        (at, value[w, "simple", s] - value[w, "periodic", s]) for at, w in enumerate(worlds) for s in range(N)
    ]
    return np.array([gap for _, gap in pairs]), np.array([at for at, _ in pairs])


def test_a_difference_is_the_mean_over_pairs_with_its_resampled_interval():
    frame = grid(protocols=("paper", "released"))
    found = compare(frame, "simple", "periodic", family=6, resamples=300)
    assert found["protocol"].tolist() == ["paper"] * 3 + ["released"] * 3
    assert found["stratum"].tolist() == [*STRATA] * 2
    assert set(found["arm"] + found["reference"]) == {"simpleperiodic"}
    for row in found.itertuples():
        gaps, labels = gaps_of(frame[frame["protocol"] == row.protocol], STRATA[row.stratum])
        twin = clustered_rate(100 * gaps, np.ones(len(gaps)), labels, family=6, resamples=300)
        assert row.gain == pytest.approx(100 * gaps.mean())
        assert (row.gain, row.gain_low, row.gain_high) == (twin.mean, twin.low, twin.high)
        assert (row.gain_low_adjusted, row.gain_high_adjusted) == (twin.low_adjusted, twin.high_adjusted)
        assert (row.p, row.p_adjusted) == (twin.p, twin.p_adjusted)
        assert (row.n, row.same) == (len(gaps), np.count_nonzero(gaps == 0))


def test_a_difference_is_what_the_claim_of_it_is_judged_on():
    frame = grid()
    verdict = judge(frame, "main-procedural", resamples=300).iloc[0]
    family = int(verdict["family"])
    assert family > 1, "else the adjusted interval is the raw one"
    found = compare(frame, "simple", "periodic", family=family, resamples=300).iloc[0]
    for name, claimed in (
        ("gain", "estimate"), ("gain_low", "low"), ("gain_high", "high"), ("p", "p"), ("n", "n"),
        ("gain_low_adjusted", "low_adjusted"), ("gain_high_adjusted", "high_adjusted"),
    ):  # fmt: skip
        assert found[name] == verdict[claimed]


def test_the_interval_covers_as_scipys_does():
    frame = grid(worlds=("tooldag",), n=120)
    row = compare(frame, "simple", "periodic").iloc[0]
    wide = frame.pivot(index="seed", columns="policy", values="accuracy")
    gaps = 100 * (wide["simple"] - wide["periodic"]).to_numpy()
    theirs = scipy_stats.bootstrap(
        (gaps,), np.mean, n_resamples=5000, method="percentile", rng=np.random.default_rng(1)
    )
    error = 0.15 * theirs.standard_error
    assert row["gain_low"] == pytest.approx(theirs.confidence_interval.low, abs=error)
    assert row["gain_high"] == pytest.approx(theirs.confidence_interval.high, abs=error)


def test_pairs_without_a_value_are_resampled_and_do_not_count():
    frame = grid(worlds=("tooldag",))
    row = compare(frame, "simple", "periodic", "collapse_onset", resamples=200).iloc[0]
    gaps, _ = gaps_of(frame, ("tooldag",), "collapse_onset")
    known = ~np.isnan(gaps)
    twin = clustered_rate(np.where(known, gaps, 0), known, resamples=200)
    assert (row["gain"], row["gain_low"], row["n"]) == (twin.mean, twin.low, known.sum())
    assert row["same"] == np.count_nonzero(gaps == 0) < np.count_nonzero(np.nan_to_num(gaps) == 0)


def test_shares_are_in_points_and_everything_else_in_its_own_unit():
    shares = ("accuracy", "accuracy_terminal", "success", "useful/probes", "collapse_onset<5")
    assert all(map(SHARE.fullmatch, shares))
    assert not any(
        map(SHARE.fullmatch, ("collapse_onset", "probes", "action_onset-collapse_onset", "mutation_rate"))
    )
    frame = grid(worlds=("tooldag",))
    frame["probes"] = np.where(frame["policy"] == "simple", 5, 3)
    strata = {"tools": ("tooldag",)}
    assert compare(frame, "simple", "periodic", "probes", strata=strata, resamples=9)["gain"].tolist() == [
        2.0
    ]
    frame["useful"] = np.where(frame["policy"] == "simple", 1, 0)
    found = compare(frame, "simple", "periodic", "useful/probes", strata=strata, resamples=9)
    assert found["gain"].tolist() == [pytest.approx(20.0)]


def test_what_cannot_be_compared_is_empty_or_refused():
    frame = grid(worlds=("tooldag",))
    found = compare(frame, "simple", "periodic", resamples=9).set_index("stratum")
    assert found["n"].tolist() == [N, 0, 0]
    assert found.loc[["spatial", "combined"], ["gain", "gain_low", "p"]].isna().all(axis=None)
    few = compare(grid(worlds=("tooldag",), n=9), "simple", "periodic", resamples=9).iloc[0]
    assert (few["n"], math.isnan(few["gain"])) == (9, True)
    damaged = frame.copy()
    damaged.loc[3, "accuracy"] = np.nan
    for arguments, message in (
        ((frame, "simple", "simpel"), "the frame has no policy 'simpel'; it holds periodic, simple"),
        ((frame.drop(columns="seed"), "simple", "periodic"), "the frame has no column seed"),
        ((frame.drop(columns="policy"), "simple", "periodic"), "the frame has no column policy"),
        ((damaged, "simple", "periodic"), "accuracy is missing for seed 3 of simple in tooldag"),
        (
            (pd.concat([frame, frame.assign(regime="R1")]), "simple", "periodic"),
            "the frame has regimes S2, R1",
        ),
    ):
        with pytest.raises(InputError, match=message):
            compare(*arguments, resamples=9)
    with pytest.raises(InputError, match="the frame has no column place"):
        compare(frame, "simple", "periodic", by="place")


@settings(max_examples=15, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_rows_moves_no_bit(random):
    frame = grid()
    order = list(range(len(frame)))
    random.shuffle(order)
    mixed = frame.iloc[order]
    plain, shuffled = (compare(one, "simple", "periodic", resamples=40) for one in (frame, mixed))
    pd.testing.assert_frame_equal(plain, shuffled, check_exact=True)
    keys = ["world", "policy", "measure"]
    plain, shuffled = (
        summarize(one, "accuracy success", "world policy", resamples=40).set_index(keys)
        for one in (frame, mixed)
    )
    pd.testing.assert_frame_equal(plain, shuffled.loc[plain.index], check_exact=True)


def test_means_have_bootstrap_intervals_and_success_has_wilsons():
    frame = grid(policies=tuple(POLICIES)[:2])
    found = summarize(frame, ("accuracy", "success", "collapse_onset"), ("world", "policy"), resamples=200)
    assert found.columns.tolist() == ["world", "policy", "measure", "mean", "low", "high", "n"]
    assert len(found) == 3 * len(WORLDS) * 2
    for row in found.itertuples(index=False):
        own = frame[(frame["world"] == row.world) & (frame["policy"] == row.policy)][row.measure].dropna()
        twin = wilson(int(own.sum()), len(own)) if row.measure == "success" else None
        twin = mean_interval(own, resamples=200) if twin is None else twin
        assert tuple(row[3:]) == tuple(twin)


def test_pooled_worlds_are_resampled_within():
    frame = grid(policies=("simple",)).assign(
        accuracy=lambda f: f["accuracy"] / 50 + (f["world"] == "graphnav")
    )
    (row,) = summarize(frame, "accuracy", "policy", resamples=200).itertuples(index=False)
    own = frame.sort_values(["world", "seed"])
    twin = mean_intervals(own[["accuracy"]].to_numpy(), own["world"].to_numpy(dtype=str), resamples=200)
    assert (row.mean, row.low, row.high) == tuple(float(end[0]) for end in twin)
    assert row.high - row.low < 0.01, "worlds were mixed"
    found = summarize(frame, "accuracy", "policy", strata=STRATA, resamples=200)
    assert found["stratum"].tolist() == [*STRATA]
    assert found["n"].tolist() == [N, 2 * N, 3 * N]
    assert found.loc[2, ["mean", "low", "high"]].tolist() == [row.mean, row.low, row.high]


def test_what_has_no_mean_or_no_interval():
    frame = grid(policies=("simple",), worlds=("tooldag",), collapse_onset=np.nan)
    none = summarize(frame, "collapse_onset useful/probes", "world").set_index("measure")
    assert none.loc["collapse_onset", "n"] == 0
    assert math.isnan(none.loc["collapse_onset", "mean"])
    assert none.loc["useful/probes", "n"] == np.count_nonzero(frame["probes"])
    (one,) = summarize(frame[:1], "accuracy", "world").itertuples()
    assert (one.mean, one.n, math.isnan(one.low), math.isnan(one.high)) == (
        frame["accuracy"][0],
        1,
        True,
        True,
    )
    with pytest.raises(InputError, match="the frame has no column speed"):
        summarize(frame, "speed", "world")
    with pytest.raises(InputError, match="the frame has no column seed"):
        summarize(frame.drop(columns="seed"), "accuracy", "world")
