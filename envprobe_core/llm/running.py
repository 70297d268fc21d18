"""Runs on a model: what a run folder lacks, whole runs from stored answers, and one episode, watched.

A run that was killed is simply run again: what was answered is replayed from the store. Beside the table,
`calls.jsonl` says of each episode what was asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import orjson

from envprobe_core.cells import Cell, Seeds
from envprobe_core.engine.recording import Columns, Trajectory
from envprobe_core.errors import InputError
from envprobe_core.llm import ModelAgent, find_version
from envprobe_core.llm.agent import (
    COUNTS,
    LanguageModelAgent,
    Tally,
    finish_in_loop,
    run_model,
    run_rows,
    together,
)
from envprobe_core.llm.answers import UNKNOWN_SIGN, Update
from envprobe_core.llm.calls import Answer, ChatRequest
from envprobe_core.llm.client import Client, Counts, Service
from envprobe_core.llm.prompts import action_name
from envprobe_core.runs.folder import ASKED, Part, RunFolder, part_files
from envprobe_core.runs.manifest import RunInputs, total_hash
from envprobe_core.runs.tables import Summary, result_hash
from envprobe_core.worlds.base import Ints

REPLAYED_ROWS = 250  # episodes in lockstep where every answer is at hand
LIVE_PER_CALL = 2  # episodes under way for each call that may be


@dataclass(frozen=True)
class Asked:
    """The result of running a cell's rows on a model."""

    answers: dict[str, Answer]  # those that were used, by key, in order of their first use
    trajectory: Trajectory
    tally: Tally  # [row]
    columns: Columns  # of the table of episodes, [row]


async def _ask(
    client: Client, service: Service, cell: Cell, seeds: Seeds, live: asyncio.Semaphore, reports: bool = False
) -> Asked:
    """Run a cell's rows, one at a time while answers take time; see `agent.run_model`."""
    answers: dict[str, Answer] = {}

    async def ask(request: ChatRequest, identity: str, spoilt: str) -> Answer:
        answer = await client.ask(request, identity, spoilt)
        answers[answer.key] = answer
        return answer

    rows = REPLAYED_ROWS if service.secret is None else 1
    trajectory, tally = await run_model(
        cell, seeds, ask, service.agent, live=live, rows=rows, reports=reports
    )
    return Asked(answers, trajectory, tally, cell.named(seeds, trajectory.measures))


def run_missing(
    folder: RunFolder,
    missing: Sequence[Part],
    service: Service,
    notice: Callable[[int, Counts], None] = lambda done, counts: None,
) -> list[Summary]:
    """Run the missing parts of an open run folder and finish it; return the summary of each cell.

    `notice` gets the number of episodes done, and the counts after every call.

    Raises:
        RunStoppedError: if an answer cannot be had; what is finished is kept.
    """
    find_version(service.agent.prompt_version)
    finish_in_loop(_run_parts(folder, missing, service, notice))
    return folder.finish()


async def _run_parts(
    folder: RunFolder, parts: Sequence[Part], service: Service, notice: Callable[[int, Counts], None]
) -> None:
    done, at_once = 0, service.limits.concurrency * (1 if service.weights else LIVE_PER_CALL)
    live = asyncio.Semaphore(1 if service.secret is None else at_once)

    async def run(client: Client, part: Part) -> None:
        nonlocal done
        asked = await _ask(client, service, part.cell, part.seeds, live, reports=part.logged > 0)
        files = part_files(part, asked.columns, asked.trajectory.rows(slice(part.logged)))
        folder.store(part, {ASKED: _call_lines(part, asked)} | files)
        done += len(part.seeds)

    async with service.client(lambda counts: notice(done, counts)) as client:
        await together([run(client, part) for part in parts])


def _call_lines(part: Part, asked: Asked) -> bytes:
    """Write what was asked for, a line an episode; fingerprints are those of the whole part."""
    names = {"fingerprints": sorted({answer.fingerprint for answer in asked.answers.values()} - {""})}
    key = {name: part.cell.key[name] for name in ("world", "policy", "protocol")}
    rows = zip(part.seeds.tolist(), asked.tally, strict=True)
    lines = (key | {"seed": seed} | counts | names for seed, counts in rows)
    return b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)


def total_tally(lines: bytes) -> dict[str, int]:
    """Add up the counts of `calls.jsonl`; a file that is none is refused."""
    try:
        rows = [orjson.loads(line) for line in lines.splitlines()]
        return {name: sum(int(row[name]) for row in rows) for name in COUNTS}
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"calls.jsonl is damaged: {error}") from None


def replay_run(service: Service, inputs: RunInputs) -> tuple[list[Asked], str]:
    """Run every cell of a run from a store or a replay file; return each one's result, and the result hash.

    Raises:
        RunStoppedError: if an answer is not there.
    """
    find_version(service.agent.prompt_version)

    async def replay() -> list[Asked]:
        pairs = zip(inputs.cells, inputs.seeds_of_cells, strict=True)
        async with service.client() as client:
            return [await _ask(client, service, *pair, asyncio.Semaphore(1)) for pair in pairs]

    cells = finish_in_loop(replay())
    return cells, total_hash(inputs.cells, [result_hash(cell.columns) for cell in cells])


# ---------------------------------------------------------------- one episode, watched


class Step(NamedTuple):
    """A step of an episode on a model, beside the truth."""

    step: int
    asked: str  # the last message of the request
    answered: str
    action: str  # that is proposed
    wrong: list[str]  # beliefs after the answer that are not true, in words


def watch(
    service: Service, cell: Cell, seed: int, notice: Callable[[list[Step]], object] = lambda steps: None
) -> list[Step]:
    """Play one episode on a model; `notice` is told of the steps so far whenever there is one more.

    Raises:
        RunStoppedError: if there is no answer.
    """
    steps: list[Step] = []

    async def play(client: Client, model: ModelAgent) -> None:
        said = "", ""

        async def ask(request: ChatRequest, identity: str, spoilt: str) -> Answer:
            nonlocal said
            answer = await client.ask(request, identity, spoilt)
            said = request["messages"][-1]["content"], answer.text
            return answer

        class Watched(LanguageModelAgent):
            def _write(self, due: Ints, updates: Sequence[Update]) -> None:
                super()._write(due, updates)
                own, world = self._episodes.block, self._world
                pairs = zip(
                    world.field_names, own.table.value[0].tolist(), own.gold[0].tolist(), strict=False
                )
                wrong = [
                    f"{name}: {UNKNOWN_SIGN if believed < 0 else believed}, not {true}"
                    for name, believed, true in pairs
                    if believed != true
                ]
                for update in updates:
                    steps.append(Step(int(own.t[0]), *said, action_name(world, update.action), wrong))
                    notice(steps)

        await run_rows(cell, np.array([seed]), lambda episodes: Watched(episodes, ask, model))

    async def with_client(ready: Service) -> None:
        async with ready.client() as client:
            await play(client, ready.agent)

    with service.at_work() as ready:
        finish_in_loop(with_client(ready))
    return steps
