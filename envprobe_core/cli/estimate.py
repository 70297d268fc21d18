"""``envprobe estimate``: calls, tokens and money of a run on a model, before it starts."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from envprobe_core.cli import modelling, options

LATENCY = 1.0  # seconds a call, for the time that is shown


@options.expanded
def estimate(
    grid: options.Grid,
    model: modelling.Model = None,
    judge_model: modelling.JudgeModel = None,
    base_url: modelling.BaseUrl = None,
    concurrency: modelling.Concurrency = None,
    prices: modelling.Prices = None,
    sample: Annotated[
        int, typer.Option("--sample", min=1, max=10_000, help="Seeds of each cell in the dry run.")
    ] = 5,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Estimate calls, tokens and money of a run on a model, from a dry run of its prompts.

    Needs no key and opens no connection: the simulated agent answers on a few seeds. A model's episodes
    differ, so this is no bound; `envprobe run --max-cost` sets one.
    """
    from envprobe_core.llm.estimate import CHARACTERS_A_TOKEN
    from envprobe_core.llm.estimate import estimate as dry_run
    from envprobe_core.llm.prices import dollars

    given = modelling.ModelOptions(
        model=model, judge_model=judge_model, base_url=base_url, concurrency=concurrency, prices=prices
    )
    agent = given.agent()
    inputs = grid.inputs("typical", "none", agent)
    found = dry_run(inputs.cells, inputs.seeds_of_cells, agent, given.price_table(agent), sample)
    if json:
        import orjson

        content = asdict(found)
        for name in ("cost", "most"):
            content[f"{name}_usd"] = content.pop(name)
        sys.stdout.write(orjson.dumps(content, option=orjson.OPT_INDENT_2).decode() + "\n")
        return
    at_once = concurrency or modelling.DEFAULT_CONCURRENCY
    minutes = found.calls * LATENCY / at_once / 60
    typer.echo(f"{len(inputs.cells)} cells, {found.episodes} episodes; dry run of {found.dry_run}")
    typer.echo(f"answers  {found.steps}")
    typer.echo(f"calls    {found.calls} (policies that meet the same situation share an answer)")
    tokens = f"{found.prompt_tokens} + {found.completion_tokens}"
    typer.echo(f"tokens   {tokens}, at {CHARACTERS_A_TOKEN} characters a token; there may be up to 40% more")
    if found.cost is None or found.most is None:
        typer.echo(f"cost     not known: no price for {agent.settings.model}; give one with --prices")
    else:
        typer.echo(f"cost     {dollars(found.cost)}; {dollars(found.most)} were every call to cost its most")
    typer.echo(f"time     {minutes:.0f} min at {LATENCY:g} s a call and concurrency {at_once}")
