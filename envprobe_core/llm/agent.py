"""The language-model agent: asks a model for every belief update and proposal of its block.

It keeps what a program can keep without judging: where the agent has been, which calls failed, whether the
last task action was valid. Everything else, beliefs included, is the model's. It is given observations and
what checks told, never gold.

An answer that cannot be used is asked for again, with its fault named. What stays unusable is an *invalid
update*: beliefs unchanged, nothing reported (c = d = 0 where the agent reports them, risk low), the
proposal is `wait`; it is counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from envprobe_core.agents.base import RISK_LOW, Consultation, Mind, Reply, Request
from envprobe_core.agents.simulated import MINDS
from envprobe_core.llm.answers import (
    NO_FIELD,
    Update,
    Verdict,
    Vocabulary,
    apply_update,
    reported_terms,
)
from envprobe_core.llm.asking import Asker, ChatRequest, ModelSettings
from envprobe_core.llm.checking import InvalidAnswer, parse_update, parse_verdict
from envprobe_core.llm.judging import Cases
from envprobe_core.llm.prompts import asked_again, judge_request, judge_system, update_request, update_system
from envprobe_core.llm.situations import NONE_YET, SituationWriter
from envprobe_core.views import Decision
from envprobe_core.worlds.base import UNKNOWN, WAIT, Ints, World

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Tally:
    """What a block of episodes asked for, [row] each.

    Attributes:
        calls: answers taken, re-asks and verdicts included, whether stored or fresh.
        reasks: how many of them were asked because an answer could not be used.
        invalid_updates: belief updates that stayed unusable.
        verdicts: judge's verdicts asked for, re-asks aside.
        invalid_verdicts: verdicts that stayed unusable.
        prompt_tokens, completion_tokens: of all answers, as far as the server counted them.
    """

    calls: Ints
    reasks: Ints
    invalid_updates: Ints
    verdicts: Ints
    invalid_verdicts: Ints
    prompt_tokens: Ints
    completion_tokens: Ints

    @classmethod
    def empty(cls, rows: int) -> Tally:
        """Start at zero."""
        return cls(*(np.zeros(rows, dtype=np.int64) for _ in fields(cls)))

    @classmethod
    def joined(cls, parts: Sequence[Tally]) -> Tally:
        """Put the rows of several tallies one after the other."""
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))


class LanguageModelAgent:
    """Answers for a block of rows by asking a model about each that is due."""

    def __init__(
        self,
        world: World,
        static: Any,
        seeds: npt.NDArray[np.int64],
        asker: Asker,
        settings: ModelSettings,
    ) -> None:
        """Set up a block.

        Args:
            world: the world, for its rules and names; its gold is never asked for.
            static: the static task graph of every row.
            seeds: [row].
            asker: who answers.
            settings: which model, and how.
        """
        self.tally = Tally.empty(len(seeds))
        self._world, self._asker, self._settings = world, asker, settings
        self._seeds: list[int] = seeds.tolist()
        self._mind: Mind = MINDS[world.name](world, static)
        self._last_worked = np.full(len(seeds), NONE_YET)
        self._situations = SituationWriter(world, static)
        self._vocabulary = Vocabulary(world)
        self._system = update_system(world)
        self._due: set[int] = set()

    async def answer(self, request: Request) -> Reply:
        """Ask for every due row's update, write it to the table, and propose what it proposes."""
        observation, rows = request.observation, len(self._seeds)
        self._mind.remember(request.step, observation)
        acted = (observation.action >= 0) & observation.fresh
        self._last_worked = np.where(acted, observation.valid, self._last_worked)
        due = list(range(rows)) if request.due is None else np.flatnonzero(request.due).tolist()
        self._due = set(due)
        situations = self._situations.write(request, self._mind, self._last_worked)
        updates = await together([self._update(row, situations[row]) for row in due])

        action, risk = np.full(rows, WAIT), np.full(rows, RISK_LOW, dtype=np.int8)
        c, d = np.zeros((2, rows, self._world.fields))
        for row, update in zip(due, updates, strict=True):
            if update is None:
                continue
            apply_update(request.table, row, update, int(request.told[row]))
            action[row], risk[row] = update.action, update.risk
            c[row], d[row] = reported_terms(update, request.table.value[row] != UNKNOWN)
        if self._world.protocol.structure != "reported":
            return Reply(action, None, None, risk)
        return Reply(action, c, d, risk)

    async def judge(self, consultation: Consultation) -> Decision:
        """Ask a second model to rule on every due row whose budget is not spent."""
        cases = Cases.of(consultation)
        texts, system = cases.texts(self._world), judge_system(self._world)
        rows = np.arange(len(self._seeds))[consultation.rows].tolist()
        asked = [case for case, row in enumerate(rows) if cases.open[case] and row in self._due]
        given = await together(
            [self._verdict(rows[case], system, texts[case], cases.order[case].tolist()) for case in asked]
        )
        verdicts = [Verdict(False, NO_FIELD)] * len(texts)
        for case, verdict in zip(asked, given, strict=True):
            verdicts[case] = verdict
        return cases.ruled(verdicts)

    async def _update(self, row: int, situation: str) -> Update | None:
        request = update_request(self._settings, self._system, situation, self._seeds[row])
        update = await self._ask(row, request, "update", lambda text: parse_update(text, self._vocabulary))
        self.tally.invalid_updates[row] += update is None
        return update

    async def _verdict(self, row: int, system: str, case: str, candidates: list[int]) -> Verdict:
        request = judge_request(self._settings, system, case, self._seeds[row])
        verdict = await self._ask(row, request, "judge", lambda text: parse_verdict(text, candidates))
        self.tally.verdicts[row] += 1
        self.tally.invalid_verdicts[row] += verdict is None
        return Verdict(False, NO_FIELD) if verdict is None else verdict

    async def _ask(
        self, row: int, request: ChatRequest, role: str, parse: Callable[[str], Answer]
    ) -> Answer | None:
        """Ask until an answer can be used, but not for ever; None where none could."""
        tally, identity = self.tally, f"{role} of episode {self._seeds[row]}"
        for attempt in range(self._settings.reasks + 1):
            answered = await self._asker.ask(request, identity)
            tally.calls[row] += 1
            tally.reasks[row] += attempt > 0
            if answered.usage is not None:
                tally.prompt_tokens[row] += answered.usage.prompt_tokens
                tally.completion_tokens[row] += answered.usage.completion_tokens
            try:
                return parse(answered.text)
            except InvalidAnswer as fault:
                request = asked_again(request, answered.text, str(fault))
        return None


async def together(waiting: Sequence[Awaitable[Answer]]) -> list[Answer]:
    """Wait for all at once; the first failure cancels the others and is raised as it is."""
    if len(waiting) == 1:
        return [await waiting[0]]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in waiting]  # type: ignore[arg-type]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
