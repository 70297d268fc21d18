"""Instances of a world without an agent: their states, what mutates in them, and their shortest plans.

The world is held still while an action is tried or a plan carried out. The length of the gold shortest plan
at step 0 is K, the chain length of Lemma 5.7 and of "3-5 transitions vs. 9"; at any other state it tells
whether an action was effective (book/definitions.md). Each world has its own exact search;
`tests/test_worlds.py` proves each by a state's neighbours, with the world's `act` alone.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from envprobe_core import worlds
from envprobe_core.compiled.noise import MUTATION, draw, happens, stream_keys
from envprobe_core.compiled.numba_support import inline, kernel
from envprobe_core.compiled.records import NO_ACTION, NONE, fill, has_bit, new, with_bit
from envprobe_core.engine.instances import _keys, instances
from envprobe_core.worlds import MODULES, of_each
from envprobe_core.worlds.base import Floats, Ints, Mask, Values, World

UNREACHABLE = np.inf


# states, and actions that are tried in them


def states_of(world: World, gold: Values, place: npt.NDArray[np.integer]) -> Any:
    """Rebuild states, [...] as an instance's `state`, from all fields' true values and the agent's place.

    Args:
        gold: [..., field], as recorded.
        place: [...], the agent's true room or node (ignored on tools).
    """
    rules, states = world.rules, new(MODULES[world.name].STATE, *gold.shape[:-1])
    if world.name == "tooldag":
        states["loaded"] = as_set(gold[..., : rules.tools] == 1)
        states["complete"] = as_set(gold[..., 2 * rules.tools :] == 1)
    elif world.name == "objectstate":
        states["place"] = place
        states["location"][..., : rules.objects] = gold[..., : rules.objects]
        states["locked"] = as_set(gold[..., rules.objects : rules.held] == 1)
    else:
        first_edge = 1 + rules.keys
        states["place"] = gold[..., 0]
        states["location"][..., : rules.keys] = gold[..., 1:first_edge]
        states["locked"][..., : rules.edges] = gold[..., first_edge:]
    return states


def as_set(inside: Mask) -> Ints:
    """Return sets [..., item] as whole numbers [...] whose bit i says whether item i is inside."""
    return inside @ (1 << np.arange(inside.shape[-1], dtype=np.int64))


def members(sets: Ints, count: int) -> Mask:
    """Which of the first `count` items are in each set: the opposite of `as_set`, [..., item]."""
    return (np.asarray(sets)[..., None] >> np.arange(count)) & 1 == 1


class Tried(NamedTuple):
    """What came of actions in states [row, state]."""

    states: Any  # that follow
    valid: Mask
    gold: Values  # [row, state, field]
    reached: Mask  # whether the state that follows is at the goal


def try_actions(world: World, instance: Any, states: Any, action: Ints | int = NO_ACTION) -> Tried:
    """Carry out an action in every state.

    Args:
        instance: [row].
        states: [row, state].
        action: [row, state]; negative: none.
    """
    after, valid, reached = np.array(states, order="C"), *np.zeros((2, *states.shape), np.bool_)
    gold = np.zeros((*states.shape, world.fields), np.int8)
    actions = np.ascontiguousarray(np.broadcast_to(action, states.shape), np.int64)
    _try(world.record, instance, after, actions, valid, gold, reached)
    return Tried(after, valid, gold, reached)


@kernel
def _try(world, instance, states, action, valid, gold, reached):
    for row in range(len(states)):
        task = instance[row].task
        for i in range(states.shape[1]):
            if action[row, i] >= 0:
                valid[row, i] = worlds.act(world, task, states[row, i], action[row, i])
            worlds.reveal(world, task, states[row, i], gold[row, i])
            reached[row, i] = worlds.succeeded(world, task, states[row, i])


# mutation


def mutable_fields(world: World, instance: Any) -> Mask:
    """Which fields can mutate by themselves, [row, field].

    Doors and edges without a lock never do; a tool that is not loaded and an object that is held are
    mutable, though at that moment nothing can happen to them.
    """
    mutable = np.tile(world.rates > 0, (len(instance), 1))
    if world.name == "objectstate":
        first, locks = world.rules.objects, instance.task.key_of_door[:, : world.rules.doors]
    elif world.name == "graphnav":
        first, locks = 1 + world.rules.keys, instance.task.key_of_edge[:, : world.rules.edges]
    else:
        return mutable
    mutable[:, first : first + locks.shape[1]] &= locks != NONE
    return mutable


def drawn_mutation(world: World, seeds: npt.ArrayLike) -> Floats:
    """Measure how often the draws of a seed let a mutable field mutate, [seed].

    The share of pairs (mutable field, world tick) with a mutation event, over the ticks 0..H-1 that an
    episode may pass; 0 where no field can mutate. An event need not change anything: the tool may not be
    loaded, the object may be held or land where it lay.
    """
    mutable = mutable_fields(world, instances(world, seeds))
    hits = np.zeros(len(mutable), dtype=np.int64)
    _count_events(world.record, _keys(), np.asarray(seeds, np.int64), mutable, world.regime.horizon, hits)
    return hits / np.maximum(mutable.sum(axis=1) * world.regime.horizon, 1)


@kernel
def _count_events(world, keys, seeds, mutable, ticks, hits):
    for row in range(len(seeds)):
        stream_keys(seeds[row], world.code, keys)
        for tick in range(ticks):
            for field in range(world.fields):
                if mutable[row, field] and happens(draw(keys[MUTATION], tick, field), world.mutation):
                    hits[row] += 1


# shortest plans


def plan_length(world: World, instance: Any, states: Any) -> Floats:
    """Count the task actions of the shortest plan to the goal from each state, [row, state], the world still.

    Returns:
        [row, state], whole numbers; 0 where the goal is reached, infinity where no plan leads there.
    """
    length, rules = np.zeros(states.shape), world.rules
    places = {  # that a search may come to, on its scratch
        "tooldag": lambda: 1,
        "objectstate": lambda: 2 * rules.rooms**2,
        "graphnav": lambda: rules.nodes << rules.keys,
    }[world.name]()
    scratch = np.zeros(places, np.int64), np.zeros(places)
    _measure(world.record, instance, np.ascontiguousarray(states), *scratch, length)
    return length


def chain_length(world: World, seeds: npt.ArrayLike) -> Floats:
    """Return K, the length of the shortest plan at step 0, [seed]; NaN for a graph that cannot be solved."""
    instance = instances(world, seeds)
    length = plan_length(world, instance, instance.state[:, None])[:, 0]
    return np.where(np.isinf(length), np.nan, length)


@inline
def _tool_calls(world, task, state, queue, length):
    """Count the needed tools that are not loaded; a valid call loads one for good in a still world."""
    target = world.tools - 1
    needed, calls = with_bit(0, target), 0.0
    if has_bit(state.complete, target):
        return calls
    for tool in range(target, -1, -1):  # prerequisites are earlier tools
        if has_bit(needed & ~state.loaded, tool):
            needed |= task.needs[tool]
            calls += 1.0
    return calls


@inline
def _room_plan(world, task, state, queue, length):
    """Find the shortest way through intervals of visited rooms, standing at one of their ends.

    Nothing else than steps, unlocking and picking keys up is ever worth an action, so the search misses no
    shorter plan.
    """
    rooms, goal = world.rooms, state.location[world.goal]
    if goal == rooms:
        return 0.0
    fill(length, UNREACHABLE)
    ends = length.reshape((2, rooms, rooms))  # [left or right end, low, high]
    ends[0, state.place, state.place] = ends[1, state.place, state.place] = 0.0
    best = 0.0 if state.place == goal else UNREACHABLE
    for width in range(rooms):
        for low in range(rooms - width):
            high = low + width
            left = min(ends[0, low, high], ends[1, low, high] + width)
            right = min(ends[1, low, high], ends[0, low, high] + width)
            if goal == low:
                best = min(best, left)
            if goal == high:
                best = min(best, right)
            if low > 0:
                beyond = left + _passing(world, task, state, low - 1, low, high)
                ends[0, low - 1, high] = min(ends[0, low - 1, high], beyond)
            if high < rooms - 1:
                beyond = right + _passing(world, task, state, high, low, high)
                ends[1, low, high + 1] = min(ends[1, low, high + 1], beyond)
    return best + 1.0  # the last action picks the goal up


@inline
def _passing(world, task, state, door, low, high):
    """Count the actions that passing a door costs once the rooms from `low` to `high` were visited.

    The key of a locked door must be held or lie among those rooms, where it was picked up in passing.
    """
    if not has_bit(state.locked, door):
        return 1.0
    key = task.key_of_door[door]
    if key == NONE:
        return UNREACHABLE
    room = state.location[key]
    if room == world.rooms:
        return 2.0
    return 3.0 if low <= room <= high else UNREACHABLE


@inline
def _graph_plan(world, task, state, queue, length):
    """Search breadth-first over (keys held, node)."""
    nodes, held = world.nodes, 0
    for item in range(world.keys):
        if state.location[item] == nodes:
            held = with_bit(held, item)
    fill(length, UNREACHABLE)
    queue[0] = held * nodes + state.place
    length[queue[0]] = 0.0
    first, past = 0, 1
    while first < past:
        here = queue[first]
        first += 1
        held, node = here // nodes, here % nodes
        if node == task.target:
            return length[here]
        for number in range(task.neighbours[node]):
            edge = task.edge[node, number]
            key = task.key_of_edge[edge]
            if not state.locked[edge] or (key != NONE and has_bit(held, key)):
                past = _reach(queue, length, past, held * nodes + task.neighbour[node, number], here)
        for item in range(world.keys):
            if state.location[item] == node and not has_bit(held, item):
                past = _reach(queue, length, past, with_bit(held, item) * nodes + node, here)
    return UNREACHABLE


@inline
def _reach(queue, length, past, there, here):
    """Put a place that was not reached before into the queue; return where the queue ends."""
    if length[there] < UNREACHABLE:
        return past
    queue[past], length[there] = there, length[here] + 1.0
    return past + 1


_search = of_each(_tool_calls, _room_plan, _graph_plan)


@kernel
def _measure(world, instance, states, queue, scratch, length):
    for row in range(len(states)):
        for i in range(states.shape[1]):
            length[row, i] = _search(world, instance[row].task, states[row, i], queue, scratch)
