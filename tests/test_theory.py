"""The theory: its mathematics on random instances, forks against the engine, what is measured on them."""

import itertools
import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given, settings

from envprobe_core import run
from envprobe_core.analyses import repairs
from envprobe_core.cells import make_cell
from envprobe_core.engine.running import record
from envprobe_core.facts import effective_actions, fact
from envprobe_core.instances import act, instances, plan_length, states_of, succeeded
from envprobe_core.protocols import parse_protocol
from envprobe_core.worlds import make_world

WORLDS = ("tooldag", "objectstate", "graphnav")
PROTOCOLS = ("paper", "observed", "released")
rng_seeds = st.integers(0, 2**32 - 1)
SLACK, TOLERANCE = 1e-9, 1e-12


def random_coverage(seed, items):
    """A weighted coverage function: each item covers some of seven points."""
    generator = np.random.default_rng(seed)
    covers = generator.random((items, 7)) < generator.uniform(0.1, 0.8)
    weights = generator.exponential(size=7)
    return ((repairs.subsets(items)[:, :, None] & covers).any(axis=1) * weights).sum(axis=1)


def quality(values, order):
    """Gamma of a fixed order on the sets it visits; where no item gains anything, nothing is asked."""
    items, mask, least = len(values).bit_length() - 1, 0, 1.0
    for item in order:
        gains = {i: values[mask | 1 << i] - values[mask] for i in range(items) if not mask >> i & 1}
        if max(gains.values()) > TOLERANCE:
            least = min(least, gains[item] / max(gains.values()))
        mask |= 1 << item
    return max(0.0, least)


def realized_and_bound(values, order):
    """What the first items of an order gain, and what Lemma 5.3 promises of them."""
    best = values[repairs.subsets(len(values).bit_length() - 1).sum(axis=1) <= len(order)].max()
    return values[sum(1 << item for item in order)], (1 - math.exp(-quality(values, order))) * best


# the paper's statements on random instances


@given(rng_seeds, st.integers(1, 5), st.data())
def test_repairs_keep_their_bound(seed, items, data):
    """Lemma 5.3 for one type, and the accuracy of Theorem 5.8 for two."""
    parts = []
    for kind in (0, 1):
        order = data.draw(st.permutations(range(items)))[: data.draw(st.integers(1, items))]
        parts.append(realized_and_bound(random_coverage(seed + kind, items), order))
        assert parts[-1][0] >= parts[-1][1] - SLACK
    share = np.array([0.3, 0.7])
    realized, bound = share @ np.array(parts)
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
    generator = np.random.default_rng(seed)
    wrong, confident, probed, gains = generator.random((4, fields)) < 0.5
    assume(wrong.any())
    found = (wrong & probed & ~confident).sum() / wrong.sum()
    assert found <= 1 - (wrong & confident).sum() / wrong.sum() + SLACK
    assert not gains.any() or gains.mean() <= gains.max()
    assert (gains.mean() == 1) == gains.all()


@given(rng_seeds, st.integers(1, 20), st.integers(1, 10))
def test_success_keeps_the_displacement_bound(seed, most, needed):
    """Lemma 5.7, with eta a bound on the share of effective slots given their number."""
    generator = np.random.default_rng(seed)
    slots, eta = np.arange(1, most + 1), generator.random()
    of_slots, success = generator.dirichlet(np.ones(most)), np.zeros(most)
    for at, n in enumerate(slots):  # an effective count drawn from a mixture of 0 and any amount up to n
        amount = generator.integers(1, n + 1)
        success[at] = min(1.0, eta * n / amount) * (amount >= needed)
    assert of_slots @ success <= of_slots @ np.minimum(1, eta * slots / needed) + SLACK


@given(rng_seeds, st.integers(1, 4))
def test_differences_agree_with_the_definition(seed, items):
    """Naive twin: all pairs of nested sets and all items outside the larger."""
    values = np.random.default_rng(seed).normal(size=1 << items)
    nested = [(s, r) for s in range(1 << items) for r in range(1 << items) if s & r == s]
    monotone, submodular = (
        bool((found[-1] >= -TOLERANCE).all())
        for found in (repairs.first_differences(values), repairs.second_differences(values))
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
    setting = repairs.Setting.of(world, "S2", protocol, "typical")
    seeds = rows = np.arange(40, dtype=np.int64)
    played = repairs.play(setting, seeds, seeds, np.zeros((40, setting.world.fields), dtype=bool))
    cell = make_cell(world, "no-probe", "S2", parse_protocol(protocol))
    engine = record(cell, seeds)
    np.testing.assert_array_equal(
        played.right, engine.belief[rows, engine.steps] == engine.gold[rows, engine.steps]
    )
    np.testing.assert_array_equal(played.success, engine.success)
    past = repairs.look(setting, seeds)
    for name in ("belief", "gold", "confidence", "staleness"):
        np.testing.assert_array_equal(
            getattr(past, name), getattr(engine, name)[past.seeds, setting.moment], name
        )


@settings(max_examples=10, deadline=None)
@given(st.sampled_from(WORLDS), st.sampled_from(PROTOCOLS), rng_seeds)
def test_repairing_right_beliefs_changes_nothing(world, protocol, seed):
    setting = repairs.Setting.of(world, "R1", protocol, "typical")
    past = repairs.look(setting, np.arange(6, dtype=np.int64))
    assume(len(past.seeds) > 0)
    some = np.random.default_rng(seed).random(past.wrong.shape) < 0.5
    later = repairs.future_seeds(past.seeds, np.arange(len(past.seeds)))
    one = repairs.play(setting, past.seeds, later, some)
    other = repairs.play(setting, past.seeds, later, some & past.wrong)
    np.testing.assert_array_equal(one.right, other.right)
    np.testing.assert_array_equal(one.actions, other.actions)


def test_forks_do_not_depend_on_the_block():
    setting = repairs.Setting.of("graphnav", "S2", "paper", "typical")
    seeds = np.arange(12, dtype=np.int64)
    later = repairs.future_seeds(seeds, np.full(12, 3))
    repaired = np.random.default_rng(0).random((12, setting.world.fields)) < 0.3
    together = repairs.play(setting, seeds, later, repaired).right
    for row in range(12):
        part = slice(row, row + 1)
        alone = repairs.play(setting, seeds[part], later[part], repaired[part]).right
        np.testing.assert_array_equal(alone, together[part])


# what is measured


def test_scores_rank_as_the_engine_scores():
    setting = repairs.Setting.of("tooldag", "S2", "paper", "typical")
    seeds = np.arange(10, dtype=np.int64)
    past = repairs.look(setting, seeds)
    cell = make_cell("tooldag", "simple", "S2", budget=1, threshold=-1.0)
    first = repairs.Setting.of("tooldag", "S2", "paper", "typical", share=0.0)
    full = repairs.rank_values(first, repairs.look(first, seeds), "full")
    engine = record(cell, seeds, scores_all=False)
    np.testing.assert_array_equal(np.argmax(full, axis=1), engine.probe[:, 0])
    weighted = repairs.rank_values(setting, past, "oracle-tw")
    assert (past.wrong[np.arange(10), np.argmax(weighted, axis=1)] == past.wrong.any(axis=1)).all()


def test_least_ratio_by_hand():
    top, bottom = np.array([[1.0, 2.0], [1.0, 2.0]]), np.full((2, 2), 2.0)
    assert repairs.least_ratio(top, bottom, 100) == (0.5, 0.5, 0.5, 2)
    assert math.isnan(repairs.least_ratio(top, np.zeros((2, 2)), 100).value)


def test_choosing_and_valuing_apart_does_not_flatter():
    """Where nothing has a gain, the chosen best is worth nothing on average."""
    noise = np.random.default_rng(0).normal(size=(4000, 20, 2))
    assert abs(np.mean([repairs.best_of_halves(part) for part in noise])) < 0.03
    assert noise.mean(axis=2).max(axis=1).mean() > 1.0


def test_an_oracle_that_repairs_all_that_is_wrong_reaches_the_whole_gain():
    setting = repairs.Setting.of("tooldag", "R1", "paper", "typical")
    realized, _, total = repairs.play_quality(setting, "procedural", np.arange(10), futures=4, depth=15)
    np.testing.assert_allclose(total["oracle"], total["oracle-tw"], atol=1e-12)
    np.testing.assert_allclose(realized["oracle"].sum(axis=1), total["oracle"], atol=1e-12)


def test_single_gains_are_the_first_floor_of_the_lattice():
    setting = repairs.Setting.of("tooldag", "R1", "paper", "typical")
    past, gain, _ = repairs.play_singles(setting, np.arange(20))
    row = int(np.flatnonzero((past.wrong.sum(axis=1) >= 2) & (past.wrong.sum(axis=1) <= 6))[0])
    (lattice,) = repairs.play_subsets(setting, past, "procedural", np.array([row]), 8)
    gained = lattice.repairs.gains(0).mean(axis=1)
    assert gained == pytest.approx(gain[row, lattice.wrong], abs=1e-12)


def test_nothing_wrong_leaves_nothing_to_gain():
    """At step 0 under the text's protocol the table is right: no wrong fields, no gains, no quality."""
    setting = repairs.Setting.of("tooldag", "R1", "paper", "perfect", share=0.0)
    realized, best, _ = repairs.play_quality(setting, "procedural", np.arange(12), futures=2)
    for score in repairs.SCORES:
        assert not realized[score].any()
        assert math.isnan(repairs.least_ratio(realized[score], best[score], 100).value)


# facts of episodes


def test_no_fact_is_measured_twice():
    with pytest.raises(ValueError, match="measured already: effective"):
        fact("effective")(effective_actions)


def test_tools_cannot_succeed_in_fewer_than_k_effective_actions():
    facts = run("tooldag", "simple", "R1", PROTOCOLS, seeds="0:30", facts="effective chain_length")
    assert (facts["chain_length"] == 5)[facts["protocol"] == "paper"].all()
    assert (facts["effective"] >= facts["chain_length"])[facts["success"]].all()


@pytest.mark.parametrize("world", WORLDS)
def test_effective_actions_by_replaying_each_action(world):
    """Naive twin: one episode and step at a time, plan lengths before and after the action alone."""
    cell, seeds = make_cell(world, "simple", "R1", parse_protocol("paper")), np.arange(8, dtype=np.int64)
    engine = record(cell, seeds, scores_all=False)
    built = make_world(world, cell.regime, cell.protocol)
    (counted,) = effective_actions(cell, seeds, engine)
    for row, seed in enumerate(seeds):
        instance = instances(built, [seed])
        done, effective = False, 0
        for step in range(cell.regime.horizon):
            state = states_of(built, engine.gold[[row], [step]][None], engine.place[[row], [step]][None])
            done = done or bool(succeeded(built, instance, state)[0, 0])
            if engine.valid[row, step] and not done:
                after, worked = act(built, instance, state, engine.action[[row], [step]][None])
                assert worked[0, 0]
                left = [plan_length(built, instance, own)[0, 0] for own in (state, after)]
                effective += left[0] - 1 == left[1]
        assert counted[row] == effective
