"""``envprobe model``: the weights of a small open model, for ``--agent local``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envprobe_core.cli import modelling
from envprobe_core.errors import InputError

app = typer.Typer(no_args_is_help=True, help="Get the weights of a small open model for `--agent local`.")


@app.callback()
def _options() -> None:
    """Get the weights of a small open model for `--agent local`."""


@app.command("fetch")
def fetch() -> None:
    """Fetch the weights (93 MB) once, verify them, and keep them in a cache folder.

    The folder is the platform's own for caches, or ENVPROBE_CACHE. An interrupted fetch goes on where it
    stopped. Any other GGUF file is used with `envprobe run --agent local --model FILE.gguf`.
    """
    from envprobe_core.cli.options import progress_bar
    from envprobe_core.llm.weights import SMOLLM2, fetch_weights

    with progress_bar("bytes") as show:
        fetched = fetch_weights(notice=show)
    path = SMOLLM2.path
    typer.echo(f"{SMOLLM2.title}, {SMOLLM2.licence} ({path.with_suffix('.LICENSE').name} beside it)")
    typer.echo(f"{'fetched and verified' if fetched else 'already there'}: {path}, sha256 {SMOLLM2.sha256}")


@app.command("trial")
def trial(
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File to write, as in x.trial.gz.")],
    world: Annotated[list[str], typer.Option("--world", metavar="W", help="World; may be repeated.")],
    prompts: Annotated[
        list[str], typer.Option("--prompts", metavar="V", help="Version of the prompts; may be repeated.")
    ],
    situations: Annotated[int, typer.Option("--situations", min=1, max=10_000, help="Of each world.")] = 200,
    regime: Annotated[str, typer.Option("--regime", metavar="R", help="Stress regime.")] = "S1",
    model: modelling.Model = None,
    concurrency: modelling.Concurrency = None,
    store: modelling.Store = None,
    note: Annotated[str, typer.Option("--note", help="Where the answers come from, for readers.")] = "",
) -> None:
    """Ask a local model about the same situations in several versions of the prompts.

    The answers go to a file from which the book computes how many could be used, how many of the seen fields
    were written right, how many rows were copied from an example, and how many actions were distinct.
    Given again after an interruption, the command goes on where it stopped.
    """
    from envprobe_core.cli.asking import stopped_runs
    from envprobe_core.llm import trial as trials
    from envprobe_core.llm.prompts import find_version
    from envprobe_core.llm.replay import write_answers

    if out.exists():
        raise InputError(f"{out} is there already; give another name")
    options = modelling.ModelOptions(model=model, concurrency=concurrency, store=store)
    agent = options.agent(modelling.LOCAL)
    asked = trials.Trial(
        agent=agent.as_dict(),
        worlds=world,
        versions=[find_version(each) for each in prompts],
        policy="simple",
        regime=regime,
        situations=situations,
        note=note,
    )
    service = options.service(agent, out)
    try:
        with stopped_runs(), service.at_work() as ready:
            keys = trials.ask(asked, ready)
        count = write_answers(out, asked, service.answers, keys)
    finally:
        service.answers.close()
    typer.echo(f"{count} answers of {agent.settings.model}, {out.stat().st_size} bytes: {out}")
