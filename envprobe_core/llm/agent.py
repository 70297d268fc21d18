"""The language-model agent: asks a model for every belief update and proposal of its episodes.

It keeps what a program can keep without judging: where the agent has been, which calls failed, whether the
last task action was valid. Everything else, beliefs included, is the model's. It reads observations and
what checks told, never gold or the world's state.

An answer that cannot be used is asked for again, with its fault named. What stays unusable is an *invalid
update*: beliefs unchanged, nothing reported (c = d = 0 where the agent reports them, risk low), the
proposal is `wait`; it is counted.

Every episode is a block of its own (or of a few rows, in lockstep, where answers come at once, as from a
store), so one slow answer holds up nobody else. What they leave behind is joined to one trajectory, as
if the engine had run them: the same scores, columns and logs take it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar

import numpy as np

from envprobe_core.cells import Cell
from envprobe_core.engine.recording import Trajectory
from envprobe_core.engine.records import NONE, UNKNOWN
from envprobe_core.engine.running import Episodes
from envprobe_core.llm import FIRST, ModelAgent
from envprobe_core.llm.answers import (
    NO_UPDATE,
    STANDS,
    InvalidAnswer,
    Update,
    Verdict,
    apply_updates,
    parse_update,
    parse_verdict,
    reported_terms,
)
from envprobe_core.llm.calls import Ask, ChatRequest
from envprobe_core.llm.notes import remember
from envprobe_core.llm.prompts import NONE_YET, Case, Prompts, SituationWriter, action_name, prompts_of
from envprobe_core.policies import POLICIES
from envprobe_core.worlds import make_world
from envprobe_core.worlds.base import Ints

JUDGED = "judge"  # the policy whose decisions a second model makes
COUNTS = (
    "calls", "reasks", "invalid_updates", "verdicts", "invalid_verdicts", "prompt_tokens",
    "completion_tokens",
)  # fmt: skip
"""What is counted of an episode: answers taken, stored or fresh, re-asks and verdicts among them; re-asks;
belief updates that stayed unusable; verdicts, re-asks aside; those that stayed unusable; tokens as far as the
server counted them."""
Tally = list[dict[str, int]]  # COUNTS, [row]
Result = TypeVar("Result")


class LanguageModelAgent:
    """Proposes for a block of episodes by asking a model about each that is not over.

    Attributes:
        tally: what was asked for, [row].
    """

    def __init__(self, episodes: Episodes, ask: Ask, model: ModelAgent) -> None:
        """Take episodes that have just begun; of them it reads what the simulated agent may read."""
        cell, rows = episodes.cell, len(episodes.seeds)
        self.tally: Tally = [dict.fromkeys(COUNTS, 0) for _ in range(rows)]
        self._world = make_world(cell.world, cell.regime, cell.protocol)
        self._episodes, self._ask_for, self._model = episodes, ask, model
        self._seeds: list[int] = episodes.seeds.tolist()
        self._last_worked = np.full(rows, NONE_YET)
        self._situations = SituationWriter(self._world, episodes.block.task, model.prompt_version)
        self._past: list[list[str]] = [[] for _ in self._seeds]  # [row], the actions so far

    @cached_property
    def _prompts(self) -> Prompts:
        return prompts_of(self._episodes.cell, self._model.prompt_version)

    async def propose(self) -> None:
        """Ask for the update of every episode that is not over; write it down, and what it proposes."""
        remember(self._episodes.setting, self._episodes.block)
        block = np.asarray(self._episodes.block)  # attributes of records take long
        seen = block["observation"]
        acted = (seen["fresh"] == 1) & (seen["action"] >= 0)
        self._last_worked = np.where(acted, seen["valid"], self._last_worked)
        due = np.flatnonzero(block["over"] == 0)
        situations = self._situations.write(block, self._last_worked, due, self._past)
        self._write(due, await self._updates(due, situations))

    async def judge(self) -> Ints:
        """Ask a second model about every episode with budget left; return fields to probe, or NONE, [row]."""
        episodes, budget = self._episodes, self._episodes.setting.policy.budget
        embedded = episodes.decide()  # fills in the sights too
        block = episodes.block
        asked = np.flatnonzero((block.over == 0) & (block.probes_used < budget))
        cases = self._situations.cases(block.sight[asked])
        verdicts = await self._verdicts(asked, cases, embedded[asked])
        fields = np.full(len(block), NONE)
        fields[asked] = [case.ruled(verdict) for case, verdict in zip(cases, verdicts, strict=True)]
        return fields

    def _write(self, due: Ints, updates: Sequence[Update]) -> None:
        """Write updates of some rows into their episodes, as the simulated agent writes its own."""
        block, count = np.asarray(self._episodes.block), self._world.fields
        block["action"][due] = [update.action for update in updates]
        block["risk"][due] = [update.risk for update in updates]
        for row, update in zip(due.tolist(), updates, strict=True):
            self._past[row].append(action_name(self._world, update.action))
        apply_updates(block["table"], due, updates, block["told"][due])
        if self._world.protocol.structure == "reported":
            c, d = block["sight"]["c"], block["sight"]["d"]
            known = block["table"]["value"][:, :count] != UNKNOWN
            for row, update in zip(due.tolist(), updates, strict=True):
                c[row, :count], d[row, :count] = reported_terms(update, known[row])

    async def _updates(self, due: Ints, situations: Sequence[str]) -> list[Update]:
        steps = self._episodes.block["t"][due].tolist()
        asked = zip(due.tolist(), steps, situations, strict=True)
        return [await self._update(row, step, situation) for row, step, situation in asked]

    async def _verdicts(self, asked: Ints, cases: Sequence[Case], embedded: Ints) -> list[Verdict]:
        """Ask for verdicts; what the embedded judge decides is left aside."""
        return [await self._verdict(row, case) for row, case in zip(asked.tolist(), cases, strict=True)]

    async def _update(self, row: int, step: int, situation: str) -> Update:
        request = self._prompts.update_request(self._model, situation, self._seeds[row])
        dated = None if self._model.prompt_version == FIRST else step
        update = await self._ask(row, request, "update", lambda text: parse_update(text, self._world, dated))
        self.tally[row]["invalid_updates"] += update is None
        return update or NO_UPDATE

    async def _verdict(self, row: int, case: Case) -> Verdict:
        request = self._prompts.judge_request(self._model, case.text, case.candidates, self._seeds[row])
        verdict = await self._ask(row, request, "judge", lambda text: parse_verdict(text, case.candidates))
        self.tally[row]["verdicts"] += 1
        self.tally[row]["invalid_verdicts"] += verdict is None
        return verdict or STANDS

    async def _ask(
        self, row: int, request: ChatRequest, role: str, parse: Callable[[str], Result]
    ) -> Result | None:
        """Ask until an answer can be used, but not for ever; None where none could."""
        tally, spoilt = self.tally[row], ""
        for attempt in range(self._model.reasks + 1):
            answer = await self._ask_for(request, identity_of(role, self._seeds[row]), spoilt)
            tally["calls"] += 1
            tally["reasks"] += attempt > 0
            if answer.used is not None:
                tally["prompt_tokens"] += answer.used.prompt
                tally["completion_tokens"] += answer.used.completion
            try:
                return parse(answer.text)
            except InvalidAnswer as fault:
                request = self._prompts.asked_again(request, answer.text, str(fault))
                spoilt = answer.key
        return None


def identity_of(role: str, seed: int) -> str:
    """Name whose sample an answer is: `update` or `judge`, and the episode's seed."""
    return f"{role} of episode {seed}"


async def run_model(
    cell: Cell,
    seeds: Ints,
    ask: Ask,
    model: ModelAgent,
    *,
    live: asyncio.Semaphore,
    rows: int = 1,
    reports: bool = False,
) -> tuple[Trajectory, Tally]:
    """Run a cell with a language model; return the recorded trajectory and what was asked for, [row].

    The cell's profile only says how a table is scored. At most `live` blocks of `rows` episodes are under
    way: 1 row while answers take time, a few hundred where they are at hand. With `reports` the highest score
    is recorded also where the budget is spent, as logs hold it. Errors of `ask` end the run as they are.
    """

    def in_charge_of(episodes: Episodes) -> LanguageModelAgent:
        return LanguageModelAgent(episodes, ask, model)

    async def run(some: Ints) -> tuple[Trajectory, Tally]:
        async with live:
            return await run_rows(cell, some, in_charge_of, reports=reports)

    blocks = [seeds[start : start + rows] for start in range(0, len(seeds), rows)]
    trajectories, tallies = zip(*await together([run(some) for some in blocks]), strict=True)
    return Trajectory.joined(list(trajectories)), list(chain.from_iterable(tallies))


async def run_rows(
    cell: Cell, seeds: Ints, make: Callable[[Episodes], LanguageModelAgent], *, reports: bool = False
) -> tuple[Trajectory, Tally]:
    """Run a block of a cell, with an agent that `make` puts in charge of its episodes.

    A policy that replays another first runs that one, by the same answers.
    """
    schedules = None
    if cell.policy.replays is not None:
        original = replace(cell, policy=POLICIES[cell.policy.replays])
        played, _ = await run_rows(original, seeds, make)
        schedules = np.ascontiguousarray(played.probe, dtype=np.int64)
    episodes = Episodes(cell, seeds, schedules=schedules, scores_all=reports)
    agent = make(episodes)
    while True:
        await agent.propose()
        if not episodes.settle():
            return episodes.recording(), agent.tally
        episodes.advance(await agent.judge() if cell.policy.name == JUDGED else episodes.decide())


async def together(waiting: Sequence[Awaitable[Result]]) -> list[Result]:
    """Wait for all at once; the first failure cancels the others and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in waiting]  # type: ignore[arg-type]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


def finish_in_loop(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end, also where a loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass  # and no error that follows is told to have followed this one
    else:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, work).result()
    return asyncio.run(work)
