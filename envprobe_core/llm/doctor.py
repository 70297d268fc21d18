"""A server, tried before money is spent: what it refuses, and how its answers to real situations can be read.

The situations are those of a rehearsal, and the requests are those of the run. What is answered stays in the
store: a run on the same store that meets one of these situations has its answer.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from envprobe_core.agents.model import ModelAgent
from envprobe_core.conditions import Condition, Seeds
from envprobe_core.llm.agent import NOT_SAID, Exchange, estimate, exchanges, together
from envprobe_core.llm.answers import InvalidAnswer
from envprobe_core.llm.calls import Answer, Prices, RunStoppedError, Tokens, find_price
from envprobe_core.llm.client import Client, Counts, Service
from envprobe_core.llm.running import with_client
from envprobe_core.llm.served import fault_in_words, read_served

SITUATIONS = 10
STRICTLY, LOOSELY, NOT, NO_ANSWER = "strictly", "loosely", "not", "no answer"
DRY_RUN = 2  # seeds of each condition from which a run's calls are estimated


@dataclass(frozen=True)
class Tried:
    """A situation that was asked, and what came of it."""

    exchange: Exchange
    read: str  # STRICTLY, LOOSELY, NOT or NO_ANSWER
    fault: str = ""  # why it could not be read, or why there is no answer
    answer: Answer | None = None
    seconds: float = 0.0  # until the answer was there, refused and repeated calls included

    @property
    def used(self) -> Tokens | None:
        """The tokens of the answer, None where there is none or the server did not say."""
        return self.answer.used if self.answer else None


@dataclass(frozen=True)
class Findings:
    """What a server did with some situations."""

    tried: list[Tried]
    rungs: list[str]  # of the ladder, names of `calls.RUNGS`
    calls: int  # that were made now, and not taken from the store
    seconds: float  # for all of them, as many at once as the service says

    def count(self, *how: str) -> int:
        """How many answers were read in one of these ways."""
        return sum(one.read in how for one in self.tried)

    @property
    def answered_by(self) -> dict[str, int]:
        """How many answers each model gave, by the name that the server calls it."""
        return Counter(one.answer.served or NOT_SAID for one in self.tried if one.answer)

    @property
    def faults(self) -> dict[str, int]:
        """How often each fault came, in order of first appearance."""
        texts = [one.fault for one in self.tried if one.fault]
        return {text: texts.count(text) for text in texts}


def situations_of(
    conditions: Sequence[Condition], seeds: Sequence[Seeds], agent: ModelAgent, count: int = SITUATIONS
) -> list[Exchange]:
    """Belief updates that a run would ask for: of each world, from its first episode, at steps far apart.

    Args:
        conditions: of the run; of each world the first one counts.
        seeds: [condition], its seeds.
        agent: the model, and how it is asked.
        count: how many, over all worlds as evenly as can be.

    >>> from envprobe_core.conditions import make_condition
    >>> conditions = [make_condition(world, "simple") for world in ("tooldag", "graphnav")]
    >>> agent = ModelAgent("local", "2-d4d9bffe", "m")
    >>> met = situations_of(conditions, [np.arange(2)] * 2, agent, 5)
    >>> [(one.world.name, one.step) for one in met]
    [('tooldag', 0), ('tooldag', 15), ('tooldag', 30), ('graphnav', 0), ('graphnav', 30)]
    """
    first = {one.world: (one, own) for one, own in reversed([*zip(conditions, seeds, strict=True)])}
    worlds = list(dict.fromkeys(one.world for one in conditions))
    found: list[Exchange] = []
    for place, world in enumerate(worlds):
        condition, own = first[world]
        met = [one for one in exchanges(condition, own[:1], agent) if one.identity.startswith("update")]
        share = count // len(worlds) + (place < count % len(worlds))
        found += [met[at] for at in np.linspace(0, len(met) - 1, share).round().astype(int).tolist()]
    return found


def try_server(
    service: Service, asked: Sequence[Exchange], keep: Callable[[Tried], None] = lambda one: None
) -> Findings:
    """What a service does with some situations; the first is asked alone, which finds the ladder's rungs.

    A server that gives no answer ends nothing: what it says stands with the situation. `keep` gets each
    situation when it has been tried.
    """
    tried: dict[int, Tried] = {}
    counts, began = Counts(), time.monotonic()

    async def ask(client: Client, place: int) -> None:
        tried[place] = await _try(client, asked[place])
        keep(tried[place])

    async def ask_all(client: Client) -> None:
        nonlocal counts
        counts = client.counts
        await ask(client, 0)
        await together([ask(client, place) for place in range(1, len(asked))])

    with_client(service, ask_all)
    rungs = service.answers.rungs().get(service.agent.model, [])
    whole = [tried[place] for place in range(len(asked))]
    return Findings(whole, rungs, counts.calls, time.monotonic() - began)


async def _try(client: Client, one: Exchange) -> Tried:
    """One situation, asked and read."""
    began = time.monotonic()
    try:
        answer = await client.ask(one.request, one.identity)
    except RunStoppedError as error:
        return Tried(one, NO_ANSWER, str(error))
    seconds = time.monotonic() - began
    try:
        loose = read_served(one.read, answer.text)[1]
    except InvalidAnswer as fault:
        return Tried(one, NOT, fault_in_words(fault, answer), answer, seconds)
    return Tried(one, LOOSELY if loose else STRICTLY, "", answer, seconds)


def estimate_run(
    findings: Findings,
    conditions: Sequence[Condition],
    seeds: Sequence[Seeds],
    agent: ModelAgent,
    prices: Prices,
) -> dict[str, Any]:
    """What a run would ask, from a dry run, at the tokens and the pace of what was tried.

    Returns:
        `episodes` and `calls` of the run; `prompt_tokens` and `completion_tokens`, None where the server did
        not count; their cost in dollars, `usd`, None without a price; `minutes` at this pace, None where
        nothing was asked now.
    """
    counts = estimate(conditions, seeds, agent, prices, DRY_RUN)
    used = [one.used for one in findings.tried if one.used is not None]
    told: dict[str, Any] = {name: counts[name] for name in ("episodes", "calls")}
    told |= dict.fromkeys(("prompt_tokens", "completion_tokens", "usd", "minutes"))
    if used:
        prompt, completion = (sum(one[part] for one in used) / len(used) * counts["calls"] for part in (0, 1))
        told |= {"prompt_tokens": round(prompt), "completion_tokens": round(completion)}
        if (price := find_price(prices, agent.model)) is not None:
            told["usd"] = price.cost(Tokens(round(prompt), round(completion)))
    if findings.calls and any(one.answer for one in findings.tried):
        told["minutes"] = counts["calls"] * findings.seconds / findings.calls / 60
    return told
