"""What a comparison of language models takes in calls, tokens, money and hours: a dry run of the prompts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from envprobe_core.experiments import PAPER_POLICIES, names
from envprobe_core.llm.asking import ModelSettings
from envprobe_core.llm.estimate import CHARACTERS_A_TOKEN, Estimate, estimate
from envprobe_core.llm.identity import ModelAgent
from envprobe_core.llm.keys import provider_label
from envprobe_core.llm.prices import dollars, read_prices
from envprobe_core.llm.prompts import PROMPT_VERSION
from envprobe_core.llm.reading import Tokens
from envprobe_core.markup import Table, Text
from envprobe_core.planning import Rate, duration, size
from envprobe_core.runs.inputs import make_inputs
from envprobe_core.worlds import WORLDS


@dataclass(frozen=True)
class Comparison:
    """What it takes to compare language models on the paper's main grid.

    Attributes:
        one: what a single model would be asked, from a dry run.
        protocol: the protocol.
        models: how many models.
        latency: seconds a call takes.
        concurrency: calls under way at once.
    """

    one: Estimate
    protocol: str
    models: int
    latency: float
    concurrency: int

    @property
    def tokens(self) -> Tokens:
        """Return the tokens of one model's calls."""
        return Tokens(self.one.prompt_tokens, self.one.completion_tokens)

    @property
    def seconds(self) -> float:
        """Return how long one model takes."""
        return self.one.calls * self.latency / self.concurrency


def plan_comparison(
    regime: str, protocol: str, sample: int, models: int, latency: float, concurrency: int
) -> Comparison:
    """Dry-run the prompts of the paper's policies in every world, under the first protocol.

    Args:
        regime: its name.
        protocol: names of protocols.
        sample: seeds of each cell to try.
        models: how many models are to be compared.
        latency: seconds a call takes.
        concurrency: calls under way at once.
    """
    first = names(protocol)[0]
    model = next(iter(read_prices()))
    agent = ModelAgent(provider_label(None), PROMPT_VERSION, ModelSettings(model))
    inputs = make_inputs(WORLDS, PAPER_POLICIES, regime, [first], agent=agent)
    one = estimate(inputs.cells, inputs.seeds_of_cells, agent, read_prices(), sample)
    return Comparison(one, first, models, latency, concurrency)


def show_comparison(plan: Comparison) -> Table:
    """Show what the comparison costs at the price of each model that has one."""
    rows = [
        [
            f"`{model}`",
            dollars(price.cost(plan.tokens)),
            dollars(plan.models * price.cost(plan.tokens)),
        ]
        for model, price in read_prices().items()
    ]
    caption = (
        f"{len(PAPER_POLICIES)} policies, {len(WORLDS)} worlds, the default seeds of `{plan.protocol}`: "
        f"{plan.one.episodes:,} episodes a model, {plan.one.calls:,} calls, {plan.one.prompt_tokens:,} "
        f"tokens of prompt and {plan.one.completion_tokens:,} of answer, scaled from a dry run of "
        f"{plan.one.dry_run} episodes. Prices are those of `data/prices.json`, without any discount for "
        "repeated prompts."
    )
    head = ("price of", "one model", f"{plan.models} models")
    return Table("tab-machine-models", caption, head, rows, "lrr")


def tell_comparison(plan: Comparison, rates: Sequence[Rate]) -> Text:
    """Say how long the comparison takes, what it stores, and what of it is the engine's."""
    every = plan.models * (plan.tokens.prompt + plan.tokens.completion)
    own = plan.models * plan.one.episodes * float(np.mean([rate.seconds["full"] for rate in rates]))
    calls = plan.models * plan.seconds
    return Text(
        f"With calls of {plan.latency:g} s, {plan.concurrency} at once, one model takes "
        f"{duration(plan.seconds)} and {plan.models} in turn {duration(calls)}; different providers can be "
        "asked side by side, each run with a store of its own. "
        f"All questions and answers are {size(every * CHARACTERS_A_TOKEN)} of text, which the stores keep "
        f"compressed. The engine's share is {duration(own)} of one core, {100 * own / (own + calls):.2g}% of "
        "the time: a comparison of models needs no cluster, and `--scheduler` leaves its calls where "
        "the store and the cap on their cost are."
    )
