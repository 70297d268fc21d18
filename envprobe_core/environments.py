"""How fast worlds change: from the draws of real seeds, and from what recordings of episodes show."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core import measures
from envprobe_core.engine.compiling import entry
from envprobe_core.engine.noise import MUTATION, STREAMS, draw, happens, stream_keys
from envprobe_core.engine.recording import Trajectory
from envprobe_core.engine.records import NONE, UNKNOWN, Word
from envprobe_core.instances import after_actions, instances, rules_of
from envprobe_core.worlds.base import Floats, Mask, World


def mutable_fields(world: World, instance: Any) -> Mask:
    """Say which fields can mutate by themselves, [row, field].

    Doors and edges without a lock never do; a tool that is not loaded and an object that is held are
    mutable, though at that moment nothing can happen to them.

    Args:
        world: the world.
        instance: [row].
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

    Args:
        world: the world, built for its regime and protocol.
        seeds: [seed].
    """
    mutable = mutable_fields(world, instances(world, seeds))
    hits = np.zeros(len(mutable), dtype=np.int64)
    _count_events(rules_of(world), np.asarray(seeds, np.int64), mutable, world.regime.horizon, hits)
    return hits / np.maximum(mutable.sum(axis=1) * world.regime.horizon, 1)


@entry
def _count_events(world, seeds, mutable, ticks, hits):
    """Count the mutation events of a seed's mutable fields over the first ticks, [row]."""
    keys = np.zeros(STREAMS, Word)
    for row in range(len(seeds)):
        stream_keys(seeds[row], world.code, keys)
        for tick in range(ticks):
            for field in range(world.fields):
                if mutable[row, field] and happens(draw(keys[MUTATION], tick, field), world.mutation):
                    hits[row] += 1


def effective_mutation(world: World, seeds: npt.ArrayLike, recording: Trajectory) -> tuple[Floats, Floats]:
    """Measure what mutation really changed in recorded episodes without probes, [row] each.

    Every state is rebuilt from gold, the executed action is carried out again, and what then still differs
    from gold one step later is the work of mutation.

    Args:
        world: the world.
        seeds: [row], the seeds of the recording.
        recording: episodes in which the world's clock ran at every step.

    Returns:
        The share of mutable fields that changed in a tick (0 where none can), and the share of all fields
        (fields that follow from others, as *dependency satisfied*, count here).
    """
    instance = instances(world, seeds)
    mutable = mutable_fields(world, instance)
    running = np.arange(recording.acted.shape[1])[None, :] < recording.steps[:, None]
    moved = after_actions(world, instance, recording) != recording.gold[:, 1:]
    moved &= running[:, :, None]
    changed, everywhere = (moved & mutable[:, None, :]).sum(axis=(1, 2)), moved.sum(axis=(1, 2))
    ticks = np.maximum(recording.steps, 1)
    return changed / np.maximum(mutable.sum(axis=1) * ticks, 1), everywhere / (world.fields * ticks)


def accuracy_track(recording: Trajectory) -> Floats:
    """Return A_t, the share of fields believed right at each time, [row, time]; NaN after the end."""
    fields = measures.count_true(recording.gold != UNKNOWN)  # that the instance has
    share = measures.right_fields(recording.belief, recording.gold) / fields
    over = np.arange(share.shape[1])[None, :] > recording.steps[:, None]
    return np.where(over, np.nan, share)
