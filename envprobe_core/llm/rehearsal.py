"""Rehearsals: the simulated agent in a model's place, which is asked what a model would be asked.

It answers from the episode itself and not from the prompt; that a prompt tells everything it uses is tested
with a program that reads nothing else. What a run would ask and cost is counted in a rehearsal of some of its
episodes; a model's answers differ, and so do its episodes: an estimate is no bound. `--max-cost` is one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from envprobe_core.agents.profiles import TYPICAL, AgentProfile
from envprobe_core.agents.simulated import RISK_LOW, RISK_MEDIUM
from envprobe_core.cells import Cell
from envprobe_core.engine.compiling import announced
from envprobe_core.engine.loop import PROPOSE
from envprobe_core.engine.records import NONE
from envprobe_core.engine.running import Episodes, take
from envprobe_core.engine.setting import setting_of
from envprobe_core.llm import FIRST, ModelAgent
from envprobe_core.llm.agent import LanguageModelAgent, finish_in_loop, identity_of, run_rows
from envprobe_core.llm.answers import (
    NO_UPDATE,
    Row,
    Update,
    Verdict,
    apply_updates,
    write_update,
    write_verdict,
)
from envprobe_core.llm.calls import Answer, ChatRequest, Prices, RunStoppedError, Tokens, find_price, question
from envprobe_core.llm.notes import take_over
from envprobe_core.llm.prompts import INVALID, Case, prompts_of
from envprobe_core.policies import POLICIES
from envprobe_core.regimes import Regime
from envprobe_core.worlds import World, make_world
from envprobe_core.worlds.base import Ints

AT_ONCE = 250  # episodes that are rehearsed in lockstep
CHARACTERS_A_TOKEN = 3.5  # of English, digits and punctuation; a round figure on the careful side


@dataclass(frozen=True)
class Met:
    """A question that an episode meets."""

    seed: int  # of the episode
    step: int
    text: str  # the situation, or the judge's case
    said: Any  # what the simulated agent answers: an Update, or the embedded judge: a Verdict
    candidates: Sequence[int] = ()  # of a case


class Exchange(NamedTuple):
    """What a model would be asked at a step of an episode, and the simulated agent's answer."""

    world: World
    seed: int
    step: int
    request: ChatRequest
    identity: str  # whose sample the answer is
    answer: str


def rehearse(cell: Cell, seeds: Ints, version: str, profile: AgentProfile = TYPICAL) -> list[Met]:
    """Run episodes of a cell, asking a model's questions of the simulated agent with a profile's errors.

    The version of the prompts decides what a situation tells. Returns the questions in the order of steps.
    """
    met: list[Met] = []

    async def work() -> None:  # what it returned, `asyncio.run` would write out whole as it frees SIGINT
        await run_rows(cell, seeds, lambda episodes: _Rehearsal(episodes, version, profile, met))

    finish_in_loop(work())
    return met


def exchanges(
    cell: Cell, seeds: Ints, agent: ModelAgent, profile: AgentProfile = TYPICAL
) -> Iterator[Exchange]:
    """Yield what a model would be asked in episodes of a cell, with the simulated agent's answers."""
    prompts = prompts_of(cell, version := agent.prompt_version)
    world = make_world(cell.world, cell.regime, cell.protocol)
    for some in np.split(seeds, range(AT_ONCE, len(seeds), AT_ONCE)):
        for one in rehearse(cell, some, version, profile):
            if isinstance(one.said, Update):
                request, role = prompts.update_request(agent, one.text, one.seed), "update"
                answer = write_update(one.said, world, None if version == FIRST else one.step)
            else:
                request = prompts.judge_request(agent, one.text, one.candidates, one.seed)
                role, answer = "judge", write_verdict(one.said)
            yield Exchange(world, one.seed, one.step, request, identity_of(role, one.seed), answer)


async def _nobody(request: ChatRequest, identity: str, spoilt: str) -> Answer:
    raise RunStoppedError("nobody is asked in a rehearsal")


class _Rehearsal(LanguageModelAgent):
    """Answers from the episode, and notes what it is asked."""

    def __init__(self, episodes: Episodes, version: str, profile: AgentProfile, met: list[Met]) -> None:
        super().__init__(episodes, _nobody, ModelAgent("nobody", version, "none"))
        self._met = met
        self._setting = answering_setting(self._world, episodes.cell.regime, profile)
        self._before = episodes.block.copy()

    async def propose(self) -> None:
        self._before = self._episodes.block.copy()  # it notes for itself where it has been
        await super().propose()

    async def _updates(self, due: Ints, situations: Sequence[str]) -> list[Update]:
        before = self._before[due]
        before.table[:] = self._episodes.block.table[due]  # lost by now where the table is not kept
        seeds, worked = self._episodes.seeds[due], self._last_worked[due]
        updates = simulated_updates(before, seeds, worked, self._world, self._setting)
        self._note(due, situations, updates, [()] * len(updates))
        return updates

    async def _verdicts(self, asked: Ints, cases: Sequence[Case], embedded: Ints) -> list[Verdict]:
        pairs = zip(cases, embedded.tolist(), strict=True)
        verdicts = [
            Verdict(field != case.decision, field if field != case.decision else NONE)
            for case, field in pairs
        ]
        self._note(asked, [case.text for case in cases], verdicts, [case.candidates for case in cases])
        return verdicts

    def _note(self, rows: Ints, *columns: Sequence[Any]) -> None:
        steps = self._episodes.block.t
        for row, *told in zip(rows.tolist(), *columns, strict=True):
            self._met.append(Met(self._seeds[row], int(steps[row]), *told))


def answering_setting(world: World, regime: Regime, profile: AgentProfile) -> Any:
    """Return the engine's setting of a simulated agent that reports what it uses, asked for or not."""
    protocol = replace(world.protocol, structure="reported")
    return setting_of(Cell(world.name, POLICIES["no-probe"], regime, protocol, profile), world=world)


def simulated_updates(block: Any, seeds: Ints, worked: Ints, world: World, setting: Any) -> list[Update]:
    """Let the simulated agents of some seeds, [row], answer, and write down what each changes.

    Args:
        block: the episodes, [row], with notes as they were before this step; it is changed.
        seeds: of the agents.
        worked: [row], NONE_YET, INVALID or VALID: of the last task action, this step's included.
        world: of all of them.
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
    was, now = _entries(world, before), _entries(world, block.table)
    changed = [np.flatnonzero(fields).tolist() for fields in (was != now).any(axis=2)]
    return [
        Update(
            tuple((field, *now[row, field].tolist()) for field in changed[row]),
            fades[row],
            int(block.action[row]),
            int(block.risk[row]),
            _reasons(own[row, : world.fields].tolist()),
        )
        for row in rows.tolist()
    ]


def _entries(world: World, table: Any) -> Ints:
    """Return tables as numbers, [row, field, value or staleness or confidence]."""
    columns = [table[name][:, : world.fields] for name in ("value", "staleness", "confidence")]
    return np.stack(columns, axis=2).astype(np.int64)


def _reasons(own: list[float]) -> tuple[Row, ...]:
    """Turn the agent's own c, [field], into reasons; where the graph gives c, name what the action uses."""
    return tuple((field, int(2 * c), int(c == 1), int(c == 1)) for field, c in enumerate(own) if c)


# ---------------------------------------------------------------- what a run would ask and cost


def estimate(
    cells: Sequence[Cell], seeds: Sequence[Ints], agent: ModelAgent, prices: Prices, sample: int
) -> dict[str, Any]:
    """Estimate a run: what a sample of each cell's seeds asks, scaled to all of them.

    Returns:
        `episodes` of the run and, of them, those of the `dry_run`; `steps`, answers it would use; `calls`,
        the questions, once for all policies that share them; `prompt_tokens` and `completion_tokens` of
        these, roughly; in dollars their `cost`, and the `most` it could be, both None without a price.
    """
    asked: dict[bytes, tuple[float, ...]] = {}
    steps = 0
    for cell, own in zip(cells, seeds, strict=True):
        for one in exchanges(cell, own[:sample], agent):
            steps += 1
            whole = question(agent.provider, one.request, one.identity)
            if whole.key not in asked:
                prompt = sum(len(message["content"]) for message in one.request["messages"])
                tokens = Tokens(*(math.ceil(n / CHARACTERS_A_TOKEN) for n in (prompt, len(one.answer))))
                price = find_price(prices, whole.model)
                costs = (price.cost(tokens), price.cost(whole.most)) if price else (0.0, 0.0)
                asked[whole.key] = tokens.prompt, tokens.completion, *costs
    episodes, dry_run = sum(map(len, seeds)), sum(min(sample, len(own)) for own in seeds)
    prompt, completion, cost, most = map(sum, zip(*asked.values(), strict=True))
    counts = {"steps": steps, "calls": len(asked), "prompt_tokens": prompt, "completion_tokens": completion}
    priced = all(find_price(prices, model) is not None for model in agent.models)
    money = {"cost": cost, "most": most}
    return (
        {"episodes": episodes, "dry_run": dry_run}
        | {name: math.ceil(count * episodes / dry_run) for name, count in counts.items()}
        | {name: total * (episodes / dry_run) if priced else None for name, total in money.items()}
    )
