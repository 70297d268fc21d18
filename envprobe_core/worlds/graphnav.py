"""GraphNavWorld: a graph with locked edges and drifting keys.

Description: walk from the start to the target along open edges, or locked ones whose key is held.
Fields: the agent's node, each key's location, each edge's state; all spatial.
Actions: `move(node)`, `collect(key)`.
Observations: own node, keys here, what is held, edges here (with states where sight is local).
Mutation: lockable edges flip; loose keys land on a uniformly drawn node.
Episode end: at the horizon, or on success where the protocol stops there.
Source: Sections 3 and 6.1; book/definitions.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from envprobe_core import bits, noise
from envprobe_core.bits import Bits
from envprobe_core.noise import Words
from envprobe_core.protocols import Protocol
from envprobe_core.regimes import Regime
from envprobe_core.worlds.base import (
    SPATIAL,
    UNKNOWN,
    Floats,
    Ints,
    Mask,
    Rows,
    Values,
    World,
    first_ranked,
    numbered,
    ranked,
)

NODES = (6, 12, 20)
EXTRA_EDGES = (4, 2, 1)  # nodes divided by this
LOCKED_EDGES = (1, 3, 6)
MEAN_RATES = (0.02, 0.10, 0.30)
RELEASED_RATES = (0.0, 0.10, 0.22)


@dataclass(frozen=True)
class GraphMap:
    """The static graph: ends [row, edge, 2] ascending, key_of_edge [row, edge] (-1 = never locked)."""

    nodes: int
    keys: int
    ends: Ints
    key_of_edge: Ints
    edge_of_key: Ints  # [row, key], -1 where a key opens nothing
    start: Ints
    target: Ints

    @property
    def edges(self) -> int:
        """Return the number of edges."""
        return self.ends.shape[1]

    @cached_property
    def pairs(self) -> Bits:
        """Return the two ends of each edge as a set, [edge, row]: edges first and narrow, for fast unions."""
        width = np.int16 if self.nodes < 16 else np.int32
        return np.bitwise_or.reduce(bits.single(self.ends), axis=2).T.astype(width, order="C")

    @cached_property
    def lockable(self) -> Mask:
        """Say which edges have a lock, [row, edge]; edges first in memory."""
        return np.asfortranarray(self.key_of_edge >= 0)

    @cached_property
    def edge_numbers(self) -> npt.NDArray[np.int8]:
        """Return the edge that joins each two nodes, [row, node, node]; -1 where none does."""
        rows, edges = np.indices(self.ends.shape[:2])
        numbers = np.full((len(self.ends), self.nodes, self.nodes), UNKNOWN, dtype=np.int8)
        low, high = self.ends[:, :, 0], self.ends[:, :, 1]
        numbers[rows, low, high] = edges
        numbers[rows, high, low] = edges
        return numbers

    def edge_between(self, one: Ints, other: Ints, rows: Rows = slice(None)) -> Ints:
        """Return the edge that joins two nodes in some rows, [row]; -1 where none does."""
        pair = (np.arange(len(self.ends))[rows] * self.nodes + one) * self.nodes + other
        return self.edge_numbers.take(pair).astype(np.int64)

    @cached_property
    def edges_at(self) -> Mask:
        """Say which edges touch each node, [row, node, edge]."""
        return np.ascontiguousarray(bits.unpack(self.pairs, self.nodes).transpose(1, 2, 0))

    def incident(self, node: Ints) -> Mask:
        """Say which edges touch the node, [row, edge]."""
        return self.edges_at.reshape(-1, self.edges).take(np.arange(len(node)) * self.nodes + node, axis=0)

    def ways(self, passable: Mask, rows: Ints | slice = slice(None)) -> Bits:
        """Keep the edges that some rows can pass, [row, edge], for the functions below: [edge, row]."""
        return self.pairs[:, rows] * passable.T


def grown(reached: Bits, ways: Bits) -> Bits:
    """Add to a set of nodes, [row], all neighbours over the ways, [edge, row]."""
    touched = ways & reached.astype(ways.dtype) != 0
    return reached | np.bitwise_or.reduce(ways * touched, axis=0)


def component(reached: Bits, ways: Bits) -> Bits:
    """Return all nodes that can be reached from a set of nodes over the ways, [row] sets."""
    while not np.array_equal(following := grown(reached, ways), reached):
        reached = following
    return reached


def first_step(node: Ints, goal: Ints, ways: Bits) -> Ints:
    """Return the lowest next node on a shortest way from node to goal, [row]; -1 where there is none."""
    around = grown(bits.single(node), ways) & ~bits.single(node)
    reached = bits.single(goal)
    step = reached & around
    open_rows = np.flatnonzero((step == 0) & (around != 0) & (node != goal))
    while len(open_rows):
        before = reached[open_rows]
        following = grown(before, ways[:, open_rows])
        reached[open_rows] = following
        step[open_rows] = following & around[open_rows]
        open_rows = open_rows[(step[open_rows] == 0) & (following != before)]
    return np.where((step != 0) & (node != goal), bits.lowest(step), UNKNOWN)


@dataclass(frozen=True)
class GraphInstance:
    """One instance a row: the map, and where the keys lie at step 0."""

    map: GraphMap
    key_node: Ints  # [row, key]


@dataclass(frozen=True)
class GraphState:
    """Own node [row], location of every key [row, key] (nodes = held), locked edges [row, edge]."""

    node: Ints
    location: Ints
    locked: Mask


class GraphNavWorld(World):
    """A graph with locked edges (see the module)."""

    name = "graphnav"
    title = "GraphNavWorld"
    code = 3
    goal_fields = (0,)

    def __init__(self, regime: Regime, protocol: Protocol) -> None:
        """Set 6, 12 or 20 nodes on a path, extra edges, 1, 3 or 6 locked edges, never more than keys."""
        super().__init__(regime, protocol)
        self.nodes = NODES[regime.complexity]
        self.keys = min(5, max(2, self.nodes // 4))
        self.extra = self.nodes // EXTRA_EDGES[regime.density]
        self.edges = self.nodes - 1 + self.extra
        self.locks = min(LOCKED_EDGES[regime.density], self.keys)
        self.field_names = (
            "node",
            *(f"location(key {k})" for k in range(self.keys)),
            *(f"state(edge {e})" for e in range(self.edges)),
        )
        self.field_kinds = (SPATIAL,) * len(self.field_names)
        self.action_names = (
            *(f"move({v})" for v in range(self.nodes)),
            *(f"collect(key {k})" for k in range(self.keys)),
        )
        self.domain = np.array([self.nodes] + [self.nodes + 1] * self.keys + [2] * self.edges)
        table = MEAN_RATES if protocol.rates == "mean" else RELEASED_RATES
        self.exposed = self.fields
        self.rates = np.zeros(self.fields)
        self.rates[1:] = table[regime.mutation]

    def instances(self, seeds: npt.ArrayLike) -> GraphInstance:
        """Draw a path, extra edges and locks so that each key can be reached before its edge."""
        n, pairs = self.nodes, np.array(np.triu_indices(self.nodes, 1)).T
        draws = self.draws(seeds, n + len(pairs) + 2 * self.edges + self.locks + self.keys)
        order, extra, lock, turn, spot, loose = np.split(
            draws, np.cumsum([n, len(pairs), self.edges, self.edges, self.locks]), axis=1
        )
        rows = np.arange(len(draws))
        label = np.argsort(order, axis=1, kind="stable")  # [row, position on the path] -> node
        step = pairs[:, 1] - pairs[:, 0]
        chosen = first_ranked(extra, step > 1, self.extra) | (step == 1)
        joined = pairs[np.flatnonzero(chosen) % len(pairs)].reshape(len(draws), self.edges, 2)
        one, other = (label.take(rows[:, None] * n + joined[:, :, end]) for end in (0, 1))
        edges = np.sort(np.minimum(one, other) * n + np.maximum(one, other), axis=1)
        ends = np.stack(np.divmod(edges, n), axis=2)
        locked = first_ranked(lock, np.ones(self.edges, dtype=bool), self.locks)
        key_of_edge = numbered(locked)
        edge_of_key = np.full((len(draws), self.keys), UNKNOWN, dtype=np.int64)
        lock_rows, lock_edges = np.nonzero(locked)
        edge_of_key[lock_rows, key_of_edge[lock_rows, lock_edges]] = lock_edges
        static = GraphMap(n, self.keys, ends, key_of_edge, edge_of_key, label[:, 0], label[:, -1])
        where = noise.high_choice(loose, n)
        still = locked.copy()
        region = bits.single(static.start)
        for index in range(self.locks):
            region = component(region, static.ways(~still))
            inside = (static.pairs & region != 0).T
            edge = np.argmin(ranked(turn, still & inside), axis=1)
            rank = noise.high_choice(spot[:, index], np.bitwise_count(region))
            where[rows, key_of_edge[rows, edge]] = bits.nth(region, rank, n)
            still[rows, edge] = False
        return GraphInstance(static, np.asfortranarray(where))

    def start(self, instance: GraphInstance) -> GraphState:
        """Start at the start node with every lockable edge locked."""
        return GraphState(instance.map.start, instance.key_node, instance.map.lockable)

    def gold(self, instance: GraphInstance, state: GraphState) -> Values:
        """Return node, key locations and edge states."""
        gold = np.empty((len(state.node), self.fields), dtype=np.int8)
        gold[:, 0] = state.node
        gold[:, 1 : 1 + self.keys] = state.location
        gold[:, 1 + self.keys :] = state.locked
        return gold

    def place(self, state: GraphState) -> Ints:
        """Return the own node."""
        return state.node

    def succeeded(self, instance: GraphInstance, state: GraphState) -> Mask:
        """Say where the agent is at the target."""
        return state.node == instance.map.target

    def act(self, instance: GraphInstance, state: GraphState, action: Ints) -> tuple[GraphState, Mask]:
        """Move or collect a key, one action a row."""
        static, rows = instance.map, np.arange(len(action))
        moves = (action >= 0) & (action < self.nodes)
        edge = static.edge_between(state.node, np.where(moves, action, state.node))
        key = static.key_of_edge[rows, edge]
        keyed = (key >= 0) & (state.location[rows, key] == self.nodes)
        walked = moves & (edge >= 0) & (~state.locked[rows, edge] | keyed)
        item = np.where(action >= self.nodes, action - self.nodes, 0)
        collected = (action >= self.nodes) & (state.location[rows, item] == state.node)
        location = state.location.copy(order="K")
        location[rows[collected], item[collected]] = self.nodes
        node = np.where(walked, action, state.node)
        return replace(state, node=node, location=location), walked | collected

    def mutate(self, instance: GraphInstance, state: GraphState, draws: Words, moving: Mask) -> GraphState:
        """Let loose keys drift and lockable edges flip."""
        hit = (noise.low(draws) < self.levels) & moving[:, None]
        first_edge = 1 + self.keys
        drifts = hit[:, 1:first_edge] & (state.location != self.nodes)
        landing = noise.high_choice(draws[:, 1:first_edge], self.nodes)
        flips = hit[:, first_edge:] & instance.map.lockable
        location = np.where(drifts, landing, state.location)
        return replace(state, location=location, locked=state.locked ^ flips)

    def visible(self, instance: GraphInstance, state: GraphState, action: Ints, dropped: Mask) -> Mask:
        """Show the own node, keys here and held, and the states of the edges here where sight is local."""
        seen = np.zeros((len(action), self.fields), dtype=bool)
        seen[:, 0] = True
        here = state.location == state.node[:, None]
        losers = np.flatnonzero(dropped)
        here[losers, self.keys - 1 - np.argmax(here[losers, ::-1], axis=1)] = False
        seen[:, 1 : 1 + self.keys] = here | (state.location == self.nodes)
        if self.protocol.sight == "local":
            seen[:, 1 + self.keys :] = instance.map.incident(state.node)
        return seen

    def weights(self, static: GraphMap) -> Floats:
        """Weigh the shortest path from start to target 1, the keys of its edges .7, the rest .1."""
        weights = np.full((len(static.start), self.fields), 0.1)
        weights[:, 0] = 1.0
        node, within = static.start, [bits.single(static.target)]  # within 0, 1, ... steps of the target
        while not bits.has(within[-1], node).all():
            within.append(grown(within[-1], static.pairs))
        for closer in within[-2::-1]:
            around = grown(bits.single(node), static.pairs) & closer
            step = np.where(bits.has(closer, node), node, bits.lowest(around))
            going = np.flatnonzero(step != node)
            edge = static.edge_between(node, step)[going]
            weights[going, 1 + self.keys + edge] = 1.0
            key = static.key_of_edge[going, edge]
            weights[going[key >= 0], 1 + key[key >= 0]] = 0.7
            node = step
        return weights

    def roles(self, static: GraphMap, place: Ints, action: Ints, rows: Rows = slice(None)) -> Floats:
        """Mark the fields that the action's precondition reads, and their ancestors."""
        roles = np.zeros((len(action), self.fields))
        roles[action >= 0, 0] = 1.0
        moves = (action >= 0) & (action < self.nodes)
        edge = static.edge_between(place, np.where(moves, action, place), rows)
        along = np.flatnonzero(edge >= 0)
        roles[along, 1 + self.keys + edge[along]] = 1.0
        key = static.key_of_edge[rows][along, edge[along]]
        roles[along[key >= 0], 1 + key[key >= 0]] = 0.5
        collectors = np.flatnonzero(action >= self.nodes)
        roles[collectors, 1 + action[collectors] - self.nodes] = 1.0
        return roles
