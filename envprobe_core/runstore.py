"""The run folder: who may write to it, what is finished in it, and how it is put together.

A folder holds `manifest.json` (what the run is, and in the end its hashes), `episodes.parquet`,
`logs/` and, where a language model was asked, `calls.jsonl`; while a run goes on, `parts/` holds
what is finished (see `parts`). Every file is written under another name and then renamed, so that a
run that is killed leaves whole files only, and the same command goes on where it stopped. The
manifest says `finished` only after everything else is in place.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from envprobe_core.cells import Cell
from envprobe_core.engine.recording import Columns
from envprobe_core.episodes import DamagedTableError, read_blocks, write_episodes
from envprobe_core.errors import InputError
from envprobe_core.logs import compress, encode_line, log_footer, log_header
from envprobe_core.manifest import (
    FORMAT,
    RunInputs,
    finished_manifest,
    first_difference,
    inputs_of,
    log_name,
    new_manifest,
)
from envprobe_core.parts import PARTS, TEMPORARY, Part, cut_parts, part_calls, read_part, replacing
from envprobe_core.summary import RunningSummary, total_hash

MANIFEST = "manifest.json"
EPISODES = "episodes.parquet"
CALLS = "calls.jsonl"
BLOCK_PARTS = 100  # of a cell that are put together at once


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
        return [part for part in self.parts if read_part(self.path, part) is None]

    def finish(self) -> list[RunningSummary]:
        """Put logs and table together, state the hashes, and clear the parts away.

        Returns:
            The summary of each cell.
        """
        cells = self.inputs.cells
        summaries = [RunningSummary() for _ in cells]
        with replacing(self.path / EPISODES) as path:
            write_episodes(path, self._stored_blocks(summaries))
        if self.inputs.agent is not None:
            with replacing(self.path / CALLS) as path:
                path.write_bytes(b"".join(part_calls(self.path, part).read_bytes() for part in self.parts))
        hashes = [own.result_hash for own in summaries]
        total = total_hash(cells, hashes)
        self.manifest = finished_manifest(self.inputs, self.manifest, hashes, total)
        write_manifest(self.path, self.manifest)
        self.tidy()
        return summaries

    def _stored_blocks(self, summaries: Sequence[RunningSummary]) -> Iterator[tuple[Cell, Columns]]:
        """Read the parts again, some at a time; add them to their cell's summary, and write its log."""
        for index, group in groupby(self.parts, key=lambda part: part.index):
            parts, lines = list(group), 0
            for first in range(0, len(parts), BLOCK_PARTS):
                stored = [read_part(self.path, part) for part in parts[first : first + BLOCK_PARTS]]
                if None in stored:
                    raise RuntimeError(f"{parts[0].stem} is put together before it has been run")
                lines += sum(item[0] for item in stored if item)
                measures = [item[1] for item in stored if item]
                block = {name: np.concatenate([own[name] for own in measures]) for name in measures[0]}
                summaries[index].add(block)
                yield self.inputs.cells[index], block
            if parts[0].logged:
                self._write_log(index, parts, lines)

    def tidy(self) -> None:
        """Remove what a finished run does not need."""
        shutil.rmtree(self.path / PARTS, ignore_errors=True)

    def read(self) -> list[RunningSummary]:
        """Read a finished run's table: the summary of each cell.

        Raises:
            InputError: if a file is missing, or the table is not what the manifest says.
        """
        cells = self.inputs.cells
        for name in map(log_name, cells if self.inputs.most_logged != 0 else ()):
            if not (self.path / name).is_file():
                raise InputError(f"{self.path} is marked as finished, but {name} is missing")
        sizes = [len(seeds) for seeds in self.inputs.seeds_of_cells]
        summaries = [RunningSummary() for _ in cells]
        try:
            for index, block in read_blocks(self.path / EPISODES, cells, sizes):
                summaries[index].add(block)
        except DamagedTableError as error:
            raise InputError(f"{self.path} is marked as finished, but {error}") from None
        if total_hash(cells, [own.result_hash for own in summaries]) != self.manifest.get("result_hash"):
            raise InputError(
                f"{self.path} is marked as finished, but {EPISODES} does not give its result_hash"
            )
        return summaries

    def _write_log(self, index: int, parts: Sequence[Part], lines: int) -> None:
        cell, seeds = self.inputs.cells[index], self.inputs.logged(index)
        target = self.path / log_name(cell)
        target.parent.mkdir(exist_ok=True)
        with replacing(target) as path, path.open("wb") as log:
            log.write(compress(encode_line(log_header(cell, seeds))))
            for part in parts:
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
