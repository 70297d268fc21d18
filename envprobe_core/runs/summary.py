"""The summary table: for each cell one row of means with intervals, and a hash of its outcomes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core.cells import Cell
from envprobe_core.engine.recording import Columns
from envprobe_core.statistics import LARGE, mean_intervals, normal_half_width, wilson

HASHED = (
    "seed", "steps", "success", "probes", "useful", "repeated_probes", "actions", "valid_actions",
    "collapse_onset", "action_onset", "digest",
)  # fmt: skip
CENSORED = -1
AVERAGED = ("accuracy", "accuracy_terminal", "accuracy_slot", "probes")
STEP = 2.0**26  # what `exact_sum` takes off at a time: sums of 2**26 values below it are exact


def outcomes(columns: Columns) -> bytes:
    """Write the measures `HASHED` of episodes [row] as little-endian 64-bit whole numbers, row by row."""
    made = np.empty((len(columns["seed"]), len(HASHED)), dtype="<i8")
    for position, name in enumerate(HASHED):
        column = columns[name]
        if column.dtype == np.float64:
            column = np.where(np.isnan(column), CENSORED, column)
        made[:, position] = column.view("<i8") if name == "digest" else column
    return made.tobytes()


def result_hash(columns: Columns) -> str:
    """Condense a cell's integer outcomes, its episodes in any order, into SHA-256, in hexadecimal.

    Hashed is what `outcomes` writes in order of seed; an onset that never comes is -1. `digest` stands for
    the right-field counts at each time and the probes at each step (see `scoring.outcome_digest`).
    """
    order = np.argsort(columns["seed"], kind="stable")
    return hashlib.sha256(outcomes({name: columns[name][order] for name in HASHED})).hexdigest()


def exact_sum(values: npt.NDArray[np.float64]) -> list[float]:
    """Return a few numbers whose sum is exactly that of `values`: no order of adding moves a bit.

    Args:
        values: finite and below 2**26, no more than 2**26 of them.
    """
    parts, scale = [], 1.0
    while values.any():
        whole = np.floor(values * scale)
        parts.append(float(whole.sum()) / scale)
        values = values - whole / scale
        scale *= STEP
    return parts


class Summary:
    """A cell's row of the summary table, made in one pass over its episodes in order of seed.

    Of the accuracies no more than `LARGE` are kept: a mean over more has the normal interval, which needs
    none. So a summary takes no room that grows with the episodes, but for a few numbers a block.

    Attributes:
        n: how many episodes there were.
    """

    def __init__(self) -> None:
        self.n = self._success = self._never = 0
        self._sums: dict[str, list[float]] = {}
        self._counts: dict[str, int] = {}
        self._digest = hashlib.sha256()
        self._accuracies: list[npt.NDArray[np.float64]] = []

    def add(self, columns: Columns) -> None:
        """Take in the cell's next episodes, in order of seed."""
        fired, onset = columns["probes"] > 0, columns["collapse_onset"]
        averaged = {name: columns[name] for name in AVERAGED}
        averaged["useful_probe_rate"] = columns["useful"][fired] / columns["probes"][fired]
        averaged["collapse_onset"] = onset[~np.isnan(onset)]
        averaged["squares"] = columns["accuracy"] ** 2
        for name, values in averaged.items():
            self._sums.setdefault(name, []).extend(exact_sum(values))
            self._counts[name] = self._counts.get(name, 0) + len(values)
        self._digest.update(outcomes(columns))
        self.n += len(onset)
        self._success += int(columns["success"].sum())
        self._never += int(np.isnan(onset).sum())
        self._accuracies = [*self._accuracies, columns["accuracy"]] if self.n <= LARGE else []

    def mean(self, name: str) -> float | None:
        """Return the correctly rounded sum of a measure by the number of its values, if there are any."""
        return math.fsum(self._sums[name]) / self._counts[name] if self._counts[name] else None

    @property
    def result_hash(self) -> str:
        """The `result_hash` of all episodes so far."""
        return self._digest.hexdigest()

    @property
    def accuracies(self) -> npt.NDArray[np.float64]:
        """Every accuracy, [episode], where there are no more than `LARGE`."""
        return np.concatenate(self._accuracies)

    def normal_interval(self) -> tuple[float, float, float]:
        """Return the mean accuracy with the ends of its normal interval."""
        mean, squares = self.mean("accuracy") or 0.0, self.mean("squares") or 0.0
        half = float(normal_half_width(math.sqrt(max(squares - mean**2, 0.0)), self.n))
        return mean, mean - half, mean + half

    def row(self, cell: Cell, accuracy: npt.NDArray[np.float64]) -> dict[str, Any]:
        """Return the row of a cell, given its accuracy's mean, low and high end."""
        mean, low, high = (None if np.isnan(value) else float(value) for value in accuracy)
        success = wilson(self._success, self.n)
        return {
            **{name: cell.key[name] for name in ("world", "policy", "regime", "protocol", "profile")},
            "n": self.n,
            "accuracy": mean,
            "accuracy_low": low,
            "accuracy_high": high,
            "accuracy_terminal": self.mean("accuracy_terminal"),
            "accuracy_slot": self.mean("accuracy_slot"),
            "task_success": success.value,
            "task_success_low": success.low,
            "task_success_high": success.high,
            "probes": self.mean("probes"),
            "useful_probe_rate": self.mean("useful_probe_rate"),
            "collapse_onset": self.mean("collapse_onset"),
            "onset_censored": self._never,
            "result_hash": self.result_hash,
        }


def summary_rows(cells: Sequence[Cell], summaries: Sequence[Summary]) -> list[dict[str, Any]]:
    """Make the summary table, one row a cell; a mean without events, or one episode's interval, is None.

    Accuracies have percentile intervals of the bootstrapped mean (normal ones above `LARGE` episodes),
    success has Wilson's. Probes are a mean over episodes; the useful-probe rate is the mean of useful / fired
    over episodes that fired; the onset is the mean over episodes that collapse.
    """
    ends = np.empty((len(summaries), 3))
    sizes = np.array([own.n for own in summaries])
    for size in np.unique(sizes):  # cells of one size share resamples
        same = np.flatnonzero(sizes == size)
        if size > LARGE:
            ends[same] = [summaries[index].normal_interval() for index in same]
        else:
            values = np.stack([summaries[index].accuracies for index in same], axis=1)
            ends[same] = np.stack(mean_intervals(values), axis=1)
    return [own.row(cell, end) for cell, own, end in zip(cells, summaries, ends, strict=True)]
