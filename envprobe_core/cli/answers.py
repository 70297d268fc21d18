"""``envprobe answers``: the answer key of the exercises, computed now."""

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from envprobe_core.cli.reproduce import Parameters
from envprobe_core.errors import InputError
from envprobe_core.reproduce.parameters import parse_assignments
from envprobe_core.reproduce.sections import Job, plan

KEY, SOLVED, STUDENTS = "answers.md", "solved.ipynb", "exercises.ipynb"


def answers(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help=f"Write there {KEY}, {SOLVED} (with all outputs) and {STUDENTS} (without solutions).",
        ),
    ] = None,
    param: Parameters = None,
) -> None:
    """Execute the exercises' solutions and print the answer key, or write it.

    Nothing is executed if the book's own exercises are up to date. Exit code 1 if a solution failed, 2 if a
    name or value is not accepted.
    """
    from envprobe_core.lab.exercises import NAME, answer_key, exercises_notebook, student_copy

    given = parse_assignments(param or [])
    (job,) = plan((NAME,), given)
    with tempfile.TemporaryDirectory(prefix="envprobe-") as folder:
        if not job.fresh:
            (job,) = plan((NAME,), given, executed=Path(folder))
            _execute(job)
        executed = json.loads(job.output.read_text(encoding="utf-8"))
    key = answer_key(executed)
    if out is None:
        typer.echo(key, nl=False)
        return
    files = {KEY: key, SOLVED: _as_text(executed), STUDENTS: _as_text(student_copy(exercises_notebook()))}
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (out / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"--out {out}: {error.strerror}") from None
    typer.echo(f"wrote {', '.join(files)} in {out}")


def _as_text(notebook: object) -> str:
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def _execute(job: Job) -> None:
    from envprobe_core.reproduce.execution import run

    for outcome in run([job], 1):
        if outcome.error:
            typer.echo(outcome.error, err=True)
            raise typer.Exit(1)
