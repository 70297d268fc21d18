"""A run on a language model, as the terminal shows it: the live line, the last line, why it stopped."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from envprobe_core.llm.client import Counts
    from envprobe_core.llm.running import Service
    from envprobe_core.runs.folder import RunFolder
    from envprobe_core.runs.summary import Summary


def run_on_model(folder: RunFolder, service: Service) -> list[Summary]:
    """Run what a folder lacks, with a live line on standard error where that is a terminal."""
    from envprobe_core.llm.running import run_missing

    missing = folder.missing()
    # a job that a script put into the background ignores interrupts, and asyncio then would end on none
    orders = {signal.SIGTERM: _interrupt, signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, handler) for number, handler in orders.items()}
    try:
        total = sum(len(part.seeds) for part in missing)
        with service.at_work() as ready, _live_line(total, service) as notice:
            return run_missing(folder, missing, ready, notice)
    except KeyboardInterrupt:
        kept = f"all answers are kept in {service.answers.path}: give the command again to go on"
        typer.echo(f"envprobe: interrupted; nothing was scored, {kept}", err=True)
        raise typer.Abort from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        service.answers.close()


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Treat an order to end as an interrupt from the keyboard: calls under way are stored, and it is said."""
    signal.raise_signal(signal.SIGINT)


@contextmanager
def _live_line(total: int, service: Service) -> Iterator[Callable[[int, Counts], None]]:
    """Show episodes, calls, answers from the store, tokens, cost and unusable answers."""
    if not sys.stderr.isatty():
        yield lambda done, counts: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from envprobe_core.llm.prices import dollars

    priced = bool(service.prices)
    bar = (TextColumn("episodes"), BarColumn(10), MofNCompleteColumn())
    columns = (*bar, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    started = time.monotonic()
    with Progress(
        *columns, TextColumn("{task.description}"), console=Console(stderr=True), transient=True
    ) as progress:
        task = progress.add_task("", total=total)

        def notice(done: int, counts: Counts) -> None:
            cost = f", {dollars(counts.cost)}" if priced else ""
            tokens = counts.prompt_tokens + counts.completion_tokens
            speed = tokens / max(time.monotonic() - started, 1.0)
            text = (
                f"{counts.calls} calls ({counts.faults} failed), {counts.replayed} from the store, "
                f"{counts.prompt_tokens}+{counts.completion_tokens} tokens, {speed:.0f} a second{cost}, "
                f"{counts.unusable} unusable, {counts.cut} cut"
            )
            progress.update(task, completed=done, description=text)

        yield notice


def say_calls(folder: Path) -> str:
    """Say in one line what a run on a model asked for, and how much of it was invalid."""
    from envprobe_core.llm.running import total_tally
    from envprobe_core.runs.folder import CALLS

    total = total_tally((folder / CALLS).read_bytes())
    verdicts = (
        f", {total['invalid_verdicts']} of {total['verdicts']} verdicts invalid" if total["verdicts"] else ""
    )
    return (
        f"{total['calls']} answers ({total['reasks']} asked again), {total['invalid_updates']} belief "
        f"updates invalid{verdicts}, {total['prompt_tokens']} + {total['completion_tokens']} tokens"
    )


@contextmanager
def stopped_runs() -> Iterator[None]:
    """Say in one line why a run on a model stopped, and end with exit code 1."""
    from envprobe_core.llm.asking import RunStoppedError

    try:
        yield
    except RunStoppedError as error:
        typer.echo(f"envprobe: {error}", err=True)
        raise typer.Exit(1) from None
