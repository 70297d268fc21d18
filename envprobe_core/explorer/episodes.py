"""What the explorer keeps of an episode: its end, its accuracy by time, its probes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from envprobe_core import metrics
from envprobe_core.cells import Cell
from envprobe_core.engine.recording import Columns, Trajectory
from envprobe_core.engine.running import record
from envprobe_core.sweep import Task
from envprobe_core.worlds import make_world

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Episodes:
    """Episodes of one horizon, in any order.

    Attributes:
        accuracy: [episode], A_H as the protocol scores it.
        success: [episode].
        useful: [episode], probes whose answer differed from the belief held.
        repeated: [episode], probes of a field that the episode had probed before.
        track: [episode, time], A_t as `Trajectory.accuracy` has it; NaN where there is none.
        fired: [episode, step], whether it probes at step t.
    """

    accuracy: Floats
    success: Mask
    useful: Ints
    repeated: Ints
    track: Floats
    fired: Mask

    def rows(self, which: Ints) -> Episodes:
        """Return some of the episodes."""
        return Episodes(*(getattr(self, field.name)[which] for field in fields(self)))


def join(parts: Sequence[Episodes]) -> Episodes:
    """Put episodes of one horizon behind one another."""
    names = [field.name for field in fields(Episodes)]
    return Episodes(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def measure(recording: Trajectory, cell: Cell) -> Episodes:
    """Take from a recording what the explorer keeps.

    Args:
        recording: episodes of one world, regime, protocol and profile.
        cell: one that has these.
    """
    track = recording.accuracy
    if cell.protocol.accuracy == "slots":
        accuracy = metrics.mean_over_steps(track[:, 1:], recording.steps)
    else:
        accuracy = metrics.at_end(track, recording.steps)
    fields_of_world = make_world(cell.world, cell.regime, cell.protocol).fields
    return Episodes(
        accuracy,
        recording.success,
        recording.useful.sum(axis=1),
        metrics.repeated_probes(recording.probe, fields_of_world),
        track,
        recording.probe >= 0,
    )


def measure_task(task: Task) -> Columns:
    """Run a task and measure its episodes: `cell`, `seed` and the columns of `Episodes` (for `run_cells`)."""
    runs = (record(piece.cell, piece.seeds, scores_all=False) for piece in task.pieces)
    return label(task) | vars(join([measure(run, p.cell) for run, p in zip(runs, task.pieces, strict=True)]))


def label(task: Task) -> Columns:
    """Return the columns `cell` and `seed` that `run_cells` needs of a task."""
    sizes = [len(piece.seeds) for piece in task.pieces]
    return {
        "cell": np.repeat([piece.index for piece in task.pieces], sizes),
        "seed": np.concatenate([piece.seeds for piece in task.pieces]),
    }
