"""Instances of a world without an agent, and which recorded probes the public code calls useful."""

from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core import agents as agent
from envprobe_core import worlds
from envprobe_core.cells import Cell
from envprobe_core.engine import loop
from envprobe_core.engine.compiling import entry
from envprobe_core.engine.noise import INSTANCE, STREAMS, stream_keys
from envprobe_core.engine.records import NONE, Word, new, record
from envprobe_core.engine.running import Trajectory, setting_of
from envprobe_core.worlds import MODULES
from envprobe_core.worlds.base import Ints, Mask, World

INSTANCES = {name: record(("task", module.TASK), ("state", module.STATE)) for name, module in MODULES.items()}


def _keys() -> Any:
    """Make room for the keys of a seed (an array made in compiled code takes a second to compile)."""
    return np.zeros(STREAMS, Word)


def instances(world: World, seeds: npt.ArrayLike) -> Any:
    """Create the instance of each seed, [row]: its `task` graph and, as at step 0, its `state`."""
    given = np.asarray(seeds, np.int64)
    instance = new(INSTANCES[world.name], len(given))
    _create(world.record, instance, _keys(), given)
    return instance


@entry
def _create(world, instance, keys, seeds):
    for row in range(len(seeds)):
        stream_keys(seeds[row], world.code, keys)
        worlds.create(world, instance[row].task, instance[row].state, keys[INSTANCE])


def informative(cell: Cell, seeds: Ints, recording: Trajectory) -> Mask:
    """Say which probes of a cell's recorded episodes the public code calls useful, [row, step]."""
    useful, instance = np.zeros(recording.probe.shape, np.bool_), instances(cell.built, seeds)
    read = recording.belief, recording.gold, recording.probe
    _inform(setting_of(cell), instance, _keys(), seeds, *read, useful)
    return useful


@entry
def _inform(setting, instance, keys, seeds, belief, gold, probe, useful):
    for row in range(len(probe)):
        stream_keys(seeds[row], setting.world.code, keys)
        for t in range(probe.shape[1]):
            if probe[row, t] != NONE:
                task, field = instance[row].task, probe[row, t]
                named = agent.names_goal(setting.habits, keys, t)
                useful[row, t] = loop.informs(setting, task, belief[row, t], gold[row, t], field, named)
