"""Parts of a run: one cell's next `PART_EPISODES` episodes, stored once and never run again.

While a run goes on, `parts/` in its folder holds two files of each finished part: its log's lines,
compressed, and its columns; a third where a language model was asked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson

from envprobe_core.cells import Cell
from envprobe_core.engine.recording import Columns
from envprobe_core.episodes import columns_as_lists, columns_from_lists
from envprobe_core.logs import compress
from envprobe_core.manifest import RunInputs, cell_slug

PARTS = "parts"
PART_EPISODES = 500  # fixed: a log's bytes depend on where its chunks are cut
TEMPORARY = ".part"


@dataclass(frozen=True)
class Part:
    """Neighbouring episodes of one cell: the unit that is written once and never run again.

    Attributes:
        index: position of the cell in the run.
        number: position of the part in the cell.
        cell: the cell.
        seeds: the part's seeds, ascending.
        logged: how many of them, from the first, are logged.
    """

    index: int
    number: int
    cell: Cell
    seeds: npt.NDArray[np.int64]
    logged: int

    @property
    def stem(self) -> str:
        """Return the name of the part's files, without their endings."""
        return f"{cell_slug(self.cell)}.{self.number:06d}"


def cut_parts(inputs: RunInputs) -> list[Part]:
    """Cut a run into parts, in the order of cells and seeds."""
    parts = []
    for index, (cell, seeds) in enumerate(zip(inputs.cells, inputs.seeds_of_cells, strict=True)):
        to_log = len(inputs.logged(index))
        for number, start in enumerate(range(0, len(seeds), PART_EPISODES)):
            own = seeds[start : start + PART_EPISODES]
            parts.append(Part(index, number, cell, own, int(np.clip(to_log - start, 0, len(own)))))
    return parts


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a name to write to, and put what was written in place at once when it is whole.

    Args:
        path: the file that appears, or is replaced, in one step.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def part_calls(folder: Path, part: Part) -> Path:
    """Name the file that says what a part asked of a language model; written before the part's others."""
    return folder / PARTS / f"{part.stem}.calls"


@dataclass(frozen=True)
class Finished:
    """What came of a part, ready to be stored.

    Attributes:
        part: the part.
        columns: its episodes.
        lines: how many lines its log has.
        log: the lines of its logged episodes, compressed.
    """

    part: Part
    columns: Columns
    lines: int
    log: bytes


def finish_part(part: Part, columns: Columns, text: bytes) -> Finished:
    """Compress a part's log.

    Args:
        part: the part.
        columns: its episodes.
        text: the lines of its logged episodes.
    """
    return Finished(part, columns, text.count(b"\n"), compress(text) if part.logged else b"")


def store_part(folder: Path, finished: Finished) -> None:
    """Store a part: first its log, then its columns, which say that it is whole.

    Args:
        folder: the run's folder.
        finished: what came of it.
    """
    part = finished.part
    if part.logged:
        with replacing(folder / PARTS / f"{part.stem}.gz") as path:
            path.write_bytes(finished.log)
    with replacing(folder / PARTS / f"{part.stem}.json") as path:
        path.write_bytes(orjson.dumps({"lines": finished.lines, **columns_as_lists(finished.columns)}))


def read_part(folder: Path, part: Part) -> tuple[int, Columns] | None:
    """Read a finished part.

    Args:
        folder: the run's folder.
        part: the part.

    Returns:
        How many lines its log has, and its columns; None if it is not there, or not whole.
    """
    parts = folder / PARTS
    with suppress(OSError, ValueError, KeyError, TypeError, OverflowError):
        content = orjson.loads((parts / f"{part.stem}.json").read_bytes())
        columns = columns_from_lists(content)
        whole = np.array_equal(columns["seed"], part.seeds)
        if whole and (not part.logged or (parts / f"{part.stem}.gz").is_file()):
            return int(content["lines"]), columns
    return None
