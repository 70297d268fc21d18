"""One verb for every table: a frame, and for each column a template over its rows.

A `Table` displays itself: as MyST Markdown in the book (numbered, captioned, with a label to refer to), as
plain HTML in JupyterLab. The same input gives the same bytes.
"""

import html
import re
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pandas as pd

from envprobe_core.claims import LEVELS
from envprobe_core.claims.judge import HOLDS, INCONCLUSIVE, INPUT, NO_EFFECT, NOT_TESTED, OTHER_SIZE, REVERSES
from envprobe_core.errors import require
from envprobe_core.protocols import TITLES
from envprobe_core.show.figures import STRATUM_TITLES, WORLD_TITLES, policy_title
from envprobe_core.show.markup import EMPTY, bracket, chunked, number, p_value, percent, signed

BADGES = {
    HOLDS: "bdg-success",
    OTHER_SIZE: "bdg-info",
    INCONCLUSIVE: "bdg-muted-line",
    NO_EFFECT: "bdg-muted-line",
    REVERSES: "bdg-danger",
    "near": "bdg-success",
    "differs": "bdg-muted-line",
    "as printed": "bdg-success",
    "not as printed": "bdg-muted-line",
    INPUT: "bdg-warning",
    NOT_TESTED: "bdg-light",
}


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

    def markdown(self) -> str:
        """Return the table as a MyST directive with caption and label."""
        marks = {"l": ":--", "r": "--:", "c": ":-:"}
        lines = [self.head, [marks[letter] for letter in self.align], *self.rows]
        grid = "\n".join(
            "| " + " | ".join(_one_line(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
        )
        # a fence of tildes, since a caption may hold backticks
        return f"~~~{{table}} {_one_line(self.caption)}\n:name: {self.label}\n:align: left\n\n{grid}\n~~~"

    def html(self) -> str:
        """Return the table as HTML, for hosts that do not read MyST."""
        sides = {"l": "left", "r": "right", "c": "center"}

        def line(cells: Sequence[str], tag: str) -> str:
            inner = (
                f'<{tag} style="text-align: {sides[letter]}">{_to_html(cell)}</{tag}>'
                for cell, letter in zip(cells, self.align, strict=True)
            )
            return f"<tr>{''.join(inner)}</tr>"

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
    """Return a verdict as a coloured label; the word says it all without its colour."""
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
        InputError: for a column that the frame does not have.
    """
    quiet, more, write = (once,) if isinstance(once, str) else once, each or {}, _Template()
    named = {head: {name for _, name, _, _ in write.parse(own) if name} for head, own in columns.items()}
    every = chain(*map(write.parse, (*columns.values(), *more.values())))
    plain = (name for _, name, how, _ in every if not (how or "").startswith("["))  # intervals have two ends
    require(frame, filter(None, (across, *quiet, *plain)))
    values = frame[across].drop_duplicates() if across else pd.Series(dtype=object)
    if isinstance(values.dtype, pd.CategoricalDtype):  # in its order
        values = values.sort_values()
    values = values.tolist()
    rows: dict[Any, list[str]] = {}
    last = {}
    for place, row in enumerate(frame.to_dict("records")):
        cells = [write.vformat(template, (), row) for template in columns.values()]
        line = tuple(cells) if across else place
        if line not in rows:
            same = bool(quiet) and all(last.get(name) == row[name] for name in quiet)
            rows[line] = [
                "" if same and named[head] and named[head] <= set(quiet) else cell
                for head, cell in zip(columns, cells, strict=True)
            ] + [EMPTY] * len(values) * len(more)
            last = {name: row[name] for name in quiet}
        if across:
            start = len(columns) + values.index(row[across]) * len(more)
            own = [write.vformat(template, (), row) for template in more.values()]
            rows[line][start : start + len(more)] = own
    heads = [*columns, *(_in_head(head, value) for value in values for head in more)]
    sides = ""
    for template in (*columns.values(), *(list(more.values()) * len(values))):  # numbers to the right
        name, how = next(((name, how) for _, name, how, _ in write.parse(template) if name), ("", ""))
        numbers = name and how not in _WORDS and (how or pd.api.types.is_numeric_dtype(frame[name]))
        sides += "r" if numbers else "l"
    return Table(label, caption, tuple(heads), list(rows.values()), align or sides)


def show_ledger(verdicts: pd.DataFrame, label: str, caption: str) -> Table:
    """Show the verdict of `judge` on every claim that is not about a level, with what was measured."""
    shown = verdicts[~verdicts["claim"].str.startswith("level-")]

    def amounts(name: str) -> list[str]:
        """Write a column's values, a difference with its sign."""
        return [
            (number if kind in LEVELS else signed)(value, 3 if unit == "share" else 2)
            for value, kind, unit in zip(shown[name].astype(float), shown["kind"], shown["unit"], strict=True)
        ]

    printed = [
        EMPTY if pd.isna(row.paper_value) else f"{text} {row.unit}" if row.unit != "count" else text
        for row, text in zip(shown.itertuples(), amounts("paper_value"), strict=True)
    ]
    return table(
        shown.assign(
            statement=shown["statement"].map(chunked), printed=printed, estimate=amounts("estimate")
        ),
        label,
        caption,
        {"the paper's claim, in our words": "{statement}", "printed": "{printed}"},
        across="protocol",
        each={"{:code}": "{verdict:verdict} {estimate}"},
        align="lr" + "l" * shown["protocol"].nunique(),
    )


def _in_head(head: str, value: Any) -> str:
    """Write one value of `across` into a head, where `{}` or `{:code}` stands."""
    return re.sub(r"\{(?::(\w+))?\}", lambda way: written(value, way[1] or ""), head)


def written(value: Any, how: str) -> str:
    """Write one value (`table` says how)."""
    missing = value is None or value != value  # NaN is not itself
    if how in _WORDS:
        return EMPTY if missing else _WORDS[how](value)
    if isinstance(value, str):
        return value
    if how == "p":
        return p_value(value)
    if not how:
        return EMPTY if missing else f"{value:,}" if isinstance(value, int) else str(value)
    if how[0] in "+%":
        return (signed if how[0] == "+" else percent)(value, int(how[1:] or 0))
    return number(value, int(how))


def _coded(name: Any) -> str:
    """Write a name as the command line knows it, but a protocol as pages call it, with its switches."""
    base, turned, switches = str(name).partition(":")
    if base not in TITLES:
        return f"`{name}`"
    return TITLES[base] + (f", `{switches}`" if turned else "")


_WORDS = {
    "code": _coded,
    "policy": policy_title,
    "world": lambda name: WORLD_TITLES[name],
    "stratum": lambda name: STRATUM_TITLES.get(name, name),
    "verdict": badge,
}


class _Template(string.Formatter):
    """Formats a row: a bracket takes the columns `gain_low` and `gain_high`, or `low` and `high`."""

    def get_field(self, field_name: str, args: Any, row: Any) -> tuple[Any, str]:
        return (field_name, row), field_name

    def format_field(self, found: Any, how: str) -> str:
        name, row = found
        own = f"{name}_" if f"{name}_low" in row else ""
        if how.startswith("["):
            low, high = row[f"{own}low"], row[f"{own}high"]
            return low if isinstance(low, str) else bracket(low, high, int(how[1:-1]))
        if how.startswith("*"):
            text = signed(row[name], int(how[1:]))
            return f"**{text}**" if row[f"{own}low"] > 0 or row[f"{own}high"] < 0 else text
        return written(row[name], how)
