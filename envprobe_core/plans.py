"""Gold shortest plans: how many task actions still separate a true state from the goal.

The world is held still: nothing mutates while the plan is carried out. The length at step 0 is K, the
chain length of Lemma 5.7 and of "3-5 transitions vs. 9"; the length at any other state tells whether an
action was effective (book/definitions.md). All functions work on blocks of rows and on any gold state.

Each world has its own exact search:

* tools: a plan calls every tool that is needed and not loaded, once;
* rooms: rooms stand in a row, so what has been visited is an interval, and the shortest plan is a shortest
  way through intervals (every locked door that is passed costs its unlocking and, once, its key);
* graph: breadth-first search over (node, keys held), all key sets side by side.

`tests/test_plans.py` compares them with a plain breadth-first search that only uses the world's `act`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core import bits
from envprobe_core.worlds.base import Floats, Values, World
from envprobe_core.worlds.graphnav import GraphNavWorld, GraphState
from envprobe_core.worlds.objectstate import ObjectStateWorld, RoomState
from envprobe_core.worlds.tooldag import ToolDAGWorld, ToolState

UNREACHABLE = np.inf


def plan_length(world: World, instance: Any, state: Any) -> Floats:
    """Count the task actions of the shortest plan from a state to the goal, in a still world.

    Args:
        world: the world the instance belongs to.
        instance: one instance a row, from `world.instances`.
        state: one state a row: place, locations of objects or keys, locks (tools: loaded, complete).

    Returns:
        [row], whole numbers; 0 where the goal is reached, infinity where no plan leads there.
    """
    if isinstance(world, ToolDAGWorld):
        return _tool_calls(world, instance, state)
    if isinstance(world, ObjectStateWorld):
        return _room_plan(world, instance, state)
    if isinstance(world, GraphNavWorld):
        return _graph_plan(world, instance, state)
    raise TypeError(f"no plan search for {type(world).__name__}")


def chain_length(world: World, seeds: npt.ArrayLike) -> Floats:
    """Return K, the length of the shortest plan at step 0, [seed]; finite, as instances are solvable.

    Args:
        world: the world.
        seeds: [seed].
    """
    instance = world.instances(seeds)
    return plan_length(world, instance, world.start(instance))


def state_from_gold(world: World, gold: Values, place: npt.NDArray[np.integer]) -> Any:
    """Rebuild a world's state from the true values of its fields and the agent's place.

    Args:
        world: the world.
        gold: [row, field], as recorded at one time of a trajectory.
        place: [row], the agent's true room or node (ignored on tools).

    Returns:
        The state that `plan_length` and `world.act` take.
    """
    if isinstance(world, ToolDAGWorld):
        n = world.tools
        return ToolState(bits.pack(gold[:, :n] == 1), bits.pack(gold[:, 2 * n :] == 1))
    if isinstance(world, ObjectStateWorld):
        doors = slice(world.objects, world.objects + world.doors)
        location = gold[:, : world.objects].astype(np.int64)
        return RoomState(place.astype(np.int64), location, gold[:, doors] == 1)
    if isinstance(world, GraphNavWorld):
        keys = slice(1, 1 + world.keys)
        location = gold[:, keys].astype(np.int64)
        return GraphState(gold[:, 0].astype(np.int64), location, gold[:, keys.stop :] == 1)
    raise TypeError(f"no state of {type(world).__name__}")


def _tool_calls(world: ToolDAGWorld, instance: Any, state: ToolState) -> Floats:
    """Count the needed tools that are not loaded; a valid call loads one for good in a still world."""
    needs = instance.map.needs_bits
    needed = np.full(len(state.loaded), bits.single(world.tools - 1))
    calls = np.zeros(len(state.loaded))
    for tool in reversed(range(world.tools)):  # prerequisites are earlier tools
        missing = bits.has(needed & ~state.loaded, tool)
        calls += missing
        needed = np.where(missing, needed | needs[:, tool], needed)
    return np.where(world.succeeded(instance, state), 0.0, calls)


def _room_plan(world: ObjectStateWorld, instance: Any, state: RoomState) -> Floats:
    """Find the shortest way through intervals of visited rooms, standing at one of their ends.

    Doors inside an interval were passed and stand open. To pass a locked door its key must be held or lie
    in the interval, where it was picked up in passing; that costs the unlocking, and the pick if the key
    was loose. Nothing else is ever worth an action, so the search misses no shorter plan.
    """
    rooms, rows = world.rooms, np.arange(len(state.room))
    key = instance.map.key_of_door
    key_room = np.where(key >= 0, np.take_along_axis(state.location, np.maximum(key, 0), axis=1), rooms)
    loose = key_room < rooms
    cost = 1.0 + state.locked * (1.0 + loose)  # [row, door]: step, unlock, pick
    goal = state.location[:, world.goal]
    ends = np.full((2, rooms, rooms, len(rows)), UNREACHABLE)  # [left or right end, low, high, row]
    ends[:, state.room, state.room, rows] = 0.0
    best = np.where(state.room == goal, 0.0, UNREACHABLE)
    for width in range(rooms):
        for low in range(rooms - width):
            high = low + width
            at_left = np.minimum(ends[0, low, high], ends[1, low, high] + width)
            at_right = np.minimum(ends[1, low, high], ends[0, low, high] + width)
            best = np.where(goal == low, np.minimum(best, at_left), best)
            best = np.where(goal == high, np.minimum(best, at_right), best)
            in_reach = ~state.locked | ~loose | ((key_room >= low) & (key_room <= high))
            for door, beyond, reached in (
                (low - 1, ends[0, low - 1, high] if low > 0 else None, at_left),
                (high, ends[1, low, high + 1] if high < rooms - 1 else None, at_right),
            ):
                if beyond is not None:
                    passed = np.where(in_reach[:, door], reached + cost[:, door], UNREACHABLE)
                    np.minimum(beyond, passed, out=beyond)
    return np.where(goal == rooms, 0.0, best + 1.0)  # the last action picks the goal up


def _graph_plan(world: GraphNavWorld, instance: Any, state: GraphState) -> Floats:
    """Search breadth-first over (node, keys held): one set of reached nodes for each set of keys."""
    static, rows, sets = instance.map, np.arange(len(state.node)), np.arange(1 << world.keys)
    held = bits.pack(state.location == world.nodes)
    key = static.key_of_edge
    opened = (key[:, None, :] >= 0) & (sets[None, :, None] >> np.maximum(key, 0)[:, None, :] & 1 == 1)
    passable = ~state.locked[:, None, :] | opened  # [row, key set, edge]
    one, other = (bits.single(static.ends[:, :, end])[:, None, :] for end in (0, 1))
    key_node = bits.single(np.minimum(state.location, world.nodes - 1))
    reached = np.zeros((len(rows), len(sets)), dtype=np.int32)
    reached[rows, held] = bits.single(state.node)
    length = np.full(len(rows), UNREACHABLE)
    step = 0
    while True:
        there = bits.has(np.bitwise_or.reduce(reached, axis=1), static.target)
        length = np.where(there & np.isinf(length), step, length)
        grown = reached.copy()
        for edge in range(static.edges):
            ends = one[:, :, edge] | other[:, :, edge]
            touched = passable[:, :, edge] & (reached & ends != 0)
            grown |= np.where(touched, ends, 0)
        for item in range(world.keys):
            without = np.flatnonzero(sets >> item & 1 == 0)
            loose = (state.location[:, item] < world.nodes)[:, None]
            found = reached[:, without] & np.where(loose, key_node[:, item, None], 0)
            grown[:, without | 1 << item] |= found
        if np.array_equal(grown, reached) or not np.isinf(length).any():
            return length
        reached, step = grown, step + 1
