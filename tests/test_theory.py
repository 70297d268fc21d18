"""The theory section: its mathematics on random instances, its forks against the engine, its estimators."""

from __future__ import annotations

import itertools
import math

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings

from envprobe_core.cells import make_cell
from envprobe_core.errors import InputError
from envprobe_core.instances import act, instances, states_of, succeeded
from envprobe_core.plans import chain_length, plan_length
from envprobe_core.protocols import parse_protocol
from envprobe_core.sweep import Piece, Task, simulate
from envprobe_core.theory import (
    assumption,
    conditions,
    displacement,
    forks,
    frontier,
    gains,
    lemma,
    miscoverage,
    pure,
    quality,
    singles,
    text,
    verdicts,
)
from envprobe_core.worlds import make_world

WORLDS = ("tooldag", "objectstate", "graphnav")
PROTOCOLS = ("paper", "observed", "released")
rng_seeds = st.integers(0, 2**32 - 1)
SLACK = 1e-9


def random_coverage(seed: int, items: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    covers = generator.random((items, 7)) < generator.uniform(0.1, 0.8)
    return pure.coverage(covers, generator.exponential(size=7))


# the mathematics


@given(rng_seeds, st.integers(1, 5))
def test_coverage_functions_are_monotone_and_submodular(seed: int, items: int) -> None:
    values = random_coverage(seed, items)
    assert values[0] == 0
    assert pure.is_monotone(values)
    assert pure.is_submodular(values)


@given(rng_seeds, st.integers(1, 5), st.data())
def test_every_order_with_quality_gamma_keeps_the_repair_bound(
    seed: int, items: int, data: st.DataObject
) -> None:
    values = random_coverage(seed, items)
    order = data.draw(st.permutations(range(items)))
    size = data.draw(st.integers(1, items))
    gamma = pure.marginal_quality(values, order, size)
    realized = pure.value_of_order(values, order, size)
    assert realized >= pure.repair_bound(gamma, pure.best_of_size(values, size)) - SLACK


@given(rng_seeds, st.integers(2, 5), st.floats(0, 1))
def test_a_random_selector_keeps_the_bound_in_expectation(seed: int, items: int, gamma: float) -> None:
    """With probability gamma the best field, else a useless one: E[G] by exact recursion."""
    values = random_coverage(seed, items)
    size = items

    def expected(mask: int, left: int) -> float:
        free = [i for i in range(items) if not mask >> i & 1]
        if not left or not free:
            return float(values[mask])
        best = max(free, key=lambda i: values[mask | 1 << i])
        return gamma * expected(mask | 1 << best, left - 1) + (1 - gamma) * expected(mask, left - 1)

    assert expected(0, size) >= pure.repair_bound(gamma, pure.best_of_size(values, size)) - SLACK


def test_the_repair_bound_needs_submodularity() -> None:
    pair = pure.redundant_pair()
    assert pure.is_monotone(pair)
    assert not pure.is_submodular(pair)
    padded = np.array([pair[mask & 3] for mask in range(16)])  # two fields more that do nothing
    gamma = pure.marginal_quality(padded, [2, 3, 0, 1], 2)
    assert gamma == 1.0  # no single field gains, so nothing is asked
    assert pure.value_of_order(padded, [2, 3], 2) < pure.repair_bound(gamma, pure.best_of_size(padded, 2))


@given(rng_seeds, st.integers(1, 4))
def test_differences_agree_with_the_definition(seed: int, items: int) -> None:
    """Naive twin: all pairs of nested sets and all items outside the larger."""
    values = np.random.default_rng(seed).normal(size=1 << items)
    sets = range(1 << items)
    nested = [(s, r) for s in sets for r in sets if s & r == s]
    monotone = all(values[s] <= values[r] + pure.TOLERANCE for s, r in nested)
    submodular = all(
        values[s | 1 << i] - values[s] >= values[r | 1 << i] - values[r] - pure.TOLERANCE
        for s, r in nested
        for i in range(items)
        if not r >> i & 1
    )
    assert pure.is_monotone(values) == monotone
    assert pure.is_submodular(values) == submodular


def own_features_instance(seed: int) -> pure.SelfReportInstance:
    """Fields whose gains depend on their own features alone, features independent between fields."""
    generator = np.random.default_rng(seed)
    fields, kinds_h, kinds_z = 2, 2, 2
    table = generator.normal(size=(fields, kinds_h, kinds_z))
    own = generator.dirichlet(np.ones(kinds_h * kinds_z), size=fields)
    cases = list(itertools.product(range(kinds_h * kinds_z), repeat=fields))
    h = np.array([[code // kinds_z for code in case] for case in cases])
    z = np.array([[code % kinds_z for code in case] for case in cases])
    probability = np.array([math.prod(own[f, code] for f, code in enumerate(case)) for case in cases])
    gain = np.stack([table[f, h[:, f], z[:, f]] for f in range(fields)], axis=1)
    return pure.SelfReportInstance(probability, h, z, gain)


@given(rng_seeds)
def test_the_self_report_bound_holds_with_half_the_constant_where_fields_speak_for_themselves(
    seed: int,
) -> None:
    instance = own_features_instance(seed)
    assert instance.advantage + SLACK >= 0
    assert instance.advantage <= instance.epsilon + SLACK


def test_the_self_report_bound_fails_where_a_neighbour_tells() -> None:
    instance = pure.neighbour_tells()
    assert instance.epsilon == 0.0
    assert instance.advantage == 0.25


@given(rng_seeds, st.integers(1, 30))
def test_miscoverage_is_an_identity(seed: int, fields: int) -> None:
    generator = np.random.default_rng(seed)
    wrong, confident = generator.random((2, fields)) < 0.5
    assume(wrong.any())
    share = np.count_nonzero(wrong & confident) / np.count_nonzero(wrong)
    ceiling = pure.recall_ceiling(wrong, confident)
    assert ceiling == pytest.approx(1 - share, abs=1e-12)
    reached = wrong & ~confident & (generator.random(fields) < 0.5)
    assert np.count_nonzero(reached) / np.count_nonzero(wrong) <= ceiling + 1e-12


def test_recall_needs_an_error() -> None:
    with pytest.raises(InputError, match="no field is wrong"):
        pure.recall_ceiling(np.zeros(3, dtype=bool), np.ones(3, dtype=bool))


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=12))
def test_a_uniform_probe_is_worse_unless_all_gains_are_equal(gains_: list[int]) -> None:
    q = np.array(gains_, dtype=float)
    efficiency = pure.uniform_efficiency(q)
    if q.max() == 0:
        assert math.isnan(efficiency)
    elif len(set(gains_)) == 1:
        assert efficiency == pytest.approx(1.0)
    else:
        assert efficiency < 1


def test_efficiency_says_nothing_where_no_gain_is_positive() -> None:
    harm = pure.harmful_gains()
    assert harm.mean() / harm.max() > 1  # the printed quotient
    assert math.isnan(pure.uniform_efficiency(harm))


@given(rng_seeds, st.integers(1, 6), st.integers(1, 8))
def test_displacement_keeps_its_bound_where_eta_holds_given_n(seed: int, kinds: int, needed: int) -> None:
    generator = np.random.default_rng(seed)
    slots = generator.integers(1, 30, size=kinds)
    effective = np.array([generator.integers(0, n + 1) for n in slots])
    episodes = pure.AdaptiveSlots(generator.dirichlet(np.ones(kinds)), slots, effective, needed)
    assert episodes.success <= episodes.bound(effective / slots) + SLACK
    assert episodes.success <= episodes.bound(float((effective / slots).max())) + SLACK


def test_displacement_fails_with_a_pooled_share() -> None:
    episodes = pure.stuck_agents_act_longest()
    assert episodes.success == 0.9
    assert episodes.bound(episodes.pooled_share) < 0.2
    assert episodes.bound(episodes.effective / episodes.slots) >= episodes.success


def test_displacement_bound_by_hand() -> None:
    assert pure.displacement_bound(0.5, np.array([10, 2]), np.array([4, 4])) == (1.0 + 0.25) / 2
    assert pure.displacement_bound(0.5, np.array([10]), np.array([0])) == 1.0


def test_a_set_function_has_a_power_of_two_values() -> None:
    with pytest.raises(InputError, match="not 3"):
        pure.items_of(np.zeros(3))


# forks


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("world", WORLDS)
def test_a_fork_without_repair_on_its_own_seed_is_the_engines_episode(world: str, protocol: str) -> None:
    setting = forks.Setting.of(world, "S2", protocol, "typical")
    seeds = np.arange(40, dtype=np.int64)
    played = forks.play(setting, seeds, seeds, np.zeros((40, setting.world.fields), dtype=bool))
    cell = make_cell(world, "no-probe", "S2", parse_protocol(protocol))
    engine = simulate(Task((Piece(0, cell, seeds),)), reports=True)
    rows = np.arange(40)
    np.testing.assert_array_equal(
        played.right, engine.belief[rows, engine.steps] == engine.gold[rows, engine.steps]
    )
    np.testing.assert_array_equal(played.success, engine.success)
    past = forks.look(setting, seeds)
    np.testing.assert_array_equal(past.belief, engine.belief[past.seeds, setting.moment])
    np.testing.assert_array_equal(past.gold, engine.gold[past.seeds, setting.moment])
    np.testing.assert_array_equal(past.confidence, engine.confidence[past.seeds, setting.moment])
    np.testing.assert_array_equal(past.staleness, engine.staleness[past.seeds, setting.moment])
    assert past.left_out == 40 - len(past.seeds)


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(WORLDS), st.sampled_from(PROTOCOLS), rng_seeds)
def test_repairing_right_beliefs_changes_nothing(world: str, protocol: str, seed: int) -> None:
    setting = forks.Setting.of(world, "R1", protocol, "typical")
    past = forks.look(setting, np.arange(6, dtype=np.int64))
    assume(len(past.seeds) > 0)
    some = np.random.default_rng(seed).random(past.wrong.shape) < 0.5
    later = forks.future_seeds(past.seeds, np.arange(len(past.seeds)))
    one = forks.play(setting, past.seeds, later, some)
    other = forks.play(setting, past.seeds, later, some & past.wrong)
    np.testing.assert_array_equal(one.right, other.right)
    np.testing.assert_array_equal(one.actions, other.actions)


def test_forks_do_not_depend_on_the_block() -> None:
    setting = forks.Setting.of("graphnav", "S2", "paper", "typical")
    seeds = np.arange(12, dtype=np.int64)
    later = forks.future_seeds(seeds, np.full(12, 3))
    repaired = np.random.default_rng(0).random((12, setting.world.fields)) < 0.3
    together = forks.play(setting, seeds, later, repaired).right
    for row in range(12):
        part = slice(row, row + 1)
        np.testing.assert_array_equal(
            forks.play(setting, seeds[part], later[part], repaired[part]).right, together[part]
        )


def test_repairing_everything_at_the_last_step_leaves_only_the_last_mutation() -> None:
    setting = forks.Setting.of("tooldag", "S2", "observed", "perfect", share=29.5 / 30)
    seeds = np.arange(20, dtype=np.int64)
    everything = np.ones((20, setting.world.fields), dtype=bool)
    plain = forks.play(setting, seeds, seeds, ~everything).right.mean()
    assert forks.play(setting, seeds, seeds, everything).right.mean() > plain


# estimators


def test_scores_rank_as_the_engine_scores() -> None:
    setting = forks.Setting.of("tooldag", "S2", "paper", "typical")
    seeds = np.arange(10, dtype=np.int64)
    past = forks.look(setting, seeds)
    cell = make_cell("tooldag", "simple", "S2", budget=1, threshold=-1.0)
    first = forks.Setting.of("tooldag", "S2", "paper", "typical", share=0.0)
    full = gains.rank_values(first, forks.look(first, seeds), "full")
    engine = simulate(Task((Piece(0, cell, seeds),)))
    np.testing.assert_array_equal(np.argmax(full, axis=1), engine.probe[:, 0])
    weighted = gains.rank_values(setting, past, "oracle-tw")
    assert (past.wrong[np.arange(10), np.argmax(weighted, axis=1)] == past.wrong.any(axis=1)).all()


def test_least_ratio_by_hand() -> None:
    top = np.array([[1.0, 2.0], [1.0, 2.0]])
    bottom = np.array([[2.0, 2.0], [2.0, 2.0]])
    assert gains.least_ratio(top, bottom, 100) == (0.5, 0.5, 0.5, 2)
    assert math.isnan(gains.least_ratio(top, np.zeros((2, 2)), 100).value)


def test_cross_fitting_does_not_flatter() -> None:
    """Where nothing has a gain, the chosen best is worth nothing on average."""
    noise = np.random.default_rng(0).normal(size=(4000, 20, 2))
    crossed = np.mean([quality._cross_fitted_best(part) for part in noise])
    naive = noise.mean(axis=2).max(axis=1).mean()
    assert abs(crossed) < 0.03
    assert naive > 1.0


def test_an_oracle_that_repairs_all_that_is_wrong_reaches_the_whole_gain() -> None:
    setting = forks.Setting.of("tooldag", "R1", "paper", "typical")
    run = quality.run_quality(setting, "procedural", np.arange(10, dtype=np.int64), futures=4, depth=15)
    np.testing.assert_allclose(run.total["oracle"], run.total["oracle-tw"], atol=1e-12)
    np.testing.assert_allclose(run.realized["oracle"].sum(axis=1), run.total["oracle"], atol=1e-12)


@pytest.fixture(scope="module")
def small() -> dict[str, object]:
    """All results of the section, on few seeds."""
    common = ("R1", "paper", "typical", "0:30")
    tests = assumption.load_assumption(WORLDS, *common, futures=16, pasts=6, fresh=200)
    alone = singles.load_singles(WORLDS, *common, futures=2)
    return {
        "tests": tests,
        "alone": alone,
        "lemma": lemma.lemma_frame(tests, 3, 200),
        "reports": singles.self_reports(alone, 200),
        "missed": miscoverage.load_miscoverage(WORLDS, "R1", PROTOCOLS, "typical", "0:30", 200),
        "single": singles.efficiency_frame(alone, 200),
        "slots": displacement.load_displacement(WORLDS, "R1", PROTOCOLS, "typical", "0:30"),
        "changes": frontier.paired_changes(
            frontier.load_frontier(WORLDS, "simple", "R1", "paper", "typical", "0:30", 3), 200
        ),
    }


def test_lattices_hold_every_subset_of_the_wrong_fields(small: dict[str, object]) -> None:
    for test in small["tests"]:
        for lattice in test.lattices:
            assert lattice.accuracy.shape == (16, 1 << len(lattice.wrong))
            assert 2 <= len(lattice.wrong) <= assumption.MOST_WRONG
            assert test.past.wrong[lattice.row, lattice.wrong].all()


def test_single_gains_are_the_first_floor_of_the_lattice() -> None:
    setting = forks.Setting.of("tooldag", "R1", "paper", "typical")
    seeds = np.arange(20, dtype=np.int64)
    alone = singles.run_singles(setting, seeds, futures=8)
    past = forks.look(setting, seeds)
    row = int(np.flatnonzero((past.wrong.sum(axis=1) >= 2) & (past.wrong.sum(axis=1) <= 6))[0])
    (lattice,) = assumption.enumerate_lattices(setting, past, "procedural", np.array([row]), 8)
    for bit, field in enumerate(lattice.wrong):
        assert lattice.gain[1 << bit] == pytest.approx(alone.gain[row, field], abs=1e-12)


def test_the_ceiling_is_exact_and_recall_stays_below(small: dict[str, object]) -> None:
    table = small["missed"]
    np.testing.assert_allclose(table["eligible"], table["ceiling"], atol=1e-12)
    assert (table["recall"] <= table["eligible"] + 1e-12).all()


@pytest.mark.parametrize("world", WORLDS)
def test_effective_actions_by_replaying_each_action(world: str) -> None:
    """Naive twin: one episode and step at a time, plan lengths before and after the action alone."""
    cell = make_cell(world, "simple", "R1", parse_protocol("paper"))
    seeds = np.arange(8, dtype=np.int64)
    engine = simulate(Task((Piece(0, cell, seeds),)))
    built = make_world(world, cell.regime, cell.protocol)
    counted = displacement.effective_actions(built, seeds, engine)
    for row, seed in enumerate(seeds):
        instance = instances(built, [seed])
        done, effective = False, 0
        for step in range(cell.regime.horizon):
            state = states_of(built, engine.gold[[row], [step]][None], engine.place[[row], [step]][None])
            done = done or bool(succeeded(built, instance, state)[0, 0])
            if engine.valid[row, step] and not done:
                after, worked = act(built, instance, state, engine.action[[row], [step]][None])
                assert worked[0, 0]
                effective += (
                    plan_length(built, instance, state)[0, 0] - 1 == plan_length(built, instance, after)[0, 0]
                )
        assert counted[row] == effective


def test_tools_cannot_succeed_in_fewer_than_k_effective_actions(small: dict[str, object]) -> None:
    rows = small["slots"][small["slots"]["world"] == "tooldag"]
    assert rows["short"].sum() == 0
    world = forks.Setting.of("tooldag", "R1", "paper", "typical").world
    assert (chain_length(world, np.arange(5)) == 5).all()


def test_budgets_reach_from_none_to_the_horizon() -> None:
    regime = make_cell("tooldag", "simple", "S2").regime
    assert frontier.budgets(regime, 4) == [0, 7, 10, 20, 30]
    assert frontier.budgets(regime, 41) == list(range(31))


def test_shapes_name_every_pair_of_signs() -> None:
    assert set(frontier.SHAPES) == set(itertools.product((-1, 0, 1), repeat=2))


def test_every_sentence_and_outcome_can_be_told(small: dict[str, object]) -> None:
    found = verdicts.outcomes(
        small["tests"], small["lemma"], small["reports"], small["missed"], small["single"], small["slots"],
        small["changes"],
    )  # fmt: skip
    assert [o.mathematics for o in found].count(verdicts.CONDITION) == 4
    assert len(found) == 7
    told = [
        text.tell_forks(small["alone"]),
        text.tell_assumption(small["tests"]),
        text.tell_lemma(small["lemma"]),
        text.tell_self_report(small["reports"]),
        text.tell_miscoverage(small["missed"]),
        text.tell_efficiency(small["single"]),
        text.tell_displacement(small["slots"]),
        text.tell_frontier(small["changes"]),
        text.tell_separation(small["alone"], 200),
        conditions.tell_conditions(),
    ]
    for paragraph in told:
        assert "nan" not in paragraph.markdown.replace("None", "")


def test_nothing_wrong_leaves_nothing_to_test() -> None:
    """At step 0 under the text's protocol the table is right: no gains, no lattices, no quality."""
    tests = assumption.load_assumption(("tooldag",), "R1", "paper", "perfect", "0:12", share=0.0)
    assert tests[0].lattices == []
    run = quality.load_quality(("tooldag",), "R1", "paper", "perfect", "0:12", pasts=12, futures=2, share=0.0)
    frame = quality.quality_frame(run, None, 100)
    assert frame["gamma"].isna().all()
    assert isinstance(lemma.lemma_frame(tests, 3, 100), pd.DataFrame)
    assert "nothing to enumerate" in text.tell_assumption(tests).markdown
