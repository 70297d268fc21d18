"""One step of a language model, asked with and without the answer of a check, under three hints, twice each.

A situation comes from a rehearsal: a check was carried out at the step before, and the observation does not
show the field that it told. The prompts are those of the public code, without a table, so that the answer
stands in one line, "Told: index:value". A pair of requests differs in that line alone ("Told: nothing"), or
in the last line alone, the hint, or in nothing, which is the same request asked again. Only one situation is
taken from an episode: pairs are independent. The schema leaves room for one row of the table, that of the
checked field, in all of them: what else a model would write is not asked, so an answer is short.

Nobody plays on: whether an answer changes what is believed and done is seen at one step, without what an
agent does with it later. The first question is kept as it comes; what is unusable is not asked again.
"""

import re
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel

from envprobe_core.agents.model import ModelAgent
from envprobe_core.agents.profiles import PROFILES
from envprobe_core.conditions import make_condition
from envprobe_core.llm.agent import Exchange, exchanges
from envprobe_core.llm.answers import update_schema
from envprobe_core.llm.calls import ChatRequest
from envprobe_core.llm.client import Client, Service
from envprobe_core.llm.prompts import NOTHING, hint_line
from envprobe_core.llm.running import together, with_client

PROMPTS = "public"  # the version: its only news of a check is the line "Told"
HINTS = {
    "none": "",
    "English": "Probing score ignores the uncertainty dimension (ablation).",
    "Chinese": "探测评分忽略不确定性维度（消融实验）。",
}
"""One sentence in two languages, and none: that of the public code's ablation, whose own line is Chinese.
It says nothing about the world."""
ASKS = 2  # times that each request is asked
AT_A_TIME = 8  # situations of a world, before the next world's
FIRST_SEED, SEEDS = 2000, 20  # of the episodes, and how many are rehearsed in lockstep
_TOLD = re.compile(r"^Told: ([0-9]+):([0-9]+)$", re.MULTILINE)


class Arm(NamedTuple):
    """One request about a situation."""

    world: str
    seed: int
    step: int
    field: int  # that was checked
    value: int  # that the check told
    answered: bool  # whether the request says so
    hint: str  # a name of `HINTS`
    ask: int  # 0 is the first time
    request: ChatRequest
    identity: str  # whose sample the answer is
    read: Callable[[str], Any]  # to an Update, or an InvalidAnswer


class OneStep(BaseModel):
    """What is asked, as the first line of its file states it."""

    format: Literal["envprobe-one-step/1"] = "envprobe-one-step/1"
    agent: ModelAgent
    worlds: list[str]
    situations: int  # of each world
    policy: str = "simple"  # of the episodes that are met
    regime: str = "S2"
    hints: dict[str, str] = HINTS
    asks: int = ASKS
    note: str = ""  # where the answers come from

    def met(self, world: str) -> list[Exchange]:
        """The situations of a world, at most one of an episode, early ones and late ones."""
        condition, found = make_condition(world, self.policy, self.regime), list[Exchange]()
        seeds = np.arange(FIRST_SEED, FIRST_SEED + SEEDS)
        while len(found) < self.situations:
            told: dict[int, list[Exchange]] = {int(seed): [] for seed in seeds}
            for one in exchanges(condition, seeds, self.agent, PROFILES["typical"]):
                news = _TOLD.search(one.situation)
                if news and int(news[1]) not in dict(one.seen):
                    told[one.seed].append(one)
            found += [own[seed % len(own)] for seed, own in told.items() if own]
            seeds = seeds + SEEDS
        return found[: self.situations]

    def arms(self) -> Iterator[Arm]:
        """Yield every request; a few situations of each world in turn, so that a part of them is balanced.

        Not one of each: a server keeps the rules, which a world's requests begin with, for the next one.
        """
        met = {world: self.met(world) for world in self.worlds}
        for start in range(0, self.situations, AT_A_TIME):
            for world, found in met.items():
                for one in found[start : start + AT_A_TIME]:
                    yield from self.arms_of(world, one)

    def arms_of(self, world: str, one: Exchange) -> Iterator[Arm]:
        """Yield every request about a situation."""
        news = _TOLD.search(one.situation)
        assert news is not None, "it was chosen for it"
        unanswered = f"{one.situation[: news.start()]}Told: {NOTHING}{one.situation[news.end() :]}"
        *before, last = one.request["messages"]
        form = one.request["response_format"]["json_schema"]
        schema = form | {"schema": update_schema(one.world, [int(news[1])])}
        asked = one.request | {"response_format": {"type": "json_schema", "json_schema": schema}}
        for answered, (name, hint), ask in product((False, True), self.hints.items(), range(self.asks)):
            text = one.situation if answered else unanswered
            messages = [*before, last | {"content": text + hint_line(hint)}]
            yield Arm(
                world, one.seed, one.step, int(news[1]), int(news[2]), answered, name, ask,
                asked | {"messages": messages},
                f"step {one.step} of episode {one.seed}, asked {ask + 1}", one.read,
            )  # fmt: skip


def ask_one_step(asked: OneStep, service: Service) -> list[str]:
    """Ask everything, in order; return the keys of the answers, in hexadecimal.

    Raises:
        RunStoppedError: if an answer cannot be had; those given are kept.
    """
    keys: list[str] = []

    async def ask(client: Client) -> None:
        waiting = [client.ask(arm.request, arm.identity) for arm in asked.arms()]
        keys.extend(answer.key for answer in await together(waiting))

    with_client(service, ask)
    return keys
