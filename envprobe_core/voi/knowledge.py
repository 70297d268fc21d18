"""What anybody may know of a world without looking: what can change by itself, and how far it is to the goal.

The form of the dynamics is in the paper's Section 6.1 and the task graph is given to policies where the
protocol says so; how *often* anything changes is not in here: it is learned (`belief`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from envprobe_core import bits
from envprobe_core.worlds.base import UNKNOWN, Floats, Ints, Mask, Observation, Values, World
from envprobe_core.worlds.graphnav import grown
from envprobe_core.worlds.objectstate import ObjectStateWorld
from envprobe_core.worlds.tooldag import ToolDAGWorld

SETTLED = 0.5  # how much of a derived belief's gain an answer about its premise is credited with
UNREACHED = 99


def power(base: Floats, exponent: Ints | int) -> Floats:
    """Raise to whole powers below 64 by repeated squaring: only multiplications, in one order."""
    result = np.ones(base.shape)
    for bit in range(6):
        result = np.where(np.asarray(exponent) >> bit & 1 == 1, result * base, result)
        base = base * base
    return result


@dataclass(frozen=True)
class Prospect:
    """How a task stands, as far as a policy can tell.

    Attributes:
        sure: [row], the chance that the plan now followed can be carried out.
        to_go: [row], the actions it needs if nothing goes wrong.
        fading: [row], the chance that a step's delay takes away what the plan rests on.
        luck: the chance that a step succeeds without such a plan.
        field: [row], the field that the plan hangs on.
        saved: [row], the steps that an answer about it is expected to save.
    """

    sure: Floats
    to_go: Ints
    fading: Floats
    luck: float
    field: Ints
    saved: Floats


class Knowledge(ABC):
    """What is known of a block's rows; the base is a world of which only the fields are known.

    Attributes:
        spans: the fields of each kind that changes by itself; those of one kind share a hazard.
        landing: [field], the chance that a change leads back to the value that stood before.
        goal: the field that says whether the task is done; `done_value`: [row], the value it has then.
    """

    spans: tuple[slice, ...]
    landing: Floats
    goal: int
    done_value: Ints
    per_row: tuple[str, ...] = ("done_value",)

    def __init__(self, world: World, rows: slice) -> None:
        """Take the world; subclasses set the attributes."""
        self.world = world
        self.rows = rows.stop - rows.start
        self.has_graph = world.protocol.structure == "graph"

    def take(self, rows: Ints) -> None:
        """Keep only some rows."""
        self.rows = len(rows)
        for name in self.per_row:
            setattr(self, name, getattr(self, name)[rows])

    def fixed(self) -> Mask:
        """Say which fields have value 0 for good, [row, field]."""
        return np.zeros((self.rows, self.world.fields), dtype=bool)

    @abstractmethod
    def loose(self, value: Values) -> Mask:
        """Say which fields could change by themselves if they had these values, [row, field]."""

    def concluded(self, observation: Observation) -> tuple[Ints, Ints]:
        """Return rows and fields whose value 1 the last action's validity proves."""
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)

    def touched(self, observation: Observation) -> tuple[Ints, Ints]:
        """Return rows and fields that the last action itself may have changed."""
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)

    def missed(self, value: Values, observation: Observation) -> Mask:
        """Say which fields would have been seen if they still had these values, [row, field]."""
        return np.zeros(value.shape, dtype=bool)

    def derive(self, value: Values, chance: Floats) -> None:  # noqa: B027  (in some worlds nothing does)
        """Complete values and their chances, in place, by what follows from other fields."""

    def spread(self, gain: Floats) -> Floats:
        """Credit an answer with what it settles beyond its own field, [row, field]."""
        return gain

    def prospect(self, value: Values, chance: Floats, hazard: Floats, place: Ints) -> Prospect:
        """Say how the task stands by the evidence."""
        rows = len(place)
        never, nothing = np.zeros(rows), np.zeros(rows, dtype=np.int64)
        return Prospect(np.ones(rows), self.to_go(value, place), never, 0.0, nothing, never)

    def to_go(self, value: Values, place: Ints) -> Ints:
        """Count the actions needed if nothing goes wrong, [row]."""
        return np.ones(len(place), dtype=np.int64)


class ToolKnowledge(Knowledge):
    """Loaded tools may unload, all other fields follow from what was called and what is loaded."""

    per_row = ("done_value", "needs")

    def __init__(self, world: ToolDAGWorld, static: Any, rows: slice) -> None:
        """Take each tool's prerequisites."""
        super().__init__(world, rows)
        self.n = world.tools
        self.needs = static.needs_bits[rows]
        self.spans = (slice(0, self.n),)
        self.landing = np.zeros(world.fields)
        self.goal = world.fields - 1
        self.done_value = np.ones(self.rows, dtype=np.int64)

    def loose(self, value: Values) -> Mask:
        """A loaded tool, the target aside, may become unloaded."""
        loose = value == 1
        loose[:, self.n - 1 :] = False
        return loose

    def concluded(self, observation: Observation) -> tuple[Ints, Ints]:
        """A valid call completes its tool."""
        rows = np.flatnonzero(observation.valid & (observation.action >= 0))
        return rows, 2 * self.n + observation.action[rows]

    def touched(self, observation: Observation) -> tuple[Ints, Ints]:
        """A call may load its tool."""
        rows = np.flatnonzero(observation.action >= 0)
        return rows, observation.action[rows]

    def derive(self, value: Values, chance: Floats) -> None:
        """Dependencies are satisfied if all prerequisites are loaded: multiply their chances."""
        if not self.has_graph:
            return
        n = self.n
        loaded = np.where(value[:, :n] == 1, chance[:, :n], 1.0 - chance[:, :n])
        loaded = np.where(value[:, :n] == UNKNOWN, 0.5, loaded)
        ready = np.ones((len(value), n))
        for tool in range(n):
            ready = np.where(bits.has(self.needs, tool), ready * loaded[:, tool : tool + 1], ready)
        likely = ready >= 0.5
        value[:, n : 2 * n] = likely
        chance[:, n : 2 * n] = np.where(likely, ready, 1.0 - ready)

    def spread(self, gain: Floats) -> Floats:
        """An answer about a tool lets the agent settle anew the dependencies of the tools that need it."""
        if not self.has_graph:
            return gain
        n, spread = self.n, gain.copy()
        for tool in range(1, n):
            needed = bits.unpack(self.needs[:, tool], n)
            spread[:, :n] += np.where(needed, SETTLED * gain[:, n + tool : n + tool + 1], 0.0)
        return spread

    def to_go(self, value: Values, place: Ints) -> Ints:
        """Count the needed tools that are not loaded."""
        if not self.has_graph:
            return super().to_go(value, place)
        missing = bits.pack(value[:, : self.n] != 1)
        needed = np.full(len(value), bits.single(self.n - 1))
        for tool in reversed(range(self.n)):
            needed = np.where(bits.has(needed & missing, tool), needed | self.needs[:, tool], needed)
        return bits.count_true(bits.unpack(needed & missing, self.n))


class PlacedKnowledge(Knowledge):
    """Things that lie somewhere and drift while nobody holds them; locks that flip where there is a key.

    In both spatial worlds the things' locations come before the locks.
    """

    per_row = ("done_value", "keyed")

    def _lay_out(self, first: int, things: int, keyed: Mask, places: int) -> None:
        """Set where in the table things and locks are."""
        self.things = slice(first, first + things)
        self.locks = slice(first + things, first + things + keyed.shape[1])
        self.keyed, self.places = keyed, places
        self.spans = (self.things, self.locks)
        self.landing = np.zeros(self.world.fields)
        self.landing[self.things] = 1.0 / places
        self.landing[self.locks] = 1.0

    def fixed(self) -> Mask:
        """A door or edge without a key is open for good."""
        fixed = super().fixed()
        if self.has_graph:
            fixed[:, self.locks] = ~self.keyed
        return fixed

    def loose(self, value: Values) -> Mask:
        """What is not held may drift; what has a key may flip."""
        loose = np.zeros(value.shape, dtype=bool)
        loose[:, self.things] = value[:, self.things] != self.places
        loose[:, self.locks] = self.keyed | (not self.has_graph)
        return loose

    def missed(self, value: Values, observation: Observation) -> Mask:
        """What lies here is seen, unless it is overlooked."""
        missed = np.zeros(value.shape, dtype=bool)
        missed[:, self.things] = value[:, self.things] == observation.place[:, None]
        return missed & ~observation.seen & observation.fresh[:, None]


class RoomKnowledge(PlacedKnowledge):
    """The plan hangs on where the goal object is."""

    def __init__(self, world: ObjectStateWorld, static: Any, rows: slice) -> None:
        """Take which doors have a key."""
        super().__init__(world, rows)
        self._lay_out(0, world.objects, static.key_of_door[rows] >= 0, world.rooms)
        self.thing = world.goal
        self.goal = self.locks.stop + world.goal
        self.done_value = np.ones(self.rows, dtype=np.int64)

    def touched(self, observation: Observation) -> tuple[Ints, Ints]:
        """Picking up and putting down move an object, unlocking opens a door."""
        action = observation.action - self.places  # objects, then doors, then objects
        rows = np.flatnonzero(action >= 0)
        return rows, action[rows] % self.locks.stop

    def prospect(self, value: Values, chance: Floats, hazard: Floats, place: Ints) -> Prospect:
        """Compare the walk to where the goal object was last, and a search if it is gone, with an answer.

        A search is taken to last as many steps as there are rooms; an answer leads to a room at the mean
        distance, if the object is still there on arrival.
        """
        rooms, where = self.places, value[:, self.thing].astype(np.int64)
        known = (where >= 0) & (where < rooms)
        distance = np.where(known, np.abs(where - place), 0)
        right = np.where(known, chance[:, self.thing], 0.0)
        stays = 1.0 - hazard[:, self.thing]
        sure = right * power(stays, distance)

        left, beyond = place, rooms - 1 - place
        total = left * (left + 1) + beyond * (beyond + 1)  # twice the distances to all rooms, summed
        mean = total / (2.0 * rooms)
        there = power(stays, (total + rooms) // (2 * rooms))
        told = there * (mean + 1.0) + (1.0 - there) * (mean + rooms)
        saved = (1.0 - right) * ((distance + rooms) - told)
        thing = np.full(len(place), self.thing)
        return Prospect(sure, distance + 1, hazard[:, self.thing], 1.0 / rooms, thing, saved)


class GraphKnowledge(PlacedKnowledge):
    """The way to the target is at least as long as over open edges; walking shows what a probe would."""

    per_row = ("done_value", "keyed", "distance")

    def __init__(self, world: Any, static: Any, rows: slice) -> None:
        """Take which edges have a key, and measure every node's distance to the target."""
        super().__init__(world, rows)
        self._lay_out(1, world.keys, static.key_of_edge[rows] >= 0, world.nodes)
        self.goal = 0
        self.done_value = static.target[rows]
        ways, reached = static.pairs[:, rows], bits.single(self.done_value)
        self.distance = np.full((self.rows, world.nodes), UNREACHED)
        for step in range(world.nodes):
            inside = bits.unpack(reached, world.nodes)
            self.distance = np.where(inside & (self.distance == UNREACHED), step, self.distance)
            reached = grown(reached, ways)

    def touched(self, observation: Observation) -> tuple[Ints, Ints]:
        """Collecting moves a key."""
        rows = np.flatnonzero(observation.action >= self.places)
        return rows, 1 + observation.action[rows] - self.places

    def to_go(self, value: Values, place: Ints) -> Ints:
        """Look the distance of the own node up."""
        if not self.has_graph:
            return super().to_go(value, place)
        return self.distance[np.arange(len(place)), place]


KNOWLEDGE: dict[str, Any] = {
    "tooldag": ToolKnowledge,
    "objectstate": RoomKnowledge,
    "graphnav": GraphKnowledge,
}
