"""What Python calls of the engine: whole runs for grids, and the steps of a block one by one.

Every function takes a block, an array of episodes [row], and works on the rows that are not over.
"""

from __future__ import annotations

from envprobe_core.engine import loop, scoring
from envprobe_core.engine.compiling import entry
from envprobe_core.engine.records import NONE


@entry
def run(setting, block, seeds, logs, schedules, measures, own):
    """Run an episode a seed; keep all logs and episodes where there is room, else only the measures.

    Args:
        setting: the record of a cell (`setting.Setting`).
        block: episodes, [row] to keep all, or [1].
        seeds: [row].
        logs: [row, time] to keep all, or [1, time].
        schedules: [row, step], the fields that a replayed policy probes, or [1, 0].
        measures: [row], is filled in.
        own: a reader's policy, compiled (`own.compiled_rule`), or `own.NOBODY`.

    Returns:
        The row at which a reader's policy failed, or NONE.
    """
    for row in range(len(seeds)):
        episode, log = block[row if len(block) > 1 else 0], logs[row if len(logs) > 1 else 0]
        loop.begin(setting, episode, seeds[row])
        loop.play(setting, episode, log, schedules[row if len(schedules) > 1 else 0], own)
        scoring.measure(setting, log, episode.t, episode.ended, measures[row])
        if episode.fault:
            return row
    return NONE


@entry
def begin(setting, block, seeds):
    """Create the worlds; the agents look around."""
    for row in range(len(block)):
        loop.begin(setting, block[row], seeds[row])


@entry
def propose(setting, block):
    """Let the simulated agents update their tables and propose."""
    for row in range(len(block)):
        if not block[row].over:
            loop.propose(setting, block[row])


@entry
def settle(setting, block, logs):
    """Record b_t and g_t; return how many episodes still run."""
    running = 0
    for row in range(len(block)):
        if not block[row].over:
            running += not loop.settle(setting, block[row], logs[row])
    return running


@entry
def decide(setting, block, schedules, own, fields):
    """Ask the policy for the field to probe, or NONE, [row]; sights are filled in on the way."""
    for row in range(len(block)):
        fields[row] = NONE
        if not block[row].over:
            schedule = schedules[row if len(schedules) > 1 else 0]
            fields[row] = loop.decide(setting, block[row], schedule, own)


@entry
def look(setting, block, schedules):
    """Fill in the sights, for somebody else's policy."""
    for row in range(len(block)):
        if not block[row].over:
            loop.look(setting, block[row], schedules[row if len(schedules) > 1 else 0])


@entry
def advance(setting, block, fields, logs):
    """Probe or act; the worlds mutate; the agents observe."""
    for row in range(len(block)):
        if not block[row].over:
            loop.advance(setting, block[row], fields[row], logs[row])


@entry
def go_on(setting, block, logs, schedules, own):
    """Run episodes from their decision to their end."""
    for row in range(len(block)):
        episode, log = block[row], logs[row]
        while not episode.over:
            field = loop.decide(setting, episode, schedules[row if len(schedules) > 1 else 0], own)
            loop.advance(setting, episode, field, log)
            loop.propose(setting, episode)
            loop.settle(setting, episode, log)


@entry
def measure(setting, logs, steps, success, measures):
    """Fill in the measures of recorded episodes, [row], and how right their beliefs were at each time."""
    for row in range(len(logs)):
        scoring.measure(setting, logs[row], steps[row], success[row], measures[row])
