"""Accuracy by time as each protocol watches it: the track whose fall is called collapse or drift."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from envprobe_core.cells import Cell
from envprobe_core.engine.recording import Trajectory


def step_accuracy(recording: Trajectory, cell: Cell) -> npt.NDArray[np.float64]:
    """Return the accuracy that belongs to the beliefs held at each time, [row, time].

    Under lagged pairing a belief is scored one step later, so the track moves one step forward and its last
    time is left out.
    """
    return recording.accuracy[:, 1:] if cell.protocol.pairing == "lagged" else recording.accuracy
