"""``envprobe store``: what was asked, answered, wasted and paid; a check; and answers to hand on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from envprobe_core.cli.asking import stopped_runs
from envprobe_core.errors import InputError

if TYPE_CHECKING:
    from envprobe_core.llm.auditing import StoreStats

LISTED = 20  # faults that are spelled out
StoreFile = Annotated[Path, typer.Argument(metavar="FILE", help="Store that a run on a model made.")]

app = typer.Typer(
    no_args_is_help=True, help="Look into a store of answers, check it, or export a run's answers."
)


@app.command("stats")
def stats(
    file: StoreFile,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Count what was asked, answered, wasted and paid.

    An attempt whose usage is not known, such as one that was cut off, counts the most it can have cost.
    """
    from envprobe_core.llm.auditing import read_stats

    found = read_stats(file)
    if json:
        import orjson

        sys.stdout.write(orjson.dumps(as_dict(found), option=orjson.OPT_INDENT_2).decode() + "\n")
        return
    from envprobe_core.llm.prices import dollars

    verdicts = ", ".join(f"{verdict} {count}" for verdict, count in found.attempts.items())
    models = ", ".join(f"{model} {count}" for model, count in found.models.items())
    unpriced = f" (and {found.unpriced} attempts without a price)" if found.unpriced else ""
    typer.echo(f"asked     {found.questions} questions ({models or 'none'})")
    typer.echo(f"answered  {found.answered}")
    typer.echo(f"attempts  {sum(found.attempts.values())} ({verdicts or 'none'})")
    typer.echo(f"tokens    {found.prompt_tokens} + {found.completion_tokens}")
    typer.echo(f"wasted    {found.wasted_attempts} attempts, {dollars(found.wasted)}")
    uncertain = (
        f", of it up to {dollars(found.uncertain)} where usage is not known" if found.uncertain else ""
    )
    typer.echo(f"paid      {dollars(found.paid)}{unpriced}{uncertain}")


def as_dict(found: StoreStats) -> dict[str, Any]:
    """Return the counts by name, money in dollars."""
    from envprobe_core.llm.prices import PICO

    content = dict(vars(found))
    for name in ("paid", "wasted", "uncertain"):
        content[f"{name}_usd"] = content.pop(name) / PICO
    return content


@app.command("verify")
def verify(file: StoreFile) -> None:
    """Recompute every key, check sum, verdict and total of a store.

    Exit code 0 if all agree; 1 if some do not, each named; 2 if the file is no store.
    """
    from envprobe_core.llm.auditing import check_store, read_stats

    faults = list(check_store(file))
    for fault in faults[:LISTED]:
        typer.echo(f"envprobe: {file}: {fault}", err=True)
    if faults:
        typer.echo(f"envprobe: {len(faults)} faults in {file}", err=True)
        raise typer.Exit(1)
    found = read_stats(file)
    typer.echo(
        f"{found.questions} questions, {sum(found.attempts.values())} attempts: every key, response, verdict "
        "and cost agrees"
    )


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
    from envprobe_core.llm.running import Service, replay_cells
    from envprobe_core.llm.store import AnswerStore
    from envprobe_core.runs.inputs import inputs_of
    from envprobe_core.runs.manifest import read_manifest
    from envprobe_core.runs.summary import result_hash, total_hash
    from envprobe_core.sweep import Piece

    manifest = read_manifest(run)
    inputs = inputs_of(manifest)
    if inputs.agent is None:
        raise InputError(f"{run} is a run of the simulated agent: it has no answers to export")
    if not manifest["finished"]:
        raise InputError(f"{run} holds a run that is not finished; the command that began it completes it")
    if out.exists():
        raise InputError(f"{out} is there already; give another name")
    store = AnswerStore(file, writable=False)
    try:
        pieces = [
            Piece(index, cell, seeds)
            for index, (cell, seeds) in enumerate(zip(inputs.cells, inputs.seeds_of_cells, strict=True))
        ]
        with stopped_runs():
            columns, _, keys = replay_cells(Service(inputs.agent, store), pieces)
        if total_hash(inputs.cells, [result_hash(part) for part in columns]) != manifest["result_hash"]:
            raise InputError(
                f"{run} does not come out of {file}: the result hash is another; nothing was written"
            )
        count = write_replay(out, inputs, str(manifest["result_hash"]), note, store, map(bytes.fromhex, keys))
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror or error}") from None
    finally:
        store.close()
    typer.echo(f"{count} answers of {inputs.agent.settings.model}, {out.stat().st_size} bytes: {out}")
