"""The scoreboard as a page shows it: every claim with the paper's figure, ours, and the verdicts."""

import html
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import pandas as pd

from envprobe_book.analyses.scoreboard import SIGNS, as_csv
from envprobe_book.claims import LEVELS, find_claim, paper_items
from envprobe_book.claims.judge import (
    CANNOT_DIFFER,
    HOLDS,
    INCONCLUSIVE,
    INPUT,
    NEGLIGIBLE,
    NO_EFFECT,
    NOT_TESTED,
    OTHER_SIZE,
    REVERSES,
    VERDICTS,
)
from envprobe_book.pages.markup import Html, download
from envprobe_book.pages.review import PAGES, amount, interval, mark, other_agent, verdict_data
from envprobe_core.protocols import in_words

MEANINGS = {
    HOLDS: "the interval lies on the claimed side, or within the margin set beforehand",
    OTHER_SIZE: "the same, but it misses the paper's interval: the side agrees, the amount does not",
    INCONCLUSIVE: "the interval reaches to both sides, or across the margin",
    NO_EFFECT: "the two sides agree in every episode: what is compared changes nothing",
    NEGLIGIBLE: "the whole interval lies within half a point of zero",
    CANNOT_DIFFER: "at 95%, fewer than 3 in 100 pairs of episodes differ, so no other word was possible: not "
    "counted, and the settled scribe is asked instead",
    REVERSES: "the interval lies on the other side, or outside the margin",
    "near": "a level: ours lies within the margin of the printed one",
    "differs": "a level: ours lies outside the margin; it is another agent's, and contradicts nothing",
    "as printed": "a setting of the experiment is what the paper says",
    "not as printed": "a setting is not what the paper says",
    INPUT: "the agent's profile was fitted to this figure or to an arm of it, so that it tests nothing",
    NOT_TESTED: "these episodes cannot answer it; the table says why",
}


def show_legend(board: pd.DataFrame) -> Html:
    """What each verdict means, and how many claims of a board get it under each protocol."""
    protocols, count = list(dict.fromkeys(board["protocol"])), board.groupby(["verdict", "protocol"]).size()
    rows = ""
    for verdict in VERDICTS:
        counts = "".join(f'<td class="scoreboard-count">{count.get((verdict, p), 0)}</td>' for p in protocols)
        rows += f'<tr><th scope="row">{mark(verdict)}</th><td>{MEANINGS[verdict]}</td>{counts}</tr>'
    heads = ["Verdict", "Meaning", *map(in_words, protocols)]
    head = "".join(f'<th scope="col">{title}</th>' for title in heads)
    return Html(
        '<div class="scoreboard-legend" role="region" tabindex="0" aria-label="Legend and counts">'
        "<table><caption>What the verdicts mean, and how many claims get each.</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>",
        "\n".join(f"{SIGNS[verdict]} {verdict}: {MEANINGS[verdict]}" for verdict in VERDICTS),
    )


def show_download(board: pd.DataFrame) -> Html:
    """A link to a board of one profile as a CSV file, which lies inside the page."""
    name = f"scoreboard-{board['profile'].iloc[0]}.csv"
    link = download(name, "Download as CSV", as_csv(board), "text/csv;charset=utf-8")
    rows = f"({len(board)} rows: a claim and a protocol each)."
    return Html(f'<p class="scoreboard-download">{link} {rows}</p>', name)


def show_scoreboard(
    board: pd.DataFrame,
    titles: Mapping[str, str],
    *,
    anchors: bool = True,
    instead: pd.DataFrame | None = None,
) -> Html:
    """Every claim of a board in its order: the paper's figure, ours, and the verdict under each protocol.

    Args:
        board: of one profile, as `judge` or `add_replays` gives it.
        titles: of the sections, by name; each claim links to the one that shows it.
        instead: what another agent says where this one cannot differ, as `ask_settled` gives it.
        anchors: whether links can lead to a claim, which only one board of a page can have.
    """
    protocols, profile = list(dict.fromkeys(board["protocol"])), board["profile"].iloc[0]
    other = {} if instead is None else {row.claim: row for row in instead.itertuples()}
    body = ""
    for source, part in groupby(board.itertuples(), key=lambda row: row.source):
        place = f"<span>{html.escape(paper_items.place(source))}</span>"
        span = f'<th scope="rowgroup" colspan="{2 + len(protocols)}">{place}</th>'
        body += f'<tr class="scoreboard-place">{span}</tr>'
        by_claim = groupby(part, key=lambda row: row.claim)
        body += "".join(_claim_row(list(rows), titles, anchors, other) for _, rows in by_claim)
    caption = (
        f"{board['claim'].nunique()} claims in the paper's order. Under each protocol: the verdict, our "
        f"figure and the interval that decides, from the simulated agent <code>{profile}</code>."
    )
    if "replayed" in board and board["replayed"].any():
        caption += " Columns that name a model and its prompts are replayed runs, on seeds of their own."
    heads = [
        "Claim, and the section that shows it",
        "The paper",
        *(_column_title(board, name) for name in protocols),
    ]
    head = "".join(f'<th scope="col">{title}</th>' for title in heads)
    lines = [f"{row.claim}\t{row.protocol}\t{row.verdict}" for row in board.itertuples()]
    return Html(
        f'<div class="scoreboard" role="region" tabindex="0" aria-label="Scoreboard, profile {profile}">'
        f"<table><caption><span>{caption}</span></caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>",
        "\n".join(lines),
    )


def _claim_row(
    rows: Sequence[Any], titles: Mapping[str, str], anchors: bool, other: Mapping[str, Any]
) -> str:
    """A row: the claim and the section that shows it, the paper's figure, ours by protocol."""
    first = rows[0]
    page = PAGES[first.section]
    link = f'<a href="{page}.html">{html.escape(titles[page])}</a>'
    claim = f'{html.escape(first.statement)} <span class="scoreboard-link">{link}</span>'
    own = "".join(_our_cell(row, other.get(row.claim)) for row in rows)
    told = verdict_data({row.protocol: row.verdict for row in rows})
    name = f' id="claim-{first.claim}"' if anchors else ""
    return f'<tr{name}{told}><th scope="row">{claim}</th><td>{_printed_cell(first)}</td>{own}</tr>'


def _printed_cell(row: Any) -> str:
    """The paper's figure with its interval and unit, or the unit alone."""
    claim, unit = find_claim(row.claim), row.unit
    word = "" if unit in ("share", "count") else f" {unit}"
    if claim.value is None:
        return f'<span class="scoreboard-none">no figure{f" ({unit})" if word else ""}</span>'
    text = amount(claim.value, unit, claim.kind not in LEVELS) + word
    if claim.low is None or claim.high is None:
        return text
    return f"{text} {interval(claim.low, claim.high, unit)}"


def _our_cell(row: Any, other: Any = None) -> str:
    """Our figure with the interval that decides, and the verdict; another agent's where it cannot differ."""
    reason, told = html.escape(row.reason, quote=True), mark(row.verdict)
    if row.verdict == NOT_TESTED and not getattr(row, "replayed", False):
        return f'<td>{told}<br><span class="scoreboard-why">{reason}</span></td>'
    if row.verdict != NOT_TESTED:
        text = f"{row.held} hold, weakest " if row.held else ""
        text += amount(row.estimate, row.unit, row.kind not in LEVELS)
        told += f"<br>{text} {interval(row.low_adjusted, row.high_adjusted, row.unit)}"
    if other is not None and row.verdict == CANNOT_DIFFER:
        told += f"<br>{html.escape(other_agent(other))}: {mark(other.verdict)}<br>"
        told += f"{amount(other.estimate, other.unit, other.kind not in LEVELS)} "
        told += interval(other.low_adjusted, other.high_adjusted, other.unit)
    return f'<td title="{reason}">{told}</td>'


def _column_title(board: pd.DataFrame, protocol: str) -> str:
    """A protocol in words; of a replayed run also which share of its model's updates was unusable, if any."""
    invalid = board.loc[board["protocol"] == protocol, "invalid"].iloc[0] if "invalid" in board else 0
    share = f"; {invalid:.1%} of belief updates invalid" if invalid > 0 else ""
    return html.escape(f"{in_words(protocol)}{share}")
