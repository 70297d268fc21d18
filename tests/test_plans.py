"""Shortest plans: cases by hand, a plain search that only knows `act`, and a proof by neighbours."""

from dataclasses import fields, replace

import numpy as np
import pytest

from envprobe_core import noise
from envprobe_core.noise import Stream
from envprobe_core.plans import UNREACHABLE, chain_length, plan_length, state_from_gold
from envprobe_core.protocols import PAPER, RELEASED
from envprobe_core.regimes import HIGH, REGIMES
from envprobe_core.worlds import WORLDS, make_world
from envprobe_core.worlds.graphnav import GraphInstance, GraphMap, GraphState
from envprobe_core.worlds.objectstate import RoomInstance, RoomMap, RoomState
from envprobe_core.worlds.tooldag import ToolInstance, ToolMap, ToolState

SHAKEN = {  # small and large worlds in which much mutates
    "small": replace(REGIMES["S1"], mutation=HIGH),
    "medium": replace(REGIMES["S2"], mutation=HIGH),
    "large": REGIMES["S3"],
}


def pick(state, rows):
    return type(state)(*(getattr(state, field.name)[rows] for field in fields(state)))


def search(world, seed, state, avoid=""):
    """Breadth-first search over whole states by `act` alone, from the state of one row."""
    actions = np.array([i for i, name in enumerate(world.action_names) if not avoid or avoid not in name])
    seen, frontier, length = set(), state, 0
    while True:
        rows = len(world.place(frontier))
        instance = world.instances(np.full(rows, seed))
        if world.succeeded(instance, frontier).any():
            return length
        every = pick(frontier, np.repeat(np.arange(rows), len(actions)))
        instance = world.instances(np.full(rows * len(actions), seed))
        after, valid = world.act(instance, every, np.tile(actions, rows))
        gold, place = world.gold(instance, after), world.place(after)
        new = []
        for row in np.flatnonzero(valid):
            signature = (gold[row].tobytes(), int(place[row]))
            if signature not in seen:
                seen.add(signature)
                new.append(row)
        if not new:
            return UNREACHABLE
        frontier, length = pick(after, np.array(new)), length + 1


def shaken(world, seeds, ticks, generator):
    """A state a seed after some ticks of mutation and random actions, with the instances."""
    instance = world.instances(seeds)
    state = world.start(instance)
    key = noise.keys(seeds, world.code, Stream.MUTATION)
    for tick in range(ticks):
        state, _ = world.act(instance, state, generator.integers(0, world.actions, len(seeds)))
        words = noise.words(key, tick, world.exposed)
        state = world.mutate(instance, state, words, np.ones(len(seeds), dtype=bool))
    return instance, state


# --- by hand ----------------------------------------------------------------------------------


def tools(needs, loaded=0, complete=0):
    matrix = np.zeros((1, 5, 5), dtype=bool)
    for tool, before in needs:
        matrix[0, tool, before] = True
    state = ToolState(np.array([loaded], dtype=np.int32), np.array([complete], dtype=np.int32))
    return plan_length(make_world("tooldag", REGIMES["S1"], PAPER), ToolInstance(ToolMap(matrix)), state)[0]


def test_tools_by_hand():
    chain = [(1, 0), (2, 1), (3, 2), (4, 3)]
    assert tools(chain) == 5
    assert tools(chain, loaded=0b00111, complete=0b00111) == 2
    assert tools(chain, loaded=0b01000) == 1  # the target needs only what is missing below it
    assert tools(chain, loaded=0b00101) == 2  # tool 1 is missing, but nothing that is missing needs it
    assert tools(chain, complete=0b10000) == 0  # done, though nothing is loaded any more
    assert tools([(1, 0), (4, 1)]) == 3  # tools 2 and 3 are not needed
    assert tools([(2, 0), (2, 1), (4, 2), (4, 0)]) == 4  # a shared prerequisite counts once


ROOM_WORLD = make_world("objectstate", REGIMES["S1"], PAPER)  # 5 rooms; key 0, key 1, box 0, goal 0


def rooms(room, places, locked=(), keys=None):
    key_of_door = np.full((1, 4), -1)
    door_of_key = np.full((1, 2), -1)
    for key, door in (keys or {}).items():
        key_of_door[0, door], door_of_key[0, key] = key, door
    static = RoomMap(5, 2, 4, 3, key_of_door, door_of_key)
    shut = np.zeros((1, 4), dtype=bool)
    shut[0, list(locked)] = True
    state = RoomState(np.array([room]), np.array([places]), shut)
    instance = RoomInstance(static, np.array([room]), np.array([places]))
    return plan_length(ROOM_WORLD, instance, state)[0]


@pytest.mark.parametrize(
    ("case", "length"),
    [
        ({"room": 0, "places": [0, 0, 0, 3]}, 4),  # three steps and the pick
        ({"room": 3, "places": [0, 0, 0, 3]}, 1),
        ({"room": 0, "places": [0, 0, 0, 5]}, 0),  # held
        # pick the key, step, unlock door 1, step, step, pick the goal
        ({"room": 0, "places": [0, 0, 0, 3], "locked": [1], "keys": {0: 1}}, 6),
        ({"room": 0, "places": [5, 0, 0, 3], "locked": [1], "keys": {0: 1}}, 5),  # the key is held
        ({"room": 0, "places": [0, 0, 0, 3], "locked": [], "keys": {0: 1}}, 4),  # the door stands open
        ({"room": 0, "places": [4, 0, 0, 3], "locked": [1], "keys": {0: 1}}, UNREACHABLE),
        # back for the key: 2 left, pick, 3 right, unlock, 1 right, pick
        ({"room": 2, "places": [0, 0, 0, 4], "locked": [3], "keys": {0: 3}}, 2 + 1 + 3 + 1 + 1 + 1),
        # key 0 opens the way to key 1: pick, unlock 0, left, pick, 2 right, unlock 2, right, pick
        (
            {"room": 1, "places": [1, 0, 0, 3], "locked": [0, 2], "keys": {0: 0, 1: 2}},
            1 + 1 + 1 + 1 + 2 + 1 + 1 + 1,
        ),
        # a locked door that leads nowhere is left alone
        ({"room": 1, "places": [1, 1, 0, 2], "locked": [0], "keys": {0: 0}}, 2),
    ],
)
def test_rooms_by_hand(case, length):
    assert rooms(**case) == length


def graph(node, locations, locked=()):
    """A path 0-1-2-3-4-5 with a short cut 1-4; edge 1-2 needs key 0, edge 1-4 needs key 1."""
    ends = np.array([[[0, 1], [1, 2], [1, 4], [2, 3], [3, 4], [4, 5]]])
    key_of_edge = np.array([[-1, 0, 1, -1, -1, -1]])
    static = GraphMap(6, 2, ends, key_of_edge, np.array([[1, 2]]), np.array([0]), np.array([5]))
    shut = np.zeros((1, 6), dtype=bool)
    shut[0, list(locked)] = True
    state = GraphState(np.array([node]), np.array([locations]), shut)
    world = make_world("graphnav", REGIMES["S1"], PAPER)
    return plan_length(world, GraphInstance(static, np.array([locations])), state)[0]


@pytest.mark.parametrize(
    ("case", "length"),
    [
        ({"node": 0, "locations": [0, 0]}, 3),
        ({"node": 5, "locations": [0, 0], "locked": [1, 2]}, 0),
        ({"node": 0, "locations": [0, 0], "locked": [2]}, 4),  # collecting is shorter than the way round
        ({"node": 0, "locations": [0, 5], "locked": [2]}, 5),  # the way round
        ({"node": 0, "locations": [0, 5], "locked": [1, 2]}, 6),  # key 0, and the way round
        ({"node": 0, "locations": [6, 5], "locked": [1, 2]}, 5),  # key 0 is held
        ({"node": 0, "locations": [5, 5], "locked": [1, 2]}, UNREACHABLE),
    ],
)
def test_graphs_by_hand(case, length):
    assert graph(**case) == length


# --- against a plain search -------------------------------------------------------------------


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("protocol", [PAPER, RELEASED], ids=lambda protocol: protocol.name)
def test_small_instances_against_brute_force(name, protocol):
    world = make_world(name, REGIMES["S1"], protocol)
    seeds = np.arange(8)
    lengths = chain_length(world, seeds)
    for seed, length in zip(seeds, lengths, strict=True):
        assert search(world, seed, world.start(world.instances([seed]))) == length


@pytest.mark.parametrize(("name", "avoid"), [("tooldag", ""), ("objectstate", "box"), ("graphnav", "")])
def test_shaken_states_against_brute_force(name, avoid):
    """Any gold state, those from which the goal cannot be reached included."""
    world = make_world(name, SHAKEN["small"], PAPER)
    seeds = np.arange(300, 314)
    instance, state = shaken(world, seeds, 6, np.random.default_rng(1))
    lengths = plan_length(world, instance, state)
    for row, seed in enumerate(seeds):
        found = search(world, seed, pick(state, np.array([row])), avoid)
        assert found == lengths[row], (name, seed)


@pytest.mark.parametrize("size", SHAKEN)
@pytest.mark.parametrize("name", WORLDS)
def test_the_length_is_a_distance(name, size):
    """Zero at the goal alone, and elsewhere one more than at the best neighbour: so it is exact."""
    world = make_world(name, SHAKEN[size], PAPER)
    seeds = np.arange(500, 560)
    _, state = shaken(world, seeds, 7, np.random.default_rng(2))
    instance = world.instances(seeds)
    length = plan_length(world, instance, state)
    np.testing.assert_array_equal(length == 0, world.succeeded(instance, state))
    actions = world.actions
    every = pick(state, np.repeat(np.arange(len(seeds)), actions))
    repeated = world.instances(np.repeat(seeds, actions))
    after, _ = world.act(repeated, every, np.tile(np.arange(actions), len(seeds)))
    neighbours = plan_length(world, repeated, after).reshape(len(seeds), actions)
    away = length > 0
    np.testing.assert_array_equal(neighbours.min(axis=1)[away] + 1, length[away])
    assert np.isfinite(length).any()


def test_some_shaken_states_cannot_be_solved():
    """So that the tests above really meet infinity."""
    world = make_world("objectstate", SHAKEN["large"], PAPER)
    instance, state = shaken(world, np.arange(200), 10, np.random.default_rng(3))
    assert np.isinf(plan_length(world, instance, state)).any()


# --- what it is for ---------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", [PAPER, RELEASED], ids=lambda protocol: protocol.name)
@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("name", WORLDS)
def test_every_instance_is_solvable_at_step_0(name, regime, protocol):
    lengths = chain_length(make_world(name, REGIMES[regime], protocol), np.arange(60))
    assert np.isfinite(lengths).all()
    assert (lengths >= 1).all()


def test_the_papers_tool_world_has_nine_transitions():
    assert (chain_length(make_world("tooldag", REGIMES["S2"], PAPER), np.arange(220)) == 9).all()


def test_the_public_codes_tool_world_needs_fewer():
    """220 instances of the public code need 5.85 calls on average: ours agree within that sample's error."""
    lengths = chain_length(make_world("tooldag", REGIMES["S2"], RELEASED), np.arange(20_000))
    error = lengths.std() / np.sqrt(220)
    assert abs(lengths.mean() - 5.85) < 2 * error


@pytest.mark.parametrize("name", WORLDS)
def test_a_state_comes_back_from_its_gold_values(name):
    world = make_world(name, SHAKEN["medium"], PAPER)
    seeds = np.arange(40)
    instance, state = shaken(world, seeds, 9, np.random.default_rng(4))
    again = state_from_gold(world, world.gold(instance, state), world.place(state))
    for field in fields(state):
        np.testing.assert_array_equal(getattr(again, field.name), getattr(state, field.name))


def test_other_worlds_are_refused():
    with pytest.raises(TypeError, match="no plan search for object"):
        plan_length(object(), None, None)
    with pytest.raises(TypeError, match="no state of object"):
        state_from_gold(object(), None, None)
