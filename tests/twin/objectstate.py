"""ObjectStateWorld: rooms in a row, doors between them, keys, boxes and goal objects."""

from collections.abc import Iterable
from dataclasses import dataclass

from .given import LOW, NONE, UNKNOWN, WAIT, bound32


@dataclass(frozen=True)
class Instance:
    """One seed's rooms: where objects (keys, boxes, goals) lie, and which key opens which door."""

    n_rooms: int
    n_keys: int
    n_boxes: int
    n_goals: int
    start_room: int
    object_room: list[int]
    key_of_door: list[int]  # -1: not lockable


class Layout:
    """The static task graph: fields location(o), lock(d), held(o); move, pick, unlock, place."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.key = instance.key_of_door
        self.rooms = n = instance.n_rooms
        self.doors = n - 1
        self.objects = instance.n_keys + instance.n_boxes + instance.n_goals
        self.goal = instance.n_keys + instance.n_boxes  # the first goal object
        # location(o) is field o
        self.lock = self.objects  # lock(d) is field lock + d
        self.held = self.objects + self.doors  # held(o) is field held + o
        self.fields = self.held + self.objects
        self.ranges = [n + 1] * self.objects + [2] * (self.doors + self.objects)
        # move(r) is action r
        self.pick = n
        self.unlock = self.pick + self.objects
        self.place = self.unlock + self.doors
        self.actions = self.place + self.objects
        self.goal_fields = [self.goal, self.held + self.goal]

    def weights(self) -> list[float]:
        """Return w: goal object 1, lockable doors and their keys .7, else .1."""
        w = [0.1] * self.fields
        for door, key in enumerate(self.key):
            if key != NONE:
                w[self.lock + door] = w[key] = w[self.held + key] = 0.7
        w[self.goal] = w[self.held + self.goal] = 1.0
        return w

    def roles(self, action: int, here: int) -> dict[int, float]:
        """Return d of an action: 1 for what it reads, .5 for what that depends on."""
        if action == WAIT:
            return {}
        if action < self.pick:  # move
            if abs(action - here) != 1:
                return {}
            door = min(action, here)
            key = self.key[door]
            role = {self.lock + door: 1.0}
            return role if key == NONE else role | {key: 0.5, self.held + key: 0.5}
        if action < self.unlock:  # pick
            thing = action - self.pick
            return {thing: 1.0, self.held + thing: 1.0}
        if action < self.place:  # unlock
            door = action - self.unlock
            key = self.key[door]
            role = {self.lock + door: 1.0}
            return role if key == NONE else role | {self.held + key: 1.0, key: 0.5}
        thing = action - self.place
        return {self.held + thing: 1.0, thing: 0.5}

    def reported_as_used(self, action: int, here: int) -> list[int]:
        """Return the fields an agent without the task graph calls used: those of role 1."""
        return [field for field, role in self.roles(action, here).items() if role == 1]


class World:
    """The truth."""

    def __init__(self, layout: Layout, rates: list[float], sight: str, observation: str) -> None:
        self.layout = layout
        self.local = sight == "local"
        self.drop = bound32(0.4) if observation == "partial" else 0
        self.bounds = [bound32(rate) for rate in rates]
        self.here = layout.instance.start_room
        self.location = list(layout.instance.object_room)
        self.locks = [int(key != NONE) for key in layout.key]
        self.success = False

    def gold(self) -> list[int]:
        """Return the true value of every field."""
        n = self.layout.rooms
        return self.location + self.locks + [int(room == n) for room in self.location]

    def act(self, action: int) -> bool:
        """Move, pick, unlock or place, and return whether that was valid."""
        layout, here, location, locks = self.layout, self.here, self.location, self.locks
        n = layout.rooms
        if action < layout.pick:
            valid = abs(action - here) == 1 and locks[min(action, here)] == 0
            if valid:
                self.here = action
        elif action < layout.unlock:
            thing = action - layout.pick
            valid = location[thing] == here
            if valid:
                location[thing] = n
                if thing == layout.goal:
                    self.success = True
        elif action < layout.place:
            door = action - layout.unlock
            valid = door in (here - 1, here) and locks[door] == 1
            valid = valid and location[layout.key[door]] == n
            if valid:
                locks[door] = 0
        else:
            thing = action - layout.place
            valid = location[thing] == n
            if valid:
                location[thing] = here
        return valid

    def mutate(self, words: list[int]) -> None:
        """Let loose objects drift and lockable doors flip."""
        layout, location, bounds, n = self.layout, self.location, self.bounds, self.layout.rooms
        for thing, room in enumerate(location):
            if room != n and words[thing] & LOW < bounds[thing]:
                location[thing] = (words[thing] >> 32) * n >> 32
        for door, key in enumerate(layout.key):
            field = layout.lock + door
            if key != NONE and words[field] & LOW < bounds[field]:
                self.locks[door] = 1 - self.locks[door]

    def observe(self, action: int, word: int) -> dict[int, int]:
        """Return what is seen: things lying here, own doors, what is held."""
        layout, here, n = self.layout, self.here, self.layout.rooms
        lying = [thing for thing, room in enumerate(self.location) if room == here]
        if lying and word & LOW < self.drop:
            lying.pop()
        seen = dict.fromkeys(lying, here)
        for thing, room in enumerate(self.location):
            seen[layout.held + thing] = int(room == n)
            if room == n:
                seen[thing] = n
        if self.local:
            for door in (here - 1, here):
                if 0 <= door < layout.doors:
                    seen[layout.lock + door] = self.locks[door]
        return seen


class Mind:
    """What the agent makes of its beliefs."""

    def __init__(self, layout: Layout, sight: str, graph_known: bool) -> None:
        self.layout = layout
        self.sees_locks = sight == "local"
        self.last_seen = [-1] * layout.rooms

    def implied(self, seen: dict[int, int], action: int, valid: bool, origin: int) -> dict[int, int]:
        """Return what the last own action implies."""
        layout = self.layout
        if action < layout.pick:
            if abs(action - origin) == 1 and not self.sees_locks:
                return {layout.lock + min(action, origin): 0 if valid else 1}
        elif action < layout.unlock:
            if not valid:
                return {action - layout.pick: UNKNOWN}
        elif action < layout.place and not self.sees_locks:
            door = action - layout.unlock
            key = layout.key[door]
            beside = door in (origin - 1, origin)
            if valid or (beside and key != NONE and seen[layout.held + key] == 1):
                return {layout.lock + door: 0}
        return {}

    def derived(self, value: list[int], seen: Iterable[int], told: int) -> dict[int, int]:
        """Return nothing: only tools have derived news."""
        return {}

    def remember(self, t: int, place: int, action: int, valid: bool | None) -> None:
        """Note when this room was last seen."""
        self.last_seen[place] = t

    def plan(self, value: list[int], here: int) -> int:
        """Return the next action, from beliefs alone."""
        layout = self.layout
        n, lock, held = layout.rooms, layout.lock, layout.held
        if value[held + layout.goal] == 1:
            return WAIT
        # the open stretch around the own room
        first = last = here
        while first > 0 and not self.blocked(value, first - 1):
            first -= 1
        while last < n - 1 and not self.blocked(value, last):
            last += 1
        # the goal object, or the key of the door on the way to it, or the key on the way to that
        sought = layout.goal
        for _ in range(2):
            room = value[sought] if sought != NONE else UNKNOWN
            if 0 <= room < first:
                sought = layout.key[first - 1]
            elif last < room < n:
                sought = layout.key[last]
        room = value[sought] if sought != NONE else UNKNOWN
        if not first <= room <= last:  # explore
            others = [r for r in range(first, last + 1) if r != here]
            if not others:
                return here + 1 if here < n - 1 else here - 1
            room = min(others, key=lambda r: (self.last_seen[r], r))
        if room == here:
            return layout.pick + sought
        # one step towards the room
        door, ahead = (here, here + 1) if room > here else (here - 1, here - 1)
        key = layout.key[door]
        if value[lock + door] == 1 and key != NONE and value[held + key] == 1:
            return layout.unlock + door
        return ahead

    def blocked(self, value: list[int], door: int) -> bool:
        """Return whether a door is believed locked and its key not believed held."""
        key = self.layout.key[door]
        key_held = key != NONE and value[self.layout.held + key] == 1
        return value[self.layout.lock + door] == 1 and not key_held
