"""The protocol audit: one switch at a time, against plain runs; the list of departures; the way between."""

from dataclasses import replace

import numpy as np
import pytest

from envprobe_core import run
from envprobe_core.analyses import audit
from envprobe_core.claims import find_claim
from envprobe_core.claims.episodes import Sample
from envprobe_core.claims.judge import judge as evaluate_all
from envprobe_core.claims.places import PLACES
from envprobe_core.protocols import PROTOCOLS, SWITCHES, parse_protocol
from envprobe_core.statistics import paired_bootstrap

SEEDS, RESAMPLES = "0:14", 200


@pytest.fixture(scope="module")
def episodes():
    return audit.run_turned("paper released", regime="S1", seeds=SEEDS)


@pytest.fixture(scope="module")
def effects(episodes):
    return audit.turned_alone(episodes, "paper released", RESAMPLES)


# --- turning switches -------------------------------------------------------------------------


@pytest.mark.parametrize("base", [*PROTOCOLS, "paper:clock=stands,end=success"])
@pytest.mark.parametrize("switch", audit.TURNED)
def test_a_turned_protocol_differs_in_exactly_one_switch(base, switch):
    before, after = parse_protocol(base), parse_protocol(audit.turn(base, [switch]))
    assert [one for one in SWITCHES if getattr(before, one) != getattr(after, one)] == [switch]


def test_shared_rollouts_give_what_plain_runs_give(episodes):
    """Switches that only a scorer reads are not run again; the numbers must be the same."""
    for name in (
        "paper",
        "released",
        "paper:accuracy=slots",
        "released:pairing=same-step",
        "paper:end=success",
    ):
        plain = run(policies="simple cd", regimes="S1", protocols=[name], seeds=SEEDS)
        own = episodes[(episodes["protocol"] == name) & episodes["policy"].isin(["simple", "cd"])]
        key = ["world", "policy", "seed"]
        first, second = (frame.sort_values(key, ignore_index=True) for frame in (plain, own))
        for column in ("accuracy", "accuracy_slot", "success", "useful", "collapse_onset", "steps"):
            np.testing.assert_array_equal(first[column], second[column], err_msg=f"{name} {column}")
    assert not episodes.duplicated(["protocol", "world", "policy", "seed"]).any()


# --- headlines --------------------------------------------------------------------------------


def test_headlines_are_what_verdicts_measure(episodes, effects):
    own = effects[effects["turned"] == ""].set_index(["base", "claim"])
    claims = [
        replace(find_claim(name), regime="S1")
        for name in ("main-procedural", "main-combined", "main-cd", "collapse-delay", "upr-spatial")
    ]
    found = evaluate_all(
        episodes, claims, protocols=["paper", "released"], profile="typical", resamples=RESAMPLES
    )
    for verdict in found.itertuples():
        if verdict.estimate is not None and np.isfinite(verdict.estimate):
            assert own.loc[(verdict.protocol, verdict.claim), "value"] == pytest.approx(verdict.estimate)


def sample(top, bottom, worlds):
    return Sample(top[:, None], bottom[:, None], worlds)


def test_a_change_of_a_mean_is_the_paired_bootstrap():
    rng = np.random.default_rng(3)
    first, second = rng.normal(size=30), rng.normal(size=30)
    worlds, ones = np.repeat([0, 1], 15), np.ones(30)
    found = audit.change(sample(first, ones, worlds), sample(second, ones, worlds), 500)
    wanted = paired_bootstrap(second - first, worlds, 500)
    np.testing.assert_allclose(found, (wanted.mean, wanted.low, wanted.high), atol=1e-9)


# --- the way between two protocols ------------------------------------------------------------


def test_groups_hold_every_switch_once():
    held = [switch for group in audit.GROUPS.values() for switch in group]
    assert sorted(held) == sorted(audit.TURNED)


def test_the_way_leads_from_one_protocol_to_the_other():
    full = (1 << len(audit.GROUPS)) - 1
    assert audit.between("paper", "released", 0) == "paper"
    last = parse_protocol(audit.between("paper", "released", full))
    assert last == replace(PROTOCOLS["released"], name=last.name, seeds="text")
    assert audit.ends_of("paper released") == ("paper", "released")
    assert audit.ends_of("observed") == ("observed", "released")
    assert audit.ends_of("released") == ("released", "paper")


def test_shares_of_the_way_add_up_to_the_difference():
    path = audit.split_way("paper released", "S1", seeds="0:6", resamples=RESAMPLES)
    grid = run(policies="simple periodic", regimes="S1", protocols="paper released", seeds="0:6")
    means = grid.groupby(["protocol", "world", "policy"])["accuracy"].mean()
    for stratum, part in path.groupby("stratum"):
        rows = part["share"].to_numpy()
        assert rows[:-1].sum() == pytest.approx(rows[-1])
        assert part["reached"].iloc[-2] == pytest.approx(rows[-1])
        if stratum == "procedural":
            for end, name in ((0, "paper"), (-1, "released")):
                gain = 100 * (means[name, "tooldag", "simple"] - means[name, "tooldag", "periodic"])
                assert rows[end] == pytest.approx(gain)


# --- departures -------------------------------------------------------------------------------


def test_departures_name_switches_once_and_places_of_the_paper():
    every = audit.load_departures()
    turned = [switch for switch in every["switch"] if switch]
    assert sorted(turned) == sorted(SWITCHES)
    assert every["id"].is_unique
    assert (every[["id", "about", "text", "code"]] != "").all().all()
    assert {place for places in every["places"] for place in places.split()} <= set(PLACES)


def test_budget_and_threshold_reach_the_cells():
    frame = audit.run_protocols("paper", "simple periodic", seeds="0:3", budget=2, threshold=0.5)
    assert set(frame["budget"]) == {2}
    assert set(frame["threshold"].dropna()) == {0.5}
    assert frame["probes"].max() <= 2
