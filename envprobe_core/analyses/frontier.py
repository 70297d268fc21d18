"""Accuracy against success: which policies does no other beat in both?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

DEPLOYABLE = ("no-probe", "random", "periodic", "self-uncertainty", "simple", "judge")
ABLATIONS = ("minus-c", "minus-d", "minus-s", "minus-u", "cd")
COMPETING = (*DEPLOYABLE, *ABLATIONS)
DIAGNOSTIC = ("oracle", "oracle-tw")  # they see gold: shown, never part of a frontier


def nondominated(points: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Say which points no other point dominates, [..., point].

    A point dominates another that it matches or exceeds in every coordinate and exceeds in one; of equal
    points none dominates the other.

    Args:
        points: [..., point, coordinate], more is better.
    """
    values = np.asarray(points, dtype=np.float64)
    mine, other = values[..., :, None, :], values[..., None, :, :]
    beaten = (other >= mine).all(axis=-1) & (other > mine).any(axis=-1)
    return ~beaten.any(axis=-1)
