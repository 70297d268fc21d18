"""``envprobe estimate``, ``model`` and ``store``: before, beside and after a run on a language model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envprobe_core.cli import modelling, options
from envprobe_core.cli.options import File, option
from envprobe_core.errors import InputError
from envprobe_core.files import refuse_existing

if TYPE_CHECKING:
    from envprobe_core.llm.store import AnswerStore
    from envprobe_core.runs.manifest import RunInputs

LATENCY = 1.0  # seconds a call, for the time that is shown
LISTED = 20  # faults that are spelled out
OneObject = option(bool, "--json", "Print one JSON object and nothing else.")
Note = option(str, "--note", "Where the answers come from, for readers.")
StoreFile = Annotated[Path, typer.Argument(metavar="FILE", help="Store that a run on a model made.")]

model = typer.Typer(no_args_is_help=True, help="Get the weights of a small open model for `--agent local`.")
store = typer.Typer(
    no_args_is_help=True, help="Look into a store of answers, check it, or export a run's answers."
)


@options.expanded
def estimate(
    grid: options.Grid,
    given: Annotated[modelling.ModelOptions, ("model", "judge_model", "base_url", "concurrency", "prices")],
    sample: option(int, "--sample", "Seeds of each cell in the dry run.", min=1, max=10_000) = 5,
    json: OneObject = False,
) -> None:
    """Estimate calls, tokens and money of a run on a model, from a dry run of its prompts.

    Needs no key and opens no connection: the simulated agent answers on a few seeds. A model's episodes
    differ, so this is no bound; `envprobe run --max-cost` sets one.
    """
    from envprobe_core.llm.calls import dollars
    from envprobe_core.llm.rehearsal import CHARACTERS_A_TOKEN
    from envprobe_core.llm.rehearsal import estimate as dry_run

    agent = given.agent()
    inputs = grid.inputs("typical", "none", agent)
    found = dry_run(inputs.cells, inputs.seeds_of_cells, agent, given.price_table(agent), sample)
    if json:
        dollar = {f"{name}_usd": found.pop(name) for name in ("cost", "most")}
        options.print_json(found | dollar)
        return
    at_once = given.concurrency or modelling.DEFAULT_CONCURRENCY
    minutes = found["calls"] * LATENCY / at_once / 60
    tokens = f"{found['prompt_tokens']} + {found['completion_tokens']}"
    if found["cost"] is None or found["most"] is None:
        cost = f"not known: no price for {agent.model}; give one with --prices"
    else:
        cost = f"{dollars(found['cost'])}; {dollars(found['most'])} were every call to cost its most"
    typer.echo(f"{len(inputs.cells)} cells, {found['episodes']} episodes; dry run of {found['dry_run']}")
    typer.echo(f"answers  {found['steps']}")
    typer.echo(f"calls    {found['calls']} (policies that meet the same situation share an answer)")
    typer.echo(f"tokens   {tokens}, at {CHARACTERS_A_TOKEN} characters a token; there may be up to 40% more")
    typer.echo(f"cost     {cost}")
    typer.echo(f"time     {minutes:.0f} min at {LATENCY:g} s a call and concurrency {at_once}")


# ---------------------------------------------------------------- a model on this machine


@model.command("fetch")
def fetch() -> None:
    """Fetch the weights (93 MB) once, verify them, and keep them in a cache folder.

    The folder is the platform's own for caches, or ENVPROBE_CACHE. An interrupted fetch goes on where it
    stopped. Any other GGUF file is used with `envprobe run --agent local --model FILE.gguf`.
    """
    from envprobe_core.llm.local import SMOLLM2, fetch_weights

    with options.progress_bar("bytes") as show:
        fetched = fetch_weights(notice=show or (lambda there, total: None))
    path = SMOLLM2.path
    typer.echo(f"{SMOLLM2.title}, {SMOLLM2.licence} ({path.with_suffix('.LICENSE').name} beside it)")
    typer.echo(f"{'fetched and verified' if fetched else 'already there'}: {path}, sha256 {SMOLLM2.sha256}")


@model.command("trial")
@options.expanded
def trial(
    out: option(Path, "--out", "File to write, as in x.trial.gz.", "FILE"),
    world: option(list[str], "--world", "World; may be repeated.", "W"),
    prompts: option(list[str], "--prompts", "Version of the prompts; may be repeated.", "V"),
    situations: option(int, "--situations", "Of each world.", min=1, max=10_000) = 200,
    regime: option(str, "--regime", "Stress regime.", "R") = "S1",
    given: Annotated[modelling.ModelOptions, ("model", "concurrency", "store")] = modelling.ModelOptions(),  # noqa: B008
    note: Note = "",
) -> None:
    """Ask a local model about the same situations in several versions of the prompts.

    The answers go to a file from which the book computes how many could be used, how many of the seen fields
    were written right, how many rows were copied from an example, and how many actions were distinct.
    Given again after an interruption, the command goes on where it stopped.
    """
    from envprobe_core.cells import make_cell
    from envprobe_core.llm import trial as trials
    from envprobe_core.llm.identity import find_version
    from envprobe_core.llm.replay import write_answers

    refuse_existing("--out", out)
    for each in world:
        make_cell(each, "simple", regime)  # a name that is none is refused before a store is made
    agent = given.agent(modelling.LOCAL)
    asked = trials.Trial(
        agent=agent.as_dict(),
        worlds=world,
        versions=[find_version(each) for each in prompts],
        policy="simple",
        regime=regime,
        situations=situations,
        note=note,
    )
    service = given.service(agent, out)
    with modelling.stopped_runs(), service.at_work() as ready:
        count = write_answers(out, asked, service.answers, trials.ask(asked, ready))
    typer.echo(f"{count} answers of {agent.model}, {out.stat().st_size} bytes: {out}")


# ---------------------------------------------------------------- a store of answers


@store.command("stats")
@options.expanded
def stats(
    file: StoreFile,
    json: OneObject = False,
    given: Annotated[modelling.ModelOptions, ("prices",)] = modelling.ModelOptions(),  # noqa: B008
    run: option(File, "--run", "Say also what each cell of this run cost.", "DIR") = None,
) -> None:
    """Count what was asked, answered, wasted and paid.

    An attempt whose usage is not known, such as one that was cut off, counts the most it can have cost.
    With --run the run is replayed, and each cell has the cost of every attempt to get its answers; what
    cells share was paid once.
    """
    from envprobe_core.llm.calls import dollars, read_prices
    from envprobe_core.llm.store import cost_of_cells, read_stats

    table = read_prices(given.prices)
    found = read_stats(file, table)
    cells = []
    if run is not None:
        with _replayed(file, run) as (_, inputs, _, keys):
            costs = cost_of_cells(file, keys, table)
        cells = [cell.key | cost for cell, cost in zip(inputs.cells, costs, strict=True)]
    if json:
        options.print_json(found | ({"cells": cells} if run else {}))
        return

    def listed(name: str) -> str:
        return ", ".join(f"{what} {count}" for what, count in found[name].items()) or "none"

    unpriced = f" (and {found['unpriced']} attempts without a price)" if found["unpriced"] else ""
    most = found["uncertain_usd"]
    uncertain = f", of it up to {dollars(most)} where usage is not known" if most else ""
    typer.echo(f"asked     {found['questions']} questions ({listed('models')})")
    typer.echo(f"answered  {found['answered']} ({listed('finished')})")
    typer.echo(f"attempts  {sum(found['attempts'].values())} ({listed('attempts')})")
    typer.echo(f"tokens    {found['prompt_tokens']} + {found['completion_tokens']}")
    typer.echo(f"wasted    {found['wasted_attempts']} attempts, {dollars(found['wasted_usd'])}")
    typer.echo(f"paid      {dollars(found['paid_usd'])}{unpriced}{uncertain}")
    for cell in cells:
        name = " ".join(str(cell[part]) for part in ("world", "policy", "protocol"))
        shared = f", of it {dollars(cell['shared_usd'])} shared" if cell["shared_usd"] else ""
        typer.echo(f"cell      {name}: {cell['questions']} questions, {dollars(cell['usd'])}{shared}")


@store.command("verify")
def verify(
    file: StoreFile,
    run: option(File, "--run", "A finished run whose answers must all be there.", "DIR") = None,
) -> None:
    """Recompute every key, verdict and total of a store.

    Exit code 0 if all agree; 1 if some do not, each named; 2 if the file is no store, or gives another run.
    """
    from envprobe_core.llm.store import check_store, read_stats

    faults = list(check_store(file))
    for fault in faults[:LISTED]:
        typer.echo(f"envprobe: {file}: {fault}", err=True)
    if faults:
        typer.echo(f"envprobe: {len(faults)} faults in {file}", err=True)
        raise typer.Exit(1)
    found = read_stats(file, {})
    attempts = sum(found["attempts"].values())
    typer.echo(
        f"{found['questions']} questions, {attempts} attempts: every key, response, verdict and total agrees"
    )
    if run is not None:
        with _replayed(file, run) as (_, _, _, keys):
            typer.echo(f"{len(set(chain(*keys)))} answers give {run} again")


@store.command("export")
def export(
    file: StoreFile,
    run: option(Path, "--run", "Folder of a finished run on a model.", "DIR"),
    out: option(Path, "--out", "File to write, as in answers.replay.gz.", "REPLAY"),
    note: Note = "",
) -> None:
    """Write the answers that a run used to a small file, with which anybody can replay it.

    The run is replayed first: its hash must come out again. `envprobe run --replay REPLAY` uses the file.
    """
    from envprobe_core.llm.replay import write_replay

    refuse_existing("--out", out)
    with _replayed(file, run) as (answers, inputs, result_hash, keys):
        try:
            count = write_replay(out, inputs, result_hash, note, answers, chain(*keys))
        except OSError as error:
            raise InputError(f"cannot write {out}: {error.strerror or error}") from None
    typer.echo(f"{count} answers of {inputs.agent.model}, {out.stat().st_size} bytes: {out}")


@contextmanager
def _replayed(file: Path, run: Path) -> Iterator[tuple[AnswerStore, RunInputs, str, list[list[str]]]]:
    """Replay a finished run from a store; gives the store, the run, its hash and the keys each cell used.

    Raises:
        InputError: if there is no such run, or the store gives another.
    """
    from envprobe_core.llm.running import Service, replay_run
    from envprobe_core.llm.store import AnswerStore
    from envprobe_core.runs.manifest import read_finished

    manifest = read_finished(run)
    inputs = manifest.inputs
    if inputs.agent is None:
        raise InputError(f"{run} is a run of the simulated agent: no store holds its answers")
    with closing(AnswerStore(file, writable=False)) as answers:
        with modelling.stopped_runs():
            replayed = replay_run(Service(inputs.agent, answers), inputs)
        if replayed.result_hash != manifest.result_hash:
            raise InputError(
                f"{run} does not come out of {file}: the result hash is another; nothing was written"
            )
        yield answers, inputs, replayed.result_hash, replayed.keys
