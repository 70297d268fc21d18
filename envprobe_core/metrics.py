"""The paper's measures as pure functions on arrays (Section 6.1, Metrics; book/definitions.md).

They know nothing of worlds, agents or policies, so that logs and frames can be measured as rollouts are.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from envprobe_core.bits import count_true

COLLAPSE = 0.6  # tau_c and tau_d: the first A_t below this
Values = npt.NDArray[np.int8]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def right_fields(belief: Values, gold: Values) -> Ints:
    """Count the fields believed right at each time, b_t against g_t: n A_t, [row, time].

    Args:
        belief: [row, time, field]; an unknown value (-1) matches nothing.
        gold: [row, time, field].
    """
    return count_true(belief == gold)


def lagged_right_fields(belief: Values, gold: Values) -> Ints:
    """Count the fields of b_(t-1) that match g_t, [row, time]; time 0 compares b_0 with g_0."""
    first = right_fields(belief[:, :1], gold[:, :1])
    return np.concatenate([first, right_fields(belief[:, :-1], gold[:, 1:])], axis=1)


def first_true(condition: Mask) -> Floats:
    """Return the first true position of each row, [row]; NaN where there is none.

    Args:
        condition: [row, position].
    """
    return np.where(condition.any(axis=1), np.argmax(condition, axis=1), np.nan)


def collapse_onset(track: Floats, steps: Ints, first_time: int, rule: str) -> Floats:
    """Find the time at which accuracy collapses (tau_c), [row]; NaN where it never does (censored).

    Args:
        track: [row, time], accuracy in [0, 1] from `first_time` on.
        steps: [row], executed steps; later times do not count.
        first_time: the time of the first column, 0 or 1.
        rule: `first` time below .6, or `two-below`: first of two in a row (a low last one counts alone).
    """
    times = first_time + np.arange(track.shape[1])
    below = (track < COLLAPSE) & (times[None, :] <= steps[:, None])
    if rule == "two-below":
        following = np.zeros_like(below)
        following[:, :-1] = below[:, 1:]
        below &= following | (times[None, :] == steps[:, None])
    return first_true(below) + first_time


def action_onset(acted: Mask, valid: Mask) -> Floats:
    """Find the first step at which the running share of valid task actions is below .6, NaN if never.

    Args:
        acted: [row, step], whether a task action was executed (probes and waits are none).
        valid: [row, step], whether it was valid.
    """
    tried = np.cumsum(acted, axis=1)
    worked = np.cumsum(valid, axis=1)
    return first_true(acted & (worked < COLLAPSE * tried))


def at_end(track: npt.NDArray[np.generic], steps: Ints) -> npt.NDArray[np.generic]:
    """Return each row's entry at its last time, [row], from [row, time]."""
    return track[np.arange(len(steps)), steps]


def mean_over_steps(track: Floats, steps: Ints) -> Floats:
    """Return the mean over a row's executed steps, [row], from [row, step]; 0 where there are none.

    The sum runs from left to right, so that its bits depend neither on block size nor on memory layout.
    """
    sums = np.cumsum(track, axis=1)
    total = np.where(steps > 0, at_end(sums, np.maximum(steps, 1) - 1), 0.0)
    return total / np.maximum(steps, 1)


def repeated_probes(probe: npt.NDArray[np.integer], fields: int) -> Ints:
    """Count probes of a field that the same episode had probed before, [row].

    Args:
        probe: [row, step], the probed field or -1.
        fields: number of fields.
    """
    fired = probe >= 0
    distinct = np.zeros((len(probe), fields), dtype=bool)
    rows, steps = np.nonzero(fired)
    distinct[rows, probe[rows, steps]] = True
    return fired.sum(axis=1) - distinct.sum(axis=1)


def useful_probe_rate(useful: Ints, probes: Ints) -> Floats:
    """Return each episode's share of useful probes (raw UPR), [row]; NaN where none was fired."""
    return np.divide(useful, probes, out=np.full(len(probes), np.nan), where=probes > 0)


def normalized_useful_probe_rate(useful: Ints, budget: Ints) -> Floats:
    """Return useful probes over the budget (normalized UPR), [row]; NaN where the budget is 0."""
    return np.divide(useful, budget, out=np.full(len(budget), np.nan), where=budget > 0)
