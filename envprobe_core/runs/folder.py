"""The run folder: who may write to it, and what of it is finished.

A folder holds `manifest.json` (what the run is, and in the end its hashes), `episodes.parquet`, `logs/` and,
where a language model was asked, `calls.jsonl`. Every file is put in place in one step, and the manifest says
`finished` only after all else: a run that is killed at any time leaves whole files and a manifest that says
that it is not finished. The same command then runs again, and writes over them; only a model's answers, which
cost money, are kept as they come, in a store beside the folder (`llm.store`).

Episodes are in memory until the end, no more than 0.9 kB each (five million: 4.5 GB), and the steps of the
logged ones until their condition is done, about 5 kB each. What is larger than memory is for several runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from envprobe_core.conditions import Condition, Seeds
from envprobe_core.engine.batch import Columns, simulate, simulate_logged
from envprobe_core.errors import InputError
from envprobe_core.files import LOCK, OURS, atomic_write, folder_lock, sweep
from envprobe_core.parallel import cores, hands, map_unordered
from envprobe_core.runs import manifest as manifests
from envprobe_core.runs import tables
from envprobe_core.runs.manifest import EPISODES, MANIFEST, Manifest, RunInputs, log_name
from envprobe_core.runs.tables import sha256

CALLS = "calls.jsonl"
LOGGED_AT_ONCE, BARE_AT_ONCE = 500, 5000  # episodes that a process is given at a time, with a log and without
PROCESS_PAYS = 6000  # episodes (a logged one that is run counts threefold) that outweigh starting a process
LOGGED_COST = 3

Progress = Callable[[int, int], None]


class Piece(NamedTuple):
    """Neighbouring episodes of one condition: what a process is given at a time."""

    index: int  # the condition's place in the run
    condition: Condition
    first: int  # the place of the first seed among the condition's
    seeds: Seeds  # ascending
    logged: bool


def pieces_of(inputs: RunInputs) -> list[Piece]:
    """The pieces of a run, those of a world in a row, so that its engine is compiled once."""
    pieces = []
    for index, (condition, seeds) in enumerate(
        zip(inputs.conditions, inputs.seeds_of_conditions, strict=True)
    ):
        logged = len(inputs.logged_seeds[index])
        cuts = [*range(0, logged, LOGGED_AT_ONCE), *range(logged, len(seeds), BARE_AT_ONCE), len(seeds)]
        for first, past in pairwise(cuts):
            pieces.append(Piece(index, condition, first, seeds[first:past], first < logged))
    return sorted(pieces, key=lambda piece: piece.condition.world)


def run_piece(piece: Piece) -> tuple[Piece, Columns, pd.DataFrame | None]:
    """A piece with its measures, columns [row], and its lines of the log, if it is logged."""
    if not piece.logged:
        return piece, simulate(piece.condition, piece.seeds), None
    made = simulate_logged(piece.condition, piece.seeds)
    return piece, made.measures, tables.step_table(piece.condition, piece.seeds, made)


class RunFolder:
    """An open run folder, with the manifest as far as it is known; make one with `open_run`."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path, self.manifest, self.inputs = path, manifest, manifest.inputs
        self._episodes: dict[int, Columns] = {}  # by the condition's place
        self._files: dict[str, str] = {}  # SHA-256 of the logs that are written, by name

    def fill(
        self, *, jobs: int | None = None, executor: Executor | None = None, progress: Progress | None = None
    ) -> None:
        """Every condition run, and its log written.

        Args:
            jobs: processes; by default as many as are faster.
            executor: whom the work is handed to instead.
            progress: is called with the episodes done and to do.
        """
        pieces = pieces_of(self.inputs)
        done, total = 0, sum(len(piece.seeds) for piece in pieces)
        work = total + (LOGGED_COST - 1) * sum(len(piece.seeds) for piece in pieces if piece.logged)
        found: dict[int, list[tuple[Piece, Columns, pd.DataFrame | None]]] = {}
        missing = Counter(piece.index for piece in pieces)  # pieces of each condition
        if executor is None:
            jobs = jobs or min(1 + work // PROCESS_PAYS, cores())
        with hands(len(pieces), jobs or 1, executor) as executor:
            for made in map_unordered(run_piece, pieces, executor):
                index = made[0].index
                found.setdefault(index, []).append(made)
                missing[index] -= 1
                if not missing[index]:
                    own = sorted(found.pop(index), key=lambda one: one[0].first)
                    lines = [steps for *_, steps in own if steps is not None]
                    measures = {name: np.concatenate([one[1][name] for one in own]) for name in own[0][1]}
                    self.store(index, measures, pd.concat(lines, ignore_index=True) if lines else None)
                done += len(made[0].seeds)
                if progress is not None:
                    progress(done, total)

    def store(self, index: int, measures: Columns, steps: pd.DataFrame | None) -> None:
        """A condition's episodes kept for `finish`, and its log written.

        Args:
            index: the condition's place in the run.
            measures: of its episodes, columns [row] in order of seed.
            steps: the lines of its log, None for a run without.
        """
        condition = self.inputs.conditions[index]
        self._episodes[index] = condition.named(self.inputs.seeds_of_conditions[index], measures)
        if steps is not None:
            (self.path / "logs").mkdir(exist_ok=True)
            header = tables.log_header(condition, self.inputs.logged_seeds[index])
            self._files[log_name(condition)] = tables.write_table(
                self.path / log_name(condition), steps, header
            )

    def finish(
        self,
        calls: bytes | None = None,
        requests: dict[str, list[str]] | None = None,
        answered: list[dict[str, Any]] | None = None,
    ) -> list[Columns]:
        """The measures of each condition, columns [row], once all files and at last the manifest are written.

        Args:
            calls: the lines of `calls.jsonl`, where a language model was asked.
            requests: by model, the rungs of the ladder that requests took, where one was asked.
            answered: [condition], who answered, where one was asked.
        """
        conditions = self.inputs.conditions
        logs = [name for name in map(log_name, conditions) if name in self._files]
        episodes = [self._episodes[index] for index in range(len(conditions))]
        whole = pd.concat(map(tables.episode_table, conditions, episodes), ignore_index=True)
        files = {EPISODES: tables.write_table(self.path / EPISODES, whole)}
        files |= {name: self._files[name] for name in logs}
        if calls is not None:
            with atomic_write(self.path / CALLS) as path:
                path.write_bytes(calls)
        hashes = list(map(tables.result_hash, episodes))
        readings = list(map(tables.readings, conditions, episodes))
        self.manifest = manifests.finished(self.manifest, hashes, files, readings, requests, answered)
        manifests.write_json(self.path / MANIFEST, self.manifest.as_dict())
        return episodes

    def read(self) -> list[Columns]:
        """The measures of each condition of a finished run, columns [row].

        Raises:
            InputError: if its table is not what the manifest says, or a log is missing.
        """
        stated = self.manifest.sha256 or {}
        try:
            for name in stated:
                if not (self.path / name).is_file():
                    raise InputError(f"{name} is missing")
            if sha256(self.path, EPISODES) != stated.get(EPISODES):
                raise InputError(f"{EPISODES} is not the file that its SHA-256 there is of")
            sizes = [*map(len, self.inputs.seeds_of_conditions)]
            return list(map(tables.measures_of, tables.read_episodes(self.path, sizes)))
        except InputError as error:
            raise InputError(f"{self.path} is marked as finished, but {error}") from None


@contextmanager
def open_run(path: Path, inputs: RunInputs) -> Iterator[RunFolder]:
    """A folder for a run, made if it is not there, that no other run may write to meanwhile.

    Raises:
        InputError: if the folder holds something else or another run, another process writes to it, or it
            cannot be written to.
    """
    manifest, new = manifests.begun(inputs), not path.exists()
    try:
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is not a folder")
        path.mkdir(parents=True, exist_ok=True)
        odd = (item for item in path.iterdir() if item.name != LOCK and not OURS.fullmatch(item.name))
        if (path / MANIFEST).is_file():
            manifests.read_manifest(path)  # what is no run is left without a lock, too
        elif any(odd):
            raise InputError(f"{path} is not empty and holds no run; give a new folder")
        with folder_lock(path):
            if (path / MANIFEST).is_file():
                found = manifests.read_manifest(path)
                for difference in manifests.differences(found, manifest):
                    told = f"({difference}); give the same inputs or another folder"
                    raise InputError(f"{path} holds a different run {told}")
                manifest = found
            for own in (path, path / "logs"):
                sweep(own)
            if not manifest.finished:
                manifests.write_json(path / MANIFEST, manifest.as_dict())
            try:
                yield RunFolder(path, manifest)
            except InputError:  # before any work, such as a price that is missing
                if new and {item.name for item in path.iterdir()} == {MANIFEST, LOCK}:
                    (path / MANIFEST).unlink()
                    (path / LOCK).unlink()
                    with suppress(OSError):
                        path.rmdir()
                raise
    except BlockingIOError:
        raise InputError(f"another run is writing to {path}") from None
    except RecursionError:
        raise InputError(f"{path} has too many parts") from None
    except OSError as error:
        where = error.filename or path
        raise InputError(f"cannot write to {where}: {error.strerror or error}") from None
