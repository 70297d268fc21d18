"""The paper's tables as a page: every printed number is a link to what becomes of it.

Without JavaScript they are plain tables, and a link opens the fold below its table. `review.js` shows the
same beside the number, and hides what a reader has not asked for.
"""

import html
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from envprobe_book.analyses.review import Typical, campaigns_of, recorded_of
from envprobe_book.analyses.scoreboard import GROUPS, SIGNS, as_printed
from envprobe_book.claims import LEVELS, Claim, PaperValue
from envprobe_book.claims.judge import NOT_TESTED
from envprobe_book.claims.printed import (
    COUNT,
    INTERVAL,
    Cell,
    PrintedTable,
    claim_of,
    printed_tables,
    quantity,
)
from envprobe_book.pages.figures import policy_title, titled
from envprobe_book.pages.markup import EMPTY, Html, bracket, listed, number, signed
from envprobe_book.pages.switches import deed
from envprobe_book.widgets.host import page_tools
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import in_words

SCRIPT, STYLE = "page-review.js", "review.css"
"""What a page with the tables loads."""
PAGES = {  # the page that shows a section's claims
    "environments": "environments", "main": "main-results", "pareto": "pareto", "budget": "scoreboard",
    "ordering": "terms", "ablation": "terms", "collapse": "over-time", "drift": "over-time",
    "useful-probes": "what-probes-find", "confident-wrong": "what-probes-find",
    "failures": "what-probes-find", "stress": "other-settings", "set-up": "scoreboard",
}  # fmt: skip
IN_SIGHT = 3  # tables: the results; what follows is folded
DIGITS = {"points": 2, "share": 3, "steps": 2, "count": 2}
RECORD_PAGE = "what-the-repository-records.html"
_STRATA = {
    "procedural": "Tools", "spatial": "Rooms and graphs", "combined": "All worlds",
    "unstated": "Worlds not stated",
}  # fmt: skip


def review_script() -> str:
    """The script of the tables' page as one text, with the tools that it uses."""
    own = (Path(__file__).parent / "review.js").read_text(encoding="utf-8")
    return f"{page_tools()}\n{own}"


def mark(verdict: str) -> str:
    """A verdict as a sign and a word; colour only repeats them."""
    name = verdict.replace(",", "").replace(" ", "-")
    return f'<span class="verdict verdict-{name}">{SIGNS[verdict]}&nbsp;{html.escape(verdict)}</span>'


def other_agent(row: Any) -> str:
    """The agent that answers in place of one in which the two sides cannot differ, and its protocol."""
    return f"the agent {row.profile}, {in_words(row.protocol)}"


def amount(value: float | None, unit: str, sign: bool = False) -> str:
    """A number of a claim in its own unit, with the digits of that unit; a dash where there is none."""
    if value is None or value != value:
        return EMPTY
    whole = unit in ("steps", "count") and float(value).is_integer()
    return (signed if sign else number)(value, 0 if whole else DIGITS[unit])


def interval(low: float, high: float, unit: str) -> str:
    """An interval of a claim, in small print."""
    return f"<small>[{amount(low, unit)}, {amount(high, unit)}]</small>"


def verdict_data(verdicts: Mapping[str, str]) -> str:
    """The attribute by which the page's script knows an element's verdicts: protocol -> verdict."""
    told = html.escape(json.dumps(dict(verdicts), separators=(",", ":")), quote=True)
    return f' data-verdicts="{told}"'


@dataclass(frozen=True)
class Findings:
    """What is known of every claim: what the tables' notes tell."""

    board: pd.DataFrame  # of `judge`
    turns: pd.DataFrame  # of `find_turns`
    episodes: Mapping[tuple[str, str], Typical]  # of `typical_episodes`
    settings: Mapping[tuple[str, str], float] = field(default_factory=dict)  # of `own_settings`
    base: str = "paper"  # the protocol in which `turns` turned one switch at a time
    instead: pd.DataFrame | None = None  # of `ask_settled`

    def rows(self, claim: str) -> pd.DataFrame:
        """What the board says of a claim, a row a protocol."""
        return self.board[self.board["claim"] == claim]


def show_tables(findings: Findings, tables: Iterable[PrintedTable] | None = None) -> Html:
    """The paper's tables with a link in every cell, and below each what its links lead to."""
    shown = list(printed_tables() if tables is None else tables)
    seen: set[str] = set()
    parts = [_table(table, findings, seen) for table in shown]
    body = "".join(parts[:IN_SIGHT]) + _folded([table.name for table in shown[IN_SIGHT:]], parts[IN_SIGHT:])
    lines = [
        f"{table.name}: {title}: {', '.join(_text(cell) for cell in cells if cell)}"
        for table in shown
        for title, cells in table.rows
    ]
    protocols = {name: in_words(name) for name in dict.fromkeys(findings.board["protocol"])}
    data = {"protocols": json.dumps(protocols), "groups": json.dumps(GROUPS)}
    told = " ".join(f'data-{name}="{html.escape(text, quote=True)}"' for name, text in data.items())
    return Html(f'<div class="review" {told}>{body}</div>', "\n".join(lines))


def _folded(names: list[str], parts: list[str]) -> str:
    """The tables that a reader opens, with their names as the title; a link or the filter opens them, too."""
    if not parts:
        return ""
    title = f"More: {html.escape(listed(names))}"
    summary = f"<summary><h2>{title}</h2></summary>"
    return f'<details class="more-fold review-more">{summary}{"".join(parts)}</details>'


def _table(table: PrintedTable, findings: Findings, seen: set[str]) -> str:
    head = "".join(f'<th scope="col">{html.escape(text)}</th>' for text in ("", *table.heads))
    body, notes = "", ""
    for title, cells in table.rows:
        texts = "".join(f"<td>{_linked(cell, findings) if cell else EMPTY}</td>" for cell in cells)
        body += f'<tr><th scope="row">{html.escape(row_title(title))}</th>{texts}</tr>'
        for cell in filter(None, cells):
            if (name := note_id(cell.value)) not in seen:
                seen.add(name)
                notes += _note(cell.value, table, findings)
    caption = f"<strong>{html.escape(table.name)}.</strong> {html.escape(table.about)}."
    scroll = 'class="scoreboard-legend review-table" role="region" tabindex="0" '
    scroll += f'aria-label="{table.name} of the paper"'
    place = table.source.replace(":", "-")
    return (
        f'<section class="review-part" id="review-{place}"><div {scroll}><table><caption>{caption}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        f'<details class="review-notes"><summary>{html.escape(table.name)}, number by number</summary>{notes}'
        "</details></section>"
    )


def row_title(row: str) -> str:
    """What a row of a table is about, in words that readers know.

    >>> row_title("procedural: cd vs simple")
    'Tools: EnvProbe-(c+d) − EnvProbe-Simple'
    """
    place, colon, rest = row.rpartition(": ") if row.count(": ") > 1 else ("", "", row)
    if place:  # of the running text: place, stratum and what is compared
        first, _, stratum = place.partition(": ")
        return f"{first}: {row_title(f'{stratum}: {rest}')}"
    stratum, colon, names = row.partition(": ")
    names = re.sub(r"[a-z-]+", lambda word: policy_title(word[0]) if word[0] in POLICIES else word[0], names)
    words = _STRATA.get(stratum) or (titled(stratum) if titled(stratum) != stratum else stratum)
    return f"{words[:1].upper()}{words[1:]}{colon}{names.replace(' vs ', ' − ')}"


def note_id(value: PaperValue) -> str:
    """The name of the place that tells of a number: its claim's, so that a difference and its p share one."""
    claim = claim_of(value)
    told = claim.id if claim else re.sub(r"[^a-z0-9]+", "-", f"{value.row} {value.column}".lower())
    return f"cell-{told}"


def _text(cell: Cell) -> str:
    """A cell as the paper prints it."""
    value = cell.value
    if cell.part == COUNT:
        return f"{value.n:,}"
    if cell.part == INTERVAL:
        return bracket(value.low, value.high, value.decimals)
    is_sum = value.column.endswith("_difference_pct") or "_difference" in value.column
    text = as_printed(value, sign=is_sum or value.column.startswith("offset_"))
    return f"{text}%" if value.column.endswith("_pct") and not is_sum else text


def _linked(cell: Cell, findings: Findings) -> str:
    claim = claim_of(cell.value)
    verdicts = {}
    if claim:
        own = findings.rows(claim.id)
        verdicts = dict(zip(own["protocol"], own["verdict"], strict=True))
    signs = "".join(SIGNS[verdict] for verdict in verdicts.values())
    told = ", ".join(f"{in_words(name)}: {verdict}" for name, verdict in verdicts.items())
    extra = f'<span class="review-signs" aria-hidden="true">{signs}</span>' if signs else ""
    also = f'<span class="review-said"> ({html.escape(told)})</span>' if told else ""
    return (
        f'<a class="review-cell" href="#{note_id(cell.value)}"{verdict_data(verdicts)}>'
        f"{html.escape(_text(cell))}{extra}{also}</a>"
    )


# what a link leads to


def _note(value: PaperValue, table: PrintedTable, findings: Findings) -> str:
    claim = claim_of(value)
    where = f"{table.name}, {row_title(value.row)}: {quantity(value)}"
    body = _claim_note(claim, value, findings) if claim else _setting_note(value, findings)
    return (
        f'<section class="review-note" id="{note_id(value)}" tabindex="-1">'
        f'<p class="review-title"><strong>{html.escape(where)}</strong></p>{body}</section>'
    )


def _claim_note(claim: Claim, value: PaperValue, findings: Findings) -> str:
    rows = findings.rows(claim.id)
    sign = claim.kind not in LEVELS
    printed = "the paper prints no figure"
    if claim.value is not None:
        printed = f"printed {amount(claim.value, claim.unit, sign)}"
        printed += f" {interval(claim.low, claim.high, claim.unit)}" if claim.low is not None else ""
    lines = "".join(
        f'<tr><th scope="row">{html.escape(in_words(row.protocol))}</th><td>{mark(row.verdict)}</td>'
        f"<td>{_ours(row, sign)}</td><td>{_episode(claim, row.protocol, findings)}</td></tr>"
        for row in rows.itertuples()
    )
    if findings.instead is not None:
        lines += "".join(
            f'<tr><th scope="row">{html.escape(other_agent(row))}</th><td>{mark(row.verdict)}</td>'
            f"<td>{_ours(row, sign)}</td><td>{EMPTY}</td></tr>"
            for row in findings.instead[findings.instead["claim"] == claim.id].itertuples()
        )
    unit = "" if claim.unit in ("share", "count") else f" [{claim.unit}]"
    return (
        f"<p>{html.escape(claim.statement)} <em>({printed}{html.escape(unit)})</em></p>"
        f'<table><thead><tr><th scope="col">our run</th><th scope="col">verdict</th>'
        f'<th scope="col">number{html.escape(unit)}</th><th scope="col">an episode</th></tr></thead>'
        f"<tbody>{lines}</tbody></table>{_widened(claim)}{_turns(claim, findings, sign)}"
        f"{_record(value, claim)}"
        f'<p class="review-links"><a href="{PAGES[claim.section]}.html">The section</a> · '
        f'<a href="#claim-{claim.id}">its line in the list of claims</a></p>'
    )


def _widened(claim: Claim) -> str:
    """Why these intervals are wider than those of other pages."""
    if claim.family == 1:
        return ""
    told = f"Intervals are widened for the {claim.family} comparisons of this part of the paper."
    return f"<p><small>{told}</small></p>"


def _ours(row: object, sign: bool) -> str:
    if row.verdict == NOT_TESTED:  # type: ignore[attr-defined]
        return html.escape(row.reason)  # type: ignore[attr-defined]
    return f"{amount(row.estimate, row.unit, sign)} {interval(row.low_adjusted, row.high_adjusted, row.unit)}"  # type: ignore[attr-defined]


def _episode(claim: Claim, protocol: str, findings: Findings) -> str:
    one = findings.episodes.get((claim.id, protocol))
    if one is None:
        return EMPTY
    who = listed(policy_title(name) for name in one.policies)
    what = html.escape(f"{who}, {titled(one.world)}, seed {one.seed}, {in_words(protocol)}")
    return (
        f'<a href="{html.escape(one.address)}" aria-label="Watch {what}" title="{what}">seed {one.seed}</a>'
    )


def _turns(claim: Claim, findings: Findings, sign: bool) -> str:
    own, base = findings.turns[findings.turns["claim"] == claim.id], html.escape(in_words(findings.base))
    if own.empty:
        told = f"No switch, turned alone, changes whether the verdict {base} agrees with the paper."
        return f'<p>{told} <a href="text-and-code.html">Press several.</a></p>'
    items = ""
    for row in own.itertuples():
        found = amount(row.estimate, claim.unit, sign)
        ends = interval(row.low_adjusted, row.high_adjusted, claim.unit)
        what = html.escape(deed(str(row.switch), str(row.value)))
        items += f"<li>{what}: {mark(row.verdict)} {found} {ends}</li>"
    lead = "One switch turns" if len(own) == 1 else f"Each of {len(own)} switches alone turns"
    return f"<p>{lead} the verdict {base}:</p><ul>{items}</ul>"


def _record(value: PaperValue, claim: Claim) -> str:
    figures = [
        f"{html.escape(row['value'] + ('' if row['unit'] == 'share' else ' ' + row['unit']))} "
        f"({html.escape(row['what'])}; "
        f"<code>{html.escape(row['file'])}</code>, line {html.escape(row['line'])})"
        for row in recorded_of(value)
    ]
    campaigns = campaigns_of(claim)
    parts = [f"Recorded in the repository: {'; '.join(figures)}."] if figures else []
    if campaigns:
        parts.append(f"Its registry lists these cells in {html.escape(listed(campaigns))}.")
    if not parts:
        return ""
    return f'<p>{" ".join(parts)} <a href="{RECORD_PAGE}">What the repository records</a></p>'


def _setting_note(value: PaperValue, findings: Findings) -> str:
    ours = findings.settings.get((value.row, value.column))
    if ours is None:
        return "<p>No run of this book has this setting: its agent asks no model.</p>"
    word = "as printed" if ours == value.value else "not as printed"
    return f"<p>This book runs with {ours:,g}: {mark(word)}</p>"
