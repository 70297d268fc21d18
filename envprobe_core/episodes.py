"""The episode table: a row an episode, as arrays in memory and as Parquet on disk.

It is written and read with pyarrow alone. Pandas reads the file too; a censored onset and the
threshold of a policy that has none are null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from envprobe_core.cells import Cell
from envprobe_core.scoring import Columns

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
NULLABLE = ("collapse_onset", "action_onset")


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

    sizes = [len(part["seed"]) for part in parts]
    table = {}
    for key in KEYS:
        values = pa.array([cell.key[key] for cell in cells], type=_arrow_type(key))
        table[key] = values.take(pa.array(np.repeat(np.arange(len(cells)), sizes)))
    for name, dtype in MEASURES.items():
        values = np.concatenate([part[name] for part in parts]).astype(dtype)
        table[name] = pa.array(values, mask=np.isnan(values) if name in NULLABLE else None)
    pq.write_table(pa.table(table), path, compression="zstd")


def _arrow_type(key: str) -> object:
    import pyarrow as pa

    return {"budget": pa.int64(), "threshold": pa.float64()}.get(key, pa.string())


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

    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise DamagedTableError(f"{path.name}: cannot be read as Parquet ({error})") from None
    expected = {key: _arrow_type(key) for key in KEYS}
    expected |= {name: pa.from_numpy_dtype(np.dtype(dtype)) for name, dtype in MEASURES.items()}
    for name, kind in expected.items():
        if name not in table.column_names:
            raise DamagedTableError(f"{path.name}: has no column {name}")
        if table.schema.field(name).type != kind:
            found = table.schema.field(name).type
            raise DamagedTableError(f"{path.name}: column {name} is {found}, not {kind}")
    if table.num_rows != sum(sizes):
        raise DamagedTableError(f"{path.name}: has {table.num_rows} rows, not {sum(sizes)}")
    for key in KEYS:
        wanted = pa.array([cell.key[key] for cell in cells], type=_arrow_type(key))
        wanted = wanted.take(pa.array(np.repeat(np.arange(len(cells)), sizes)))
        if not table[key].combine_chunks().equals(wanted):
            raise DamagedTableError(f"{path.name}: column {key} does not name the run's cells")
    columns = {name: _to_numpy(path, name, table[name]) for name in MEASURES}
    stops = np.cumsum(sizes)
    return [
        {name: column[stop - size : stop] for name, column in columns.items()}
        for size, stop in zip(sizes, stops, strict=True)
    ]


def _to_numpy(path: Path, name: str, column: object) -> npt.NDArray[np.generic]:
    if column.null_count and name not in NULLABLE:  # type: ignore[attr-defined]
        raise DamagedTableError(f"{path.name}: column {name} holds nulls")
    return column.to_numpy().astype(MEASURES[name])  # type: ignore[attr-defined]


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
