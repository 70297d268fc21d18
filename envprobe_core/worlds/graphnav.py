"""GraphNavWorld: a graph with locked edges and drifting keys.

Description: walk from the start to the target along open edges, or locked ones whose key is held.

| field | type | value |
|---|---|---|
| `node` | spatial | where the agent is |
| `location(k)` | spatial | the node at which key k lies, or that it is held |
| `state(e)` | spatial | whether edge e is locked |

| action | valid if | effect |
|---|---|---|
| `move(v)` | an edge joins the own node and v, and is open or its key is held | the agent is at v |
| `collect(k)` | key k lies at the own node | k is held |

Observation: the own node, the keys that lie there, now and then without the last, and those that are held;
the states of its edges. As released its neighbours, now and then without the last, and no states.

Mutation: a key that nobody holds lands on a uniformly drawn node; an edge that has a key opens or locks.
"""

import numpy as np

from envprobe_core.compiled.noise import ONE, choice, draw, happens, numbered, u64
from envprobe_core.compiled.numba_support import helper, inline
from envprobe_core.compiled.records import (
    NONE,
    TEXT,
    UNKNOWN,
    Int,
    Word,
    dtype_of,
    fill,
    has_bit,
    last_by_name,
    overlook,
    see,
    with_bit,
    without_bit,
)
from envprobe_core.protocols import Protocol
from envprobe_core.regimes import Regime
from envprobe_core.worlds.base import SPATIAL, World, draw_locks

NAME, TITLE, CODE = "graphnav", "GraphNavWorld", 3
NODES, EXTRA_EDGES, LOCKED_EDGES = (6, 12, 20), (4, 2, 1), (1, 3, 6)  # extra: nodes divided by this
RATES = {"mean": (0.02, 0.10, 0.30), "released": (0.0, 0.10, 0.22)}
MOST_NODES, MOST_KEYS, MOST_EDGES, MOST_PAIRS = 20, 5, 39, 190
NOWHERE = MOST_NODES  # a node that is never reached
HIGHEST = u64(0xFFFFFFFFFFFFFFFF)  # word

SCRATCH = dtype_of(
    ("words", Word, MOST_PAIRS), ("node_at", Int, MOST_NODES), ("joined", np.int64, MOST_NODES),
    ("queue", Int, MOST_NODES), ("came_from", Int, MOST_NODES),
)  # fmt: skip
"""Room for `create` (draws, the node at each place of the path, the set of nodes that each is joined to) and
for `search`.
"""
TASK = dtype_of(
    ("start", Int), ("target", Int), ("edges", Int), ("ends", Int, (MOST_EDGES + 1, 2)),
    ("key_of_edge", Int, MOST_EDGES), ("edge_of_key", np.int64, MOST_KEYS),
    ("neighbours", Int, MOST_NODES), ("neighbour", Int, (MOST_NODES, MOST_NODES)),
    ("edge", np.int64, (MOST_NODES, MOST_NODES)), ("scratch", SCRATCH),
)  # fmt: skip
"""The graph: how many edges, by their ends, ascending, and by their keys (NONE: never locked); of each node
how many neighbours it has, which, ascending, and the edge that leads to each.
"""
STATE = dtype_of(("place", Int), ("location", Int, MOST_KEYS), ("locked", Int, MOST_EDGES))
"""Own node, where each key lies, which edges are locked."""


def describe(regime: Regime, protocol: Protocol) -> World:
    """Build the world of a regime: 6, 12 or 20 nodes on a path, extra edges, 1, 3 or 6 locks."""
    nodes = NODES[regime.complexity]
    keys = min(MOST_KEYS, max(2, nodes // 4))
    edges = nodes - 1 + nodes // EXTRA_EDGES[regime.density]
    fields = [
        ("node", SPATIAL, nodes, False),
        *((f"location(key {key})", SPATIAL, nodes + 1, True) for key in range(keys)),
        *((f"state(edge {edge})", SPATIAL, 2, True) for edge in range(edges)),
    ]
    actions = [*(f"move({node})" for node in range(nodes)), *(f"collect(key {key})" for key in range(keys))]
    locks = min(LOCKED_EDGES[regime.density], keys)  # key 0, 1, ... opens one each, others nothing
    rules = {"nodes": nodes, "keys": keys, "edges": edges, "locks": locks}
    return World((NAME, TITLE, CODE), regime, protocol, RATES, fields, actions, [0], rules)


# ways over the graph


@helper
def search(task, passable, origin, goal):
    """Search breadth-first from a node to a goal over a set of edges; return the set of nodes reached.

    Neighbours are taken in ascending order, so `came_from` leads back over the lowest of the shortest ways.
    """
    queue, came_from, reached = task.scratch.queue, task.scratch.came_from, with_bit(0, origin)
    queue[0] = origin
    first, past = 0, 1
    while first < past and not has_bit(reached, goal):
        node = queue[first]
        first += 1
        for number in range(task.neighbours[node]):
            other = task.neighbour[node, number]
            if has_bit(passable, task.edge[node, number]) and not has_bit(reached, other):
                reached = with_bit(reached, other)
                came_from[other], queue[past] = node, other
                past += 1
    return reached


@inline
def all_edges(world):
    """The set of all edges."""
    return (1 << world.edges) - 1


@inline
def edge_between(task, node, other):
    """The edge that joins two nodes, or NONE."""
    for number in range(task.neighbours[node]):
        if task.neighbour[node, number] == other:
            return task.edge[node, number]
    return NONE


@inline
def concerned(world, task, place, action):
    """The field of the key or edge that an action is about, or NONE."""
    if action >= world.nodes:
        return 1 + action - world.nodes
    edge = edge_between(task, place, action)
    return NONE if edge == NONE else 1 + world.keys + edge


@inline
def create(world, task, state, key):
    """Draw a path, extra edges and locks, so that each key can be reached before its edge."""
    nodes, first_edge = world.nodes, world.nodes + world.nodes * (world.nodes - 1) // 2
    fill(task.scratch.joined, 0)
    if world.instances != TEXT:
        sample_pairs(world, task, key)
    else:
        draw_pairs(world, task, key)
    list_edges(task, nodes)
    lockable = draw_locks(key, first_edge, task.edges, world.locks, task.key_of_edge, task.edge_of_key)
    first_turn = first_edge + world.edges
    first_spot = first_turn + world.edges + world.locks
    for item in range(world.keys):
        state.location[item] = choice(numbered(key, first_spot + item), nodes)
    if world.instances == TEXT:
        place_keys(world, task, state, key, first_turn, lockable)
    state.place = task.start
    for edge in range(world.edges):
        state.locked[edge] = has_bit(lockable, edge)


@inline
def join(joined, one, other):
    """Join two nodes."""
    joined[one], joined[other] = with_bit(joined[one], other), with_bit(joined[other], one)


@helper
def draw_pairs(world, task, key):
    """Join the nodes on a path, in the order of their draws, and those other pairs that draw lowest."""
    nodes, words, node_at, pairs = world.nodes, task.scratch.words, task.scratch.node_at, 0
    for node in range(nodes):
        words[node] = numbered(key, node)
    for node in range(nodes):
        lower = 0
        for other in range(nodes):
            lower += words[other] < words[node]
        node_at[lower] = node
    task.start, task.target = node_at[0], node_at[nodes - 1]
    for one in range(nodes):
        for other in range(one + 1, nodes):
            words[pairs] = HIGHEST if other == one + 1 else numbered(key, nodes + pairs)
            pairs += 1
    bound = above_lowest(words, pairs, world.edges - (nodes - 1))
    pairs = 0
    for one in range(nodes):
        for other in range(one + 1, nodes):
            if other == one + 1 or words[pairs] < bound:
                join(task.scratch.joined, node_at[one], node_at[other])
            pairs += 1


@inline
def above_lowest(words, count, n):
    """A word that the n lowest of the first words are below, and no others."""
    bound = u64(0)
    for _ in range(n):
        least = HIGHEST
        for number in range(count):
            least = min(least, words[number] - bound)  # what is below the bound wraps round to the top
        bound += least + ONE
    return bound


@helper
def sample_pairs(world, task, key):
    """Join nodes 0, 1, ... in a row, and as many random pairs as are wanted, some of them joined already."""
    nodes, joined = world.nodes, task.scratch.joined
    task.start, task.target = 0, nodes - 1
    for node in range(nodes - 1):
        join(joined, node, node + 1)
    for number in range(world.edges - (nodes - 1)):
        one = choice(numbered(key, 2 * number), nodes)
        other = choice(numbered(key, 2 * number + 1), nodes - 1)
        join(joined, one, other + (other >= one))


@helper
def list_edges(task, nodes):
    """Number the edges, and list every node's neighbours with the edges that lead there."""
    fill(task.neighbours, 0)
    task.edges = 0
    for low in range(nodes):
        for high in range(low + 1, nodes):  # in this order neighbours ascend
            if has_bit(task.scratch.joined[low], high):
                task.ends[task.edges, 0], task.ends[task.edges, 1] = low, high
                add_neighbour(task, low, high)
                add_neighbour(task, high, low)
                task.edges += 1


@inline
def add_neighbour(task, node, other):
    """List a neighbour of a node, to which the edge leads that is numbered next."""
    number = task.neighbours[node]
    task.neighbour[node, number], task.edge[node, number] = other, task.edges
    task.neighbours[node] += 1


@helper
def place_keys(world, task, state, key, first, lockable):
    """Put the key of one more locked edge at reach, of the lowest draw, where one can walk by now."""
    joined, reached, before = task.scratch.joined, with_bit(0, task.start), 0
    for lock in range(world.locks):
        one, other = task.ends[task.edge_of_key[lock]]
        joined[one], joined[other] = without_bit(joined[one], other), without_bit(joined[other], one)
    for turn in range(world.locks):
        while before != reached:  # a set of nodes spreads to all that are joined to it
            before = reached
            for node in range(world.nodes):
                reached |= has_bit(reached, node) * joined[node]
        lowest, least = 0, HIGHEST
        for item in range(world.locks):
            edge = task.edge_of_key[item]
            word = numbered(key, first + edge)
            touched = has_bit(reached, task.ends[edge, 0]) or has_bit(reached, task.ends[edge, 1])
            if touched and has_bit(lockable, edge) and word < least:
                lowest, least = item, word
        count = 0
        for node in range(world.nodes):
            count += has_bit(reached, node)
        left = choice(numbered(key, first + world.edges + turn), count)  # so many nodes come before it
        for node in range(world.nodes):
            if has_bit(reached, node):
                if left == 0:
                    state.location[lowest] = node
                left -= 1
        edge = task.edge_of_key[lowest]
        lockable, reached = (
            without_bit(lockable, edge),
            reached | with_bit(with_bit(0, task.ends[edge, 0]), task.ends[edge, 1]),
        )
        join(joined, task.ends[edge, 0], task.ends[edge, 1])


@inline
def weigh(world, task, weight):
    """Weigh own node and the shortest way from start to target 1, the keys of its edges .7, the rest .1."""
    fill(weight, 0.1)
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


@inline
def reveal(world, task, state, gold):
    """Write the true value of every field."""
    gold[0] = state.place
    for key in range(world.keys):
        gold[1 + key] = state.location[key]
    for edge in range(world.edges):
        gold[1 + world.keys + edge] = state.locked[edge] if edge < task.edges else UNKNOWN


@inline
def succeeded(world, task, state):
    """Whether the agent is at the target."""
    return state.place == task.target


@inline
def act(world, task, state, action):
    """Move or collect; return whether that was valid."""
    nodes = world.nodes
    if action >= nodes:
        if state.location[action - nodes] != state.place:
            return False
        state.location[action - nodes] = nodes
        return True
    edge = edge_between(task, state.place, action)
    if edge == NONE or (state.locked[edge] and state.location[task.key_of_edge[edge]] != nodes):
        return False
    state.place = action
    return True


@inline
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


@inline
def show(world, task, state, action, word, observation):
    """Show the own node, keys here and held, and where sight is local the edges.

    Perhaps the last key that lies here is overlooked, where sight is not local a neighbour.
    """
    node, others = state.place, 0
    see(observation, 0, node)
    for key in range(world.keys):
        if state.location[key] == node:
            see(observation, 1 + key, node)
    if world.sight == TEXT and observation.count > 1 and happens(word, world.drop):
        overlook(observation)
    for key in range(world.keys):
        if state.location[key] == world.nodes:
            see(observation, 1 + key, world.nodes)
    for number in range(task.neighbours[node]):
        edge = task.edge[node, number]
        if world.sight == TEXT:
            see(observation, 1 + world.keys + edge, state.locked[edge])
        else:
            others = with_bit(others, task.neighbour[node, number])
    if world.sight != TEXT and happens(word, world.drop):
        observation.hidden = last_by_name(others)


@inline
def roles(world, task, place, action, d):
    """Write the dependency role of every field: 1 what the action reads, .5 what that depends on."""
    uses(world, task, place, action, d)
    field = concerned(world, task, place, action)
    if field > world.keys and task.key_of_edge[field - 1 - world.keys] != NONE:
        d[1 + task.key_of_edge[field - 1 - world.keys]] = 0.5


@inline
def uses(world, task, place, action, used):
    """Mark what the agent itself knows an action to use: its own node, and the key or the edge."""
    fill(used, 0)
    if action >= 0:
        used[0] = 1
    field = concerned(world, task, place, action)
    if field != NONE:
        used[field] = 1
