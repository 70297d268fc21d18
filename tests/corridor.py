"""CorridorWorld: a corridor of rooms with one switch at its near end, as a world of somebody's own.

Description: throw the switch, then walk to the far end, whose door is open while the switch is on.
Fields: the agent's room, whether the switch is on, whether the far end was reached.
Actions: `left`, `right`, `throw` (valid in the first room).
Observations: the own room; the switch, in the first room alone.
Mutation: the switch goes off by itself.
"""

import numpy as np

from envprobe_core.compiled.noise import draw, happens
from envprobe_core.compiled.numba_support import inline
from envprobe_core.compiled.records import WAIT, Int, add, dtype_of, fill, see
from envprobe_core.protocols import Protocol
from envprobe_core.regimes import Regime
from envprobe_core.worlds.base import SPATIAL, World

NAME, TITLE, CODE = "corridor", "CorridorWorld", 4
ROOMS = (4, 6, 9)  # by complexity
RATES = {"mean": (0.02, 0.10, 0.30), "released": (0.0, 0.10, 0.25)}
LEFT, RIGHT, THROW = range(3)
PLACE, SWITCH, REACHED = range(3)

TASK = dtype_of(("rooms", np.int64))
STATE = dtype_of(("place", Int), ("on", Int), ("reached", Int))
MIND = dtype_of(("steps", Int))


def describe(regime: Regime, protocol: Protocol) -> World:
    """The world of a regime: 4, 6 or 9 rooms."""
    rooms = ROOMS[regime.complexity]
    fields = [("room", SPATIAL, rooms, False), ("switch", SPATIAL, 2, True), ("reached", SPATIAL, 2, False)]
    actions = ["left", "right", "throw"]
    return World((NAME, TITLE, CODE), regime, protocol, RATES, fields, actions, [REACHED], {"rooms": rooms})


@inline
def create(world, task, state, key):
    """The agent in the first room, the switch off."""
    task.rooms = world.rooms
    state.place = state.on = state.reached = 0


@inline
def weigh(world, task, weight):
    """The switch and the own room matter alike."""
    weight[PLACE] = weight[SWITCH] = weight[REACHED] = 1.0


@inline
def reveal(world, task, state, gold):
    """The true value of every field."""
    gold[PLACE], gold[SWITCH], gold[REACHED] = state.place, state.on, state.reached


@inline
def succeeded(world, task, state):
    """Whether the far end was reached."""
    return state.reached == 1


@inline
def act(world, task, state, action):
    """A move or a throw; whether it was valid."""
    if action == THROW:
        if state.place > 0:
            return False
        state.on = 1
        return True
    there = state.place + (1 if action == RIGHT else -1)
    if there < 0 or there >= world.rooms or (there == world.rooms - 1 and not state.on):
        return False
    state.place = there
    if there == world.rooms - 1:
        state.reached = 1
    return True


@inline
def mutate(world, task, state, key, tick):
    """The switch goes off at its rate."""
    if happens(draw(key, tick, 0), world.mutation):
        state.on = 0


@inline
def show(world, task, state, action, word, observation):
    """The own room, and in the first one the switch."""
    observation.place = state.place
    see(observation, PLACE, state.place)
    see(observation, REACHED, state.reached)
    if state.place == 0:
        see(observation, SWITCH, state.on)


@inline
def roles(world, task, place, action, d):
    """What the proposed action reads: the own room, and the switch before the last step."""
    fill(d, 0.0)
    if action != WAIT:
        d[PLACE], d[SWITCH] = 1.0, 1.0 if action == RIGHT else 0.5


@inline
def uses(world, task, place, action, used):
    """What the agent knows an action to use."""
    fill(used, 0)
    used[PLACE] = 1


@inline
def meet(world, task, mind):
    """Nothing is remembered at first."""
    mind.steps = 0


@inline
def remember(world, task, mind, observation, t):
    """Steps are counted."""
    mind.steps += 1


@inline
def conclude(world, task, observation, news):
    """What its own action's outcome tells beyond what is seen: a valid throw leaves the switch on."""
    if observation.action == THROW and observation.valid:
        add(news, SWITCH, 1)


@inline
def plan(world, task, table, mind, place):
    """The action that the agent proposes: throw the switch where it is not believed on, else go right."""
    if table.value[SWITCH] == 1:
        return RIGHT
    return THROW if place == 0 else LEFT
