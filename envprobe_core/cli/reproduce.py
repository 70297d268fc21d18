"""``envprobe reproduce``, ``book``, ``answers``: run the sections, build the book, write the answer key."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from envprobe_core.cli import options
from envprobe_core.cli.options import File, Number, Whole, option
from envprobe_core.errors import in_one_line
from envprobe_core.files import held, refuse_existing, sweep, working_folder, write_new
from envprobe_core.reproduce import build
from envprobe_core.reproduce.parameters import parse_assignments
from envprobe_core.reproduce.sections import missing_parameters, plan
from envprobe_core.sources import ROOT

KEY, SOLVED, STUDENTS = "answers.md", "solved.ipynb", "exercises.ipynb"

Jobs = option(Whole, "--jobs", "Sections to execute at a time.", default="every core", min=1, max=256)
CellTimeout = option(Number, "--cell-timeout", "Seconds that a cell may take.", "S", "no end")


@options.expanded
def reproduce(
    sections: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SECTION]...", help="What to execute; all sections if none."),
    ] = None,
    param: options.Assignments = None,
    jobs: Jobs = None,
    cell_timeout: CellTimeout = None,
    cluster: options.Cluster = options.Cluster(),  # noqa: B008  (frozen)
) -> None:
    """Execute the paper's sections, those that changed.

    A section is skipped if nothing it depends on has changed: its cells, its parameters, the files that its
    imports reach, the data; and if its result is as it was written. The results lie in book/executed/ and
    state the parameters they ran with. A second command waits until the first has ended.
    With `--scheduler` every grid of more than one block is computed by a Dask cluster.
    Exit code 1 if a section failed, 2 if a name or value is not accepted.
    """
    given = parse_assignments(param or [])
    seconds = options.check_positive("--cell-timeout", cell_timeout)
    plan(sections or [], given, faults={})
    with _alone_in(ROOT / "book"), options.handing_out(cluster.address()):
        done = _execute(sections or [], given, jobs or options.CORES, seconds)
    if not done:
        raise typer.Exit(1)


@options.expanded
def book(
    param: options.Assignments = None,
    jobs: Jobs = None,
    cell_timeout: CellTimeout = None,
    out: option(File, "--out", "Build a book of its own in DIR, beside the checkout's.", "DIR") = None,
    cluster: options.Cluster = options.Cluster(),  # noqa: B008
) -> None:
    """Execute the sections that changed, then build the book.

    The pages lie in book/_build/html/, of the checkout or of DIR. Nothing is done if nothing has
    changed. Exit code 1 if a section or the build failed, 2 if a name or value is not accepted.
    """
    given = parse_assignments(param or [])
    seconds = options.check_positive("--cell-timeout", cell_timeout)
    plan((), given, faults={})
    root = build.claim(out) if out else ROOT
    with _alone_in(root / "book"), options.handing_out(cluster.address()):
        if out:
            build.stage(out)
        done = _execute([], given, jobs or options.CORES, seconds, root / "book" / "executed")
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


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other command executes sections into a book, and hold it."""
    folder.mkdir(exist_ok=True)
    with held(folder, lambda: typer.echo(f"waiting: another envprobe works in {folder}", err=True)):
        sweep(folder / "executed")
        yield


def _execute(
    names: Sequence[str],
    given: dict[str, str],
    workers: int,
    cell_timeout: float | None,
    executed: Path | None = None,
) -> bool:
    """Plan, run and report; whether every section is now up to date."""
    from envprobe_core.reproduce.execution import run

    faults: dict[str, str] = {}
    planned = plan(names, given, executed=executed, faults=faults)
    for fault in faults.values():
        typer.echo(f"envprobe: {in_one_line(fault)}", err=True)
    for name, lacking in missing_parameters(planned, given).items():
        typer.echo(f"{name}: not a parameter of {', '.join(lacking)}")
    left = {job.section.name: job for job in planned if not job.fresh}
    stale, start, errors = len(left), time.monotonic(), []
    with options.progress_bar("sections") as show:
        for outcome in run(list(left.values()), workers, cell_timeout):
            left.pop(outcome.name)
            word = "FAILED" if outcome.error else "ran"
            typer.echo(f"  {word:6}  {outcome.name}  {outcome.seconds:.1f} s")
            if outcome.error:
                errors.append(outcome.error)
            if show is not None:
                show(stale - len(left), stale, _waiting(list(left)))
    typer.echo(
        f"sections: {stale - len(errors)} executed, {len(planned) - stale} unchanged, "
        f"{len(errors) + len(faults)} failed ({time.monotonic() - start:.1f} s)"
    )
    for error in errors:
        typer.echo(f"\n{error}", err=True)
    return not errors and not faults


def _waiting(names: Sequence[str]) -> str:
    """The names of the sections that are not done yet, in few words."""
    return ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")


def answers(
    out: option(
        File,
        "--out",
        f"Write there {KEY}, {SOLVED} (with all outputs) and {STUDENTS} (without solutions).",
        "DIR",
    ) = None,
    param: options.Assignments = None,
) -> None:
    """Execute the exercises' solutions and print the answer key, or write it.

    Nothing is executed if the book's own exercises are up to date, and no file is replaced. Exit code 1 if a
    solution failed, 2 if a name or value is not accepted.
    """
    from envprobe_core.lab.exercises import NAME, answer_key, exercises_notebook, student_copy
    from envprobe_core.reproduce.execution import run

    given = parse_assignments(param or [])
    (job,) = plan((NAME,), given)
    if out is not None:
        refuse_existing("--out", *(out / name for name in (KEY, SOLVED, STUDENTS)))
    with tempfile.TemporaryDirectory(dir=working_folder(), ignore_cleanup_errors=True) as folder:
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
    write_new("--out", {out / name: text for name, text in ({KEY: key} | texts).items()})
    typer.echo(f"wrote {KEY}, {SOLVED}, {STUDENTS} in {out}")
