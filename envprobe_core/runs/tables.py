"""The tables of a run as Parquet: a row an episode, a row a step in a cell's log, and what cells come to.

The table of episodes has the columns of `SCHEMA`; an onset that never comes and the threshold of a policy
without one are null. A log has, for each episode in order of seed, the rows t = 0..steps: the state at t
(`seed t place` and, for every belief field, `belief`, `gold`, `staleness` and `confidence` with the field's
name) and the decision at t; in the last row, which holds no decision, `success` says whether the goal was
reached. What an episode does not have is null. The header in the file's metadata says what it holds, so that
it can be read alone. Whatever no run writes is refused by an `InputError` that names file, place and column.
"""

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from envprobe_core.cells import Cell, Seeds
from envprobe_core.engine.records import CERTAIN, NONE, STALENESS_LIMIT, UNKNOWN, WAIT
from envprobe_core.engine.running import Columns, Trajectory, score, setting_of
from envprobe_core.errors import InputError
from envprobe_core.files import check_plain, replacing
from envprobe_core.runs.manifest import EPISODES, seed_ranges
from envprobe_core.statistics import LARGE, mean_intervals, normal_half_width, wilson
from envprobe_core.worlds import World, make_world

GROUP_ROWS = 50_000  # of a file; what is in memory at once while it is written or read
FORM: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
HEADER = b"envprobe"
LARGEST_PLACE = 127

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
    with replacing(path) as temporary:
        with pq.ParquetWriter(temporary, waiting[0].schema.with_metadata(about), **FORM) as writer:
            for table in tables:
                if sum(map(len, waiting)) >= GROUP_ROWS:
                    writer.write_table(pa.concat_tables(waiting).replace_schema_metadata(about))
                    waiting.clear()
                waiting.append(table)
            writer.write_table(pa.concat_tables(waiting).replace_schema_metadata(about))
        return sha256(temporary.parent, temporary.name)


def read_groups(folder: Path, name: str, schema: pa.Schema) -> Iterator[pa.Table]:
    """Read a Parquet file of a run row group by row group; it must have these columns."""
    try:
        check_plain(folder / name)
        with pq.ParquetFile(folder / name, page_checksum_verification=True) as file:
            found, due = ([f"{one.name} ({one.type})" for one in own] for own in (file.schema_arrow, schema))
            if sorted(found) != sorted(due):
                odd = min({*found} ^ {*due} or found)
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


def episode_table(cell: Cell, columns: Columns) -> pa.Table:
    """Return a cell's episodes as rows of the table; an onset that never comes is NaN among the columns."""
    rows, arrays = len(columns["seed"]), []
    for name, kind in KEYS.items():
        value = cell.key[name]
        if kind == pa.string():
            text = str(value).encode()
            ends = np.arange(rows + 1, dtype=np.int32) * len(text)
            arrays.append(pa.StringArray.from_buffers(rows, pa.py_buffer(ends), pa.py_buffer(text * rows)))
        else:
            full = np.full(rows, value, np.float64)
            arrays.append(pa.nulls(rows, kind) if value is None else to_arrow(full, kind))
    for name, kind in MEASURES.items():
        arrays.append(to_arrow(columns[name], kind, np.isnan(columns[name]) if name in NULLABLE else None))
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def measures_of(table: pa.Table) -> Columns:
    """Return the columns `MEASURES` of rows of the table; a null is NaN."""
    found = {name: to_numpy(table.column(name)) for name in MEASURES}
    return {key: np.where(null, np.nan, own) if null.any() else own for key, (own, null) in found.items()}


def read_episodes(folder: Path, cells: Sequence[Cell], sizes: Iterable[int]) -> Iterator[tuple[int, Columns]]:
    """Read the table of a run, so many episodes of each cell: in turn a cell's position and its next rows."""
    index, rows, left = 0, 0, [*sizes]
    due = sum(left)
    for table in read_groups(folder, EPISODES, SCHEMA):
        rows += len(table)
        for column in set(SCHEMA.names) - {*NULLABLE}:
            if table.column(column).null_count:
                raise InputError(f"{EPISODES}: column {column} holds nulls")
        while len(table) and index < len(left):
            own = table.slice(0, left[index])
            for key in KEYS:
                if own.column(key).unique().to_pylist() != [cells[index].key[key]]:
                    raise InputError(f"{EPISODES}: column {key} does not name the run's cells")
            columns = measures_of(own)
            for name in (name for name, kind in MEASURES.items() if kind == pa.float64()):
                bad = ~(np.abs(columns[name]) < STEP) & ~(np.isnan(columns[name]) & (name in NULLABLE))
                if bad.any():  # no exact sum of it ends
                    raise InputError(f"{EPISODES}: column {name} holds {columns[name][bad][0]}")
            yield index, columns
            table = table.slice(len(own))
            left[index] -= len(own)
            index += not left[index]
    if rows != due:
        raise InputError(f"{EPISODES}: has {rows} rows, not {due}")


# --- steps ------------------------------------------------------------------------------------


def log_header(cell: Cell, seeds: Seeds) -> dict[str, Any]:
    """Return what a cell's log of some seeds, ascending, says of itself."""
    world = make_world(cell.world, cell.regime, cell.protocol)
    habits = {name: getattr(cell.profile, name) for name in ("writes", "keeps_open", "scribe", "copies_gold")}
    if cell.profile.lists_all:  # a log of any other profile keeps the bytes that it had before this habit
        habits["lists_all"] = True
    return {
        "format": "envprobe-log/2",
        **cell.key,
        **cell.profile.identity,
        "threshold_in_force": cell.threshold_in_force if cell.policy.has_threshold else None,
        **habits,
        "horizon": cell.regime.horizon,
        "fields": list(world.field_names),
        "kinds": list(world.field_kinds),
        "actions": list(world.action_names),
        "seeds": seed_ranges(seeds),
    }


class StepColumn(NamedTuple):
    """A column of a log between `seed`, `t` and `success`."""

    kind: pa.DataType
    low: float  # the smallest and the largest value that it can have
    high: float
    array: str  # of a `Trajectory`
    of_state: bool  # whether it says something of the state at t, and not of the decision
    field: Any = ...  # the belief field, of the arrays that have one


def step_columns(world: World) -> tuple[dict[str, StepColumn], pa.Schema]:
    """Return what a world's log says of the state at t, then of the decision, in order; and its schema."""
    small, short, byte, truth = pa.int8(), pa.int16(), pa.uint8(), pa.bool_()
    values, columns = np.broadcast_to(world.domain, world.fields) - 1, {}
    for array, kind, low, highs, of_state in (
        ("place", small, 0, LARGEST_PLACE, True),
        ("belief", small, UNKNOWN, values, True),
        ("gold", small, UNKNOWN, values, True),  # unknown where the instance lacks the field
        ("staleness", byte, 0, np.full(world.fields, STALENESS_LIMIT), True),
        ("confidence", byte, 0, np.full(world.fields, CERTAIN), True),
        ("action", short, WAIT, world.actions - 1, False),
        ("probe", short, 0, world.fields - 1, False),
        ("answer", small, 0, int(values.max()), False),
        ("useful", truth, 0, 1, False),
        ("valid", truth, 0, 1, False),
        ("acted", truth, 0, 1, False),
        ("score", pa.float64(), -np.inf, np.inf, False),
    ):
        if np.ndim(highs) == 0:
            columns[array] = StepColumn(kind, low, highs, array, of_state)
            continue
        for field, (name, high) in enumerate(zip(world.field_names, highs.tolist(), strict=True)):
            columns[f"{array} {name}"] = StepColumn(kind, low, high, array, of_state, field)
    kinds = {name: column.kind for name, column in columns.items()}
    return columns, pa.schema({"seed": pa.int64(), "t": short, **kinds, "success": pa.bool_()})


def lines_of(steps: Values) -> tuple[Values, Values, Values]:
    """Return row and t of each line of a log, [line], and whether it is its episode's last."""
    row, t = np.nonzero(np.arange(steps.max() + 1) <= steps[:, None])
    return row, t, t == steps[row]


def step_table(cell: Cell, seeds: Seeds, trajectory: Trajectory) -> pa.Table:
    """Return the log rows of a cell's episodes, recorded with staleness and confidence."""
    columns, schema = step_columns(make_world(cell.world, cell.regime, cell.protocol))
    row, t, final = lines_of(trajectory.steps)
    step = np.minimum(t, cell.regime.horizon - 1)
    nulls = {"probe": final | (trajectory.probe[row, step] == NONE)}
    nulls |= {"answer": nulls["probe"], "score": final | np.isnan(trajectory.score[row, step])}
    arrays = {"seed": to_arrow(seeds[row], pa.int64()), "t": to_arrow(t, pa.int16())}
    for name, column in columns.items():
        values, place = getattr(trajectory, column.array), t if column.of_state else step
        null = None if column.of_state else nulls.get(name, final)
        arrays[name] = to_arrow(values[row, place, column.field], column.kind, null)
    arrays["success"] = to_arrow(trajectory.success[row], pa.bool_(), ~final)
    return pa.table(arrays, schema=schema)


def read_steps(folder: Path, name: str, cell: Cell, seeds: Seeds) -> Iterator[tuple[Seeds, Trajectory]]:
    """Read a cell's log of some seeds, ascending: the next seeds and their recording, scored, in turn."""
    world, done = make_world(cell.world, cell.regime, cell.protocol), 0
    columns, schema = step_columns(world)
    for table in read_groups(folder, name, schema):
        recorded = _recorded(name, world, columns, table, seeds[done:])
        own = seeds[done : done + len(recorded["steps"])]
        yield own, score(setting_of(cell), recorded)
        done += len(own)
    if done < len(seeds):
        raise InputError(f"{name}: ends before seed {seeds[done]}")


def _recorded(
    name: str, world: World, columns: dict[str, StepColumn], table: pa.Table, due: Seeds
) -> Columns:
    """Return `belief` to `success` of a `Trajectory` from the lines of whole episodes, each value checked."""
    found = {key: to_numpy(table.column(key)) for key in table.column_names}

    def refuse(key: str, wrong: Values, what: str, *due: Values) -> None:
        """Name the first line that is wrong: what is there, and what is due there."""
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            (seed, _), (t, _), (values, null) = found["seed"], found["t"], found[key]
            told = what.format("null" if null[at] else values[at], *(one[at] for one in due))
            raise InputError(f"{name}, seed {seed[at]}, t {t[at]}, {key}: {told}")

    success, ongoing = found["success"]
    refuse("success", ongoing & (np.arange(len(table)) == len(table) - 1), "is missing: the log is cut short")
    steps, horizon = np.diff(np.flatnonzero(~ongoing), prepend=-1) - 1, world.regime.horizon
    if len(steps) > len(due):
        raise InputError(f"{name}: goes on after its last seed")
    row, t, final = lines_of(steps)
    for key, expected in (("seed", due[row]), ("t", t)):
        refuse(key, found[key][1] | (found[key][0] != expected), "{} stands where {} is due", expected)
    refuse("success", (t >= horizon) & ~final, "is missing where the horizon is reached")
    nulls = {"probe": found["probe"][1] | final, "score": found["score"][1] | final}
    nulls["answer"] = nulls["probe"]
    empty = {"action": WAIT, "probe": NONE, "score": np.nan}
    made: Columns = {}
    for key, column in columns.items():
        values, null = found[key]
        blank = np.zeros(len(table), bool) if column.of_state else nulls.get(key, final)
        outside = ~blank & ((values < column.low) | (values > column.high))
        accepted = f"{column.low}..{column.high}" + ("" if column.of_state else ", null without a decision")
        refuse(key, outside | (null != blank), f"{{}} is out of place; accepted: {accepted}")
        if column.array not in made:
            shape = (len(steps), horizon + 1, *(() if column.field is ... else (world.fields,)))
            made[column.array] = np.full(shape, empty.get(key, 0), column.kind.to_pandas_dtype())
        made[column.array][row, t, column.field] = np.where(blank, empty.get(key, 0), values)
    decided = {name: made[name][:, :-1] for name, column in columns.items() if not column.of_state}
    return made | decided | {"steps": steps, "success": success[final]}


# --- what cells come to ------------------------------------------------------------------------


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
    """Condense a cell's integer outcomes, its episodes in any order, into SHA-256, in hexadecimal.

    `digest` stands for the right-field counts at each time and the probes at each step (see
    `scoring.outcome_digest`).
    """
    order = np.argsort(columns["seed"], kind="stable")
    return hashlib.sha256(outcomes({name: columns[name][order] for name in HASHED})).hexdigest()


def exact_sum(values: npt.NDArray[np.float64]) -> list[float]:
    """Return a few numbers whose sum is exactly that of `values`: no order of adding moves a bit.

    The values are finite and below 2**26, and no more than 2**26.
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

    No more than `LARGE` accuracies are kept: a mean over more has the normal interval, which needs none. So a
    summary takes no room that grows with the episodes, but for a few numbers a block.
    """

    def __init__(self) -> None:
        self.n = self._success = self._never = 0
        self._sums: dict[str, list[float]] = defaultdict(list)
        self._counts: dict[str, int] = defaultdict(int)
        self._digest = hashlib.sha256()
        self.accuracies: list[npt.NDArray[np.float64]] = []

    def add(self, columns: Columns) -> None:
        """Take in the cell's next episodes, in order of seed."""
        fired, onset = columns["probes"] > 0, columns["collapse_onset"]
        averaged = {key: columns[key] for key in ("accuracy", "accuracy_terminal", "accuracy_slot", "probes")}
        averaged["useful_probe_rate"] = columns["useful"][fired] / columns["probes"][fired]
        averaged["collapse_onset"] = onset[~np.isnan(onset)]
        averaged["squares"] = columns["accuracy"] ** 2
        for name, values in averaged.items():
            self._sums[name] += exact_sum(values)
            self._counts[name] += len(values)
        self._digest.update(outcomes(columns))
        self.n += len(onset)
        self._success += int(columns["success"].sum())
        self._never += int(np.isnan(onset).sum())
        self.accuracies = [*self.accuracies, columns["accuracy"]] if self.n <= LARGE else []

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
            **{name: self.mean(name) for name in ("accuracy_terminal", "accuracy_slot")},
            "task_success": success.value,
            "task_success_low": success.low,
            "task_success_high": success.high,
            **{name: self.mean(name) for name in ("probes", "useful_probe_rate", "collapse_onset")},
            "onset_censored": self._never,
            "result_hash": self.result_hash,
        }


def summary_rows(cells: Sequence[Cell], summaries: Sequence[Summary]) -> list[dict[str, Any]]:
    """Make the summary table, one row a cell; a mean without events, or one episode's interval, is None.

    Accuracies have percentile intervals of the bootstrapped mean (normal ones above `LARGE` episodes),
    success has Wilson's. Probes are a mean over episodes; the useful-probe rate is the mean of useful / fired
    over episodes that fired; the onset is the mean over episodes that collapse.
    """
    ends, sizes = np.empty((len(summaries), 3)), np.array([own.n for own in summaries])
    for size in np.unique(sizes):  # cells of one size share resamples
        same = np.flatnonzero(sizes == size)
        if size > LARGE:
            ends[same] = [summaries[index].normal_interval() for index in same]
        else:
            values = [np.concatenate(summaries[index].accuracies) for index in same]
            ends[same] = np.stack(mean_intervals(np.stack(values, axis=1)), axis=1)
    return [own.row(cell, end) for cell, own, end in zip(cells, summaries, ends, strict=True)]
