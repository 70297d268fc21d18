"""Options that several commands take, each declared once, and what commands show in common.

An option is a parameter of a command, or a field of a group that several commands take: a dataclass. Its type
is `Annotated[kind, metavar, help]`; behind the help may stand what is shown as the default, and the `range`
of a whole number. `expanded` makes Typer's options of them.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from envprobe_core.errors import InputError, StoppedError, counted, in_one_line

if TYPE_CHECKING:
    from envprobe_core.agents.model import ModelAgent
    from envprobe_core.runs.manifest import RunInputs

CORES = os.cpu_count() or 1
LARGEST = 10**9  # seconds or dollars
LISTED = 20  # faults that are spelled out

Text, Whole, Number, File, Texts = str | None, int | None, float | None, Path | None, list[str] | None
READERS = {Whole: int, int: int, Number: float, float: float, File: Path, Path: Path}


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Make Typer's options of a command's parameters, and of each field of every group among them.

    Of `Annotated[Group, ("model", "prices")]` it has only these fields, in the order of the group.
    """
    hints, groups, parameters = get_type_hints(command, include_extras=True), {}, []

    def add(name: str, hint: Any, default: Any, panel: str | None = None) -> None:
        made = {"default": default, "annotation": _as_typer_has_it(name, hint, panel)}
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, **made))

    for name, parameter in inspect.signature(command).parameters.items():
        only = getattr(hints[name], "__metadata__", [()])[0]
        kind = getattr(hints[name], "__origin__", hints[name])
        if not is_dataclass(kind):
            add(name, hints[name], parameter.default)
            continue
        own = get_type_hints(kind, include_extras=True)
        groups[name] = kind, [field.name for field in fields(kind) if not only or field.name in only]
        for field in fields(kind):
            if field.name in groups[name][1]:
                add(field.name, own[field.name], field.default, kind.PANEL)

    @functools.wraps(command)
    def call(**given: Any) -> None:
        for name, (kind, taken) in groups.items():
            given[name] = kind(**{field: given.pop(field) for field in taken})
        command(**given)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _as_typer_has_it(name: str, hint: Any, panel: str | None) -> Any:
    """The type of a parameter for Typer, whose own declarations stay as they are."""
    kind, (metavar, *about) = getattr(hint, "__origin__", hint), getattr(hint, "__metadata__", [None])
    if not isinstance(metavar, str):
        return hint
    told, shown = about[0], next((one for one in about[1:] if isinstance(one, str)), True)
    within = next((one for one in about[1:] if isinstance(one, range)), None)
    if within is not None:
        told += f" [{within[0]}..{within[-1]}]"
    reader = functools.partial(_read, READERS[kind], within) if kind in READERS else None
    flag = f"--{name.rstrip('_').replace('_', '-')}"
    how = {"metavar": metavar or None, "show_default": shown, "rich_help_panel": panel, "parser": reader}
    return Annotated[kind, typer.Option(flag, help=told, **how)]


def _read(kind: type, within: range | None, text: Any) -> Any:
    """Read a path, or a number as people write it: Python's `1_000` and digits of other scripts are none."""
    if isinstance(text, kind):  # a default
        return text
    if kind is Path:
        if not text:  # a variable that is not set; Python takes it for the working folder
            raise typer.BadParameter("'' names no file or folder")
        return Path(text)
    try:
        if "_" in text or not text.isascii():
            raise ValueError
        value = kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise typer.BadParameter(f"{text!r} is not {what}") from None
    if within is not None and value not in within:
        raise typer.BadParameter(f"{value} is not in {within[0]}..{within[-1]}")
    return value


def check_positive(option: str, value: float | None) -> float | None:
    """A number that was given as an option; one that is not above 0 and below `LARGEST` is refused."""
    if value is not None and not 0 < value < LARGEST:
        raise InputError(f"{option} {value}: accepted is a number above 0 and below {LARGEST:,}")
    return value


Json = Annotated[bool, "", "Print JSON on standard output, and nothing else."]
Profile = Annotated[str, "NAME", "Profile of the simulated agent."]
Jobs = Annotated[Whole, "N", "Processes; changes nothing but speed.", "as many as pay", range(1, 257)]
GIVEN = "Give a parameter another value in every chosen section that has it; may be repeated."
Assignments = Annotated[Texts, typer.Option("--param", "-p", metavar="NAME=VALUE", help=GIVEN)]
OWN_SEEDS = "the regime's own; at S2 0:220, under released 42:262"
SWITCHED = "Protocol, also with switches turned, as in paper:clock=stands,end=success; may be repeated."


@dataclass(frozen=True)
class Grid:
    """The cells of a run."""

    PANEL = None

    world: Annotated[Texts, "W", "World; may be repeated; `all` for every one."] = None
    policy: Annotated[Texts, "P", "Policy; may be repeated; `all` for every one."] = None
    regime: Annotated[str, "R", "Stress regime."] = "S2"
    protocol: Annotated[Texts, "P", SWITCHED, "paper"] = None
    seeds: Annotated[Text, "A:B", "Seeds A..B-1, a seed, or several of these with commas.", OWN_SEEDS] = None
    budget: Annotated[Whole, "N", "Probes an episode may fire.", "horizon / 4"] = None
    threshold: Annotated[Number, "X", "Score from which a policy with a threshold probes.", "1.5"] = None

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


SCHEDULER = "Hand the work to the Dask cluster of this scheduler, or of ENVPROBE_SCHEDULER."


@dataclass(frozen=True)
class Cluster:
    """The Dask cluster that work is handed to."""

    PANEL = "Past one machine"

    scheduler: Annotated[Text, "tcp://HOST:8786", SCHEDULER, "local processes"] = None
    scheduler_file: Annotated[File, "FILE", "The same, as `dask scheduler --scheduler-file` wrote it."] = None

    def address(self) -> str | None:
        """The address of the cluster to use, None for this machine alone; two are refused."""
        from envprobe_core.parallel import scheduler_in_force

        if self.scheduler is not None and self.scheduler_file is not None:
            raise InputError("--scheduler cannot stand beside --scheduler-file; one names the cluster")
        if self.scheduler_file is not None:
            return read_scheduler_file(self.scheduler_file)
        return scheduler_in_force() if self.scheduler is None else self.scheduler


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
