"""Options that several commands take, each declared once, and what commands show in common.

A command takes a group of options as one argument: `expanded` makes an option of each field of its dataclass.
"""

from __future__ import annotations

import functools
import inspect
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from envprobe_core.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from envprobe_core.llm import ModelAgent
    from envprobe_core.runs.manifest import RunInputs

CORES = os.cpu_count() or 1
LARGEST = 10**9  # seconds or dollars
MACHINES = "Past one machine"
Text, Whole, Number, File, Texts = str | None, int | None, float | None, Path | None, list[str] | None


def option(
    kind: Any,
    name: str,
    about: str,
    metavar: str | None = None,
    default: str | bool = True,
    panel: str | None = None,
    min: int | None = None,
    max: int | None = None,
) -> Any:
    """Return the type of an option.

    Args:
        kind: of its value.
        name: with its short form, if it has one, behind a blank.
        about: the help.
        metavar: what stands for the value there.
        default: what help shows where none is given.
        panel: the part of the help in which it stands.
        min, max: the bounds of a whole number.
    """
    reader = {Whole: int, int: int, Number: float, float: float}.get(kind)
    more: dict[str, Any] = {}
    if reader is not None:
        more["parser"] = functools.partial(_read_number, reader, min, max)
        metavar = metavar or ("X" if reader is float else "N")
        about += f" [{min}..{max}]" if max is not None else ""
    return Annotated[
        kind,
        typer.Option(
            *name.split(), help=about, metavar=metavar, show_default=default, rich_help_panel=panel, **more
        ),
    ]


def _read_number(kind: type, least: int | None, most: int | None, text: Any) -> Any:
    """Read a number as people write it: Python's `1_000` and digits of other scripts are none."""
    if isinstance(text, kind):  # a default
        return text
    try:
        if "_" in text or not text.isascii():
            raise ValueError
        value = kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise typer.BadParameter(f"{text!r} is not {what}") from None
    if (least is not None and value < least) or (most is not None and value > most):
        raise typer.BadParameter(f"{value} is not in {least}..{most}")
    return value


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each field of every dataclass among its arguments.

    Of `Annotated[Group, ("model", "prices")]` it has only these, in the order of the group.
    """
    hints, groups, parameters = get_type_hints(command, include_extras=True), {}, []
    for name, parameter in inspect.signature(command).parameters.items():
        only, kind = getattr(hints[name], "__metadata__", [()])[0], hints[name]
        kind = getattr(kind, "__origin__", kind)
        if not is_dataclass(kind):
            parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hints[name]))
            continue
        own = get_type_hints(kind, include_extras=True)
        taken = [field for field in fields(kind) if not only or field.name in only]
        groups[name] = kind, [field.name for field in taken]
        for field in taken:
            default = parameter.empty if field.default is MISSING else field.default
            made = {"default": default, "annotation": own[field.name]}
            parameters.append(inspect.Parameter(field.name, parameter.KEYWORD_ONLY, **made))

    @functools.wraps(command)
    def call(**given: Any) -> None:
        for name, (kind, taken) in groups.items():
            given[name] = kind(**{field: given.pop(field) for field in taken})
        command(**given)

    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


Json = option(bool, "--json", "Print JSON on standard output, and nothing else.")
Profile = option(str, "--profile", "Profile of the simulated agent.", "NAME")
Jobs = option(
    Whole, "--jobs", "Processes; changes nothing but speed.", None, "as many as pay", min=1, max=256
)
Assignments = option(
    Texts,
    "--param -p",
    "Give a parameter another value than the notebook's; may be repeated. It is applied to every chosen "
    "section that has it.",
    "NAME=VALUE",
)


@dataclass(frozen=True)
class Grid:
    """The cells of a run."""

    world: option(Texts, "--world", "World; may be repeated; `all` for every one.", "W") = None
    policy: option(Texts, "--policy", "Policy; may be repeated; `all` for every one.", "P") = None
    regime: option(str, "--regime", "Stress regime.", "R") = "S2"
    protocol: option(
        Texts,
        "--protocol",
        "Protocol, also with switches turned, as in paper:clock=stands,end=success; may be repeated.",
        "P",
        "paper",
    ) = None
    seeds: option(
        Text,
        "--seeds",
        "Seeds A..B-1, a seed, or several of these with commas.",
        "A:B",
        "the regime's own; at S2 0:220, under released 42:262",
    ) = None
    budget: option(Whole, "--budget", "Probes an episode may fire.", "N", "horizon / 4") = None
    threshold: option(
        Number, "--threshold", "Score from which a policy probes; for policies that have one.", "X", "1.5"
    ) = None

    def inputs(self, profile: str, logs: str, agent: ModelAgent | None) -> RunInputs:
        """Check everything and return what a run is asked for."""
        from envprobe_core.policies import POLICIES
        from envprobe_core.runs.manifest import RunInputs
        from envprobe_core.worlds import WORLDS

        for name in ("world", "policy"):
            if not getattr(self, name):
                raise InputError(f"Missing option '--{name}'")
        worlds, policies = _every(self.world, WORLDS), _every(self.policy, POLICIES)
        protocols, numbers = self.protocol or ["paper"], (self.budget, self.threshold, self.seeds)
        return RunInputs(worlds, policies, self.regime, protocols, profile, *numbers, logs, agent)


def _every(names: list[str] | None, known: Iterable[str]) -> list[str]:
    """Replace the word `all` by every name."""
    return [each for name in names or () for each in (known if name == "all" else [name])]


@dataclass(frozen=True)
class Cluster:
    """The Dask cluster that work is handed to."""

    scheduler: option(
        Text,
        "--scheduler",
        "Hand the work to the Dask cluster of this scheduler, as in tcp://HOST:8786. Also taken from "
        "ENVPROBE_SCHEDULER.",
        "ADDRESS",
        "local processes",
        MACHINES,
    ) = None
    scheduler_file: option(
        File,
        "--scheduler-file",
        "The same, with the file that `dask scheduler --scheduler-file` wrote.",
        "FILE",
        panel=MACHINES,
    ) = None

    def address(self) -> str | None:
        """Return the address of the cluster to use, None for this machine alone.

        Raises:
            InputError: if both are given, or the file states no address.
        """
        from envprobe_core.pool import read_scheduler_file, scheduler_in_force

        if self.scheduler is not None and self.scheduler_file is not None:
            raise InputError("--scheduler cannot stand beside --scheduler-file; one names the cluster")
        if self.scheduler_file is not None:
            return read_scheduler_file(self.scheduler_file)
        return scheduler_in_force() if self.scheduler is None else self.scheduler


@contextmanager
def handing_out(address: str | None) -> Iterator[None]:
    """Check a cluster, say in one line who will work, and hand it every grid that is run inside.

    Raises:
        InputError: if no scheduler answers, or a worker is refused.
    """
    from envprobe_core.files import environment
    from envprobe_core.pool import ENVIRONMENT, check_cluster

    if address is not None:
        workers, threads = check_cluster(address)
        who = f"workers: {workers}, threads: {threads}" if workers else "no worker yet: waiting for the first"
        typer.echo(f"work goes to the cluster at {address} ({who})", err=True)
    with environment(**({} if address is None else {ENVIRONMENT: address})):
        yield


@contextmanager
def told_losses() -> Iterator[None]:
    """Say in one line that a process or a cluster was lost, and end with exit code 1."""
    from concurrent.futures.process import BrokenProcessPool

    from envprobe_core.pool import ClusterLostError

    try:
        yield
    except BrokenProcessPool:
        stop("a process was ended from outside, perhaps for lack of memory; run the command again")
    except ClusterLostError as error:
        stop(str(error))


def stop(text: str) -> None:
    """Say why a command stops, and end it with exit code 1."""
    typer.echo(f"envprobe: {text}", err=True)
    raise typer.Exit(1) from None


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[..., None] | None]:
    """Show a bar on standard error where that is a terminal: what is done, of how much, and what is left."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress as bars
    from rich.console import Console

    columns = (
        bars.TextColumn("{task.description}"), bars.BarColumn(10), bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(), bars.TextColumn("left"), bars.TimeRemainingColumn(),
        bars.TextColumn("{task.fields[more]}"),
    )  # fmt: skip
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=None, more="")
        yield lambda done, total, left=label, more="": progress.update(
            task, completed=done, total=total, description=left, more=more
        )


def check_positive(option: str, value: float | None) -> float | None:
    """Return a number that was given as an option, or None where none was.

    Raises:
        InputError: if it is not one above 0 and below `LARGEST`.
    """
    if value is not None and not 0 < value < LARGEST:
        raise InputError(f"{option} {value}: accepted is a number above 0 and below {LARGEST:,}")
    return value


def orders_to_end() -> list[signal.Signals]:
    """Return the signals that ask a command to end: a lost terminal too, unless nohup ignores it."""
    lost = [] if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else [signal.SIGHUP]
    return [signal.SIGTERM, *lost]


def console(width: int) -> Console:
    """Return standard output for tables, of some width where it is no terminal."""
    from rich.console import Console

    made = Console(highlight=False)
    return made if made.is_terminal else Console(highlight=False, width=width)


def table(
    title: str, left: Iterable[str], right: Iterable[str] = (), rows: Iterable[Iterable[str]] = ()
) -> Table:
    """Return a plain table with columns set to the left, and then to the right."""
    from rich.table import Table

    made = Table(title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for place, name in enumerate(left):
        made.add_column(name, no_wrap=place == 0 and not right)
    for name in right:
        made.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        made.add_row(*row)
    return made


def print_json(content: list[Any] | Mapping[str, Any]) -> None:
    """Print JSON and nothing else."""
    import orjson

    sys.stdout.write(orjson.dumps(content, option=orjson.OPT_INDENT_2).decode() + "\n")
