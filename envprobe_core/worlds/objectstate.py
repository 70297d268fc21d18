"""ObjectStateWorld: rooms in a row, locked doors with keys, objects that drift.

Description: fetch the goal object, the first of the goals, through doors that may be locked.

| field | type | value |
|---|---|---|
| `location(o)` | spatial | the room in which object o lies, or that it is held |
| `lock(d)` | spatial | whether door d, between rooms d and d + 1, is locked |
| `held(o)` | procedural | whether object o is held |

| action | valid if | effect |
|---|---|---|
| `move(r)` | room r is next door, and the door between is open | the agent is in room r |
| `pick(o)` | object o lies in the own room | o is held |
| `unlock(d)` | the own room has door d, which is locked, and its key is held | d is open |
| `place(o)` | object o is held | o lies in the own room |

Observation: the own room, what lies in it, now and then without the last, and what is held; the locks of its
doors, but not as released.

Mutation: an object that nobody holds lands in a uniformly drawn room; a door that has a key opens or locks.
As released keys alone drift.
"""

import numpy as np

from envprobe_core.compiled.noise import choice, draw, happens, numbered
from envprobe_core.compiled.numba_support import inline
from envprobe_core.compiled.records import (
    NONE,
    TEXT,
    Int,
    dtype_of,
    fill,
    has_bit,
    overlook,
    see,
    without_bit,
)
from envprobe_core.protocols import Protocol
from envprobe_core.regimes import Regime
from envprobe_core.worlds.base import PROCEDURAL, SPATIAL, World, draw_locks

NAME, TITLE, CODE = "objectstate", "ObjectStateWorld", 2
ROOMS, LOCKED_DOORS = (5, 10, 20), (1, 3, 6)  # by complexity, by density
RATES = {"mean": (0.02, 0.10, 0.30), "released": (0.0, 0.15, 0.35)}  # released: of keys alone
MOST_DOORS, MOST_KEYS, MOST_OBJECTS = ROOMS[-1] - 1, 6, 14


TASK = dtype_of(
    ("key_of_door", Int, MOST_DOORS), ("door_of_key", Int, MOST_KEYS),
    ("start_room", Int), ("object_room", Int, MOST_OBJECTS),
)  # fmt: skip
"""Which key opens which door (NONE: it has no lock, or it opens nothing); for viewers, where all starts."""
STATE = dtype_of(("place", Int), ("location", Int, MOST_OBJECTS), ("locked", np.int64))
"""Own room, the room of every object (`rooms` = held), and which doors are locked, as a set."""


def describe(regime: Regime, protocol: Protocol) -> World:
    """Build the world of a regime: 5, 10 or 20 rooms with 1, 3 or 6 locked doors, never more than keys."""
    rooms = ROOMS[regime.complexity]
    keys, boxes = min(MOST_KEYS, max(2, rooms // 3)), max(1, rooms // 4)
    goals, doors = min(3, boxes), rooms - 1
    objects, locks, goal = keys + boxes + goals, min(LOCKED_DOORS[regime.density], keys), keys + boxes
    held, unlock = objects + doors, rooms + objects
    everything_moves = protocol.rates == "mean"
    drifting, flipping = (objects, locks) if everything_moves else (keys, 0)
    sorts = (("key", keys), ("box", boxes), ("goal", goals))
    labels = [f"{sort} {number}" for sort, count in sorts for number in range(count)]
    fields = [
        *((f"location({label})", SPATIAL, rooms + 1, item < drifting) for item, label in enumerate(labels)),
        *((f"lock({door})", SPATIAL, 2, flipping > 0) for door in range(doors)),
        *((f"held({label})", PROCEDURAL, 2, False) for label in labels),
    ]
    actions = [
        *(f"move({room})" for room in range(rooms)),
        *(f"pick({label})" for label in labels),
        *(f"unlock({door})" for door in range(doors)),
        *(f"place({label})" for label in labels),
    ]
    rules = {
        "rooms": rooms,
        "keys": keys,
        "boxes": boxes,
        "goals": goals,
        "objects": objects,  # keys, boxes, goals
        "doors": doors,  # door d lies between rooms d and d + 1
        "locks": locks,  # lockable doors; the first keys open them, from the left
        "goal": goal,  # the object to fetch
        "held": held,  # the first field of what is held; locations come first, locks at `objects`
        "pick": rooms,  # the first action of each kind; moves come first
        "unlock": unlock,
        "place": unlock + doors,
        "drifting": drifting,  # how many objects drift, and how many lockable doors flip
        "flipping": flipping,
    }
    return World((NAME, TITLE, CODE), regime, protocol, RATES, fields, actions, (goal, held + goal), rules)


@inline
def create(world, task, state, key):
    """Draw locks and places so that each key lies where it can be reached before its door; all are locked."""
    first_turn = 1 + world.doors
    first_place = first_turn + 2 * world.locks
    task.start_room = 0 if world.instances != TEXT else choice(numbered(key, 0), world.rooms)
    for item in range(world.objects):
        task.object_room[item] = choice(numbered(key, first_place + item), world.rooms)
    if world.instances == TEXT:
        other = choice(numbered(key, first_place + world.goal), world.rooms - 1)
        task.object_room[world.goal] = other + (other >= task.start_room)

    state.locked = draw_locks(key, 1, world.doors, world.locks, task.key_of_door, task.door_of_key)
    still = state.locked
    for turn in range(world.locks):  # put the key of one more door where it can be reached by now
        side, spot = numbered(key, first_turn + 2 * turn), numbered(key, first_turn + 2 * turn + 1)
        lowest, highest = open_stretch(world, still, task.start_room)
        left = lowest > 0 and (highest == world.doors or choice(side, 2) == 0)
        door = lowest - 1 if left else highest
        task.object_room[task.key_of_door[door]] = lowest + choice(spot, highest - lowest + 1)
        still = without_bit(still, door)

    state.place = task.start_room
    for item in range(world.objects):
        state.location[item] = task.object_room[item]


@inline
def open_stretch(world, shut, room):
    """The lowest and the highest room that can be reached from a room past no door of the set."""
    lowest = highest = room
    while lowest > 0 and not has_bit(shut, lowest - 1):
        lowest -= 1
    while highest < world.doors and not has_bit(shut, highest):
        highest += 1
    return lowest, highest


@inline
def weigh(world, task, weight):
    """Weigh the goal object 1, lockable doors and their keys .7, the rest .1."""
    fill(weight, 0.1)
    for key in range(world.locks):
        weight[world.objects + task.door_of_key[key]] = weight[key] = weight[world.held + key] = 0.7
    weight[world.goal] = weight[world.held + world.goal] = 1.0


@inline
def reveal(world, task, state, gold):
    """Write the true value of every field."""
    for item in range(world.objects):
        gold[item] = state.location[item]
        gold[world.held + item] = state.location[item] == world.rooms
    for door in range(world.doors):
        gold[world.objects + door] = has_bit(state.locked, door)


@inline
def succeeded(world, task, state):
    """Whether the goal object is held."""
    return state.location[world.goal] == world.rooms


@inline
def act(world, task, state, action):
    """Move, pick up, unlock or put down; return whether that was valid."""
    picks = world.pick <= action < world.unlock
    if picks or action >= world.place:
        item = action - (world.pick if picks else world.place)
        if state.location[item] != (state.place if picks else world.rooms):
            return False
        state.location[item] = world.rooms if picks else state.place
        return True
    door = door_of(world, state.place, action)
    if door == NONE:
        return False
    if action < world.pick:
        if has_bit(state.locked, door):
            return False
        state.place = action
        return True
    key, beside = task.key_of_door[door], state.place - 1 <= door <= state.place
    if world.instances != TEXT and beside and not has_bit(state.locked, door):
        return True
    if not beside or not has_bit(state.locked, door) or key == NONE or state.location[key] != world.rooms:
        return False
    state.locked = without_bit(state.locked, door)
    return True


@inline
def door_of(world, room, action):
    """The door that an action taken in a room passes or unlocks; NONE if there is none."""
    if 0 <= action < world.pick and abs(action - room) == 1:
        return min(action, room)
    return action - world.unlock if world.unlock <= action < world.place else NONE


@inline
def mutate(world, task, state, key, tick):
    """Let loose objects drift and lockable doors flip."""
    for item in range(world.drifting):
        if state.location[item] != world.rooms:
            word = draw(key, tick, item)
            if happens(word, world.mutation):
                state.location[item] = choice(word, world.rooms)
    for lock in range(world.flipping):
        door = task.door_of_key[lock]
        if happens(draw(key, tick, world.objects + door), world.mutation):
            state.locked ^= 1 << door


@inline
def show(world, task, state, action, word, observation):
    """Show what lies here, perhaps not the last, and is held; where sight is local the own doors' locks."""
    for item in range(world.objects):
        if state.location[item] == state.place:
            see(observation, item, state.place)
    if observation.count > 0 and happens(word, world.drop):
        overlook(observation)
    for item in range(world.objects):
        is_held = state.location[item] == world.rooms
        if is_held:
            see(observation, item, world.rooms)
        see(observation, world.held + item, is_held)
    if world.sight == TEXT:
        for door in range(max(state.place - 1, 0), min(state.place + 1, world.doors)):
            see(observation, world.objects + door, has_bit(state.locked, door))


@inline
def roles(world, task, place, action, d):
    """Write the dependency role of every field: 1 what the action reads, .5 what that depends on."""
    uses(world, task, place, action, d)
    door = door_of(world, place, action)
    if action >= world.place:
        d[action - world.place] = 0.5
    elif door != NONE and task.key_of_door[door] != NONE:
        key = task.key_of_door[door]
        d[key] = 0.5
        if action < world.pick:
            d[world.held + key] = 0.5


@inline
def uses(world, task, place, action, used):
    """Mark what the action's precondition reads; the agent knows that without the graph."""
    fill(used, 0)
    door = door_of(world, place, action)
    if door != NONE:
        used[world.objects + door] = 1
        if action >= world.unlock and task.key_of_door[door] != NONE:
            used[world.held + task.key_of_door[door]] = 1
    elif action >= world.place:
        used[world.held + action - world.place] = 1
    elif action >= world.pick:
        used[action - world.pick] = used[world.held + action - world.pick] = 1
