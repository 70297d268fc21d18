"""What the simulated agent makes of a graph: when it saw each node, which edges it knows, and its plan."""

import numpy as np

from envprobe_core.compiled.noise import choice
from envprobe_core.compiled.numba_support import inline
from envprobe_core.compiled.records import (
    NO_ACTION,
    NONE,
    TEXT,
    UNKNOWN,
    WAIT,
    Int,
    add,
    dtype_of,
    earliest,
    failed,
    fill,
    has_bit,
    with_bit,
    without_bit,
)
from envprobe_core.worlds.graphnav import MOST_NODES, all_edges, concerned, edge_between, search

NEVER = -1

MIND = dtype_of(("last_seen", Int, MOST_NODES), ("met", np.int64))
"""When each node was last seen, and the set of edges that are known."""


@inline
def meet(world, task, mind):
    """Begin with no node seen; the edges are known or will be met on the way."""
    fill(mind.last_seen, NEVER)
    mind.met = all_edges(world) if world.structure == TEXT else 0


@inline
def remember(world, task, mind, observation, t):
    """Note the node it is at and the edges there."""
    mind.last_seen[observation.place] = t
    for number in range(task.neighbours[observation.place]):
        if task.neighbour[observation.place, number] != observation.hidden:
            mind.met = with_bit(mind.met, task.edge[observation.place, number])


@inline
def conclude(world, task, observation, news):
    """A key is not where it was sought; where states are not seen a move tells that of its edge."""
    action, valid = observation.action, observation.valid
    field = concerned(world, task, observation.came_from, action)
    if action >= world.nodes:
        if not valid and observation.value[field] == UNKNOWN:
            add(news, field, UNKNOWN)
    elif field != NONE and world.sight != TEXT:
        add(news, field, 1 - valid)


@inline
def plan(world, task, table, mind, place):
    """Go to the target, or for a key that can be reached, or where it has not been for longest."""
    value, node = table.value, max(table.value[0], 0)
    if node == task.target:
        return WAIT
    passable = 0  # the edges not believed locked, or whose key is believed held
    for edge in range(world.edges - 1, -1, -1):
        passable = 2 * passable + (value[1 + world.keys + edge] != 1)  # as a set: each edge moves up by one
    for key in range(world.locks):
        passable |= (value[1 + key] == world.nodes) << task.edge_of_key[key]
    reached = search(task, mind.met & passable, node, task.target)
    if has_bit(reached, task.target):
        return first_step(task, node, task.target)
    for key in range(world.keys):
        lies = value[1 + key]
        if lies == node:
            return world.nodes + key
        if lies != UNKNOWN and has_bit(reached, lies):
            return first_step(task, node, lies)
    goal = earliest(without_bit(reached, node), mind.last_seen)
    if goal != NONE:
        return first_step(task, node, goal)
    for number in range(task.neighbours[node]):  # shut in: over the first edge that is known, open or not
        if has_bit(mind.met, task.edge[node, number]):
            return task.neighbour[node, number]
    return WAIT


@inline
def wander(world, task, observation, recent, again, lost, word):
    """Choose as the scribe does: the target, a key in view, the last action, a stray, or onwards."""
    node, hidden, highest, untried, count = observation.place, observation.hidden, NONE, NONE, 0
    for number in range(task.neighbours[node]):
        other = task.neighbour[node, number]
        if other != hidden:
            count += 1
            highest = other
            if not failed(recent, other):
                untried = other
    at_hand = edge_between(task, node, task.target) != NONE and hidden != task.target
    if at_hand and not failed(recent, task.target):
        return task.target
    for key in range(world.keys):
        if observation.value[1 + key] == node:
            return world.nodes + key
    if again != NO_ACTION:
        return again
    if lost and count > 0:
        left = choice(word, count)
        for number in range(task.neighbours[node]):
            left -= task.neighbour[node, number] != hidden
            if left < 0:
                return task.neighbour[node, number]
    return untried if untried != NONE else max(highest, 0)


@inline
def first_step(task, origin, goal):
    """The node after the origin on the way that the search has found."""
    while task.scratch.came_from[goal] != origin:
        goal = task.scratch.came_from[goal]
    return goal
