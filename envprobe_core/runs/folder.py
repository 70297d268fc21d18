"""The run folder: who may write to it, what of it is finished, and how that is put together.

A folder holds `manifest.json` (what the run is, and in the end its hashes), `episodes.parquet`, `logs/` and,
where a language model was asked, `calls.jsonl`. While a run goes on, `parts/` holds what is finished: of a
cell's next episodes their rows in table and log, an Arrow file each, which is there or not.
Every file is written under another name and then renamed, so that a run that is killed leaves whole files
only, and the same command resumes where it stopped. The manifest says `finished` only after all else.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from envprobe_core.cells import Cell, Seeds
from envprobe_core.engine.recording import Columns, Trajectory
from envprobe_core.engine.running import measure, record
from envprobe_core.errors import InputError
from envprobe_core.files import OURS, held, replacing, sweep
from envprobe_core.pool import cores, spread
from envprobe_core.runs import manifest as manifests
from envprobe_core.runs import tables
from envprobe_core.runs.manifest import EPISODES, MANIFEST, Manifest, RunInputs, log_name
from envprobe_core.runs.summary import Summary
from envprobe_core.runs.tables import DamagedFileError

CALLS, PARTS = "calls.jsonl", "parts"
ASKED, STEPS, ROWS = "calls", "steps.arrow", "rows.arrow"  # the files of a part, in the order of writing
PART_EPISODES = 500  # of a part with a log, whose bytes depend on where it is cut, or with a model's answers
BARE_EPISODES = 5000  # of any other part
PROCESS_PAYS = 6000  # episodes (a logged one counts threefold) that outweigh starting a process
LOGGED_COST = 3


@dataclass(frozen=True)
class Part:
    """Neighbouring episodes of one cell: the unit that is written once and never run again."""

    index: int  # the cell's place in the run
    cell: Cell
    stem: str  # the name of the part's files, without their endings
    seeds: Seeds  # ascending
    logged: int  # how many of them, from the first, are logged


def parts_of(inputs: RunInputs) -> Iterator[Part]:
    """Cut a run into its parts."""
    for index, (cell, seeds) in enumerate(zip(inputs.cells, inputs.seeds_of_cells, strict=True)):
        logged, start, count = len(inputs.logged(index)), 0, 0
        while start < len(seeds):
            bare = start >= logged and inputs.agent is None
            own = seeds[start : start + (BARE_EPISODES if bare else PART_EPISODES)]
            stem = f"{manifests.cell_slug(cell)}.{count:06d}"
            yield Part(index, cell, stem, own, min(max(logged - start, 0), len(own)))
            start, count = start + len(own), count + 1


def compute_part(part: Part) -> tuple[Part, dict[str, bytes]]:
    """Run a part and return it with its files; where the folder may be out of reach."""
    trajectory, measures = None, []
    if part.logged:
        trajectory = record(part.cell, part.seeds[: part.logged])
        measures.append(trajectory.measures)
    if part.logged < len(part.seeds):
        measures.append(measure(part.cell, part.seeds[part.logged :]))
    joined = {name: np.concatenate([own[name] for own in measures]) for name in measures[0]}
    return part, part_files(part, joined, trajectory)


def part_files(part: Part, measures: Columns, trajectory: Trajectory | None) -> dict[str, bytes]:
    """Write a part's episodes, and the steps of those logged, if any, by ending of the file."""
    files = {ROWS: _packed(tables.plain_table(part.cell.named(part.seeds, measures)))}
    if part.logged and trajectory is not None:
        files[STEPS] = _packed(tables.step_table(part.cell, part.seeds[: part.logged], trajectory))
    return files


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


class RunFolder:
    """An open run folder; make one with `open_run`.

    Attributes:
        path: the folder.
        inputs: what the run is asked for.
        manifest: its manifest, as far as it is known.
        parts: all of them, by cell and seed.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path, self.manifest, self.inputs = path, manifest, manifest.inputs
        self.parts = list(parts_of(self.inputs))

    def missing(self) -> list[Part]:
        """Return the parts that have not been run, those of a world in a row."""
        missing = (part for part in self.parts if not self._is_there(part))
        return sorted(missing, key=lambda part: part.cell.world)

    def _is_there(self, part: Part) -> bool:
        with suppress(OSError, pa.ArrowException):
            whole = len(self._table(part, ROWS)) == len(part.seeds)
            return whole and (not part.logged or len(self._table(part, STEPS)) >= part.logged)
        return False

    def _file(self, part: Part, ending: str) -> Path:
        return self.path / PARTS / f"{part.stem}.{ending}"

    def _table(self, part: Part, ending: str) -> pa.Table:
        with pa.memory_map(str(self._file(part, ending))) as file:
            return pa.ipc.open_file(file).read_all()

    def store(self, part: Part, files: Mapping[str, bytes]) -> None:
        """Store a part's files; its rows, which come last, say that it is whole."""
        for ending in sorted(files, key=(ASKED, STEPS, ROWS).index):
            with replacing(self._file(part, ending)) as path:
                path.write_bytes(files[ending])

    def fill(self, *, jobs: int | None = None, progress: Callable[[int, int], None] | None = None) -> None:
        """Run what is missing, here or on the cluster in force; results are stored here.

        Args:
            jobs: processes; None means every core, where that is faster.
            progress: called with the number of episodes done and to do.

        Raises:
            BrokenProcessPool, ClusterLostError: if those who compute are lost; what is finished is kept.
        """
        missing = self.missing()
        done, total = 0, sum(len(part.seeds) for part in missing)
        if jobs is None:
            work = total + (LOGGED_COST - 1) * sum(part.logged for part in missing)
            jobs = min(1 + work // PROCESS_PAYS, cores())
        for part, files in spread(compute_part, missing, jobs):
            self.store(part, files)
            done += len(part.seeds)
            if progress is not None:
                progress(done, total)

    def finish(self) -> list[Summary]:
        """Put logs and table together, state the hashes, clear the parts away; return each cell's summary."""
        summaries = [Summary() for _ in self.inputs.cells]
        files = {EPISODES: tables.write_tables(self.path / EPISODES, self._rows(summaries))}
        for index, cell in enumerate(self.inputs.cells):
            logged = [part for part in self.parts if part.index == index and part.logged]
            if logged:
                path = self.path / log_name(cell)
                path.parent.mkdir(exist_ok=True)
                steps = (self._table(part, STEPS) for part in logged)
                files[log_name(cell)] = tables.write_tables(
                    path, steps, tables.log_header(cell, self.inputs.logged(index))
                )
        if self.inputs.agent is not None:
            with replacing(self.path / CALLS) as path, path.open("wb") as calls:
                for part in self.parts:
                    calls.write(self._file(part, ASKED).read_bytes())
        self.manifest = manifests.finished(self.manifest, [own.result_hash for own in summaries], files)
        manifests.write_crate(self.path, self.manifest)
        self.manifest.write(self.path)
        self.tidy()
        return summaries

    def _rows(self, summaries: Sequence[Summary]) -> Iterator[pa.Table]:
        """Read the rows of the parts again, and add them to their cell's summary."""
        for part in self.parts:
            columns = tables.plain_columns(self._table(part, ROWS))
            summaries[part.index].add(columns)
            yield tables.episode_table(part.cell, columns)

    def tidy(self) -> None:
        """Remove what a finished run does not need."""
        for part in self.parts:
            for ending in (ROWS, STEPS, ASKED):
                self._file(part, ending).unlink(missing_ok=True)
        with suppress(OSError):  # there is none, or somebody's file is in it
            (self.path / PARTS).rmdir()

    def read(self) -> list[Summary]:
        """Read a finished run's table: the summary of each cell.

        Raises:
            InputError: if a file is missing, or the table is not what the manifest says.
        """
        summaries, stated = [Summary() for _ in self.inputs.cells], self.manifest.sha256 or {}
        sizes = [len(seeds) for seeds in self.inputs.seeds_of_cells]
        try:
            for name in stated:
                if not (self.path / name).is_file():
                    raise DamagedFileError(f"{name} is missing")
            if tables.sha256(self.path, EPISODES) != stated.get(EPISODES):
                raise DamagedFileError(f"{EPISODES} is not the file that its SHA-256 there is of")
            for index, columns in tables.read_episodes(
                self.path / EPISODES, EPISODES, self.inputs.cells, sizes
            ):
                summaries[index].add(columns)
        except DamagedFileError as error:
            raise InputError(f"{self.path} is marked as finished, but {error}") from None
        return summaries


@contextmanager
def open_run(path: Path, inputs: RunInputs) -> Iterator[RunFolder]:
    """Open a folder for a run, made if it is not there, and keep other runs out of it.

    Raises:
        InputError: if the folder holds something else or another run, or cannot be written to.
    """
    manifest, new = manifests.begun(inputs), not path.exists()
    try:
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is not a folder")
        path.mkdir(parents=True, exist_ok=True)
        with held(path):
            if (path / MANIFEST).is_file():
                found = manifests.read_manifest(path)
                if difference := manifests.first_difference(found, manifest):
                    told = f"({difference}); give the same inputs or another folder"
                    raise InputError(f"{path} holds a different run {told}")
                manifest = found
            elif any(not OURS.fullmatch(item.name) for item in path.iterdir()):
                raise InputError(f"{path} is not empty and holds no run; give a new folder")
            folder = RunFolder(path, manifest)
            for own in (path, path / PARTS, path / "logs"):
                sweep(own)
            if manifest.finished:
                folder.tidy()
            else:
                manifest.write(path)
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
