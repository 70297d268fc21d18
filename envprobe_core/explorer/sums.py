"""Resampled means of many columns: the sums of a world's column are formed once, for it and for the pool."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from envprobe_core.resampling import FIXED_POINT_BITS, resample_counts

Floats = npt.NDArray[np.float64]
KEPT = 2_000  # columns; one of 10,000 resamples takes 80 kB
AT_ONCE = 500  # resamples, so that a product stays in the cache


@lru_cache(maxsize=2)
def _counts(units: int, resamples: int) -> Floats:
    """Return how often each unit is drawn, [unit, resample]."""
    return np.ascontiguousarray(resample_counts(units, resamples).T, dtype=np.float64)


class ResampledSums:
    """Exact resampled sums of columns, remembered; the means are those of `resampling.bootstrap_means`."""

    def __init__(self, resamples: int) -> None:
        """Remember nothing yet."""
        self._resamples = resamples
        self._known: dict[bytes, Floats] = {}

    def means(self, columns: Floats, sizes: Sequence[int]) -> Floats:
        """Return resampled means, [column, resample].

        Args:
            columns: [column, unit], finite; units of one stratum stand together.
            sizes: units of each stratum, in order.
        """
        if len(self._known) > KEPT:
            self._known.clear()
        total = np.empty((len(columns), self._resamples))
        ends = np.cumsum(sizes)
        for shift, part in enumerate(np.split(columns, ends[:-1], axis=1)):
            keys = self._form(np.ascontiguousarray(part))
            for mean, sums in zip(total, map(self._known.__getitem__, keys), strict=True):
                if shift:  # the k-th stratum reads the count matrix k rows on
                    mean[shift:] += sums[:-shift]
                    mean[:shift] += sums[-shift:]
                else:
                    mean[:] = sums
        total /= ends[-1]
        return total

    def _form(self, columns: Floats) -> list[bytes]:
        """Form the sums that are not known yet, exact in fixed point; return what columns are known by."""
        keys = [column.tobytes() for column in columns]
        missing = {key: place for place, key in enumerate(keys) if key not in self._known}
        if missing:
            new = columns[list(missing.values())]
            counts = _counts(columns.shape[1], self._resamples)
            exponent = FIXED_POINT_BITS - np.frexp(columns.shape[1] * np.abs(new).max(axis=1))[1]
            whole = np.rint(np.ldexp(new, exponent[:, None]))
            sums = np.empty((len(new), self._resamples))
            for start in range(0, self._resamples, AT_ONCE):
                part = slice(start, start + AT_ONCE)
                np.matmul(whole, counts[:, part], out=sums[:, part])
            sums *= np.ldexp(1.0, -exponent)[:, None]
            self._known |= zip(missing, sums, strict=True)
        return keys
