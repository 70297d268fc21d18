"""A rehearsal: the simulated agent in a model's place, which is asked what a model would be asked.

It answers from the episode itself and not from the prompt; that a prompt tells everything it uses is tested
with a program that reads nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from envprobe_core.agents.profiles import PROFILES, TYPICAL, AgentProfile
from envprobe_core.agents.simulated import RISK_LOW, RISK_MEDIUM
from envprobe_core.cells import Cell
from envprobe_core.engine.compiling import announced
from envprobe_core.engine.loop import PROPOSE
from envprobe_core.engine.records import NONE
from envprobe_core.engine.running import Episodes, take
from envprobe_core.engine.setting import setting_of
from envprobe_core.llm.agent import LanguageModelAgent, identity_of, run_rows
from envprobe_core.llm.answers import (
    NO_UPDATE,
    Row,
    Update,
    Verdict,
    apply_updates,
    write_update,
    write_verdict,
)
from envprobe_core.llm.asking import ChatRequest, RunStoppedError
from envprobe_core.llm.identity import ModelAgent, ModelSettings
from envprobe_core.llm.judging import Case
from envprobe_core.llm.notes import take_over
from envprobe_core.llm.running import finish_in_loop
from envprobe_core.llm.situations import INVALID
from envprobe_core.policies import POLICIES
from envprobe_core.regimes import Regime
from envprobe_core.worlds import World
from envprobe_core.worlds.base import Ints

PERFECT = PROFILES["perfect"]
Entry = tuple[int, int, int]  # value, staleness, confidence
Note = Callable[[ChatRequest, str, str], None]
"""Takes a request, whose sample it is, and the answer."""


def rehearse(cell: Cell, seeds: Ints, model: ModelAgent, note: Note, profile: AgentProfile = TYPICAL) -> None:
    """Run episodes of a cell, asking a model's questions of the simulated agent.

    Args:
        cell: the cell.
        seeds: [row].
        model: the model that would be asked, and how.
        note: told of every request and its answer, in the order of steps.
        profile: the simulated agent's errors.
    """
    finish_in_loop(run_rows(cell, seeds, lambda episodes: _Rehearsal(episodes, model, note, profile)))


class _Nobody:
    async def ask(self, request: ChatRequest, identity: str) -> Any:
        raise RunStoppedError("nobody is asked in a rehearsal")


class _Rehearsal(LanguageModelAgent):
    def __init__(self, episodes: Episodes, model: ModelAgent, note: Note, profile: AgentProfile) -> None:
        super().__init__(episodes, _Nobody(), model)
        self._note = note
        self._setting = answering_setting(self._world, episodes.cell.regime, profile)
        self._before = episodes.block.copy()

    async def propose(self) -> None:
        self._before = self._episodes.block.copy()  # it notes for itself where it has been
        await super().propose()

    async def _updates(self, due: Ints, situations: Sequence[str]) -> list[Update]:
        seeds, worked = self._episodes.seeds[due], self._last_worked[due]
        before = self._before[due]
        before.table[:] = self._episodes.block.table[due]  # lost by now where the table is not kept
        updates = simulated_updates(before, seeds, worked, self._world, self._setting)
        for row, situation, update in zip(due.tolist(), situations, updates, strict=True):
            self._tell(row, situation, update)
        return updates

    def _tell(self, row: int, situation: str, update: Update) -> None:
        seed, prompts = self._seeds[row], self._prompts
        request = prompts.update_request(self._model.settings, situation, seed)
        self._note(
            request, identity_of("update", seed), write_update(update, prompts.vocabulary, self._step(row))
        )

    async def _verdicts(self, asked: Ints, cases: Sequence[Case], embedded: Ints) -> list[Verdict]:
        verdicts = []
        for row, case, field in zip(asked.tolist(), cases, embedded.tolist(), strict=True):
            override = field != case.decision
            verdicts.append(Verdict(override, field if override else NONE))
            request = self._prompts.judge_request(
                self._model.settings, case.text, case.candidates, self._seeds[row]
            )
            self._note(request, identity_of("judge", self._seeds[row]), write_verdict(verdicts[-1]))
        return verdicts


class _Meeting(_Rehearsal):
    """Keeps what is met and done; nothing is asked."""

    def __init__(self, episodes: Episodes, model: ModelAgent) -> None:
        super().__init__(episodes, model, lambda *asked: None, PERFECT)
        self.met: list[tuple[int, str, Update]] = []

    def _tell(self, row: int, situation: str, update: Update) -> None:
        self.met.append((int(self._episodes.block.t[row]), situation, update))


def met(cell: Cell, seed: int, version: str) -> list[tuple[int, str, Update]]:
    """Return the step, the situation and the simulated agent's update, step by step of an episode."""
    met: list[tuple[int, str, Update]] = []

    def make(episodes: Episodes) -> LanguageModelAgent:
        agent = _Meeting(episodes, ModelAgent("nobody", version, ModelSettings("none")))
        agent.met = met
        return agent

    finish_in_loop(run_rows(cell, np.array([seed]), make))
    return met


def answering_setting(world: World, regime: Regime, profile: AgentProfile) -> Any:
    """Return the engine's setting of a simulated agent that reports what it uses, asked for or not.

    Args:
        world: its world.
        regime: whose observations it reads.
        profile: its errors.
    """
    protocol = replace(world.protocol, structure="reported")
    return setting_of(Cell(world.name, POLICIES["no-probe"], regime, protocol, profile), world=world)


def simulated_updates(block: Any, seeds: Ints, worked: Ints, world: World, setting: Any) -> list[Update]:
    """Let the simulated agents of some seeds answer, and write down what each changes.

    Args:
        block: the episodes, [row], with notes as they were before this step; it is changed.
        seeds: [row].
        worked: [row], NONE_YET, INVALID or VALID: of the last task action, this step's included.
        world: theirs.
        setting: from `answering_setting`.
    """
    fades = np.where(block.t > 0, int(setting.habits.fade), 0).tolist()
    before, rows = block.table.copy(), np.arange(len(block))
    apply_updates(before, rows, [replace(NO_UPDATE, fade=fade) for fade in fades], block.told)
    with announced(world.title):
        take_over(setting, block, seeds)
        block.risk[:] = np.where(worked == INVALID, RISK_MEDIUM, RISK_LOW)
        take(PROPOSE, setting, block)
    own = block.sight.c if world.protocol.structure == "reported" else block.used
    return [
        Update(
            _changes(_entries(world, before[row]), _entries(world, block.table[row])),
            fades[row],
            int(block.action[row]),
            int(block.risk[row]),
            _reasons(own[row, : world.fields].tolist()),
        )
        for row in rows.tolist()
    ]


def _entries(world: World, table: Any) -> Iterator[Entry]:
    """Go through the entries of one table."""
    columns = (table[name][: world.fields].tolist() for name in ("value", "staleness", "confidence"))
    return zip(*columns, strict=True)


def _changes(was: Iterable[Entry], now: Iterable[Entry]) -> tuple[Row, ...]:
    pairs = enumerate(zip(was, now, strict=True))
    return tuple((field, *after) for field, (before, after) in pairs if after != before)


def _reasons(own: list[float]) -> tuple[Row, ...]:
    """Turn the agent's own c, [field], into reasons; where the graph gives c, name what the action uses."""
    return tuple((field, int(2 * c), int(c == 1), int(c == 1)) for field, c in enumerate(own) if c)
