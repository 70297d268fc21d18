"""The episode table: a row an episode, as arrays in memory and as Parquet on disk.

It is written and read with pyarrow alone. Pandas reads the file too; a censored onset and the
threshold of a policy that has none are null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from envprobe_core.cells import Cell
from envprobe_core.scoring import Columns

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


class DamagedTableError(Exception):
    """An episode table that cannot be read, or is not one."""


def write_episodes(path: Path, cells: Sequence[Cell], parts: Sequence[Columns]) -> None:
    """Write the table of all cells, in the order of the cells.

    Args:
        path: the file to write.
        cells: the cells.
        parts: the columns of each cell's episodes.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = _key_columns(cells, [len(part["seed"]) for part in parts])
    for name, dtype in MEASURES.items():
        table[name] = np.concatenate([part[name] for part in parts]).astype(dtype)
    arrays = {name: _arrow_array(values, name in NULLABLE) for name, values in table.items()}
    pq.write_table(pa.table(arrays), path, compression="zstd")


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


def _key_columns(cells: Sequence[Cell], sizes: Sequence[int]) -> Columns:
    """Return what names the cell of each episode, [row]; NaN for a threshold that is none."""
    dtypes = {"budget": np.int64, "threshold": np.float64}
    return {
        key: np.repeat(np.array([cell.key[key] for cell in cells], dtype=dtypes.get(key)), sizes)
        for key in KEYS
    }


def read_episodes(path: Path, cells: Sequence[Cell], sizes: Sequence[int]) -> list[Columns]:
    """Read the table again.

    Args:
        path: the file.
        cells: the cells it must hold, in order.
        sizes: how many episodes each must have.

    Returns:
        The columns of each cell's episodes.

    Raises:
        DamagedTableError: if the file is missing or damaged, or holds other cells.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    def damaged(what: str) -> DamagedTableError:
        return DamagedTableError(f"{path.name}: {what}")

    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise damaged(f"cannot be read as Parquet ({error})") from None
    keys = _key_columns(cells, sizes)
    kinds = {key: _arrow_array(values[:0], nullable=False).type for key, values in keys.items()}
    kinds |= {name: pa.from_numpy_dtype(np.dtype(dtype)) for name, dtype in MEASURES.items()}
    for name, kind in kinds.items():
        if name not in table.column_names:
            raise damaged(f"has no column {name}")
        if table.schema.field(name).type != kind:
            raise damaged(f"column {name} is {table.schema.field(name).type}, not {kind}")
        if table[name].null_count and name not in NULLABLE:
            raise damaged(f"column {name} holds nulls")
    if table.num_rows != sum(sizes):
        raise damaged(f"has {table.num_rows} rows, not {sum(sizes)}")
    for key, values in keys.items():
        found = table[key].to_numpy()
        if not ((found == values) | ((found != found) & (values != values))).all():
            raise damaged(f"column {key} does not name the run's cells")
    columns = {name: table[name].to_numpy().astype(dtype) for name, dtype in MEASURES.items()}
    stops = np.cumsum(sizes)
    return [
        {name: column[stop - size : stop] for name, column in columns.items()}
        for size, stop in zip(sizes, stops, strict=True)
    ]


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
