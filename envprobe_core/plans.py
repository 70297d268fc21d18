"""Gold shortest plans: how many task actions still separate a true state from the goal.

The world is held still: nothing mutates while the plan is carried out. The length at step 0 is K, the
chain length of Lemma 5.7 and of "3-5 transitions vs. 9"; the length at any other state tells whether an
action was effective (book/definitions.md).

Each world has its own exact search:

* tools: a plan calls every tool that is needed and not loaded, once;
* rooms: rooms stand in a row, so what has been visited is an interval, and the shortest plan is a shortest
  way through intervals (every locked door that is passed costs its unlocking and, once, its key);
* graph: breadth-first search over (keys held, node).

`tests/test_plans.py` compares them with a plain breadth-first search that only uses the world's `act`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core.engine.compiling import by_world, compiled, entry
from envprobe_core.engine.records import NONE, fill
from envprobe_core.engine.sets import has, plus
from envprobe_core.instances import instances, rules_of
from envprobe_core.worlds import RULES
from envprobe_core.worlds.base import Floats, World

UNREACHABLE = np.inf


def plan_length(world: World, instance: Any, states: Any) -> Floats:
    """Count the task actions of the shortest plan to the goal from each state, [row, state], the world still.

    Returns:
        [row, state], whole numbers; 0 where the goal is reached, infinity where no plan leads there.
    """
    length, rules = np.zeros(states.shape), rules_of(world)
    places = 1  # on the paper of a search
    if world.name == "objectstate":
        places = 2 * rules.rooms**2
    elif world.name == "graphnav":
        places = rules.nodes << rules.keys
    paper = np.zeros(places, np.int64), np.zeros(places)
    _measure(rules, instance, np.ascontiguousarray(states), *paper, length)
    return length


def chain_length(world: World, seeds: npt.ArrayLike) -> Floats:
    """Return K, the length of the shortest plan at step 0, [seed]; NaN for a graph that cannot be solved."""
    instance = instances(world, seeds)
    length = plan_length(world, instance, instance.state[:, None])[:, 0]
    return np.where(np.isinf(length), np.nan, length)


@compiled
def _tool_calls(world, task, state, queue, length):
    """Count the needed tools that are not loaded; a valid call loads one for good in a still world."""
    target = world.tools - 1
    needed, calls = plus(0, target), 0.0
    if has(state.complete, target):
        return calls
    for tool in range(target, -1, -1):  # prerequisites are earlier tools
        if has(needed & ~state.loaded, tool):
            needed |= task.needs[tool]
            calls += 1.0
    return calls


@compiled
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
    ends[0, state.room, state.room] = ends[1, state.room, state.room] = 0.0
    best = 0.0 if state.room == goal else UNREACHABLE
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


@compiled
def _passing(world, task, state, door, low, high):
    """Count the actions that passing a door costs once the rooms from `low` to `high` were visited.

    The key of a locked door must be held or lie among those rooms, where it was picked up in passing.
    """
    if not has(state.locked, door):
        return 1.0
    key = task.key_of_door[door]
    if key == NONE:
        return UNREACHABLE
    room = state.location[key]
    if room == world.rooms:
        return 2.0
    return 3.0 if low <= room <= high else UNREACHABLE


@compiled
def _graph_plan(world, task, state, queue, length):
    """Search breadth-first over (keys held, node)."""
    nodes, held = world.nodes, 0
    for item in range(world.keys):
        if state.location[item] == nodes:
            held = plus(held, item)
    fill(length, UNREACHABLE)
    queue[0] = held * nodes + state.node
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
            if not state.locked[edge] or (key != NONE and has(held, key)):
                past = _reach(queue, length, past, held * nodes + task.neighbour[node, number], here)
        for item in range(world.keys):
            if state.location[item] == node and not has(held, item):
                past = _reach(queue, length, past, plus(held, item) * nodes + node, here)
    return UNREACHABLE


@compiled
def _reach(queue, length, past, there, here):
    """Put a place that was not reached before into the queue; return where the queue ends."""
    if length[there] < UNREACHABLE:
        return past
    queue[past], length[there] = there, length[here] + 1.0
    return past + 1


_search = by_world(
    {RULES["tooldag"]: _tool_calls, RULES["objectstate"]: _room_plan, RULES["graphnav"]: _graph_plan}
)


@entry
def _measure(world, instance, states, queue, paper, length):
    for row in range(len(states)):
        for i in range(states.shape[1]):
            length[row, i] = _search(world, instance[row].task, states[row, i], queue, paper)
