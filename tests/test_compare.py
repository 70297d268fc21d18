"""Paired differences and means of episodes: against naive twins, and whatever the order of rows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from envprobe_book import judge
from envprobe_core.comparing import GAIN, STRATA, compare, summarize
from envprobe_core.estimating import SHARE
from envprobe_core.statistics import clustered_rate, mean_interval, mean_intervals, wilson
from envprobe_core.worlds import WORLDS

N = 24
PAIR = ("simple", "periodic")
TOOLS = {"worlds": ("tooldag",)}


def grid(policies=PAIR, worlds=tuple(WORLDS), protocols=("paper",), n=N, **columns):
    """Random episodes; every policy meets the same seeds."""
    rng, parts = np.random.default_rng(0), []
    for protocol, world, policy in ((a, b, c) for a in protocols for b in worlds for c in policies):
        drawn = {"accuracy": rng.integers(0, 28, n) / 27, "success": rng.random(n) < 0.4}
        drawn |= {"probes": rng.integers(0, 3, n), "useful": 0}
        drawn |= {"collapse_onset": rng.choice([np.nan, 2, 5, 9], n)}
        keys = {"world": world, "policy": policy, "protocol": protocol, "regime": "S2", "profile": "typical"}
        parts.append(pd.DataFrame(keys | {"budget": 7, "seed": np.arange(n)} | drawn | columns))
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize(("measure", "scale"), [("accuracy", 100), ("collapse_onset", 1)])
def test_a_difference_is_the_mean_over_pairs_with_its_resampled_interval(measure, scale):
    """One pair at a time; a pair without a value is resampled and does not count."""
    frame = grid(protocols=("paper", "released"))
    found = compare(frame, *PAIR, measure, family=6, resamples=300)
    assert found["protocol"].tolist() == ["paper"] * 3 + ["released"] * 3
    assert found["stratum"].tolist() == [*STRATA] * 2
    value = {(r.protocol, r.world, r.policy, r.seed): getattr(r, measure) for r in frame.itertuples()}
    for row in found.itertuples():
        gaps = [
            value[row.protocol, w, "simple", s] - value[row.protocol, w, "periodic", s]
            for w in STRATA[row.stratum] for s in range(N)
        ]  # fmt: skip
        labels, gaps = np.repeat(STRATA[row.stratum], N), np.array(gaps)
        labels = [STRATA[row.stratum].index(world) for world in labels]
        known = ~np.isnan(gaps)
        assert known.all() == (measure == "accuracy")
        twin = clustered_rate(scale * np.where(known, gaps, 0), known, labels, family=6, resamples=300)
        assert row.gain == pytest.approx(scale * np.nanmean(gaps))
        told = [getattr(twin, one.removeprefix("gain_").replace("gain", "mean")) for one in GAIN]
        assert [getattr(row, one) for one in GAIN] == told
        assert (row.arm, row.reference, row.n, row.same) == (*PAIR, known.sum(), np.count_nonzero(gaps == 0))


def test_a_difference_is_what_the_claim_of_it_is_judged_on_and_scipy_agrees():
    frame = grid(n=120)
    verdict = judge(frame, "main-procedural", protocols="paper").iloc[0]
    assert verdict["family"] > 1, "else the adjusted interval is the raw one"
    found = compare(frame, *PAIR, family=int(verdict["family"])).iloc[0]
    for name in ("n", *GAIN):
        assert found[name] == verdict[name.removeprefix("gain_").replace("gain", "estimate")]
    wide = frame[frame["world"] == "tooldag"].pivot(index="seed", columns="policy", values="accuracy")
    gaps, random = 100 * (wide["simple"] - wide["periodic"]).to_numpy(), np.random.default_rng(1)
    theirs = scipy_stats.bootstrap((gaps,), np.mean, n_resamples=5000, method="percentile", rng=random)
    ends = pytest.approx(tuple(theirs.confidence_interval), abs=0.15 * theirs.standard_error)
    assert (found["gain_low"], found["gain_high"]) == ends


def test_shares_are_in_points_and_everything_else_in_its_own_unit():
    told = ("accuracy", "accuracy_terminal", "success", "useful/probes", "collapse_onset<5", "accuracy-zero",
            "placebo-placebo_zero", "collapse_onset", "probes", "action_onset-collapse_onset",
            "mutation_rate", "accuracy-probes")  # fmt: skip
    assert [bool(SHARE.fullmatch(one)) for one in told] == [True] * 7 + [False] * 5
    frame = grid(**TOOLS)
    simple = frame["policy"] == "simple"
    frame["probes"], frame["useful"] = np.where(simple, 5, 3), np.where(simple, 1, 0)
    for measure, gain in (("probes", 2.0), ("useful/probes", 20.0)):
        found = compare(frame, *PAIR, measure, by=(), strata={"tools": ("tooldag",)}, resamples=9)
        assert (found["gain"].tolist(), len(found)) == ([pytest.approx(gain)], 1)


def test_what_has_too_few_pairs_or_values_has_no_difference_no_mean_or_no_interval():
    found = compare(grid(**TOOLS), *PAIR, resamples=9).set_index("stratum")
    assert found["n"].tolist() == [N, 0, 0]
    assert found.loc[["spatial", "combined"], ["gain", "gain_low", "p"]].isna().all(axis=None)
    few = compare(grid(n=9, **TOOLS), *PAIR, resamples=9).iloc[0]
    assert (few["n"], np.isnan(few["gain"])) == (9, True)
    frame = grid(policies=("simple",), **TOOLS, collapse_onset=np.nan)
    none = summarize(frame, "collapse_onset useful/probes", "world")
    assert none["n"].tolist() == [0, np.count_nonzero(frame["probes"])]
    assert np.isnan(none["mean"]).tolist() == [True, False]
    (one,) = summarize(frame[:1], "accuracy", "world").itertuples()
    assert (one.mean, one.n, *np.isnan([one.low, one.high])) == (frame["accuracy"][0], 1, True, True)


@settings(max_examples=15)
@given(st.randoms(use_true_random=False))
def test_the_order_of_rows_moves_no_bit(random):
    frame, keys = grid(), ["world", "policy", "measure"]
    order = list(range(len(frame)))
    random.shuffle(order)
    both = frame, frame.iloc[order]
    plain, shuffled = (compare(one, *PAIR, resamples=40) for one in both)
    pd.testing.assert_frame_equal(plain, shuffled, check_exact=True)
    plain, shuffled = (summarize(one, "accuracy success", keys[:2], resamples=40) for one in both)
    shuffled = shuffled.set_index(keys).loc[pd.MultiIndex.from_frame(plain[keys])].reset_index()
    pd.testing.assert_frame_equal(plain, shuffled, check_exact=True)


def test_means_have_bootstrap_intervals_and_success_has_wilsons():
    frame, measures, by = grid(), ("accuracy", "success", "collapse_onset"), ["world", "policy"]
    found = summarize(frame, measures, by, resamples=200)
    assert found.columns.tolist() == [*by, "measure", "mean", "low", "high", "n"]
    assert len(found) == 3 * len(WORLDS) * 2
    for row in found.itertuples(index=False):
        own = frame[(frame["world"] == row.world) & (frame["policy"] == row.policy)][row.measure].dropna()
        success = row.measure == "success"
        twin = wilson(int(own.sum()), len(own)) if success else mean_interval(own, resamples=200)
        assert tuple(row[3:]) == tuple(twin)
    wide = summarize(frame, {"a": "success", "b": "collapse_onset"}, by, resamples=200)
    ends = ("", "_low", "_high", "_n")
    assert wide.columns.tolist() == [*by, *(name + end for name in "ab" for end in ends)]
    for name, measure in (("a", "success"), ("b", "collapse_onset")):
        long = found[found["measure"] == measure][["mean", "low", "high", "n"]]
        assert wide.filter(regex=f"^{name}(_|$)").to_numpy().tolist() == long.to_numpy().tolist()


def test_pooled_worlds_are_resampled_within():
    frame = grid(policies=("simple",))
    frame["accuracy"] = frame["accuracy"] / 50 + (frame["world"] == "graphnav")
    (row,) = summarize(frame, "accuracy", "policy", resamples=200).itertuples(index=False)
    own = frame.sort_values(["world", "seed"])
    twin = mean_intervals(own[["accuracy"]].to_numpy(), own["world"].to_numpy(dtype=str), resamples=200)
    assert (row.mean, row.low, row.high) == tuple(float(end[0]) for end in twin)
    assert row.high - row.low < 0.01, "worlds were mixed"
    found = summarize(frame, "accuracy", (), strata=STRATA, resamples=200)
    assert (found["stratum"].tolist(), found["n"].tolist()) == ([*STRATA], [N, 2 * N, 3 * N])
    assert found.loc[2, ["mean", "low", "high"]].tolist() == [row.mean, row.low, row.high]


def test_how_answers_could_be_read_stands_beside_a_difference_and_only_where_it_is_known():
    frame = grid(invalid_share=0.0, loose_share=0.25)
    spoilt = (frame["policy"] == "simple") & (frame["world"] == "tooldag")
    frame.loc[spoilt, "invalid_share"] = 0.5
    found = compare(frame, *PAIR, resamples=100).set_index("stratum")
    share = {name: 0.25 * worlds.count("tooldag") / len(worlds) for name, worlds in STRATA.items()}
    assert found["invalid_share"].to_dict() == pytest.approx(share)
    assert found["loose_share"].to_dict() == dict.fromkeys(STRATA, 0.25)
    assert not {"invalid_share", "loose_share"} & {*compare(grid(), *PAIR, resamples=100)}


def test_how_answers_could_be_read_stands_beside_a_mean_and_only_where_it_is_known():
    frame = grid(invalid_share=0.0, loose_share=0.25)
    frame.loc[(frame["policy"] == "simple") & (frame["world"] == "tooldag"), "invalid_share"] = 0.5
    found = summarize(frame, "accuracy success", "policy", strata=STRATA, resamples=100)
    assert len(found) == 2 * found.groupby(["policy", "stratum"]).ngroups
    simple = found[found["policy"] == "simple"]
    for name, worlds in STRATA.items():
        due = 0.5 * worlds.count("tooldag") / len(worlds)
        assert simple.loc[simple["stratum"] == name, "invalid_share"].tolist() == pytest.approx([due, due])
    assert not found.loc[found["policy"] != "simple", "invalid_share"].any()
    assert (found["loose_share"] == 0.25).all()
    wide = summarize(frame, {"reached": "success", "loose_share": "loose_share"}, "policy", resamples=100)
    assert [*wide][-1] == "invalid_share"
    assert wide.set_index("policy").loc["simple", "invalid_share"] == pytest.approx(1 / 6)
    assert not {"invalid_share", "loose_share"} & {*summarize(grid(), "success", "policy", resamples=100)}
