"""Analyses: what several sections compute from forks, grids and small worlds, and what these share."""

from collections.abc import Sequence

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


def ends(name: str, found: Sequence[float]) -> dict[str, float]:
    """A value with its interval, as the columns `name name_low name_high` that tables and figures read.

    Args:
        name: of the first column.
        found: value, low and high; what follows them is left out.

    >>> ends("gain", (1.0, 0.5, 2.0))
    {'gain': 1.0, 'gain_low': 0.5, 'gain_high': 2.0}
    """
    return dict(zip((name, f"{name}_low", f"{name}_high"), found[:3], strict=True))
