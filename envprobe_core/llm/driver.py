"""The asyncio driver: the engine's episodes step by step, asked of a language model, many in flight.

Every episode is a block of its own (or of a few rows, in lockstep, where answers come at once, as from a
store), so one slow answer holds up nobody else. What they leave behind is joined to one trajectory, as
if the engine had run them: the same scores, columns and logs take it.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np

from envprobe_core.cells import Cell
from envprobe_core.engine.recording import Trajectory
from envprobe_core.engine.running import Episodes
from envprobe_core.llm.agent import LanguageModelAgent, Tally, together
from envprobe_core.llm.asking import Asker, ModelSettings
from envprobe_core.policies import POLICIES
from envprobe_core.sweep import Seeds, Task

JUDGED = ("judge",)  # policies whose decisions a second model makes


async def run_model(
    task: Task,
    asker: Asker,
    settings: ModelSettings,
    *,
    live: asyncio.Semaphore,
    rows: int = 1,
    reports: bool = False,
) -> tuple[Trajectory, Tally]:
    """Run a task's rows with a language model.

    Args:
        task: what to run; its profiles only say how a table is scored, not how the model errs.
        asker: who answers; its errors end the run and are raised as they are.
        settings: which model, and how.
        live: how many blocks may be under way; several tasks may share it.
        rows: episodes a block; 1 while answers take time, a few hundred where they are at hand.
        reports: whether the highest score is recorded also where the budget is spent, as logs hold it.

    Returns:
        The recorded trajectory and what was asked for, in the order of the task's rows.
    """
    chunks = [
        (piece.cell, piece.seeds[start : start + rows])
        for piece in task.pieces
        for start in range(0, len(piece.seeds), rows)
    ]

    async def run(cell: Cell, seeds: Seeds) -> tuple[Trajectory, Tally]:
        async with live:
            return await run_rows(cell, seeds, asker, settings, reports=reports)

    done = await together([run(cell, seeds) for cell, seeds in chunks])
    trajectories, tallies = zip(*done, strict=True)
    return Trajectory.joined(list(trajectories)), Tally.joined(tallies)


async def run_rows(
    cell: Cell, seeds: Seeds, asker: Asker, settings: ModelSettings, *, reports: bool = False
) -> tuple[Trajectory, Tally]:
    """Run a block of a cell; a policy that replays another first runs that one, by the same answers."""
    schedules = None
    if cell.policy.replays is not None:
        original = replace(cell, policy=POLICIES[cell.policy.replays])
        played, _ = await run_rows(original, seeds, asker, settings)
        schedules = np.ascontiguousarray(played.probe, dtype=np.int64)
    episodes = Episodes(cell, seeds, schedules=schedules, scores_all=reports)
    agent = LanguageModelAgent(episodes, asker, settings)
    while True:
        await agent.propose()
        if not episodes.settle():
            return episodes.recording(), agent.tally
        judged = cell.policy.name in JUDGED
        episodes.advance(await agent.judge() if judged else episodes.decide())
