"""Resampling: one matrix of resample counts a sample size, and exact resampled means.

The unit is the episode (a seed in a world). Pooled worlds are strata: units are resampled within
their stratum and pooled. Resampled sums are formed in fixed point, so they are exact: neither the
order of calls, the number of columns nor the BLAS library moves a bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from envprobe_core.errors import InputError

RESAMPLES = 10_000
KEPT_UNITS = 2_500  # larger count matrices are drawn again at each use, in blocks
FIXED_POINT_BITS = 52
DRAWS_AT_ONCE = 100_000  # small enough for the cache, and for BLAS to stay on one thread


def whole_number(name: str, value: int, least: int) -> None:
    """Refuse a `value` that is not a whole number from `least`."""
    if not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{name} is {value}; a whole number from {least} is accepted")


def between(name: str, value: float, low: float, high: float) -> None:
    """Refuse a `value` outside low..high, both included (NaN too)."""
    if not low <= value <= high:
        raise InputError(f"{name} is {value}; a number from {low} to {high} is accepted")


def numbers(name: str, values: object) -> np.ndarray:
    """Floats [unit] or [unit, column] from `values`; empty, NaN and infinity are refused."""
    data = np.asarray(values, dtype=np.float64)
    if data.ndim not in (1, 2):
        raise InputError(f"{name} has {data.ndim} dimensions; [unit] or [unit, column] is accepted")
    if data.size == 0:
        raise InputError(f"{name} is empty; at least one value is needed")
    bad = np.argwhere(~np.isfinite(data))
    if len(bad):
        first = data[tuple(bad[0])]
        raise InputError(f"{name} holds {first} at unit {bad[0][0]}; finite numbers are accepted")
    return data


def vector(name: str, values: object) -> np.ndarray:
    """Floats [unit] from `values`, checked as in `numbers`."""
    data = numbers(name, values)
    if data.ndim != 1:
        raise InputError(f"{name} has {data.ndim} dimensions; [unit] is accepted")
    return data


def same_length(name: str, values: np.ndarray, other: str, others: np.ndarray) -> None:
    """Refuse two arrays of different length."""
    if len(values) != len(others):
        raise InputError(
            f"{name} has {len(values)} units, {other} has {len(others)}; equal lengths are accepted"
        )


def _groups(strata: object, n: int) -> list[np.ndarray]:
    """Unit indices of each stratum, strata in sorted order; every stratum holds two or more."""
    labels = np.zeros(n, dtype=np.int64) if strata is None else np.asarray(strata)
    same_length("strata", labels, "values", np.empty(n))
    names, codes = np.unique(labels, return_inverse=True)
    groups = [np.flatnonzero(codes == code) for code in range(len(names))]
    for name, group in zip(names, groups, strict=True):
        if len(group) < 2:
            where = "the sample" if strata is None else f"stratum {name}"
            raise InputError(f"{where} has 1 unit; a bootstrap needs at least 2")
    return groups


def _count_blocks(n: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """Blocks of rows of the count matrix, one stream of draws whatever the block size."""
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence((seed, n))))
    rows = 1 + DRAWS_AT_ONCE // n
    share = np.full(n, 1 / n)
    for start in range(0, resamples, rows):
        draws = generator.multinomial(n, share, size=min(rows, resamples - start))
        yield draws.astype(np.min_scalar_type(n))


@lru_cache(maxsize=8)
def resample_counts(n: int, resamples: int = RESAMPLES, seed: int = 0) -> np.ndarray:
    """How often each unit is drawn in each resample, int [resample, unit]; each row sums to n.

    Multinomial draws of NumPy's PCG64, seeded by (seed, n); read-only, made once a sample size.
    Refused: n, resamples below 1 and a negative seed. Source: Efron and Tibshirani (1993), ch. 6.
    """
    whole_number("n", n, 1)
    whole_number("resamples", resamples, 1)
    whole_number("seed", seed, 0)
    counts = np.concatenate(list(_count_blocks(n, resamples, seed)))
    counts.setflags(write=False)
    return counts


def _resampled_sums(columns: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Sums [resample, column] of `columns` [unit, column] over every resample, exact.

    Values are rounded to multiples of a power of two for which no sum can exceed 2**53: the
    rounding moves a mean by less than n * 2**-52 of the largest value.
    """
    n = len(columns)
    exponent = FIXED_POINT_BITS - np.frexp(n * np.abs(columns).max(axis=0))[1]
    whole = np.rint(np.ldexp(columns, exponent))
    if n <= KEPT_UNITS:
        counts = resample_counts(n, resamples, seed)
        rows = 1 + DRAWS_AT_ONCE // n
        blocks = (counts[start : start + rows] for start in range(0, resamples, rows))
    else:  # too large to keep
        blocks = _count_blocks(n, resamples, seed)
    with np.errstate(invalid="ignore"):  # BLAS flags lanes of its own beyond a short row (numpy#24067)
        return np.ldexp(np.concatenate([block @ whole for block in blocks]), -exponent)


def bootstrap_means(
    values: np.ndarray, strata: object = None, *, resamples: int = RESAMPLES, seed: int = 0
) -> np.ndarray:
    """Means [resample] (or [resample, column]) of `values` [unit] ([unit, column]), resampled.

    Units are drawn within their stratum (`strata` [unit], any labels) and pooled. The k-th
    stratum reads the count matrix k rows on, so strata of one size are drawn independently.
    Refused: empty, NaN, infinite, lengths that differ, a stratum of one unit.
    """
    data = numbers("values", values)
    whole_number("resamples", resamples, 1)
    columns = data.reshape(len(data), -1)
    total = np.zeros((resamples, columns.shape[1]))
    for shift, group in enumerate(_groups(strata, len(data))):
        total += np.roll(_resampled_sums(columns[group], resamples, seed), shift, axis=0)
    means = total / len(data)
    return means[:, 0] if data.ndim == 1 else means
