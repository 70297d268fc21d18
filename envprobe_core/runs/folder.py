"""The run folder: who may write to it, what of it is finished, and how that is put together.

A folder holds `manifest.json` (what the run is, and in the end its hashes), `episodes.parquet`, `logs/` and,
where a language model was asked, `calls.jsonl`. While a run goes on, `parts/` holds what is finished: of a
cell's next episodes their rows in table and log, a Parquet file each, which is there or not.
Every file is written under another name and then renamed, so that a run that is killed leaves whole files
only, and the same command goes on where it stopped. The manifest says `finished` only after all else.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from envprobe_core.cells import Cell
from envprobe_core.engine.recording import Columns, Trajectory
from envprobe_core.engine.running import measure, record
from envprobe_core.errors import InputError
from envprobe_core.files import OURS, held, replacing, sweep
from envprobe_core.pool import cores, spread
from envprobe_core.runs.crate import write_crate
from envprobe_core.runs.inputs import RunInputs, cell_slug
from envprobe_core.runs.manifest import (
    MANIFEST,
    finished_manifest,
    first_difference,
    log_name,
    new_manifest,
    read_manifest,
    write_manifest,
)
from envprobe_core.runs.summary import Summary
from envprobe_core.runs.tables import (
    DamagedFileError,
    as_parquet,
    episode_columns,
    episode_table,
    log_header,
    read_episodes,
    sha256,
    step_table,
    write_tables,
)

EPISODES = "episodes.parquet"
CALLS = "calls.jsonl"
PARTS = "parts"
ROWS, STEPS, ASKED = "parquet", "log.parquet", "calls"  # the files of a part
PART_EPISODES = 500  # of a part with a log, whose bytes depend on where it is cut, or with a model's answers
BARE_EPISODES = 5000  # of any other part
BATCH_SIZE = 1500  # episodes handed to a process at a time
PROCESS_PAYS = 6000  # episodes (a logged one counts threefold) that outweigh starting a process
LOGGED_COST = 3


@dataclass(frozen=True)
class Part:
    """Neighbouring episodes of one cell: the unit that is written once and never run again."""

    cell: Cell
    stem: str  # the name of the part's files, without their endings
    seeds: npt.NDArray[np.int64]  # the part's seeds, ascending
    logged: int  # how many of them, from the first, are logged


def part_files(part: Part, measures: Columns, trajectory: Trajectory | None) -> dict[str, bytes]:
    """Write a part's episodes, and the steps of those logged, if any, as Parquet, by ending of the file."""
    files = {}
    if part.logged and trajectory is not None:
        files[STEPS] = as_parquet(step_table(part.cell, part.seeds[: part.logged], trajectory))
    columns = episode_columns(part.cell, part.seeds, measures)
    return files | {ROWS: as_parquet(episode_table(part.cell, columns))}


def compute_parts(parts: Sequence[Part]) -> list[tuple[Part, dict[str, bytes]]]:
    """Run parts and return each with its files; where the folder may be out of reach."""
    made = []
    for part in parts:
        trajectory, measures = None, []
        if part.logged:
            trajectory = record(part.cell, part.seeds[: part.logged])
            measures.append(trajectory.measures)
        if part.logged < len(part.seeds):
            measures.append(measure(part.cell, part.seeds[part.logged :]))
        joined = {name: np.concatenate([own[name] for own in measures]) for name in measures[0]}
        made.append((part, part_files(part, joined, trajectory)))
    return made


class RunFolder:
    """An open run folder; make one with `open_run`.

    Attributes:
        path: the folder.
        inputs: what the run is asked for.
        manifest: its manifest, as far as it is known.
        parts: of each cell.
    """

    def __init__(self, path: Path, inputs: RunInputs, manifest: dict[str, Any]) -> None:
        self.path, self.inputs, self.manifest = path, inputs, manifest
        self.parts: list[list[Part]] = []
        for index, (cell, seeds) in enumerate(zip(inputs.cells, inputs.seeds_of_cells, strict=True)):
            logged, start, own = len(inputs.logged(index)), 0, []
            while start < len(seeds):
                bare = start >= logged and inputs.agent is None
                some = seeds[start : start + (BARE_EPISODES if bare else PART_EPISODES)]
                stem = f"{cell_slug(cell)}.{len(own):06d}"
                own.append(Part(cell, stem, some, min(max(logged - start, 0), len(some))))
                start += len(some)
            self.parts.append(own)

    @property
    def finished(self) -> bool:
        """Say whether everything is in place."""
        return bool(self.manifest["finished"])

    def missing(self) -> list[Part]:
        """Return the parts that have not been run."""
        return [part for own in self.parts for part in own if not self._is_there(part)]

    def _is_there(self, part: Part) -> bool:
        with suppress(OSError, pa.ArrowException):
            rows = pq.read_metadata(self._file(part, ROWS)).num_rows == len(part.seeds)
            return rows and (not part.logged or pq.read_metadata(self._file(part, STEPS)).num_rows > 0)
        return False

    def _file(self, part: Part, ending: str) -> Path:
        return self.path / PARTS / f"{part.stem}.{ending}"

    def store(self, part: Part, files: Mapping[str, bytes]) -> None:
        """Store a part's files; its rows, which come last, say that it is whole."""
        for ending in sorted(files, key=(ASKED, STEPS, ROWS).index):
            with replacing(self._file(part, ending)) as path:
                path.write_bytes(files[ending])

    def fill(
        self,
        *,
        jobs: int | None = None,
        batch_size: int = BATCH_SIZE,
        progress: Callable[[int, int], None] | None = None,
        scheduler: str | None = None,
    ) -> None:
        """Run what is missing.

        Args:
            jobs: processes; None means every core, where that is faster.
            batch_size: episodes handed to a process at a time; changes nothing but speed and memory.
            progress: called with the number of episodes done and to do.
            scheduler: address of a Dask scheduler whose workers compute; what they send back is stored here.

        Raises:
            BrokenProcessPool, ClusterLostError: if those who compute are lost; what is finished is kept.
        """
        missing = self.missing()
        done, total = 0, sum(len(part.seeds) for part in missing)
        if jobs is None:
            work = total + (LOGGED_COST - 1) * sum(part.logged for part in missing)
            jobs = min(1 + work // PROCESS_PAYS, cores())
        for made in spread(compute_parts, _batches(missing, batch_size), jobs, scheduler):
            for part, files in made:
                self.store(part, files)
                done += len(part.seeds)
            if progress is not None:
                progress(done, total)

    def finish(self) -> list[Summary]:
        """Put logs and table together, state the hashes, clear the parts away; return each cell's summary."""
        summaries = [Summary() for _ in self.parts]
        files = {EPISODES: write_tables(self.path / EPISODES, self._rows(summaries))}
        for index, (cell, parts) in enumerate(zip(self.inputs.cells, self.parts, strict=True)):
            logged = [part for part in parts if part.logged]
            if logged:
                path = self.path / log_name(cell)
                path.parent.mkdir(exist_ok=True)
                steps = (pq.ParquetFile(self._file(part, STEPS)).read() for part in logged)
                header = log_header(cell, self.inputs.logged(index))
                files[log_name(cell)] = write_tables(path, steps, header)
        if self.inputs.agent is not None:
            with replacing(self.path / CALLS) as path, path.open("wb") as calls:
                for part in (part for own in self.parts for part in own):
                    calls.write(self._file(part, ASKED).read_bytes())
        hashes = [own.result_hash for own in summaries]
        self.manifest = finished_manifest(self.inputs, self.manifest, hashes, files)
        write_crate(self.path, self.manifest)
        write_manifest(self.path, self.manifest)
        self.tidy()
        return summaries

    def _rows(self, summaries: Sequence[Summary]) -> Iterator[pa.Table]:
        """Read the rows of the parts again, and add them to their cell's summary."""
        for cell, parts, summary in zip(self.inputs.cells, self.parts, summaries, strict=True):
            for part in parts:
                path = self._file(part, ROWS)
                for _, columns in read_episodes(path, path.name, [cell], [len(part.seeds)]):
                    summary.add(columns)
                    yield episode_table(cell, columns)

    def tidy(self) -> None:
        """Remove what a finished run does not need."""
        for part in (part for own in self.parts for part in own):
            for ending in (ROWS, STEPS, ASKED):
                self._file(part, ending).unlink(missing_ok=True)
        with suppress(OSError):  # there is none, or somebody's file is in it
            (self.path / PARTS).rmdir()

    def read(self) -> list[Summary]:
        """Read a finished run's table: the summary of each cell.

        Raises:
            InputError: if a file is missing, or the table is not what the manifest says.
        """
        summaries = [Summary() for _ in self.parts]
        sizes = [len(seeds) for seeds in self.inputs.seeds_of_cells]
        stated = self.manifest.get("sha256", {})
        try:
            for name in (log_name(cell) for cell in self.inputs.cells if self.inputs.most_logged != 0):
                if not (self.path / name).is_file():
                    raise DamagedFileError(f"{name} is missing")
            if sha256(self.path, EPISODES) != stated.get(EPISODES):
                raise DamagedFileError(f"{EPISODES} is not the file that its SHA-256 there is of")
            for index, columns in read_episodes(self.path / EPISODES, EPISODES, self.inputs.cells, sizes):
                summaries[index].add(columns)
        except DamagedFileError as error:
            raise InputError(f"{self.path} is marked as finished, but {error}") from None
        return summaries


def _batches(parts: Sequence[Part], size: int) -> list[list[Part]]:
    """Join parts of one world to about a batch; a larger part stays whole."""
    batches: list[list[Part]] = []
    for _, same in groupby(sorted(parts, key=lambda part: part.cell.world), lambda part: part.cell.world):
        room = 0
        for part in same:
            if len(part.seeds) > room:
                batches.append([])
                room = size
            batches[-1].append(part)
            room -= len(part.seeds)
    return batches


@contextmanager
def open_run(path: Path, inputs: RunInputs) -> Iterator[RunFolder]:
    """Open a folder for a run, made if it is not there, and keep other runs out of it.

    Raises:
        InputError: if the folder holds something else or another run, or cannot be written to.
    """
    manifest, new = new_manifest(inputs), not path.exists()
    try:
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is not a folder")
        path.mkdir(parents=True, exist_ok=True)
        with held(path):
            found = _find_manifest(path)
            if found and (difference := first_difference(found, manifest)):
                raise InputError(
                    f"{path} holds a different run ({difference}); give the same inputs or another folder"
                )
            folder = RunFolder(path, inputs, found if found and found["finished"] else manifest)
            for own in (path, path / PARTS, path / "logs"):
                sweep(own)
            if folder.finished:
                folder.tidy()
            else:
                write_manifest(path, folder.manifest)
                (path / PARTS).mkdir(exist_ok=True)
            try:
                yield folder
            except InputError:  # before any work, such as a price that is missing
                if new and not any((path / PARTS).iterdir()):
                    shutil.rmtree(path, ignore_errors=True)
                raise
    except BlockingIOError:
        raise InputError(f"another run is writing to {path}") from None
    except OSError as error:
        where = error.filename or path
        raise InputError(f"cannot write to {where}: {error.strerror or error}") from None


def _find_manifest(path: Path) -> dict[str, Any] | None:
    """Return the manifest of a folder; None where nothing is in it that a run would not replace."""
    if (path / MANIFEST).is_file():
        return read_manifest(path)
    if any(not OURS.fullmatch(item.name) for item in path.iterdir()):
        raise InputError(f"{path} is not empty and holds no run; give a new folder")
    return None
