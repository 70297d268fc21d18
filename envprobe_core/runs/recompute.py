"""Recomputation: every measure of a run again from its step logs alone, compared with what it states.

Three things can be wrong. A file is *damaged*: it cannot be read, or holds a value that no run writes. A log
*contradicts itself*: a probe is called useful whose answer equals the belief. Or a file *disagrees*: a log
gives another measure than episodes.parquet, or another hash than manifest.json; or a file is not the one
whose SHA-256 the manifest states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from envprobe_core.cells import Cell, Seeds
from envprobe_core.engine.recording import Columns, Trajectory
from envprobe_core.engine.records import NONE, WAIT
from envprobe_core.engine.setting import setting_of
from envprobe_core.errors import InputError
from envprobe_core.instances import informative, instances
from envprobe_core.policies.rules import VOI
from envprobe_core.pool import cores, spread
from envprobe_core.runs import tables
from envprobe_core.runs.folder import CALLS
from envprobe_core.runs.manifest import (
    EPISODES,
    MANIFEST,
    begun,
    differences,
    finished,
    log_name,
    read_finished,
)
from envprobe_core.runs.summary import result_hash
from envprobe_core.runs.tables import MEASURES, DamagedFileError, sha256
from envprobe_core.worlds import make_world

PROCESS_PAYS = 6000  # episodes that outweigh starting a process
COMPARED = ("profile", "protocols", "cells", "sha256", "result_hash")


@dataclass(frozen=True)
class Report:
    """What a recomputation found."""

    disagreements: list[str]  # a text each, with file, seed, step and column
    text: str  # what was checked, in words


@dataclass(frozen=True)
class Log:
    """What a log gave, or its damage."""

    name: str
    damage: str | None = None
    sha256: str = ""
    rows: int = 0
    contradictions: tuple[str, ...] = ()
    measures: Columns | None = None


def check_run(path: Path, progress: Callable[[int, int], None] | None = None) -> Report:
    """Compute a run's measures again from its logs and compare; `progress` gets logs done and to do.

    Raises:
        InputError: if there is no finished run with logs, or one of its files is damaged.
    """
    stated = read_finished(path)
    inputs, now = stated.inputs, begun(stated.inputs)
    if inputs.most_logged == 0:
        raise InputError(f"{path} was run with --logs none: there are no logs to compute from")
    sizes = [len(seeds) for seeds in inputs.seeds_of_cells]
    blocks: list[list[Columns]] = [[] for _ in sizes]
    for index, columns in tables.read_episodes(path / EPISODES, EPISODES, inputs.cells, sizes):
        blocks[index].append(columns)
    table = list(map(_joined, blocks))
    tasks = [(path, cell, inputs.logged(index)) for index, cell in enumerate(inputs.cells)]
    episodes, run = sum(len(seeds) for *_, seeds in tasks), sum(sizes)
    found: dict[str, Log] = {}
    for log in spread(read_log, tasks, 1 + min(episodes // PROCESS_PAYS, cores() - 1), local=True):
        found[log.name] = log
        if progress is not None:
            progress(len(found), len(tasks))
    logs = [found[log_name(cell)] for cell in inputs.cells]
    if damages := [log.damage for log in logs if log.damage]:
        others = f" (and {len(damages) - 1} more logs are damaged)" if len(damages) > 1 else ""
        raise InputError(damages[0] + others)
    ours = [log.measures or {} for log in logs]
    texts = [text for log in logs for text in log.contradictions]
    for log, own, theirs in zip(logs, ours, table, strict=True):
        texts += _disagreements(log.name, own, theirs)
    hashes = list(map(result_hash, ours if episodes == run else table))
    files = {EPISODES: sha256(path, EPISODES)} | {log.name: log.sha256 for log in logs}
    expected = finished(now, hashes, files)
    there, due = ({name: one.as_dict()[name] for name in COMPARED} for one in (stated, expected))
    for keys, is_stated, is_found in differences(there, due):
        where = "".join(f" {key}" if isinstance(key, int) else f", {key}" for key in keys)
        texts.append(f"{MANIFEST}{where}: {is_stated} is stated, {is_found} is found")
    if stated.engine != now.engine and texts:
        texts.append("the engine is not the one that made this run")
    text = f"{len(logs)} logs, {episodes} episodes, {sum(log.rows for log in logs)} rows"
    text += f": every measure agrees with {EPISODES} and {MANIFEST}"
    if episodes < run:
        text += f"; the other {run - episodes} episodes have no log and were not checked"
    text += "; versions of Python and packages are stated there and not compared"
    if inputs.agent is not None:
        text += f", nor is {CALLS}: `envprobe store verify --run` does that"
    return Report(texts, f"{text} (result hash {expected.result_hash})")


def _joined(blocks: list[Columns]) -> Columns:
    return {name: np.concatenate([block[name] for block in blocks]) for name in MEASURES}


def read_log(task: tuple[Path, Cell, Seeds]) -> Log:
    """Read the log of a folder, a cell and some seeds, look for contradictions, and score it."""
    folder, cell, due = task
    name, texts, blocks, rows = log_name(cell), [], [], 0
    try:
        whole = sha256(folder, name)
        for seeds, trajectory in tables.read_steps(folder / name, name, cell, due):
            texts += _contradictions(name, cell, seeds, trajectory)
            blocks.append(cell.named(seeds, trajectory.measures))
            rows += int((trajectory.steps + 1).sum())
    except DamagedFileError as error:
        return Log(name, str(error))
    return Log(name, None, whole, rows, tuple(texts), _joined(blocks))


def _disagreements(name: str, ours: Columns, stated: Columns) -> Iterator[str]:
    """Compare the measures of logged episodes with the table's first ones."""
    for measure, mine in ours.items():
        theirs = stated[measure][: len(mine)]
        for row in np.flatnonzero((mine != theirs) & ~((mine != mine) & (theirs != theirs))):
            told = f"the log gives {mine[row]}, {EPISODES} says {theirs[row]}"
            yield f"{name}, seed {ours['seed'][row]}, {measure}: {told}"


def _contradictions(name: str, cell: Cell, seeds: Seeds, log: Trajectory) -> Iterator[str]:
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
