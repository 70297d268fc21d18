"""The tables of a run as Parquet: a row an episode, a row a step in a log, and what conditions come to.

The table of episodes has the columns `KEYS` and `MEASURES`; an onset that never comes and the threshold of a
policy without one are null. A log has, for each episode in order of seed, rows t = 0..steps: the state at t
(`seed t place` and, for every belief field, `belief`, `gold`, `staleness` and `confidence` with the field's
name) and the decision at t; in the last row, which holds no decision, `success` says whether the goal was
reached. What an episode does not have is null. The header, the `attrs` of the frame that pandas reads, says
what it holds, so that it can be read alone.

A table is in memory whole. What it holds is not looked at value by value: `disagreements` compares it with
the table that is due.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from envprobe_core.compiled.records import NONE
from envprobe_core.conditions import Condition, Seeds
from envprobe_core.engine.batch import BY_FIELD, Columns, Trajectory, kernel_params, room_for_logs, scored
from envprobe_core.errors import InputError
from envprobe_core.files import atomic_write, check_plain, file_sha256
from envprobe_core.measures import is_played
from envprobe_core.runs.manifest import EPISODES, seed_ranges, unlike
from envprobe_core.statistics import Interval, mean_intervals, wilson
from envprobe_core.worlds import World, make_world

GROUP_ROWS = 50_000  # rows that are packed together in a file
HEADER = b"PANDAS_ATTRS"  # under which pandas keeps the `attrs` of a frame in the file's metadata

KEYS = {
    "world": "string", "policy": "string", "regime": "string", "protocol": "string", "profile": "string",
    "budget": "Int64", "threshold": "Float64",
}  # fmt: skip
MEASURES = {
    "seed": "Int64", "n_fields": "Int64", "horizon": "Int64", "steps": "Int64", "accuracy": "Float64",
    "accuracy_terminal": "Float64", "accuracy_slot": "Float64", "success": "boolean", "probes": "Int64",
    "useful": "Int64", "collapse_onset": "Float64", "actions": "Int64", "valid_actions": "Int64",
    "action_onset": "Float64", "repeated_probes": "Int64", "digest": "UInt64", "invalid_share": "Float64",
    "loose_share": "Float64",
}  # fmt: skip
STATE = {"place": "Int8", "belief": "Int8", "gold": "Int8", "staleness": "UInt8", "confidence": "UInt8"}
DECISION = {
    "action": "Int16", "probe": "Int16", "answer": "Int8", "useful": "boolean", "valid": "boolean",
    "acted": "boolean", "score": "Float64",
}  # fmt: skip
"""Columns and their kinds, as pandas names those that may be null: so they are read, whatever there is."""
READ = ("invalid_share", "loose_share")
"""Shares of an episode's belief updates that a model gave unreadably, or readably in another form than asked
for; the simulated agent's are 0. They stand in no log."""
HASHED = (
    "seed", "steps", "success", "probes", "useful", "repeated_probes", "actions", "valid_actions",
    "collapse_onset", "action_onset", "digest",
)  # fmt: skip

Values = npt.NDArray[Any]


# --- files ------------------------------------------------------------------------------------


def sha256(folder: Path, name: str) -> str:
    """The SHA-256 of a run's file, in hexadecimal.

    Raises:
        InputError: if the file is not there or cannot be read.
    """
    try:
        check_plain(folder / name)
        return file_sha256(folder / name)
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror})") from None


def write_table(path: Path, table: pd.DataFrame, header: dict[str, Any] | None = None) -> str:
    """A table as a Parquet file, put in place in one step, and the file's SHA-256, which is returned.

    Args:
        path: the file; one that is there is replaced.
        table: its rows.
        header: what the file says of itself: the `attrs` of the frame that pandas reads.
    """
    table.attrs = header or {}
    how = {"row_group_size": GROUP_ROWS, "compression": "zstd", "write_page_checksum": True}
    with atomic_write(path) as temporary:
        table.to_parquet(temporary, index=False, **how)
        return sha256(temporary.parent, temporary.name)


def read_table(folder: Path, name: str, kinds: dict[str, str]) -> pd.DataFrame:
    """The table in a Parquet file of a run, in columns that may be null.

    Raises:
        InputError: if the file cannot be read, or its columns are not those of `kinds`.
    """
    import pyarrow as pa

    try:
        check_plain(folder / name)
        how: dict[str, Any] = {"dtype_backend": "numpy_nullable", "page_checksum_verification": True}
        table = pd.read_parquet(folder / name, **how)
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError, OverflowError, MemoryError) as error:
        raise InputError(f"{name}: cannot be read as Parquet ({error})") from None
    found = [f"{column} ({kind})" for column, kind in table.dtypes.items()]
    due = [f"{column} ({kind})" for column, kind in kinds.items()]
    for odd in sorted({*found, *due}):
        if found.count(odd) != due.count(odd):
            raise InputError(f"{name}: column {odd} is missing, or none of a run's")
    return table


def to_numpy(column: pd.Series) -> tuple[Values, Values]:
    """The numbers of a column [row], 0 where it is null, and whether it is null there, [row]."""
    null = column.isna().to_numpy()
    kind = getattr(column.dtype, "numpy_dtype", column.dtype)
    return column.to_numpy(dtype=kind, na_value=0), null


# --- episodes ---------------------------------------------------------------------------------


def episode_table(condition: Condition, columns: Columns) -> pd.DataFrame:
    """A condition's episodes as rows of the table; an onset that never comes is null."""
    rows = len(columns["seed"])
    columns = dict.fromkeys(READ, np.zeros(rows)) | columns
    key = condition.key
    texts = {
        name: pd.Series(key[name], range(rows), "str") for name, kind in KEYS.items() if kind == "string"
    }
    numbers = {"budget": np.full(rows, key["budget"]), "threshold": np.full(rows, key["threshold"], float)}
    return pd.DataFrame(texts | numbers | {name: columns[name] for name in MEASURES})


def measures_of(table: pd.DataFrame) -> Columns:
    """The columns `MEASURES` of rows of the table; a null is NaN."""
    found = {key: to_numpy(table[key]) for key in MEASURES}
    return {key: np.where(null, np.nan, own) if null.any() else own for key, (own, null) in found.items()}


def read_episodes(folder: Path, sizes: Sequence[int]) -> list[pd.DataFrame]:
    """The episodes of each condition of a run, in order; `sizes` says how many each has.

    Raises:
        InputError: if the file cannot be read, or holds more or fewer.
    """
    table, starts = read_table(folder, EPISODES, KEYS | MEASURES), np.cumsum([0, *sizes])
    if len(table) != starts[-1]:
        raise InputError(f"{EPISODES}: has {len(table)} rows, not {starts[-1]}")
    return [table[start:past].reset_index(drop=True) for start, past in pairwise(starts.tolist())]


# --- steps ------------------------------------------------------------------------------------


def log_header(condition: Condition, seeds: Seeds) -> dict[str, Any]:
    """What a condition's log of some seeds, ascending, says of itself."""
    world = make_world(condition.world, condition.regime, condition.protocol)
    habits = {
        name: own for name, own in condition.profile.as_dict().items() if name not in ("name", "assumption")
    }
    return {
        "format": "envprobe-log/3",
        **condition.key,
        **condition.profile.identity,
        "threshold_in_force": condition.threshold_in_force if condition.policy.has_threshold else None,
        **habits,
        "horizon": condition.regime.horizon,
        "fields": list(world.field_names),
        "kinds": list(world.field_kinds),
        "actions": list(world.action_names),
        "seeds": seed_ranges(seeds),
    }


def step_columns(world: World) -> dict[str, tuple[str, Any]]:
    """A log's columns between `t` and `success`, in order: an array, and its belief field."""
    columns: dict[str, tuple[str, Any]] = {}
    for array in STATE | DECISION:
        if array in BY_FIELD:
            columns |= {f"{array} {name}": (array, field) for field, name in enumerate(world.field_names)}
        else:
            columns[array] = (array, ...)
    return columns


def step_kinds(columns: dict[str, tuple[str, Any]]) -> dict[str, str]:
    """The kinds of a log's columns."""
    kinds = {name: (STATE | DECISION)[array] for name, (array, _) in columns.items()}
    return {"seed": "Int64", "t": "Int16", **kinds, "success": "boolean"}


def lines_of(steps: Values) -> tuple[Values, Values, Values]:
    """Row and t of each line of a log, [line], and whether it is its episode's last."""
    row, t = np.nonzero(np.arange(steps.max() + 1) <= steps[:, None])
    return row, t, t == steps[row]


def step_table(condition: Condition, seeds: Seeds, trajectory: Trajectory) -> pd.DataFrame:
    """The log rows of a condition's episodes, recorded with staleness and confidence."""
    columns = step_columns(make_world(condition.world, condition.regime, condition.protocol))
    row, t, final = lines_of(trajectory.steps)
    step = np.minimum(t, condition.regime.horizon - 1)
    nulls = {"probe": final | (trajectory.probe[row, step] == NONE)}
    nulls |= {"answer": nulls["probe"], "score": final | np.isnan(trajectory.score[row, step])}
    made: dict[str, Any] = {"seed": seeds[row].astype(np.int64), "t": t.astype(np.int16)}
    for name, (array, field) in columns.items():
        values = getattr(trajectory, array)
        if array in STATE:
            kind = pd.api.types.pandas_dtype(STATE[array]).numpy_dtype
            made[name] = values[row, t, field].astype(kind)
        elif array == "score":
            made[name] = np.where(nulls[name], np.nan, values[row, step])
        else:
            made[name] = _nullable(values[row, step, field], nulls.get(name, final), DECISION[array])
    made["success"] = _nullable(trajectory.success[row], ~final, "boolean")
    return pd.DataFrame(made, copy=False)


def _nullable(values: Values, null: Values, kind: str) -> Any:
    """An array of a nullable kind, null where `null` [row] says so."""
    dtype = pd.api.types.pandas_dtype(kind)
    return dtype.construct_array_type()(values.astype(dtype.numpy_dtype), null.copy())


def read_steps(
    folder: Path, name: str, condition: Condition, seeds: Seeds
) -> tuple[Trajectory, pd.DataFrame]:
    """The recording of a condition's logged episodes, scored, and the lines of the log that say it.

    Episodes are told apart by where `success` stands; the recording is what the lines say, but for a probe of
    a field that there is not, which is the nearest one.

    Args:
        folder: of the run.
        name: of the log in it.
        condition: the condition.
        seeds: the logged ones, ascending.

    Raises:
        InputError: if the log cannot be read, or does not hold as many whole episodes.
    """
    columns = step_columns(make_world(condition.world, condition.regime, condition.protocol))
    setting, horizon = kernel_params(condition), condition.regime.horizon
    table = read_table(folder, name, step_kinds(columns))
    success, ongoing = to_numpy(table["success"])
    final = np.flatnonzero(~ongoing)
    steps = np.diff(final, prepend=-1) - 1
    if len(table) > (final[-1] + 1 if len(final) else 0):
        raise InputError(f"{name}: is cut short after {len(steps)} episodes")
    if steps.max(initial=0) > horizon:
        raise InputError(f"{name}: an episode goes on behind the horizon, {horizon}")
    if len(steps) > len(seeds):
        raise InputError(f"{name}: goes on behind its last seed, {seeds[-1]}")
    if len(steps) < len(seeds):
        raise InputError(f"{name}: ends before seed {seeds[len(steps)]}")
    logs, (row, t, _) = room_for_logs(horizon, len(steps)), lines_of(steps)
    for key, (array, field) in columns.items():
        values, null = to_numpy(table[key])
        if array == "probe":
            values = np.clip(values, NONE, setting.world.fields - 1)
        logs[array][row[~null], t[~null], field] = values[~null]
    return scored(setting, logs, steps, success[final]), table


# --- what is there beside what is due -----------------------------------------------------------


def disagreements(name: str, found: pd.DataFrame, due: pd.DataFrame) -> Iterator[str]:
    """Say of every value of a file's rows that is not the one due where it stands, and what is due."""
    for column in due:
        stated, right = found[column], due[column].astype(found[column].dtype)
        if stated.equals(right):
            continue
        same = (stated == right).fillna(False) | (stated.isna() & right.isna())
        for row in np.flatnonzero(~same.to_numpy(bool)).tolist():
            place = [f"{key} {due[key].iloc[row]}" for key in ("seed", "t") if key in due]
            here, ours = (None if pd.isna(one.iloc[row]) else one.iloc[row] for one in (stated, right))
            yield unlike(", ".join([name, *place, str(column)]), here, ours)


# --- what conditions come to ------------------------------------------------------------------------


def outcomes(columns: Columns) -> bytes:
    """Write the measures `HASHED` of episodes [row] as little-endian 64-bit whole numbers, row by row.

    An onset that never comes is -1.
    """
    made = np.empty((len(columns["seed"]), len(HASHED)), dtype="<i8")
    for position, name in enumerate(HASHED):
        column = columns[name]
        if column.dtype == np.float64:
            column = np.where(np.isnan(column), -1, column)
        made[:, position] = column.view("<i8") if name == "digest" else column
    return made.tobytes()


def result_hash(columns: Columns) -> str:
    """Condense a condition's integer outcomes, its episodes in any order, into SHA-256, in hexadecimal.

    `digest` stands for the right-field counts at each time and the probes at each step (see
    `engine.scoring.digest`).
    """
    order = np.argsort(columns["seed"], kind="stable")
    return hashlib.sha256(outcomes({name: columns[name][order] for name in HASHED})).hexdigest()


def mean_of(name: str, values: npt.NDArray[np.float64]) -> float | None:
    """The correctly rounded sum of a measure by the number of its values, None if it has none.

    Raises:
        InputError: if a value is not finite, which no measure of a run is.
    """
    if not np.isfinite(values).all():
        raise InputError(f"{EPISODES}: a value of {name} is not a finite number")
    return math.fsum(values.tolist()) / len(values) if len(values) else None


def readings(condition: Condition, columns: Columns) -> dict[str, float | None]:
    """The mean shares `READ` of a language model's episodes; nothing of the simulated agent's.

    Raises:
        InputError: if a share is not a finite number.
    """
    return {name: mean_of(name, columns[name]) for name in READ} if condition.profile.identity else {}


def played(columns: Columns) -> Columns:
    """The episodes [row] of which a belief update at least could be read: no others count in a mean."""
    if "invalid_share" not in columns or (there := is_played(columns["invalid_share"])).all():
        return columns
    return {name: column[there] for name, column in columns.items()}


def summary_row(condition: Condition, columns: Columns, ends: Sequence[float]) -> dict[str, Any]:
    """The row of a condition in the summary table, given its accuracy's mean, low and high end."""
    whole, columns = columns, played(columns)
    fired, onset, n = columns["probes"] > 0, columns["collapse_onset"], len(columns["seed"])
    accuracy, low, high = (None if np.isnan(end) else float(end) for end in ends)
    success = wilson(int(columns["success"].sum()), n) if n else Interval(None, None, None, 0)
    averaged = {name: columns[name] for name in ("accuracy_terminal", "accuracy_slot", "probes")}
    averaged["useful_probe_rate"] = columns["useful"][fired] / columns["probes"][fired]
    averaged["collapse_onset"] = onset[~np.isnan(onset)]
    mean = {name: mean_of(name, values) for name, values in averaged.items()}
    return {
        **{name: condition.key[name] for name in ("world", "policy", "regime", "protocol", "profile")},
        "n": n,
        "accuracy": accuracy,
        "accuracy_low": low,
        "accuracy_high": high,
        **{name: mean[name] for name in ("accuracy_terminal", "accuracy_slot")},
        "task_success": success.value,
        "task_success_low": success.low,
        "task_success_high": success.high,
        **{name: mean[name] for name in ("probes", "useful_probe_rate", "collapse_onset")},
        "onset_censored": int(np.isnan(onset).sum()),
        **({"unread": len(whole["seed"]) - n} if condition.profile.identity else {}),
        **readings(condition, whole),
        "result_hash": result_hash(whole),
    }


def summary_rows(conditions: Sequence[Condition], columns: Sequence[Columns]) -> list[dict[str, Any]]:
    """The summary table of conditions, a row each; a mean without events, or one episode's interval, is None.

    Accuracies have percentile intervals of the bootstrapped mean (normal ones above `statistics.LARGE`
    episodes), success has Wilson's. Probes are a mean over episodes; the useful-probe rate is the mean of
    useful / fired over episodes that fired; the onset is the mean over episodes that collapse. Episodes of
    which no belief update could be read are `unread`, and no part of `n`.

    Args:
        conditions: the conditions.
        columns: the measures of each condition's episodes, columns [row].

    Raises:
        InputError: if a measure is not a finite number.
    """
    kept = [played(own) for own in columns]
    ends, sizes = np.full((len(conditions), 3), np.nan), np.array([len(own["seed"]) for own in kept])
    for size in np.unique(sizes[sizes > 0]):  # conditions of one size share resamples
        same = np.flatnonzero(sizes == size)
        values = np.stack([kept[index]["accuracy"] for index in same], axis=1)
        ends[same] = np.stack(mean_intervals(values), axis=1)
    return [
        summary_row(condition, own, end)
        for condition, own, end in zip(conditions, columns, ends, strict=True)
    ]
