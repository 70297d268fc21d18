"""Ceilings of the full-size worlds (ours): what no policy can exceed, by relaxing what it may know and do.

Success: an actor who knows every future draw of the world, chooses its actions freely and may stand still at
no charge; it is bound only by what no probe can change, the agent's slips and its quitting, by the world's
preconditions and by the horizon. It exceeds every policy seed by seed.

Accuracy: the table is made right in full before the last mutation; what that mutation and the agent's last
errors then undo out of sight, no policy can keep.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from envprobe_core import worlds
from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.agents.simulated import SLIP, quits
from envprobe_core.cells import Cell
from envprobe_core.engine.compiling import by_world, compiled, entry
from envprobe_core.engine.noise import IMPULSE, MUTATION, choice, draw, happens
from envprobe_core.engine.records import NONE
from envprobe_core.engine.running import Episodes
from envprobe_core.engine.sets import covers, has, plus
from envprobe_core.protocols import Protocol
from envprobe_core.worlds import RULES, make_world
from envprobe_core.worlds.base import Floats, Ints, Mask

NO_SLIP = -1


def has_ceiling(protocol: Protocol) -> bool:
    """Say whether the ceilings are computed: the clock runs, and A_H is terminal, of the same step."""
    return (protocol.clock, protocol.accuracy, protocol.pairing) == ("runs", "terminal", "same-step")


def success_ceiling(cell: Cell, seeds: Ints) -> Mask:
    """Say on which seeds any policy at all could complete the task, [seed].

    Args:
        cell: whatever its policy; its protocol is one that `has_ceiling`.
        seeds: [seed].
    """
    episodes = Episodes(cell, seeds)
    rules, done = episodes.setting.world, np.zeros(len(seeds), dtype=np.int8)
    if cell.world == "tooldag":
        reached = np.zeros((2, 1 << (rules.tools - 1)), dtype=np.int8)
        tools_within_reach(episodes.setting, episodes.block, *impulses(episodes), reached, done)
    else:
        reached = np.zeros((2, places(cell.world, rules), 1 << rules.keys), dtype=np.int8)
        goal_within_reach(episodes.setting, episodes.block, *impulses(episodes), reached, done)
    return done == 1


def impulses(episodes: Episodes) -> tuple[Ints, Ints]:
    """Return the action that the agent slips to, or NO_SLIP, and whether it still acts, [row, step] each."""
    shape = len(episodes.block), episodes.cell.regime.horizon
    slipped, acts = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64)
    draw_impulses(episodes.setting, episodes.block, slipped, acts)
    return slipped, acts


@entry
def draw_impulses(setting, block, slipped, acts):
    """Fill in what `impulses` returns."""
    habits = setting.habits
    strays = not habits.scribe  # which errs in other ways
    for row in range(len(block)):
        keys, over = block[row].keys, False
        for t in range(slipped.shape[1]):
            word = draw(keys[IMPULSE], t, SLIP)
            slips = strays and happens(word, habits.slip)
            slipped[row, t] = choice(word, setting.world.actions) if slips else NO_SLIP
            over = over or (strays and quits(habits, keys, t))
            acts[row, t] = not over


@compiled
def allowed(slipped, acts, action):
    """Say whether an action may be carried out at a step."""
    slips = slipped != NO_SLIP
    return acts and (not slips or slipped == action)


@entry
def tools_within_reach(setting, block, slipped, acts, reached, done):
    """Follow every set of loaded tools that some sequence of calls leads to.

    Args:
        block: episodes that have just begun, [row].
        slipped: as `impulses` returns it, [row, step].
        acts: as `impulses` returns it, [row, step].
        reached: paper: which sets are reached now and next, [2, set].
        done: [row], is filled in: whether the target can be called.
    """
    world = setting.world
    target = world.tools - 1  # it ends the search
    for row in range(len(block)):
        needs, key = block[row].task.needs, block[row].keys[MUTATION]
        now, following = reached[0], reached[1]
        now[:] = 0
        now[0] = 1
        for t in range(slipped.shape[1]):
            slip, may = slipped[row, t], acts[row, t]
            lost = 0
            for tool in range(target):
                if happens(draw(key, t, tool), world.mutation):
                    lost = plus(lost, tool)
            following[:] = 0
            for loaded in range(len(now)):
                if now[loaded]:
                    following[loaded & ~lost] = 1
                    for tool in range(world.tools):
                        ready = not has(loaded, tool) and covers(loaded, needs[tool])
                        if ready and allowed(slip, may, tool):
                            if tool == target:
                                done[row] = 1
                            else:
                                following[plus(loaded, tool) & ~lost] = 1
            now, following = following, now
            if done[row]:
                break


@entry
def goal_within_reach(setting, block, slipped, acts, reached, done):
    """Follow every place and set of keys ever held that some sequence of steps leads to.

    What nobody touches goes its own way: keys not yet held, the goal object, locks. A door or edge can be
    passed while it is open by itself, and for good once its key was held.

    Args:
        setting: the record of the cell.
        block: episodes that have just begun, [row].
        slipped: as `impulses` returns it, [row, step].
        acts: as `impulses` returns it, [row, step].
        reached: paper: which places and sets are reached now and next, [2, place, set].
        done: [row], is filled in: whether the goal can be reached.
    """
    world, sets = setting.world, reached.shape[2]
    for row in range(len(block)):
        task, state, exogenous = block[row].task, block[row].state, block[row].keys[MUTATION]
        now, following = reached[0], reached[1]
        now[:] = 0
        now[worlds.where(world, state), 0] = 1
        for t in range(slipped.shape[1]):
            slip, may = slipped[row, t], acts[row, t]
            if ends_here(world, state, slip, may, now):
                done[row] = 1
                break
            for place in range(len(now)):  # Numba compiles the same with a slice for three seconds
                for held in range(sets):
                    following[place, held] = now[place, held]
            for way in range(ways(world)):
                one, other, key, locked = joined(world, task, state, way)
                for held in range(sets):
                    if not locked or (key != NONE and has(held, key)):
                        if now[one, held] and allowed(slip, may, other):
                            following[other, held] = 1
                        if now[other, held] and allowed(slip, may, one):
                            following[one, held] = 1
            for key in range(world.keys):
                if allowed(slip, may, len(now) + key):
                    for held in range(sets):
                        if now[state.location[key], held]:
                            following[state.location[key], plus(held, key)] = 1
            now, following = following, now
            if ends_there(world, task, now):
                done[row] = 1
                break
            worlds.mutate(world, task, state, exogenous, t)


def _of(rooms: Any, graph: Any) -> Any:
    return by_world({RULES["objectstate"]: rooms, RULES["graphnav"]: graph})


@compiled
def door(world, task, state, way):
    """Return the rooms that a door joins, its key or NONE, and whether it is locked."""
    return way, way + 1, task.key_of_door[way], has(state.locked, way)


@compiled
def edge(world, task, state, way):
    """Return the nodes that an edge joins, its key or NONE, and whether it is locked."""
    return task.ends[way, 0], task.ends[way, 1], task.key_of_edge[way], state.locked[way] == 1


@compiled
def picks_up(world, state, slip, may, now):
    """Say whether the goal object can be picked up where it lies."""
    return allowed(slip, may, world.pick + world.goal) and now[state.location[world.goal]].any()


joined = _of(door, edge)
ways = _of(lambda world: world.doors, lambda world: world.edges)
ends_here = _of(picks_up, lambda world, state, slip, may, now: False)
ends_there = _of(lambda world, task, now: False, lambda world, task, now: now[task.target].any())


def places(world_name: str, rules: Any) -> int:
    """Return the number of rooms or nodes."""
    return int(rules.rooms if world_name == "objectstate" else rules.nodes)


def accuracy_ceiling(cell: Cell, seeds: Ints) -> Floats:
    """Return the greatest expected A_H that is left to any policy, [seed], given the instance.

    Per field: what the last mutation undoes out of sight, unless the agent's last overwrite falls on it,
    which is wrong as often as a random value is. Boxes and idle goal objects count as at risk unless a slip
    picked them up; keys and the goal object may all be held; as many locks are seen as one place shows.

    Args:
        cell: as in `success_ceiling`.
        seeds: [seed].
    """
    world = make_world(cell.world, cell.regime, cell.protocol)
    loss = np.zeros((len(seeds), world.fields))  # of tools none: a policy may leave nothing that could unload
    if cell.world != "tooldag":
        loss = _last_mutation(world, cell.profile, Episodes(cell, seeds).block.task)
    once = 1.0 - cell.profile.overwrite
    hit = 1.0 - (once**2 if cell.regime.observation == "distractor" else once)
    random_wrong = 1.0 - 1.0 / world.domain
    share = hit / world.fields
    return 1.0 - ((1.0 - share) * loss + share * random_wrong).mean(axis=1)


def _last_mutation(world: worlds.World, profile: AgentProfile, task: Any) -> Floats:
    """Return each field's least chance to be undone by the last mutation, [seed, field]."""
    rules, rooms = world.rules, world.name == "objectstate"
    number = rules.doors if rooms else rules.edges
    loss = np.zeros((len(task), world.fields))
    lockable = (task.key_of_door if rooms else task.key_of_edge)[:, :number] != NONE
    shown = np.zeros((len(task), places(world.name, rules)), dtype=np.int64)
    for way in range(number):
        for end in (0, 1):
            at = way + end if rooms else task.ends[:, way, end]
            shown[np.arange(len(task)), at] += lockable[:, way]
    hidden = lockable.sum(axis=1) - shown.max(axis=1)
    first = rules.objects if rooms else 1 + rules.keys
    rate = np.minimum(world.rates, 1.0 - world.rates)
    locks = slice(first, first + number)
    loss[:, locks] = rate[locks] * (hidden / number)[:, None]
    if rooms:
        idle = [thing for thing in range(rules.keys, rules.objects) if thing != rules.goal]
        held = min(1.0, world.regime.horizon * profile.slip / world.actions)
        loss[:, idle] = world.rates[idle] * (1.0 - 2.0 / rules.rooms) * (1.0 - held)
    return loss
