"""One verb for every table: a frame, and for each column a template over its rows.

A `Table` displays itself: as MyST Markdown in the book (numbered, captioned, with a label to refer to), as
plain HTML in JupyterLab. The same input gives the same bytes.
"""

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import pandas as pd

from envprobe_book.claims import LEVELS
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
)
from envprobe_book.pages.figures import titled
from envprobe_book.pages.markup import EMPTY, bracket, chunked, ends_of, number, p_value, percent, signed
from envprobe_book.pages.switches import protocol_title
from envprobe_core.errors import LONGEST, InputError, require

BADGES = {
    HOLDS: "bdg-success",
    OTHER_SIZE: "bdg-info",
    INCONCLUSIVE: "bdg-muted-line",
    NO_EFFECT: "bdg-muted-line",
    NEGLIGIBLE: "bdg-muted-line",
    CANNOT_DIFFER: "bdg-light",
    REVERSES: "bdg-danger",
    "near": "bdg-success",
    "differs": "bdg-muted-line",
    "as printed": "bdg-success",
    "not as printed": "bdg-muted-line",
    INPUT: "bdg-warning",
    NOT_TESTED: "bdg-light",
}
SIDES = {"l": (":--", "left"), "r": ("--:", "right"), "c": (":-:", "center")}
_INLINE = {  # what a cell may hold of Markdown, in the order in which it is read
    re.compile(r"\{bdg-[a-z-]+\}`([^`]*)`"): r"\1",
    re.compile(r"`([^`]*)`"): r"<code>\1</code>",
    re.compile(r"\*\*([^*]+)\*\*"): r"<strong>\1</strong>",
    re.compile(r"\*([^*]+)\*"): r"<em>\1</em>",
}


@dataclass(frozen=True)
class Table:
    """A numbered table."""

    label: str  # what `{numref}` refers to
    caption: str  # one or more sentences, in Markdown
    head: Sequence[str]  # the columns' names
    rows: Sequence[Sequence[str]]  # the cells, in Markdown
    align: str  # one letter a column: l, r or c
    stacks: bool = False  # whether a phone shows each row as a list of its cells

    def markdown(self) -> str:
        """The table as a MyST directive with caption and label."""
        lines = [self.head, [SIDES[letter][0] for letter in self.align], *self.rows]
        grid = "\n".join(
            "| " + " | ".join(_one_line(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
        )
        # a fence of tildes, since a caption may hold backticks
        stacks = ":class: stacks\n" if self.stacks else ""
        options = f":name: {self.label}\n:align: left\n{stacks}"
        return f"~~~{{table}} {_one_line(self.caption)}\n{options}\n{grid}\n~~~"

    def html(self) -> str:
        """The table as HTML, for hosts that do not read MyST."""

        def line(cells: Sequence[str], tag: str) -> str:
            pairs, style = zip(cells, self.align, strict=True), "text-align: "
            each = (
                f'<{tag} style="{style}{SIDES[side][1]}">{_to_html(cell)}</{tag}>' for cell, side in pairs
            )
            return f"<tr>{''.join(each)}</tr>"

        body = "".join(line(row, "td") for row in self.rows)
        return (
            f"<table><caption>{_to_html(self.caption)}</caption>"
            f"<thead>{line(self.head, 'th')}</thead><tbody>{body}</tbody></table>"
        )

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        rows = ["\t".join(row) for row in (self.head, *self.rows)]
        return {
            "text/markdown": self.markdown(),
            "text/html": self.html(),
            "text/plain": "\n".join([self.caption, *rows]),
        }


def _one_line(text: str) -> str:
    """Join lines, so that no text can end the table or the cell that it stands in."""
    return " ".join(text.splitlines())


def _to_html(text: str) -> str:
    text = html.escape(text, quote=False)
    for pattern, form in _INLINE.items():
        text = pattern.sub(form, text)
    return text


def badge(verdict: str) -> str:
    """A verdict as a coloured label; the word says it all without its colour."""
    return f"{{{BADGES[verdict]}}}`{verdict}`" if verdict in BADGES else EMPTY


def table(
    frame: pd.DataFrame,
    label: str,
    caption: str,
    columns: Mapping[str, str],
    *,
    across: str = "",
    each: Mapping[str, str] | None = None,
    once: str | tuple[str, ...] = (),
    align: str = "",
) -> Table:
    """Show a frame as a numbered table.

    Args:
        frame: a row of it is a row of the table.
        label: what `{numref}` refers to.
        caption: one or more sentences, in Markdown.
        columns: heads, and templates such as `"{policy:policy}"` or `"{gain:+2} {gain:[2]}"`. After the
            colon stands how a value is written: `3` with digits, `+2` as a difference, `%1` as a share in
            percent, `[2]` as the interval in `gain_low` and `gain_high` (or, without these, in `low` and
            `high`), `*2` as a difference in bold where that interval leaves 0 out, `p` as a p-value, `code`,
            `policy`, `world`, `stratum`, `verdict`; nothing: as it is.
        across: a column, each of whose values gets the columns `each` to the right; then rows of the frame
            that write the same `columns` are one row of the table, with a dash where a value is missing.
        each: heads and templates as in `columns`; in a head, `{}` is the value of `across`, with an own
            way to write it (`{:code}`).
        once: columns of the frame that are written only in the first of several equal rows; the heads
            whose template names them are left empty there.
        align: a letter a column (l, r, c); by default numbers stand to the right.

    Raises:
        InputError: for a column that the frame does not have, a template that cannot be read, and an `align`
            that does not fit.
    """
    quiet, each = {once} if isinstance(once, str) and once else set(once), each or {}
    own, more = ([_fields(template) for template in several.values()] for several in (columns, each))
    plain = [name for name, how in chain(*own, *more) if not how.startswith("[")]
    spans = (ends_of(frame, name) or ENDS for name, how in chain(*own, *more) if how[:1] in SPANS)
    require(frame, [*filter(None, (across, *quiet)), *plain, *chain.from_iterable(spans)])
    values = frame[across].drop_duplicates() if across else pd.Series(dtype=object)
    if isinstance(values.dtype, pd.CategoricalDtype):  # in its order
        values = values.sort_values()
    values = values.tolist()
    rows: dict[Any, list[str]] = {}
    last: dict[str, Any] = {}
    for place, row in enumerate(frame.to_dict("records")):
        cells = [_FIELD.sub(partial(_cell, row), template) for template in columns.values()]
        line = tuple(cells) if across else place
        if line not in rows:
            same = bool(quiet) and all(last.get(name) == row[name] for name in quiet)
            rows[line] = [
                "" if same and fields and {name for name, _ in fields} <= quiet else cell
                for fields, cell in zip(own, cells, strict=True)
            ] + [EMPTY] * len(values) * len(each)
            last = {name: row[name] for name in quiet}
        if across:
            start = len(columns) + values.index(row[across]) * len(each)
            rows[line][start : start + len(each)] = [
                _FIELD.sub(partial(_cell, row), template) for template in each.values()
            ]
    heads = [*columns, *(_in_head(head, value) for value in values for head in each)]
    firsts = [fields[0] if fields else ("", "code") for fields in own + more * len(values)]
    sides = align or "".join(
        "r" if how not in _WORDS and (how or pd.api.types.is_numeric_dtype(frame[name])) else "l"
        for name, how in firsts
    )
    if len(sides) != len(heads) or set(sides) - set(SIDES):
        raise InputError(f"table: align {align!r} is not a letter (l, r, c) for each of {len(heads)} columns")
    return Table(label, caption, heads, list(rows.values()), sides)


def show_ledger(verdicts: pd.DataFrame, label: str, caption: str) -> Table:
    """Show the verdict of `judge` on every claim that is not about a level, with what was measured."""
    shown, texts = verdicts[~verdicts["claim"].str.startswith("level-")], []
    for row in shown.to_dict("records"):  # a difference has its sign
        write, digits = number if row["kind"] in LEVELS else signed, 3 if row["unit"] == "share" else 2
        unit = "" if row["unit"] == "count" or pd.isna(row["paper_value"]) else f" {row['unit']}"
        printed = write(row["paper_value"], digits) + unit
        texts.append((chunked(row["statement"]), printed, write(row["estimate"], digits)))
    return table(
        shown.assign(**pd.DataFrame(texts, shown.index, ["statement", "printed", "estimate"])),
        label,
        caption,
        {"the paper's claim, in our words": "{statement}", "printed": "{printed}"},
        across="protocol",
        each={"{:code}": "{verdict:verdict} {estimate}"},
        align="lr" + "l" * shown["protocol"].nunique(),
    )


def _in_head(head: str, value: Any) -> str:
    """Write one value of `across` into a head, where `{}` or `{:code}` stands."""
    return re.sub(r"\{()(?::(\w+))?\}", partial(_cell, {"": value}), head)


def _cell(row: Mapping[str, Any], field: re.Match[str]) -> str:
    """Write a field of a template: a row's value, or the interval beside it (`table` says how)."""
    value, how = row.get(field[1]), field[2] or ""
    if how[:1] in SPANS:
        low, high = (row[end] for end in ends_of(row, field[1]) or ENDS)
        if how[0] == "[":
            return low if isinstance(low, str) else bracket(low, high, int(how[1:-1]))
        text = signed(value, int(how[1:]))
        return f"**{text}**" if low > 0 or high < 0 else text
    missing = value is None or value != value  # NaN is not itself
    if how in _WORDS:
        return EMPTY if missing else _WORDS[how](value)
    if isinstance(value, str):
        return value
    if how == "p":
        return p_value(value)
    if not how:
        return EMPTY if missing else f"{value:,}" if isinstance(value, int) else str(value)
    write = {"+": signed, "%": percent}.get(how[0], number)
    return write(value, int(how.lstrip("+%") or 0))


def _coded(name: Any) -> str:
    """Write a name as the command line knows it, but a protocol as pages call it, what is turned in words."""
    return title if (title := protocol_title(str(name))) != str(name) else f"`{name}`"


_WORDS = dict.fromkeys(("policy", "world", "stratum"), titled) | {"code": _coded, "verdict": badge}
_FIELD = re.compile(r"\{([^{}:]+)(?::([^{}]*))?\}")  # of a template: a column, and how its values are written
SPANS, ENDS = ("[", "*"), ("low", "high")  # ways to write that read an interval; its usual columns
_HOW = re.compile(rf"([+*]\d|%\d?|\d|\[\d\]|p|{'|'.join(_WORDS)})?")


def _fields(template: str) -> list[tuple[str, str]]:
    """The columns that a template names, each with how it is written; refuse what cannot be read."""
    found, rest = _FIELD.findall(template), _FIELD.sub("", template)
    if "{" in rest or "}" in rest or not all(_HOW.fullmatch(how) for _, how in found):
        raise InputError(
            f"table: {template[:LONGEST]!r} is no template; braces hold a column and how it is written, "
            f"as in '{{gain:+2}} {{gain:[2]}}': 2, +2, *2, %2, [2], p, {', '.join(_WORDS)}"
        )
    return found
