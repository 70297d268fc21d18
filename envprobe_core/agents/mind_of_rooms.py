"""What the simulated agent makes of rooms: when it saw each, what it concludes, and its plan."""

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
    bits_from,
    dtype_of,
    earliest,
    failed,
    fill,
    has_bit,
    tried_recently,
    without_bit,
)
from envprobe_core.worlds.objectstate import ROOMS, door_of, open_stretch

REDIRECTIONS = 2  # from the goal object to a key, and from that key to another
NEVER = -1

MIND = dtype_of(("last_seen", Int, ROOMS[-1]))
"""When each room was last seen."""


@inline
def meet(world, task, mind):
    """Begin with no room seen."""
    fill(mind.last_seen, NEVER)


@inline
def remember(world, task, mind, observation, t):
    """Note the room it is in."""
    mind.last_seen[observation.place] = t


@inline
def conclude(world, task, observation, news):
    """An object is not where it was sought; where locks are not seen, an action tells that of its door."""
    action, valid, room = observation.action, observation.valid, observation.came_from
    if world.pick <= action < world.unlock:
        if not valid and observation.value[action - world.pick] == UNKNOWN:
            add(news, action - world.pick, UNKNOWN)
        return
    door = door_of(world, room, action)
    if door == NONE or world.sight == TEXT:
        return
    if action < world.pick:
        add(news, world.objects + door, 1 - valid)
        return
    key, beside = task.key_of_door[door], room - 1 <= door <= room
    if valid or (beside and key != NONE and observation.value[world.held + key] == 1):
        add(news, world.objects + door, 0)


@inline
def plan(world, task, table, mind, place):
    """Head for the goal object, for the key of a door on the way, or for the room seen longest ago."""
    value = table.value
    if value[world.held + world.goal] == 1:
        return WAIT
    locked = shut = bits_from(value, world.objects, world.doors)
    for key in range(world.locks):
        if value[world.held + key] == 1:
            shut = without_bit(shut, task.door_of_key[key])
    lowest, highest = open_stretch(world, shut, place)
    sought = choose_object(world, task, value, lowest, highest)
    target = value[sought]
    if target == place:
        return world.pick + sought
    if not lowest <= target <= highest:
        target = place + 1 if place < world.doors else place - 1  # shut in, it tries a neighbour
        if lowest < highest:
            stretch = ((2 << (highest - lowest)) - 1) << lowest
            target = earliest(without_bit(stretch, place), mind.last_seen)
    ahead = place + 1 if target > place else place - 1
    door = min(place, ahead)
    return world.unlock + door if has_bit(locked & ~shut, door) else ahead


@inline
def choose_object(world, task, value, lowest, highest):
    """What to fetch first: the goal object, or the key of the door in the way."""
    sought = world.goal
    for _ in range(REDIRECTIONS):
        target, door = value[sought], NONE
        if 0 <= target < lowest:
            door = lowest - 1
        elif highest < target < world.rooms:
            door = highest
        if door != NONE and task.key_of_door[door] != NONE:
            sought = task.key_of_door[door]
    return sought


@inline
def wander(world, task, observation, recent, again, lost, word):
    """Choose as the scribe does: the goal or a key in view, the last action, a stray, on to the right."""
    value, place = observation.value, observation.place
    if value[world.goal] == place:
        return world.pick + world.goal
    for key in range(world.keys):
        if value[key] == place:
            return world.pick + key
    if again != NO_ACTION:
        return again
    if lost:
        return choice(word, world.rooms)
    if place < world.doors and not failed(recent, place + 1):
        return place + 1
    if place < world.doors and not tried_recently(recent, world.unlock + place):
        return world.unlock + place
    return place - 1 if place > 0 else place + 1
