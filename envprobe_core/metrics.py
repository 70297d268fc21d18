"""The paper's measures as pure functions on arrays (Section 6.1, Metrics; book/definitions.md).

They know nothing of worlds, agents or policies, so that logs and frames can be measured as rollouts are.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from envprobe_core.engine.scoring import COLLAPSE as COLLAPSE

Values = npt.NDArray[np.int8]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


def count_true(members: Mask) -> Ints:
    """Count the true members [..., member] of up to 127; much faster than `sum` along a short axis."""
    return np.einsum("...i->...", np.ascontiguousarray(members).view(np.int8)).astype(np.int64)


def right_fields(belief: Values, gold: Values) -> Ints:
    """Count the fields believed right at each time, b_t against g_t: n A_t, [row, time].

    Args:
        belief: [row, time, field]; an unknown value (-1) matches nothing.
        gold: [row, time, field].
    """
    return count_true(belief == gold)


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
