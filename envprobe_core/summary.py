"""The summary table: for each cell one row of means with intervals, and a hash of its outcomes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from envprobe_core.cells import Cell
from envprobe_core.scoring import Columns
from envprobe_core.stats import mean_intervals, wilson

ROW_KEYS = (
    "world",
    "policy",
    "regime",
    "protocol",
    "profile",
    "n",
    "accuracy",
    "accuracy_low",
    "accuracy_high",
    "accuracy_terminal",
    "accuracy_slot",
    "task_success",
    "task_success_low",
    "task_success_high",
    "probes",
    "useful_probe_rate",
    "collapse_onset",
    "onset_censored",
    "result_hash",
)
HASHED = (
    "seed",
    "steps",
    "success",
    "probes",
    "useful",
    "repeated_probes",
    "actions",
    "valid_actions",
    "collapse_onset",
    "action_onset",
    "digest",
)
CENSORED = -1

Row = dict[str, object]


def result_hash(columns: Columns) -> str:
    """Condense a cell's integer outcomes into SHA-256, in hexadecimal.

    For each episode, in order of seed, the measures named in `HASHED` as 64-bit little-endian
    whole numbers; an onset that never comes is -1. `digest` stands for the right-field counts at
    each time and the probes at each step (see `scoring.outcome_digest`).

    Args:
        columns: the cell's episodes, in any order.
    """
    columns = _in_order(columns)
    outcomes = np.empty((len(columns["seed"]), len(HASHED)), dtype="<i8")
    for position, name in enumerate(HASHED):
        column = columns[name]
        if column.dtype == np.float64:
            column = np.where(np.isnan(column), CENSORED, column)
        outcomes[:, position] = column.view("<i8") if name == "digest" else column
    return hashlib.sha256(outcomes.tobytes()).hexdigest()


def total_hash(cells: Sequence[Cell], hashes: Sequence[str]) -> str:
    """Condense the hashes of a run's cells, with the cells' names, into one."""
    lines = (
        " ".join([*(str(value) for value in cell.key.values()), own]) + "\n"
        for cell, own in zip(cells, hashes, strict=True)
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def summarise(cells: Sequence[Cell], parts: Sequence[Columns]) -> list[Row]:
    """Make the summary table.

    Accuracies have percentile intervals of the bootstrapped mean, success has Wilson's. Probes
    are a mean over episodes; the useful-probe rate is the mean of useful / fired over episodes
    that fired; the onset is the mean over episodes that collapse.

    Args:
        cells: the cells.
        parts: the columns of each cell's episodes.

    Returns:
        One row a cell with the keys `ROW_KEYS`; a mean without events, or the interval of a
        single episode, is None.
    """
    ordered = [_in_order(part) for part in parts]
    return [
        _row(cell, part, accuracy)
        for cell, part, accuracy in zip(cells, ordered, _accuracy_intervals(ordered), strict=True)
    ]


def _in_order(columns: Columns) -> Columns:
    """Sort the episodes by seed."""
    order = np.argsort(columns["seed"], kind="stable")
    return {name: column[order] for name, column in columns.items()}


def _accuracy_intervals(parts: Sequence[Columns]) -> np.ndarray:
    """Return mean, low and high end for each cell [cell, 3]; cells of one size share resamples."""
    ends = np.empty((len(parts), 3))
    sizes = np.array([len(part["seed"]) for part in parts])
    for size in np.unique(sizes):
        same = np.flatnonzero(sizes == size)
        values = np.stack([parts[index]["accuracy"] for index in same], axis=1)
        ends[same] = np.stack(mean_intervals(values), axis=1)
    return ends


def _mean(values: np.ndarray) -> float | None:
    return float(values.sum() / len(values)) if len(values) else None


def _row(cell: Cell, part: Columns, accuracy: np.ndarray) -> Row:
    n = len(part["seed"])
    success = wilson(int(part["success"].sum()), n)
    fired, onset = part["probes"] > 0, part["collapse_onset"]
    mean, low, high = (None if np.isnan(end) else float(end) for end in accuracy)
    return {
        "world": cell.world,
        "policy": cell.policy.name,
        "regime": cell.regime.name,
        "protocol": cell.protocol.name,
        "profile": cell.profile.name,
        "n": n,
        "accuracy": mean,
        "accuracy_low": low,
        "accuracy_high": high,
        "accuracy_terminal": _mean(part["accuracy_terminal"]),
        "accuracy_slot": _mean(part["accuracy_slot"]),
        "task_success": success.value,
        "task_success_low": success.low,
        "task_success_high": success.high,
        "probes": _mean(part["probes"]),
        "useful_probe_rate": _mean(part["useful"][fired] / part["probes"][fired]),
        "collapse_onset": _mean(onset[~np.isnan(onset)]),
        "onset_censored": int(np.isnan(onset).sum()),
        "result_hash": result_hash(part),
    }
