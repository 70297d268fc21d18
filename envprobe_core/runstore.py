"""The run folder: who may write to it, what is finished in it, and how it is put together.

A folder holds `manifest.json` (what the run is, and in the end its hashes), `episodes.parquet` and
`logs/`. While a run goes on, `parts/` holds what is finished; a part is one cell's next
`PART_EPISODES` episodes. Every file is written under another name and then renamed, so that a run
that is killed leaves whole files only, and the same command goes on where it stopped. The manifest
says `finished` only after everything else is in place.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from envprobe_core.cells import Cell
from envprobe_core.episodes import (
    DamagedTableError,
    columns_as_lists,
    columns_from_lists,
    read_episodes,
    write_episodes,
)
from envprobe_core.errors import InputError
from envprobe_core.logs import compress, encode_line, log_footer, log_header
from envprobe_core.manifest import (
    FORMAT,
    RunInputs,
    cell_slug,
    finished_manifest,
    first_difference,
    inputs_of,
    log_name,
    new_manifest,
)
from envprobe_core.scoring import Columns
from envprobe_core.summary import result_hash, total_hash

MANIFEST = "manifest.json"
EPISODES = "episodes.parquet"
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


def write_part(folder: Path, part: Part, columns: Columns, text: bytes) -> None:
    """Store a finished part: first the lines of its log, then its columns, which say that it is whole.

    Args:
        folder: the run's folder.
        part: the part.
        columns: its episodes.
        text: the lines of its logged episodes.
    """
    if part.logged:
        with replacing(folder / PARTS / f"{part.stem}.gz") as path:
            path.write_bytes(compress(text))
    with replacing(folder / PARTS / f"{part.stem}.json") as path:
        path.write_bytes(orjson.dumps({"lines": text.count(b"\n"), **columns_as_lists(columns)}))


class RunFolder:
    """An open run folder; make one with `open_run`.

    Attributes:
        path: the folder.
        inputs: what the run is asked for.
        manifest: its manifest, as far as it is known.
        parts: all its parts.
    """

    def __init__(self, path: Path, inputs: RunInputs, manifest: dict[str, Any]) -> None:
        self.path = path
        self.inputs = inputs
        self.manifest = manifest
        self.parts = cut_parts(inputs)

    @property
    def finished(self) -> bool:
        """Say whether everything is in place."""
        return bool(self.manifest["finished"])

    def missing(self) -> list[Part]:
        """Return the parts that have not been run."""
        return [part for part in self.parts if self._stored(part) is None]

    def finish(self) -> list[Columns]:
        """Put logs and table together, state the hashes, and clear the parts away.

        Returns:
            The columns of each cell.
        """
        stored = [self._stored(part) for part in self.parts]
        cells = self.inputs.cells
        of_cell: list[list[int]] = [[] for _ in cells]
        for position, part in enumerate(self.parts):
            of_cell[part.index].append(position)
        columns = []
        for index, positions in enumerate(of_cell):
            own = [stored[position] for position in positions]
            if any(item is None for item in own):
                raise RuntimeError(f"{cell_slug(cells[index])} is put together before it is run")
            measures = [item[1] for item in own if item]
            columns.append({k: np.concatenate([m[k] for m in measures]) for k in measures[0]})
            if len(self.inputs.logged(index)):
                self._write_log(index, positions, sum(item[0] for item in own if item))
        with replacing(self.path / EPISODES) as path:
            write_episodes(path, cells, columns)
        hashes = [result_hash(part) for part in columns]
        total = total_hash(cells, hashes)
        self.manifest = finished_manifest(self.inputs, self.manifest, hashes, total)
        write_manifest(self.path, self.manifest)
        self.tidy()
        return columns

    def tidy(self) -> None:
        """Remove what a finished run does not need."""
        shutil.rmtree(self.path / PARTS, ignore_errors=True)

    def read(self) -> list[Columns]:
        """Read a finished run's table: the columns of each cell.

        Raises:
            InputError: if a file is missing, or the table is not what the manifest says.
        """
        cells = self.inputs.cells
        for name in map(log_name, cells if self.inputs.most_logged != 0 else ()):
            if not (self.path / name).is_file():
                raise InputError(f"{self.path} is marked as finished, but {name} is missing")
        sizes = [len(seeds) for seeds in self.inputs.seeds_of_cells]
        try:
            columns = read_episodes(self.path / EPISODES, cells, sizes)
        except DamagedTableError as error:
            raise InputError(f"{self.path} is marked as finished, but {error}") from None
        if total_hash(cells, [result_hash(part) for part in columns]) != self.manifest.get("result_hash"):
            raise InputError(
                f"{self.path} is marked as finished, but {EPISODES} does not give its result_hash"
            )
        return columns

    def _stored(self, part: Part) -> tuple[int, Columns] | None:
        """Return a part's number of log lines and its columns; None if it is not there, or not whole."""
        stem = self.path / PARTS / part.stem
        with suppress(OSError, ValueError, KeyError, TypeError, OverflowError):
            content = orjson.loads(stem.with_name(f"{part.stem}.json").read_bytes())
            columns = columns_from_lists(content)
            whole = np.array_equal(columns["seed"], part.seeds)
            if whole and (not part.logged or stem.with_name(f"{part.stem}.gz").is_file()):
                return int(content["lines"]), columns
        return None

    def _write_log(self, index: int, positions: Sequence[int], lines: int) -> None:
        cell, seeds = self.inputs.cells[index], self.inputs.logged(index)
        target = self.path / log_name(cell)
        target.parent.mkdir(exist_ok=True)
        with replacing(target) as path, path.open("wb") as log:
            log.write(compress(encode_line(log_header(cell, seeds))))
            for position in positions:
                part = self.parts[position]
                if part.logged:
                    log.write((self.path / PARTS / f"{part.stem}.gz").read_bytes())
            log.write(compress(encode_line(log_footer(lines, len(seeds)))))


@contextmanager
def open_run(path: Path, inputs: RunInputs) -> Iterator[RunFolder]:
    """Open a folder for a run and keep other runs out of it.

    Args:
        path: the folder; it is made if it is not there.
        inputs: what the run is asked for.

    Raises:
        InputError: if the folder holds something else or another run, or cannot be written to.
    """
    manifest = new_manifest(inputs)
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is not a folder")
    try:
        path.mkdir(parents=True, exist_ok=True)
        with _locked(path):
            found = _find_manifest(path)
            if found and (difference := first_difference(found, manifest)):
                raise InputError(
                    f"{path} holds a different run ({difference}); give the same inputs or another folder"
                )
            folder = RunFolder(path, inputs, found if found and found["finished"] else manifest)
            for stray in [*path.glob(f".*{TEMPORARY}"), *path.glob(f"*/.*{TEMPORARY}")]:
                stray.unlink(missing_ok=True)
            if folder.finished:
                folder.tidy()
            else:
                write_manifest(path, folder.manifest)
                (path / PARTS).mkdir(exist_ok=True)
            yield folder
    except OSError as error:
        where = error.filename or path
        raise InputError(f"cannot write to {where}: {error.strerror or error}") from None


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    handle = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"another run is writing to {path}") from None
        yield
    finally:
        os.close(handle)


def _find_manifest(path: Path) -> dict[str, Any] | None:
    """Return the manifest of a folder; None where nothing is in it that a run would not replace."""
    if (path / MANIFEST).is_file():
        return read_manifest(path)
    if any(not item.name.endswith(TEMPORARY) for item in path.iterdir()):
        raise InputError(f"{path} is not empty and holds no run; give a new folder")
    return None


def read_manifest(path: Path) -> dict[str, Any]:
    """Read a run's manifest.

    Args:
        path: the run's folder.

    Raises:
        InputError: if there is none, or it is none of ours.
    """
    if not path.is_dir():
        raise InputError(f"{path} is not a folder")
    try:
        manifest = orjson.loads((path / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise InputError(f"{path} holds no run: it has no {MANIFEST}") from None
    except (OSError, orjson.JSONDecodeError) as error:
        raise InputError(f"{path / MANIFEST} cannot be read ({error})") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT or "finished" not in manifest:
        raise InputError(f"{path / MANIFEST} is no manifest of a run ({FORMAT})")
    inputs_of(manifest)
    return manifest


def write_manifest(path: Path, manifest: dict[str, Any]) -> None:
    """Write a run's manifest in one step."""
    with replacing(path / MANIFEST) as temporary:
        temporary.write_bytes(orjson.dumps(manifest, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
