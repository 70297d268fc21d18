"""Recomputation: every measure of a run again from its step logs alone, compared with what it states.

Three things can be wrong. A file is *damaged*: it cannot be read, or holds a value that no run writes. A log
*contradicts itself*: a probe is called useful whose answer equals the belief. Or a file *disagrees*: a log
gives another measure than episodes.parquet, or another hash than manifest.json; or a file is not the one
whose SHA-256 the manifest states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
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
    """A log and what it is to agree with: its episodes' measures as the table states them."""

    folder: Path
    cell: Cell
    seeds: Seeds
    stated: Columns


@dataclass(frozen=True)
class Outcome:
    """What a log gave: its name, rows, disagreements, SHA-256 and result hash; or its damage."""

    name: str
    rows: int = 0
    disagreements: list[str] = field(default_factory=list)
    sha256: str = ""
    result_hash: str = ""
    damage: str | None = None


def check_run(path: Path, progress: Callable[[int, int], None] | None = None) -> Report:
    """Compute a run's measures again from its logs and compare; `progress` is told of logs done and to do.

    Raises:
        InputError: if there is no finished run with logs, or one of its files is damaged.
    """
    stated = read_finished(path)
    inputs = stated.inputs
    if inputs.most_logged == 0:
        raise InputError(f"{path} was run with --logs none: there are no logs to compute from")
    sizes = [len(seeds) for seeds in inputs.seeds_of_cells]
    blocks: list[list[Columns]] = [[] for _ in sizes]
    for index, columns in tables.read_episodes(path / EPISODES, EPISODES, inputs.cells, sizes):
        blocks[index].append(columns)
    measures = list(map(_joined, blocks))
    logs = []
    for index, (cell, own) in enumerate(zip(inputs.cells, measures, strict=True)):
        seeds = inputs.logged(index)
        logs.append(Log(path, cell, seeds, {name: own[name][: len(seeds)] for name in MEASURES}))
    episodes, run = sum(len(log.seeds) for log in logs), sum(sizes)
    found: dict[str, Outcome] = {}
    for outcome in spread(check_log, logs, 1 + min(episodes // PROCESS_PAYS, cores() - 1), local=True):
        found[outcome.name] = outcome
        if progress is not None:
            progress(len(found), len(logs))
    outcomes = [found[log_name(log.cell)] for log in logs]
    if damages := [outcome.damage for outcome in outcomes if outcome.damage]:
        others = f" (and {len(damages) - 1} more logs are damaged)" if len(damages) > 1 else ""
        raise InputError(damages[0] + others)
    hashes = [own.result_hash for own in outcomes] if episodes == run else list(map(result_hash, measures))
    files = {EPISODES: sha256(path, EPISODES)} | {own.name: own.sha256 for own in outcomes}
    now = begun(inputs)
    expected = finished(now, hashes, files)
    texts = [text for outcome in outcomes for text in outcome.disagreements]
    there, due = ({name: one.as_dict()[name] for name in COMPARED} for one in (stated, expected))
    for keys, is_stated, is_found in differences(there, due):
        where = "".join(f" {key}" if isinstance(key, int) else f", {key}" for key in keys)
        texts.append(f"{MANIFEST}{where}: {is_stated} is stated, {is_found} is found")
    text = f"{len(logs)} logs, {episodes} episodes, {sum(outcome.rows for outcome in outcomes)} rows"
    text += f": every measure agrees with {EPISODES} and {MANIFEST}"
    if episodes < run:
        text += f"; the other {run - episodes} episodes have no log and were not checked"
    text += "; versions of Python and packages are stated there and not compared"
    if inputs.agent is not None:
        text += f", nor is {CALLS}: `envprobe store verify --run` does that"
    if stated.engine != now.engine and texts:
        texts.append("the engine is not the one that made this run")
    return Report(texts, f"{text} (result hash {expected.result_hash})")


def _joined(blocks: list[Columns]) -> Columns:
    return {name: np.concatenate([block[name] for block in blocks]) for name in MEASURES}


def check_log(log: Log) -> Outcome:
    """Read one log, look for contradictions, score it, and compare."""
    name, texts, blocks, rows = log_name(log.cell), [], [], 0
    try:
        whole = sha256(log.folder, name)
        for seeds, trajectory in tables.read_steps(log.folder / name, name, log.cell, log.seeds):
            texts += _contradictions(name, log.cell, seeds, trajectory)
            blocks.append(log.cell.named(seeds, trajectory.measures))
            rows += int((trajectory.steps + 1).sum())
    except DamagedFileError as error:
        return Outcome(name, damage=str(error))
    found = _joined(blocks)
    return Outcome(
        name, rows, texts + list(_disagreements(name, found, log.stated)), whole, result_hash(found)
    )


def _disagreements(name: str, ours: Columns, stated: Columns) -> Iterator[str]:
    """Compare the measures of some episodes with the table's."""
    for measure in MEASURES:
        mine, theirs = ours[measure], stated[measure]
        for row in np.flatnonzero((mine != theirs) & ~((mine != mine) & (theirs != theirs))):
            yield (
                f"{name}, seed {ours['seed'][row]}, {measure}: the log gives {mine[row]}, "
                f"{EPISODES} says {theirs[row]}"
            )


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
