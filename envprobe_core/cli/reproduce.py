"""``envprobe reproduce``, ``book``, ``answers``: run the sections, build the book, write the answer key."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from envprobe_core.cli import options
from envprobe_core.errors import InputError
from envprobe_core.reproduce import build
from envprobe_core.reproduce.parameters import parse_assignments
from envprobe_core.reproduce.sections import Job, missing_parameters, plan
from envprobe_core.sources import ROOT

KEY, SOLVED, STUDENTS = "answers.md", "solved.ipynb", "exercises.ipynb"

Jobs = Annotated[
    int | None,
    typer.Option("--jobs", min=1, max=256, help="Sections to execute at a time.", show_default="every core"),
]


@options.expanded
def reproduce(
    sections: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SECTION]...", help="What to execute; all sections if none."),
    ] = None,
    param: options.Assignments = None,
    jobs: Jobs = None,
    cluster: options.Cluster = options.Cluster(),  # noqa: B008  (frozen)
) -> None:
    """Execute the paper's sections, those that changed.

    A section is skipped if nothing it depends on has changed: its cells, its parameters, the files that its
    imports reach, the data. The results lie in book/executed/ and state the parameters they ran with.
    With `--scheduler` every grid of more than one block is computed by a Dask cluster.
    Exit code 1 if a section failed, 2 if a name or value is not accepted.
    """
    given = parse_assignments(param or [])
    with options.handing_out(cluster.address()):
        done = _execute(sections or [], given, jobs or options.CORES)
    if not done:
        raise typer.Exit(1)


@options.expanded
def book(
    param: options.Assignments = None,
    jobs: Jobs = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Build a book of its own in DIR, beside the checkout's."),
    ] = None,
    cluster: options.Cluster = options.Cluster(),  # noqa: B008
) -> None:
    """Execute the sections that changed, then build the book.

    The pages lie in book/_build/html/, of the checkout or of DIR. Nothing is done if nothing has
    changed. Exit code 1 if a section or the build failed, 2 if a name or value is not accepted.
    """
    given = parse_assignments(param or [])
    plan((), given)
    root = build.stage(out) if out else ROOT
    with options.handing_out(cluster.address()):
        done = _execute([], given, jobs or options.CORES, root / "book" / "executed")
    if not done:
        typer.echo("the book was not built, because a section failed", err=True)
        raise typer.Exit(1)
    index = build.html_folder(root) / "index.html"
    if build.is_fresh(root):
        typer.echo(f"the book is up to date: {index}")
        return
    start = time.monotonic()
    typer.echo("building the book ...")
    code, printed = build.build(root)
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
    start, failed = time.monotonic(), []
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


def answers(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help=f"Write there {KEY}, {SOLVED} (with all outputs) and {STUDENTS} (without solutions).",
        ),
    ] = None,
    param: options.Assignments = None,
) -> None:
    """Execute the exercises' solutions and print the answer key, or write it.

    Nothing is executed if the book's own exercises are up to date. Exit code 1 if a solution failed, 2 if a
    name or value is not accepted.
    """
    from envprobe_core.lab.exercises import NAME, answer_key, exercises_notebook, student_copy
    from envprobe_core.reproduce.execution import run

    given = parse_assignments(param or [])
    (job,) = plan((NAME,), given)
    with tempfile.TemporaryDirectory(prefix="envprobe-") as folder:
        if not job.fresh:
            (job,) = plan((NAME,), given, executed=Path(folder))
            for outcome in run([job], 1):
                if outcome.error:
                    typer.echo(outcome.error, err=True)
                    raise typer.Exit(1)
        executed = json.loads(job.output.read_text(encoding="utf-8"))
    key = answer_key(executed)
    if out is None:
        typer.echo(key, nl=False)
        return
    notebooks = {SOLVED: executed, STUDENTS: student_copy(exercises_notebook())}
    texts = {name: json.dumps(made, ensure_ascii=False, indent=1) + "\n" for name, made in notebooks.items()}
    files = {KEY: key} | texts
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (out / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"--out {out}: {error.strerror}") from None
    typer.echo(f"wrote {', '.join(files)} in {out}")
