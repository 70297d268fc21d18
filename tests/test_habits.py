"""Four habits of the simulated agent: each does what its name says, and off it leaves every bit as it was.

Errors that fall on what matters, confidence that is turned round, luck of one's own in each arm, and a report
whose criticality is settled once an episode.
"""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

from daily import nightly
from envprobe_core.agents.profiles import (
    LATER_HABITS,
    PROFILES,
    TYPICAL,
    AgentProfile,
    as_record,
    read_profile,
)
from envprobe_core.agents.simulated import one_in_proportion
from envprobe_core.compiled import noise
from envprobe_core.compiled.numba_support import kernel
from envprobe_core.conditions import Condition, make_condition
from envprobe_core.engine.batch import (
    EpisodeBatch,
    kernel_params,
    schedules_of,
    simulate,
    simulate_logged,
    terms_of,
)
from envprobe_core.errors import InputError
from envprobe_core.policies import OF_THE_PAPER, POLICIES
from envprobe_core.protocols import PROTOCOLS
from envprobe_core.worlds import WORLDS
from test_algorithm1 import digests
from test_engine import HIDDEN, assert_same, run_poisoned

ON = {"importance": 0.7, "contrary": 0.8, "own_noise": True, "critical_once": True}
ALL_ON = replace(TYPICAL, name="all-on", critical=0.6, **ON)
SCRIBE_ON = replace(PROFILES["scribe-hesitant"], name="scribe-on", critical=0.6, **ON)
MANY = np.arange(20_000)


def condition(world, policy, profile, protocol="paper", **given):
    return Condition(world, POLICIES[policy], protocol=PROTOCOLS[protocol], profile=profile, **given)


# errors by importance


@kernel
def choices(shares, found):
    """Fill in what each of the 65,536 quarters chooses."""
    for quarter in range(len(found)):
        found[quarter] = one_in_proportion(quarter, shares, len(shares))


def test_a_quarter_chooses_in_proportion_and_of_equals_as_before():
    found = np.zeros(1 << 16, np.int64)
    for shares in ([0.5, 1.5, 1.0], [2.0, 0.0, 1.0], [0.1] * 4 + [4.6 - 1e-12]):
        choices(np.array(shares), found)
        counts = np.bincount(found, minlength=len(shares))
        np.testing.assert_allclose(counts / (1 << 16), np.array(shares) / len(shares), atol=2 / (1 << 16))
    for count in (7, 19, 27, 48):
        choices(np.ones(count), found)
        np.testing.assert_array_equal(found, np.arange(1 << 16) * count >> 16)


def proneness(cell, seeds):
    """How prone to error each field is, and its weight, [seed, field], NaN where a graph lacks it."""
    block = EpisodeBatch(cell, seeds).block
    lacking = np.arange(block.prone.shape[1]) >= block.fields[:, None]
    return [np.where(lacking, np.nan, own)[:, : cell.built.fields] for own in (block.prone, block.weight)]


@pytest.mark.parametrize("world", WORLDS)
def test_errors_lean_to_weight_by_the_habit_s_strength_and_stay_as_many(world):
    for strength in (0.0, 0.4, 1.0):
        cell = condition(world, "no-probe", replace(TYPICAL, importance=strength))
        prone, weight = proneness(cell, np.arange(50))
        even = weight / np.nanmean(weight, axis=1, keepdims=True)
        np.testing.assert_allclose(np.nanmean(prone, axis=1), 1.0, rtol=1e-12)
        np.testing.assert_allclose(prone, 1 + strength * (even - 1), rtol=1e-12)
        if strength == 0:
            assert (prone[np.isfinite(prone)] == 1.0).all()


@pytest.mark.parametrize("world", WORLDS)
def test_a_spoilt_belief_is_an_important_one_as_often_as_its_weight_says(world):
    """Of an agent that errs in nothing else, the belief that its first spoiling changed."""
    exact = replace(PROFILES["perfect"], name="exact")
    spoiling = replace(exact, overwrite=1.0, importance=1.0)
    cell = condition(world, "no-probe", spoiling)
    prone, _ = proneness(cell, MANY)
    right = simulate_logged(condition(world, "no-probe", exact), MANY).belief[:, 1]
    changed = simulate_logged(cell, MANY).belief[:, 1] != right
    assert changed.sum(axis=1).max() == 1
    detected = 1 - 1 / cell.built.domain  # a random value may be the one that stood there
    wanted = np.nansum(prone, axis=0) / np.isfinite(prone).sum(axis=1).mean() * detected
    if world == "graphnav":  # how many fields there are differs between instances
        wanted = np.nansum(prone / np.isfinite(prone).sum(axis=1, keepdims=True), axis=0) * detected
    counts = changed.sum(axis=0)
    keep = wanted > 20
    observed, expected = [np.append(own[keep], MANY.size - own[keep].sum()) for own in (counts, wanted)]
    assert stats.chisquare(observed, expected).pvalue > 1e-4
    evenly = np.append(detected[keep], 0) * MANY.size / cell.built.fields
    evenly[-1] = MANY.size - evenly.sum()
    assert stats.chisquare(observed, evenly).pvalue < 1e-12


def area(values, wrong):
    """The chance that a wrong belief has the higher value of two, ties counting half (AUC)."""
    found = stats.mannwhitneyu(values[wrong], values[~wrong])
    return found.statistic / (wrong.sum() * (~wrong).sum())


@pytest.mark.parametrize("world", ["objectstate", "graphnav"])
def test_criticality_points_at_errors_that_fall_on_what_matters(world):
    areas = []
    for strength in (0.0, 1.0):
        profile = replace(TYPICAL, importance=strength, omit=0.3, overwrite=0.5)
        cell = condition(world, "no-probe", profile)
        made = simulate_logged(cell, np.arange(300))
        _, weight = proneness(cell, np.arange(300))
        wrong, there = (made.belief != made.gold)[:, 10], np.isfinite(weight)
        areas.append(area(weight[there], wrong[there]))
    assert areas[1] > areas[0] + 0.05


# confidence turned round


@pytest.mark.parametrize(("world", "protocol"), list(product(WORLDS, PROTOCOLS)))
def test_confidence_is_turned_round_its_mean_and_nothing_else_changes(world, protocol):
    """Without a probe nobody reads it; so that the same agent states other confidences."""
    some, told = np.arange(60), {}
    for strength in (0.0, 0.5, 1.0):
        cell = condition(world, "no-probe", replace(TYPICAL, contrary=strength), protocol)
        told[strength] = simulate_logged(cell, some)
    for one in (0.5, 1.0):
        assert_same(told[0.0], told[one], but=("confidence",))
        assert told[one].measures["accuracy"].tolist() == told[0.0].measures["accuracy"].tolist()
    known = told[0.0].belief >= 0
    held, level, turned = (np.where(known, told[one].confidence.astype(float), np.nan) for one in told)
    several = known.sum(axis=2) > 1
    mean = np.nanmean(held[several], axis=1)[:, None]
    for strength, stated in ((0.5, level), (1.0, turned)):
        wanted = np.clip(held[several] + 2 * strength * (mean - held[several]), 0, 100)
        assert np.nanmax(np.abs(stated[several] - wanted)) <= 0.5 + 1e-9
    for one in told.values():
        assert not one.confidence[~known & (np.arange(31) <= one.steps[:, None])[:, :, None]].any()


def test_where_confidence_tells_a_table_s_errors_the_contrary_points_the_wrong_way():
    """Within a table: which of its beliefs an agent is surer of. That it is less sure later on stays true."""
    means = []
    for strength in (0.0, 0.5, 1.0):
        cell, areas = condition("objectstate", "no-probe", replace(TYPICAL, contrary=strength)), []
        made = simulate_logged(cell, np.arange(100))
        for t, (belief, gold, sure) in enumerate(
            zip(*(own.swapaxes(0, 1) for own in (made.belief, made.gold, made.confidence)), strict=True)
        ):
            wrong, known = belief != gold, belief >= 0
            for row in range(len(belief) if t % 5 == 0 else 0):
                errs, doubt = wrong[row][known[row]], 100.0 - sure[row][known[row]]
                if errs.any() and not errs.all():
                    areas.append(area(doubt, errs))
        means.append(np.mean(areas))
    assert means[0] > 0.6
    assert abs(means[1] - 0.5) < 0.02
    assert means[0] + means[2] == pytest.approx(1, abs=0.05)


def test_a_probe_s_answer_is_held_for_certain_and_what_is_held_fades_as_before():
    """Stated and held confidence are two numbers; the second runs on as if the first were not there."""
    plain, contrary = (
        EpisodeBatch(condition("tooldag", "periodic", replace(TYPICAL, contrary=strength)), np.arange(40))
        for strength in (0.0, 1.0)
    )
    for t in range(12):
        for episodes in (plain, contrary):
            episodes.propose()
            episodes.record()
        np.testing.assert_array_equal(contrary.block.held, plain.block.table.confidence)
        for episodes in (plain, contrary):
            episodes.advance(np.full(40, t % 5 if t % 3 == 2 else -1))


# luck of one's own


def test_arms_have_luck_of_their_own_where_the_agent_draws_and_share_the_world_s():
    agents = [noise.WRITE, noise.STALENESS, noise.IMPULSE]
    theirs = [stream for stream in range(1, noise.STREAMS) if stream not in agents]
    own = replace(TYPICAL, own_noise=True)
    arms = [condition("tooldag", name, own) for name in ("simple", "cd")]
    arms += [replace(arms[0], budget=3), condition("tooldag", "simple", TYPICAL)]
    keys = np.array([EpisodeBatch(arm, MANY).block["keys"] for arm in arms])
    assert (keys[:, :, theirs] == keys[-1][:, theirs]).all()
    halves = (keys[:, :, agents] >> np.uint64(32)).astype(float)
    for one, other in product(range(len(arms)), repeat=2):
        for stream in range(len(agents)):
            pair = halves[one, :, stream], halves[other, :, stream]
            assert one == other or abs(stats.pearsonr(*pair).statistic) < 5 / np.sqrt(MANY.size)
    again = replace(POLICIES["simple"], name="simple again")
    for profile, alike in ((own, False), (TYPICAL, True)):
        twice = [
            simulate(replace(arms[0], policy=policy, profile=profile), MANY[:50])["digest"]
            for policy in (POLICIES["simple"], again)
        ]
        assert (twice[0] == twice[1]).all() == alike


def test_pairs_that_always_agreed_disagree_by_luck_and_the_means_stay():
    """On tools Simple and (c+d) succeed on the same seeds, as long as they share the agent's luck."""
    success = {}
    for profile in (TYPICAL, replace(TYPICAL, own_noise=True)):
        for name in ("simple", "cd"):
            cell = condition("tooldag", name, profile)
            success[profile.own_noise, name] = simulate(cell, MANY[:4000])["success"]
    assert (success[False, "simple"] == success[False, "cd"]).all()
    one, other = success[True, "simple"], success[True, "cd"]
    apart = (one != other).mean()
    independent = one.mean() * (1 - other.mean()) + other.mean() * (1 - one.mean())
    assert 0.5 * independent < apart <= 1.05 * independent
    for name in ("simple", "cd"):  # another draw of the same agents
        table = [[own.sum(), (~own).sum()] for own in (success[False, name], success[True, name])]
        assert stats.chi2_contingency(table).pvalue > 1e-4


# a report settled once


def test_a_report_s_criticality_is_one_number_an_episode_and_the_gate_follows_it():
    some = np.arange(2_000)
    settled = replace(PROFILES["scribe"], critical=0.786, critical_once=True)
    each = replace(settled, critical_once=False)
    for profile, once in ((settled, True), (each, False)):
        cell = condition("tooldag", "simple", profile, "released")
        made = simulate_logged(cell, some)
        terms = terms_of(cell, some[:200], made.rows(slice(200)))
        highest = np.nan_to_num(terms[..., 0], nan=-1).max(axis=2)
        levels = [set(row[row >= 0]) for row in highest]
        assert set().union(*levels) == {0.5, 1.0}
        assert all(len(level) == 1 for level in levels) == once
        silent = int((made.measures["probes"] == 0).sum())
        if once:
            assert stats.binomtest(silent, some.size, 1 - 0.786).pvalue > 1e-4
        else:
            assert silent < 0.01 * some.size
    keeper = replace(TYPICAL, critical=0.5, critical_once=True)  # an agent with a table reports so too
    cell = condition("tooldag", "simple", keeper, "released")
    terms = terms_of(cell, some, simulate_logged(cell, some))[:, :1]
    critical = (np.nanmax(terms[..., 0], axis=(1, 2)) == 1.0).sum()
    assert stats.binomtest(int(critical), some.size, 0.5).pvalue > 1e-4


# all of them


@pytest.mark.parametrize("profile", [ALL_ON, SCRIBE_ON], ids=lambda one: one.name)
def test_plain_python_plays_the_kernel_s_episodes(profile):
    for world, protocol, policy in product(WORLDS, PROTOCOLS, ("simple", "yoked", "minus-u", "oracle")):
        cell = condition(world, policy, profile, protocol)
        seeds = np.array([3, 42])
        assert digests(cell, seeds) == simulate(cell, seeds)["digest"].tolist(), (world, protocol, policy)


@pytest.mark.parametrize("world", nightly(WORLDS, "tooldag"))
def test_with_them_too_the_agent_reads_no_gold(world):
    for profile, protocol in product((ALL_ON, SCRIBE_ON), PROTOCOLS):
        for policy in OF_THE_PAPER:
            cell = condition(world, policy, profile, protocol)
            clean = simulate_logged(cell, np.arange(6))
            assert_same(clean, run_poisoned(cell, np.arange(6), agent=HIDDEN))


def test_a_replayed_schedule_is_the_other_arm_s():
    """The yoked placebo probes when and where Simple does, with luck of its own."""
    own = replace(TYPICAL, own_noise=True)
    simple, yoked = (
        simulate_logged(condition("graphnav", name, own), MANY[:60]) for name in ("simple", "yoked")
    )
    schedule = schedules_of(condition("graphnav", "yoked", own), MANY[:60])
    np.testing.assert_array_equal(schedule, simple.probe)
    np.testing.assert_array_equal(yoked.probe, simple.probe)
    assert (yoked.action != simple.action).any()


def test_what_is_off_stands_in_no_file_and_what_is_on_comes_back(tmp_path):
    for one in PROFILES.values():
        stated = set(one.as_dict())
        assert {name for name in LATER_HABITS if getattr(one, name)} == stated & set(LATER_HABITS), one.name
    assert not set(LATER_HABITS) & set(TYPICAL.as_dict())
    for profile in (replace(ALL_ON, name="kept"), replace(TYPICAL, name="kept")):
        path = tmp_path / "kept.json"
        path.write_text(json.dumps(as_record(profile, "stated")))
        assert read_profile(path) == profile
    for wrong in ({"importance": 1.5}, {"contrary": -0.1}):
        with pytest.raises(InputError, match=r"is not in 0\.\.1"):
            AgentProfile("wrong", **wrong)
    cell = make_condition("tooldag", "simple")
    assert kernel_params(cell).policy.arm == 0
    assert kernel_params(replace(cell, profile=ALL_ON)).policy.arm > 0
