"""One contract for every world, regime and protocol, and each world's own rules."""

from collections import deque
from typing import Any

import numpy as np
import pytest
from scipy import stats
from twin import graphnav as twin_graph
from twin import objectstate as twin_rooms
from twin import tooldag as twin_tools
from twinning import twin_instances

from envprobe_core import noise
from envprobe_core.noise import Stream
from envprobe_core.protocols import PROTOCOLS
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import WORLDS, World, make_world

TWINS = {"tooldag": twin_tools, "objectstate": twin_rooms, "graphnav": twin_graph}
SEEDS = np.arange(40)
EVERY = [(w, r, p) for w in WORLDS for r in REGIMES for p in PROTOCOLS]


def build(world: str, regime: str, protocol: str) -> World:
    return make_world(world, REGIMES[regime], PROTOCOLS[protocol])


@pytest.mark.parametrize(("world", "regime", "protocol"), EVERY)
def test_contract(world: str, regime: str, protocol: str) -> None:
    built = build(world, regime, protocol)
    instance = built.instances(SEEDS)
    state = built.start(instance)
    gold = built.gold(instance, state)
    n = built.fields
    assert len(built.field_names) == len(set(built.field_names)) == len(built.field_kinds) == n
    assert set(built.field_kinds) <= {"procedural", "spatial"}
    assert len(built.action_names) == built.actions == len(set(built.action_names))
    assert gold.shape == (len(SEEDS), n)
    assert gold.dtype == np.int8
    assert ((gold >= 0) & (gold < built.domain)).all()
    assert n <= noise.FIELD_SLOTS
    assert built.rates.shape == (n,)
    assert (built.rates[built.exposed :] == 0).all()
    weights = built.weights(instance.map)
    assert (weights.max(axis=1) > 0).all()
    assert (weights >= 0).all()
    for action in (-1, *range(built.actions)):
        chosen = np.full(len(SEEDS), action)
        roles = built.roles(instance.map, built.place(state), chosen)
        assert set(np.unique(roles)) <= {0.0, 0.5, 1.0}
        if action == -1:
            assert (roles == 0).all()
        after, valid = built.act(instance, state, chosen)
        unchanged = built.gold(instance, after)[~valid]
        np.testing.assert_array_equal(unchanged, gold[~valid])
        if action == -1:
            assert not valid.any()


@pytest.mark.parametrize(("world", "regime", "protocol"), EVERY)
def test_an_instance_depends_on_its_seed_alone(world: str, regime: str, protocol: str) -> None:
    built = build(world, regime, protocol)
    alone = [twin_instances(built, np.array([seed]))[0] for seed in SEEDS[:6]]
    assert alone == twin_instances(built, SEEDS[:6])
    if world != "tooldag":  # a chain of few tools leaves little to draw
        assert len({repr(instance) for instance in twin_instances(built, SEEDS)}) > len(SEEDS) // 2


def shortest_plan(world: World, instance: Any, goal: Any) -> int | None:
    """Search breadth-first over a still world, with the twin's own rules."""
    module = TWINS[world.name]
    layout = module.Layout(instance)

    def fresh(path: tuple[int, ...]) -> Any:
        truth = module.World(layout, [0.0] * layout.fields, "local", "clean")
        for action in path:
            truth.act(action)
        return truth

    useful = [a for a in range(layout.actions) if not world.action_names[a].startswith("place")]
    start = fresh(())
    seen, queue = {(start.here, *start.gold())}, deque([()])
    while queue:
        path = queue.popleft()
        for action in useful:
            truth = fresh(path)
            if not truth.act(action):
                continue
            if truth.success:
                return len(path) + 1
            key = (truth.here, *truth.gold())
            if key not in seen:
                seen.add(key)
                queue.append((*path, action))
    return None


@pytest.mark.parametrize("world", ["objectstate", "graphnav"])
@pytest.mark.parametrize("regime", ["S1", "R3"])
def test_small_instances_are_solvable_by_search(world: str, regime: str) -> None:
    built = build(world, regime, "paper")
    for instance in twin_instances(built, SEEDS[:6]):
        relevant = shortest_plan(built, _without_idle_things(instance), None)
        assert relevant is not None


def _without_idle_things(instance: Any) -> Any:
    """Take boxes out of reach: they only multiply the states to search."""
    if not isinstance(instance, twin_rooms.Instance):
        return instance
    room = list(instance.object_room)
    for box in range(instance.n_keys, instance.n_keys + instance.n_boxes):
        room[box] = instance.n_rooms
    for goal in range(instance.n_keys + instance.n_boxes + 1, len(room)):
        room[goal] = instance.n_rooms
    return twin_rooms.Instance(
        instance.n_rooms,
        instance.n_keys,
        instance.n_boxes,
        instance.n_goals,
        instance.start_room,
        room,
        instance.key_of_door,
    )


@pytest.mark.parametrize("regime", REGIMES)
def test_rooms_are_solvable_at_step_0(regime: str) -> None:
    built = build("objectstate", regime, "paper")
    for instance in twin_instances(built, np.arange(200)):
        n, room = instance.n_rooms, instance.start_room
        held: set[int] = set()
        low = high = room
        while True:
            held |= {k for k in range(instance.n_keys) if low <= instance.object_room[k] <= high}
            before = low, high
            while low > 0 and (instance.key_of_door[low - 1] in held or instance.key_of_door[low - 1] < 0):
                low -= 1
            while high < n - 1 and (instance.key_of_door[high] in held or instance.key_of_door[high] < 0):
                high += 1
            if (low, high) == before:
                break
        assert (low, high) == (0, n - 1)
        goal = instance.object_room[instance.n_keys + instance.n_boxes]
        assert goal != room
        assert sum(key >= 0 for key in instance.key_of_door) == built.locks


@pytest.mark.parametrize("regime", REGIMES)
def test_graphs_are_solvable_at_step_0(regime: str) -> None:
    built = build("graphnav", regime, "paper")
    for instance in twin_instances(built, np.arange(200)):
        held: set[int] = set()
        while True:
            passable = [e for e, key in enumerate(instance.key_of_edge) if key < 0 or key in held]
            layout = twin_graph.Layout(instance)
            far = twin_graph.distances(layout.ways(passable), instance.start)
            found = {k for k, node in enumerate(instance.key_node) if far[node] >= 0}
            if found <= held:
                break
            held |= found
        assert min(far) >= 0
        assert sum(key >= 0 for key in instance.key_of_edge) == built.locks
        assert len(set(instance.ends)) == built.edges
        assert all(a < b for a, b in instance.ends)
        assert instance.start != instance.target


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_tools_have_their_prerequisites(regime: str, protocol: str) -> None:
    built = build("tooldag", regime, protocol)
    for instance in twin_instances(built, np.arange(100)):
        layout = twin_tools.Layout(instance)
        for tool, before in enumerate(instance.prerequisites):
            assert len(before) == min(tool, built.prerequisites)
            assert all(p < tool for p in before)
        if protocol == "paper":
            assert layout.ancestors[-1] == set(range(built.tools - 1))


def test_medium_chain_is_nine_transitions_and_fewer_calls_suffice_in_the_public_code() -> None:
    paper, released = build("tooldag", "S2", "paper"), build("tooldag", "S2", "released")
    count = np.bitwise_count(paper.instances(SEEDS).map.ancestor_bits[:, -1]) + 1
    assert set(count.tolist()) == {9}
    drawn = released.instances(np.arange(4000)).map.ancestor_bits[:, -1]
    assert np.bitwise_count(drawn).mean() + 1 == pytest.approx(5.9, abs=0.15)


@pytest.mark.parametrize(("world", "regime", "protocol"), EVERY)
def test_fields_mutate_at_their_rate_and_others_never(world: str, regime: str, protocol: str) -> None:
    built = build(world, regime, protocol)
    seeds = np.arange(600)
    instance = built.instances(seeds)
    state = built.start(instance)
    everyone = np.ones(len(seeds), dtype=bool)
    if world == "tooldag":  # load every tool, so that each may be lost
        for tool in range(built.tools):
            state, valid = built.act(instance, state, np.full(len(seeds), tool))
            assert valid.all()
    draws = noise.words(noise.keys(seeds, built.code, Stream.MUTATION), 0, built.exposed)
    before = built.gold(instance, state)
    after = built.gold(instance, built.mutate(instance, state, draws, everyone))
    still = built.gold(instance, built.mutate(instance, state, draws, ~everyone))
    np.testing.assert_array_equal(before, still)
    changed = before != after
    lockable = before.astype(bool) if world != "tooldag" else None
    for field, rate in enumerate(built.rates):
        name = built.field_names[field]
        if name.startswith(("lock", "state")):
            assert lockable is not None
            rows = lockable[:, field]  # at the start just the lockable ones are locked
            assert not changed[~rows, field].any()
            hits, trials = int(changed[rows, field].sum()), int(rows.sum())
            expected = rate
        elif name.startswith("location"):
            places = int(built.domain[field]) - 1
            hits, trials, expected = int(changed[:, field].sum()), len(seeds), rate * (1 - 1 / places)
        elif name.startswith("loaded"):
            hits, trials, expected = int(changed[:, field].sum()), len(seeds), rate
        else:
            assert name.startswith("dependency") or not changed[:, field].any()
            continue
        if trials:
            assert stats.binomtest(hits, trials, expected).pvalue > 1e-7, name


def test_held_objects_and_the_target_stay() -> None:
    seeds = np.arange(300)
    rooms = build("objectstate", "S3", "paper")
    instance = rooms.instances(seeds)
    state = rooms.start(instance)
    location = state.location.copy()
    location[:, 0] = rooms.rooms
    state = type(state)(state.room, location, state.locked)
    key = noise.keys(seeds, rooms.code, Stream.MUTATION)
    for tick in range(20):
        draws = noise.words(key, tick, rooms.exposed)
        state = rooms.mutate(instance, state, draws, np.ones(300, dtype=bool))
    assert (state.location[:, 0] == rooms.rooms).all()

    tools = build("tooldag", "S3", "paper")
    made = tools.instances(seeds)
    running = tools.start(made)
    for tool in range(tools.tools):
        running, _ = tools.act(made, running, np.full(300, tool))
    for tick in range(20):
        draws = noise.words(noise.keys(seeds, tools.code, Stream.MUTATION), tick, tools.exposed)
        running = tools.mutate(made, running, draws, np.ones(300, dtype=bool))
    assert (running.loaded >> (tools.tools - 1) == 1).all()
    assert tools.succeeded(made, running).all()


@pytest.mark.parametrize("world", WORLDS)
def test_public_sight_hides_locks_and_shows_all_tools(world: str) -> None:
    built = build(world, "R5", "released")
    instance = built.instances(SEEDS)
    state = built.start(instance)
    seen = built.visible(instance, state, np.zeros(len(SEEDS), dtype=int), np.zeros(len(SEEDS), dtype=bool))
    names = np.array(built.field_names)
    hidden = [name.startswith(("lock", "state", "dependency", "subgoal")) for name in names]
    assert not seen[:, hidden].any()
    if world == "tooldag":
        assert seen[:, [name.startswith("loaded") for name in names]].all()


def test_partial_observations_drop_the_last_item() -> None:
    tools = build("tooldag", "S2", "paper")
    instance = tools.instances(SEEDS)
    state = tools.start(instance)
    rows = len(SEEDS)
    full = tools.visible(instance, state, np.full(rows, 8), np.zeros(rows, dtype=bool))
    less = tools.visible(instance, state, np.full(rows, 8), np.ones(rows, dtype=bool))
    np.testing.assert_array_equal(full.sum(axis=1), 3)  # the tool and its two prerequisites
    np.testing.assert_array_equal(less.sum(axis=1), 2)
    assert (full & ~less)[:, 7].all()  # the last prerequisite of tool 8 is tool 7
    alone = tools.visible(instance, state, np.zeros(rows, dtype=int), np.ones(rows, dtype=bool))
    assert not alone.any()  # tool 0 has no prerequisites: the list was itself alone
