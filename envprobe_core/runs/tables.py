"""Episodes and steps as Parquet: a row an episode in the table, a row a step in a cell's log.

The table has the columns of `SCHEMA`; an onset that never comes and the threshold of a policy without one are
null. A log has, for each episode in order of seed, the rows t = 0..steps: the state at t (`seed t place` and,
for every belief field, `belief`, `gold`, `staleness` and `confidence` with the field's name) and the decision
at t; in the last row, which holds no decision, `success` says whether the goal was reached. What an episode
does not have is null. The header in the file's metadata says what it holds, so that it can be read alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from envprobe_core.cells import Cell
from envprobe_core.engine.recording import Columns, Trajectory, score
from envprobe_core.engine.records import CERTAIN, NONE, STALENESS_LIMIT, UNKNOWN, WAIT
from envprobe_core.engine.setting import setting_of
from envprobe_core.errors import InputError
from envprobe_core.files import check_plain, replacing
from envprobe_core.instances import gold_of, instances
from envprobe_core.runs.inputs import seed_ranges
from envprobe_core.worlds import World, make_world
from envprobe_core.worlds.base import Ints

GROUP_ROWS = 50_000  # of a file; what is in memory at once while it is written or read
FORM: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
HEADER = b"envprobe"
LISTS = ("belief", "gold", "staleness", "confidence")
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
SCHEMA = pa.schema([pa.field(name, kind) for name, kind in (KEYS | MEASURES).items()])


class DamagedFileError(InputError):
    """A table or log that is not what a run writes; the message names file, place and column."""


def sha256(folder: Path, name: str) -> str:
    """Return SHA-256 of a file, in hexadecimal.

    Raises:
        DamagedFileError: if it cannot be read.
    """
    try:
        check_plain(folder / name)
        with (folder / name).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DamagedFileError(f"{name}: cannot be read ({error.strerror})") from None


def as_parquet(table: pa.Table) -> bytes:
    """Write one table as the bytes of a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **FORM)
    return sink.getvalue().to_pybytes()


def write_tables(path: Path, tables: Iterable[pa.Table], header: dict[str, Any] | None = None) -> str:
    """Write tables one after the other, whole ones to a row group, and return the file's SHA-256.

    Args:
        tables: at least one; no more than `GROUP_ROWS` rows of them are in memory.
        header: what the file says of itself in its metadata.
    """
    writer, waiting = None, []
    metadata = None if header is None else {HEADER: orjson.dumps(header)}
    with replacing(path) as temporary:
        for table in tables:
            if writer is None:
                schema = table.schema.with_metadata(metadata)
                writer = pq.ParquetWriter(temporary, schema, **FORM)
            waiting.append(table.replace_schema_metadata(metadata))
            if sum(map(len, waiting)) >= GROUP_ROWS:
                writer.write_table(pa.concat_tables(waiting))
                waiting = []
        if writer is not None:
            if waiting:
                writer.write_table(pa.concat_tables(waiting))
            writer.close()
        return sha256(temporary.parent, temporary.name)


def read_groups(path: Path, name: str, schema: pa.Schema, header: Any = None) -> Iterator[pa.Table]:
    """Read a Parquet file row group by row group.

    Args:
        name: how messages call it.
        schema: the columns that it must have.
        header: what it must say of itself.

    Raises:
        DamagedFileError: if it cannot be read, or is another table.
    """
    try:
        check_plain(path)
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            found = file.schema_arrow
            for field in schema:
                if field.name not in found.names:
                    raise DamagedFileError(f"{name}: has no column {field.name}")
                if found.field(field.name).type != field.type:
                    kind = found.field(field.name).type
                    raise DamagedFileError(f"{name}: column {field.name} is {kind}, not {field.type}")
            if strange := set(found.names) - set(schema.names):
                raise DamagedFileError(f"{name}: column {min(strange)} is none of a run's")
            if header is not None:
                _check_header(name, (found.metadata or {}).get(HEADER, b"{}"), header)
            for number in range(file.num_row_groups):
                yield file.read_row_group(number)
    except DamagedFileError:
        raise
    except (OSError, pa.ArrowException, ValueError, KeyError, OverflowError, MemoryError) as error:
        raise DamagedFileError(f"{name}: cannot be read as Parquet ({error})") from None


def _check_header(name: str, stated: bytes, header: dict[str, Any]) -> None:
    try:
        found = orjson.loads(stated)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise DamagedFileError(f"{name}: its header is no JSON object")
    for key, value in header.items():
        if found.get(key) != value:
            raise DamagedFileError(f"{name}: its header says {key} {found.get(key)!r:.60}, not {value!r:.60}")


# --- episodes ---------------------------------------------------------------------------------


def episode_columns(cell: Cell, seeds: Ints, measures: Columns) -> Columns:
    """Return the columns `MEASURES` of a cell's episodes, [row] each, from `engine.running.measure`."""
    sizes = {"n_fields": make_world(cell.world, cell.regime, cell.protocol).fields}
    sizes["horizon"] = cell.regime.horizon
    known = {"seed": seeds} | {name: np.full(len(seeds), size) for name, size in sizes.items()}
    return {name: known[name] if name in known else measures[name] for name in MEASURES}


def episode_table(cell: Cell, columns: Columns) -> pa.Table:
    """Return a cell's episodes as rows of the table."""
    rows = len(columns["seed"])
    keys = [_repeated(cell.key[name], rows, kind) for name, kind in KEYS.items()]
    values = [
        _array(columns[name], kind, np.isnan(columns[name]) if name in NULLABLE else None)
        for name, kind in MEASURES.items()
    ]
    return pa.Table.from_arrays([*keys, *values], schema=SCHEMA)


def read_episodes(
    path: Path, name: str, cells: list[Cell], sizes: list[int]
) -> Iterator[tuple[int, Columns]]:
    """Read a table of episodes, some rows at a time.

    Args:
        cells: the cells it must hold, in order.
        sizes: how many episodes each must have.

    Yields:
        The position of a cell and the columns of its next episodes.

    Raises:
        DamagedFileError: if it cannot be read, or holds other cells.
    """
    ends, start = np.cumsum(sizes), 0
    for table in read_groups(path, name, SCHEMA):
        for column in SCHEMA.names:
            if column not in NULLABLE and table.column(column).null_count:
                raise DamagedFileError(f"{name}: column {column} holds nulls")
        past = start + len(table)
        while start < min(past, ends[-1]):
            index = int(np.searchsorted(ends, start, side="right"))
            stop = min(past, int(ends[index]))
            rows = table.slice(len(table) - (past - start), stop - start)
            for key in KEYS:
                if rows.column(key).unique().to_pylist() != [cells[index].key[key]]:
                    raise DamagedFileError(f"{name}: column {key} does not name the run's cells")
            yield index, {key: _measure(rows.column(key)) for key in MEASURES}
            start = stop
        start = past
    if start != ends[-1]:
        raise DamagedFileError(f"{name}: has {start} rows, not {ends[-1]}")


def _measure(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    values, null = _numpy(column)
    return np.where(null, np.nan, values) if null.any() else values


def _repeated(value: Any, rows: int, kind: pa.DataType) -> pa.Array:
    if kind != pa.string():
        missing = np.full(rows, value is None)
        return _array(np.full(rows, 0 if value is None else value, kind.to_pandas_dtype()), kind, missing)
    text = str(value).encode()
    ends = np.arange(rows + 1, dtype=np.int32) * len(text)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(ends), pa.py_buffer(text * rows))


def _numpy(column: pa.ChunkedArray) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Return a column's numbers, whatever they are where it is null, and where that is, [row] each."""
    array = column.combine_chunks()
    there, data = array.buffers()
    rows = slice(array.offset, array.offset + len(array))

    def bits(buffer: pa.Buffer) -> npt.NDArray[np.bool_]:
        return np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little")[rows].astype(bool)

    null = np.zeros(len(array), bool) if there is None else ~bits(there)
    if array.type == pa.bool_():
        return bits(data), null
    return np.frombuffer(data, array.type.to_pandas_dtype())[rows], null


def _array(values: npt.NDArray[Any], kind: pa.DataType, missing: npt.NDArray[np.bool_] | None) -> pa.Array:
    """Turn an array into Arrow's, as `_numpy` turns it back; pyarrow's own ways import pandas first."""
    if kind == pa.bool_():
        data = np.packbits(values, bitorder="little")
    else:
        data = np.ascontiguousarray(values, dtype=kind.to_pandas_dtype())
    there = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [there, pa.py_buffer(data)])


# --- steps ------------------------------------------------------------------------------------


def log_header(cell: Cell, seeds: Ints) -> dict[str, Any]:
    """Return what a cell's log of some seeds, ascending, says of itself.

    `lists_all` stands only where it is true: a log of any other profile keeps the bytes that it had before
    there was such a habit.
    """
    world = make_world(cell.world, cell.regime, cell.protocol)
    return {
        "format": "envprobe-log/2",
        **cell.key,
        **cell.profile.identity,
        "threshold_in_force": cell.threshold_in_force if cell.policy.has_threshold else None,
        "writes": cell.profile.writes,
        "keeps_open": cell.profile.keeps_open,
        "scribe": cell.profile.scribe,
        "copies_gold": cell.profile.copies_gold,
        **({"lists_all": True} if cell.profile.lists_all else {}),
        "horizon": cell.regime.horizon,
        "fields": list(world.field_names),
        "kinds": list(world.field_kinds),
        "actions": list(world.action_names),
        "seeds": seed_ranges(seeds),
    }


class StepFormat:
    """The columns of a world's log, each with its Arrow type, the values it accepts and where it is null."""

    def __init__(self, world: World) -> None:
        self.world = world
        numbers = {"place": (pa.int8(), 0, LARGEST_PLACE)}
        for table, (kind, low, high) in {
            "belief": (pa.int8(), UNKNOWN, world.domain - 1),
            "gold": (pa.int8(), 0, world.domain - 1),  # but for fields that an instance lacks
            "staleness": (pa.uint8(), 0, STALENESS_LIMIT),
            "confidence": (pa.uint8(), 0, CERTAIN),
        }.items():
            tops = np.broadcast_to(high, world.fields).tolist()
            for field, top in zip(world.field_names, tops, strict=True):
                numbers[f"{table} {field}"] = (kind, low, top)
        self.state = numbers
        self.decision = {
            "action": (pa.int16(), WAIT, world.actions - 1),
            "probe": (pa.int16(), 0, world.fields - 1),
            "answer": (pa.int8(), 0, int(np.max(world.domain)) - 1),
            "useful": (pa.bool_(), 0, 1),
            "valid": (pa.bool_(), 0, 1),
            "acted": (pa.bool_(), 0, 1),
            "score": (pa.float64(), -np.inf, np.inf),
        }
        kinds = {"seed": pa.int64(), "t": pa.int16()}
        kinds |= {name: kind for name, (kind, _, _) in (self.state | self.decision).items()}
        self.schema = pa.schema([*kinds.items(), ("success", pa.bool_())])

    def table(self, seeds: Ints, trajectory: Trajectory) -> pa.Table:
        """Return the rows of some episodes, recorded with staleness and confidence."""
        times = np.arange(self.world.regime.horizon + 1)
        row, t = np.nonzero(times <= trajectory.steps[:, None])
        final = t == trajectory.steps[row]
        step = np.minimum(t, self.world.regime.horizon - 1)
        columns = {"seed": _array(seeds[row], pa.int64(), None), "t": _array(t, pa.int16(), None)}
        columns["place"] = _array(trajectory.place[row, t], pa.int8(), None)
        for name in LISTS:
            values = getattr(trajectory, name)[row, t].T
            for field, own in zip(self.world.field_names, values, strict=True):
                columns[f"{name} {field}"] = _array(own, self.state[f"{name} {field}"][0], None)
        unprobed = final | (trajectory.probe[row, step] == NONE)
        unscored = final | np.isnan(trajectory.score[row, step])
        nulls = {"probe": unprobed, "answer": unprobed, "score": unscored}
        for name, (kind, _, _) in self.decision.items():
            columns[name] = _array(getattr(trajectory, name)[row, step], kind, nulls.get(name, final))
        columns["success"] = _array(trajectory.success[row], pa.bool_(), ~final)
        return pa.Table.from_arrays([columns[name] for name in self.schema.names], schema=self.schema)


def lacking(world: World, seeds: Ints) -> npt.NDArray[np.bool_]:
    """Say which fields the instance of each seed lacks, [row, field]: edges of a graph of the public code."""
    if world.name != "graphnav" or world.protocol.instances != "sampled":
        return np.zeros((len(seeds), world.fields), bool)
    return gold_of(world, drawn := instances(world, seeds), drawn.state[:, None])[:, 0] == UNKNOWN


def step_table(cell: Cell, seeds: Ints, trajectory: Trajectory) -> pa.Table:
    """Return the log rows of a cell's episodes, as `StepFormat.table` does."""
    return StepFormat(make_world(cell.world, cell.regime, cell.protocol)).table(seeds, trajectory)


def read_steps(path: Path, name: str, cell: Cell, seeds: Ints) -> Iterator[tuple[Ints, Trajectory]]:
    """Read a cell's log, some episodes at a time, and score them.

    Args:
        seeds: the episodes it must hold, ascending.

    Yields:
        Seeds and their recording, with the measures that follow from it.

    Raises:
        DamagedFileError: at the first value that no run writes.
    """
    form = StepFormat(make_world(cell.world, cell.regime, cell.protocol))
    done = 0
    for table in read_groups(path, name, form.schema, log_header(cell, seeds)):
        episodes = _Episodes(name, form, table, seeds[done:])
        yield episodes.seeds, score(setting_of(cell), episodes.recorded())
        done += len(episodes.seeds)
    if done < len(seeds):
        raise DamagedFileError(f"{name}: ends before seed {seeds[done]}")


class _Episodes:
    """The rows of whole episodes, turned into arrays [row, time]."""

    def __init__(self, name: str, form: StepFormat, table: pa.Table, due: Ints) -> None:
        self.name, self.form = name, form
        self.columns = {key: _numpy(table.column(key)) for key in form.schema.names}
        final = ~self.columns["success"][1]
        starts = np.flatnonzero(np.concatenate([[True], final[:-1]]))
        self.row = np.cumsum(np.concatenate([[0], final[:-1]]))
        self.t = np.arange(len(table)) - starts[self.row]
        self.final, self.seeds = final, due[: len(starts)]
        if len(starts) > len(due):
            raise DamagedFileError(f"{name}: goes on after its last seed")
        for key, expected in (("seed", self.seeds[self.row]), ("t", self.t)):
            found, null = self.columns[key]
            if (wrong := np.flatnonzero(null | (found != expected))).size:
                at = wrong[0]
                self._damaged(at, key, f"{found[at]} stands where {expected[at]} is due")
        horizon = form.world.regime.horizon
        if (late := np.flatnonzero((self.t >= horizon) & ~final)).size:
            self._damaged(late[0], "success", "is missing where the horizon is reached")
        if not final[-1]:
            self._damaged(len(final) - 1, "success", "is missing: the log is cut short")

    def recorded(self) -> dict[str, npt.NDArray[Any]]:
        """Return `belief` to `success` of a `Trajectory`, every value in its range."""
        world, rows = self.form.world, len(self.seeds)
        horizon = world.regime.horizon
        unprobed, no_score = self.columns["probe"][1], self.columns["score"][1]
        made: dict[str, npt.NDArray[Any]] = {}
        lacks = lacking(world, self.seeds)[self.row]
        for name in LISTS:
            block = np.zeros((rows, horizon + 1, world.fields), np.int16)
            for index, field in enumerate(world.field_names):
                unknown = lacks[:, index] & (name == "gold")
                block[self.row, self.t, index] = self._checked(f"{name} {field}", np.False_, unknown)
            made[name] = block.astype(np.uint8 if name in ("staleness", "confidence") else np.int8)
        made["place"] = np.zeros((rows, horizon + 1), np.int8)
        made["place"][self.row, self.t] = self._checked("place", np.False_)
        acting = ~self.final
        nulls = {"probe": unprobed | self.final, "answer": unprobed, "score": no_score | self.final}
        empty = {"action": WAIT, "probe": NONE, "score": np.nan}
        kinds = {"action": np.int16, "probe": np.int16, "answer": np.int8, "score": np.float64}
        for name in self.form.decision:
            made[name] = np.full((rows, horizon), empty.get(name, 0), kinds.get(name, np.bool_))
            missing = nulls.get(name, self.final)
            values = np.where(missing, empty.get(name, 0), self._checked(name, missing))
            made[name][self.row[acting], self.t[acting]] = values[acting]
        success = self.columns["success"][0][self.final]
        return made | {"steps": self.t[self.final], "success": success}

    def _checked(self, name: str, missing: Any, unknown: Any = np.False_) -> npt.NDArray[Any]:
        """Return a column's values, in its range or `unknown`, null where due and nowhere else."""
        _, low, high = (self.form.state | self.form.decision)[name]
        values, null = self.columns[name]
        inside = np.where(unknown, values == UNKNOWN, (values >= low) & (values <= high))
        wrong = (null != missing) | (~null & ~inside)
        if wrong.any():
            at = np.flatnonzero(wrong)[0]
            low, high = (UNKNOWN, UNKNOWN) if np.broadcast_to(unknown, null.shape)[at] else (low, high)
            given = "null" if null[at] else values[at]
            due = (
                f"accepted: {low}..{high}" if not np.broadcast_to(missing, null.shape)[at] else "null is due"
            )
            self._damaged(at, name, f"{given} is out of place; {due}")
        return values

    def _damaged(self, at: int, column: str, what: str) -> None:
        seed, t = (self.columns[key][0][at] for key in ("seed", "t"))
        raise DamagedFileError(f"{self.name}, seed {seed}, t {t}, {column}: {what}")
