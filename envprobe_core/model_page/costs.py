"""What the paper's grid would ask of a model, and cost, at the prices of `data/prices.json`."""

from __future__ import annotations

from dataclasses import asdict

import pandas as pd

from envprobe_core.cells import Names, find_protocols, names
from envprobe_core.llm.asking import Tokens
from envprobe_core.llm.estimate import estimate
from envprobe_core.llm.identity import ModelAgent, ModelSettings
from envprobe_core.llm.prices import dollars, read_prices
from envprobe_core.llm.prompts import PROMPT_VERSION
from envprobe_core.runs.inputs import make_inputs

MILLIONS = 1e6


def estimates(
    worlds: Names, policies: Names, regime: str, protocols: Names, seeds: str, model: str, sample: int
) -> pd.DataFrame:
    """Estimate the grid under each protocol by a dry run of its prompts.

    Args:
        worlds: names.
        policies: names.
        regime: name of a regime.
        protocols: names.
        seeds: a text of seeds.
        model: its name in the price list.
        sample: seeds of each cell in the dry run.

    Returns:
        A row a protocol: `protocol`, the values of `llm.estimate.Estimate`, the tokens in millions (`asked`,
        `answered`), and `price` and `highest`, its cost and its most as text.
    """
    agent, prices = ModelAgent("openai", PROMPT_VERSION, ModelSettings(model)), read_prices()
    rows = []
    for protocol in find_protocols(protocols):
        grid = (names(worlds), names(policies), regime, [protocol.name])
        inputs = make_inputs(*grid, seeds=seeds, logs="none", agent=agent)
        found = asdict(estimate(inputs.cells, inputs.seeds_of_cells, agent, prices, sample))
        rows.append({"protocol": protocol.name} | found)
    return pd.DataFrame(rows).assign(
        asked=lambda own: own["prompt_tokens"] / MILLIONS,
        answered=lambda own: own["completion_tokens"] / MILLIONS,
        price=lambda own: own["cost"].map(dollars),
        highest=lambda own: own["most"].map(dollars),
    )


def priced(grid: pd.Series) -> pd.DataFrame:
    """Return what one row of `estimates` comes to at each listed price, nothing taken from a cache.

    Returns:
        A row a model: `model`, the dollars for a million tokens (`input`, `cached`, `output`), and `price`.
    """
    tokens = Tokens(int(grid["prompt_tokens"]), int(grid["completion_tokens"]))
    rows = [
        {
            "model": model, "input": price.input, "output": price.output,
            "cached": price.input if price.cached_input is None else price.cached_input,
            "price": dollars(price.cost(tokens)),
        }
        for model, price in read_prices().items()
    ]  # fmt: skip
    return pd.DataFrame(rows)
