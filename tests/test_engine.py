"""What must hold of every run: budgets, clocks, common draws, the same bits in any arrangement."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from itertools import product

import numpy as np
import poisoning
import pytest
from hypothesis import given, settings
from strategies import cells, seeds

from envprobe_core.cells import make_cell
from envprobe_core.engine import records
from envprobe_core.engine.loop import ADVANCE
from envprobe_core.engine.noise import IMPULSE, INSTANCE, MUTATION, PROBE, STALENESS, VISIBLE, WRITE
from envprobe_core.engine.records import NONE, WAIT
from envprobe_core.engine.running import (
    Episodes,
    Trajectory,
    measure,
    record,
    schedules_of,
    score,
    setting_of,
    take,
    walk,
)
from envprobe_core.grid import run_cells
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PAPER, PROTOCOLS, RELEASED
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import WORLDS, make_world

GRID = [
    make_cell(world, policy, "S2", protocol)
    for world in WORLDS
    for protocol in (PAPER, RELEASED)
    for policy in ("no-probe", "random", "simple", "judge", "yoked", "oracle-tw")
]
PARTS = tuple(field.name for field in fields(Trajectory) if field.name != "measures")


def assert_same(one, other, but=()):
    for name in PARTS:
        if name not in but:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    for name, column in one.measures.items():
        np.testing.assert_array_equal(column, other.measures[name], name)


@settings(max_examples=80, deadline=None)
@given(cells(), seeds)
def test_invariants(cell, some_seeds):
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
def test_every_way_to_run_leads_to_the_same(cell, some_seeds):
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
    spared = record(cell, some_seeds, scores_all=False)  # where nobody asks for scores
    assert_same(whole, spared, but=("score",))
    spent = np.cumsum(whole.probe >= 0, axis=1) - (whole.probe >= 0) >= cell.budget_in_force
    np.testing.assert_array_equal(spared.score, np.where(spent, np.nan, whole.score))


# ---------------------------------------------------------------- the same bits in any arrangement


def test_the_same_bits_in_any_blocks_order_and_processes():
    def columns_of(cells_run, seeds=range(30), **options):
        return run_cells(cells_run, np.array(seeds), **options)

    together, order = columns_of(GRID), np.random.default_rng(0).permutation(30)
    alone = [columns_of([cell]) for cell in GRID]
    mixed = [columns_of([cell], order) for cell in GRID]
    cut = columns_of(GRID[::5], batch_size=1)
    apart = [columns_of(GRID, batch_size=7), columns_of(GRID, jobs=2, batch_size=300)]
    for name, column in together.items():
        for other in apart:
            np.testing.assert_array_equal(column, other[name], name)
        if name != "cell":
            np.testing.assert_array_equal(column, np.concatenate([part[name] for part in alone]), name)
            np.testing.assert_array_equal(column[:30][order], mixed[0][name], name)
            np.testing.assert_array_equal(alone[5][name], cut[name][30:60], name)


def test_the_same_bits_in_four_threads():
    def run(cell):
        return record(cell, np.arange(30))

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(run, [cell for cell in GRID for _ in range(4)]))
    for number, cell in enumerate(GRID):
        for other in found[4 * number : 4 * number + 4]:
            assert_same(run(cell), other)


# ---------------------------------------------------------------- common random numbers


@pytest.mark.parametrize("world", WORLDS)
def test_policies_on_one_seed_meet_the_same_exogenous_draws(world):
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
def test_luck_is_its_keys(world):
    """With the keys of another seed an episode has that seed's luck; each stream is used where it says."""
    cell = make_cell(world, "random")
    runs = {}
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


def lie(block):
    for spoil in (poisoning.spoil_gold, poisoning.spoil_state, poisoning.spoil_start):
        spoil(block)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_poisoned_gold_changes_no_decision(world, protocol):
    """Lie about gold, state and start whenever agent or policy are asked: only oracles may notice."""
    for name, policy in POLICIES.items():
        cell, some = make_cell(world, name, "S2", PROTOCOLS[protocol]), np.arange(8)
        clean = record(cell, some)
        assert_same(clean, poisoning.run_poisoned(cell, some, agent=lie))
        dirty = poisoning.run_poisoned(cell, some, policy=lie)
        if not policy.sees_gold:
            assert_same(clean, dirty)
        elif protocol != "released":  # there an oracle's answers reach nobody
            assert not np.array_equal(clean.probe, dirty.probe), name
    for profile in ("scribe", "scribe-hesitant", "copy-gold"):  # for its probes the harness acts by the graph
        cell, some = make_cell(world, "simple", "S2", PROTOCOLS[protocol], profile), np.arange(12)
        clean, dirty = record(cell, some), poisoning.run_poisoned(cell, some, agent=lie)
        if profile != "copy-gold":
            assert_same(clean, dirty)
        else:
            np.testing.assert_array_equal(clean.action[:, 0], dirty.action[:, 0])  # it acts by what it sees
            assert (clean.belief[:, 0] != dirty.belief[:, 0]).all(axis=1).any()


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
def test_oracles_alone_look_at_gold_and_weights(spoil, noticed):
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
def test_placebos_probe_as_simple_and_a_budget_of_nothing_is_no_probe(world):
    some = np.arange(40)
    names = ("simple", "placebo", "yoked")
    simple, placebo, yoked = (record(make_cell(world, name, "S2", RELEASED), some) for name in names)
    assert_same(simple, placebo)  # no answer arrives there
    assert_same(simple, yoked, but=("score",))
    assert np.isnan(yoked.score).all()
    simple, placebo, yoked = (record(make_cell(world, name), some) for name in names)
    np.testing.assert_array_equal(simple.probe, yoked.probe)
    assert (simple.belief != yoked.belief).any()
    first = np.argmax(simple.probe >= 0, axis=1)
    np.testing.assert_array_equal(simple.probe[some, first], placebo.probe[some, first])
    idle = measure(make_cell(world, "no-probe"), some)
    for name in POLICIES:
        np.testing.assert_array_equal(
            measure(make_cell(world, name, budget=0), some)["digest"], idle["digest"], name
        )


# ---------------------------------------------------------------- records


def test_records_have_room_for_every_world_and_regime():
    """Entries of logs are narrow numbers: every value, field, action and report fits."""

    def most(name):
        return np.iinfo(records.ENTRY[name].base).max

    for world, regime, protocol in product(WORLDS, REGIMES.values(), PROTOCOLS.values()):
        made = make_world(world, regime, protocol)
        assert made.fields <= min(records.FIELDS, most("probe"))
        assert made.actions <= most("action")
        assert made.domain.max() <= min(most(name) for name in ("belief", "gold", "answer", "place"))
    assert most("confidence") >= records.CERTAIN
    assert most("staleness") >= records.STALENESS_LIMIT
