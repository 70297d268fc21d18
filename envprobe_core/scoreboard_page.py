"""The scoreboard as a page shows it: one table of all claims, a legend, counts, and a file to take along.

Verdicts are told by a sign and a word; colour only repeats them. The table is HTML, because it groups rows,
scrolls in both directions by itself and keeps its head in sight.
"""

from __future__ import annotations

import base64
import csv
import html
import io
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING

import yaml

from envprobe_core.claims import find_claim, places
from envprobe_core.claims.judge import (
    HOLDS,
    INCONCLUSIVE,
    INPUT,
    NO_EFFECT,
    NOT_TESTED,
    OTHER_SIZE,
    REVERSES,
    VERDICTS,
)
from envprobe_core.protocols import in_words
from envprobe_core.reproduce.sections import ROOT, find_sections
from envprobe_core.scoreboard import KEYS, as_records
from envprobe_core.show.markup import EMPTY, Html, number, signed

if TYPE_CHECKING:
    import pandas as pd

SIGNS = {
    HOLDS: "✓",
    OTHER_SIZE: "≈",
    INCONCLUSIVE: "?",
    NO_EFFECT: "=",
    REVERSES: "✗",
    "near": "○",
    "differs": "◇",
    "as printed": "☑",
    "not as printed": "☐",
    INPUT: "•",
    NOT_TESTED: "–",
}
MEANINGS = {
    HOLDS: "the interval lies on the claimed side, or within the margin set beforehand",
    OTHER_SIZE: "the same, but it misses the paper's interval: the side agrees, the amount does not",
    INCONCLUSIVE: "the interval reaches to both sides, or across the margin",
    NO_EFFECT: "the two sides agree in every episode: what is compared changes nothing",
    REVERSES: "the interval lies on the other side",
    "near": "a level: ours lies within the margin of the printed one",
    "differs": "a level: ours lies outside the margin; it is another agent's, and contradicts nothing",
    "as printed": "a setting of the experiment is what the paper says",
    "not as printed": "a setting is not what the paper says",
    INPUT: "the agent's profile was fitted to this figure or to an arm of it, so that it tests nothing",
    NOT_TESTED: "these episodes cannot answer it; the table says why",
}
PAGES = {
    "main": "main-results",
    "set-up": "scoreboard",
    "budget": "scoreboard",
    "useful-probes": "what-probes-find",
    "confident-wrong": "what-probes-find",
    "failures": "what-probes-find",
}
"""The notebook that shows a section's claims, where its name is another."""
DIFFERENCES = ("paired", "mcnemar", "equivalence", "contrast", "ordering", "dominance")
SEVERAL = ("ordering", "dominance")
DIGITS = {"points": 2, "share": 3, "steps": 2, "count": 2}
FOLDER = "executed/"


@cache
def _notebooks() -> frozenset[str]:
    return frozenset(find_sections())


@cache
def _moved() -> dict[str, str]:
    return yaml.safe_load((ROOT / "book" / "redirects.yml").read_text(encoding="utf-8"))


def page_of(section: str) -> str | None:
    """Return the notebook that shows a section's claims, None where there is none."""
    name = PAGES.get(section, section)
    name = _moved().get(f"executed/{name}", name).removeprefix("executed/").partition("#")[0]
    return name if name in _notebooks() else None


def _amount(value: float | None, unit: str, sign: bool) -> str:
    if value is None or value != value:
        return EMPTY
    if unit in ("steps", "count") and float(value).is_integer():
        return signed(value, 0) if sign else number(value, 0)
    return (signed if sign else number)(value, DIGITS[unit])


def _ends(low: float, high: float, unit: str) -> str:
    return f"[{_amount(low, unit, False)}, {_amount(high, unit, False)}]"


def _printed(row: object) -> str:
    """The paper's figure with its interval and unit, or the unit alone."""
    unit = row.unit  # type: ignore[attr-defined]
    claim = find_claim(row.claim)  # type: ignore[attr-defined]
    word = "" if unit == "share" else f" {unit}" if unit != "count" else ""
    if claim.value is None:
        return f'<span class="scoreboard-none">no figure{f" ({unit})" if word else ""}</span>'
    text = _amount(claim.value, unit, claim.kind in DIFFERENCES) + word
    if claim.low is not None:
        text += f" <small>{_ends(claim.low, claim.high, unit)}</small>"
    return text


def mark(verdict: str) -> str:
    """Return a verdict as a sign and a word, in its colour."""
    name = verdict.replace(",", "").replace(" ", "-")
    return f'<span class="verdict verdict-{name}">{SIGNS[verdict]}&nbsp;{html.escape(verdict)}</span>'


def _ours(row: object) -> str:
    """One cell: our figure with the interval that decides, and the verdict."""
    verdict, reason = row.verdict, html.escape(row.reason, quote=True)  # type: ignore[attr-defined]
    if verdict == NOT_TESTED and getattr(row, "replayed", False):
        return f'<td title="{reason}">{mark(verdict)}</td>'
    if verdict == NOT_TESTED:
        return f'<td>{mark(verdict)}<br><span class="scoreboard-why">{reason}</span></td>'
    unit, kind = row.unit, row.kind  # type: ignore[attr-defined]
    text = _amount(row.estimate, unit, kind in DIFFERENCES)  # type: ignore[attr-defined]
    ends = _ends(row.low_adjusted, row.high_adjusted, unit)  # type: ignore[attr-defined]
    weakest = "weakest " if kind in SEVERAL else ""
    return f'<td title="{reason}">{mark(verdict)}<br>{weakest}{text} <small>{ends}</small></td>'


def _claim_cell(row: object, folder: str) -> str:
    statement = html.escape(row.statement)  # type: ignore[attr-defined]
    section = row.section  # type: ignore[attr-defined]
    page = page_of(section)
    link = (
        f'<a href="{folder}{page}.html">{html.escape(section)}</a>'
        if page
        else f"<span>{html.escape(section)}</span>"
    )
    return f'<th scope="row">{statement} <span class="scoreboard-link">{link}</span></th>'


def show_scoreboard(board: pd.DataFrame, folder: str = "") -> Html:
    """Show every claim in the paper's order: its figure, ours and the verdict under each protocol.

    Args:
        board: from `scoreboard.load_scoreboard`, with or without what `llm.replayed.join_scoreboard` adds.
        folder: where the pages of sections lie, seen from the page that shows the table.
    """
    protocols = list(dict.fromkeys(board["protocol"]))
    profile = board["profile"].iloc[0]
    width = 2 + len(protocols)
    head = "".join(
        f'<th scope="col">{text}</th>'
        for text in (
            "Claim, and the section that shows it",
            "The paper",
            *(in_words(html.escape(p)) for p in protocols),
        )
    )
    body = []
    for source, part in groupby(board.itertuples(), key=lambda row: row.source):
        body.append(
            f'<tr class="scoreboard-place"><th scope="rowgroup" colspan="{width}">'
            f"<span>{html.escape(places.place(source))}</span></th></tr>"
        )
        for _, cells in groupby(part, key=lambda row: row.claim):
            rows = list(cells)
            body.append(
                f"<tr>{_claim_cell(rows[0], folder)}<td>{_printed(rows[0])}</td>"
                f"{''.join(_ours(row) for row in rows)}</tr>"
            )
    caption = (
        f"{board['claim'].nunique()} claims in the paper's order. Under each protocol: the verdict, our "
        f"figure and the interval that decides, from the simulated agent <code>{profile}</code>."
    )
    if "replayed" in board and board["replayed"].any():
        caption += " Columns that name a model and its prompts are replayed runs, on seeds of their own."
    table = (
        f'<div class="scoreboard" role="region" tabindex="0" aria-label="Scoreboard, profile {profile}">'
        f"<table><caption><span>{caption}</span></caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )
    lines = [f"{row.claim}\t{row.protocol}\t{row.verdict}" for row in board.itertuples()]
    return Html(table, "\n".join(lines))


def show_landing(board: pd.DataFrame) -> Html:
    """Show the scoreboard as the book's first page does, with its counts, legend and file."""
    table = show_scoreboard(board, FOLDER)
    counts = _counts_html(board)
    return Html(f"{table.html}{counts}{show_download(board).html}", table.text)


def _counts_html(board: pd.DataFrame) -> str:
    """Legend and counts in one table: each verdict, what it means, how often it falls."""
    protocols = list(dict.fromkeys(board["protocol"]))
    count = board.groupby(["verdict", "protocol"]).size()
    head = "".join(
        f'<th scope="col">{text}</th>' for text in ("Verdict", "Meaning", *map(in_words, protocols))
    )
    rows = "".join(
        f'<tr><th scope="row">{mark(verdict)}</th><td>{MEANINGS[verdict]}</td>'
        + "".join(f'<td class="scoreboard-count">{count.get((verdict, p), 0)}</td>' for p in protocols)
        + "</tr>"
        for verdict in VERDICTS
    )
    return (
        '<div class="scoreboard-legend" role="region" tabindex="0" aria-label="Legend and counts">'
        f"<table><caption>What the verdicts mean, and how many claims get each.</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def show_legend(board: pd.DataFrame) -> Html:
    """Show what each verdict means and how many claims get it under each protocol."""
    return Html(_counts_html(board), "\n".join(f"{SIGNS[v]} {v}: {MEANINGS[v]}" for v in VERDICTS))


def as_csv(board: pd.DataFrame) -> str:
    """Return the scoreboard as CSV: the keys of `scoreboard.as_records`, unit, n and the reason."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = [key for key in KEYS if key != "interval"]
    writer.writerow([*columns, "interval_low", "interval_high", "unit", "n", "reason"])
    for record, row in zip(as_records(board), board.itertuples(), strict=True):
        low, high = record["interval"] or (None, None)
        count = None if row.n != row.n else row.n
        writer.writerow([*(record[key] for key in columns), low, high, row.unit, count, row.reason])
    return out.getvalue()


def show_download(board: pd.DataFrame) -> Html:
    """Offer the scoreboard as a CSV file that lies inside the page."""
    profile = board["profile"].iloc[0]
    data = base64.b64encode(as_csv(board).encode()).decode()
    name = f"scoreboard-{profile}.csv"
    link = f'<a download="{name}" href="data:text/csv;charset=utf-8;base64,{data}">Download as CSV</a>'
    return Html(
        f'<p class="scoreboard-download">{link} ({len(board)} rows: a claim and a protocol each).</p>', name
    )


def publish(board: pd.DataFrame, name: str) -> None:
    """Keep the table in the notebook for the book's first page, which shows it under `name`."""
    from myst_nb import glue

    glue(name, show_landing(board), display=False)
