"""Every measure of a run again, from its step logs alone: what a run states beside what its logs say.

From the logs two tables are made and compared with what is there, value by value: the lines as the rules have
them (a probe's answer is the field's gold, and useful where the belief differs; who probes does not act), and
the table of episodes, every measure scored anew. The manifest is compared with the one that is due.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from envprobe_core.conditions import Condition, Seeds
from envprobe_core.engine.batch import Trajectory
from envprobe_core.engine.instances import informative
from envprobe_core.engine.records import NONE, WAIT
from envprobe_core.errors import InputError, counted
from envprobe_core.parallel import cores, map_unordered, processes
from envprobe_core.policies.voi import VOI
from envprobe_core.runs import manifest as manifests
from envprobe_core.runs import tables
from envprobe_core.runs.folder import CALLS, PROCESS_PAYS, Progress
from envprobe_core.runs.manifest import EPISODES, MANIFEST, log_name

COMPARED = ("profile", "protocols", "conditions", "sha256", "result_hash")  # of a manifest


class Log(NamedTuple):
    """What the log of a condition gave."""

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
    sizes = [*map(len, inputs.seeds_of_conditions)]
    run, episodes = sum(sizes), sum(map(len, inputs.logged_seeds))
    if not episodes:
        raise InputError(f"{path} was run with --logs none: there are no logs to compute from")
    table, logs = tables.read_episodes(path, sizes), dict[str, Log]()
    tasks = [(path, *pair) for pair in zip(inputs.conditions, inputs.logged_seeds, strict=True)]
    jobs = min(1 + episodes // PROCESS_PAYS, cores(), len(tasks))
    with processes(jobs) if jobs > 1 else nullcontext() as executor:
        for log in map_unordered(read_log, tasks, executor):
            logs[log.name] = log
            if progress is not None:
                progress(len(logs), len(tasks))
    wrong, hashes, readings, steps = [], [], [], 0
    for condition, theirs in zip(inputs.conditions, table, strict=True):
        log = logs[log_name(condition)]
        logged, rest = theirs.slice(0, len(log.episodes)), theirs.slice(len(log.episodes))
        name = f"{EPISODES}, {Path(log.name).stem}"
        if inputs.agent is not None:  # how answers could be read stands in no log
            logged = logged.drop_columns([*tables.READ])
        again = log.episodes.select(logged.column_names)
        wrong += [*log.contradictions, *tables.disagreements(name, logged, again)]
        readings.append(tables.readings(condition, tables.measures_of(theirs)))
        whole = tables.measures_of(pa.concat_tables([log.episodes, rest]))
        hashes.append(tables.result_hash(whole))
        steps += int((whole["steps"][: len(logged)] + 1).sum())
    files = {EPISODES: tables.sha256(path, EPISODES)} | {log.name: log.sha256 for log in logs.values()}
    due = manifests.finished(now, hashes, files, readings)
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


def read_log(task: tuple[Path, Condition, Seeds]) -> Log:
    """Read the log of a folder, a condition and some seeds, look for contradictions, and score it."""
    folder, condition, seeds = task
    name = log_name(condition)
    whole = tables.sha256(folder, name)
    log, lines = tables.read_steps(folder, name, condition, seeds)
    due = tables.step_table(condition, seeds, as_ruled(condition, seeds, log))
    texts = list(tables.disagreements(name, lines, due))
    texts += (
        f"{name}, seed {seed}: ends before its time, at t {t}" for seed, t in early(condition, seeds, log)
    )
    return Log(name, whole, texts, tables.episode_table(condition, condition.named(seeds, log.measures)))


def as_ruled(condition: Condition, seeds: Seeds, log: Trajectory) -> Trajectory:
    """A log with every decision as its own beliefs, gold values and inputs have it."""
    rows, steps = np.indices(log.probe.shape)
    executed = steps < log.steps[:, None]
    fired = executed & (log.probe != NONE)
    fired &= fired.cumsum(axis=1) <= condition.budget_in_force
    field = np.maximum(log.probe, 0)
    gold, belief = log.gold[rows, steps, field], log.belief[rows, steps, field]
    acted = executed & ~fired & (log.action != WAIT)
    log = replace(log, probe=np.where(fired, log.probe, NONE))
    useful = fired & (gold != belief)
    if condition.protocol.useful == "released":
        useful = informative(condition, seeds, log)
    valued = condition.policy.rule.kind == VOI and condition.protocol.answer == "delivered"
    scored = valued or (condition.policy.has_threshold and condition.policy.replays is None)
    return replace(
        log,
        answer=np.where(fired, gold, 0),
        useful=useful,
        acted=acted,
        valid=log.valid & acted,
        score=np.where(executed & scored, np.nan_to_num(log.score, nan=0.0), np.nan),  # some number is due
    )


def early(condition: Condition, seeds: Seeds, log: Trajectory) -> Iterator[tuple[int, int]]:
    """Yield seed and time of the episodes that end where they should go on."""
    goes_on = ~log.success | (condition.protocol.end == "horizon")
    wrong = (log.steps < condition.regime.horizon) & goes_on
    yield from zip(seeds[wrong].tolist(), log.steps[wrong].tolist(), strict=True)
