"""Every measure of a run again: what a run states beside what its logs say, and beside the run made anew.

From the logs the table of episodes is made, every measure scored anew, and compared with the one there is.
The logs are compared line by line with those due. A simulated run is run again for that: whatever it states,
staleness, confidence and place among it, has to come out. Of a language model's run, whose answers
are not here, the lines are as the rules have them (a probe's answer is the field's gold, and useful where the
belief differs; who probes does not act). The manifest is compared with the one that is due.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from envprobe_core.compiled.records import NONE, WAIT
from envprobe_core.conditions import Condition, Seeds
from envprobe_core.engine.batch import Trajectory, simulate, simulate_logged
from envprobe_core.engine.instances import informative
from envprobe_core.errors import InputError, counted
from envprobe_core.parallel import cores, map_unordered, processes
from envprobe_core.policies.voi import VOI
from envprobe_core.runs import manifest as manifests
from envprobe_core.runs import tables
from envprobe_core.runs.folder import CALLS, LOGGED_COST, PROCESS_PAYS, Progress
from envprobe_core.runs.manifest import EPISODES, MANIFEST, log_name

COMPARED = ("profile", "protocols", "conditions", "sha256", "result_hash")  # of a manifest


class Log(NamedTuple):
    """What the log of a condition gave."""

    name: str  # empty where there is no log
    sha256: str
    faults: list[str]  # lines that are not those due
    lines: int
    episodes: pd.DataFrame  # from the log; of a simulated agent also those beyond it, run anew


def check_run(path: Path, progress: Progress | None = None) -> tuple[list[str], str]:
    """Compute a run's measures again from its step logs, and compare them with what it states.

    Returned are a text for whatever is wrong, with file, seed, step and column, and what was checked.
    """
    stated = manifests.read_manifest(path, whole=True)
    inputs, now = stated.inputs, manifests.begun(stated.inputs)
    sizes = [*map(len, inputs.seeds_of_conditions)]
    anew = inputs.agent is None
    run, episodes = sum(sizes), sum(map(len, inputs.logged_seeds))
    if not episodes and not anew:
        raise InputError(f"{path} was run with --logs none: there are no logs to compute from")
    table, logs = tables.read_episodes(path, sizes), dict[int, Log]()
    rows = zip(inputs.conditions, inputs.seeds_of_conditions, map(len, inputs.logged_seeds), strict=True)
    tasks = [(path, place, *row, anew) for place, row in enumerate(rows)]
    jobs = min(1 + LOGGED_COST * run // PROCESS_PAYS, cores(), len(tasks))
    with processes(jobs) if jobs > 1 else nullcontext() as executor:
        for place, log in map_unordered(read_log, tasks, executor):
            logs[place] = log
            if progress is not None:
                progress(len(logs), len(tasks))
    wrong, hashes, readings, steps = [], [], [], 0
    for place, (condition, theirs) in enumerate(zip(inputs.conditions, table, strict=True)):
        log = logs[place]
        again = log.episodes
        compared = theirs[: len(again)]
        if not anew:  # how answers could be read stands in no log
            again = again.drop(columns=[*tables.READ])
        name = f"{EPISODES}, {Path(log_name(condition)).stem}"
        wrong += [*log.faults, *tables.disagreements(name, compared[again.columns], again)]
        readings.append(tables.readings(condition, tables.measures_of(theirs)))
        rest = theirs[len(again) :]
        whole = pd.concat([log.episodes, rest], ignore_index=True) if len(rest) else log.episodes
        hashes.append(tables.result_hash(tables.measures_of(whole)))
        steps += log.lines
    read = [log for _, log in sorted(logs.items()) if log.name]
    files = {EPISODES: tables.sha256(path, EPISODES)} | {log.name: log.sha256 for log in read}
    due = manifests.finished(now, hashes, files, readings)
    wrong += [f"{MANIFEST}, {text}" for text in manifests.differences(stated, due, COMPARED)]
    if stated.engine != now.engine and wrong:
        wrong.append("the engine is not the one that made this run")
    agree = f"every measure agrees with {EPISODES} and {MANIFEST}"
    text = f"{counted(len(read), 'log')}, {counted(episodes, 'episode')}, {counted(steps, 'row')}: {agree}"
    if anew:
        text += f"; so does the run made anew, {counted(run, 'episode')}"
    elif episodes < run:
        text += f"; not checked, for want of a log: {counted(run - episodes, 'episode')}"
    text += "; versions of Python and packages are stated there and not compared"
    if inputs.agent is not None:
        text += f", nor is {CALLS}: `envprobe store verify --run` does that"
    return wrong, f"{text} (result hash {due.result_hash})"


def read_log(task: tuple[Path, int, Condition, Seeds, int, bool]) -> tuple[int, Log]:
    """Read a condition's log, and compare it with the one that is due; run what is beyond it anew.

    Args:
        task: the run's folder, the condition's place in it, the condition, its seeds, how many of them are
            logged, and whether its episodes can be made anew.
    """
    folder, place, condition, seeds, logged, anew = task
    name, faults, sha256, lines, parts = "", [], "", 0, []
    if logged:
        name, own = log_name(condition), seeds[:logged]
        sha256 = tables.sha256(folder, name)
        log, found = tables.read_steps(folder, name, condition, own)
        due = simulate_logged(condition, own) if anew else as_ruled(condition, own, log)
        faults = [f"{name}, {text}" for text in early(condition, own, log)]
        faults += unlike_lines(name, condition, own, (log, found), due)
        lines = len(found)
        parts.append(tables.episode_table(condition, condition.named(own, log.measures)))
    if anew and logged < len(seeds):
        rest = seeds[logged:]
        parts.append(tables.episode_table(condition, condition.named(rest, simulate(condition, rest))))
    return place, Log(name, sha256, faults, lines, pd.concat(parts, ignore_index=True))


def unlike_lines(
    name: str, condition: Condition, seeds: Seeds, read: tuple[Trajectory, pd.DataFrame], due: Trajectory
) -> Iterator[str]:
    """Say of every line of a log that is not the one due; of an episode of another length, that it is."""
    log, found = read
    apart = np.flatnonzero(log.steps != due.steps)
    for row in apart.tolist():
        yield f"{name}, seed {seeds[row]}: ends at t {log.steps[row]}, not at t {due.steps[row]}"
    if len(apart):
        same = np.flatnonzero(log.steps == due.steps)
        found = found[np.repeat(log.steps == due.steps, log.steps + 1)].reset_index(drop=True)
        due, seeds = due.rows(same), seeds[same]
    yield from tables.disagreements(name, found, tables.step_table(condition, seeds, due))


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


def early(condition: Condition, seeds: Seeds, log: Trajectory) -> Iterator[str]:
    """Say of the episodes that end where they should go on."""
    goes_on = ~log.success | (condition.protocol.end == "horizon")
    wrong = (log.steps < condition.regime.horizon) & goes_on
    for seed, t in zip(seeds[wrong].tolist(), log.steps[wrong].tolist(), strict=True):
        yield f"seed {seed}: ends before its time, at t {t}"
