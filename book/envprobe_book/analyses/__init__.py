"""Analyses: what several sections compute from forks, grids and small worlds, and the frontier they share."""

import numpy as np
import numpy.typing as npt

COMPETING = (
    "no-probe", "random", "periodic", "self-uncertainty", "simple", "judge",
    "minus-c", "minus-d", "minus-s", "minus-u", "cd",
)  # fmt: skip
"""The paper's deployable policies and ablations, of which its frontiers are made."""
ORACLES = ("oracle", "oracle-tw")  # they see gold: shown, never part of a frontier


def beaten_by(points: npt.ArrayLike, others: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Which others match or exceed a point in all coordinates and exceed it in one, [..., point, other].

    Args:
        points: [..., point, coordinate], more is better.
        others: [..., other, coordinate].
    """
    mine, other = np.asarray(points)[..., :, None, :], np.asarray(others)[..., None, :, :]
    return (other >= mine).all(axis=-1) & (other > mine).any(axis=-1)


def nondominated(points: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Which points no other point dominates, [..., point]; of equal points none dominates the other."""
    return ~beaten_by(points, points).any(axis=-1)
