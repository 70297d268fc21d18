"""Facts of an episode that claims ask for and the episode table does not hold.

Each function measures one recorded cell and returns columns [row]; `data/paper/README.md` says what they
mean.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from envprobe_core import environments
from envprobe_core.cells import Cell
from envprobe_core.engine.recording import Columns, Trajectory
from envprobe_core.facts.patterns import match
from envprobe_core.facts.witness import Witnessed, witness
from envprobe_core.instances import instances
from envprobe_core.measures import audit_counts
from envprobe_core.plans import chain_length
from envprobe_core.worlds import make_world
from envprobe_core.worlds.base import PROCEDURAL

NOTICING = 5  # steps within which a change counts as noticed (ours)
Seeds = npt.NDArray[np.int64]
Measure = Callable[[Cell, Seeds, Trajectory, Columns], Columns]


def _world_facts(cell: Cell, seeds: Seeds, recording: Trajectory, scored: Columns) -> Columns:
    world = make_world(cell.world, cell.regime, cell.protocol)
    procedural = world.field_kinds.count(PROCEDURAL)
    return {
        "chain_length": chain_length(world, seeds),
        "mutation_rate": environments.drawn_mutation(world, seeds),
        "procedural": np.full(len(seeds), procedural),
        "spatial": np.full(len(seeds), world.fields - procedural),
    }


def _start(cell: Cell, seeds: Seeds, recording: Trajectory, scored: Columns) -> Columns:
    return {"initial_accuracy": environments.accuracy_track(recording)[:, 0]}


def _spending(cell: Cell, seeds: Seeds, recording: Trajectory, scored: Columns) -> Columns:
    return {"spent": scored["probes"] + scored["actions"]}


def _answers(cell: Cell, seeds: Seeds, recording: Trajectory, scored: Columns) -> Columns:
    """Count the probes whose answer stands in the table one step later."""
    fired = recording.probe >= 0
    field = np.maximum(recording.probe, 0)[..., None].astype(np.int64)
    held = np.take_along_axis(recording.belief[:, 1:], field, axis=2)[..., 0]
    return {"answered": (fired & (held == recording.answer)).sum(axis=1)}


def _traces(cell: Cell, seeds: Seeds, recording: Trajectory, scored: Columns) -> Columns:
    """Count changes of the world to fields believed right, and those noticed within `NOTICING` steps.

    A change is noticed where the table holds the new value before it changes once more. Changes too close
    to the episode's end are not counted.
    """
    world = make_world(cell.world, cell.regime, cell.protocol)
    unscored = np.empty((*recording.probe.shape, world.fields, 0))
    seen = Witnessed(cell, seeds, world, instances(world, seeds), recording, unscored)
    right = recording.belief == recording.gold
    last = recording.gold.shape[1] - 1 - NOTICING
    change = seen.exogenous()[:, :last] & right[:, :last]
    change &= (np.arange(last)[None, :] + 1 + NOTICING <= recording.steps[:, None])[..., None]
    noticed = np.zeros_like(change)
    lasting = np.ones_like(change)
    new = recording.gold[:, 1 : last + 1]
    for later in range(1, NOTICING + 2):
        lasting &= recording.gold[:, later : later + last] == new
        noticed |= lasting & right[:, later : later + last]
    return {"changes": change.sum(axis=(1, 2)), "noticed": (change & noticed).sum(axis=(1, 2))}


def _confidence(cell: Cell, seeds: Seeds, recording: Trajectory, scored: Columns) -> Columns:
    return audit_counts(recording, cell, seeds)


def _failures(cell: Cell, seeds: Seeds, recording: Trajectory, scored: Columns) -> Columns:
    """Mark failed episodes, and those that show the paper's failure pattern of their world."""
    failed = ~recording.success
    shown = match(witness(cell, seeds)).episodes(len(seeds))[:, -1] > 0
    return {"failed": failed.astype(np.int64), "pattern": (failed & shown).astype(np.int64)}


SUPPLIERS: dict[Measure, tuple[str, ...]] = {
    _world_facts: ("chain_length", "mutation_rate", "procedural", "spatial"),
    _start: ("initial_accuracy",),
    _spending: ("spent",),
    _answers: ("answered",),
    _traces: ("changes", "noticed"),
    _confidence: (
        "confident", "confident_wrong", "wrong", "low_steps", "low_consistent", "scan_confident",
        "scan_wrong", "sample_confident", "sample_wrong",
    ),
    _failures: ("failed", "pattern"),
}  # fmt: skip
FACTS: dict[str, Measure] = {name: supplier for supplier, names in SUPPLIERS.items() for name in names}
"""Every fact, and what measures it."""
REPORTED = frozenset(SUPPLIERS[_confidence])
"""Facts that need the recorded staleness and confidence."""


def measure_facts(
    names: frozenset[str], cell: Cell, seeds: Seeds, recording: Trajectory, scored: Columns
) -> Columns:
    """Measure some facts of one recorded cell.

    Args:
        names: which; of `FACTS`.
        cell: the setting.
        seeds: [row].
        recording: its episodes, with reports where a name is in `REPORTED`.
        scored: the columns of the episode table, [row] each.
    """
    found: Columns = {}
    for supplier in dict.fromkeys(FACTS[name] for name in FACTS if name in names):
        found |= supplier(cell, seeds, recording, scored)
    return {name: found[name] for name in names}
