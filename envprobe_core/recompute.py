"""Recomputation: every measure of a run again from its step logs alone, compared with what it states.

Three things can be wrong. A log is *damaged*: a line is missing, is no JSON, lacks a key, holds a
value that cannot be, or does not fit its own check sum. A log *contradicts itself*: a probe is
called useful whose answer equals the belief. Or log and run *disagree*: the lines give another
measure than episodes.parquet, or another hash than manifest.json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core.cells import Cell
from envprobe_core.engine.recording import Columns
from envprobe_core.engine.records import WAIT
from envprobe_core.episodes import MEASURES, DamagedTableError, read_episodes
from envprobe_core.errors import InputError
from envprobe_core.logreading import DamagedLogError, LoggedEpisodes, read_log
from envprobe_core.manifest import finished_manifest, inputs_of, log_name, new_manifest
from envprobe_core.running import cores, spread
from envprobe_core.runstore import EPISODES, MANIFEST, read_manifest
from envprobe_core.summary import result_hash, total_hash
from envprobe_core.worlds import World, make_world

PROCESS_PAYS = 3000  # episodes that outweigh starting a process
COMPARED = ("profile", "protocols", "cells", "result_hash")

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Report:
    """What a recomputation found.

    Attributes:
        disagreements: a text each, with file, line and field.
        text: what was checked, in words.
    """

    disagreements: list[str]
    text: str


@dataclass(frozen=True)
class _Log:
    """One log to be checked against its episodes' stated measures."""

    folder: Path
    cell: Cell
    seeds: Ints
    stated: Columns


@dataclass(frozen=True)
class _Outcome:
    """What one log gave: its own result hash, or its damage."""

    lines: int
    disagreements: list[str]
    result_hash: str = ""
    damage: str | None = None


def check_run(path: Path, progress: Callable[[int, int], None] | None = None) -> Report:
    """Compute a run's measures again from its logs and compare.

    Args:
        path: the folder of a finished run.
        progress: called with the number of logs done and to do.

    Raises:
        InputError: if there is no finished run with logs, or one of its files is damaged.
    """
    manifest = read_manifest(path)
    inputs = inputs_of(manifest)
    if not manifest["finished"]:
        raise InputError(f"{path} holds a run that is not finished; the command that began it completes it")
    if inputs.most_logged == 0:
        raise InputError(f"{path} was run with --logs none: there are no logs to compute from")
    sizes = [len(seeds) for seeds in inputs.seeds_of_cells]
    try:
        table = read_episodes(path / EPISODES, inputs.cells, sizes)
    except DamagedTableError as error:
        raise InputError(str(error)) from None
    logs = [
        _Log(path, cell, seeds, {name: column[: len(seeds)] for name, column in stated.items()})
        for index, (cell, stated) in enumerate(zip(inputs.cells, table, strict=True))
        for seeds in [inputs.logged(index)]
    ]
    episodes, run = sum(len(log.seeds) for log in logs), sum(sizes)
    found = _check_logs(logs, 1 + min(episodes // PROCESS_PAYS, cores() - 1), progress)
    damages = [outcome.damage for outcome in found if outcome.damage]
    if damages:
        others = f" (and {len(damages) - 1} more logs are damaged)" if len(damages) > 1 else ""
        raise InputError(damages[0] + others)
    hashes = [outcome.result_hash for outcome in found]
    if episodes < run:
        hashes = [result_hash(columns) for columns in table]
    now = new_manifest(inputs)
    expected = finished_manifest(inputs, now, hashes, total_hash(inputs.cells, hashes))
    disagreements = [text for outcome in found for text in outcome.disagreements]
    for key in COMPARED:
        disagreements += _differences(f"{MANIFEST}, {key}", manifest.get(key), expected[key])
    text = f"{len(logs)} logs, {episodes} episodes, {sum(outcome.lines for outcome in found)} lines"
    text += f": every measure agrees with {EPISODES} and {MANIFEST}"
    if episodes < run:
        text += f"; the other {run - episodes} episodes have no log and were not checked"
    if manifest.get("engine") != now["engine"] and disagreements:
        disagreements.append("the engine is not the one that made this run")
    return Report(disagreements, f"{text} (result hash {expected['result_hash']})")


def _check_logs(logs: list[_Log], jobs: int, progress: Callable[[int, int], None] | None) -> list[_Outcome]:
    """Check every log; the outcomes come in the order of the logs."""
    outcomes: dict[int, _Outcome] = {}
    for index, outcome in spread(_check_numbered, list(enumerate(logs)), jobs):
        outcomes[index] = outcome
        if progress is not None:
            progress(len(outcomes), len(logs))
    return [outcomes[index] for index in range(len(logs))]


def _check_numbered(numbered: tuple[int, _Log]) -> tuple[int, _Outcome]:
    return numbered[0], check_log(numbered[1])


def check_log(log: _Log) -> _Outcome:
    """Read one log, look for contradictions, and score it."""
    name, cell = log_name(log.cell), log.cell
    world = make_world(cell.world, cell.regime, cell.protocol)
    texts: list[str] = []
    parts: list[Columns] = []
    lines = 0
    try:
        for episodes in read_log(log.folder / name, name, cell, log.seeds):
            texts += _contradictions(episodes, name, cell, world)
            columns = _score(episodes, cell, world)
            start = sum(len(part["seed"]) for part in parts)
            texts += _disagreements(episodes, name, columns, log.stated, start)
            parts.append(columns)
            lines += int((episodes.trajectory.steps + 1).sum())
    except DamagedLogError as error:
        return _Outcome(lines, texts, damage=str(error))
    whole = {key: np.concatenate([part[key] for part in parts]) for key in MEASURES}
    return _Outcome(lines, texts, result_hash(whole))


def _score(episodes: LoggedEpisodes, cell: Cell, world: World) -> Columns:
    rows = len(episodes.seeds)
    return {
        "seed": episodes.seeds,
        "n_fields": np.full(rows, world.fields),
        "horizon": np.full(rows, cell.regime.horizon),
    } | episodes.trajectory.measures


def _disagreements(
    episodes: LoggedEpisodes, name: str, columns: Columns, stated: Columns, start: int
) -> Iterator[str]:
    """Compare the measures of some episodes with the table's."""
    last = episodes.first_line + episodes.trajectory.steps
    for measure in MEASURES:
        ours = columns[measure]
        theirs = stated[measure][start : start + len(ours)]
        both_none = (ours != ours) & (theirs != theirs)
        for row in np.flatnonzero((ours != theirs) & ~both_none):
            yield (
                f"{name}, lines {episodes.first_line[row]}-{last[row]} (seed {episodes.seeds[row]}), "
                f"{measure}: the log gives {ours[row]}, {EPISODES} says {theirs[row]}"
            )


def _contradictions(episodes: LoggedEpisodes, name: str, cell: Cell, world: World) -> Iterator[str]:
    """Look for decisions that the log's own beliefs, gold values and inputs rule out."""
    log = episodes.trajectory
    rows, steps = np.indices(log.probe.shape)
    executed = steps < log.steps[:, None]
    fired = log.probe >= 0
    field = np.maximum(log.probe, 0)
    gold, belief = log.gold[rows, steps, field], log.belief[rows, steps, field]
    scored = cell.policy.has_threshold and cell.policy.replays is None
    early = (log.steps < cell.regime.horizon) & (~log.success | (cell.protocol.end == "horizon"))
    ends = np.zeros_like(fired)
    ends[early, log.steps[early]] = True
    for key, wrong, what in (
        ("answer", fired & (log.answer != gold), "is not the probed field's gold"),
        ("useful", log.useful != (fired & (gold != belief)), "does not fit answer and belief"),
        ("acted", executed & (log.acted != (~fired & (log.action != WAIT))), "does not fit the step"),
        ("valid", log.valid & ~log.acted, "is true where nothing was done"),
        ("probe", fired & (fired.cumsum(axis=1) > cell.budget_in_force), "exceeds the budget"),
        ("score", executed & (np.isnan(log.score) == scored), "does not fit the policy"),
        ("t", ends, "the episode ends before its time"),
    ):
        for row, step in np.argwhere(wrong):
            line = episodes.first_line[row] + step
            yield f"{name}, line {line} (seed {episodes.seeds[row]}, t {step}), {key}: {what}"


def _differences(where: str, stated: Any, expected: Any) -> Iterator[str]:
    """Name every place where a part of the manifest is not what it should be."""
    if isinstance(expected, Mapping) and isinstance(stated, Mapping):
        for key in dict.fromkeys([*expected, *stated]):
            yield from _differences(f"{where}, {key}", stated.get(key), expected.get(key))
    elif isinstance(expected, list) and isinstance(stated, list) and len(expected) == len(stated):
        for index, (ours, theirs) in enumerate(zip(expected, stated, strict=True)):
            yield from _differences(f"{where} {index}", theirs, ours)
    elif stated != expected:
        yield f"{where}: {stated} is stated, {expected} is found"
