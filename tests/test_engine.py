"""What must hold of every rollout: budgets, clocks, common draws, the same bits in any arrangement."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from poisoning import poison_gold
from strategies import cells, seeds
from twinning import simulate_cell

from envprobe_core import deciding, noise
from envprobe_core.agents.simulated import SimulatedAgent
from envprobe_core.cells import Cell, make_cell
from envprobe_core.noise import Stream
from envprobe_core.policies import POLICIES, Policy
from envprobe_core.protocols import PAPER, PROTOCOLS, RELEASED
from envprobe_core.sweep import run_cells
from envprobe_core.views import View
from envprobe_core.worlds import WORLDS, make_world
from envprobe_core.worlds.base import World

GRID = [
    make_cell(world, policy, "S2", protocol)
    for world in WORLDS
    for protocol in (PAPER, RELEASED)
    for policy in ("no-probe", "random", "simple", "judge", "yoked", "oracle-tw")
]


@settings(max_examples=80, deadline=None)
@given(cells(), seeds)
def test_invariants(cell: Cell, some_seeds: np.ndarray) -> None:
    trajectory = simulate_cell(cell, some_seeds)
    world = make_world(cell.world, cell.regime, cell.protocol)
    probed = trajectory.probe >= 0
    assert (probed.sum(axis=1) <= cell.budget_in_force).all()
    assert (trajectory.probe < world.fields).all()
    assert ((trajectory.belief >= -1) & (trajectory.belief < world.domain)).all()
    assert ((trajectory.gold >= 0) & (trajectory.gold < world.domain)).all()
    assert trajectory.staleness.max() <= 99
    assert trajectory.confidence.max() <= 100
    assert not (trajectory.acted & probed).any()
    assert not (trajectory.valid & ~trajectory.acted).any()
    assert not (trajectory.useful & ~probed).any()
    rows, steps = np.nonzero(probed)
    fields = trajectory.probe[rows, steps]
    answers = trajectory.answer[rows, steps]
    np.testing.assert_array_equal(answers, trajectory.gold[rows, steps, fields])
    held = trajectory.belief[rows, steps, fields]
    np.testing.assert_array_equal(trajectory.useful[rows, steps], answers != held)
    if cell.protocol.clock == "stands":
        np.testing.assert_array_equal(
            trajectory.gold[rows, steps], trajectory.gold[rows, steps + 1], "the world moved in a probe"
        )
    if cell.protocol.end == "horizon":
        assert (trajectory.steps == cell.regime.horizon).all()
    if cell.protocol.start == "gold":
        assert (trajectory.belief[:, 0] == trajectory.gold[:, 0]).all()


def columns_of(cells_run: list[Cell], **options: object) -> dict[str, np.ndarray]:
    return run_cells(cells_run, np.arange(30), **options)


@pytest.mark.parametrize("batch_size", [1, 7, 220])
def test_the_same_bits_in_any_block_size(batch_size: int) -> None:
    some = GRID if batch_size > 1 else GRID[::5]
    whole, cut = columns_of(some, batch_size=2000), columns_of(some, batch_size=batch_size)
    for name, column in whole.items():
        np.testing.assert_array_equal(column, cut[name], name)


def test_the_same_bits_in_two_processes_and_alone() -> None:
    together, apart = columns_of(GRID, jobs=1), columns_of(GRID, jobs=2, batch_size=300)
    alone = [columns_of([cell]) for cell in GRID]
    for name, column in together.items():
        np.testing.assert_array_equal(column, apart[name], name)
        if name != "cell":
            np.testing.assert_array_equal(column, np.concatenate([part[name] for part in alone]), name)


@settings(max_examples=10, deadline=None)
@given(st.permutations(range(12)))
def test_shuffled_seeds_change_no_episode(order: list[int]) -> None:
    cell = make_cell("objectstate", "simple")
    plain = run_cells([cell], np.arange(12))
    mixed = run_cells([cell], np.array(order))
    back = np.argsort(mixed["seed"])
    np.testing.assert_array_equal(mixed["seed"], order)
    for name, column in plain.items():
        np.testing.assert_array_equal(column, mixed[name][back], name)


@pytest.mark.parametrize("world", WORLDS)
def test_policies_on_one_seed_meet_the_same_exogenous_draws(
    world: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: dict[str, list[np.ndarray]] = {}
    mutate = WORLDS[world].mutate

    def spy(self: World, instance: object, state: object, draws: np.ndarray, moving: np.ndarray) -> object:
        drawn[current].append(draws.copy())
        return mutate(self, instance, state, draws, moving)

    monkeypatch.setattr(WORLDS[world], "mutate", spy)
    for current in ("no-probe", "periodic", "simple", "oracle"):
        drawn[current] = []
        simulate_cell(make_cell(world, current), np.arange(20))
    for current, draws in drawn.items():
        np.testing.assert_array_equal(drawn["no-probe"], draws, current)


@pytest.mark.parametrize("world", WORLDS)
def test_a_still_clock_shifts_no_draw(world: str) -> None:
    """With a standing clock the world after k actions is the same however many probes came between."""
    protocol = replace(RELEASED, name="x", end="horizon", answer="withheld")
    profile = "scripted-true-open"
    free = simulate_cell(make_cell(world, "no-probe", "S2", protocol, profile), np.arange(15))
    probing = simulate_cell(make_cell(world, "periodic", "S2", protocol, profile), np.arange(15))
    for row in range(15):
        moved = np.flatnonzero(probing.probe[row] < 0) + 1
        np.testing.assert_array_equal(probing.gold[row, moved], free.gold[row, 1 : len(moved) + 1])


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "yoked"])
def test_poisoned_gold_changes_no_decision(
    world: str, protocol: str, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replace every gold value but those that observations and answers show: only oracles may notice."""
    cell = make_cell(world, policy, "S2", PROTOCOLS[protocol])
    clean = simulate_cell(cell, np.arange(8))
    poison_gold(WORLDS[world], monkeypatch)
    dirty = simulate_cell(cell, np.arange(8))
    assert (dirty.gold != clean.gold).any()
    same = all(
        np.array_equal(getattr(clean, name), getattr(dirty, name))
        for name in ("belief", "staleness", "confidence", "action", "probe", "valid", "steps")
    )
    if POLICIES[policy].sees_gold:
        assert not same or protocol == "released"  # there an oracle's answers reach nobody
    else:
        assert same


def test_oracles_alone_are_given_gold_and_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """And policies with a memory alone may follow the observation."""
    shown: dict[str, set[bool]] = {name: set() for name in POLICIES}
    sights: dict[str, set[bool]] = {name: set() for name in POLICIES}
    view_of = deciding.view_of

    def spy(whole: View, policy: Policy, rows: object) -> View:
        seen = view_of(whole, policy, rows)
        shown[policy.name].add(seen.gold is not None or seen.weights is not None)
        sights[policy.name].add(seen.sight is not None)
        return seen

    monkeypatch.setattr(deciding, "view_of", spy)
    for name in POLICIES:
        run_cells([make_cell("tooldag", name)], np.arange(2))
    assert {name for name, seen in shown.items() if True in seen} == {"oracle", "oracle-tw"}
    assert {name for name, seen in sights.items() if True in seen} == {"voi", "voi-accuracy", "voi-success"}
    assert all(len(seen) == 1 for seen in (*shown.values(), *sights.values()))


@pytest.mark.parametrize("world", WORLDS)
def test_placebo_is_simple_where_no_answer_arrives(world: str) -> None:
    for policy in ("placebo", "yoked"):
        simple = simulate_cell(make_cell(world, "simple", "S2", RELEASED), np.arange(40))
        other = simulate_cell(make_cell(world, policy, "S2", RELEASED), np.arange(40))
        for name in ("belief", "gold", "staleness", "confidence", "action", "probe", "steps", "success"):
            np.testing.assert_array_equal(getattr(simple, name), getattr(other, name), name)


@pytest.mark.parametrize("world", WORLDS)
def test_yoked_placebo_repeats_the_probes_of_simple(world: str) -> None:
    some_seeds = np.arange(40)
    simple = simulate_cell(make_cell(world, "simple"), some_seeds)
    yoked = simulate_cell(make_cell(world, "yoked"), some_seeds)
    placebo = simulate_cell(make_cell(world, "placebo"), some_seeds)
    np.testing.assert_array_equal(simple.probe, yoked.probe)
    assert (simple.belief != yoked.belief).any()
    first = np.argmax(simple.probe >= 0, axis=1)
    rows = np.arange(len(first))
    np.testing.assert_array_equal(simple.probe[rows, first], placebo.probe[rows, first])


def test_a_budget_of_nothing_makes_every_policy_no_probe() -> None:
    reference = run_cells([make_cell("graphnav", "no-probe")], np.arange(20))
    for policy in POLICIES:
        other = run_cells([make_cell("graphnav", policy, budget=0)], np.arange(20))
        np.testing.assert_array_equal(reference["accuracy"], other["accuracy"], policy)
        assert (other["probes"] == 0).all()


def test_an_agent_that_changes_its_seeds_draws_as_one_made_from_them() -> None:
    world = make_world("tooldag", make_cell("tooldag", "simple").regime, PAPER)
    static = world.instances([5, 5, 5, 5]).map
    profile = make_cell("tooldag", "simple").profile
    for shared in ([1, 1, 2, 2], [1, 2, 3, 4]):
        changed = SimulatedAgent(world, static, [5, 5, 5, 5], [profile], np.zeros(4, dtype=int))
        made = SimulatedAgent(world, static, shared, [profile], np.zeros(4, dtype=int))
        changed.draw_from(shared)
        expected = noise.words(noise.keys(shared, world.code, Stream.WRITE), 3, world.fields)
        for agent in (changed, made):
            np.testing.assert_array_equal(noise.at_clock(agent._write_key, 3), expected.ravel())
