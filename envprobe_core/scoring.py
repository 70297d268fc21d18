"""Scorers: what one recorded trajectory is worth under a protocol's rules; one rollout, several scores.

The scoring switches act here: what A_H is, which belief meets which gold, whether a copied number matches,
when accuracy counts as collapsed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from envprobe_core.bits import count_true
from envprobe_core.protocols import Protocol
from envprobe_core.slots import slot_overlap
from envprobe_core.trajectory import Trajectory
from envprobe_core.worlds.base import Floats, Ints, Mask, World

COLLAPSE = 0.6  # tau_c and tau_d: first A_t below this (Section 6.1, Metrics)
Columns = dict[str, npt.NDArray[np.generic]]


def right_fields(trajectory: Trajectory) -> Ints:
    """Count the fields believed right at each time, b_t against g_t: [row, time]."""
    return count_true(trajectory.belief == trajectory.gold)


def lagged_right_fields(trajectory: Trajectory) -> Ints:
    """Count the fields of b_t that match g_(t+1), filed under time t + 1: [row, time], time 0 same-step."""
    first = count_true(trajectory.belief[:, :1] == trajectory.gold[:, :1])
    later = count_true(trajectory.belief[:, :-1] == trajectory.gold[:, 1:])
    return np.concatenate([first, later], axis=1)


def first_true(condition: Mask) -> Floats:
    """Return the first true position of each row [row]; NaN where there is none."""
    return np.where(condition.any(axis=1), np.argmax(condition, axis=1), np.nan)


def collapse_onset(track: Floats, steps: Ints, first_time: int, rule: str) -> Floats:
    """Find the time at which accuracy collapses, NaN where it never does (censored).

    Args:
        track: [row, time], accuracy from `first_time` on.
        steps: [row], executed steps; later times do not count.
        first_time: the time of the first column, 0 or 1.
        rule: `first` below .6, or `two-below`: first of two in a row (a low last one counts alone).
    """
    times = first_time + np.arange(track.shape[1])
    within = times[None, :] <= steps[:, None]
    below = (track < COLLAPSE) & within
    if rule == "two-below":
        following = np.concatenate([below[:, 1:], np.zeros((len(below), 1), dtype=bool)], axis=1)
        last = times[None, :] == steps[:, None]
        below &= following | last
    return first_true(below) + first_time


def action_onset(trajectory: Trajectory) -> Floats:
    """Return the first step at which the running share of valid task actions is below .6, NaN if never."""
    acted = np.cumsum(trajectory.acted, axis=1)
    valid = np.cumsum(trajectory.valid, axis=1)
    return first_true(trajectory.acted & (valid < COLLAPSE * acted))


def at_end(track: npt.NDArray[np.generic], steps: Ints) -> npt.NDArray[np.generic]:
    """Return each row's entry at its last time, [row]."""
    return track[np.arange(len(steps)), steps]


def repeated_probes(trajectory: Trajectory, fields: int) -> Ints:
    """Count probes of a field that the same episode had probed before, [row]."""
    probed = trajectory.probe >= 0
    distinct = np.zeros((len(trajectory.steps), fields), dtype=bool)
    rows, steps = np.nonzero(probed)
    distinct[rows, trajectory.probe[rows, steps]] = True
    return probed.sum(axis=1) - distinct.sum(axis=1)


def score_episodes(
    trajectory: Trajectory,
    world: World,
    protocol: Protocol,
    writes_true: Mask,
    keeps_open: Mask,
) -> Columns:
    """Score every episode of a recording.

    Args:
        trajectory: the recording.
        world: the world, for the layout of its fields.
        protocol: whose scoring switches apply.
        writes_true: [row], whether the agent writes tool values as `True`.
        keeps_open: [row], whether it keeps its list of open tools.

    Returns:
        A column [row] for each measure of the episode table.
    """
    steps, lagged = trajectory.steps, protocol.pairing == "lagged"
    right = right_fields(trajectory)
    terminal = at_end(right, steps) / world.fields
    matches = writes_true | (protocol.encoding == "meaning")
    slots = slot_overlap(trajectory, world, lagged, matches, keeps_open)
    executed = np.arange(slots.shape[1])[None, :] < steps[:, None]
    slot_mean = np.where(executed, slots, 0.0).sum(axis=1) / np.maximum(steps, 1)
    if protocol.accuracy == "slots":
        accuracy = slot_mean
        onset = collapse_onset(slots, steps, 1, protocol.onset)
    else:
        track = lagged_right_fields(trajectory) if lagged else right
        accuracy = at_end(track, steps) / world.fields
        onset = collapse_onset(track / world.fields, steps, 0, protocol.onset)
    return {
        "steps": steps,
        "accuracy": accuracy,
        "accuracy_terminal": terminal,
        "accuracy_slot": slot_mean,
        "success": trajectory.success,
        "probes": (trajectory.probe >= 0).sum(axis=1),
        "useful": trajectory.useful.sum(axis=1),
        "collapse_onset": onset,
        "actions": trajectory.acted.sum(axis=1),
        "valid_actions": trajectory.valid.sum(axis=1),
        "action_onset": action_onset(trajectory),
        "repeated_probes": repeated_probes(trajectory, world.fields),
    }
