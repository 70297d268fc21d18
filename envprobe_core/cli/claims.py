"""``envprobe claims``: every claim of the paper, run and judged here and now."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from envprobe_core.cli import options
from envprobe_core.cli.options import Texts, option

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
    protocol: option(
        Texts, "--protocol", "Protocol; may be repeated.", "P", "paper observed released"
    ) = None,
    seeds: option(str, "--seeds", "Seeds A..B-1 of the regime; others run on their own.", "A:B") = "0:220",
    regime: option(str, "--regime", "Ask claims about S2 of this regime instead.", "R") = "S2",
    section: option(Texts, "--section", "Only claims of this section; may be repeated.", "NAME") = None,
    resamples: option(int, "--resamples", "Bootstrap resamples.", min=100, max=1_000_000) = 10_000,
    jobs: options.Jobs = None,
) -> None:
    """Run the paper's claims and judge each under each protocol.

    With --json: one object a claim and protocol, with the keys id, source, statement, paper, ours, protocol,
    profile, interval, verdict and section. Numbers are in the claim's own unit; `interval` is the adjusted
    one that decides; what there is none of is null. Exit code 2 if a name or value is not accepted.
    """
    from envprobe_core.analyses.scoreboard import as_records, load_scoreboard
    from envprobe_core.protocols import PROTOCOLS

    def report(text: str) -> None:
        if not as_json and sys.stderr.isatty():
            print(f"{text} ...", file=sys.stderr)

    chosen = tuple(section or ()), tuple(protocol or PROTOCOLS)
    workers = min(jobs or 1, options.CORES)
    board = load_scoreboard(*chosen, profile, seeds, regime, resamples, workers, report=report)
    if as_json:
        print(json.dumps(as_records(board), ensure_ascii=False, indent=1, allow_nan=False))
        return
    console = options.console(WIDTH)
    for name, part in board.groupby("section", sort=False):
        console.print(_table(str(name), part), "")
    console.print(_counts(board))


def _table(section: str, part: DataFrame) -> Table:
    """Return a section's claims, a row each: the paper's number, and verdict and number a protocol."""
    from envprobe_core.claims.places import place

    table = options.table(section, ["claim", "where"], ["paper"])
    table.columns[0].ratio, table.columns[1].ratio = 4, 1
    for name in dict.fromkeys(part["protocol"]):
        table.add_column(name, ratio=2)
    for _, rows in part.groupby("claim", sort=False):
        first = rows.iloc[0]
        cells = map(_cell, rows.itertuples())
        table.add_row(first["statement"], place(first["source"]), _number(first["paper_value"]), *cells)
    return table


def _marked(verdict: str) -> str:
    from envprobe_core.analyses.scoreboard import SIGNS

    return f"[{STYLES[verdict]}]{SIGNS[verdict]} {verdict}[/]"


def _cell(row: Any) -> str:
    mark = _marked(row.verdict)
    return mark if row.verdict == "not tested" else f"{mark} {_number(row.estimate)}"


def _number(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.4g}".replace("-", "−")


def _counts(board: DataFrame) -> Table:
    protocols = list(dict.fromkeys(board["protocol"]))
    title = f"{board['claim'].nunique()} claims, profile {board['profile'].iloc[0]} (simulated agent)"
    table = options.table(title, ["verdict"], protocols)
    for verdict in STYLES:
        counts = [((board["verdict"] == verdict) & (board["protocol"] == p)).sum() for p in protocols]
        table.add_row(_marked(verdict), *map(str, counts))
    return table
