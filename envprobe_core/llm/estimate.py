"""What a run would ask and cost, before it starts: a rehearsal of some of its episodes.

The simulated agent answers, in this process, on some seeds of every cell; what it is asked is counted once
for all policies that meet the same situation, and scaled to all seeds. A model's answers differ, and so do
its episodes: an estimate is no bound. `--max-cost` is one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from envprobe_core.cells import Cell
from envprobe_core.llm.asking import ChatRequest, Tokens
from envprobe_core.llm.identity import ModelAgent
from envprobe_core.llm.keys import key_of, question
from envprobe_core.llm.prices import Price, find_price, most_tokens
from envprobe_core.llm.rehearsal import rehearse
from envprobe_core.sweep import Seeds

CHARACTERS_A_TOKEN = 3.5  # of English, digits and punctuation; a round figure on the careful side


@dataclass(frozen=True)
class Estimate:
    """What a run would ask.

    Attributes:
        episodes: of the run.
        dry_run: of the rehearsal.
        steps: answers the run would use.
        calls: questions it would ask, shared ones once.
        prompt_tokens, completion_tokens: of the calls, roughly.
        cost: dollars, None without a price.
        most: dollars, were every call to cost its most.
    """

    episodes: int
    dry_run: int
    steps: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    most: float | None


def estimate(
    cells: Sequence[Cell], seeds: Sequence[Seeds], agent: ModelAgent, prices: Mapping[str, Price], sample: int
) -> Estimate:
    """Estimate a run.

    Args:
        cells: its cells.
        seeds: the seeds of each.
        agent: which model would be asked, and how.
        prices: dollars, by model.
        sample: seeds of each cell to try.
    """
    asked: set[bytes] = set()
    steps = prompt = completion = 0
    cost = most = 0.0

    def note(request: ChatRequest, identity: str, answer: str) -> None:
        nonlocal steps, prompt, completion, cost, most
        steps += 1
        key = key_of(question(agent.provider, request, identity))
        if key in asked:
            return
        asked.add(key)
        tokens = Tokens(_tokens(*(message["content"] for message in request["messages"])), _tokens(answer))
        prompt += tokens.prompt
        completion += tokens.completion
        if (price := find_price(prices, request["model"])) is not None:
            cost += price.cost(tokens)
            most += price.cost(most_tokens(request))

    for cell, own in zip(cells, seeds, strict=True):
        rehearse(cell, own[:sample], agent, note)
    tried = sum(min(sample, len(own)) for own in seeds)
    episodes = sum(map(len, seeds))
    share = episodes / tried
    priced = all(find_price(prices, model) is not None for model in agent.settings.models)
    return Estimate(
        episodes,
        tried,
        *(math.ceil(count * episodes / tried) for count in (steps, len(asked), prompt, completion)),
        cost * share if priced else None,
        most * share if priced else None,
    )


def _tokens(*texts: str) -> int:
    return math.ceil(sum(map(len, texts)) / CHARACTERS_A_TOKEN)
