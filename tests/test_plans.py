"""Shortest plans: cases by hand, a plain search that only knows `act`, and a proof by neighbours."""

from dataclasses import replace

import numpy as np
import pytest

from envprobe_core import worlds
from envprobe_core.engine.compiling import entry
from envprobe_core.engine.noise import MUTATION, STREAMS, stream_keys
from envprobe_core.engine.records import NONE, Word, new
from envprobe_core.instances import (
    INSTANCES,
    UNREACHABLE,
    act,
    chain_length,
    gold_of,
    instances,
    plan_length,
    states_of,
    succeeded,
)
from envprobe_core.protocols import PAPER, RELEASED
from envprobe_core.regimes import HIGH, REGIMES
from envprobe_core.worlds import WORLDS, make_world

SHAKEN = {  # small and large worlds in which much mutates
    "small": replace(REGIMES["S1"], mutation=HIGH),
    "medium": replace(REGIMES["S2"], mutation=HIGH),
    "large": REGIMES["S3"],
}
BOTH = pytest.mark.parametrize("protocol", [PAPER, RELEASED], ids=lambda protocol: protocol.name)


def neighbours_of(world, instance, states, actions):
    """The states after each action, [row, state * action], and which of the actions were valid."""
    tried = np.tile(actions, (len(states), states.shape[1]))
    return act(world, instance, np.repeat(states, len(actions), axis=1), tried)


def search(world, instance, state):
    """Breadth-first search over whole states by `act` alone, from one state [1, 1] of one instance [1]."""
    seen, frontier, length = {state[0, 0].tobytes()}, state, 0
    while frontier.size:
        if succeeded(world, instance, frontier).any():
            return length
        after, valid = neighbours_of(world, instance, frontier, np.arange(world.actions))
        first = {after[0, i].tobytes(): i for i in np.flatnonzero(valid[0])[::-1]}
        frontier, length = after[:, [i for name, i in first.items() if name not in seen]], length + 1
        seen |= set(first)
    return UNREACHABLE


@entry
def mutate(world, instance, states, seeds, tick):
    keys = np.zeros(STREAMS, Word)
    for row in range(len(seeds)):
        stream_keys(seeds[row], world.code, keys)
        worlds.mutate(world, instance[row].task, states[row, 0], keys[MUTATION], tick)


def shaken(world, seeds, ticks, generator):
    """The instances, and a state each after some ticks of mutation and random actions, [row, 1]."""
    instance = instances(world, seeds)
    states = instance.state[:, None]
    for tick in range(ticks):
        states, _ = act(world, instance, states, generator.integers(0, world.actions, (len(seeds), 1)))
        mutate(world.record, instance, states, seeds, tick)
    return instance, states


# by hand


def length_of(name, instance):
    world = make_world(name, REGIMES["S1"], PAPER)
    return plan_length(world, instance, instance.state[:, None])[0, 0]


CHAIN = [(1, 0), (2, 1), (3, 2), (4, 3)]


@pytest.mark.parametrize(
    ("needs", "loaded", "complete", "length"),
    [
        (CHAIN, 0, 0, 5),
        (CHAIN, 0b00111, 0b00111, 2),
        (CHAIN, 0b01000, 0, 1),  # the target needs only what is missing below it
        (CHAIN, 0b00101, 0, 2),  # tool 1 is missing, but nothing that is missing needs it
        (CHAIN, 0, 0b10000, 0),  # done, though nothing is loaded any more
        ([(1, 0), (4, 1)], 0, 0, 3),  # tools 2 and 3 are not needed
        ([(2, 0), (2, 1), (4, 2), (4, 0)], 0, 0, 4),  # a shared prerequisite counts once
    ],
)
def test_tools_by_hand(needs, loaded, complete, length):
    instance = new(INSTANCES["tooldag"], 1)
    for tool, before in needs:
        instance.task.needs[0, tool] |= 1 << before
    instance.state.loaded, instance.state.complete = loaded, complete
    assert length_of("tooldag", instance) == length


@pytest.mark.parametrize(
    ("room", "places", "locked", "keys", "length"),  # 5 rooms; key 0, key 1, box 0, goal 0; a key's door
    [
        (0, [0, 0, 0, 3], [], {}, 4),  # three steps and the pick
        (3, [0, 0, 0, 3], [], {}, 1),
        (0, [0, 0, 0, 5], [], {}, 0),  # held
        (0, [0, 0, 0, 3], [1], {0: 1}, 6),  # pick the key, step, unlock door 1, step, step, pick the goal
        (0, [5, 0, 0, 3], [1], {0: 1}, 5),  # the key is held
        (0, [0, 0, 0, 3], [], {0: 1}, 4),  # the door stands open
        (0, [4, 0, 0, 3], [1], {0: 1}, UNREACHABLE),
        (2, [0, 0, 0, 4], [3], {0: 3}, 9),  # back for the key: 2 left, pick, 3 right, unlock, 1 right, pick
        # key 0 opens the way to key 1: pick, unlock 0, left, pick, 2 right, unlock 2, right, pick
        (1, [1, 0, 0, 3], [0, 2], {0: 0, 1: 2}, 9),
        (1, [1, 1, 0, 2], [0], {0: 0}, 2),  # a locked door that leads nowhere is left alone
    ],
)
def test_rooms_by_hand(room, places, locked, keys, length):
    instance = new(INSTANCES["objectstate"], 1)
    (task,), (state,) = instance.task, instance.state
    task.key_of_door[:] = task.door_of_key[:] = NONE
    for key, door in keys.items():
        task.key_of_door[door], task.door_of_key[key] = key, door
    state.place, state.location[:4], state.locked = room, places, sum(1 << door for door in locked)
    assert length_of("objectstate", instance) == length


@pytest.mark.parametrize(
    ("node", "locations", "locked", "length"),
    [
        (0, [0, 0], [], 3),
        (5, [0, 0], [1, 2], 0),
        (0, [0, 0], [2], 4),  # collecting is shorter than the way round
        (0, [0, 5], [2], 5),  # the way round
        (0, [0, 5], [1, 2], 6),  # key 0, and the way round
        (0, [6, 5], [1, 2], 5),  # key 0 is held
        (0, [5, 5], [1, 2], UNREACHABLE),
    ],
)
def test_graphs_by_hand(node, locations, locked, length):
    """A path 0-1-2-3-4-5 with a short cut 1-4; edge 1-2 needs key 0, edge 1-4 needs key 1."""
    instance = new(INSTANCES["graphnav"], 1)
    (task,), (state,) = instance.task, instance.state
    for edge, ends in enumerate([(0, 1), (1, 2), (1, 4), (2, 3), (3, 4), (4, 5)]):
        for here, there in (ends, ends[::-1]):
            number = task.neighbours[here]
            task.neighbour[here, number], task.edge[here, number] = there, edge
            task.neighbours[here] += 1
    task.key_of_edge[:6] = [-1, 0, 1, -1, -1, -1]
    task.start, task.target = 0, 5
    state.place, state.location[:2], state.locked[list(locked)] = node, locations, 1
    assert length_of("graphnav", instance) == length


# against a plain search


@BOTH
@pytest.mark.parametrize("name", WORLDS)
def test_small_instances_against_brute_force(name, protocol):
    world, seeds = make_world(name, REGIMES["S1"], protocol), np.arange(8)
    for one, length in zip(np.split(instances(world, seeds), 8), chain_length(world, seeds), strict=True):
        assert search(world, one, one.state[:, None]) == length


@pytest.mark.parametrize("size", SHAKEN)
@pytest.mark.parametrize("name", WORLDS)
def test_the_length_is_a_distance_and_a_state_comes_back_from_its_gold_values(name, size):
    """Zero at the goal alone, and elsewhere one more than at the best neighbour: so it is exact."""
    world = make_world(name, SHAKEN[size], PAPER)
    instance, states = shaken(world, np.arange(500, 560), 7, np.random.default_rng(2))
    length = plan_length(world, instance, states)
    np.testing.assert_array_equal(length == 0, succeeded(world, instance, states))
    after, _ = neighbours_of(world, instance, states, np.arange(world.actions))
    nearest = plan_length(world, instance, after).min(axis=1, keepdims=True)
    away = length > 0
    np.testing.assert_array_equal(nearest[away] + 1, length[away])
    assert np.isfinite(length).any()
    where = np.zeros(states.shape, int) if name == "tooldag" else states["place"]
    assert states_of(world, gold_of(world, instance, states), where).tobytes() == states.tobytes()


@BOTH
@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("name", WORLDS)
def test_every_instance_is_solvable_at_step_0(name, regime, protocol):
    """But for graphs as the public code draws them, whose keys lie anywhere."""
    lengths = chain_length(make_world(name, REGIMES[regime], protocol), np.arange(60))
    solvable = np.isfinite(lengths)
    drawn = name == "graphnav" and protocol.instances == "sampled"
    assert 0.5 < solvable.mean() <= 1.0 if drawn else solvable.all()
    assert (lengths[solvable] >= 1).all()


def test_the_public_codes_tool_world_needs_fewer():
    """220 instances of the public code need 5.85 calls on average: ours agree within that sample's error."""
    lengths = chain_length(make_world("tooldag", REGIMES["S2"], RELEASED), np.arange(20_000))
    assert abs(lengths.mean() - 5.85) < 2 * lengths.std() / np.sqrt(220)
