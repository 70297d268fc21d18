"""Instances of a world without an agent: their task graphs, states in which actions are tried, what mutates.

The world is held still: nothing mutates while an action is tried.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core import worlds
from envprobe_core.agents import simulated as agent
from envprobe_core.engine import loop
from envprobe_core.engine.compiling import entry
from envprobe_core.engine.noise import INSTANCE, MUTATION, STREAMS, draw, happens, stream_keys
from envprobe_core.engine.recording import Trajectory
from envprobe_core.engine.records import NO_ACTION, NONE, Word, filled, new, record
from envprobe_core.worlds import MODULES, RULES
from envprobe_core.worlds.base import Floats, Ints, Mask, Values, World

INSTANCES = {name: record(("task", module.TASK), ("state", module.STATE)) for name, module in MODULES.items()}


def rules_of(world: World) -> Any:
    """Return a world's rules as compiled functions take them."""
    return filled(RULES[world.name], world.rules)


def _keys() -> Any:
    """Make room for the keys of a seed (an array made in compiled code takes a second to compile)."""
    return np.zeros(STREAMS, Word)


def instances(world: World, seeds: npt.ArrayLike) -> Any:
    """Create the instance of each seed, [row]: its `task` graph and, as at step 0, its `state`."""
    given = np.asarray(seeds, np.int64)
    instance = new(INSTANCES[world.name], len(given))
    _create(rules_of(world), instance, _keys(), given)
    return instance


def states_of(world: World, gold: Values, place: npt.NDArray[np.integer]) -> Any:
    """Rebuild states, [...] as an instance's `state`, from all fields' true values and the agent's place.

    Args:
        gold: [..., field], as recorded.
        place: [...], the agent's true room or node (ignored on tools).
    """
    rules, states = world.rules, new(MODULES[world.name].STATE, *gold.shape[:-1])
    if world.name == "tooldag":
        states["loaded"] = as_set(gold[..., : rules.tools] == 1)
        states["complete"] = as_set(gold[..., 2 * rules.tools :] == 1)
    elif world.name == "objectstate":
        states["room"] = place
        states["location"][..., : rules.objects] = gold[..., : rules.objects]
        states["locked"] = as_set(gold[..., rules.objects : rules.held] == 1)
    else:
        first_edge = 1 + rules.keys
        states["node"] = gold[..., 0]
        states["location"][..., : rules.keys] = gold[..., 1:first_edge]
        states["locked"][..., : rules.edges] = gold[..., first_edge:]
    return states


def as_set(inside: Mask) -> Ints:
    """Return sets [..., item] as whole numbers [...] whose bit i says whether item i is inside."""
    return inside @ (1 << np.arange(inside.shape[-1], dtype=np.int64))


def members(sets: Ints, count: int) -> Mask:
    """Say which of the first `count` items are in each set: the opposite of `as_set`, [..., item]."""
    return (np.asarray(sets)[..., None] >> np.arange(count)) & 1 == 1


def act(world: World, instance: Any, states: Any, action: Ints) -> tuple[Any, Mask]:
    """Carry out an action in every state; return the states that follow, and which actions were valid.

    Args:
        instance: [row].
        states: [row, state].
        action: [row, state]; negative: none.
    """
    return _tried(world, instance, states, action)[:2]


def after_actions(world: World, instance: Any, recording: Trajectory) -> Values:
    """Return gold after each executed action and before mutation, [row, step, field].

    Every state is rebuilt from recorded gold and the recorded action carried out again.
    """
    before = states_of(world, recording.gold[:, :-1], recording.place[:, :-1])
    action = np.where(recording.acted, recording.action, NO_ACTION)
    return _tried(world, instance, before, action)[2]


def exogenous(world: World, instance: Any, recording: Trajectory) -> Mask:
    """Say which fields mutation changed between t and t + 1, [row, step, field]; False after the end."""
    running = np.arange(recording.acted.shape[1])[None, :] < recording.steps[:, None]
    return (after_actions(world, instance, recording) != recording.gold[:, 1:]) & running[:, :, None]


def mutable_fields(world: World, instance: Any) -> Mask:
    """Say which fields can mutate by themselves, [row, field].

    Doors and edges without a lock never do; a tool that is not loaded and an object that is held are
    mutable, though at that moment nothing can happen to them.
    """
    mutable = np.tile(world.rates > 0, (len(instance), 1))
    if world.name == "objectstate":
        first, locks = world.rules.objects, instance.task.key_of_door[:, : world.rules.doors]
    elif world.name == "graphnav":
        first, locks = 1 + world.rules.keys, instance.task.key_of_edge[:, : world.rules.edges]
    else:
        return mutable
    mutable[:, first : first + locks.shape[1]] &= locks != NONE
    return mutable


def drawn_mutation(world: World, seeds: npt.ArrayLike) -> Floats:
    """Measure how often the draws of a seed let a mutable field mutate, [seed].

    The share of pairs (mutable field, world tick) with a mutation event, over the ticks 0..H-1 that an
    episode may pass; 0 where no field can mutate. An event need not change anything: the tool may not be
    loaded, the object may be held or land where it lay.
    """
    mutable = mutable_fields(world, instances(world, seeds))
    hits = np.zeros(len(mutable), dtype=np.int64)
    _count_events(rules_of(world), _keys(), np.asarray(seeds, np.int64), mutable, world.regime.horizon, hits)
    return hits / np.maximum(mutable.sum(axis=1) * world.regime.horizon, 1)


def effective_mutation(world: World, seeds: npt.ArrayLike, recording: Trajectory) -> tuple[Floats, Floats]:
    """Measure what mutation changed in recorded episodes in which the clock ran at every step, [row] each.

    Returns:
        The share of mutable fields that changed in a tick (0 where none can), and the share of all fields
        (fields that follow from others, as *dependency satisfied*, count here).
    """
    instance = instances(world, seeds)
    mutable, moved = mutable_fields(world, instance), exogenous(world, instance, recording)
    changed, everywhere = (moved & mutable[:, None, :]).sum(axis=(1, 2)), moved.sum(axis=(1, 2))
    ticks = np.maximum(recording.steps, 1)
    return changed / np.maximum(mutable.sum(axis=1) * ticks, 1), everywhere / (world.fields * ticks)


def informative(setting: Any, instance: Any, seeds: Ints, recording: Trajectory) -> Mask:
    """Say which probes of the engine's recorded episodes the public code calls useful, [row, step]."""
    useful = np.zeros(recording.probe.shape, np.bool_)
    _inform(setting, instance, _keys(), seeds, recording.belief, recording.gold, recording.probe, useful)
    return useful


def gold_of(world: World, instance: Any, states: Any) -> Values:
    """Return the true value of every field in every state [row, state], [row, state, field]."""
    return _tried(world, instance, states)[2]


def succeeded(world: World, instance: Any, states: Any) -> Mask:
    """Say which states [row, state] are at the goal."""
    return _tried(world, instance, states)[3]


def _tried(
    world: World, instance: Any, states: Any, action: Ints | int = NO_ACTION
) -> tuple[Any, Mask, Values, Mask]:
    """Return the states after actions, which of these were valid, gold, and which states are at the goal."""
    after, valid, reached = np.array(states, order="C"), *np.zeros((2, *states.shape), np.bool_)
    gold = np.zeros((*states.shape, world.fields), np.int8)
    actions = np.ascontiguousarray(np.broadcast_to(action, states.shape), np.int64)
    _try(rules_of(world), instance, after, actions, valid, gold, reached)
    return after, valid, gold, reached


@entry
def _create(world, instance, keys, seeds):
    for row in range(len(seeds)):
        stream_keys(seeds[row], world.code, keys)
        worlds.create(world, instance[row].task, instance[row].state, keys[INSTANCE])


@entry
def _try(world, instance, states, action, valid, gold, reached):
    for row in range(len(states)):
        task = instance[row].task
        for i in range(states.shape[1]):
            if action[row, i] >= 0:
                valid[row, i] = worlds.act(world, task, states[row, i], action[row, i])
            worlds.reveal(world, task, states[row, i], gold[row, i])
            reached[row, i] = worlds.succeeded(world, task, states[row, i])


@entry
def _inform(setting, instance, keys, seeds, belief, gold, probe, useful):
    for row in range(len(probe)):
        stream_keys(seeds[row], setting.world.code, keys)
        for t in range(probe.shape[1]):
            if probe[row, t] != NONE:
                task, field = instance[row].task, probe[row, t]
                named = agent.names_goal(setting.habits, keys, t)
                useful[row, t] = loop.informs(setting, task, belief[row, t], gold[row, t], field, named)


@entry
def _count_events(world, keys, seeds, mutable, ticks, hits):
    """Count the mutation events of a seed's mutable fields over the first ticks, [row]."""
    for row in range(len(seeds)):
        stream_keys(seeds[row], world.code, keys)
        for tick in range(ticks):
            for field in range(world.fields):
                if mutable[row, field] and happens(draw(keys[MUTATION], tick, field), world.mutation):
                    hits[row] += 1
