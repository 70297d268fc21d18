"""The tables of a run as Parquet: a row an episode, a row a step in a condition's log, and what conditions come to.

The table of episodes has the columns of `SCHEMA`; an onset that never comes and the threshold of a policy
without one are null. A log has, for each episode in order of seed, the rows t = 0..steps: the state at t
(`seed t place` and, for every belief field, `belief`, `gold`, `staleness` and `confidence` with the field's
name) and the decision at t; in the last row, which holds no decision, `success` says whether the goal was
reached. What an episode does not have is null. The header in the file's metadata says what it holds, so that
it can be read alone.

What a table holds is not looked at value by value: `disagreements` compares it with the table that is due.
"""

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from envprobe_core.conditions import Condition, Seeds
from envprobe_core.engine.batch import BY_FIELD, Columns, Trajectory, kernel_params, room_for_logs, scored
from envprobe_core.engine.records import NONE
from envprobe_core.errors import InputError
from envprobe_core.files import atomic_write, check_plain
from envprobe_core.runs.manifest import EPISODES, seed_ranges, unlike
from envprobe_core.statistics import LARGE, mean_intervals, normal_half_width, wilson
from envprobe_core.worlds import World, make_world

GROUP_ROWS = 50_000  # of a file; what is in memory at once while it is written or read
FORM: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
HEADER = b"envprobe"

KEYS = {
    "world": pa.string(), "policy": pa.string(), "regime": pa.string(), "protocol": pa.string(),
    "profile": pa.string(), "budget": pa.int64(), "threshold": pa.float64(),
}  # fmt: skip
MEASURES = {
    "seed": pa.int64(), "n_fields": pa.int64(), "horizon": pa.int64(), "steps": pa.int64(),
    "accuracy": pa.float64(), "accuracy_terminal": pa.float64(), "accuracy_slot": pa.float64(),
    "success": pa.bool_(), "probes": pa.int64(), "useful": pa.int64(), "collapse_onset": pa.float64(),
    "actions": pa.int64(), "valid_actions": pa.int64(), "action_onset": pa.float64(),
    "repeated_probes": pa.int64(), "digest": pa.uint64(),
}  # fmt: skip
STATE = {
    "place": pa.int8(), "belief": pa.int8(), "gold": pa.int8(), "staleness": pa.uint8(),
    "confidence": pa.uint8(),
}  # fmt: skip
DECISION = {
    "action": pa.int16(), "probe": pa.int16(), "answer": pa.int8(), "useful": pa.bool_(),
    "valid": pa.bool_(), "acted": pa.bool_(), "score": pa.float64(),
}  # fmt: skip
NULLABLE = ("threshold", "collapse_onset", "action_onset")
SCHEMA = pa.schema(KEYS | MEASURES)
HASHED = (
    "seed", "steps", "success", "probes", "useful", "repeated_probes", "actions", "valid_actions",
    "collapse_onset", "action_onset", "digest",
)  # fmt: skip
STEP = 2.0**26  # what `exact_sum` takes off at a time: sums of 2**26 values below it are exact

Values = npt.NDArray[Any]


# --- files ------------------------------------------------------------------------------------


def sha256(folder: Path, name: str) -> str:
    """Return SHA-256 of a file, in hexadecimal."""
    try:
        check_plain(folder / name)
        with (folder / name).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror})") from None


def write_tables(path: Path, tables: Iterable[pa.Table], header: dict[str, Any] | None = None) -> str:
    """Write tables, at least one, whole ones to a row group of about `GROUP_ROWS`; return the SHA-256."""
    tables = iter(tables)
    waiting, about = [next(tables)], header and {HEADER: orjson.dumps(header)}
    with atomic_write(path) as temporary:
        with pq.ParquetWriter(temporary, waiting[0].schema.with_metadata(about), **FORM) as writer:
            for table in tables:
                if sum(map(len, waiting)) >= GROUP_ROWS:
                    writer.write_table(pa.concat_tables(waiting))
                    waiting.clear()
                waiting.append(table)
            writer.write_table(pa.concat_tables(waiting))
        return sha256(temporary.parent, temporary.name)


def read_groups(folder: Path, name: str, schema: pa.Schema) -> Iterator[pa.Table]:
    """Read a Parquet file of a run row group by row group; it must have these columns."""
    try:
        check_plain(folder / name)
        with pq.ParquetFile(folder / name, page_checksum_verification=True) as file:
            found, due = ([f"{one.name} ({one.type})" for one in own] for own in (file.schema_arrow, schema))
            for odd in sorted({*found, *due}):
                if found.count(odd) != due.count(odd):
                    raise InputError(f"{name}: column {odd} is missing, or none of a run's")
            yield from filter(len, map(file.read_row_group, range(file.num_row_groups)))
    except InputError:
        raise
    except (OSError, pa.ArrowException, ValueError, KeyError, OverflowError, MemoryError) as error:
        raise InputError(f"{name}: cannot be read as Parquet ({error})") from None


def to_arrow(values: Values, kind: pa.DataType, null: Values | None = None) -> pa.Array:
    """Turn an array [row] into Arrow's, null where said; pyarrow's own way imports pandas (0.2 s) first."""
    if kind == pa.bool_():
        data = np.packbits(values, bitorder="little")
    else:
        data = np.ascontiguousarray(values, dtype=kind.to_pandas_dtype())
    there = None if null is None else pa.py_buffer(np.packbits(~null, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [there, pa.py_buffer(data)])


def to_numpy(column: pa.ChunkedArray) -> tuple[Values, Values]:
    """Return a column's numbers, whatever they are where it is null, and where that is, [row] each."""
    array = column.combine_chunks()
    there, data = array.buffers()
    rows = slice(array.offset, array.offset + len(array))

    def bits(buffer: pa.Buffer) -> Values:
        return np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little")[rows].astype(bool)

    null = np.zeros(len(array), bool) if there is None else ~bits(there)
    if array.type == pa.bool_():
        return bits(data), null
    return np.frombuffer(data, array.type.to_pandas_dtype())[rows], null


# --- episodes ---------------------------------------------------------------------------------


def episode_table(condition: Condition, columns: Columns) -> pa.Table:
    """Return a condition's episodes as rows of the table; an onset that never comes is NaN among the columns."""
    rows, arrays = len(columns["seed"]), []
    for name, kind in KEYS.items():
        value = condition.key[name]
        if kind == pa.string():
            text = str(value).encode()
            ends = np.arange(rows + 1, dtype=np.int32) * len(text)
            arrays.append(pa.StringArray.from_buffers(rows, pa.py_buffer(ends), pa.py_buffer(text * rows)))
        else:
            arrays.append(pa.nulls(rows, kind) if value is None else to_arrow(np.full(rows, value), kind))
    for name, kind in MEASURES.items():
        arrays.append(to_arrow(columns[name], kind, np.isnan(columns[name]) if name in NULLABLE else None))
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def measures_of(table: pa.Table) -> Columns:
    """Return the columns `MEASURES` of rows of the table; a null is NaN."""
    found = {key: to_numpy(table.column(key)) for key in MEASURES}
    return {key: np.where(null, np.nan, own) if null.any() else own for key, (own, null) in found.items()}


def read_episodes(folder: Path, sizes: Sequence[int]) -> Iterator[tuple[int, pa.Table]]:
    """Read the table of a run, so many episodes of each condition: in turn a condition's position and its next rows."""
    ends, start = np.cumsum(sizes), 0
    for table in read_groups(folder, EPISODES, SCHEMA):
        while len(table) and start < ends[-1]:
            index = int(np.searchsorted(ends, start, side="right"))
            own = table.slice(0, ends[index] - start)
            yield index, own
            start, table = start + len(own), table.slice(len(own))
        start += len(table)
    if start != ends[-1]:
        raise InputError(f"{EPISODES}: has {start} rows, not {ends[-1]}")


# --- steps ------------------------------------------------------------------------------------


def log_header(condition: Condition, seeds: Seeds) -> dict[str, Any]:
    """Return what a condition's log of some seeds, ascending, says of itself."""
    world = make_world(condition.world, condition.regime, condition.protocol)
    habits = {
        name: own for name, own in condition.profile.as_dict().items() if name not in ("name", "assumption")
    }
    return {
        "format": "envprobe-log/2",
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
    """Return a log's columns between `t` and `success`, in order: an array, and its belief field."""
    columns: dict[str, tuple[str, Any]] = {}
    for array in STATE | DECISION:
        if array in BY_FIELD:
            columns |= {f"{array} {name}": (array, field) for field, name in enumerate(world.field_names)}
        else:
            columns[array] = (array, ...)
    return columns


def step_schema(columns: dict[str, tuple[str, Any]]) -> pa.Schema:
    """Return the schema of a log with these columns."""
    kinds = {name: (STATE | DECISION)[array] for name, (array, _) in columns.items()}
    return pa.schema({"seed": pa.int64(), "t": pa.int16(), **kinds, "success": pa.bool_()})


def lines_of(steps: Values) -> tuple[Values, Values, Values]:
    """Return row and t of each line of a log, [line], and whether it is its episode's last."""
    row, t = np.nonzero(np.arange(steps.max() + 1) <= steps[:, None])
    return row, t, t == steps[row]


def step_table(condition: Condition, seeds: Seeds, trajectory: Trajectory) -> pa.Table:
    """Return the log rows of a condition's episodes, recorded with staleness and confidence."""
    columns = step_columns(make_world(condition.world, condition.regime, condition.protocol))
    row, t, final = lines_of(trajectory.steps)
    step = np.minimum(t, condition.regime.horizon - 1)
    nulls = {"probe": final | (trajectory.probe[row, step] == NONE)}
    nulls |= {"answer": nulls["probe"], "score": final | np.isnan(trajectory.score[row, step])}
    arrays = {"seed": to_arrow(seeds[row], pa.int64()), "t": to_arrow(t, pa.int16())}
    for name, (array, field) in columns.items():
        values = getattr(trajectory, array)
        if array in STATE:
            arrays[name] = to_arrow(values[row, t, field], STATE[array])
        else:
            arrays[name] = to_arrow(values[row, step, field], DECISION[array], nulls.get(name, final))
    arrays["success"] = to_arrow(trajectory.success[row], pa.bool_(), ~final)
    return pa.table(arrays, schema=step_schema(columns))


def read_steps(
    folder: Path, name: str, condition: Condition, seeds: Seeds
) -> Iterator[tuple[Seeds, Trajectory, pa.Table]]:
    """Read a condition's log of some seeds, ascending: in turn the next seeds, their recording, scored, and lines.

    Episodes are told apart by where `success` stands; the recording is what the lines say, but for a probe of
    a field that there is not, which is the nearest one.
    """
    columns, done = step_columns(make_world(condition.world, condition.regime, condition.protocol)), 0
    setting, horizon = kernel_params(condition), condition.regime.horizon
    for table in read_groups(folder, name, step_schema(columns)):
        success, ongoing = to_numpy(table.column("success"))
        final = np.flatnonzero(~ongoing)
        steps = np.diff(final, prepend=-1) - 1
        if not len(steps) or final[-1] + 1 < len(table):
            raise InputError(f"{name}: is cut short after {done + len(steps)} episodes")
        if steps.max() > horizon:
            raise InputError(f"{name}: an episode goes on behind the horizon, {horizon}")
        if done + len(steps) > len(seeds):
            raise InputError(f"{name}: goes on behind its last seed, {seeds[-1]}")
        logs, (row, t, _) = room_for_logs(horizon, len(steps)), lines_of(steps)
        for key, (array, field) in columns.items():
            values, null = to_numpy(table.column(key))
            if array == "probe":
                values = np.clip(values, NONE, setting.world.fields - 1)
            logs[array][row[~null], t[~null], field] = values[~null]
        own = seeds[done : done + len(steps)]
        yield own, scored(setting, logs, steps, success[final]), table
        done += len(own)
    if done < len(seeds):
        raise InputError(f"{name}: ends before seed {seeds[done]}")


# --- what is there beside what is due -----------------------------------------------------------


def disagreements(name: str, found: pa.Table, due: pa.Table) -> Iterator[str]:
    """Say of every value of a file's rows that is not the one due where it stands, and what is due."""
    for column in due.column_names:
        if found.column(column).equals(due.column(column)):
            continue
        pairs = zip(found.column(column).to_pylist(), due.column(column).to_pylist(), strict=True)
        for row, (stated, right) in enumerate(pairs):
            if stated != right:
                place = [f"{key} {due.column(key)[row]}" for key in ("seed", "t") if key in due.column_names]
                yield unlike(", ".join([name, *place, column]), stated, right)


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
    `scoring.outcome_digest`).
    """
    order = np.argsort(columns["seed"], kind="stable")
    return hashlib.sha256(outcomes({name: columns[name][order] for name in HASHED})).hexdigest()


def exact_sum(values: npt.NDArray[np.float64]) -> list[float]:
    """Return a few numbers whose sum is exactly that of `values`: no order of adding moves a bit.

    The values are below 2**26, and no more than 2**26; others, of which no sum would end, are refused.
    """
    if not (np.abs(values) < STEP).all():
        raise InputError(f"{EPISODES}: a measure is not below {STEP:.0f}")
    parts, scale = [], 1.0
    while values.any():
        whole = np.floor(values * scale)
        parts.append(float(whole.sum()) / scale)
        values = values - whole / scale
        scale *= STEP
    return parts


class Summary:
    """A condition's row of the summary table, made in one pass over its episodes in order of seed.

    No more than `LARGE` accuracies are kept: a mean over more has the normal interval, which needs none. So a
    summary takes no room that grows with the episodes, but for a few numbers a block.
    """

    def __init__(self) -> None:
        self.n = 0
        self._sums: dict[str, list[float]] = defaultdict(list)
        self._counts: dict[str, int] = defaultdict(int)
        self._digest = hashlib.sha256()
        self.accuracies: list[npt.NDArray[np.float64]] = []

    def add(self, columns: Columns) -> None:
        """Take in the condition's next episodes, in order of seed."""
        fired, onset, accuracy = columns["probes"] > 0, columns["collapse_onset"], columns["accuracy"]
        averaged = {key: columns[key] for key in ("accuracy_terminal", "accuracy_slot", "success", "probes")}
        averaged["useful_probe_rate"] = columns["useful"][fired] / columns["probes"][fired]
        averaged["collapse_onset"] = onset[~np.isnan(onset)]
        averaged |= {"accuracy": accuracy, "squares": accuracy**2}
        for name, values in averaged.items():
            self._sums[name] += exact_sum(values)
            self._counts[name] += len(values)
        self._digest.update(outcomes(columns))
        self.n += len(onset)
        self.accuracies = [*self.accuracies, accuracy] if self.n <= LARGE else []

    def mean(self, name: str) -> float | None:
        """Return the correctly rounded sum of a measure by the number of its values, if there are any."""
        return math.fsum(self._sums[name]) / self._counts[name] if self._counts[name] else None

    @property
    def result_hash(self) -> str:
        """The `result_hash` of all episodes so far."""
        return self._digest.hexdigest()

    def normal_interval(self) -> tuple[float, float, float]:
        """Return the mean accuracy with the ends of its normal interval."""
        mean, squares = self.mean("accuracy") or 0.0, self.mean("squares") or 0.0
        half = float(normal_half_width(math.sqrt(max(squares - mean**2, 0.0)), self.n))
        return mean, mean - half, mean + half

    def row(self, condition: Condition, accuracy: npt.NDArray[np.float64]) -> dict[str, Any]:
        """Return the row of a condition, given its accuracy's mean, low and high end."""
        mean, low, high = (None if np.isnan(value) else float(value) for value in accuracy)
        success = wilson(int(math.fsum(self._sums["success"])), self.n)
        return {
            **{name: condition.key[name] for name in ("world", "policy", "regime", "protocol", "profile")},
            "n": self.n,
            "accuracy": mean,
            "accuracy_low": low,
            "accuracy_high": high,
            **{name: self.mean(name) for name in ("accuracy_terminal", "accuracy_slot")},
            "task_success": success.value,
            "task_success_low": success.low,
            "task_success_high": success.high,
            **{name: self.mean(name) for name in ("probes", "useful_probe_rate", "collapse_onset")},
            "onset_censored": self.n - self._counts["collapse_onset"],
            "result_hash": self.result_hash,
        }


def summary_rows(conditions: Sequence[Condition], summaries: Sequence[Summary]) -> list[dict[str, Any]]:
    """Make the summary table, one row a condition; a mean without events, or one episode's interval, is None.

    Accuracies have percentile intervals of the bootstrapped mean (normal ones above `LARGE` episodes),
    success has Wilson's. Probes are a mean over episodes; the useful-probe rate is the mean of useful / fired
    over episodes that fired; the onset is the mean over episodes that collapse.
    """
    ends, sizes = np.empty((len(summaries), 3)), np.array([own.n for own in summaries])
    for size in np.unique(sizes):  # conditions of one size share resamples
        same = np.flatnonzero(sizes == size)
        if size > LARGE:
            ends[same] = [summaries[index].normal_interval() for index in same]
        else:
            values = [np.concatenate(summaries[index].accuracies) for index in same]
            ends[same] = np.stack(mean_intervals(np.stack(values, axis=1)), axis=1)
    return [own.row(condition, end) for condition, own, end in zip(conditions, summaries, ends, strict=True)]
