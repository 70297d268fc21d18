"""Numbers, tables and paragraphs as a notebook shows them and Jupyter Book renders them.

A `Table` and a `Text` display themselves: as MyST Markdown in the book (numbered, captioned, with a label
to refer to), as plain HTML in JupyterLab. The same input gives the same bytes.
"""

from __future__ import annotations

import base64
import html
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MINUS = "−"
FIXED, UNBROKEN = "\u00a0", "\u2011"  # a space and a hyphen at which no line breaks
EMPTY = "–"
_INLINE = (
    (re.compile(r"\{bdg-[a-z-]+\}`([^`]*)`"), r"\1"),
    (re.compile(r"`([^`]*)`"), r"<code>\1</code>"),
    (re.compile(r"\*\*([^*]+)\*\*"), r"<strong>\1</strong>"),
    (re.compile(r"\*([^*]+)\*"), r"<em>\1</em>"),
)


@dataclass(frozen=True)
class Text:
    """A paragraph or list, in Markdown."""

    markdown: str

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/markdown": self.markdown, "text/plain": self.markdown}


@dataclass(frozen=True)
class Html:
    """A piece of a page, with the plain text for hosts that show none."""

    html: str
    text: str

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": self.text}


def download(name: str, words: str, content: str, kind: str) -> str:
    """Return a link that saves a file which it carries itself, so that it works without a server."""
    packed = base64.b64encode(content.encode()).decode()
    return f'<a download="{name}" href="data:{kind};base64,{packed}">{words}</a>'


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
            inner = "".join(
                f'<{tag} style="text-align: {sides[letter]}">{_to_html(cell)}</{tag}>'
                for cell, letter in zip(cells, self.align, strict=True)
            )
            return f"<tr>{inner}</tr>"

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
    for pattern, form in _INLINE:
        text = pattern.sub(form, html.escape(text, quote=False) if pattern is _INLINE[0][0] else text)
    return text


def number(value: float | None, digits: int = 2) -> str:
    """Write a number with a true minus sign; a missing one as a dash."""
    if value is None or not math.isfinite(value):
        return EMPTY
    text = f"{abs(value):.{digits}f}"
    return text if value >= 0 or not text.strip("0.") else MINUS + text


def signed(value: float | None, digits: int = 2) -> str:
    """Write a difference with its sign; what rounds to zero has none."""
    text = number(value, digits)
    return text if text == EMPTY or text.startswith(MINUS) or not text.strip("0.") else "+" + text


def bracket(low: float | None, high: float | None, digits: int = 2) -> str:
    """Write an interval in a table: `[−4.63, −1.06]`."""
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return EMPTY
    return f"[{number(low, digits)},{FIXED}{number(high, digits)}]"


def p_value(p: float | None) -> str:
    """Write a p-value with three decimals; what is smaller as < .001."""
    if p is None or math.isnan(p):
        return EMPTY
    if p < 0.0005:
        return f"<{FIXED}.001"
    return f">{FIXED}.999" if 0.9995 <= p < 1 else f"{p:.3f}".replace("0.", ".", 1)


def percent(share: float | None, digits: int = 0) -> str:
    """Write a share as a percentage."""
    return EMPTY if share is None or math.isnan(share) else f"{100 * share:.{digits}f}%"


def listed(items: Iterable[str]) -> str:
    """Join items as a sentence does: `a, b and c`."""
    items = list(items)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else "none"


def chunked(text: str, least: int = 16) -> str:
    """Join words so that no line of a narrow column is shorter than `least`, where words allow it."""
    chunks = [""]
    for word in text.split(" "):
        if len(chunks[-1]) >= least:
            chunks.append(word)
        else:
            chunks[-1] += f"{FIXED}{word}" if chunks[-1] else word
    return " ".join(chunks)


def code(names: Iterable[str]) -> str:
    """Join names of code as a sentence does."""
    return listed(f"`{name}`" for name in names)
