"""``envprobe calibrate``: fit the simulated agent to the few figures of the paper that a fit may use."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import typer

from envprobe_core.cli import options
from envprobe_core.files import refuse_existing, replacing

if TYPE_CHECKING:
    from envprobe_core.analyses.calibration import Fit


def calibrate(
    jobs: options.Jobs = None,
    out: options.option(options.File, "--out", "New file for the fitted profile.", "FILE") = None,
) -> None:
    """Fit the profile `calibrated` to the paper, and say how well it fits.

    Only the accuracies of Periodic and the canonical confident-wrong rate are looked at, under `released`.
    The same command gives the same file, which holds all that made it.
    """
    if out is not None:
        refuse_existing("--out", out)
    from envprobe_core.analyses.calibration import Search, fit_record, write_record
    from envprobe_core.analyses.calibration import calibrate as fit

    start = time.monotonic()
    shown = sys.stderr.isatty()
    tell = (lambda count: typer.echo(f"\r{count} profiles evaluated", err=True, nl=False)) if shown else None
    search = Search(jobs=jobs or options.CORES, tell=tell)
    fitted, others = fit(search)
    _show(fitted, others)
    typer.echo(f"{len(search.seen)} profiles evaluated in {time.monotonic() - start:.0f} s")
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        with replacing(out, new=True) as temporary:
            write_record(temporary, fit_record(fitted, others, search))
        typer.echo(f"written: {out}")


def _show(fitted: Fit, others: list[Fit]) -> None:
    """Print targets, fitted rates and residuals, and the fits with a kind of target left out."""
    from envprobe_core.analyses.calibration import FREE, TARGETS

    fits = [fitted, *others]
    titles = ["fit", *(f"without {other.left_out}" for other in others)]
    table = options.table("", ["target", "where"], ["paper", *titles])
    for place, target in enumerate(TARGETS):
        cells = [f"{one.predicted[place]:.3f} ({one.residuals[place]:+.3f})" for one in fits]
        table.add_row(target.symbol, target.place[0], f"{target.value:.3f}", *cells)
    table.add_row("")
    for item in FREE:
        rates = [f"{getattr(one.profile, item.name):.3f}" for one in fits]
        table.add_row(item.name, "free rate", "", *rates)
    table.add_row("objective", "soft L1", "", *(f"{one.loss:.3f}" for one in fits))
    options.console(160).print(table, "")
