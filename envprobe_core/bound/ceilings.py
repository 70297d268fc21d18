"""Ceilings of the full-size worlds: what no policy can exceed, by relaxing what a policy may know and do.

Success: an actor who knows every future draw of the world, chooses its actions freely and may stand still at
no charge; it is bound only by what no probe can change, the agent's slips and its quitting, by the world's
preconditions and by the horizon. It exceeds every policy seed by seed.

Accuracy: the table is made right in full before the last mutation; what that mutation and the agent's last
errors then undo out of sight, no policy can keep.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from envprobe_core import noise
from envprobe_core.noise import Stream
from envprobe_core.profiles import AgentProfile
from envprobe_core.protocols import Protocol
from envprobe_core.regimes import Regime
from envprobe_core.worlds import World, make_world
from envprobe_core.worlds.base import Floats, Ints, Mask
from envprobe_core.worlds.graphnav import GraphNavWorld
from envprobe_core.worlds.objectstate import ObjectStateWorld
from envprobe_core.worlds.tooldag import ToolDAGWorld

ROWS = 64  # seeds at a time
SLIP, QUIT, IMPULSES = 2, 3, 4  # of the stream IMPULSE (book/definitions.md)
NO_SLIP = -1


def has_ceiling(protocol: Protocol) -> bool:
    """Say whether the ceilings are computed: the clock runs, and A_H is terminal, of the same step."""
    return (protocol.clock, protocol.accuracy, protocol.pairing) == ("runs", "terminal", "same-step")


def success_ceiling(
    world_name: str, regime: Regime, protocol: Protocol, profile: AgentProfile, seeds: Ints
) -> Mask:
    """Say on which seeds any policy at all could complete the task, [seed].

    Args:
        world_name: one of the three worlds.
        regime: its regime.
        protocol: its protocol, one that `has_ceiling`.
        profile: the agent, for its slips and its quitting.
        seeds: [seed].
    """
    world = make_world(world_name, regime, protocol)
    reach: Any = _tools_within_reach if isinstance(world, ToolDAGWorld) else _goal_within_reach
    parts = [seeds[first : first + ROWS] for first in range(0, len(seeds), ROWS)]
    return np.concatenate([reach(world, part, *impulses(world, profile, part)) for part in parts])


def impulses(world: World, profile: AgentProfile, seeds: Ints) -> tuple[Ints, Mask]:
    """Return the action that the agent slips to, or NO_SLIP, and whether it still acts, [row, step] each."""
    key = noise.keys(seeds, world.code, Stream.IMPULSE)
    steps = world.regime.horizon
    draws = np.stack([noise.words(key, t, IMPULSES) for t in range(steps)], axis=1)
    slips = noise.low(draws[:, :, SLIP]) < noise.level32(profile.slip)
    slipped = np.where(slips, noise.high_choice(draws[:, :, SLIP], world.actions), NO_SLIP)
    quits = noise.low(draws[:, :, QUIT]) < noise.level32(profile.quit)
    quits[:, 0] = False
    return slipped, ~np.logical_or.accumulate(quits, axis=1)


def _allowed(slipped: Ints, acts: Mask, action: Ints | int) -> Mask:
    """Say where an action may be carried out at a step, [row]."""
    return acts & ((slipped == NO_SLIP) | (slipped == action))


def _tools_within_reach(world: ToolDAGWorld, seeds: Ints, slipped: Ints, acts: Mask) -> Mask:
    """Follow every set of loaded tools that some sequence of calls leads to."""
    n = world.tools - 1  # the target ends it
    needs = world.instances(seeds).map.needs_bits
    sets = np.arange(1 << n)
    ready = [(sets & needs[:, tool, None]) == needs[:, tool, None] for tool in range(n + 1)]
    key = noise.keys(seeds, world.code, Stream.MUTATION)
    reached = np.zeros((len(seeds), len(sets)), dtype=bool)
    reached[:, 0] = True
    done = np.zeros(len(seeds), dtype=bool)
    for t in range(world.regime.horizon):
        done |= _allowed(slipped[:, t], acts[:, t], n) & (reached & ready[n]).any(axis=1)
        called = reached.copy()
        for tool in range(n):
            may = _allowed(slipped[:, t], acts[:, t], tool)[:, None]
            from_, to = _halves(reached & ready[tool] & may, tool)[0], _halves(called, tool)[1]
            to |= from_
        reached = called
        lost = noise.low(noise.words(key, t, world.exposed)) < world.levels
        for tool in range(n):
            without, with_ = _halves(reached, tool)
            gone = lost[:, tool, None, None]
            without |= with_ & gone
            with_ &= ~gone
    return done


def _halves(sets: Mask, item: int) -> tuple[Mask, Mask]:
    """View the sets without and with an item, [row, higher, lower] each."""
    view = sets.reshape(len(sets), -1, 2, 1 << item)
    return view[:, :, 0], view[:, :, 1]


def _goal_within_reach(world: World, seeds: Ints, slipped: Ints, acts: Mask) -> Mask:
    """Follow every place and set of keys ever held that some sequence of steps leads to.

    What nobody touches goes its own way: keys not yet held, the goal object, locks. A door or edge can be
    passed while it is open by itself, and for good once its key was held.
    """
    instance = world.instances(seeds)
    rows, exogenous = np.arange(len(seeds)), noise.keys(seeds, world.code, Stream.MUTATION)
    ends, key_of_way, keys, start = _ways(world, instance)
    reached = np.zeros((len(seeds), _places(world), 1 << keys), dtype=bool)
    reached[rows, start, 0] = True
    sets, state = np.arange(1 << keys), world.start(instance)
    done = np.zeros(len(seeds), dtype=bool)
    for t in range(world.regime.horizon):
        slip, act = slipped[:, t], acts[:, t]
        if isinstance(world, ObjectStateWorld):
            may = _allowed(slip, act, world.rooms + world.goal)
            done |= may & reached[rows, state.location[:, world.goal]].any(axis=1)
        following = reached.copy()
        for way in range(ends.shape[1]):
            key = key_of_way[:, way]
            held = (sets >> np.maximum(key, 0)[:, None] & 1 == 1) & (key >= 0)[:, None]
            passable = held | ~state.locked[:, way, None]
            for one, other in (ends[:, way].T, ends[:, way, ::-1].T):
                may = _allowed(slip, act, other)[:, None]
                following[rows, other] |= reached[rows, one] & passable & may
        for key in range(keys):
            without = sets[sets >> key & 1 == 0]
            may = _allowed(slip, act, _places(world) + key)
            where = state.location[:, key]
            gained = reached[rows[:, None], where[:, None], without] & may[:, None]
            following[rows[:, None], where[:, None], without | 1 << key] |= gained
        reached = following
        if isinstance(world, GraphNavWorld):
            done |= reached[rows, instance.map.target].any(axis=1)
        state = world.mutate(
            instance, state, noise.words(exogenous, t, world.exposed), np.ones(len(seeds), bool)
        )
    return done


def _places(world: Any) -> int:
    return world.rooms if isinstance(world, ObjectStateWorld) else world.nodes


def _ways(world: Any, instance: Any) -> tuple[Ints, Ints, int, Ints]:
    """Return what each door or edge joins [row, way, 2], its key [row, way], the keys, the start [row]."""
    static = instance.map
    if isinstance(world, GraphNavWorld):
        return static.ends, static.key_of_edge, world.keys, static.start
    doors = np.arange(world.doors)
    ends = np.broadcast_to(np.stack([doors, doors + 1], axis=1), (len(instance.start_room), world.doors, 2))
    return ends, static.key_of_door, world.keys, instance.start_room


def accuracy_ceiling(
    world_name: str, regime: Regime, protocol: Protocol, profile: AgentProfile, seeds: Ints
) -> Floats:
    """Return the greatest expected A_H that is left to any policy, [seed], given the instance.

    Per field: what the last mutation undoes out of sight, unless the agent's last overwrite falls on it,
    which is wrong as often as a random value is. Boxes and idle goal objects count as at risk unless a slip
    picked them up; keys and the goal object may all be held; as many locks are seen as one place shows.
    """
    world = make_world(world_name, regime, protocol)
    loss = _last_mutation(world, profile, seeds)
    once = 1.0 - profile.overwrite
    hit = 1.0 - (once**2 if regime.observation == "distractor" else once)
    random_wrong = 1.0 - 1.0 / world.domain
    share = hit / world.fields
    return 1.0 - ((1.0 - share) * loss + share * random_wrong).mean(axis=1)


def _last_mutation(world: Any, profile: AgentProfile, seeds: Ints) -> Floats:
    """Return each field's least chance to be undone by the last mutation, [seed, field]."""
    loss = np.zeros((len(seeds), world.fields))
    if isinstance(world, ToolDAGWorld):
        return loss  # a policy may leave nothing loaded that could unload
    instance = world.instances(seeds)
    ends, key_of_way, _, _ = _ways(world, instance)
    lockable = key_of_way >= 0
    shown = np.zeros((len(seeds), _places(world)), dtype=np.int64)
    for way in range(ends.shape[1]):
        for end in (0, 1):
            shown[np.arange(len(seeds)), ends[:, way, end]] += lockable[:, way]
    hidden = lockable.sum(axis=1) - shown.max(axis=1)
    first = world.objects if isinstance(world, ObjectStateWorld) else 1 + world.keys
    rate = np.minimum(world.rates, 1.0 - world.rates)
    locks = slice(first, first + ends.shape[1])
    loss[:, locks] = rate[locks] * (hidden / ends.shape[1])[:, None]
    if isinstance(world, ObjectStateWorld):
        idle = [thing for thing in range(world.keys, world.objects) if thing != world.goal]
        held = min(1.0, world.regime.horizon * profile.slip / world.actions)
        loss[:, idle] = world.rates[idle] * (1.0 - 2.0 / world.rooms) * (1.0 - held)
    return loss
