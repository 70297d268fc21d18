"""What `run` can measure of an episode beside its scores: the registry of facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from envprobe_core import environments
from envprobe_core.audit import audit_counts, confidence_histogram
from envprobe_core.cells import Cell
from envprobe_core.engine.recording import Trajectory
from envprobe_core.engine.records import UNKNOWN
from envprobe_core.patterns import match
from envprobe_core.plans import chain_length
from envprobe_core.policies import TERMS
from envprobe_core.sections.timed import probe_timing
from envprobe_core.sweep import Seeds
from envprobe_core.witness import witness
from envprobe_core.worlds import make_world

Fact = Callable[[Cell, Seeds, Trajectory], Mapping[str, np.ndarray]]
FACTS: dict[str, Fact] = {}
"""What measures a column that `run` can add, by the column's name."""


def fact(*columns: str) -> Callable[[Fact], Fact]:
    """Register a function that measures some columns of a recorded cell, [row] each.

    It gets the cell, its seeds [row] and the recording, and returns the columns by name.
    """

    def keep(measure: Fact) -> Fact:
        if taken := FACTS.keys() & columns:
            raise ValueError(f"measured already: {', '.join(sorted(taken))}")
        FACTS.update(dict.fromkeys(columns, measure))
        return measure

    return keep


@fact("first_probe", "last_probe", "steps_left")
def when_probed(cell: Cell, seeds: Seeds, recording: Trajectory) -> dict[str, np.ndarray]:
    """Find the steps of the first and the last probe, and how long the episode went on; NaN without any."""
    fired = recording.probe >= 0
    some = fired.any(axis=1)
    last = fired.shape[1] - 1 - np.argmax(fired[:, ::-1], axis=1)
    steps = {
        "first_probe": np.argmax(fired, axis=1),
        "last_probe": last,
        "steps_left": recording.steps - last,
    }
    return {name: np.where(some, column, np.nan) for name, column in steps.items()}


FOUND = ("probe_step", "early_probes", "unknown_probes", "wrong_probes")


@fact(*FOUND)
def what_probes_found(cell: Cell, seeds: Seeds, recording: Trajectory) -> dict[str, np.ndarray]:
    """Find when each episode probed on average, and what it held about the probed fields."""
    return probe_timing(recording, np.full(len(seeds), cell.budget_in_force))


@fact("chain_length", "mutation_rate")
def what_the_seed_holds(cell: Cell, seeds: Seeds, recording: Trajectory) -> dict[str, np.ndarray]:
    """Measure K, the shortest plan at the start, and events a mutable field and tick, from the draws."""
    world = make_world(cell.world, cell.regime, cell.protocol)
    return {
        "chain_length": chain_length(world, seeds),
        "mutation_rate": environments.drawn_mutation(world, seeds),
    }


@fact("initial_accuracy", "changed", "changed_all")
def what_changed(cell: Cell, seeds: Seeds, recording: Trajectory) -> dict[str, np.ndarray]:
    """Measure A_0, and the share of mutable, and of all, fields that mutation changed in a tick."""
    world = make_world(cell.world, cell.regime, cell.protocol)
    changed, changed_all = environments.effective_mutation(world, seeds, recording)
    return {
        "initial_accuracy": environments.accuracy_track(recording)[:, 0],
        "changed": changed,
        "changed_all": changed_all,
    }


def arrays(rows: np.ndarray) -> np.ndarray:
    """Return the rows of a table as a column of arrays, [row]; copies, which do not keep a whole block."""
    return np.fromiter((row.copy() for row in rows), dtype=object, count=len(rows))


@fact("step_wrong", "step_confident", "step_confident_wrong", "step_reached")
def what_was_believed(cell: Cell, seeds: Seeds, recording: Trajectory) -> dict[str, np.ndarray]:
    """Count beliefs over the decision steps: wrong, held with alpha confidence, both; wrong and probed."""
    steps = recording.probe.shape[1]
    lived = np.arange(steps)[None, :] < recording.steps[:, None]
    wrong = (recording.belief[:, :steps] != recording.gold[:, :steps]) & lived[:, :, None]
    confident = (recording.confidence[:, :steps] >= SELF_UNCERTAINTY_ALPHA) & lived[:, :, None]
    return {
        "step_wrong": wrong.sum(axis=(1, 2)),
        "step_confident": confident.sum(axis=(1, 2)),
        "step_confident_wrong": (wrong & confident).sum(axis=(1, 2)),
        "step_reached": (recording.useful & lived).sum(axis=1),
    }
