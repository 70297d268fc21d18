"""A zero for accuracy against naive twins: the best constant table, the yoked placebo, parts that add up."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envprobe_book import compare, run
from envprobe_book.analyses.made_of import FACTS, PARTS, made_of
from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import simulate_logged
from envprobe_core.errors import InputError
from envprobe_core.policies import POLICIES, value_policy
from envprobe_core.protocols import PROTOCOLS, parse_protocol
from envprobe_core.worlds import WORLDS
from envprobe_core.zero import (
    REFERENCE,
    Zero,
    best_table,
    logged_accuracy,
    placebo_zero_of,
    skill,
    yoked,
    zero_accuracy,
    zero_of,
    zero_track,
)

SEEDS = np.arange(220)


@pytest.fixture(scope="module")
def played():
    return run(policies="no-probe periodic simple voi", seeds="0:220", facts=f"zero {FACTS}")


def condition_of(world, policy, protocol, **more):
    return make_condition(world, policy, protocol=parse_protocol(protocol), **more)


# the slots once more, field by field and without the engine


def jaccard(a, b):
    return len(a & b) / len(a | b) if a | b else 1.0


def naive_overlap(condition, table, stays, gold, first):
    rules, n = condition.built.rules, condition.built.fields
    meaning = condition.protocol.encoding == "meaning" or condition.profile.writes == "true"
    if condition.world == "tooldag":
        tools = range(rules.tools)
        held, there = ({i for i in tools if own[i] == 1} for own in (table, gold))
        listed = {i for i in tools if table[i] == 0} if condition.profile.keeps_open else set()
        values = 1.0 if not there else len(held & there) / len(there) if meaning else 0.0
        return 0.3 * jaccard(held, there) + 0.4 * values + 0.3 * jaccard(listed, set(tools) - there)
    if condition.world == "objectstate":
        objects, doors = range(rules.objects), range(rules.objects, rules.held)
        held, there = ({i for i in objects if own[rules.held + i] == 1} for own in (table, gold))
        opened, was = ({d for d in doors if own[d] == 0 and first[d] == 1} for own in (table, gold))
        done, truly = ({i for i in own if i < rules.keys} for own in (held, there))
        places, locks = (np.mean([table[f] == gold[f] for f in part]) for part in (objects, doors))
        goals = jaccard(done | opened, truly | was)
        return 0.2 * stays + 0.15 * jaccard(held, there) + 0.3 * places + 0.2 * locks + 0.15 * goals
    keys, edges = range(1, 1 + rules.keys), [f for f in range(1 + rules.keys, n) if gold[f] != -1]
    held, there = ({f for f in keys if own[f] == rules.nodes} for own in (table, gold))
    states, places = (np.mean([table[f] == gold[f] for f in part]) for part in (edges, keys))
    return 0.25 * (table[0] == gold[0]) + 0.2 * jaccard(held, there) + 0.3 * states + 0.25 * places


def naive_accuracy(condition, zero, recording):
    found = []
    for gold, place, steps in zip(recording.gold, recording.place, recording.steps, strict=True):
        if condition.protocol.accuracy == "slots":
            times = range(1, steps + 1)
            own = [
                naive_overlap(condition, zero.table, zero.place == place[t], gold[t], gold[0]) for t in times
            ]
            found.append(np.mean(own))
        else:
            known = [f for f in range(len(zero.table)) if gold[steps][f] != -1]
            found.append(np.mean([zero.table[f] == gold[steps][f] for f in known]))
    return found


@pytest.mark.parametrize("protocol", [*PROTOCOLS, "released:encoding=meaning", "paper:accuracy=slots"])
@pytest.mark.parametrize("world", WORLDS)
def test_a_table_that_never_changes_scores_what_a_plain_loop_says(world, protocol):
    condition, rng = condition_of(world, "simple", protocol), np.random.default_rng(0)
    recording = simulate_logged(condition, np.arange(6))
    for _ in range(3):
        zero = Zero(rng.integers(0, condition.built.domain).astype(np.int8), int(rng.integers(0, 5)))
        expected = naive_accuracy(condition, zero, recording)
        np.testing.assert_allclose(zero_accuracy(condition, zero, recording), expected, atol=1e-12)
        track = zero_track(condition, zero, recording)
        np.testing.assert_array_equal(np.isnan(track[:, 1:]), np.isnan(recording.accuracy[:, 1:]))


@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_what_an_instance_does_not_have_counts_neither_as_right_nor_as_wrong(protocol):
    """No regime of the book has graphs that lack an edge; here some edges of each are taken away."""
    condition, rng = condition_of("graphnav", "simple", protocol), np.random.default_rng(0)
    recording, first = simulate_logged(condition, np.arange(12)), 1 + condition.built.rules.keys
    lacks = rng.random((12, condition.built.fields)) < 0.4
    lacks[:, :first] = False
    recording = replace(recording, gold=np.where(lacks[:, None], -1, recording.gold).astype(np.int8))
    zero = zero_of(condition)
    np.testing.assert_allclose(
        zero_accuracy(condition, zero, recording), naive_accuracy(condition, zero, recording), atol=1e-12
    )
    learned = best_table(condition, recording).table
    assert (learned >= 0).all()
    reached = zero_accuracy(condition, best_table(condition, recording), recording).mean()
    for field in range(first, condition.built.fields):
        other = learned.copy()
        other[field] = 1 - other[field]
        assert zero_accuracy(condition, Zero(other, zero.place), recording).mean() <= reached + 1e-12


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("world", WORLDS)
@settings(max_examples=25)
@given(data=st.data())
def test_no_other_table_does_better_where_it_was_learned(world, protocol, data):
    condition = condition_of(world, data.draw(st.sampled_from(["no-probe", "simple"])), protocol)
    best, recording = zero_of(condition), _reference(condition)
    zero, reached = zero_of(condition), zero_accuracy(condition, best, recording).mean()
    other = zero.table.copy()
    for field in data.draw(st.lists(st.integers(0, condition.built.fields - 1), min_size=1, max_size=3)):
        other[field] = data.draw(st.integers(0, int(condition.built.domain[field]) - 1))
    place = data.draw(st.sampled_from([zero.place, 0, 3]))
    assert zero_accuracy(condition, Zero(other, place), recording).mean() <= reached + 1e-12


_kept = {}


def _reference(condition):
    if condition not in _kept:
        _kept[condition] = simulate_logged(condition, REFERENCE, scores_all=False)
    return _kept[condition]


def test_the_tables_found_and_what_they_score():
    """On tools nothing is loaded, and as released three tools; levels as worked out with other code."""
    table = zero_of(condition_of("tooldag", "no-probe", "paper")).table.tolist()
    assert table == [0] * 9 + [1] + [0] * 8 + [1] * 7 + [0, 0]
    assert zero_of(condition_of("tooldag", "no-probe", "observed")).table.tolist() == table
    assert zero_of(condition_of("tooldag", "no-probe", "released")).table[:9].tolist() == [1] * 3 + [0] * 6
    levels = {
        ("paper", "tooldag"): {"no-probe": 0.8290, "periodic": 0.8285, "simple": 0.7914, "voi": 0.8343},
        ("paper", "graphnav"): {"voi": 0.7519},
        ("released", "tooldag"): {"periodic": 0.3976, "simple": 0.5104},
        ("released", "objectstate"): {"simple": 0.4047},
        ("released", "graphnav"): {"simple": 0.5413},
    }
    for (protocol, world), by_policy in levels.items():
        for policy, level in by_policy.items():
            condition = condition_of(world, policy, protocol)
            found = zero_accuracy(condition, zero_of(condition), simulate_logged(condition, SEEDS))
            assert found.mean() == pytest.approx(level, abs=5e-5)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_zero_reads_gold_of_other_seeds_and_no_belief(protocol):
    condition = condition_of("objectstate", "simple", protocol)
    recording = simulate_logged(condition, SEEDS[:40])
    zero, order = zero_of(condition), np.random.default_rng(0).permutation(40)
    found = zero_accuracy(condition, zero, recording)
    other = replace(recording, belief=np.full_like(recording.belief, -1))
    np.testing.assert_array_equal(zero_accuracy(condition, zero, other), found)
    np.testing.assert_array_equal(zero_accuracy(condition, zero, recording.rows(order)), found[order])
    assert not set(REFERENCE) & set(SEEDS)


@pytest.mark.parametrize("world", WORLDS)
def test_a_scribe_and_a_large_world_have_a_zero_too(world):
    condition = condition_of(world, "simple", "released", profile="scribe")
    recording = simulate_logged(condition, np.arange(60))
    best = best_table(condition, recording)
    reached = zero_accuracy(condition, best, recording).mean()
    for field in range(condition.built.fields):
        for value in range(int(condition.built.domain[field])):
            other = best.table.copy()
            other[field] = value
            assert zero_accuracy(condition, Zero(other, best.place), recording).mean() <= reached + 1e-12
    large = condition_of(world, "simple", "released", regime="S3")
    assert 0.3 < zero_accuracy(large, zero_of(large), simulate_logged(large, SEEDS[:30])).mean() < 0.8


# the yoked placebo and the parts


def test_as_released_the_placebo_is_its_arm_bit_for_bit_and_no_probe_its_own(played):
    released = played[played["protocol"] == "released"]
    np.testing.assert_array_equal(released["placebo"], released["accuracy"])
    without = played[played["policy"] == "no-probe"]
    np.testing.assert_array_equal(without["placebo"], without["accuracy"])
    answered = played[(played["protocol"] == "paper") & (played["policy"] == "voi")]
    assert (answered["placebo"] != answered["accuracy"]).mean() > 0.5


@pytest.mark.parametrize("policy", [POLICIES["voi"], value_policy("mine", "Mine", 0.7), POLICIES["random"]])
def test_a_yoked_placebo_repeats_the_probes_and_forgets_the_answers(policy):
    condition = replace(condition_of("graphnav", "no-probe", "paper"), policy=policy)
    own = simulate_logged(condition, SEEDS[:30])
    placebo = yoked(condition, SEEDS[:30])
    np.testing.assert_array_equal(placebo.probe, own.probe)
    row, step = np.nonzero(placebo.probe >= 0)
    field = placebo.probe[row, step].astype(int)
    told = placebo.belief[row, step + 1, field] != placebo.belief[row, step, field]
    heard = own.belief[row, step + 1, field] != own.belief[row, step, field]
    assert told.mean() < heard.mean()


@pytest.mark.parametrize("pair", [("simple", "periodic"), ("simple", "no-probe"), ("voi", "periodic")])
def test_the_parts_of_a_gain_add_up_and_as_released_none_is_answers(played, pair):
    found = made_of(played, *pair, resamples=200)
    np.testing.assert_allclose(found["gain"], found["steps"] + found["answers"], atol=1e-12)
    np.testing.assert_allclose(found["steps"], found["constant"] + found["rest"], atol=1e-12)
    released = found.loc["released"]
    assert (released[["answers", "answers_low", "answers_high"]] == 0).all(axis=None)


def test_the_corrected_table_has_the_numbers_worked_out_with_other_code(played):
    found = made_of(played, "simple", "periodic", resamples=200).round(1)
    parts = ["gain", "constant", "rest", "steps", "answers"]
    told = found.loc[[("paper", "tooldag"), ("released", "combined"), ("observed", "combined")], parts]
    assert told.to_numpy().tolist() == [
        [-1.6, -4.5, 6.2, 1.6, -3.2],
        [6.1, 7.8, -1.8, 6.1, 0.0],
        [-5.5, -1.4, -2.7, -4.0, -1.4],
    ]
    voi = made_of(played, "voi", "periodic", resamples=200)
    assert voi.loc[("paper", "combined"), ["gain", "answers"]].round(1).tolist() == [11.3, 13.7]


def test_each_part_is_the_mean_over_pairs(played):
    found = made_of(played, "simple", "no-probe", resamples=200)
    wide = played[(played["protocol"] == "observed") & (played["world"] == "tooldag")]
    for part, measure in PARTS.items():
        own = wide.eval(measure.replace("-", " - "))
        values = wide.assign(part=own).pivot(index="seed", columns="policy", values="part")
        expected = 100 * (values["simple"] - values["no-probe"]).mean()
        assert found.loc[("observed", "tooldag"), part] == pytest.approx(expected)


def test_an_excess_is_compared_like_any_measure_and_the_facts_are_asked_for(played):
    tools = {"tools": ("tooldag",)}
    found = compare(played, "simple", "no-probe", "accuracy-zero", strata=tools, resamples=200)
    assert found.set_index("protocol").loc["paper", "gain"] == pytest.approx(11.0, abs=0.1)
    with pytest.raises(InputError, match="placebo"):
        made_of(played.drop(columns="placebo"), "simple", "periodic")


# the second rung and skill


def test_a_constant_table_with_a_log_is_right_where_the_agents_own_actions_decide():
    condition = condition_of("tooldag", "simple", "paper")
    recording = simulate_logged(condition, SEEDS)
    zero, gold = zero_of(condition), recording.gold[:, -1]
    right = gold == zero.table
    right[:, 8] = right[:, 18:] = True
    np.testing.assert_allclose(logged_accuracy(condition, zero, recording), right.mean(axis=1))
    for world in ("objectstate", "graphnav"):
        other = condition_of(world, "simple", "paper")
        own, table = simulate_logged(other, SEEDS[:50]), zero_of(other)
        above = logged_accuracy(other, table, own) - zero_accuracy(other, table, own)
        assert (above >= 0).all()
        assert above.mean() > 0.02


def test_a_skill_is_told_where_the_zero_leaves_room():
    accuracy = np.array([0.9, 0.7])
    assert skill(accuracy, np.array([0.6, 0.6])) == pytest.approx(0.5)
    assert np.isnan(skill(accuracy, np.array([0.95, 0.95])))


def test_the_zero_of_a_placebo_is_learned_from_the_placebo():
    condition = condition_of("tooldag", "periodic", "paper")
    placebo = yoked(condition, REFERENCE)
    assert placebo_zero_of(condition).table.tolist() == best_table(condition, placebo).table.tolist()
