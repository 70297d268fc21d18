"""Means and variances in one pass over blocks, the same bits in any order and any cut.

A running sum of floats depends on the order in which they come, so that results which arrive as they finish
would give another last digit each time. Here the sums of values and of squares are kept exactly: a float64
is a whole number of 53 bits times a power of two, and for each power that occurs the whole numbers and their
squares are added up as integers. Memory grows with the powers of two that occur, not with the values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from envprobe_core.errors import InputError
from envprobe_core.intervals import LEVEL, Interval, normal_half_width

MANTISSA = 53  # bits of a float64's whole number
HALF = 27  # bits of its lower half; the upper one has 26
WORD = 32

Columns = Mapping[str, npt.NDArray[np.generic]]


class RunningMean:
    """Mean, variance and interval of values that come in blocks.

    Attributes:
        n: how many values there were.
    """

    def __init__(self, values: npt.ArrayLike = ()) -> None:
        self.n = 0
        self._sums: dict[int, tuple[int, int]] = {}  # power of two -> sum of whole numbers, of their squares
        self.add(values)

    def add(self, values: npt.ArrayLike) -> None:
        """Take in a block of values, [value].

        Raises:
            InputError: for NaN and infinity.
        """
        values = np.asarray(values, dtype=np.float64).ravel()
        if not np.isfinite(values).all():
            raise InputError("values hold NaN or infinity; finite numbers are accepted")
        mantissa, power = np.frexp(values)
        whole = np.ldexp(mantissa, MANTISSA).astype(np.int64)
        for own in np.unique(power).tolist():
            same = whole[power == own]
            self._join(own - MANTISSA, _total(same), _total_of_squares(same))
        self.n += len(values)

    def merge(self, other: RunningMean) -> None:
        """Take in the values that another one has seen."""
        for power, (total, squares) in other._sums.items():
            self._join(power, total, squares)
        self.n += other.n

    def _join(self, power: int, total: int, squares: int) -> None:
        before = self._sums.get(power, (0, 0))
        self._sums[power] = (before[0] + total, before[1] + squares)

    @property
    def mean(self) -> float:
        """Return the correctly rounded sum, divided by the number of values; NaN where there are none."""
        return float(self._total) / self.n if self.n else math.nan

    @property
    def variance(self) -> float:
        """Return the variance (divisor n), exact but for one rounding; NaN where there are no values."""
        if not self.n:
            return math.nan
        squares = sum((own * _power(2 * power) for power, (_, own) in self._sums.items()), Fraction(0))
        return float((squares - self._total**2 / self.n) / self.n)

    @property
    def _total(self) -> Fraction:
        return sum((own * _power(power) for power, (own, _) in self._sums.items()), Fraction(0))

    def interval(self, level: float = LEVEL) -> Interval:
        """Return the mean with its normal interval, as `intervals.mean_intervals` gives it for many units.

        Fewer than two values carry no interval (NaN ends).
        """
        half = math.nan
        if self.n > 1:
            half = float(normal_half_width(math.sqrt(self.variance), self.n, level))
        return Interval(self.mean, self.mean - half, self.mean + half, self.n)


def running_means(
    blocks: Iterable[Columns], measures: Iterable[str], cells: int
) -> list[dict[str, RunningMean]]:
    """Average measures of every cell in one pass, as from `sweep.stream_cells`.

    Values that are NaN (an onset that never comes) are left out; `n` says how many there were.

    Args:
        blocks: episode tables with the column `cell`, in any order.
        measures: names of columns.
        cells: how many cells there are.

    Returns:
        For each cell, by measure.
    """
    names = tuple(measures)
    means = [{name: RunningMean() for name in names} for _ in range(cells)]
    for block in blocks:
        for cell in np.unique(block["cell"]).tolist():
            rows = block["cell"] == cell
            for name in names:
                values = block[name][rows].astype(np.float64)
                means[cell][name].add(values[~np.isnan(values)])
    return means


def _power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


def _total(values: npt.NDArray[np.int64]) -> int:
    """Add up whole numbers that are too many for 64 bits together."""
    upper, lower = values >> WORD, values & (2**WORD - 1)
    return (int(upper.sum()) << WORD) + int(lower.sum())


def _total_of_squares(values: npt.NDArray[np.int64]) -> int:
    """Add up the squares of whole numbers of up to 53 bits."""
    upper, lower = values >> HALF, values & (2**HALF - 1)
    ends, mixed = _total(lower * lower), _total(upper * lower)
    return (_total(upper * upper) << 2 * HALF) + (mixed << HALF + 1) + ends
