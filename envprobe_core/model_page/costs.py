"""What the paper's grid would ask of a model, and cost, at the prices of `data/prices.json`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from envprobe_core.experiments import Names, find_protocols, names
from envprobe_core.llm.asking import Tokens
from envprobe_core.llm.estimate import estimate
from envprobe_core.llm.identity import ModelAgent, ModelSettings
from envprobe_core.llm.prices import PRICE_FILE, Price, dollars, read_prices
from envprobe_core.llm.prompts import PROMPT_VERSION
from envprobe_core.runs.inputs import make_inputs
from envprobe_core.show.markup import Table, Text, code, number

if TYPE_CHECKING:
    import pandas as pd


def load_estimates(
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
        A row a protocol: `protocol` and the values of `llm.estimate.Estimate`.
    """
    import pandas as pd

    agent, prices = ModelAgent("openai", PROMPT_VERSION, ModelSettings(model)), read_prices()
    rows = []
    for protocol in find_protocols(protocols):
        inputs = make_inputs(
            names(worlds), names(policies), regime, [protocol.name], seeds=seeds, logs="none", agent=agent
        )
        found = estimate(inputs.cells, inputs.seeds_of_cells, agent, prices, sample)
        rows.append({"protocol": protocol.name} | asdict(found))
    return pd.DataFrame(rows)


def show_estimates(estimates: pd.DataFrame, model: str) -> Table:
    """Show calls, tokens and money under each protocol.

    Args:
        estimates: from `load_estimates`.
        model: the model whose price was taken.
    """
    rows = [
        [
            f"`{row.protocol}`",
            f"{row.episodes:,}",
            f"{row.steps:,}",
            f"{row.calls:,}",
            f"{row.prompt_tokens / 1e6:,.1f}",
            f"{row.completion_tokens / 1e6:,.1f}",
            dollars(row.cost),
            dollars(row.most),
        ]
        for row in estimates.itertuples()
    ]
    caption = (
        f"The grid asked of `{model}`, estimated. *Calls* counts what policies share once; tokens in "
        "millions, roughly, to the model and from it; *at most* is the cost if every call took its worst "
        f"case. Scaled from a dry run of {estimates['dry_run'].iloc[0]:,} episodes under each protocol."
    )
    head = ("protocol", "episodes", "answers", "calls", "tokens in", "tokens out", "cost", "at most")
    return Table("tab-model-cost", caption, head, rows, "lrrrrrrr")


def show_prices(estimates: pd.DataFrame) -> Table:
    """Show the price list, and what the first protocol's grid comes to at each price.

    Args:
        estimates: from `load_estimates`.
    """
    grid = estimates.iloc[0]
    tokens = Tokens(int(grid["prompt_tokens"]), int(grid["completion_tokens"]))
    rows = [
        [f"`{model}`", *_listed(price), dollars(price.cost(tokens))] for model, price in read_prices().items()
    ]
    caption = (
        f"The price list `data/{PRICE_FILE.name}`, an example to be checked with the provider: dollars for a "
        f"million tokens, and the grid under `{grid['protocol']}` at these prices, nothing taken from a "
        "cache."
    )
    head = ("model", "input", "cached input", "output", "the grid")
    return Table("tab-model-prices", caption, head, rows, "lrrrr")


def _listed(price: Price) -> list[str]:
    cached = price.input if price.cached_input is None else price.cached_input
    return [number(each, 3) for each in (price.input, cached, price.output)]


def _written(amount: float) -> str:
    """Write dollars for a Markdown text, where two signs would enclose a formula."""
    return dollars(amount).replace("$", r"\$")


def tell_estimates(estimates: pd.DataFrame, model: str) -> Text:
    """Say what sharing saves, and what the cheapest and the dearest protocol cost."""
    saved = 1 - estimates["calls"].sum() / estimates["steps"].sum()
    dear, cheap = (estimates.loc[place] for place in (estimates["cost"].idxmax(), estimates["cost"].idxmin()))
    most = (
        f"The grid costs about {_written(dear['cost'])} under {code([dear['protocol']])}"
        if len(estimates) == 1
        else f"The grid costs most under `{dear['protocol']}`, about {_written(dear['cost'])}, and least "
        f"under `{cheap['protocol']}`, about {_written(cheap['cost'])}"
    )
    return Text(
        f"{most}, were it asked of `{model}` at the listed price. Two policies that meet the same situation "
        f"on the same seed share an answer, which saves {100 * saved:.0f}% of the calls. This is no bound: a "
        "model's episodes are not the simulated agent's. `--max-cost` sets one."
    )
