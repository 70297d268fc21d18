"""What must hold of every run: budgets, clocks, common draws, who sees what, the same bits always."""

from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings

from daily import nightly
from envprobe_core.compiled import records
from envprobe_core.compiled.noise import IMPULSE, INSTANCE, MUTATION, PROBE, STALENESS, VISIBLE, WRITE
from envprobe_core.compiled.records import NONE, WAIT
from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import (
    ARRAYS,
    EpisodeBatch,
    kernel_params,
    schedules_of,
    score,
    simulate,
    simulate_logged,
    step_batch,
    walk,
)
from envprobe_core.engine.kernel import ADVANCE
from envprobe_core.experiment import run_conditions
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PAPER, PROTOCOLS, RELEASED
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import WORLDS, make_world
from strategies import conditions, seeds

GRID = [
    make_condition(world, policy, "S2", protocol)
    for world in WORLDS
    for protocol in (PAPER, RELEASED)
    for policy in ("no-probe", "random", "simple", "judge", "yoked", "oracle-tw")
]


def assert_same(one, other, but=()):
    for name in set(ARRAYS) - set(but):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    for name, column in one.measures.items():
        np.testing.assert_array_equal(column, other.measures[name], name)


@settings(max_examples=80)
@given(conditions(), seeds)
def test_invariants(condition, some_seeds):
    made = simulate_logged(condition, some_seeds)
    world = make_world(condition.world, condition.regime, condition.protocol)
    probed, exists = made.probe >= 0, made.gold[:, :1] >= 0
    assert (probed.sum(axis=1) <= condition.budget_in_force).all()
    assert (made.probe < world.fields).all()
    assert ((made.belief >= -1) & (made.belief < world.domain) & (made.gold < world.domain)).all()
    for row, steps in enumerate(made.steps):
        gold, belief = made.gold[row, : steps + 1], made.belief[row, : steps + 1]
        assert ((gold >= 0) == exists[row]).all()
        assert (belief[:, ~exists[row, 0]] == -1).all()
    assert made.staleness.max() <= 99
    assert made.confidence.max() <= 100
    assert not ((made.acted & probed) | (made.valid & ~made.acted) | (made.useful & ~probed)).any()
    rows, steps = np.nonzero(probed)
    asked, answers = made.probe[rows, steps], made.answer[rows, steps]
    np.testing.assert_array_equal(answers, made.gold[rows, steps, asked])
    assert (answers >= 0).all(), "a field that is not there was probed"
    if condition.protocol.useful == "answer":
        np.testing.assert_array_equal(made.useful[rows, steps], answers != made.belief[rows, steps, asked])
    if condition.protocol.clock == "stands":
        np.testing.assert_array_equal(made.gold[rows, steps], made.gold[rows, steps + 1], "the world moved")
    if condition.protocol.end == "horizon":
        assert (made.steps == condition.regime.horizon).all()
    if condition.protocol.start == "gold" and not condition.profile.scribe:
        assert (made.belief[:, 0] == made.gold[:, 0]).all()


@settings(max_examples=60)
@given(conditions(), seeds)
def test_every_way_to_run_leads_to_the_same(condition, some_seeds):
    """At once, for the measures alone, step by step, from the middle on, and scored again."""
    whole, columns = simulate_logged(condition, some_seeds), simulate(condition, some_seeds)
    for name, column in whole.measures.items():
        np.testing.assert_array_equal(column, columns[name], name)
    fields = schedules_of(condition, some_seeds)
    stepped, resumed = (EpisodeBatch(condition, some_seeds, schedules=fields) for _ in range(2))
    walk(stepped, stepped.decide)
    assert_same(whole, stepped.recording())
    for step in range(4):
        resumed.propose()
        resumed.record()
        if step < 3:
            resumed.advance(resumed.decide())
    resumed.go_on()
    assert_same(whole, resumed.recording())
    assert_same(whole, score(kernel_params(condition), vars(whole)))
    spared = simulate_logged(condition, some_seeds, scores_all=False)  # where nobody asks for scores
    assert_same(whole, spared, but=("score",))
    spent = np.cumsum(whole.probe >= 0, axis=1) - (whole.probe >= 0) >= condition.budget_in_force
    np.testing.assert_array_equal(spared.score, np.where(spent, np.nan, whole.score))


def test_the_same_bits_in_any_blocks_order_processes_and_threads():
    some, order = np.arange(30), np.random.default_rng(0).permutation(30)
    together = run_conditions(GRID, some)
    blocks, processes = (
        run_conditions(GRID, some, batch_size=7),
        run_conditions(GRID, some, jobs=2, batch_size=300),
    )
    with ThreadPoolExecutor(4) as pool:
        threads = list(pool.map(lambda condition: simulate(condition, order), GRID * 3))
    for name, column in together.items():
        np.testing.assert_array_equal(column, blocks[name], name)
        np.testing.assert_array_equal(column, processes[name], name)
        if name in threads[0]:
            shuffled = np.tile(column.reshape(len(GRID), 30)[:, order], (3, 1))
            np.testing.assert_array_equal(shuffled, [one[name] for one in threads], name)


# common random numbers


@pytest.mark.parametrize("world", WORLDS)
def test_policies_on_one_seed_meet_the_same_exogenous_draws(world):
    """From one state the world moves on, and is seen, alike at any step, whatever was done before."""
    names, histories = ("no-probe", "periodic", "simple", "oracle"), set()
    runs = [EpisodeBatch(make_condition(world, name), np.arange(20)) for name in names]
    while True:
        for run in runs:
            run.propose()
        if not all([run.record() for run in runs]):
            break
        moved = set()
        for run in runs:
            fork = run.block.copy()
            fork.state, fork.action = runs[0].block.state, WAIT
            step_batch(ADVANCE, run.params, fork, logs=run.logs.copy(), fields=np.full(20, NONE))
            moved.add((fork.state.tobytes(), fork.gold.tobytes(), fork.observation.value.tobytes()))
        assert len(moved) == 1
        histories.add(len({run.block.state.tobytes() for run in runs}))
        for run in runs:
            run.advance(run.decide())
    assert max(histories) == len(runs), "they did different things"


@pytest.mark.parametrize("world", WORLDS)
def test_luck_is_its_keys(world):
    """With the keys of another seed an episode has that seed's luck; each stream is used where it says."""
    condition, runs = make_condition(world, "random"), {}
    streams = {"plain": [], "instance": [INSTANCE], "agent": [WRITE, STALENESS, IMPULSE]}
    streams |= {"world": [MUTATION, VISIBLE], "policy": [PROBE]}
    for name, keys in streams.items():
        episodes, other = EpisodeBatch(condition, np.full(40, 5)), EpisodeBatch(condition, np.arange(40) // 2)
        episodes.block.keys[:, keys] = other.block.keys[:, keys]
        walk(episodes, episodes.decide)
        runs[name] = episodes.recording()
    plain = runs["plain"]
    assert_same(plain.rows(slice(0, 39)), plain.rows(slice(1, 40)))
    assert_same(plain, runs["instance"])  # its key is spent once the world is there
    for name in ("agent", "world", "policy"):
        assert_same(runs[name].rows(np.arange(0, 40, 2)), runs[name].rows(np.arange(1, 40, 2)))
        assert len({belief.tobytes() for belief in runs[name].belief}) > 10, name
    for row, step in enumerate(np.argmax(runs["policy"].probe != plain.probe, axis=1)):
        for part in ("belief", "action"):  # other probes, and until then all else as it was
            now, before = (getattr(run, part)[row, : step + 1] for run in (runs["policy"], plain))
            np.testing.assert_array_equal(now, before)
    np.testing.assert_array_equal(runs["agent"].gold[:, 0], plain.gold[:, 0])


# who sees what: truths lie while agents or policies are asked


def spoil_gold(block):
    """Make every gold value wrong."""
    block.gold[:] = block.gold % 2 + 1


def spoil_state(block):
    """Give every episode the hidden state of another."""
    block.state = np.roll(block.state, 1)


def spoil_weights(block):
    """Make the heaviest fields the lightest."""
    block.weight[:] = 9.0 - block.weight


def spoil_start(block):
    """Tell lies about where things were at first, which only viewers may know."""
    for name in {"start", "start_room", "object_room"} & set(block.task.dtype.names):
        block.task[name] = 1 - block.task[name] % 2


def spoil_observation(block):
    """Show other things than there are, but the own place, on which every policy's d depends."""
    seen = block.observation
    seen.value[:], seen.count[:] = np.where(seen.value < 0, 0, -1), 0
    seen.action[:], seen.valid[:], seen.fresh[:] = -seen.action, 1 - seen.valid, 1 - seen.fresh


HIDDEN = (spoil_gold, spoil_state, spoil_start)


def run_poisoned(condition, seeds, *, agent=(), policy=()):
    """Run a condition whose block is spoiled while agent or policy are asked; what is recorded is true."""
    episodes = EpisodeBatch(condition, seeds, schedules=schedules_of(condition, seeds))

    def ask(question, spoils):
        block, true = episodes.block, episodes.block.copy()
        for spoil in spoils:
            spoil(block)
        spoiled = [name for name in block.dtype.names if block[name].tobytes() != true[name].tobytes()]
        answer = question()
        for name in spoiled:
            block[name] = true[name]
        return answer

    while True:
        ask(episodes.propose, agent)
        if not episodes.record():
            return episodes.recording()
        episodes.advance(ask(episodes.decide, policy))


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_poisoned_gold_changes_no_decision(world, protocol):
    """Lie about gold, state and start whenever agent or policy are asked: only oracles may notice."""
    for name, policy in POLICIES.items():
        condition, some = make_condition(world, name, "S2", protocol), np.arange(8)
        clean, dirty = simulate_logged(condition, some), run_poisoned(condition, some, policy=HIDDEN)
        assert_same(clean, run_poisoned(condition, some, agent=HIDDEN))
        if not policy.sees_gold:
            assert_same(clean, dirty)
        elif protocol is not RELEASED:  # there an oracle's answers reach nobody
            assert not np.array_equal(clean.probe, dirty.probe), name
    for profile in ("scribe", "scribe-hesitant", "copy-gold"):  # for its probes the harness acts by the graph
        condition, some = make_condition(world, "simple", "S2", protocol, profile), np.arange(12)
        clean, dirty = simulate_logged(condition, some), run_poisoned(condition, some, agent=HIDDEN)
        if profile != "copy-gold":
            assert_same(clean, dirty)
        else:
            np.testing.assert_array_equal(clean.action[:, 0], dirty.action[:, 0])  # it acts by what it sees
            assert (clean.belief[:, 0] != dirty.belief[:, 0]).all(axis=1).any()


@pytest.mark.parametrize(
    ("spoil", "noticed"),
    nightly(
        [
            (spoil_gold, {"oracle", "oracle-tw"}),
            (spoil_weights, {"oracle-tw"}),
            (spoil_observation, {"voi", "voi-accuracy", "voi-success", "late-mismatch"}),
            (spoil_state, set()),
            (spoil_start, set()),
        ],
        (spoil_gold, {"oracle", "oracle-tw"}),
        (spoil_state, set()),
    ),
)
def test_oracles_alone_look_at_gold_and_weights(spoil, noticed):
    """And of what the agent observes VoI alone takes notes, by which other policies may rank too."""
    found = set()
    for name, world in product(POLICIES, WORLDS):
        condition, some = make_condition(world, name), np.arange(10)
        if not np.array_equal(
            simulate_logged(condition, some).probe, run_poisoned(condition, some, policy=[spoil]).probe
        ):
            found.add(name)
    assert found == noticed


@pytest.mark.parametrize("world", WORLDS)
def test_placebos_probe_as_simple_and_a_budget_of_nothing_is_no_probe(world):
    some, names = np.arange(40), ("simple", "placebo", "yoked")
    simple, placebo, yoked = (
        simulate_logged(make_condition(world, name, "S2", RELEASED), some) for name in names
    )
    assert_same(simple, placebo)  # no answer arrives there
    assert_same(simple, yoked, but=("score",))
    assert np.isnan(yoked.score).all()
    simple, placebo, yoked = (simulate_logged(make_condition(world, name), some) for name in names)
    np.testing.assert_array_equal(simple.probe, yoked.probe)
    assert (simple.belief != yoked.belief).any()
    first = np.argmax(simple.probe >= 0, axis=1)
    np.testing.assert_array_equal(simple.probe[some, first], placebo.probe[some, first])
    idle = simulate(make_condition(world, "no-probe"), some)["digest"]
    for name in POLICIES:
        np.testing.assert_array_equal(
            simulate(make_condition(world, name, budget=0), some)["digest"], idle, name
        )


def test_records_have_room_for_every_world_and_regime():
    """Entries of logs are narrow numbers: every value, field, action and report fits."""
    entry = records.ENTRY
    most = {name: np.iinfo(entry[name].base).max for name in entry.names if entry[name].base.kind != "f"}
    for world, regime, protocol in product(WORLDS, REGIMES.values(), PROTOCOLS.values()):
        made = make_world(world, regime, protocol)
        assert made.fields <= min(records.FIELDS, most["probe"])
        assert made.actions <= most["action"]
        assert made.domain.max() <= min(most[name] for name in ("belief", "gold", "answer", "place"))
    assert most["confidence"] >= records.CERTAIN
    assert most["staleness"] >= records.STALENESS_LIMIT
