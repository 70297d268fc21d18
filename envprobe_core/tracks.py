"""Another name of `measures.step_accuracy`, asked of a cell."""

from __future__ import annotations

from envprobe_core import measures
from envprobe_core.cells import Cell
from envprobe_core.engine.recording import Trajectory


def step_accuracy(recording: Trajectory, cell: Cell) -> measures.Floats:
    """Return `measures.step_accuracy` under the cell's protocol."""
    return measures.step_accuracy(recording, cell.protocol)
