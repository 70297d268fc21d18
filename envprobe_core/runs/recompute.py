"""Every measure of a run again, from its step logs alone: what a run states beside what its logs say.

From the logs two tables are made and compared with what is there, value by value: the lines as the rules have
them (a probe's answer is the field's gold, and useful where the belief differs; who probes does not act), and
the table of episodes, every measure scored anew. The manifest is compared with the one that is due.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from envprobe_core.cells import Cell, Seeds
from envprobe_core.engine.instances import informative
from envprobe_core.engine.records import NONE, WAIT
from envprobe_core.engine.running import Trajectory
from envprobe_core.errors import InputError, counted
from envprobe_core.policies.rules import VOI
from envprobe_core.pool import cores, spread
from envprobe_core.runs import manifest as manifests
from envprobe_core.runs import tables
from envprobe_core.runs.folder import CALLS, PROCESS_PAYS, Progress
from envprobe_core.runs.manifest import EPISODES, MANIFEST, log_name

COMPARED = ("profile", "protocols", "cells", "sha256", "result_hash")  # of a manifest


class Log(NamedTuple):
    """What the log of a cell gave."""

    name: str
    sha256: str
    contradictions: list[str]  # of the log to itself
    episodes: pa.Table


def check_run(path: Path, progress: Progress | None = None) -> tuple[list[str], str]:
    """Compute a run's measures again from its step logs, and compare them with what it states.

    Returned are a text for whatever is wrong, with file, seed, step and column, and what was checked.
    """
    stated = manifests.read_manifest(path, whole=True)
    inputs, now = stated.inputs, manifests.begun(stated.inputs)
    sizes = [*map(len, inputs.seeds_of_cells)]
    run, episodes = sum(sizes), sum(map(len, inputs.logged_seeds))
    if not episodes:
        raise InputError(f"{path} was run with --logs none: there are no logs to compute from")
    rows: list[list[pa.Table]] = [[] for _ in sizes]
    for index, part in tables.read_episodes(path, sizes):
        rows[index].append(part)
    table, logs = list(map(pa.concat_tables, rows)), {}
    tasks = [(path, *pair) for pair in zip(inputs.cells, inputs.logged_seeds, strict=True)]
    for log in spread(read_log, tasks, 1 + min(episodes // PROCESS_PAYS, cores() - 1), local=True):
        logs[log.name] = log
        if progress is not None:
            progress(len(logs), len(tasks))
    wrong, hashes, steps = [], [], 0
    for cell, theirs in zip(inputs.cells, table, strict=True):
        log = logs[log_name(cell)]
        logged, rest = theirs.slice(0, len(log.episodes)), theirs.slice(len(log.episodes))
        name = f"{EPISODES}, {Path(log.name).stem}"
        wrong += [*log.contradictions, *tables.disagreements(name, logged, log.episodes)]
        whole = tables.measures_of(pa.concat_tables([log.episodes, rest]))
        hashes.append(tables.result_hash(whole))
        steps += int((whole["steps"][: len(logged)] + 1).sum())
    files = {EPISODES: tables.sha256(path, EPISODES)} | {log.name: log.sha256 for log in logs.values()}
    due = manifests.finished(now, hashes, files)
    wrong += [f"{MANIFEST}, {text}" for text in manifests.differences(stated, due, COMPARED)]
    if stated.engine != now.engine and wrong:
        wrong.append("the engine is not the one that made this run")
    agree = f"every measure agrees with {EPISODES} and {MANIFEST}"
    text = f"{counted(len(logs), 'log')}, {counted(episodes, 'episode')}, {counted(steps, 'row')}: {agree}"
    if episodes < run:
        text += f"; not checked, for want of a log: {counted(run - episodes, 'episode')}"
    text += "; versions of Python and packages are stated there and not compared"
    if inputs.agent is not None:
        text += f", nor is {CALLS}: `envprobe store verify --run` does that"
    return wrong, f"{text} (result hash {due.result_hash})"


def read_log(task: tuple[Path, Cell, Seeds]) -> Log:
    """Read the log of a folder, a cell and some seeds, look for contradictions, and score it."""
    folder, cell, due = task
    name, texts, episodes = log_name(cell), list[str](), []
    whole = tables.sha256(folder, name)
    for seeds, log, lines in tables.read_steps(folder, name, cell, due):
        texts += tables.disagreements(name, lines, tables.step_table(cell, seeds, as_ruled(cell, seeds, log)))
        texts += (
            f"{name}, seed {seed}: ends before its time, at t {t}" for seed, t in early(cell, seeds, log)
        )
        episodes.append(tables.episode_table(cell, cell.named(seeds, log.measures)))
    return Log(name, whole, texts, pa.concat_tables(episodes))


def as_ruled(cell: Cell, seeds: Seeds, log: Trajectory) -> Trajectory:
    """Return a log with every decision as its own beliefs, gold values and inputs have it."""
    rows, steps = np.indices(log.probe.shape)
    executed = steps < log.steps[:, None]
    fired = executed & (log.probe != NONE)
    fired &= fired.cumsum(axis=1) <= cell.budget_in_force
    field = np.maximum(log.probe, 0)
    gold, belief = log.gold[rows, steps, field], log.belief[rows, steps, field]
    acted = executed & ~fired & (log.action != WAIT)
    log = replace(log, probe=np.where(fired, log.probe, NONE))
    useful = fired & (gold != belief)
    if cell.protocol.useful == "released":
        useful = informative(cell, seeds, log)
    valued = cell.policy.rule.kind == VOI and cell.protocol.answer == "delivered"
    scored = valued or (cell.policy.has_threshold and cell.policy.replays is None)
    return replace(
        log,
        answer=np.where(fired, gold, 0),
        useful=useful,
        acted=acted,
        valid=log.valid & acted,
        score=np.where(executed & scored, np.nan_to_num(log.score, nan=0.0), np.nan),  # some number is due
    )


def early(cell: Cell, seeds: Seeds, log: Trajectory) -> Iterator[tuple[int, int]]:
    """Yield seed and time of the episodes that end where they should go on."""
    goes_on = ~log.success | (cell.protocol.end == "horizon")
    wrong = (log.steps < cell.regime.horizon) & goes_on
    yield from zip(seeds[wrong].tolist(), log.steps[wrong].tolist(), strict=True)
