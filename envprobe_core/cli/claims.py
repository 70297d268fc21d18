"""``envprobe claims``: every claim of the paper, run and judged here and now."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from envprobe_core.cli import options

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.table import Table

STYLES = {
    "holds": "green",
    "holds, other size": "cyan",
    "inconclusive": "yellow",
    "no effect": "yellow",
    "reverses": "red",
    "near": "green",
    "differs": "yellow",
    "as printed": "green",
    "not as printed": "yellow",
    "input": "magenta",
    "not tested": "dim",
}
WIDTH = 180  # of the table where standard output is no terminal


def claims(
    as_json: options.Json = False,
    profile: options.Profile = "typical",
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            "--protocol",
            metavar="P",
            help="Protocol; may be repeated.",
            show_default="paper observed released",
        ),
    ] = None,
    seeds: Annotated[
        str,
        typer.Option("--seeds", metavar="A:B", help="Seeds A..B-1 of the regime; others run on their own."),
    ] = "0:220",
    regime: Annotated[
        str, typer.Option("--regime", metavar="R", help="Ask claims about S2 of this regime instead.")
    ] = "S2",
    section: Annotated[
        list[str] | None,
        typer.Option("--section", metavar="NAME", help="Only claims of this section; may be repeated."),
    ] = None,
    resamples: Annotated[
        int, typer.Option("--resamples", min=100, max=1_000_000, help="Bootstrap resamples.")
    ] = 10_000,
    jobs: options.Jobs = None,
) -> None:
    """Run the paper's claims and judge each under each protocol.

    With --json: one object a claim and protocol, with the keys id, source, statement, paper, ours, protocol,
    profile, interval, verdict and section. Numbers are in the claim's own unit; `interval` is the adjusted
    one that decides; what there is none of is null. Exit code 2 if a name or value is not accepted.
    """
    from envprobe_core.experiments import PROTOCOLS
    from envprobe_core.scoreboard import as_records, load_scoreboard

    def report(text: str) -> None:
        if not as_json and sys.stderr.isatty():
            print(f"{text} ...", file=sys.stderr)

    board = load_scoreboard(
        tuple(section or ()),
        tuple(protocol or PROTOCOLS.split()),
        profile,
        seeds,
        regime,
        resamples,
        min(jobs or 1, options.CORES),
        report=report,
    )
    if as_json:
        print(json.dumps(as_records(board), ensure_ascii=False, indent=1, allow_nan=False))
        return
    _show(board)


def _show(board: DataFrame) -> None:
    """Print one table a section, and the counts."""
    console = options.console(WIDTH)
    for section in dict.fromkeys(board["section"]):
        console.print(_table(section, board[board["section"] == section]))
        console.print()
    console.print(_counts(board))


def _table(section: str, part: DataFrame) -> Table:
    from rich.table import Table

    from envprobe_core.claims.places import place

    protocols = list(dict.fromkeys(part["protocol"]))
    table = Table(title=section, title_justify="left", box=None, pad_edge=False, title_style="bold")
    table.add_column("claim", ratio=4)
    table.add_column("where", ratio=1)
    table.add_column("paper", justify="right", no_wrap=True)
    for name in protocols:
        table.add_column(name, ratio=2)
    for _, rows in part.groupby("claim", sort=False):
        first = rows.iloc[0]
        table.add_row(
            first["statement"],
            place(first["source"]),
            _number(first["paper_value"]),
            *map(_cell, _rows(rows)),
        )
    return table


def _rows(rows: DataFrame) -> list[Any]:
    return list(rows.itertuples())


def _cell(row: Any) -> str:
    from envprobe_core.scoreboard_page import SIGNS

    mark = f"[{STYLES[row.verdict]}]{SIGNS[row.verdict]} {row.verdict}[/]"
    return mark if row.verdict == "not tested" else f"{mark} {_number(row.estimate)}"


def _number(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.4g}".replace("-", "−")


def _counts(board: DataFrame) -> Table:
    from rich.table import Table

    from envprobe_core.scoreboard_page import SIGNS

    protocols = list(dict.fromkeys(board["protocol"]))
    table = Table(
        title=f"{board['claim'].nunique()} claims, profile {board['profile'].iloc[0]} (simulated agent)",
        title_justify="left",
        box=None,
        pad_edge=False,
        title_style="bold",
    )
    table.add_column("verdict")
    for name in protocols:
        table.add_column(name, justify="right")
    for verdict, style in STYLES.items():
        counts = [((board["verdict"] == verdict) & (board["protocol"] == p)).sum() for p in protocols]
        table.add_row(f"[{style}]{SIGNS[verdict]} {verdict}[/]", *map(str, counts))
    return table
