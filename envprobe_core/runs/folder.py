"""The run folder: who may write to it, and what of it is finished.

A folder holds `manifest.json` (what the run is, and in the end its hashes), `episodes.parquet`, `logs/` and,
where a language model was asked, `calls.jsonl`. While a run goes on, `parts/` holds what is finished: of a
condition's next episodes their rows in table and log, an Arrow file each, which is there or not.
Every file is written under another name and then renamed, so that a run that is killed leaves whole files
only, and the same command resumes where it stopped. The manifest says `finished` only after all else.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from envprobe_core.conditions import Condition, Seeds
from envprobe_core.engine.batch import Columns, Trajectory, simulate, simulate_logged
from envprobe_core.errors import InputError
from envprobe_core.files import OURS, atomic_write, folder_lock, sweep
from envprobe_core.parallel import cores, map_unordered
from envprobe_core.runs import manifest as manifests
from envprobe_core.runs import tables
from envprobe_core.runs.manifest import CRATE, EPISODES, MANIFEST, Manifest, RunInputs, log_name
from envprobe_core.runs.tables import Summary, sha256

CALLS, PARTS = "calls.jsonl", "parts"
ASKED, STEPS, ROWS = "calls", "steps.arrow", "rows.arrow"  # the files of a part, in the order of writing
PART_EPISODES = 500  # of a part with a log, whose bytes depend on where it is cut, or with a model's answers
BARE_EPISODES = 5000  # of any other part
PROCESS_PAYS = 6000  # episodes (a logged one that is run counts threefold) that outweigh starting a process
LOGGED_COST = 3

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Part:
    """Neighbouring episodes of one condition: the unit that is written once and never run again."""

    index: int  # the condition's place in the run
    condition: Condition
    stem: str  # the name of the part's files, without their endings
    seeds: Seeds  # ascending
    logged: int  # how many of them, from the first, are logged


def parts_of(inputs: RunInputs) -> Iterator[Part]:
    """Cut a run into its parts."""
    for index, (condition, seeds) in enumerate(
        zip(inputs.conditions, inputs.seeds_of_conditions, strict=True)
    ):
        logged, start, count = len(inputs.logged_seeds[index]), 0, 0
        while start < len(seeds):
            bare = start >= logged and inputs.agent is None
            own = seeds[start : start + (BARE_EPISODES if bare else PART_EPISODES)]
            stem = f"{Path(log_name(condition)).stem}.{count:06d}"
            yield Part(index, condition, stem, own, min(max(logged - start, 0), len(own)))
            start, count = start + len(own), count + 1


def compute_part(part: Part) -> tuple[Part, dict[str, bytes]]:
    """Run a part and return it with its files; where the folder may be out of reach."""
    trajectory, measures = None, []
    if part.logged:
        trajectory = simulate_logged(part.condition, part.seeds[: part.logged])
        measures.append(trajectory.measures)
    if part.logged < len(part.seeds):
        measures.append(simulate(part.condition, part.seeds[part.logged :]))
    return part, part_files(part, part.condition.named(part.seeds, _joined(measures)), trajectory)


def part_files(part: Part, columns: Columns, trajectory: Trajectory | None) -> dict[str, bytes]:
    """Write a part's episodes, and the steps of those logged, if any, by ending of the file."""
    made, files = {ROWS: tables.episode_table(part.condition, columns)}, {}
    if part.logged and trajectory is not None:
        made[STEPS] = tables.step_table(part.condition, part.seeds[: part.logged], trajectory)
    for ending, table in made.items():
        sink, how = pa.BufferOutputStream(), pa.ipc.IpcWriteOptions(compression="lz4")
        with pa.ipc.new_file(sink, table.schema, options=how) as writer:
            writer.write_table(table)
        files[ending] = sink.getvalue().to_pybytes()
    return files


def _joined(blocks: list[Columns]) -> Columns:
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


class RunFolder:
    """An open run folder, with the manifest as far as it is known; make one with `open_run`."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path, self.manifest, self.inputs = path, manifest, manifest.inputs
        self.parts = list(parts_of(self.inputs))  # by condition and seed

    def _file(self, part: Part, ending: str) -> Path:
        return self.path / PARTS / f"{part.stem}.{ending}"

    def _table(self, part: Part, ending: str) -> pa.Table:
        with pa.memory_map(str(self._file(part, ending))) as file:
            return pa.ipc.open_file(file).read_all()

    def missing(self) -> list[Part]:
        """Return the parts that have not been run, those of a world in a row."""
        missing = []
        for part in self.parts:
            with suppress(OSError, pa.ArrowException):
                if len(self._table(part, ROWS)) == len(part.seeds) and (
                    not part.logged or len(self._table(part, STEPS)) >= part.logged
                ):
                    continue
            missing.append(part)
        return sorted(missing, key=lambda part: part.condition.world)

    def store(self, part: Part, files: Mapping[str, bytes]) -> None:
        """Store a part's files; its rows, which come last, say that it is whole."""
        for ending in sorted(files, key=(ASKED, STEPS, ROWS).index):
            with atomic_write(self._file(part, ending)) as path:
                path.write_bytes(files[ending])

    def fill(self, *, jobs: int | None = None, progress: Progress | None = None) -> None:
        """Run what is missing, here or on the cluster in force; results are stored here.

        There are as many processes as `jobs`, or as are faster; `progress` gets the episodes done and to do.
        """
        missing = self.missing()
        done, total = 0, sum(len(part.seeds) for part in missing)
        work = total + (LOGGED_COST - 1) * sum(part.logged for part in missing)
        for part, files in map_unordered(
            compute_part, missing, jobs or min(1 + work // PROCESS_PAYS, cores())
        ):
            self.store(part, files)
            done += len(part.seeds)
            if progress is not None:
                progress(done, total)

    def finish(self) -> list[Summary]:
        """Put logs and table together, state the hashes, clear the parts away; return each condition's summary."""
        summaries = [Summary() for _ in self.inputs.conditions]

        def rows() -> Iterator[pa.Table]:
            for part in self.parts:
                table = self._table(part, ROWS)
                summaries[part.index].add(tables.measures_of(table))
                yield table

        files = {EPISODES: tables.write_tables(self.path / EPISODES, rows())}
        for index, (condition, seeds) in enumerate(
            zip(self.inputs.conditions, self.inputs.logged_seeds, strict=True)
        ):
            if len(seeds):
                own = (part for part in self.parts if part.index == index and part.logged)
                steps, path = (self._table(part, STEPS) for part in own), self.path / log_name(condition)
                path.parent.mkdir(exist_ok=True)
                files[log_name(condition)] = tables.write_tables(
                    path, steps, tables.log_header(condition, seeds)
                )
        if self.inputs.agent is not None:
            with atomic_write(self.path / CALLS) as path, path.open("wb") as calls:
                for part in self.parts:
                    calls.write(self._file(part, ASKED).read_bytes())
        self.manifest = manifests.finished(self.manifest, [own.result_hash for own in summaries], files)
        manifests.write_json(self.path / CRATE, manifests.crate_of(self.manifest))
        manifests.write_json(self.path / MANIFEST, self.manifest.as_dict())
        self.tidy()
        return summaries

    def tidy(self) -> None:
        """Remove what a finished run does not need."""
        for part in self.parts:
            for ending in (ROWS, STEPS, ASKED):
                self._file(part, ending).unlink(missing_ok=True)
        with suppress(OSError):  # there is none, or somebody's file is in it
            (self.path / PARTS).rmdir()

    def read(self) -> list[Summary]:
        """Read a finished run's table, which must be what the manifest says: the summary of each condition."""
        summaries, stated = [Summary() for _ in self.inputs.conditions], self.manifest.sha256 or {}
        try:
            for name in stated:
                if not (self.path / name).is_file():
                    raise InputError(f"{name} is missing")
            if sha256(self.path, EPISODES) != stated.get(EPISODES):
                raise InputError(f"{EPISODES} is not the file that its SHA-256 there is of")
            sizes = [*map(len, self.inputs.seeds_of_conditions)]
            for index, rows in tables.read_episodes(self.path, sizes):
                summaries[index].add(tables.measures_of(rows))
        except InputError as error:
            raise InputError(f"{self.path} is marked as finished, but {error}") from None
        return summaries


@contextmanager
def open_run(path: Path, inputs: RunInputs) -> Iterator[RunFolder]:
    """Open a folder for a run, made if it is not there, and keep other runs out of it.

    A folder that holds something else or another run, or cannot be written to, is refused.
    """
    manifest, new = manifests.begun(inputs), not path.exists()
    try:
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is not a folder")
        path.mkdir(parents=True, exist_ok=True)
        with folder_lock(path):
            if (path / MANIFEST).is_file():
                found = manifests.read_manifest(path)
                for difference in manifests.differences(found, manifest):
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
                manifests.write_json(path / MANIFEST, manifest.as_dict())
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
