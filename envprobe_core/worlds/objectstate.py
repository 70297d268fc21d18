"""ObjectStateWorld: rooms in a row, locked doors with keys, objects that drift.

Description: fetch the goal object, the first of the goals, through doors that may be locked.
Fields: each object's location (spatial), each door's lock (spatial), each object held or not (procedural).
Actions: `move(room)`, `pick(object)`, `unlock(door)`, `place(object)`.
Observations: own room, what lies in it, its doors (with locks where sight is local), what is held.
Mutation: loose objects land in a uniformly drawn room; lockable doors flip (released: only loose keys drift).
Episode end: at the horizon, or on success where the protocol stops there.
Source: Sections 3 and 6.1; book/definitions.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from envprobe_core import bits, noise
from envprobe_core.noise import Words
from envprobe_core.protocols import Protocol
from envprobe_core.regimes import Regime
from envprobe_core.worlds.base import (
    PROCEDURAL,
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
)

ROOMS = (5, 10, 20)
LOCKED_DOORS = (1, 3, 6)
MEAN_RATES = (0.02, 0.10, 0.30)
RELEASED_KEY_RATES = (0.0, 0.15, 0.35)


@dataclass(frozen=True)
class RoomMap:
    """The static structure: which key opens which door, [row, door], -1 where a door has no lock."""

    rooms: int
    keys: int
    objects: int
    goal: int
    key_of_door: Ints
    door_of_key: Ints  # [row, key], -1 where a key opens nothing

    @property
    def doors(self) -> int:
        """Return the number of doors."""
        return self.rooms - 1


@dataclass(frozen=True)
class RoomInstance:
    """One instance a row: the map, and where everything is at step 0."""

    map: RoomMap
    start_room: Ints
    object_room: Ints  # [row, object]: keys, boxes, goals


@dataclass(frozen=True)
class RoomState:
    """Own room [row], location of every object [row, object] (rooms = held), locked doors [row, door]."""

    room: Ints
    location: Ints
    locked: Mask


class ObjectStateWorld(World):
    """Rooms, doors and objects (see the module)."""

    name = "objectstate"
    title = "ObjectStateWorld"
    code = 2

    def __init__(self, regime: Regime, protocol: Protocol) -> None:
        """Set 5, 10 or 20 rooms with 1, 3 or 6 locked doors, never more than keys."""
        super().__init__(regime, protocol)
        self.rooms = ROOMS[regime.complexity]
        self.keys = min(6, max(2, self.rooms // 3))
        self.boxes = max(1, self.rooms // 4)
        self.goals = min(3, max(1, self.rooms // 4))
        self.objects = self.keys + self.boxes + self.goals
        self.doors = self.rooms - 1
        self.locks = min(LOCKED_DOORS[regime.density], self.keys)
        self.goal = self.keys + self.boxes
        labels = (
            [f"key {k}" for k in range(self.keys)]
            + [f"box {b}" for b in range(self.boxes)]
            + [f"goal {g}" for g in range(self.goals)]
        )
        doors = range(self.doors)
        self.field_names = (
            *(f"location({label})" for label in labels),
            *(f"lock({door})" for door in doors),
            *(f"held({label})" for label in labels),
        )
        self.field_kinds = (SPATIAL,) * (self.objects + self.doors) + (PROCEDURAL,) * self.objects
        self.action_names = (
            *(f"move({room})" for room in range(self.rooms)),
            *(f"pick({label})" for label in labels),
            *(f"unlock({door})" for door in doors),
            *(f"place({label})" for label in labels),
        )
        self.domain = np.array([self.rooms + 1] * self.objects + [2] * (self.doors + self.objects))
        self.exposed = self.objects + self.doors
        self.rates = np.zeros(self.fields)
        if protocol.rates == "mean":
            self.rates[: self.objects + self.doors] = MEAN_RATES[regime.mutation]
        else:
            self.rates[: self.keys] = RELEASED_KEY_RATES[regime.mutation]
        self.goal_fields = (self.goal, self.objects + self.doors + self.goal)

    def instances(self, seeds: npt.ArrayLike) -> RoomInstance:
        """Draw locks and places so that each key lies where it can be reached before its door."""
        draws = self.draws(seeds, 1 + self.doors + 2 * self.locks + self.objects)
        rows = np.arange(len(draws))
        start = noise.high_choice(draws[:, 0], self.rooms)
        locked = first_ranked(draws[:, 1 : 1 + self.doors], np.ones(self.doors, dtype=bool), self.locks)
        key_of_door = numbered(locked)
        door_of_key = np.full((len(draws), self.keys), UNKNOWN, dtype=np.int64)
        lock_rows, lock_doors = np.nonzero(locked)
        door_of_key[lock_rows, key_of_door[lock_rows, lock_doors]] = lock_doors
        place_draws = draws[:, 1 + self.doors + 2 * self.locks :]
        where = noise.high_choice(place_draws, self.rooms)
        other = noise.high_choice(place_draws[:, self.goal], self.rooms - 1)
        where[:, self.goal] = other + (other >= start)
        still = locked.copy()
        for turn in range(self.locks):
            side, spot = (draws[:, 1 + self.doors + 2 * turn + part] for part in (0, 1))
            lowest, highest = open_stretch(still, start)
            left_possible, right_possible = lowest > 0, highest < self.rooms - 1
            left = left_possible & (~right_possible | (noise.high_choice(side, 2) == 0))
            door = np.where(left, lowest - 1, highest)
            where[rows, key_of_door[rows, door]] = lowest + noise.high_choice(spot, highest - lowest + 1)
            still[rows, door] = False
        static = RoomMap(self.rooms, self.keys, self.objects, self.goal, key_of_door, door_of_key)
        return RoomInstance(static, start, where)

    def start(self, instance: RoomInstance) -> RoomState:
        """Start in the start room with every lockable door locked."""
        return RoomState(instance.start_room, instance.object_room, instance.map.key_of_door >= 0)

    def gold(self, instance: RoomInstance, state: RoomState) -> Values:
        """Return locations, locks and what is held."""
        held = state.location == self.rooms
        return np.concatenate([state.location, state.locked, held], axis=1, dtype=np.int8)

    def place(self, state: RoomState) -> Ints:
        """Return the own room."""
        return state.room

    def succeeded(self, instance: RoomInstance, state: RoomState) -> Mask:
        """Say where the goal object is held."""
        return state.location[:, self.goal] == self.rooms

    def act(self, instance: RoomInstance, state: RoomState, action: Ints) -> tuple[RoomState, Mask]:
        """Move, pick up, unlock or put down, one action a row."""
        room, location, locked = state.room.copy(), state.location.copy(), state.locked.copy()
        valid = np.zeros(len(action), dtype=bool)
        picks, unlocks = self.rooms, self.rooms + self.objects
        places = unlocks + self.doors

        movers = np.flatnonzero((action >= 0) & (action < picks))
        target, own = action[movers], room[movers]
        near = np.abs(target - own) == 1
        door = np.where(near, np.minimum(target, own), 0)
        ok = near & ~locked[movers, door]
        valid[movers] = ok
        room[movers[ok]] = target[ok]

        pickers = np.flatnonzero((action >= picks) & (action < unlocks))
        item = action[pickers] - picks
        ok = location[pickers, item] == room[pickers]
        valid[pickers] = ok
        location[pickers[ok], item[ok]] = self.rooms

        openers = np.flatnonzero((action >= unlocks) & (action < places))
        door = action[openers] - unlocks
        key = instance.map.key_of_door[openers, door]
        own = room[openers]
        held = (key >= 0) & (location[openers, np.maximum(key, 0)] == self.rooms)
        ok = ((door == own) | (door == own - 1)) & locked[openers, door] & held
        valid[openers] = ok
        locked[openers[ok], door[ok]] = False

        placers = np.flatnonzero(action >= places)
        item = action[placers] - places
        ok = location[placers, item] == self.rooms
        valid[placers] = ok
        location[placers[ok], item[ok]] = room[placers[ok]]
        return RoomState(room, location, locked), valid

    def mutate(self, instance: RoomInstance, state: RoomState, draws: Words, moving: Mask) -> RoomState:
        """Let loose objects drift and lockable doors flip."""
        hit = noise.low(draws) < self.levels
        hit &= moving[:, None]
        drifts = hit[:, : self.objects] & (state.location != self.rooms)
        landing = noise.high_choice(draws[:, : self.objects], self.rooms)
        flips = hit[:, self.objects :] & (instance.map.key_of_door >= 0)
        return replace(
            state,
            location=np.where(drifts, landing, state.location),
            locked=state.locked ^ flips,
        )

    def visible(self, instance: RoomInstance, state: RoomState, action: Ints, dropped: Mask) -> Mask:
        """Show what lies here and is held, and the locks of the own doors where sight is local."""
        seen = np.zeros((len(action), self.fields), dtype=bool)
        here = state.location == state.room[:, None]
        losers = np.flatnonzero(dropped)
        here[losers, self.objects - 1 - np.argmax(here[losers, ::-1], axis=1)] = False
        seen[:, : self.objects] = here | (state.location == self.rooms)
        if self.protocol.sight == "local":
            left = np.flatnonzero(state.room > 0)
            right = np.flatnonzero(state.room < self.doors)
            seen[left, self.objects + state.room[left] - 1] = True
            seen[right, self.objects + state.room[right]] = True
        seen[:, self.objects + self.doors :] = True
        return seen

    def weights(self, static: RoomMap) -> Floats:
        """Weigh the goal object 1, lockable doors and their keys .7, the rest .1."""
        weights = np.full((len(static.key_of_door), self.fields), 0.1)
        opens = static.door_of_key >= 0
        held = self.objects + self.doors
        weights[:, : self.keys][opens] = 0.7
        weights[:, held : held + self.keys][opens] = 0.7
        weights[:, self.objects : held][static.key_of_door >= 0] = 0.7
        weights[:, list(self.goal_fields)] = 1.0
        return weights

    def roles(self, static: RoomMap, place: Ints, action: Ints, rows: Rows = slice(None)) -> Floats:
        """Mark the fields that the action's precondition reads, and their ancestors."""
        roles, key_of_door = np.zeros((len(action), self.fields)), static.key_of_door[rows]
        picks, unlocks = self.rooms, self.rooms + self.objects
        places, held = unlocks + self.doors, self.objects + self.doors

        movers = np.flatnonzero((action >= 0) & (action < picks))
        movers = movers[np.abs(action[movers] - place[movers]) == 1]
        door = np.minimum(action[movers], place[movers])
        roles[movers, self.objects + door] = 1.0
        key = key_of_door[movers, door]
        keyed, key = movers[key >= 0], key[key >= 0]
        roles[keyed, held + key] = 0.5
        roles[keyed, key] = 0.5

        pickers = np.flatnonzero((action >= picks) & (action < unlocks))
        item = action[pickers] - picks
        roles[pickers, item] = 1.0
        roles[pickers, held + item] = 1.0

        openers = np.flatnonzero((action >= unlocks) & (action < places))
        door = action[openers] - unlocks
        roles[openers, self.objects + door] = 1.0
        key = key_of_door[openers, door]
        keyed, key = openers[key >= 0], key[key >= 0]
        roles[keyed, held + key] = 1.0
        roles[keyed, key] = 0.5

        placers = np.flatnonzero(action >= places)
        item = action[placers] - places
        roles[placers, held + item] = 1.0
        roles[placers, item] = 0.5
        return roles


def open_stretch(blocked: Mask, room: Ints) -> tuple[Ints, Ints]:
    """Return the lowest and highest room reachable from a room without passing a blocked door.

    Args:
        blocked: [row, door]; door d lies between rooms d and d + 1.
        room: [row].
    """
    doors = blocked.shape[1]
    shut, below = bits.pack(blocked), bits.single(room) - bits.ONE
    return bits.highest(shut & below) + 1, np.minimum(bits.lowest(shut & ~below), doors)
