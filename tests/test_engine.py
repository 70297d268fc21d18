"""What must hold of every run: budgets, clocks, common draws, the same bits in any arrangement."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from itertools import product
from typing import Any

import numpy as np
import poisoning
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import cells, seeds

from envprobe_core.cells import Cell, make_cell
from envprobe_core.engine import records
from envprobe_core.engine.loop import ADVANCE
from envprobe_core.engine.noise import IMPULSE, INSTANCE, MUTATION, PROBE, STALENESS, VISIBLE, WRITE
from envprobe_core.engine.recording import Trajectory, score
from envprobe_core.engine.records import NONE, WAIT
from envprobe_core.engine.running import Episodes, measure, record, schedules_of, take, walk
from envprobe_core.engine.setting import setting_of
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PAPER, PROTOCOLS, RELEASED
from envprobe_core.regimes import REGIMES
from envprobe_core.sweep import run_cells
from envprobe_core.worlds import WORLDS, make_world

GRID = [
    make_cell(world, policy, "S2", protocol)
    for world in WORLDS
    for protocol in (PAPER, RELEASED)
    for policy in ("no-probe", "random", "simple", "judge", "yoked", "oracle-tw")
]
PARTS = tuple(field.name for field in fields(Trajectory) if field.name != "measures")


def assert_same(one: Trajectory, other: Trajectory, but: tuple[str, ...] = ()) -> None:
    for name in PARTS:
        if name not in but:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    for name, column in one.measures.items():
        np.testing.assert_array_equal(column, other.measures[name], name)


@settings(max_examples=80, deadline=None)
@given(cells(), seeds)
def test_invariants(cell: Cell, some_seeds: np.ndarray) -> None:
    trajectory = record(cell, some_seeds)
    world = make_world(cell.world, cell.regime, cell.protocol)
    probed = trajectory.probe >= 0
    assert (probed.sum(axis=1) <= cell.budget_in_force).all()
    assert (trajectory.probe < world.fields).all()
    assert ((trajectory.belief >= -1) & (trajectory.belief < world.domain)).all()
    exists = trajectory.gold[:, :1] >= 0
    assert (exists[..., :-1] >= exists[..., 1:]).all(), "what an instance lacks comes last"
    assert exists.all() or (cell.world, cell.protocol.instances) == ("graphnav", "sampled")
    assert (trajectory.gold < world.domain).all()
    for row, steps in enumerate(trajectory.steps):
        gold, belief = trajectory.gold[row, : steps + 1], trajectory.belief[row, : steps + 1]
        assert ((gold >= 0) == exists[row]).all()
        assert (belief[:, ~exists[row, 0]] == -1).all()
    assert trajectory.staleness.max() <= 99
    assert trajectory.confidence.max() <= 100
    assert not (trajectory.acted & probed).any()
    assert not (trajectory.valid & ~trajectory.acted).any()
    assert not (trajectory.useful & ~probed).any()
    rows, steps = np.nonzero(probed)
    asked = trajectory.probe[rows, steps]
    answers = trajectory.answer[rows, steps]
    np.testing.assert_array_equal(answers, trajectory.gold[rows, steps, asked])
    assert (answers >= 0).all(), "a field that is not there was probed"
    held = trajectory.belief[rows, steps, asked]
    if cell.protocol.useful == "answer":
        np.testing.assert_array_equal(trajectory.useful[rows, steps], answers != held)
    if cell.protocol.clock == "stands":
        np.testing.assert_array_equal(
            trajectory.gold[rows, steps], trajectory.gold[rows, steps + 1], "the world moved in a probe"
        )
    if cell.protocol.end == "horizon":
        assert (trajectory.steps == cell.regime.horizon).all()
    if cell.protocol.start == "gold" and not cell.profile.scribe:
        assert (trajectory.belief[:, 0] == trajectory.gold[:, 0]).all()


@settings(max_examples=60, deadline=None)
@given(cells(), seeds)
def test_every_way_to_run_leads_to_the_same(cell: Cell, some_seeds: np.ndarray) -> None:
    """At once, for the measures alone, step by step, from the middle on, and scored again."""
    whole, columns = record(cell, some_seeds), measure(cell, some_seeds)
    schedules = schedules_of(cell, some_seeds)
    for name, column in whole.measures.items():
        np.testing.assert_array_equal(column, columns[name], name)
    stepped = Episodes(cell, some_seeds, schedules=schedules)
    walk(stepped, stepped.decide)
    assert_same(whole, stepped.recording())
    resumed = Episodes(cell, some_seeds, schedules=schedules)
    for _ in range(3):
        resumed.propose()
        resumed.settle()
        resumed.advance(resumed.decide())
    resumed.propose()
    resumed.settle()
    resumed.go_on()
    assert_same(whole, resumed.recording())
    assert_same(whole, score(setting_of(cell), vars(whole)))


@settings(max_examples=30, deadline=None)
@given(cells(), seeds)
def test_scores_that_nobody_asks_for_change_nothing_else(cell: Cell, some_seeds: np.ndarray) -> None:
    asked, spared = (record(cell, some_seeds, scores_all=wanted) for wanted in (True, False))
    assert_same(asked, spared, but=("score",))
    spent = np.cumsum(asked.probe >= 0, axis=1) - (asked.probe >= 0) >= cell.budget_in_force
    np.testing.assert_array_equal(spared.score, np.where(spent, np.nan, asked.score))


# ---------------------------------------------------------------- the same bits in any arrangement


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


def test_the_same_bits_in_four_threads() -> None:
    def run(cell: Cell) -> Trajectory:
        return record(cell, np.arange(30))

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(run, [cell for cell in GRID for _ in range(4)]))
    for number, cell in enumerate(GRID):
        for other in found[4 * number : 4 * number + 4]:
            assert_same(run(cell), other)


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


# ---------------------------------------------------------------- common random numbers


@pytest.mark.parametrize("world", WORLDS)
def test_policies_on_one_seed_meet_the_same_exogenous_draws(world: str) -> None:
    """From one state the world moves on, and is seen, alike at any step, whatever was done before."""
    runs = [
        Episodes(make_cell(world, name), np.arange(20))
        for name in ("no-probe", "periodic", "simple", "oracle")
    ]
    histories = set()
    while True:
        for run in runs:
            run.propose()
        if not all([run.settle() for run in runs]):
            break
        moved = []
        for run in runs:
            fork = run.block.copy()
            fork.state, fork.action = runs[0].block.state, WAIT
            take(ADVANCE, run.setting, fork, logs=run.logs.copy(), fields=np.full(20, NONE))
            moved.append((fork.state.tobytes(), fork.gold.tobytes(), fork.observation.value.tobytes()))
        assert all(one == moved[0] for one in moved)
        histories.add(len({run.block.state.tobytes() for run in runs}))
        for run in runs:
            run.advance(run.decide())
    assert max(histories) == len(runs), "they did different things"


@pytest.mark.parametrize("world", WORLDS)
def test_a_still_clock_shifts_no_draw(world: str) -> None:
    """With a standing clock the world after k actions is the same however many probes came between."""
    protocol = replace(RELEASED, name="x", end="horizon", answer="withheld", memory="kept")
    profile = "scripted-true-open"
    free = record(make_cell(world, "no-probe", "S2", protocol, profile), np.arange(15))
    probing = record(make_cell(world, "periodic", "S2", protocol, profile), np.arange(15))
    for row in range(15):
        moved = np.flatnonzero(probing.probe[row] < 0) + 1
        np.testing.assert_array_equal(probing.gold[row, moved], free.gold[row, 1 : len(moved) + 1])


@pytest.mark.parametrize("world", WORLDS)
def test_luck_is_its_keys(world: str) -> None:
    """With the keys of another seed an episode has that seed's luck; each stream is used where it says."""
    cell = make_cell(world, "random")
    runs: dict[str, Trajectory] = {}
    for name, streams in {
        "plain": [],
        "instance": [INSTANCE],
        "agent": [WRITE, STALENESS, IMPULSE],
        "world": [MUTATION, VISIBLE],
        "policy": [PROBE],
    }.items():
        episodes, other = Episodes(cell, np.full(40, 5)), Episodes(cell, np.arange(40) // 2)
        episodes.block.keys[:, streams] = other.block.keys[:, streams]
        walk(episodes, episodes.decide)
        runs[name] = episodes.recording()
    for name in ("plain", "instance"):  # that one is spent once the world is there
        assert_same(runs[name].rows(slice(0, 39)), runs[name].rows(slice(1, 40)))
    assert_same(runs["plain"], runs["instance"])
    for name in ("agent", "world", "policy"):
        assert_same(runs[name].rows(np.arange(0, 40, 2)), runs[name].rows(np.arange(1, 40, 2)))
        assert len({belief.tobytes() for belief in runs[name].belief}) > 10, name
    plain, first = runs["plain"], np.argmax(runs["policy"].probe != runs["plain"].probe, axis=1)
    for row, step in enumerate(first):  # other probes, and until then all else as it was
        np.testing.assert_array_equal(runs["policy"].belief[row, : step + 1], plain.belief[row, : step + 1])
        np.testing.assert_array_equal(runs["policy"].action[row, : step + 1], plain.action[row, : step + 1])
    np.testing.assert_array_equal(runs["agent"].gold[:, 0], plain.gold[:, 0])


# ---------------------------------------------------------------- who sees what


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("policy", POLICIES)
def test_poisoned_gold_changes_no_decision(world: str, protocol: str, policy: str) -> None:
    """Lie about gold, state and start whenever agent or policy are asked: only oracles may notice."""

    def spoil(block: Any) -> None:
        poisoning.spoil_gold(block)
        poisoning.spoil_state(block)
        poisoning.spoil_start(block)

    cell, some = make_cell(world, policy, "S2", PROTOCOLS[protocol]), np.arange(8)
    clean = record(cell, some)
    assert_same(clean, poisoning.run_poisoned(cell, some, agent=spoil))
    dirty = poisoning.run_poisoned(cell, some, policy=spoil)
    if POLICIES[policy].sees_gold:
        noticed = not np.array_equal(clean.probe, dirty.probe)
        assert noticed or protocol == "released"  # there an oracle's answers reach nobody
    else:
        assert_same(clean, dirty)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_scribe_never_reads_gold_and_one_that_copies_it_does(world: str, protocol: str) -> None:
    def spoil(block: Any) -> None:
        poisoning.spoil_gold(block)
        poisoning.spoil_state(block)
        poisoning.spoil_start(block)

    for profile in ("scribe", "scribe-hesitant", "copy-gold"):  # for its probes the harness acts by the graph
        cell, some = make_cell(world, "simple", "S2", PROTOCOLS[protocol], profile), np.arange(12)
        clean, dirty = record(cell, some), poisoning.run_poisoned(cell, some, agent=spoil)
        if profile != "copy-gold":
            assert_same(clean, dirty)
        else:
            np.testing.assert_array_equal(clean.action[:, 0], dirty.action[:, 0])  # it acts by what it sees
            assert (clean.belief[:, 0] != dirty.belief[:, 0]).all(axis=1).any()


def test_the_public_harness_acts_for_an_agent_that_proposes_a_probe() -> None:
    """By what is seen and the task graph: in a world that stands still every call is valid."""
    cell = make_cell("tooldag", "no-probe", "S1", RELEASED, "scribe")
    lost = replace(cell.profile, name="lost", lost=1.0, loop=0.0)
    asking = replace(cell, profile=replace(lost, asks=1.0))
    found, some = measure(asking, np.arange(30)), np.arange(30)
    assert (found["valid_actions"] == found["actions"]).all()
    assert (found["steps"] == 5).all()
    assert measure(replace(cell, profile=lost), some)["steps"].mean() > 8
    for changed in (replace(asking, budget=0), replace(asking, protocol=replace(RELEASED, baselines="text"))):
        own = replace(changed, profile=lost)  # told to act, or not asked what it would do: it acts itself
        assert_same(record(changed, some), record(own, some))


def test_what_a_hesitant_scribe_reports() -> None:
    """Criticality and risk alone: what it writes and does at first is the scribe's."""
    cell = make_cell("objectstate", "self-uncertainty", "S2", RELEASED, "scribe")
    plain = Episodes(cell, np.arange(400))
    doubting = Episodes(
        replace(cell, profile=replace(cell.profile, name="x", critical=0.9, risky=0.5)), plain.seeds
    )
    for episodes in (plain, doubting):
        episodes.propose()
        episodes.look()
    goal = make_world("objectstate", cell.regime, RELEASED).goal_fields[0]
    assert (plain.block.sight.c[:, goal] == 1).all()
    assert set(doubting.block.sight.c[:, goal].tolist()) == {0.5, 1.0}
    assert (doubting.block.sight.c[:, goal] == 1).mean() == pytest.approx(0.9, abs=0.06)
    assert (plain.decide() == NONE).all()
    assert (doubting.decide() == goal).mean() == pytest.approx(0.5, abs=0.1)
    np.testing.assert_array_equal(plain.block.action, doubting.block.action)


@pytest.mark.parametrize(
    ("spoil", "noticed"),
    [
        (poisoning.spoil_gold, {"oracle", "oracle-tw"}),
        (poisoning.spoil_weights, {"oracle-tw"}),
        (poisoning.spoil_observation, {"voi", "voi-accuracy", "voi-success", "late-mismatch"}),
        (poisoning.spoil_state, set()),
        (poisoning.spoil_start, set()),
    ],
)
def test_oracles_alone_look_at_gold_and_weights(spoil: Callable[[Any], None], noticed: set[str]) -> None:
    """And policies with a memory alone at what the agent observes."""
    found = set()
    for name, world in ((name, world) for name in POLICIES for world in WORLDS):
        cell, some = make_cell(world, name), np.arange(10)
        dirty = poisoning.run_poisoned(cell, some, policy=spoil)
        if not np.array_equal(record(cell, some).probe, dirty.probe):
            found.add(name)
    assert found == noticed
    assert {name for name, policy in POLICIES.items() if policy.sees_gold} == {"oracle", "oracle-tw"}
    assert {name for name, policy in POLICIES.items() if policy.remembers} == {
        "voi", "voi-accuracy", "voi-success", "late-mismatch",
    }  # fmt: skip


# ---------------------------------------------------------------- placebos


@pytest.mark.parametrize("world", WORLDS)
def test_placebo_is_simple_where_no_answer_arrives(world: str) -> None:
    simple, placebo, yoked = (
        record(make_cell(world, policy, "S2", RELEASED), np.arange(40))
        for policy in ("simple", "placebo", "yoked")
    )
    assert_same(simple, placebo)
    assert_same(simple, yoked, but=("score",))
    assert np.isnan(yoked.score).all()


@pytest.mark.parametrize("world", WORLDS)
def test_yoked_placebo_repeats_the_probes_of_simple(world: str) -> None:
    some_seeds = np.arange(40)
    simple = record(make_cell(world, "simple"), some_seeds)
    yoked = record(make_cell(world, "yoked"), some_seeds)
    placebo = record(make_cell(world, "placebo"), some_seeds)
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


# ---------------------------------------------------------------- records


def test_records_have_room_for_every_world_and_regime() -> None:
    """Entries of logs are narrow numbers: every value, field, action and report fits."""

    def most(name: str) -> int:
        return np.iinfo(records.ENTRY[name].base).max

    for world, regime, protocol in product(WORLDS, REGIMES.values(), PROTOCOLS.values()):
        made = make_world(world, regime, protocol)
        assert made.fields <= min(records.FIELDS, most("probe"))
        assert made.actions <= most("action")
        assert made.domain.max() <= min(most(name) for name in ("belief", "gold", "answer", "place"))
    assert most("confidence") >= records.CERTAIN
    assert most("staleness") >= records.STALENESS_LIMIT
