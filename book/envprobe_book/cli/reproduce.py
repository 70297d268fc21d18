"""Commands of the book: reproduce, book, answers, lab."""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from envprobe_book.cli import options
from envprobe_book.cli.options import file, number, whole
from envprobe_core.errors import InputError
from envprobe_core.sources import ROOT

ELSEWHERE = "give --out DIR for a book of its own"
KEY, SOLVED, STUDENTS = "answers.md", "solved.ipynb", "exercises.ipynb"

COURSE_FILE = "nbgrader_config.py"
COURSE_TEXT = 'c = get_config()\nc.CourseDirectory.course_id = "envprobe"\n'

AtATime = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=whole(1, 256),
        show_default="every core",
        help="Sections to execute at a time. [1..256]",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(metavar="DIR", parser=file, help="A book of its own in DIR, beside the checkout's."),
]
CellTimeout = Annotated[
    float | None,
    typer.Option(metavar="S", parser=number, show_default="no end", help="Seconds that a cell may take."),
]


def reproduce(
    sections: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SECTION]...", help="What to execute; all sections if none."),
    ] = None,
    *,
    param: options.Assignments = None,
    jobs: AtATime = None,
    cell_timeout: CellTimeout = None,
    out: Out = None,
    scheduler: options.Scheduler = None,
    scheduler_file: options.SchedulerFile = None,
) -> None:
    """Execute the paper's sections, those that changed.

    A section is skipped if nothing it depends on has changed: its cells, its parameters, the core, the
    book's package, the data, the lock; and if its result is as it was written. If sentences alone have
    changed, its outputs stand. The results lie in book/executed/, of the checkout or of DIR, and state the
    parameters they ran with. A second command waits until the first has ended.
    With `--scheduler` every grid of more than one block is computed by a Dask cluster.
    Exit code 1 if a section failed, 2 if a name or value is not accepted.
    """
    cluster = options.address_of(scheduler, scheduler_file)
    with _executed(sections or [], param, jobs, cell_timeout, cluster, out) as failed:
        if failed:
            raise typer.Exit(1)


def book(
    *,
    param: options.Assignments = None,
    jobs: AtATime = None,
    cell_timeout: CellTimeout = None,
    out: Out = None,
    scheduler: options.Scheduler = None,
    scheduler_file: options.SchedulerFile = None,
) -> None:
    """Execute the sections that changed, then build the book.

    The pages lie in book/_build/html/, of the checkout or of DIR. Nothing is done if nothing has
    changed. Where a section failed nothing is built, and its page goes, with those that show something of it.
    Exit code 1 if a section or the build failed, 2 if a name or value is not accepted.
    """
    from envprobe_book.reproduce import build, pace

    waiting = set(build.front(ROOT))

    def tell(name: str) -> None:
        """Build the front page when the last section that it shows is there, if there is no page yet."""
        if waiting != {name}:
            waiting.discard(name)
            return
        waiting.clear()
        root = build.claim(out) if out else ROOT
        index = build.html_folder(root) / "index.html"
        if not index.exists() and build.build_front(root):
            typer.echo(f"the front page can be read: {index}; the other pages follow")

    cluster = options.address_of(scheduler, scheduler_file)
    with _executed([], param, jobs, cell_timeout, cluster, out, [*waiting], tell) as failed:
        root = build.claim(out) if out else ROOT
        if failed:
            build.withdraw(failed, root)
            typer.echo("the book was not built, because a section failed", err=True)
            raise typer.Exit(1)
        index = build.html_folder(root) / "index.html"
        if build.is_fresh(root):
            typer.echo(f"the book is up to date: {index}")
            return
        if fault := build.unwritable_part(root):
            raise InputError(f"{fault}; {ELSEWHERE}")
        start = time.monotonic()
        typer.echo("building the book ...")
        with options.progress_bar("pages") as show:
            if show is not None:
                show(0, 1, seconds=pace.read_times(root / "book").get(pace.PAGES))
            code, printed = build.build(root)
        if code:
            typer.echo(
                f"{printed}\nthe book was not built: jupyter-book ended with exit code {code}", err=True
            )
            raise typer.Exit(1)
        pace.note_time(root / "book", pace.PAGES, time.monotonic() - start)
        typer.echo(f"the book was built in {time.monotonic() - start:.1f} s: {index}")


@contextmanager
def _executed(
    names: Sequence[str],
    param: Sequence[str] | None,
    jobs: int | None,
    cell_timeout: float | None,
    cluster: str | None,
    out: Path | None = None,
    first: Sequence[str] = (),
    tell: Callable[[str], None] = lambda name: None,
) -> Iterator[list[str]]:
    """Refuse what no section takes, then execute into a book that is held meanwhile; yield what failed.

    A book that cannot be written to is refused, unless nothing is to be executed.

    Args:
        out: the folder of a book beside the checkout's.
        first: sections that come before the others, of which what took longest comes first.
        tell: is called with the name of each section that was executed.
    """
    from envprobe_book.reproduce import build, pace
    from envprobe_book.reproduce.execution import run
    from envprobe_book.reproduce.frozen import frozen
    from envprobe_book.reproduce.parameters import parse_assignments
    from envprobe_book.reproduce.sections import plan
    from envprobe_core.files import folder_lock, sweep

    given = parse_assignments(param or [])
    timeout = options.check_positive("--cell-timeout", cell_timeout)
    planned = plan(names, given, ROOT, executed=(out or ROOT) / "book" / "executed")
    root = build.claim(out) if out else ROOT
    if fault := build.unwritable_part(root):
        if not all(job.fresh for job in planned):
            raise InputError(f"{fault}; {ELSEWHERE}")
        typer.echo(_counted(0, len(planned)))
        yield []
        return
    folder = root / "book"
    for made in (executed := folder / "executed", built := folder / "_build"):
        made.mkdir(parents=True, exist_ok=True)
    told = f"waiting: another envprobe works in {folder}"
    waits = folder_lock(built, lambda: typer.echo(told, err=True))
    with waits, options.handing_out(cluster), frozen(ROOT) as text:
        sweep(executed)
        if out:
            build.stage(out)
        planned = plan(names, given, text, executed=executed)
        times, workers = pace.read_times(folder), jobs or options.CORES
        stale = [job for job in planned if not job.fresh]
        stale.sort(key=lambda job: (job.section.name not in first, -times.get(job.section.name, 0)))
        left, start, errors = [job.section.name for job in stale], time.monotonic(), dict[str, str]()
        with options.progress_bar("sections") as show:

            def move() -> None:
                if show is not None:
                    names = ", ".join(left[:3]) + (" ..." if len(left) > 3 else "")
                    seconds = pace.seconds_left(left, times, workers)
                    show(len(stale) - len(left), len(stale), names, seconds=seconds)

            move()
            for outcome in run(stale, workers, timeout):
                left.remove(outcome.name)
                word = "FAILED" if outcome.error else "ran"
                typer.echo(f"  {word:6}  {outcome.name}  {outcome.seconds:.1f} s")
                move()
                if outcome.error:
                    errors[outcome.name] = outcome.error
                else:
                    pace.note_time(folder, outcome.name, outcome.seconds)
                    tell(outcome.name)
        counted = _counted(len(stale) - len(errors), len(planned) - len(stale), len(errors))
        typer.echo(f"{counted} ({time.monotonic() - start:.1f} s)")
        for error in errors.values():
            typer.echo(f"\n{error}", err=True)
        yield [*errors]


def _counted(executed: int, unchanged: int, failed: int = 0) -> str:
    """The line that says what became of sections."""
    return f"sections: {executed} executed, {unchanged} unchanged, {failed} failed"


def answers(
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            parser=file,
            help=f"Write there {KEY}, {SOLVED} (with all outputs) and {STUDENTS} (without solutions).",
        ),
    ] = None,
    param: options.Assignments = None,
    nbgrader: Annotated[
        bool,
        typer.Option(
            "--nbgrader",
            help="Write a course of nbgrader's to DIR: its one assignment is the exercises, with solutions.",
        ),
    ] = False,
) -> None:
    """Execute the exercises' solutions and print the answer key, or write it.

    Nothing is executed if the book's own exercises are up to date, and no file is replaced. With --nbgrader
    DIR gets a course of nbgrader's instead, and nothing is executed: `nbgrader generate_assignment exercises`
    in it makes the students' copy. Exit code 1 if a solution failed, 2 if a name or value is not accepted.
    """
    from envprobe_book.classroom.exercises import EXERCISES, answer_key, assignment, student_copy
    from envprobe_book.reproduce.execution import run
    from envprobe_book.reproduce.frozen import frozen
    from envprobe_book.reproduce.parameters import parse_assignments
    from envprobe_book.reproduce.sections import as_json, plan
    from envprobe_core.files import refuse_existing, working_folder, write_new

    if nbgrader:
        if out is None or param:
            raise InputError("--nbgrader needs --out DIR, and takes no parameters: students set them")
        place = out / "source" / EXERCISES / f"{EXERCISES}.ipynb"
        write_new("--out", {out / COURSE_FILE: COURSE_TEXT, place: as_json(assignment())})
        typer.echo(f"written: {out / COURSE_FILE}, {place}")
        return
    given = parse_assignments(param or [])
    (job,) = plan([EXERCISES], given, ROOT)
    if out is not None:
        refuse_existing("--out", *(out / name for name in (KEY, SOLVED, STUDENTS)))
    with tempfile.TemporaryDirectory(dir=working_folder(), ignore_cleanup_errors=True) as folder:
        if not job.fresh:
            with frozen(ROOT) as text:
                (job,) = plan([EXERCISES], given, text, executed=Path(folder))
                for outcome in run([job], 1):
                    if outcome.error:
                        typer.echo(outcome.error, err=True)
                        raise typer.Exit(1)
        executed = json.loads(job.output.read_text(encoding="utf-8"))
    key = answer_key(executed)
    if out is None:
        typer.echo(key, nl=False)
        return
    texts = {KEY: key, SOLVED: as_json(executed), STUDENTS: as_json(student_copy())}
    write_new("--out", {out / name: text for name, text in texts.items()})
    typer.echo(f"wrote {KEY}, {SOLVED}, {STUDENTS} in {out}")


def lab(
    jupyter: Annotated[
        list[str] | None, typer.Argument(metavar="[-- OPTION...]", help="Options of `jupyter lab`.")
    ] = None,
    *,
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", parser=file, show_default="lab, in the checkout", help="The folder."),
    ] = ROOT / "lab",
    files_only: Annotated[
        bool, typer.Option("--files-only", help="Lay the folder out, and open nothing.")
    ] = False,
) -> None:
    """Open JupyterLab in a folder with a START notebook, the exercises and copies of all sections.

    The folder is made at the first time and brought up to date later; files that you have changed there stay
    as they are. Exit code 2 if DIR cannot be used.
    """
    from envprobe_book.classroom.workspace import CONFIG, START, lay_out

    if jupyter and not jupyter[0].startswith("-"):
        raise InputError(f"lab {jupyter[0]!r}: options of `jupyter lab` are accepted; --out names the folder")
    for name in lay_out(out):
        typer.echo(f"left as you changed it: {out / name}")
    typer.echo(f"{START} is in {out}")
    if files_only:
        return
    folder = out.resolve()
    paths = [str(folder / CONFIG), *filter(None, [os.environ.get("JUPYTER_CONFIG_PATH")])]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(paths)
    settings = [
        *(["--allow-root"] if os.getuid() == 0 else []),
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.default_url=/lab/tree/{START}",
    ]
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "jupyter", "lab", *settings, *(jupyter or ())])
