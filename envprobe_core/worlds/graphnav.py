"""GraphNavWorld: a graph with locked edges and drifting keys.

Description: walk from the start to the target along open edges, or locked ones whose key is held.
Fields: the agent's node, each key's location (`nodes` = held), each edge's state; all spatial.
Actions: `move(node)`, `collect(key)`.
Observations: own node, keys here, what is held, edges here (with states where sight is local).
Mutation: lockable edges flip; loose keys land on a uniformly drawn node.
Episode end: at the horizon, or on success where the protocol stops there.
Source: Sections 3 and 6.1; book/definitions.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from envprobe_core.engine.compiling import apart, compiled
from envprobe_core.engine.noise import ONE, U, choice, draw, happens, level32, numbered
from envprobe_core.engine.records import (
    NO_ACTION,
    NONE,
    UNKNOWN,
    WAIT,
    Int,
    Word,
    add,
    failed,
    fill,
    overlook,
    record,
    see,
)
from envprobe_core.engine.sets import earliest, has, last_by_name, minus, plus, rank_by_name
from envprobe_core.protocols import Protocol
from envprobe_core.regimes import Regime
from envprobe_core.worlds.base import DROP_PROBABILITY, SPATIAL, World

NAME, TITLE, CODE = "graphnav", "GraphNavWorld", 3
NODES, EXTRA_EDGES, LOCKED_EDGES = (6, 12, 20), (4, 2, 1), (1, 3, 6)  # extra: nodes divided by this
MEAN_RATES, RELEASED_RATES = (0.02, 0.10, 0.30), (0.0, 0.10, 0.22)
MOST_NODES, MOST_KEYS, MOST_EDGES, MOST_PAIRS = 20, 5, 39, 190
NOWHERE = MOST_NODES  # a node that is never reached
NEVER = -1
HIGHEST = U(0xFFFFFFFFFFFFFFFF)  # word


class GraphNav(NamedTuple):
    """The rules in force."""

    code: int
    fields: int
    actions: int
    nodes: int
    keys: int
    edges: int
    locks: int  # key 0, 1, ... opens one lockable edge each; further keys open nothing
    mutation: np.uint64  # level of a loose key's drift and of a lockable edge's flip
    drop: np.uint64  # level of overlooking the last key that lies here
    sees_states: bool
    knows_graph: bool
    sampled: bool  # instances as the public code draws them


SCRATCH = record(
    ("words", Word, MOST_PAIRS), ("place", Int, MOST_NODES), ("ways", np.int64, MOST_NODES),
    ("queue", Int, MOST_NODES), ("came_from", Int, MOST_NODES),
)  # fmt: skip
"""Paper for `create` (draws, each node's place on the path, where one can walk so far) and for `search`."""
TASK = record(
    ("start", Int), ("target", Int), ("edges", Int), ("ends", Int, (MOST_EDGES + 1, 2)),
    ("key_of_edge", Int, MOST_EDGES), ("edge_of_key", np.int64, MOST_KEYS),
    ("neighbours", Int, MOST_NODES), ("neighbour", Int, (MOST_NODES, MOST_NODES)),
    ("edge", np.int64, (MOST_NODES, MOST_NODES)), ("edges_at", np.int64, MOST_NODES),
    ("scratch", SCRATCH),
)  # fmt: skip
"""The graph: how many edges, by their ends, ascending, and by their keys (NONE: never locked); of each node
how many neighbours it has, which, ascending, the edge that leads to each, and these edges as a set.
"""
STATE = record(("node", Int), ("location", Int, MOST_KEYS), ("locked", Int, MOST_EDGES))
"""Own node, where each key lies, which edges are locked."""
MIND = record(("last_seen", Int, MOST_NODES), ("met", np.int64))
"""When each node was last seen, and the set of edges that are known."""


def describe(regime: Regime, protocol: Protocol) -> World:
    """Build the world of a regime: 6, 12 or 20 nodes on a path, extra edges, 1, 3 or 6 locks.

    Args:
        regime: its levels.
        protocol: its switches.
    """
    nodes = NODES[regime.complexity]
    keys = min(MOST_KEYS, max(2, nodes // 4))
    edges = nodes - 1 + nodes // EXTRA_EDGES[regime.density]
    rate = (MEAN_RATES if protocol.rates == "mean" else RELEASED_RATES)[regime.mutation]
    names = (
        "node",
        *(f"location(key {k})" for k in range(keys)),
        *(f"state(edge {e})" for e in range(edges)),
    )
    rules = GraphNav(
        CODE,
        len(names),
        nodes + keys,
        nodes,
        keys,
        edges,
        min(LOCKED_EDGES[regime.density], keys),
        level32(rate),
        level32(DROP_PROBABILITY if regime.observation == "partial" else 0.0),
        protocol.sight == "local",
        protocol.structure == "graph",
        protocol.instances == "sampled",
    )
    rates = np.full(len(names), rate)
    rates[0] = 0.0
    return World(
        NAME,
        TITLE,
        regime,
        protocol,
        rules,
        names,
        (SPATIAL,) * len(names),
        (*(f"move({v})" for v in range(nodes)), *(f"collect(key {k})" for k in range(keys))),
        np.array([nodes] + [nodes + 1] * keys + [2] * edges),
        rates,
        (0,),
    )


# ways over the graph


@apart
def search(task, passable, origin, goal):
    """Search breadth-first from a node to a goal over a set of edges; return the set of nodes reached.

    Neighbours are taken in ascending order, so `came_from` leads back over the lowest of the shortest ways.
    """
    queue, came_from, reached = task.scratch.queue, task.scratch.came_from, plus(0, origin)
    queue[0] = origin
    first, past = 0, 1
    while first < past and not has(reached, goal):
        node = queue[first]
        first += 1
        for number in range(task.neighbours[node]):
            other = task.neighbour[node, number]
            if has(passable, task.edge[node, number]) and not has(reached, other):
                reached = plus(reached, other)
                came_from[other], queue[past] = node, other
                past += 1
    return reached


@compiled
def first_step(task, origin, goal):
    """Return the node after the origin on the way that the search has found."""
    while task.scratch.came_from[goal] != origin:
        goal = task.scratch.came_from[goal]
    return goal


@compiled
def all_edges(world):
    """Return the set of all edges."""
    return (1 << world.edges) - 1


@compiled
def edge_between(task, node, other):
    """Return the edge that joins two nodes, or NONE."""
    for number in range(task.neighbours[node]):
        if task.neighbour[node, number] == other:
            return task.edge[node, number]
    return NONE


@compiled
def concerned(world, task, place, action):
    """Return the field of the key or edge that an action is about, or NONE."""
    if action >= world.nodes:
        return 1 + action - world.nodes
    edge = edge_between(task, place, action)
    return NONE if edge == NONE else 1 + world.keys + edge


# the world


@compiled
def create(world, task, state, key):
    """Draw a path, extra edges and locks, so that each key can be reached before its edge."""
    pairs = world.nodes * (world.nodes - 1) // 2
    if world.sampled:
        sample_edges(world, task, key)
    else:
        draw_path(world, task, key)
        draw_edges(world, task, key, world.nodes, pairs)
    list_neighbours(world, task)
    draw_locks(world, task, key, world.nodes + pairs)
    draw_locations(world, task, state, key, world.nodes + pairs + world.edges)
    state.node = task.start
    for edge in range(world.edges):
        state.locked[edge] = task.key_of_edge[edge] != NONE


@compiled
def draw_words(words, key, first, count):
    """Draw the words from a number on."""
    for number in range(count):
        words[number] = numbered(key, first + number)


@compiled
def above_lowest(words, count, n):
    """Return a word that the n lowest of the first words are below, and no others."""
    bound = U(0)
    for _ in range(n):
        least = HIGHEST
        for number in range(count):
            least = min(least, words[number] - bound)  # what is below the bound wraps round to the top
        bound += least + ONE
    return bound


@compiled
def draw_path(world, task, key):
    """Put the nodes on a path from start to target, in the order of their draws."""
    words, place = task.scratch.words, task.scratch.place
    draw_words(words, key, 0, world.nodes)
    for node in range(world.nodes):
        lower = 0
        for other in range(world.nodes):
            lower += words[other] < words[node]
        place[node] = lower
        if lower == 0:
            task.start = node
        elif lower == world.nodes - 1:
            task.target = node


@apart
def draw_edges(world, task, key, first, pairs):
    """Join neighbours on the path, and of its other pairs of places those of the lowest draws."""
    nodes, words, place = world.nodes, task.scratch.words, task.scratch.place
    draw_words(words, key, first, pairs)
    for one in range(nodes - 1):
        words[pair_number(nodes, one, one + 1)] = HIGHEST
    bound = above_lowest(words, pairs, world.edges - (nodes - 1))
    for one in range(nodes - 1):
        words[pair_number(nodes, one, one + 1)] = 0
    task.edges = 0
    for low in range(nodes):
        for high in range(low + 1, nodes):
            task.ends[task.edges, 0], task.ends[task.edges, 1] = low, high  # overwritten unless joined
            task.edges += words[pair_number(nodes, place[low], place[high])] < bound


@apart
def sample_edges(world, task, key):
    """Join nodes 0, 1, ... in a row, and as many random pairs as are wanted, some of them joined already."""
    nodes, ways = world.nodes, task.scratch.ways
    task.start, task.target = 0, nodes - 1
    fill(ways, 0)
    for node in range(nodes - 1):
        ways[node] = plus(0, node + 1)
    for number in range(world.edges - (nodes - 1)):
        one = choice(numbered(key, 2 * number), nodes)
        other = choice(numbered(key, 2 * number + 1), nodes - 1)
        other += other >= one
        ways[min(one, other)] = plus(ways[min(one, other)], max(one, other))
    task.edges = 0
    for low in range(nodes):
        for high in range(low + 1, nodes):
            task.ends[task.edges, 0], task.ends[task.edges, 1] = low, high  # overwritten unless joined
            task.edges += has(ways[low], high)


@compiled
def pair_number(nodes, one, other):
    """Return the number of a pair among (0, 1), (0, 2), ..., (1, 2), ..."""
    low, high = min(one, other), max(one, other)
    return low * (2 * nodes - low - 3) // 2 + high - 1


@compiled
def list_neighbours(world, task):
    """List every node's neighbours and the edges that lead there."""
    fill(task.neighbours, 0)
    fill(task.edges_at, 0)
    for edge in range(task.edges):  # in this order neighbours ascend
        add_neighbour(task, task.ends[edge, 0], task.ends[edge, 1], edge)
        add_neighbour(task, task.ends[edge, 1], task.ends[edge, 0], edge)


@compiled
def add_neighbour(task, node, other, edge):
    """List a neighbour of a node and the edge that leads there."""
    number = task.neighbours[node]
    task.neighbour[node, number], task.edge[node, number] = other, edge
    task.edges_at[node] = plus(task.edges_at[node], edge)
    task.neighbours[node] += 1


@apart
def draw_locks(world, task, key, first):
    """Draw the lockable edges and number their keys."""
    words, number = task.scratch.words, 0
    draw_words(words, key, first, task.edges)
    bound = above_lowest(words, task.edges, world.locks)
    fill(task.key_of_edge, NONE)
    fill(task.edge_of_key, NONE)
    for edge in range(task.edges):
        if words[edge] < bound:
            task.key_of_edge[edge], task.edge_of_key[number] = number, edge
            number += 1


@apart
def draw_locations(world, task, state, key, first):
    """Draw where keys lie; one after the other, the key of a locked edge at reach comes to lie within it."""
    spot = first + world.edges
    loose = spot + world.locks
    for item in range(world.keys):
        state.location[item] = choice(numbered(key, loose + item), world.nodes)
    if world.sampled:
        return
    fill(task.scratch.ways, 0)
    for edge in range(task.edges):
        if task.key_of_edge[edge] == NONE:
            open_way(task, edge)
    opened, reached = 0, plus(0, task.start)
    for turn in range(world.locks):
        reached = spread(world, task.scratch.ways, reached)
        item = lowest_at_reach(world, task, key, first, opened, reached)
        state.location[item] = draw_within(world, reached, numbered(key, spot + turn))
        open_way(task, task.edge_of_key[item])
        opened = plus(opened, item)


@compiled
def open_way(task, edge):
    """Let one walk from each end of an edge to the other."""
    ways, one, other = task.scratch.ways, task.ends[edge, 0], task.ends[edge, 1]
    ways[one], ways[other] = plus(ways[one], other), plus(ways[other], one)


@compiled
def spread(world, ways, reached):
    """Return the set of all nodes that can be reached from a set of nodes."""
    before = 0
    while before != reached:
        before = reached
        for node in range(world.nodes):
            reached |= has(reached, node) * ways[node]
    return reached


@compiled
def lowest_at_reach(world, task, key, first, opened, reached):
    """Return the key whose edge has the lowest draw among those not opened that touch a node reached."""
    lowest, least = NONE, HIGHEST
    for item in range(world.locks):
        edge = task.edge_of_key[item]
        touched = has(reached, task.ends[edge, 0]) or has(reached, task.ends[edge, 1])
        word = numbered(key, first + edge)
        if touched and not has(opened, item) and word < least:
            lowest, least = item, word
    return lowest


@compiled
def draw_within(world, reached, word):
    """Draw one of the nodes reached."""
    count = 0
    for node in range(world.nodes):
        count += has(reached, node)
    before = choice(word, count)  # so many nodes reached come before it
    drawn = count = 0
    for node in range(world.nodes):
        count += has(reached, node)
        drawn += count <= before
    return drawn


@compiled
def weigh(world, task, weight):
    """Weigh own node and the shortest way from start to target 1, the keys of its edges .7, the rest .1."""
    for field in range(world.fields):
        weight[field] = 0.1
    weight[0] = 1.0
    search(task, all_edges(world), task.start, task.target)
    node = task.target
    while node != task.start:
        before = task.scratch.came_from[node]
        edge = edge_between(task, before, node)
        weight[1 + world.keys + edge] = 1.0
        if task.key_of_edge[edge] != NONE:
            weight[1 + task.key_of_edge[edge]] = 0.7
        node = before


@compiled
def reveal(world, task, state, gold):
    """Write the true value of every field."""
    gold[0] = state.node
    for key in range(world.keys):
        gold[1 + key] = state.location[key]
    for edge in range(world.edges):
        gold[1 + world.keys + edge] = state.locked[edge] if edge < task.edges else UNKNOWN


@compiled
def where(world, state):
    """Return the own node."""
    return state.node


@compiled
def succeeded(world, task, state):
    """Say whether the agent is at the target."""
    return state.node == task.target


@compiled
def act(world, task, state, action):
    """Move or collect; return whether that was valid."""
    nodes = world.nodes
    if action >= nodes:
        if state.location[action - nodes] != state.node:
            return False
        state.location[action - nodes] = nodes
        return True
    edge = edge_between(task, state.node, action)
    if edge == NONE or (state.locked[edge] and state.location[task.key_of_edge[edge]] != nodes):
        return False
    state.node = action
    return True


@compiled
def mutate(world, task, state, key, tick):
    """Let loose keys drift and lockable edges flip."""
    for item in range(world.keys):
        if state.location[item] != world.nodes:
            word = draw(key, tick, 1 + item)
            if happens(word, world.mutation):
                state.location[item] = choice(word, world.nodes)
    for lock in range(world.locks):
        edge = task.edge_of_key[lock]
        if happens(draw(key, tick, 1 + world.keys + edge), world.mutation):
            state.locked[edge] = 1 - state.locked[edge]


@compiled
def show(world, task, state, action, word, observation):
    """Show the own node, keys here and held, and where sight is local the edges.

    Perhaps the last key that lies here is overlooked, where sight is not local a neighbour.
    """
    node = state.node
    see(observation, 0, node)
    for key in range(world.keys):
        if state.location[key] == node:
            see(observation, 1 + key, node)
    if not world.sees_states:
        if happens(word, world.drop):
            observation.hidden = last_by_name(neighbours_of(task, node), world.nodes)
    elif observation.count > 1 and happens(word, world.drop):
        overlook(observation)
    for key in range(world.keys):
        if state.location[key] == world.nodes:
            see(observation, 1 + key, world.nodes)
    if world.sees_states:
        for number in range(task.neighbours[node]):
            edge = task.edge[node, number]
            see(observation, 1 + world.keys + edge, state.locked[edge])


@compiled
def neighbours_of(task, node):
    """Return a node's neighbours as a set."""
    others = 0
    for number in range(task.neighbours[node]):
        others = plus(others, task.neighbour[node, number])
    return others


@compiled
def roles(world, task, place, action, d):
    """Write the dependency role of every field: 1 what the action reads, .5 what that depends on."""
    uses(world, task, place, action, d)
    field = concerned(world, task, place, action)
    if field > world.keys and task.key_of_edge[field - 1 - world.keys] != NONE:
        d[1 + task.key_of_edge[field - 1 - world.keys]] = 0.5


@compiled
def uses(world, task, place, action, used):
    """Mark what the agent itself knows an action to use: its own node, and the key or the edge."""
    fill(used, 0)
    if action >= 0:
        used[0] = 1
    field = concerned(world, task, place, action)
    if field != NONE:
        used[field] = 1


@compiled
def values(world, field):
    """Return the number of values of a field."""
    if field == 0:
        return world.nodes
    return world.nodes + 1 if field <= world.keys else 2


@compiled
def is_goal(world, field):
    """Say whether a field is the own node."""
    return field == 0


# the agent's mind


@compiled
def meet(world, task, mind):
    """Begin with no node seen; the edges are known or will be met on the way."""
    fill(mind.last_seen, NEVER)
    mind.met = all_edges(world) if world.knows_graph else 0


@compiled
def remember(world, task, mind, observation, t):
    """Note the node it is at and the edges there."""
    mind.last_seen[observation.place] = t
    for number in range(task.neighbours[observation.place]):
        if task.neighbour[observation.place, number] != observation.hidden:
            mind.met = plus(mind.met, task.edge[observation.place, number])


@compiled
def conclude(world, task, observation, news):
    """A key is not where it was sought; where states are not seen a move tells that of its edge."""
    action, valid = observation.action, observation.valid
    field = concerned(world, task, observation.came_from, action)
    if action >= world.nodes:
        if not valid and observation.value[field] == UNKNOWN:
            add(news, field, UNKNOWN)
    elif field != NONE and not world.sees_states:
        add(news, field, 1 - valid)


@compiled
def plan(world, task, table, mind, place):
    """Go to the target, or for a key that can be reached, or where it has not been for longest."""
    value, node = table.value, max(table.value[0], 0)
    if node == task.target:
        return WAIT
    passable = mind.met & believed_passable(world, task, value)
    reached = search(task, passable, node, task.target)
    if has(reached, task.target):
        return first_step(task, node, task.target)
    for key in range(world.keys):
        lies = value[1 + key]
        if lies == node:
            return world.nodes + key
        if lies != UNKNOWN and has(reached, lies):
            return first_step(task, node, lies)
    goal = earliest(minus(reached, node), mind.last_seen)
    return lowest_exit(task, mind, node) if goal == NONE else first_step(task, node, goal)


@compiled
def believed_passable(world, task, value):
    """Return the set of edges not believed locked, or whose key is believed held."""
    passable = 0
    for edge in range(world.edges - 1, -1, -1):
        passable = 2 * passable + (value[1 + world.keys + edge] != 1)  # as a set: each edge moves up by one
    for key in range(world.locks):
        passable |= (value[1 + key] == world.nodes) << task.edge_of_key[key]
    return passable


@compiled
def lowest_exit(task, mind, node):
    """Return the lowest neighbour over a known edge, open or not."""
    for number in range(task.neighbours[node]):
        if has(mind.met, task.edge[node, number]):
            return task.neighbour[node, number]
    return WAIT


@compiled
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


@compiled
def stand_in(world, task, observation, word):
    """Move to the neighbour in view that comes first by name, as the public harness does."""
    node, first = observation.place, NONE
    for number in range(task.neighbours[node]):
        other = task.neighbour[node, number]
        if other != observation.hidden and (first == NONE or rank_by_name(other) < rank_by_name(first)):
            first = other
    if first != NONE:
        return first
    for key in range(world.keys):
        if observation.value[1 + key] == node:
            return world.nodes + key
    return 1


# the public code's estimators


@compiled
def informs(world, task, value, gold, field, named, placed, scoring):
    """Say whether the public code calls the probe of a field useful: a neighbourhood always is."""
    return named or value[field] != gold[field]


@compiled
def mismatched(world, task, value, gold, action, named):
    """Say whether the public oracle finds something wrong with what is reported, by name or anywhere."""
    wrong = False
    for field in range(1 + world.keys, 1 + world.keys + task.edges):
        wrong |= value[field] != gold[field]
    for field in range(1, 1 + world.keys):
        wrong |= not named and value[field] != UNKNOWN and value[field] != gold[field]
    return wrong


@compiled
def overlap(world, belief, gold, first, stayed, scoring):
    """Return the weighted overlap: .25 position, .20 inventory, .30 edges, .25 keys."""
    position, edges, right, keys, both, either = belief[0] == gold[0], 0, 0, 0, 0, 0
    for field in range(1 + world.keys, world.fields):
        edges += gold[field] != UNKNOWN
        right += (gold[field] != UNKNOWN) & (belief[field] == gold[field])
    for field in range(1, 1 + world.keys):
        keys += (belief[field] == gold[field]) & ~(scoring.bare & (gold[field] == world.nodes))
        both += (belief[field] == world.nodes) & (gold[field] == world.nodes)
        either += (belief[field] == world.nodes) | (gold[field] == world.nodes)
    inventory = both / either if either else 1.0
    return ((0.25 * position + 0.20 * inventory) + 0.30 * (right / edges)) + 0.25 * (keys / world.keys)
