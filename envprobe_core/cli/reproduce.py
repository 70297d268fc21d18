"""``envprobe reproduce`` and ``envprobe book``: execute the paper's sections, build its book."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from envprobe_core.cli.clustering import Scheduler, SchedulerFile, chosen_scheduler, handing_out
from envprobe_core.reproduce import build as pages
from envprobe_core.reproduce.parameters import parse_assignments
from envprobe_core.reproduce.sections import ROOT, Job, missing_parameters, plan

Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        "-p",
        metavar="NAME=VALUE",
        help="Give a parameter another value than the notebook's; may be repeated. "
        "It is applied to every chosen section that has it.",
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        "--jobs",
        min=1,
        max=256,
        help="Sections to execute at a time.  [default: every core]",
        show_default=False,
    ),
]

_CORES = os.cpu_count() or 1


def reproduce(
    sections: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SECTION]...", help="What to execute; all sections if none."),
    ] = None,
    param: Parameters = None,
    jobs: Jobs = _CORES,
    scheduler: Scheduler = None,
    scheduler_file: SchedulerFile = None,
) -> None:
    """Execute the paper's sections, those that changed.

    A section is skipped if nothing it depends on has changed: its cells, its parameters, the
    engine, the data. The results lie in book/executed/ and state the parameters they ran with.
    With `--scheduler` every grid of more than one block is computed by a Dask cluster.
    Exit code 1 if a section failed, 2 if a name or value is not accepted.
    """
    given = parse_assignments(param or [])
    with handing_out(chosen_scheduler(scheduler, scheduler_file)):
        done = _execute(sections or [], given, jobs)
    if not done:
        raise typer.Exit(1)


def book(
    param: Parameters = None,
    jobs: Jobs = _CORES,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Build a book of its own in DIR, beside the checkout's."),
    ] = None,
    scheduler: Scheduler = None,
    scheduler_file: SchedulerFile = None,
) -> None:
    """Execute the sections that changed, then build the book.

    The pages lie in book/_build/html/, of the checkout or of DIR. Nothing is done if nothing has
    changed. Exit code 1 if a section or the build failed, 2 if a name or value is not accepted.
    """
    given = parse_assignments(param or [])
    plan((), given)
    root = pages.stage(out) if out else ROOT
    with handing_out(chosen_scheduler(scheduler, scheduler_file)):
        done = _execute([], given, jobs, root / "book" / "executed")
    if not done:
        typer.echo("the book was not built, because a section failed", err=True)
        raise typer.Exit(1)
    index = pages.html_folder(root) / "index.html"
    if pages.is_fresh(root):
        typer.echo(f"the book is up to date: {index}")
        return
    start = time.monotonic()
    typer.echo("building the book ...")
    code, printed = pages.build(root)
    if code:
        typer.echo(printed, err=True)
        typer.echo(f"the book was not built: jupyter-book ended with exit code {code}", err=True)
        raise typer.Exit(1)
    typer.echo(f"the book was built in {time.monotonic() - start:.1f} s: {index}")


def _execute(names: Sequence[str], given: dict[str, str], workers: int, executed: Path | None = None) -> bool:
    """Plan, run and report; whether every section is now up to date."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from envprobe_core.reproduce.execution import run

    console = Console(highlight=False, soft_wrap=True)
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    planned = plan(names, given, executed=executed)
    for name, lacking in missing_parameters(planned, given).items():
        console.print(f"{name}: not a parameter of {', '.join(lacking)}", markup=False)
    stale = [job for job in planned if not job.fresh]
    start = time.monotonic()
    failed = []
    if stale:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(
            *columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal
        ) as progress:
            task = progress.add_task(_waiting(stale), total=len(stale))
            left = {job.section.name: job for job in stale}
            for outcome in run(stale, workers):
                left.pop(outcome.name)
                progress.update(task, advance=1, description=_waiting(list(left.values())))
                word = "FAILED" if outcome.error else "ran"
                progress.print(f"  {word:6}  {outcome.name}  {outcome.seconds:.1f} s")
                if outcome.error:
                    failed.append(outcome)
    console.print(
        f"sections: {len(stale) - len(failed)} executed, {len(planned) - len(stale)} unchanged, "
        f"{len(failed)} failed ({time.monotonic() - start:.1f} s)"
    )
    for outcome in failed:
        errors.print(f"\n{outcome.error}", markup=False)
    return not failed


def _waiting(jobs: Sequence[Job]) -> str:
    """The names of the sections that are not done yet, in few words."""
    names = [job.section.name for job in jobs]
    return ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")
