"""VoI: its belief and prices by hand, its decisions against the twin and under any arrangement of rows."""

import copy
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from strategies import cells, seeds
from twinning import assert_same, simulate_cell, twin_episodes

from envprobe_core.cells import Cell, make_cell
from envprobe_core.policies import POLICIES, ValueOfInformation, value_policy
from envprobe_core.protocols import OBSERVED, PAPER, RELEASED
from envprobe_core.regimes import REGIMES
from envprobe_core.sweep import Piece, Task, run_cells, simulate
from envprobe_core.voi.belief import PRIOR_CHANGES, PRIOR_STEPS, ChangePointBelief
from envprobe_core.voi.knowledge import KNOWLEDGE, power
from envprobe_core.voi.value import PACE, finish_chances
from envprobe_core.worlds import WORLDS, make_world

NAMES = ("voi", "voi-accuracy", "voi-success")
chances = st.floats(0.0, 1.0)


def belief(world: str = "objectstate", regime: str = "S1") -> ChangePointBelief:
    """Return a fresh belief about one episode."""
    made = make_world(world, REGIMES[regime], PAPER)
    knowledge = KNOWLEDGE[world](made, made.instances([0]).map, slice(0, 1))
    return ChangePointBelief(made, knowledge, 1)


def see(mine: ChangePointBelief, field: int, value: int, touched: bool = False) -> None:
    """Show one field."""
    known = np.zeros(mine.value.shape, dtype=bool)
    known[0, field] = True
    mine.learn(known, np.full(mine.value.shape, value, dtype=np.int8), known & touched)


@settings(max_examples=60, deadline=None)
@given(cells(NAMES), seeds)
def test_the_twin_decides_the_same(cell: Cell, some_seeds: np.ndarray) -> None:
    engine = simulate_cell(cell, some_seeds)
    for row, episode in enumerate(twin_episodes(cell, some_seeds, None)):
        assert_same(engine, row, episode)


@given(chances, st.integers(0, 63))
def test_powers(base: float, exponent: int) -> None:
    assert power(np.array([base]), exponent)[0] == pytest.approx(base**exponent, abs=1e-12)


def test_finish_chances_are_those_of_counting_steps() -> None:
    """m actions in l steps: at least m successes in l trials."""
    found = finish_chances(6)
    for left in range(7):
        trials = np.array([bin(x).count("1") for x in range(2**left)])
        weight = PACE**trials * (1 - PACE) ** (left - trials)
        for to_go in range(8):
            assert found[left, to_go] == pytest.approx(weight[trials >= to_go].sum())


def test_a_rate_is_changes_over_steps_and_own_doing_counts_for_nothing() -> None:
    mine, moving = belief(), np.array([True])
    see(mine, 0, 3)
    assert mine.hazard()[0, 0] == PRIOR_CHANGES / PRIOR_STEPS == 0.1
    for _ in range(4):
        mine.step(moving)
    see(mine, 0, 3)  # unchanged after four steps
    assert mine.changes[0, 0] == 0.5
    assert mine.steps[0, 0] == 9.0
    mine.step(moving)
    see(mine, 0, 1)  # changed within one
    assert mine.changes[0, 0] == 1.5
    assert mine.steps[0, 0] == 10.0
    mine.step(moving)
    see(mine, 0, 2, touched=True)
    see(mine, 1, 2)  # there was no evidence before
    assert (mine.changes[0, 0], mine.steps[0, 0]) == (1.5, 10.0)
    assert mine.chance[0, :2].tolist() == [1.0, 1.0]


def test_the_filter_by_hand() -> None:
    """A lock flips back (landing 1), a drifting object lands anywhere, what is held stays."""
    mine = belief()
    first = mine.knowledge.spans[1].start
    lock = first + int(np.flatnonzero(mine.knowledge.loose(mine.value)[0, first:])[0])
    see(mine, lock, 1)
    see(mine, 0, 3)
    see(mine, 1, 5)  # held: 5 rooms
    mine.step(np.array([True]))
    mine.step(np.array([True]))
    assert mine.chance[0, lock] == pytest.approx(0.9 * 0.9 + 0.1 * 0.1)
    assert mine.chance[0, 0] == pytest.approx(0.9 * 0.9 + 0.1 * 0.1 / 5)
    assert mine.chance[0, 1] == 1.0
    table = np.full(mine.value.shape, -1, dtype=np.int8)
    assert (mine.right(table) == 0.0).all()
    table[0, lock], table[0, 0] = 0, 2
    right = mine.right(table)
    assert right[0, lock] == pytest.approx(1 - 0.82)
    assert right[0, 0] == pytest.approx((1 - 0.812) / 5)


def test_what_should_be_in_sight_is_doubted() -> None:
    clean, partial = belief(), belief(regime="S2")
    for mine, left in ((clean, 0.0), (partial, 0.9 * 0.4 / (0.9 * 0.4 + 0.1))):
        see(mine, 0, 3)
        mine.chance[0, 0] = 0.9
        missed = np.zeros(mine.value.shape, dtype=bool)
        missed[0, 0] = True
        mine.miss(missed)
        assert mine.chance[0, 0] == pytest.approx(left)
        assert mine.changes[0, 0] == pytest.approx(0.5 + 1 - left)
        mine.miss(missed)  # it is counted once
        assert mine.changes[0, 0] == pytest.approx(0.5 + 1 - left)


@given(chances, chances, chances, st.integers(2, 21), st.integers(1, 40))
def test_a_probe_for_the_end_loses_nothing_by_waiting(
    chance: float, hazard: float, landing: float, domain: int, left: int
) -> None:
    later = chance * (1 - hazard) + (1 - chance) * hazard * landing
    for right in (lambda p: p, lambda p: (1 - p) / (domain - 1), lambda _: 0.0):
        now = (1 - right(chance)) * (1 - hazard) ** left
        assert (1 - right(later)) * (1 - hazard) ** (left - 1) >= now - 1e-12


@pytest.mark.parametrize("world", WORLDS)
def test_blocks_and_order_change_nothing(world: str) -> None:
    some = np.arange(40)
    grid = [make_cell(world, name, "S2", OBSERVED) for name in (*NAMES, "simple")]
    whole = run_cells(grid, some)["digest"].reshape(len(grid), -1)
    assert len(np.unique(whole[0])) > 1
    small = run_cells(grid, some, batch_size=7)["digest"].reshape(len(grid), -1)
    turned = run_cells(grid[::-1], some[::-1])["digest"].reshape(len(grid), -1)
    np.testing.assert_array_equal(whole, small)
    np.testing.assert_array_equal(whole, turned[::-1, ::-1])


@pytest.mark.parametrize("world", WORLDS)
def test_rows_without_budget_may_drop_out(world: str) -> None:
    """Where no reports are kept the rollout leaves rows out for good once their budget is spent."""
    policy = value_policy("unpaced", "unpaced", 0.5, paced=False)
    cell = replace(make_cell(world, "voi", "S2", OBSERVED), policy=policy)
    pieces = tuple(
        Piece(index, replace(cell, budget=budget), np.arange(15)) for index, budget in enumerate((7, 1, 4))
    )
    whole, pruned = (simulate(Task(pieces), reports=reports) for reports in (True, False))
    last = np.where(whole.probe >= 0, np.arange(whole.probe.shape[1]), -1).max(axis=1)
    assert len(np.unique(last)) > 1, "some rows are left out while others go on"
    np.testing.assert_array_equal(whole.probe, pruned.probe)
    np.testing.assert_array_equal(whole.belief, pruned.belief)


@pytest.mark.parametrize("world", WORLDS)
def test_it_is_not_told_the_rates(world: str) -> None:
    """The true rates, spoiled for its eyes alone, change nothing but the privileged variant."""

    def spoiled(given: bool) -> Any:
        def begin(made: Any, static: Any, rows: slice) -> Any:
            other = copy.copy(made)
            other.rates = np.full_like(made.rates, 0.9)
            return ValueOfInformation(0.5, given)(other, static, rows)

        return begin

    some, cell = np.arange(40), make_cell(world, "voi", "S1", OBSERVED)
    for given_rates in (False, True):
        policy = value_policy("mine", "mine", 0.5, given=given_rates)
        clean = simulate_cell(replace(cell, policy=policy), some)
        dirty = simulate_cell(replace(cell, policy=replace(policy, begin=spoiled(given_rates))), some)
        assert np.array_equal(clean.probe, dirty.probe) is not given_rates


@pytest.mark.parametrize("name", NAMES)
def test_answers_that_reach_nobody_are_not_asked_for(name: str) -> None:
    for protocol in (RELEASED, replace(PAPER, name="x", answer="withheld")):
        ours = run_cells([make_cell("graphnav", name, "S2", protocol)], np.arange(10))
        idle = run_cells([make_cell("graphnav", "no-probe", "S2", protocol)], np.arange(10))
        np.testing.assert_array_equal(ours["digest"], idle["digest"])


@pytest.mark.parametrize("world", WORLDS)
def test_probes_for_accuracy_come_last_and_unpaced_ones_first(world: str) -> None:
    late = simulate_cell(make_cell(world, "voi-accuracy", "S2", OBSERVED), np.arange(20)).probe
    at_once = value_policy("at-once", "at once", 1.0, paced=False)
    cell = replace(make_cell(world, "voi", "S2", OBSERVED), policy=at_once)
    early = simulate_cell(cell, np.arange(20)).probe
    budget, horizon = cell.budget_in_force, cell.regime.horizon
    assert (late[:, horizon - budget :] >= 0).all()
    assert (late[:, : horizon - budget] < 0).all()
    assert (early[:, :budget] >= 0).all()


def test_weights_of_the_three() -> None:
    weights = {name: POLICIES[name].begin.weight for name in NAMES}
    assert weights == {"voi": 0.5, "voi-accuracy": 1.0, "voi-success": 0.0}
    assert not any(POLICIES[name].begin.given for name in NAMES)
