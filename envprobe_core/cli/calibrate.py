"""``envprobe calibrate``: fit the simulated agent to the few figures of the paper that a fit may use."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envprobe_core.cli import options
from envprobe_core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from envprobe_core.calibration_search import Fit


def calibrate(
    jobs: options.Jobs = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Write the fitted profile, with all that made it, to FILE."
        ),
    ] = None,
) -> None:
    """Fit the profile `calibrated` to the paper, and say how well it fits.

    Only the accuracies of Periodic and the canonical confident-wrong rate are looked at, under `released`.
    The same command gives the same file.
    """
    from envprobe_core.calibration_search import Search, fit_record, write_record
    from envprobe_core.calibration_search import calibrate as fit

    if out is not None and not out.parent.is_dir():
        raise InputError(f"--out {out}: there is no folder {out.parent}")
    start = time.monotonic()
    search = Search(jobs=jobs or options.CORES, tell=_counter())
    fitted, others = fit(search)
    _show(fitted, others)
    typer.echo(f"{len(search.seen)} profiles evaluated in {time.monotonic() - start:.0f} s")
    if out is not None:
        write_record(out, fit_record(fitted, others, search))
        typer.echo(f"written: {out}")


def _counter() -> Callable[[int], None] | None:
    """Count the evaluated profiles on standard error where that is a terminal."""
    if not sys.stderr.isatty():
        return None
    return lambda count: typer.echo(f"\r{count} profiles evaluated", err=True, nl=False)


def _show(fitted: Fit, others: list[Fit]) -> None:
    """Print targets, fitted rates and residuals, and the fits with a kind of target left out."""
    from rich.table import Table

    from envprobe_core.calibration import FREE, TARGETS

    fits = [fitted, *others]
    titles = ["fit", *(f"without {other.left_out}" for other in others)]
    table = Table("target", "where", "paper", box=None, pad_edge=False)
    for title in titles:
        table.add_column(title, justify="right")
    for place, target in enumerate(TARGETS):
        cells = [f"{one.predicted[place]:.3f} ({one.residuals[place]:+.3f})" for one in fits]
        table.add_row(target.symbol, target.place[0], f"{target.value:.3f}", *cells)
    table.add_row("")
    for item in FREE:
        rates = [f"{getattr(one.profile, item.name):.3f}" for one in fits]
        table.add_row(item.name, "free rate", "", *rates)
    table.add_row("objective", "soft L1", "", *(f"{one.loss:.3f}" for one in fits))
    console = options.console(160)
    console.print(table)
    console.print()
