"""Options that several commands take, each declared once, and what commands show in common."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from envprobe_core.errors import InputError, StoppedError, counted, in_one_line

if TYPE_CHECKING:
    from envprobe_core.agents.model import ModelAgent
    from envprobe_core.runs.manifest import RunInputs

CORES = os.cpu_count() or 1
LARGEST = 10**9  # seconds or dollars
LISTED = 20  # faults that are spelled out
MOST_PARTS = 200  # of a path: Python makes a folder by a call inside the call for each


def file(text: Any) -> Path:
    """Read a path; an empty one, of a variable that is not set, Python would take for the working folder."""
    if not str(text):
        raise typer.BadParameter("'' names no file or folder")
    path = Path(text)
    if len(path.parts) > MOST_PARTS:
        raise typer.BadParameter(
            f"{str(path)[:60]}... has {len(path.parts)} parts; {MOST_PARTS} are accepted"
        )
    return path


def number(text: Any) -> float:
    """Read a number as people write it: Python's `1_000` and digits of other scripts are none."""
    return _read(float, text)


def whole(low: int | None = None, high: int | None = None) -> Callable[[Any], int]:
    """A reader of whole numbers as people write them, within a range where there is one."""

    def read(text: Any) -> int:
        value = _read(int, text)
        if low is not None and high is not None and not low <= value <= high:
            raise typer.BadParameter(f"{value} is not in {low}..{high}")
        return value

    return read


def _read(kind: type, text: Any) -> Any:
    try:
        if "_" in str(text) or not str(text).isascii():
            raise ValueError
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise typer.BadParameter(f"{text!r} is not {what}") from None


def check_positive(option: str, value: float | None) -> float | None:
    """A number that was given as an option; one that is not above 0 and below `LARGEST` is refused."""
    if value is not None and not 0 < value < LARGEST:
        raise InputError(f"{option} {value}: accepted is a number above 0 and below {LARGEST:,}")
    return value


Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output, and nothing else.")]
Profile = Annotated[str, typer.Option(metavar="NAME", help="Profile of the simulated agent.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=whole(1, 256),
        show_default="as many as pay",
        help="Processes; changes nothing but speed. [1..256]",
    ),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        "-p",
        metavar="NAME=VALUE",
        help="Give a parameter another value in every chosen section that has it; may be repeated.",
    ),
]

# what a run is of
World = Annotated[
    list[str] | None, typer.Option(metavar="W", help="World; may be repeated; `all` for every one.")
]
Policies = Annotated[
    list[str] | None, typer.Option(metavar="P", help="Policy; may be repeated; `all` for every one.")
]
Regime = Annotated[str, typer.Option(metavar="R", help="Stress regime.")]
Protocol = Annotated[
    list[str] | None,
    typer.Option(
        metavar="P",
        show_default="paper",
        help="Protocol, also with switches turned, as in paper:clock=stands,end=success; may be repeated.",
    ),
]
Seeds = Annotated[
    str | None,
    typer.Option(
        metavar="A:B",
        show_default="the regime's own; at S2 0:220, under released 42:262",
        help="Seeds A..B-1, a seed, or several of these with commas.",
    ),
]
Budget = Annotated[
    int | None,
    typer.Option(metavar="N", parser=whole(), show_default="horizon / 4", help="Probes an episode may fire."),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        metavar="X",
        parser=number,
        show_default="1.5",
        help="Score from which a policy with a threshold probes.",
    ),
]


@dataclass(frozen=True)
class Grid:
    """The conditions of a run, as they were given."""

    world: list[str] | None = None
    policy: list[str] | None = None
    regime: str = "S2"
    protocol: list[str] | None = None
    seeds: str | None = None
    budget: int | None = None
    threshold: float | None = None

    def inputs(self, profile: str, logs: str, agent: ModelAgent | None) -> RunInputs:
        """Check everything and return what a run is asked for; the word `all` stands for every name."""
        from envprobe_core.policies import POLICIES
        from envprobe_core.runs.manifest import RunInputs
        from envprobe_core.worlds import WORLDS

        names = []
        for option, known in (("world", WORLDS), ("policy", POLICIES)):
            if not getattr(self, option):
                raise InputError(f"Missing option '--{option}'")
            names.append([own for one in getattr(self, option) for own in (known if one == "all" else [one])])
        protocols, numbers = self.protocol or ["paper"], (self.budget, self.threshold, self.seeds)
        return RunInputs(*names, self.regime, protocols, profile, *numbers, logs, agent)


# past one machine
PANEL = "Past one machine"
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="tcp://HOST:8786",
        show_default="local processes",
        rich_help_panel=PANEL,
        help="Hand the work to the Dask cluster of this scheduler, or of ENVPROBE_SCHEDULER.",
    ),
]
SchedulerFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        parser=file,
        rich_help_panel=PANEL,
        help="The same, as `dask scheduler --scheduler-file` wrote it.",
    ),
]


def address_of(scheduler: str | None, scheduler_file: Path | None) -> str | None:
    """The address of the cluster to use, None for this machine alone; two are refused."""
    from envprobe_core.parallel import scheduler_in_force

    if scheduler is not None and scheduler_file is not None:
        raise InputError("--scheduler cannot stand beside --scheduler-file; one names the cluster")
    if scheduler_file is not None:
        return read_scheduler_file(scheduler_file)
    return scheduler_in_force() if scheduler is None else scheduler


def read_scheduler_file(path: Path) -> str:
    """The address in a file that `dask scheduler --scheduler-file` wrote; refuse one without it."""
    import orjson

    from envprobe_core.files import read_whole

    try:
        stated = orjson.loads(read_whole(path))
        if isinstance(address := stated["address"], str):
            return address
    except OSError as error:
        raise InputError(f"scheduler file {path} cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError):
        pass
    raise InputError(f"scheduler file {path} states no address; `dask scheduler` writes one")


@contextmanager
def cluster_at(address: str | None) -> Iterator[Executor | None]:
    """The executor of a Dask cluster, after a line that says who will work; None without an address."""
    if address is None:
        yield None
        return
    from envprobe_core.parallel import connected

    with connected(address) as client:
        threads = client.ncores().values()
        who = f"workers: {len(threads)}, threads: {sum(threads)}"
        who = who if threads else "no worker yet: waiting for the first"
        typer.echo(f"work goes to the cluster at {address} ({who})", err=True)
        yield client.get_executor()


@contextmanager
def handing_out(address: str | None) -> Iterator[None]:
    """Hand every grid that kernels run inside to a cluster, which is checked first."""
    from envprobe_core.files import environment
    from envprobe_core.parallel import SCHEDULER

    with cluster_at(address):
        pass
    with environment(**({} if address is None else {SCHEDULER: address})):
        yield


def stop_at(faults: Sequence[str], one: str, where: Path) -> None:
    """Spell out the first of some faults, if there are any, and stop with their number, name and place."""
    for text in faults[:LISTED]:
        typer.echo(f"envprobe: {in_one_line(text)}", err=True)
    if faults:
        raise StoppedError(f"{counted(len(faults), one)} in {where}")


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[..., None] | None]:
    """Show a bar on standard error where that is a terminal: what is done, of how much, and what is left.

    The time left is estimated from the pace, or is what the caller says in `seconds`.
    """
    if not sys.stderr.isatty():
        yield None
        return
    import rich.text
    from rich import progress as bars
    from rich.console import Console

    class TimeLeft(bars.TimeRemainingColumn):
        """The time until a moment that is expected, where there is one."""

        max_refresh = None  # each second counts

        def render(self, task: bars.Task) -> rich.text.Text:
            if (end := task.fields["end"]) is None:
                return super().render(task)
            minutes, seconds = divmod(max(0, round(end - time.monotonic())), 60)
            return rich.text.Text(f"{minutes}:{seconds:02d}", style="progress.remaining")

    columns = (
        bars.TextColumn("{task.description}"), bars.BarColumn(10), bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(), bars.TextColumn("left"), TimeLeft(), bars.TextColumn("{task.fields[more]}"),
    )  # fmt: skip
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=None, more="", end=None)

        def show(
            done: int, total: int, left: str = label, more: str = "", seconds: float | None = None
        ) -> None:
            end = None if seconds is None else time.monotonic() + seconds
            progress.update(task, completed=done, total=total, description=left, more=more, end=end)

        yield show


def print_table(
    title: str,
    left: Iterable[str],
    right: Iterable[str],
    rows: Iterable[Iterable[str]],
    *,
    width: int = 160,
    caption: str | None = None,
) -> None:
    """Print a table with columns set to the left, and then to the right; without a terminal, of a width."""
    from rich.console import Console
    from rich.table import Table

    made = Table(title=title or None, title_style="bold", caption=caption, box=None, pad_edge=False)
    made.title_justify = made.caption_justify = "left"
    for place, name in enumerate(left):
        made.add_column(name, no_wrap=place == 0 and not right)
    for name in right:
        made.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        made.add_row(*row)
    console = Console(highlight=False)
    (console if console.is_terminal else Console(highlight=False, width=width)).print(made, "")


def print_json(content: object) -> None:
    """Print JSON and nothing else."""
    import orjson

    sys.stdout.write(orjson.dumps(content, option=orjson.OPT_INDENT_2).decode() + "\n")
