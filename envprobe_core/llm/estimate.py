"""What a run would ask and cost, before it starts: a dry run of its prompts.

The simulated agent answers, in this process, on some seeds of every cell; what it is asked is counted once
for all policies that meet the same situation, and scaled to all seeds. A model's answers differ, and so do
its episodes: an estimate is no bound. `--max-cost` is one.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from envprobe_core.cells import Cell
from envprobe_core.llm.agent import together
from envprobe_core.llm.asking import Answered, ChatRequest
from envprobe_core.llm.driver import run_model
from envprobe_core.llm.identity import ModelAgent
from envprobe_core.llm.keys import key_of, question
from envprobe_core.llm.prices import Price, find_price, most_tokens
from envprobe_core.llm.reading import Tokens
from envprobe_core.llm.running import REPLAYED_ROWS, finish_in_loop
from envprobe_core.llm.scripted import Scripted
from envprobe_core.sweep import Piece, Seeds, Task

CHARACTERS_A_TOKEN = 3.5  # of English, digits and punctuation; a round figure on the careful side


@dataclass(frozen=True)
class Estimate:
    """What a run would ask.

    Attributes:
        episodes: of the run.
        dry_run: of the dry run.
        steps: answers the run would use.
        calls: questions it would ask, shared ones once.
        prompt_tokens, completion_tokens: of the calls, roughly.
        cost: picodollars, None without a price.
        most: picodollars, were every call to cost its most.
    """

    episodes: int
    dry_run: int
    steps: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: int | None
    most: int | None


class _Counter:
    """Lets the simulated agent answer and counts what is asked."""

    def __init__(self, agent: ModelAgent, prices: Mapping[str, Price]) -> None:
        self._scripted, self._agent, self._prices = Scripted(), agent, prices
        self._known: dict[bytes, Answered] = {}
        self.steps, self.prompt, self.completion, self.cost, self.most = 0, 0, 0, 0, 0

    @property
    def calls(self) -> int:
        return len(self._known)

    async def ask(self, request: ChatRequest, identity: str) -> Answered:
        self.steps += 1
        key = key_of(question(self._agent.provider, request, identity))
        if key not in self._known:
            answered = await self._scripted.ask(request, identity)
            self._known[key] = answered
            asked = sum(len(message["content"]) for message in request["messages"])
            tokens = Tokens(_tokens(asked), _tokens(len(answered.text)))
            self.prompt += tokens.prompt
            self.completion += tokens.completion
            price = find_price(self._prices, str(request["model"]))
            if price is not None:
                self.cost += price.cost(tokens)
                self.most += price.cost(most_tokens(request))
        return self._known[key]


def estimate(
    cells: Sequence[Cell], seeds: Sequence[Seeds], agent: ModelAgent, prices: Mapping[str, Price], sample: int
) -> Estimate:
    """Estimate a run.

    Args:
        cells: its cells.
        seeds: the seeds of each.
        agent: which model would be asked, and how.
        prices: picodollars a token, by model.
        sample: seeds of each cell to try.
    """
    counter = _Counter(agent, prices)
    finish_in_loop(_dry_run(cells, [own[:sample] for own in seeds], agent, counter))
    tried = sum(min(sample, len(own)) for own in seeds)
    episodes = sum(len(own) for own in seeds)
    settings = agent.settings
    models = {settings.model, settings.judge_model or settings.model}
    priced = all(find_price(prices, model) is not None for model in models)

    def scaled(count: int) -> int:
        return math.ceil(count * episodes / tried)

    return Estimate(
        episodes,
        tried,
        scaled(counter.steps),
        scaled(counter.calls),
        scaled(counter.prompt),
        scaled(counter.completion),
        scaled(counter.cost) if priced else None,
        scaled(counter.most) if priced else None,
    )


async def _dry_run(
    cells: Sequence[Cell], seeds: Sequence[Seeds], agent: ModelAgent, counter: _Counter
) -> None:
    live = asyncio.Semaphore(1)
    await together(
        [
            run_model(
                Task((Piece(index, cell, own),)), counter, agent.settings, live=live, rows=REPLAYED_ROWS
            )
            for index, (cell, own) in enumerate(zip(cells, seeds, strict=True))
        ]
    )


def _tokens(characters: int) -> int:
    return math.ceil(characters / CHARACTERS_A_TOKEN)
