"""Accuracy by time as each protocol watches it: the track whose fall is called collapse or drift."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from envprobe_core import metrics
from envprobe_core.cells import Cell
from envprobe_core.slots import slot_overlap
from envprobe_core.trajectory import Trajectory
from envprobe_core.worlds import make_world


def scored_track(recording: Trajectory, cell: Cell) -> npt.NDArray[np.float64]:
    """Return the accuracy whose fall the cell's protocol calls collapse, [row, time].

    The share of right fields, b_t or b_(t-1) against g_t, or the weighted slot overlap, which has no value
    at time 0. NaN where there is none and after an episode's end.
    """
    world, protocol = make_world(cell.world, cell.regime, cell.protocol), cell.protocol
    rows, lagged = len(recording.steps), protocol.pairing == "lagged"
    if protocol.accuracy == "slots":
        matches = np.full(rows, cell.profile.writes == "true" or protocol.encoding == "meaning")
        slots = slot_overlap(recording, world, lagged, matches, np.full(rows, cell.profile.keeps_open))
        track = np.concatenate([np.full((rows, 1), np.nan), slots], axis=1)
    else:
        right = metrics.lagged_right_fields if lagged else metrics.right_fields
        track = right(recording.belief, recording.gold) / world.fields
    over = np.arange(track.shape[1])[None, :] > recording.steps[:, None]
    return np.where(over, np.nan, track)


def step_accuracy(recording: Trajectory, cell: Cell) -> npt.NDArray[np.float64]:
    """Return the accuracy that belongs to the beliefs held at each time, [row, time].

    Under lagged pairing a belief is scored one step later, so the track moves one step forward and its last
    time is left out.
    """
    track = scored_track(recording, cell)
    return track[:, 1:] if cell.protocol.pairing == "lagged" else track
