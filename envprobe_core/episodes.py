"""The episode table: a row an episode, as arrays in memory and as Parquet on disk.

It is written and read with pyarrow alone. Pandas reads the file too; a censored onset and the
threshold of a policy that has none are null.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from envprobe_core.cells import Cell
from envprobe_core.engine.recording import Columns

if TYPE_CHECKING:
    import pyarrow as pa

KEYS = ("world", "policy", "regime", "protocol", "profile", "budget", "threshold")
MEASURES: dict[str, str] = {
    "seed": "int64",
    "n_fields": "int64",
    "horizon": "int64",
    "steps": "int64",
    "accuracy": "float64",
    "accuracy_terminal": "float64",
    "accuracy_slot": "float64",
    "success": "bool",
    "probes": "int64",
    "useful": "int64",
    "collapse_onset": "float64",
    "actions": "int64",
    "valid_actions": "int64",
    "action_onset": "float64",
    "repeated_probes": "int64",
    "digest": "uint64",
}
NULLABLE = ("threshold", "collapse_onset", "action_onset")
GROUP_ROWS = 50_000  # of the file; what is in memory at once while it is written or read


class DamagedTableError(Exception):
    """An episode table that cannot be read, or is not one."""


def write_episodes(path: Path, blocks: Iterable[tuple[Cell, Columns]]) -> None:
    """Write the table, a group of rows at a time: what is in memory does not grow with the table.

    Args:
        path: the file to write.
        blocks: cells in order, each with the columns of its next episodes.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    try:
        for group in _row_groups(blocks):
            table = _key_columns(group)
            for name, dtype in MEASURES.items():
                table[name] = np.concatenate([columns[name] for _, columns in group]).astype(dtype)
            arrays = {name: _arrow_array(values, name in NULLABLE) for name, values in table.items()}
            batch = pa.table(arrays)
            writer = writer or pq.ParquetWriter(path, batch.schema, compression="zstd")
            writer.write_table(batch)
    finally:
        if writer is not None:
            writer.close()


def _row_groups(blocks: Iterable[tuple[Cell, Columns]]) -> Iterator[list[tuple[Cell, Columns]]]:
    """Join blocks until there are enough rows."""
    group: list[tuple[Cell, Columns]] = []
    for block in blocks:
        group.append(block)
        if sum(len(columns["seed"]) for _, columns in group) >= GROUP_ROWS:
            yield group
            group = []
    if group:
        yield group


def _arrow_array(values: npt.NDArray[np.generic], nullable: bool) -> pa.Array:
    """Turn an array into Arrow's, NaN into null; `pyarrow.array` would import pandas, which is slow."""
    import pyarrow as pa

    if values.dtype.kind == "U":
        texts = [text.encode() for text in values.tolist()]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int32)
        return pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends), pa.py_buffer(b"".join(texts)))
    data = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else values
    there = pa.py_buffer(np.packbits(~np.isnan(values), bitorder="little")) if nullable else None
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [there, pa.py_buffer(data)])


def _key_columns(group: Sequence[tuple[Cell, Columns]]) -> Columns:
    """Return what names the cell of each episode, [row]; NaN for a threshold that is none."""
    dtypes = {"budget": np.int64, "threshold": np.float64}
    sizes = [len(columns["seed"]) for _, columns in group]
    return {
        key: np.repeat(np.array([cell.key[key] for cell, _ in group], dtype=dtypes.get(key)), sizes)
        for key in KEYS
    }


def read_episodes(path: Path, cells: Sequence[Cell], sizes: Sequence[int]) -> list[Columns]:
    """Read the whole table again.

    Args:
        path: the file.
        cells: the cells it must hold, in order.
        sizes: how many episodes each must have.

    Returns:
        The columns of each cell's episodes.

    Raises:
        DamagedTableError: if the file is missing or damaged, or holds other cells.
    """
    blocks: list[list[Columns]] = [[] for _ in cells]
    for index, columns in read_blocks(path, cells, sizes):
        blocks[index].append(columns)
    return [{name: np.concatenate([block[name] for block in own]) for name in MEASURES} for own in blocks]


def read_blocks(path: Path, cells: Sequence[Cell], sizes: Sequence[int]) -> Iterator[tuple[int, Columns]]:
    """Read the table again, some rows at a time.

    Args:
        path: the file.
        cells: the cells it must hold, in order.
        sizes: how many episodes each must have.

    Yields:
        The position of a cell and the columns of its next episodes.

    Raises:
        DamagedTableError: if the file is missing or damaged, or holds other cells.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    owner = np.repeat(np.arange(len(cells)), sizes)
    start = 0
    try:
        with pq.ParquetFile(path) as file:
            _check_columns(path, file.schema_arrow, cells)
            if file.metadata.num_rows != sum(sizes):
                raise DamagedTableError(f"{path.name}: has {file.metadata.num_rows} rows, not {sum(sizes)}")
            for batch in file.iter_batches(GROUP_ROWS):
                here = owner[start : start + batch.num_rows]
                start += batch.num_rows
                for index in np.unique(here).tolist():
                    first, past = np.searchsorted(here, [index, index + 1]).tolist()
                    yield index, _measures(path, cells[index], batch.slice(first, past - first))
    except (OSError, pa.ArrowException) as error:
        raise DamagedTableError(f"{path.name}: cannot be read as Parquet ({error})") from None


def _check_columns(path: Path, schema: pa.Schema, cells: Sequence[Cell]) -> None:
    """Check that every column is there, of the type it is written with."""
    import pyarrow as pa

    keys = _key_columns([(cells[0], {"seed": np.empty(0)})])
    kinds = {key: _arrow_array(values, nullable=False).type for key, values in keys.items()}
    kinds |= {name: pa.from_numpy_dtype(np.dtype(dtype)) for name, dtype in MEASURES.items()}
    for name, kind in kinds.items():
        if name not in schema.names:
            raise DamagedTableError(f"{path.name}: has no column {name}")
        if schema.field(name).type != kind:
            raise DamagedTableError(f"{path.name}: column {name} is {schema.field(name).type}, not {kind}")


def _measures(path: Path, cell: Cell, batch: pa.RecordBatch) -> Columns:
    """Return the measures of rows that must be of one cell."""
    for name in (*KEYS, *MEASURES):
        if batch.column(name).null_count and name not in NULLABLE:
            raise DamagedTableError(f"{path.name}: column {name} holds nulls")
    for key in KEYS:
        found, value = batch.column(key).to_numpy(zero_copy_only=False), cell.key[key]
        if not (np.isnan(found) if value is None else found == value).all():
            raise DamagedTableError(f"{path.name}: column {key} does not name the run's cells")
    return {
        name: batch.column(name).to_numpy(zero_copy_only=False).astype(dtype)
        for name, dtype in MEASURES.items()
    }


def columns_as_lists(columns: Columns) -> dict[str, list[object]]:
    """Turn columns into plain lists, as a part of a run is stored; NaN becomes null in JSON."""
    return {name: columns[name].tolist() for name in MEASURES}


def columns_from_lists(lists: Mapping[str, list[object]]) -> Columns:
    """Turn stored lists into columns again.

    Args:
        lists: a list for each measure.

    Raises:
        KeyError, ValueError, TypeError, OverflowError: if they are not what was stored.
    """
    return {name: np.array(lists[name], dtype=dtype) for name, dtype in MEASURES.items()}
