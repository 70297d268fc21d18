"""``envprobe store``: what was asked, answered, wasted and paid; a check; and answers to hand on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envprobe_core.cli import options
from envprobe_core.cli.asking import stopped_runs
from envprobe_core.cli.modelling import Prices
from envprobe_core.errors import InputError

if TYPE_CHECKING:
    from envprobe_core.llm.store import AnswerStore
    from envprobe_core.runs.inputs import RunInputs

LISTED = 20  # faults that are spelled out
StoreFile = Annotated[Path, typer.Argument(metavar="FILE", help="Store that a run on a model made.")]

app = typer.Typer(
    no_args_is_help=True, help="Look into a store of answers, check it, or export a run's answers."
)


@app.command("stats")
def stats(
    file: StoreFile,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    prices: Prices = None,
    run: Annotated[
        Path | None, typer.Option("--run", metavar="DIR", help="Say also what each cell of this run cost.")
    ] = None,
) -> None:
    """Count what was asked, answered, wasted and paid.

    An attempt whose usage is not known, such as one that was cut off, counts the most it can have cost.
    With --run the run is replayed, and each cell has the cost of every attempt to get its answers; what
    cells share was paid once.
    """
    from envprobe_core.llm.audit import cost_of_cells, read_stats
    from envprobe_core.llm.prices import dollars, read_prices

    table, cells = read_prices(prices), []
    found = read_stats(file, table)
    if run is not None:
        with _replayed(file, run) as (_, inputs, _, keys):
            costs = cost_of_cells(file, keys, table)
        cells = [cell.key | cost for cell, cost in zip(inputs.cells, costs, strict=True)]
    if json:
        options.print_json(asdict(found) | ({"cells": cells} if run else {}))
        return
    verdicts = ", ".join(f"{verdict} {count}" for verdict, count in found.attempts.items())
    models = ", ".join(f"{model} {count}" for model, count in found.models.items())
    unpriced = f" (and {found.unpriced} attempts without a price)" if found.unpriced else ""
    typer.echo(f"asked     {found.questions} questions ({models or 'none'})")
    finished = ", ".join(f"{why} {count}" for why, count in found.finished.items())
    typer.echo(f"answered  {found.answered} ({finished or 'none'})")
    typer.echo(f"attempts  {sum(found.attempts.values())} ({verdicts or 'none'})")
    typer.echo(f"tokens    {found.prompt_tokens} + {found.completion_tokens}")
    typer.echo(f"wasted    {found.wasted_attempts} attempts, {dollars(found.wasted_usd)}")
    most = found.uncertain_usd
    uncertain = f", of it up to {dollars(most)} where usage is not known" if most else ""
    typer.echo(f"paid      {dollars(found.paid_usd)}{unpriced}{uncertain}")
    for cell in cells:
        name = " ".join(str(cell[part]) for part in ("world", "policy", "protocol"))
        shared = f", of it {dollars(cell['shared_usd'])} shared" if cell["shared_usd"] else ""
        typer.echo(f"cell      {name}: {cell['questions']} questions, {dollars(cell['usd'])}{shared}")


@app.command("verify")
def verify(
    file: StoreFile,
    run: Annotated[
        Path | None,
        typer.Option("--run", metavar="DIR", help="A finished run whose answers must all be there."),
    ] = None,
) -> None:
    """Recompute every key, verdict and total of a store.

    Exit code 0 if all agree; 1 if some do not, each named; 2 if the file is no store, or gives another run.
    """
    from envprobe_core.llm.audit import check_store, read_stats

    faults = list(check_store(file))
    for fault in faults[:LISTED]:
        typer.echo(f"envprobe: {file}: {fault}", err=True)
    if faults:
        typer.echo(f"envprobe: {len(faults)} faults in {file}", err=True)
        raise typer.Exit(1)
    found = read_stats(file, {})
    typer.echo(
        f"{found.questions} questions, {sum(found.attempts.values())} attempts: every key, response, verdict "
        "and total agrees"
    )
    if run is not None:
        with _replayed(file, run) as (_, _, _, keys):
            typer.echo(f"{len(set(chain(*keys)))} answers give {run} again")


@app.command("export")
def export(
    file: StoreFile,
    run: Annotated[Path, typer.Option("--run", metavar="DIR", help="Folder of a finished run on a model.")],
    out: Annotated[
        Path, typer.Option("--out", metavar="REPLAY", help="File to write, as in answers.replay.gz.")
    ],
    note: Annotated[str, typer.Option("--note", help="Where the answers come from, for readers.")] = "",
) -> None:
    """Write the answers that a run used to a small file, with which anybody can replay it.

    The run is replayed first: its hash must come out again. `envprobe run --replay REPLAY` uses the file.
    """
    from envprobe_core.llm.replay import write_replay

    if out.exists():
        raise InputError(f"{out} is there already; give another name")
    with _replayed(file, run) as (store, inputs, result_hash, keys):
        try:
            count = write_replay(out, inputs, result_hash, note, store, chain(*keys))
        except OSError as error:
            raise InputError(f"cannot write {out}: {error.strerror or error}") from None
    typer.echo(f"{count} answers of {inputs.agent.settings.model}, {out.stat().st_size} bytes: {out}")


@contextmanager
def _replayed(file: Path, run: Path) -> Iterator[tuple[AnswerStore, RunInputs, str, list[list[str]]]]:
    """Replay a finished run from a store; gives the store, the run, its hash and the keys each cell used.

    Raises:
        InputError: if there is no such run, or the store gives another.
    """
    from envprobe_core.llm.running import Service, replay_run
    from envprobe_core.llm.store import AnswerStore
    from envprobe_core.runs.inputs import inputs_of
    from envprobe_core.runs.manifest import read_manifest

    manifest = read_manifest(run)
    inputs = inputs_of(manifest)
    if inputs.agent is None:
        raise InputError(f"{run} is a run of the simulated agent: no store holds its answers")
    if not manifest["finished"]:
        raise InputError(f"{run} holds a run that is not finished; the command that began it completes it")
    store = AnswerStore(file, writable=False)
    try:
        with stopped_runs():
            replayed = replay_run(Service(inputs.agent, store), inputs)
        if replayed.result_hash != manifest["result_hash"]:
            raise InputError(
                f"{run} does not come out of {file}: the result hash is another; nothing was written"
            )
        yield store, inputs, replayed.result_hash, replayed.keys
    finally:
        store.close()
