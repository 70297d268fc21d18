"""How the simulated agent reads and plans on GraphNavWorld."""

from __future__ import annotations

import numpy as np

from envprobe_core import bits
from envprobe_core.agents.base import Implied, join
from envprobe_core.belief import BeliefTable
from envprobe_core.bits import Bits
from envprobe_core.worlds.base import UNKNOWN, WAIT, Ints, Observation, Values
from envprobe_core.worlds.graphnav import GraphMap, GraphNavWorld, component, first_step, grown

NEVER = -1


class GraphMind:
    """Walks to the target over edges it believes passable, fetches keys, explores when it is stuck."""

    def __init__(self, world: GraphNavWorld, static: GraphMap) -> None:
        """Take the static graph; where the protocol hides it only edges met on the way are used."""
        self.world = world
        self.static = static
        rows = len(static.start)
        self.met = np.full(static.key_of_edge.shape, world.protocol.structure == "graph")
        self.last_seen = np.full((rows, world.nodes), NEVER, dtype=np.int64)

    def remember(self, step: int, observation: Observation) -> None:
        """Note the node it is at and the edges there."""
        self.last_seen[np.arange(len(observation.place)), observation.place] = step
        if self.world.protocol.structure == "reported":
            self.met |= self.static.incident(observation.place)

    def implied(self, observation: Observation) -> Implied:
        """Conclude from validity which edge is open, and that a key is not where it was sought."""
        world = self.world
        action, valid = observation.action, observation.valid
        missed = np.flatnonzero((action >= world.nodes) & ~valid)
        unknown = np.full(len(missed), UNKNOWN, dtype=np.int8)
        absent = missed, 1 + action[missed] - world.nodes, unknown
        if world.protocol.sight == "local":
            return absent
        moves = (action >= 0) & (action < world.nodes)
        edge = self.static.edge_between(observation.came_from, np.where(moves, action, observation.came_from))
        along = np.flatnonzero(edge >= 0)
        walked = along, 1 + world.keys + edge[along], (~valid[along]).astype(np.int8)
        return join(absent, walked)

    def plan(self, table: BeliefTable, observation: Observation) -> Ints:
        """Return the next action towards the target; wait where it takes itself to be there."""
        node = np.maximum(table.value[:, 0].astype(np.int64), 0)
        action = np.full(len(node), WAIT)
        going = np.flatnonzero(node != self.static.target)
        action[going] = self._step(going, node[going], table.value[going])
        return action

    def _step(self, rows: Ints, node: Ints, value: Values) -> Ints:
        world = self.world
        location = value[:, 1 : 1 + world.keys]
        passable = value[:, 1 + world.keys :] != 1
        opens = self.static.edge_of_key[rows]
        holder, key = np.nonzero((location == world.nodes) & (opens >= 0))
        passable[holder, opens[holder, key]] = True
        ways = self.static.ways(passable & self.met[rows], rows)
        step = first_step(node, self.static.target[rows], ways)
        stuck = np.flatnonzero(step < 0)
        step[stuck] = self._detour(rows[stuck], node[stuck], location[stuck].astype(np.int64), ways[:, stuck])
        return step

    def _detour(self, rows: Ints, node: Ints, location: Ints, ways: Bits) -> Ints:
        world = self.world
        reached = component(bits.single(node), ways)
        on_node = (location >= 0) & (location < world.nodes)
        within = on_node & bits.has(reached[:, None], np.where(on_node, location, 0))
        found = within.any(axis=1)
        key = np.argmax(within, axis=1)
        key_node = location[np.arange(len(rows)), key]

        others = bits.unpack(reached & ~bits.single(node), world.nodes)
        seen = np.where(others, self.last_seen[rows], np.iinfo(np.int64).max)
        goal = np.where(found, key_node, np.argmin(seen, axis=1))
        step = first_step(node, goal, ways)
        step = np.where(found & (key_node == node), world.nodes + key, step)

        shut_in = np.flatnonzero(~found & (reached == bits.single(node)))
        met = self.static.ways(self.met[rows[shut_in]], rows[shut_in])
        around = grown(bits.single(node[shut_in]), met) & ~bits.single(node[shut_in])
        step[shut_in] = np.where(around != 0, bits.lowest(around), WAIT)
        return step
