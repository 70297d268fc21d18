"""The summary table: for each cell one row of means with intervals, and a hash of its outcomes."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from envprobe_core.cells import Cell
from envprobe_core.engine.recording import Columns
from envprobe_core.statistics import LARGE, mean_intervals, normal_half_width, wilson

ROW_KEYS = (
    "world", "policy", "regime", "protocol", "profile", "n", "accuracy", "accuracy_low", "accuracy_high",
    "accuracy_terminal", "accuracy_slot", "task_success", "task_success_low", "task_success_high", "probes",
    "useful_probe_rate", "collapse_onset", "onset_censored", "result_hash",
)  # fmt: skip
HASHED = (
    "seed", "steps", "success", "probes", "useful", "repeated_probes", "actions", "valid_actions",
    "collapse_onset", "action_onset", "digest",
)  # fmt: skip
CENSORED = -1
AVERAGED = ("accuracy", "accuracy_terminal", "accuracy_slot", "probes", "useful_probe_rate", "collapse_onset")

Row = dict[str, object]


def result_hash(columns: Columns) -> str:
    """Condense a cell's integer outcomes, its episodes in any order, into SHA-256, in hexadecimal.

    For each episode, in order of seed, the measures named in `HASHED` as 64-bit little-endian
    whole numbers; an onset that never comes is -1. `digest` stands for the right-field counts at
    each time and the probes at each step (see `scoring.outcome_digest`).
    """
    return hashlib.sha256(_outcomes(_in_order(columns))).hexdigest()


def _outcomes(columns: Columns) -> bytes:
    """Write the outcomes of episodes, in the order given, as they are hashed."""
    outcomes = np.empty((len(columns["seed"]), len(HASHED)), dtype="<i8")
    for position, name in enumerate(HASHED):
        column = columns[name]
        if column.dtype == np.float64:
            column = np.where(np.isnan(column), CENSORED, column)
        outcomes[:, position] = column.view("<i8") if name == "digest" else column
    return outcomes.tobytes()


def total_hash(cells: Sequence[Cell], hashes: Sequence[str]) -> str:
    """Condense the hashes of a run's cells, with the cells' names, into one."""
    lines = (
        " ".join([*(str(value) for value in (cell.key | cell.profile.identity).values()), own]) + "\n"
        for cell, own in zip(cells, hashes, strict=True)
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()


class Summary:
    """A cell's row of the summary table, made in one pass over its episodes in order of seed.

    Sums are exact and take no room that grows with the episodes; of the accuracies no more than `LARGE` are
    kept, since a mean over more has the normal interval, which needs none.

    Attributes:
        n: how many episodes there were.
        success: how many of them succeeded.
        censored: how many of them never collapsed.
    """

    def __init__(self) -> None:
        self.n = self.success = self.censored = 0
        self._sums: dict[str, list[float]] = {name: [] for name in (*AVERAGED, "squares")}
        self._counts = dict.fromkeys(self._sums, 0)
        self._digest = hashlib.sha256()
        self._accuracies: list[npt.NDArray[np.float64]] = []

    def add(self, columns: Columns) -> None:
        """Take in the cell's next episodes, in order of seed."""
        fired, onset = columns["probes"] > 0, columns["collapse_onset"]
        averaged = {name: columns[name] for name in AVERAGED if name in columns}
        averaged["useful_probe_rate"] = columns["useful"][fired] / columns["probes"][fired]
        averaged["collapse_onset"] = onset[~np.isnan(onset)]
        averaged["squares"] = columns["accuracy"] ** 2
        for name, values in averaged.items():
            self._sums[name] = exact_sum([*self._sums[name], *values.tolist()])
            self._counts[name] += len(values)
        self._digest.update(_outcomes(columns))
        self.n += len(onset)
        self.success += int(columns["success"].sum())
        self.censored += int(np.isnan(onset).sum())
        self._accuracies = [*self._accuracies, columns["accuracy"]] if self.n <= LARGE else []

    def mean(self, name: str) -> float:
        """Return the correctly rounded sum of a measure, divided by the number of values; NaN without any."""
        return math.fsum(self._sums[name]) / self._counts[name] if self._counts[name] else math.nan

    @property
    def result_hash(self) -> str:
        """Return the `result_hash` of all episodes so far."""
        return self._digest.hexdigest()

    @property
    def accuracies(self) -> npt.NDArray[np.float64]:
        """Return every accuracy, [episode], where there are no more than `LARGE`."""
        return np.concatenate(self._accuracies)

    def normal_interval(self) -> tuple[float, float, float]:
        """Return the mean accuracy with the ends of its normal interval."""
        mean = self.mean("accuracy")
        half = float(normal_half_width(math.sqrt(max(self.mean("squares") - mean**2, 0.0)), self.n))
        return mean, mean - half, mean + half


def exact_sum(values: Sequence[float]) -> list[float]:
    """Return a few numbers whose sum is exactly that of many finite ones: no order of adding moves a bit."""
    parts: list[float] = []
    while rest := math.fsum([*values, *(-part for part in parts)]):
        parts.append(rest)
    return parts


def summary_rows(cells: Sequence[Cell], summaries: Sequence[Summary]) -> list[Row]:
    """Make the summary table.

    Accuracies have percentile intervals of the bootstrapped mean (normal ones above `LARGE` episodes),
    success has Wilson's. Probes are a mean over episodes; the useful-probe rate is the mean of useful / fired
    over episodes that fired; the onset is the mean over episodes that collapse.

    Returns:
        One row a cell with the keys `ROW_KEYS`; a mean without events, or the interval of a
        single episode, is None.
    """
    ends = _accuracy_intervals(summaries)
    return [_row(cell, own, end) for cell, own, end in zip(cells, summaries, ends, strict=True)]


def _in_order(columns: Columns) -> Columns:
    """Sort the episodes by seed."""
    order = np.argsort(columns["seed"], kind="stable")
    return {name: column[order] for name, column in columns.items()}


def _accuracy_intervals(summaries: Sequence[Summary]) -> np.ndarray:
    """Return mean, low and high end for each cell [cell, 3]; cells of one size share resamples."""
    ends = np.empty((len(summaries), 3))
    sizes = np.array([own.n for own in summaries])
    for size in np.unique(sizes):
        same = np.flatnonzero(sizes == size)
        if size > LARGE:
            ends[same] = [summaries[index].normal_interval() for index in same]
        else:
            values = np.stack([summaries[index].accuracies for index in same], axis=1)
            ends[same] = np.stack(mean_intervals(values), axis=1)
    return ends


def _row(cell: Cell, own: Summary, accuracy: np.ndarray) -> Row:
    success = wilson(own.success, own.n)
    mean, low, high = map(_there, accuracy)
    return {
        "world": cell.world,
        "policy": cell.policy.name,
        "regime": cell.regime.name,
        "protocol": cell.protocol.name,
        "profile": cell.profile.name,
        "n": own.n,
        "accuracy": mean,
        "accuracy_low": low,
        "accuracy_high": high,
        "accuracy_terminal": _there(own.mean("accuracy_terminal")),
        "accuracy_slot": _there(own.mean("accuracy_slot")),
        "task_success": success.value,
        "task_success_low": success.low,
        "task_success_high": success.high,
        "probes": _there(own.mean("probes")),
        "useful_probe_rate": _there(own.mean("useful_probe_rate")),
        "collapse_onset": _there(own.mean("collapse_onset")),
        "onset_censored": own.censored,
        "result_hash": own.result_hash,
    }


def _there(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
