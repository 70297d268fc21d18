"""The asyncio driver: the same rollout, asked of a language model, many episodes in flight.

Every episode is a rollout of its own (or of a few rows, in lockstep, where answers come at once, as from a
store), so one slow answer holds up nobody else. What they leave behind is joined to one trajectory, as
if the array driver had run them: the same scores, columns and logs take it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from envprobe_core.agents.base import Consultation
from envprobe_core.cells import Cell
from envprobe_core.llm.agent import LanguageModelAgent, Tally, together
from envprobe_core.llm.asking import Asker, ModelSettings
from envprobe_core.policies import POLICIES
from envprobe_core.rollout import Episode, rollout
from envprobe_core.sweep import Piece, Seeds, Task, make_block
from envprobe_core.trajectory import Trajectory
from envprobe_core.worlds import make_world

JUDGED = ("judge",)  # policies whose decisions a second model makes


async def drive_model(episode: Episode, agent: LanguageModelAgent) -> Trajectory:
    """Run a rollout with an agent that must wait for its answers."""
    request = next(episode)
    while True:
        judged = isinstance(request, Consultation)
        answer = await (agent.judge(request) if judged else agent.answer(request))
        try:
            request = episode.send(answer)
        except StopIteration as finished:
            return finished.value


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
        live: how many rollouts may be under way; several tasks may share it.
        rows: episodes a rollout; 1 while answers take time, a few hundred where they are at hand.
        reports: whether to record staleness and confidence too, for logs.

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
    return joined(trajectories), Tally.joined(tallies)


async def run_rows(
    cell: Cell, seeds: Seeds, asker: Asker, settings: ModelSettings, *, reports: bool = False
) -> tuple[Trajectory, Tally]:
    """Run one rollout of a cell; a policy that replays another first runs that one, by the same answers."""
    world = make_world(cell.world, cell.regime, cell.protocol)
    block = replace(make_block(world, [Piece(0, cell, seeds)]), consults=JUDGED)
    if cell.policy.replays is not None:
        original = replace(cell, policy=POLICIES[cell.policy.replays])
        played, _ = await run_rows(original, seeds, asker, settings)
        block = replace(block, schedule=played.probe.astype(np.int64))
    instance = world.instances(seeds)
    agent = LanguageModelAgent(world, instance.map, seeds, asker, settings)
    trajectory = await drive_model(rollout(block, instance, reports=reports), agent)
    return trajectory, agent.tally


def joined(parts: Sequence[Trajectory]) -> Trajectory:
    """Put the rows of several recordings one after the other."""
    columns = {field.name: [getattr(part, field.name) for part in parts] for field in fields(Trajectory)}
    return Trajectory(
        **{name: None if column[0] is None else np.concatenate(column) for name, column in columns.items()}
    )
