"""Instances of a world without an agent, and which recorded probes the public code calls useful."""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core import released, worlds
from envprobe_core.agents import simulated as agent
from envprobe_core.compiled.noise import INSTANCE, STREAMS, stream_keys
from envprobe_core.compiled.numba_support import kernel
from envprobe_core.compiled.records import NONE, Word, dtype_of, new
from envprobe_core.conditions import Condition
from envprobe_core.engine.batch import Trajectory, kernel_params
from envprobe_core.policies.rules import RANDOM
from envprobe_core.worlds import MODULES
from envprobe_core.worlds.base import Ints, Mask, World


@cache
def instance_dtype(world: str) -> np.dtype:
    """The dtype of an instance in the world of a name.

    >>> instance_dtype("tooldag").names
    ('task', 'state')
    """
    return dtype_of(("task", MODULES[world].TASK), ("state", MODULES[world].STATE))


def _keys() -> Any:
    """Make room for the keys of a seed (an array made in compiled code takes a second to compile)."""
    return np.zeros(STREAMS, Word)


def instances(world: World, seeds: npt.ArrayLike) -> Any:
    """Create the instance of each seed, [row]: its `task` graph and, as at step 0, its `state`.

    >>> from envprobe_core.conditions import make_condition
    >>> drawn = instances(make_condition("tooldag", "simple").built, [0, 1])
    >>> drawn.state.loaded.tolist()
    [0, 0]
    """
    rows = np.asarray(seeds, np.int64)
    instance = new(instance_dtype(world.name), len(rows))
    _create(world.record, instance, _keys(), rows)
    return instance


@kernel
def _create(world, instance, keys, seeds):
    for row in range(len(seeds)):
        stream_keys(seeds[row], world.code, keys)
        worlds.create(world, instance[row].task, instance[row].state, keys[INSTANCE])


def informative(condition: Condition, seeds: Ints, recording: Trajectory) -> Mask:
    """Which probes of a condition's recorded episodes the public code calls useful, [row, step]."""
    useful, instance = np.zeros(recording.probe.shape, np.bool_), instances(condition.built, seeds)
    read = recording.belief, recording.gold, recording.probe
    _inform(kernel_params(condition), instance, _keys(), seeds, *read, useful)
    return useful


@kernel
def _inform(params, instance, keys, seeds, belief, gold, probe, useful):
    for row in range(len(probe)):
        stream_keys(seeds[row], params.world.code, keys)
        for t in range(probe.shape[1]):
            if probe[row, t] != NONE:
                task, field = instance[row].task, probe[row, t]
                names_goal, by_name = (
                    agent.names_goal(params.habits, keys, t),
                    params.policy.gate.kind != RANDOM,
                )
                useful[row, t] = released.informs(
                    params, task, belief[row, t], gold[row, t], field, by_name, names_goal
                )
