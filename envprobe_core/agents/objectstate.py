"""How the simulated agent reads and plans on ObjectStateWorld."""

from __future__ import annotations

import numpy as np

from envprobe_core.agents.base import Implied, join
from envprobe_core.belief import BeliefTable
from envprobe_core.worlds.base import UNKNOWN, WAIT, Ints, Mask, Observation
from envprobe_core.worlds.objectstate import ObjectStateWorld, RoomMap, open_stretch

REDIRECTIONS = 2
NEVER = -1


class RoomMind:
    """Heads for the goal object, fetches keys for doors on the way, explores when it does not know."""

    def __init__(self, world: ObjectStateWorld, static: RoomMap) -> None:
        """Take the static structure: rooms, doors and which key opens what."""
        self.world = world
        self.static = static
        self.last_seen = np.full((len(static.key_of_door), world.rooms), NEVER, dtype=np.int64)

    def remember(self, step: int, observation: Observation) -> None:
        """Note the room it is in."""
        self.last_seen[np.arange(len(observation.place)), observation.place] = step

    def implied(self, observation: Observation) -> Implied:
        """Conclude from validity which doors are open, and that an object is not where it was sought."""
        world = self.world
        action, valid = observation.action, observation.valid
        picks, unlocks = world.rooms, world.rooms + world.objects
        places, held = unlocks + world.doors, world.objects + world.doors

        missed = np.flatnonzero((action >= picks) & (action < unlocks) & ~valid)
        absent = missed, action[missed] - picks, np.full(len(missed), UNKNOWN, dtype=np.int8)
        if world.protocol.sight == "local":
            return absent

        moved = np.flatnonzero((action >= 0) & (action < picks))
        moved = moved[np.abs(action[moved] - observation.came_from[moved]) == 1]
        door = world.objects + np.minimum(action[moved], observation.came_from[moved])
        passed = moved, door, (~valid[moved]).astype(np.int8)

        tried = np.flatnonzero((action >= unlocks) & (action < places))
        door = action[tried] - unlocks
        key = self.static.key_of_door[tried, door]
        has_key = (key >= 0) & (observation.value[tried, held + np.maximum(key, 0)] == 1)
        own = observation.came_from[tried]
        opened = valid[tried] | (has_key & ((door == own) | (door == own - 1)))
        unlocked = tried[opened], world.objects + door[opened]
        return join(absent, passed, (*unlocked, np.zeros(opened.sum(), dtype=np.int8)))

    def plan(self, table: BeliefTable, observation: Observation) -> Ints:
        """Return the next action towards the goal object."""
        world, here = self.world, observation.place
        rows = np.arange(len(here))
        locations = table.value[:, : world.objects].astype(np.int64)
        locks = table.value[:, world.objects : world.objects + world.doors] == 1
        holds = table.value[:, world.objects + world.doors :] == 1
        key_of_door = self.static.key_of_door
        key_held = (key_of_door >= 0) & holds[rows[:, None], np.maximum(key_of_door, 0)]
        lowest, highest = open_stretch(locks & ~key_held, here)

        sought = np.full(len(here), world.goal)
        for _ in range(REDIRECTIONS):
            target = locations[rows, sought]
            beyond = is_room(target, world) & ((target < lowest) | (target > highest))
            door = np.where(target > highest, highest, lowest - 1)
            key = key_of_door[rows, np.where(beyond, door, 0)]
            sought = np.where(beyond & (key >= 0), key, sought)
        target = locations[rows, sought]
        found = is_room(target, world) & (target >= lowest) & (target <= highest)
        lost = np.flatnonzero(~found)
        target[lost] = self._explore(lost, lowest[lost], highest[lost], here[lost])

        door = np.where(target > here, here, here - 1)
        ahead = np.clip(door, 0, world.doors - 1)
        unlocks = locks[rows, ahead] & key_held[rows, ahead]
        action = np.where(unlocks, world.rooms + world.objects + ahead, here + np.sign(target - here))
        action = np.where(target == here, world.rooms + sought, action)
        return np.where(holds[:, world.goal], WAIT, action)

    def _explore(self, rows: Ints, lowest: Ints, highest: Ints, here: Ints) -> Ints:
        rooms = np.arange(self.world.rooms)
        candidates = (rooms >= lowest[:, None]) & (rooms <= highest[:, None])
        candidates &= rooms != here[:, None]
        oldest = np.argmin(np.where(candidates, self.last_seen[rows], np.iinfo(np.int64).max), axis=1)
        neighbour = np.where(here < self.world.rooms - 1, here + 1, here - 1)
        return np.where(candidates.any(axis=1), oldest, neighbour)


def is_room(location: Ints, world: ObjectStateWorld) -> Mask:
    """Say which believed locations are rooms, neither unknown nor held."""
    return (location >= 0) & (location < world.rooms)
