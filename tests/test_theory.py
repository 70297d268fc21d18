"""The theory: its mathematics on random instances, forks against the engine, what is measured on them."""

import itertools
import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given, settings

from envprobe_book import run
from envprobe_book.analyses import repair_sets, repairs, self_reports
from envprobe_book.facts import effective_actions, fact
from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import simulate_logged
from envprobe_core.engine.kernel import STALENESS_TERM, UNCERTAINTY_TERM
from envprobe_core.errors import InputError
from envprobe_core.protocols import PROTOCOLS, parse_protocol
from envprobe_core.worlds import WORLDS
from in_sight import run_cell

PAGE = run_cell("theory", "3", np=np)  # the statements, as the page shows them
SLACK, TOLERANCE = 1e-9, 1e-12
rng_seeds = st.integers(0, 2**32 - 1)


def fork(world="tooldag", regime="R1", protocol="paper", profile="typical", share=0.5):
    return repairs.Setting.of(world, regime, protocol, profile, share)


# the paper's statements on random instances


@given(rng_seeds, st.integers(1, 5), st.data())
def test_repairs_keep_their_bound(seed, items, data):
    """Lemma 5.3 for one type, and the accuracy of Theorem 5.8 for two, on weighted coverage functions."""
    parts, sets = [], repair_sets.subsets(items)
    for generator in map(np.random.default_rng, (seed, seed + 1)):
        covers = generator.random((items, 7)) < generator.uniform(0.1, 0.8)
        values = ((sets[:, :, None] & covers).any(axis=1) * generator.exponential(size=7)).sum(axis=1)
        order = data.draw(st.permutations(range(items)))[: data.draw(st.integers(1, items))]
        mask, gamma = 0, 1.0
        for item in order:
            gains = {i: values[mask | 1 << i] - values[mask] for i in range(items) if not mask >> i & 1}
            if max(gains.values()) > TOLERANCE:
                gamma = min(gamma, gains[item] / max(gains.values()))
            mask |= 1 << item
        best = values[sets.sum(axis=1) <= len(order)].max()
        parts.append((values[mask], PAGE.repair_bound(max(0.0, gamma), best)))
        assert parts[-1][0] >= parts[-1][1] - SLACK
    realized, bound = np.array([0.3, 0.7]) @ np.array(parts)
    assert realized >= bound - SLACK


@given(rng_seeds, st.integers(1, 4), st.integers(1, 3))
def test_reports_add_at_most_what_they_move(seed, fields, values):
    """Lemma 5.4, under the condition it misses: a field's gain depends on its own features alone."""
    generator = np.random.default_rng(seed)
    gain, chance = generator.normal(size=(fields, values)), generator.dirichlet(np.ones(values), fields)
    alone = (gain * chance).sum(axis=1)
    both = sum(
        math.prod(chance[i, z] for i, z in enumerate(told)) * max(gain[i, z] for i, z in enumerate(told))
        for told in itertools.product(range(values), repeat=fields)
    )
    assert both - alone.max() <= np.abs(gain - alone[:, None]).max() + SLACK


@given(rng_seeds, st.integers(1, 30))
def test_trust_in_confidence_finds_no_more_than_its_ceiling(seed, fields):
    """Proposition 5.5, and 5.6 where some gain is positive."""
    wrong, confident, probed, gains = np.random.default_rng(seed).random((4, fields)) < 0.5
    assume(wrong.any())
    found = (wrong & probed & ~confident).sum() / wrong.sum()
    assert found <= PAGE.recall_ceiling((wrong & confident).sum(), wrong.sum()) + SLACK
    if gains.any():
        share = PAGE.efficiency(gains.mean(), gains.max())
        assert share <= 1
        assert (share == 1) == gains.all()


@given(rng_seeds, st.integers(1, 20), st.integers(1, 10))
def test_success_keeps_the_displacement_bound(seed, most, needed):
    """Lemma 5.7, with eta a bound on the share of effective slots given their number."""
    generator = np.random.default_rng(seed)
    slots, eta = np.arange(1, most + 1), generator.random()
    of_slots = generator.dirichlet(np.ones(most))
    amount = generator.integers(1, slots + 1)  # an effective count: 0, or this amount
    success = np.minimum(1.0, eta * slots / amount) * (amount >= needed)
    assert of_slots @ success <= of_slots @ PAGE.success_bound(eta, slots, needed) + SLACK


@given(rng_seeds, st.integers(1, 4))
def test_differences_agree_with_the_definition(seed, items):
    """Naive twin: all pairs of nested sets and all items outside the larger."""
    values = np.random.default_rng(seed).normal(size=1 << items)
    nested = [(s, r) for s in range(1 << items) for r in range(1 << items) if s & r == s]
    monotone, submodular = (
        bool((repair_sets.differences(values, name)[1] >= -TOLERANCE).all())
        for name in ("monotone", "submodular")
    )
    assert monotone == all(values[s] <= values[r] + TOLERANCE for s, r in nested)
    assert submodular == all(
        values[s | 1 << i] - values[s] >= values[r | 1 << i] - values[r] - TOLERANCE
        for s, r in nested
        for i in range(items)
        if not r >> i & 1
    )


# forks


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("world", WORLDS)
def test_a_fork_without_repair_on_its_own_seed_is_the_engines_episode(world, protocol):
    setting, seeds = fork(world, "S2", protocol), np.arange(40)
    played = repairs.play(setting, seeds, seeds, np.zeros((40, setting.world.fields), dtype=bool))
    engine = simulate_logged(make_condition(world, "no-probe", "S2", parse_protocol(protocol)), seeds)
    last = seeds, engine.steps
    np.testing.assert_array_equal(played.right, engine.belief[last] == engine.gold[last])
    np.testing.assert_array_equal(played.success, engine.success)
    past = repairs.look(setting, seeds)
    then = past.seeds, setting.moment
    np.testing.assert_array_equal(past.wrong, engine.belief[then] != engine.gold[then])
    np.testing.assert_array_equal(past.terms["s"], STALENESS_TERM[engine.staleness[then]])
    np.testing.assert_array_equal(past.terms["u"], UNCERTAINTY_TERM[engine.confidence[then]])


def test_a_moment_after_every_episode_is_refused():
    with pytest.raises(InputError, match="none of 3 episodes in tooldag still runs at step 27"):
        repairs.play_singles(fork(protocol="released", profile="perfect", share=0.9), np.arange(3))


@settings(max_examples=10)
@given(st.sampled_from(list(WORLDS)), st.sampled_from(list(PROTOCOLS)), rng_seeds)
def test_repairing_right_beliefs_changes_nothing_nor_does_the_block(world, protocol, seed):
    setting = fork(world, "R1", protocol)
    past = repairs.look(setting, np.arange(6))
    assume(len(past.seeds) > 0)
    some = np.random.default_rng(seed).random(past.wrong.shape) < 0.5
    later = repairs.future_seeds(past.seeds, np.arange(len(past.seeds)))
    together = repairs.play(setting, past.seeds, later, some)
    wrong = repairs.play(setting, past.seeds, later, some & past.wrong)
    alone = repairs.play(setting, past.seeds[-1:], later[-1:], some[-1:])
    for all_rows, same, last in zip(together, wrong, alone, strict=True):
        np.testing.assert_array_equal(all_rows, same)
        np.testing.assert_array_equal(all_rows[-1:], last)


# what is measured


def test_scores_rank_as_the_engine_scores():
    seeds = np.arange(10)
    at_first, later = fork(regime="S2", share=0.0), fork(regime="S2")
    full = repairs.rank_values(at_first, repairs.look(at_first, seeds), "full")
    condition = make_condition("tooldag", "simple", "S2", budget=1, threshold=-1.0)
    engine = simulate_logged(condition, seeds, scores_all=False)
    np.testing.assert_array_equal(np.argmax(full, axis=1), engine.probe[:, 0])
    past = repairs.look(later, seeds)
    weighted = repairs.rank_values(later, past, "oracle-tw")
    assert (past.wrong[seeds, np.argmax(weighted, axis=1)] == past.wrong.any(axis=1)).all()


def test_least_ratio_by_hand_and_choosing_apart_from_valuing_does_not_flatter():
    top, bottom = np.array([[1.0, 2.0], [1.0, 2.0]]), np.full((2, 2), 2.0)
    assert repair_sets.least_ratio(top, bottom, 100) == (0.5, 0.5, 0.5, 2)
    assert math.isnan(repair_sets.least_ratio(top, np.zeros((2, 2)), 100).value)
    noise = np.random.default_rng(0).normal(size=(4000, 20, 2))  # the chosen best is worth nothing
    assert abs(np.mean([repair_sets.best_of_halves(part) for part in noise])) < 0.03
    assert noise.mean(axis=2).max(axis=1).mean() > 1.0


def test_an_oracle_that_repairs_all_that_is_wrong_reaches_the_whole_gain():
    realized, _, total = repair_sets.play_quality(fork(), "procedural", np.arange(10), futures=4, depth=15)
    np.testing.assert_allclose(total["oracle"], total["oracle-tw"], atol=1e-12)
    np.testing.assert_allclose(realized["oracle"].sum(axis=1), total["oracle"], atol=1e-12)
    still = fork(profile="perfect", share=0.0)  # at step 0 the table is right: nothing to gain, no quality
    realized, best, _ = repair_sets.play_quality(still, "procedural", np.arange(12), futures=2)
    for score in repairs.SCORES:
        assert not realized[score].any()
        assert math.isnan(repair_sets.least_ratio(realized[score], best[score], 100).value)


def test_single_gains_are_the_first_floor_of_the_lattice():
    past, gain, _ = repairs.play_singles(fork(), np.arange(20))
    row = int(np.flatnonzero((past.wrong.sum(axis=1) >= 2) & (past.wrong.sum(axis=1) <= 6))[0])
    ((_, wrong, accuracy),) = repair_sets.play_subsets(fork(), past, "procedural", np.array([row]), 8)
    gained = repair_sets.Repairs(wrong, repair_sets.in_halves(accuracy.T)).gains(0).mean(axis=1)
    assert gained == pytest.approx(gain[row, wrong], abs=1e-12)


def test_a_report_that_says_nothing_adds_nothing_and_one_that_tells_adds_what_it_tells():
    """Two fields, one of which gains; which one is told by u alone."""
    told = np.random.default_rng(0).random(400) < 0.5
    same, u = np.full((400, 2), 0.5), np.where(np.stack([told, ~told], axis=1), 0.3, 0.0)
    gain = np.where(np.stack([told, ~told], axis=1), 1.0, 0.0)
    past = repairs.Past(np.arange(400), gain > 0, {"c": same, "d": same, "s": same, "u": u}, same)
    found = self_reports.self_report(past, np.arange(2), gain, resamples=100)
    assert (found["bins"], found["epsilon"], found["epsilon_split"]) == pytest.approx((2, 0.5, 0.5), abs=0.05)
    assert found["both"] == 1
    assert found["advantage"] == pytest.approx(found["both"] - found["structural"])
    silent = past._replace(terms=past.terms | {"u": same})
    found = self_reports.self_report(silent, np.arange(2), gain, resamples=100)
    assert (found["bins"], found["epsilon"]) == (1, 0)
    assert [found[f"advantage{end}"] for end in ("", "_low", "_high")] == [0, 0, 0]


def test_a_counterexample_tried_again_keeps_its_sets_and_says_whether_it_stands():
    past = repairs.look(fork(), np.arange(20))
    row = int(np.flatnonzero(past.wrong.sum(axis=1) >= 2)[0])
    wrong = np.flatnonzero(past.wrong[row])
    again = repair_sets.try_again(fork(), "procedural", past, row, wrong, 0, 2, 0)
    names = fork().world.field_names
    assert (again["seed"], again["smaller"]) == (past.seeds[row], "∅")
    assert (again["added"], again["item"]) == (names[wrong[1]], names[wrong[0]])
    assert again["value_low"] <= again["value"] <= again["value_high"]
    assert (again["stands"] == "yes") == (again["value_high"] < 0)


def test_sets_that_add_up_break_no_property_and_greedy_repair_reaches_their_best():
    """Values made up: each wrong field adds its own amount, whatever else is repaired."""
    past = repairs.look(fork(), np.arange(30))
    rows = np.flatnonzero((past.wrong.sum(axis=1) >= 3) & (past.wrong.sum(axis=1) <= 5))[:2]
    played = []
    for row in rows.tolist():
        wrong = np.flatnonzero(past.wrong[row])
        value = repair_sets.subsets(len(wrong)) @ np.arange(1.0, len(wrong) + 1) / 100
        played.append((row, wrong, np.tile(value, (6, 1))))
    for name in ("monotone", "submodular"):
        counts, violation = repair_sets.check_property(fork(), "procedural", past, played, name)
        assert (counts["pasts"], counts["negative"], counts["clear"], counts["share"]) == (2, 0, 0, 0)
        assert violation is None
        nothing, violation = repair_sets.check_property(fork(), "procedural", past, [], name)
        assert (nothing["pasts"], violation) == (0, None)
        assert math.isnan(nothing["share"])
    chosen = repair_sets.choose_by_every_score(fork(), "procedural", past, played, 3, 100)
    assert chosen["score"].tolist() == ["greedy", *repairs.SCORES]
    best = np.mean([sum(range(len(wrong), len(wrong) - 3, -1)) for _, wrong, _ in played])
    np.testing.assert_allclose(chosen["best"], best)
    assert chosen["realized"][0] == pytest.approx(best)
    assert (chosen["realized"] <= best + 1e-9).all()
    assert chosen["gamma"].between(0, 1).all()


def test_sets_that_harm_are_found_and_tried_again():
    past = repairs.look(fork(), np.arange(20))
    row = int(np.flatnonzero(past.wrong.sum(axis=1) >= 2)[0])
    wrong = np.flatnonzero(past.wrong[row])[:2]
    value = np.array([0.0, -0.1, 0.1, 0.2]) + np.random.default_rng(0).normal(scale=1e-3, size=(20, 4))
    counts, violation = repair_sets.check_property(
        fork(), "procedural", past, [(row, wrong, value)], "monotone"
    )
    assert (counts["pasts"], counts["compared"], counts["clear"], counts["share"]) == (1, 4, 1, 100)
    names = fork().world.field_names
    assert (violation["smaller"], violation["item"]) == ("∅", names[wrong[0]])
    assert violation["found"] == pytest.approx(-10, abs=0.2)


# facts of episodes


def test_no_fact_is_measured_twice():
    with pytest.raises(ValueError, match="measured already: effective"):
        fact("effective")(effective_actions)


def test_tools_cannot_succeed_in_fewer_than_k_effective_actions():
    facts = run("tooldag", "simple", "R1", PROTOCOLS, seeds="0:30", facts="effective chain_length")
    assert (facts["chain_length"] == 5)[facts["protocol"] == "paper"].all()
    assert (facts["effective"] >= facts["chain_length"])[facts["success"]].all()
