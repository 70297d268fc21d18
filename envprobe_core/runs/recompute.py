"""Recomputation: every measure of a run again from its step logs alone, compared with what it states.

Three things can be wrong. A file is *damaged*: it cannot be read, or holds a value that no run writes. A log
*contradicts itself*: a probe is called useful whose answer equals the belief. Or a file *disagrees*: a log
gives another measure than episodes.parquet, or another hash than manifest.json; or a file is not the one
whose SHA-256 the manifest states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from envprobe_core.cells import Cell
from envprobe_core.engine.recording import Columns, Trajectory
from envprobe_core.engine.records import NONE, WAIT
from envprobe_core.engine.setting import setting_of
from envprobe_core.errors import InputError
from envprobe_core.instances import informative, instances
from envprobe_core.policies.rules import VOI
from envprobe_core.pool import cores, spread
from envprobe_core.runs.folder import CALLS, EPISODES
from envprobe_core.runs.inputs import inputs_of
from envprobe_core.runs.manifest import MANIFEST, finished_manifest, log_name, new_manifest, read_finished
from envprobe_core.runs.summary import result_hash
from envprobe_core.runs.tables import (
    MEASURES,
    DamagedFileError,
    episode_columns,
    read_episodes,
    read_steps,
    sha256,
)
from envprobe_core.worlds import make_world
from envprobe_core.worlds.base import Ints

PROCESS_PAYS = 6000  # episodes that outweigh starting a process
COMPARED = ("profile", "protocols", "cells", "sha256", "result_hash")


@dataclass(frozen=True)
class Report:
    """What a recomputation found."""

    disagreements: list[str]  # a text each, with file, seed, step and column
    text: str  # what was checked, in words


@dataclass(frozen=True)
class _Log:
    """One log to be checked against its episodes' stated measures."""

    folder: Path
    cell: Cell
    seeds: Ints
    stated: Columns


@dataclass(frozen=True)
class _Outcome:
    """What one log gave: its name and SHA-256, its own result hash, or its damage."""

    name: str
    rows: int
    disagreements: list[str]
    sha256: str = ""
    result_hash: str = ""
    damage: str | None = None


def check_run(path: Path, progress: Callable[[int, int], None] | None = None) -> Report:
    """Compute a run's measures again from its logs and compare; `progress` is told of logs done and to do.

    Raises:
        InputError: if there is no finished run with logs, or one of its files is damaged.
    """
    manifest = read_finished(path)
    inputs = inputs_of(manifest)
    if inputs.most_logged == 0:
        raise InputError(f"{path} was run with --logs none: there are no logs to compute from")
    sizes = [len(seeds) for seeds in inputs.seeds_of_cells]
    blocks: list[list[Columns]] = [[] for _ in sizes]
    for index, columns in read_episodes(path / EPISODES, EPISODES, inputs.cells, sizes):
        blocks[index].append(columns)
    table = [{name: np.concatenate([block[name] for block in own]) for name in MEASURES} for own in blocks]
    logs = [
        _Log(path, cell, seeds, {name: column[: len(seeds)] for name, column in stated.items()})
        for index, (cell, stated) in enumerate(zip(inputs.cells, table, strict=True))
        for seeds in [inputs.logged(index)]
    ]
    episodes, run = sum(len(log.seeds) for log in logs), sum(sizes)
    found: dict[str, _Outcome] = {}
    for outcome in spread(check_log, logs, 1 + min(episodes // PROCESS_PAYS, cores() - 1)):
        found[outcome.name] = outcome
        if progress is not None:
            progress(len(found), len(logs))
    outcomes = [found[log_name(log.cell)] for log in logs]
    damages = [outcome.damage for outcome in outcomes if outcome.damage]
    if damages:
        others = f" (and {len(damages) - 1} more logs are damaged)" if len(damages) > 1 else ""
        raise InputError(damages[0] + others)
    logged = [outcome.result_hash for outcome in outcomes]
    hashes = logged if episodes == run else [result_hash(columns) for columns in table]
    files = {EPISODES: sha256(path, EPISODES)} | {own.name: own.sha256 for own in outcomes}
    now = new_manifest(inputs)
    expected = finished_manifest(inputs, now, hashes, files)
    disagreements = [text for outcome in outcomes for text in outcome.disagreements]
    for key in COMPARED:
        disagreements += _differences(f"{MANIFEST}, {key}", manifest.get(key), expected[key])
    text = f"{len(logs)} logs, {episodes} episodes, {sum(outcome.rows for outcome in outcomes)} rows"
    text += f": every measure agrees with {EPISODES} and {MANIFEST}"
    if episodes < run:
        text += f"; the other {run - episodes} episodes have no log and were not checked"
    text += "; versions of Python and packages are stated there and not compared"
    if inputs.agent is not None:
        text += f", nor is {CALLS}: `envprobe store verify --run` does that"
    if manifest.get("engine") != now["engine"] and disagreements:
        disagreements.append("the engine is not the one that made this run")
    return Report(disagreements, f"{text} (result hash {expected['result_hash']})")


def check_log(log: _Log) -> _Outcome:
    """Read one log, look for contradictions, score it, and compare."""
    name = log_name(log.cell)
    texts: list[str] = []
    blocks: list[Columns] = []
    rows = done = 0
    try:
        whole = sha256(log.folder, name)
        for seeds, trajectory in read_steps(log.folder / name, name, log.cell, log.seeds):
            texts += _contradictions(name, log.cell, seeds, trajectory)
            blocks.append(episode_columns(log.cell, seeds, trajectory.measures))
            stated = {key: log.stated[key][done : done + len(seeds)] for key in MEASURES}
            texts += _disagreements(name, blocks[-1], stated)
            done += len(seeds)
            rows += int((trajectory.steps + 1).sum())
    except DamagedFileError as error:
        return _Outcome(name, rows, texts, damage=str(error))
    joined = {key: np.concatenate([block[key] for block in blocks]) for key in MEASURES}
    return _Outcome(name, rows, texts, whole, result_hash(joined))


def _disagreements(name: str, ours: Columns, stated: Columns) -> Iterator[str]:
    """Compare the measures of some episodes with the table's."""
    for measure in MEASURES:
        mine, theirs = ours[measure], stated[measure]
        both_none = (mine != mine) & (theirs != theirs)
        for row in np.flatnonzero((mine != theirs) & ~both_none):
            yield (
                f"{name}, seed {ours['seed'][row]}, {measure}: the log gives {mine[row]}, "
                f"{EPISODES} says {theirs[row]}"
            )


def _contradictions(name: str, cell: Cell, seeds: Ints, log: Trajectory) -> Iterator[str]:
    """Look for decisions that the log's own beliefs, gold values and inputs rule out."""
    rows, steps = np.indices(log.probe.shape)
    executed = steps < log.steps[:, None]
    fired = log.probe != NONE
    field = np.maximum(log.probe, 0)
    gold, belief = log.gold[rows, steps, field], log.belief[rows, steps, field]
    valued = cell.policy.rule.kind == VOI and cell.protocol.answer == "delivered"
    scored = valued or (cell.policy.has_threshold and cell.policy.replays is None)
    useful = fired & (gold != belief)
    if cell.protocol.useful == "released":
        world = make_world(cell.world, cell.regime, cell.protocol)
        useful = informative(setting_of(cell), instances(world, seeds), seeds, log)
    early = (log.steps < cell.regime.horizon) & (~log.success | (cell.protocol.end == "horizon"))
    ends = np.zeros_like(fired)
    ends[early, log.steps[early]] = True
    for key, wrong, what in (
        ("answer", fired & (log.answer != gold), "is not the probed field's gold"),
        ("useful", log.useful != useful, "does not fit answer and belief"),
        ("acted", executed & (log.acted != (~fired & (log.action != WAIT))), "does not fit the step"),
        ("valid", log.valid & ~log.acted, "is true where nothing was done"),
        ("probe", fired & (fired.cumsum(axis=1) > cell.budget_in_force), "exceeds the budget"),
        ("score", executed & (np.isnan(log.score) == scored), "does not fit the policy"),
        ("t", ends, "the episode ends before its time"),
    ):
        for row, step in np.argwhere(wrong):
            yield f"{name}, seed {seeds[row]}, t {step}, {key}: {what}"


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
