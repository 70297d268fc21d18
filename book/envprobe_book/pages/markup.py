"""Sentences and numbers as a notebook shows them: `conclude`, and what else a page says in words.

People write the sentences; code gives the condition under which each is true, and writes the numbers.
"""

import base64
import html
import json
import math
import os
import re
from collections.abc import Container, Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np

from envprobe_book.pages import BOOK, EXECUTED

MINUS = "−"
FIXED, UNBROKEN = "\u00a0", "\u2011"  # a space and a hyphen at which no line breaks
EMPTY = "–"
LIVE = "live"
"""The scheme of the marks around a sentence: links without a text, of which `book/_ext/live.py` makes what a
page's script looks for."""
FIXED_MARK = "fixed"  # of a sentence that stands still, with what it is about
MARK = re.compile(rf"\[\]\({LIVE}:([^)]*)\)")


@dataclass(frozen=True)
class Text:
    """A paragraph or list, in Markdown.

    Its marks are for pages. JupyterLab's MyST would write out the address of a link without a text, so what
    is marked is a widget there, which follows the reader or says what it belongs to.
    """

    markdown: str

    def _repr_mimebundle_(self, **keywords: Any) -> dict[str, Any]:
        plain = MARK.sub("", self.markdown)
        if EXECUTED in os.environ:
            return {"text/markdown": self.markdown, "text/plain": plain}
        data = {"text/markdown": plain, "text/plain": plain}
        if plain == self.markdown:
            return data
        from envprobe_book.live_figures.scripts import lab_sentence  # which is made of what is here

        return lab_sentence(self.markdown, **keywords) | data


@dataclass(frozen=True)
class Html:
    """A piece of a page, with the plain text for hosts that show none."""

    html: str
    text: str

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": self.text}


class ConclusionError(AssertionError):
    """A sentence of the book is not what its own numbers say."""


def script_json(value: Any) -> str:
    r"""A value as JSON that may stand inside a script element of a page.

    >>> script_json({"title": "a < b"})
    '{"title":"a \\u003c b"}'

    Raises:
        ValueError: if a number in it is not finite, which JSON cannot say.
    """
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def conclude(text: str, when: Any, about: str = "") -> Text:
    """A sentence that stands still: tested when the notebook runs; a page says what it belongs to.

    What a slider moves is told (`live_figures.tell`), which needs no condition, unless it needs what a page
    cannot compute.

    Args:
        text: a sentence or two, in Markdown, written by hand.
        when: the condition, or a function that gives it (what it asks of a protocol, world or policy that was
            not run is not so, nor is what it asks of an empty frame, such as its largest value); of an array
            or a frame's column, that it is true everywhere and not empty.
        about: what it speaks of, where no slider can move that: "the public code's episodes". Without it the
            sentence is about the page's own budget and threshold. A page says either once a slider moved.

    Raises:
        ConclusionError: if the condition fails with the book's own values.
    """
    said = text if holds(text, when) else f"*The book's own values say this, and these do not:* {text}"
    return Text(marked(said, f"{FIXED_MARK}-{pack(about)}" if about else FIXED_MARK))


def marked(text: str, mark: str) -> str:
    """A text between two marks of a sentence, the first of which says what it is."""
    return f"[]({LIVE}:{mark}){text}[]({LIVE}:end)"


def pack(text: str) -> str:
    """A text as a part of a mark."""
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def slot_of(mark: str) -> str | None:
    """The data of the slot whose mark this is; None where it is another mark.

    >>> slot_of(pack('{"kind":"places"}')), slot_of("fixed"), slot_of("end")
    ('{"kind":"places"}', None, None)
    """
    return None if mark == "end" or mark.partition("-")[0] == FIXED_MARK else _unpacked(mark)


def span_of(mark: str) -> str:
    """What a mark of a sentence is in HTML.

    >>> span_of("fixed-YSBwcm9vZg"), span_of("fixed"), span_of("end")
    ('<span class="live-fixed" data-about="a proof">', '<span class="live-fixed" data-about="">', '</span>')
    """
    if mark == "end":
        return "</span>"
    if (slot := slot_of(mark)) is not None:
        return f'<span class="live-told" data-told="{html.escape(slot)}">'
    about = _unpacked(mark.partition("-")[2])
    return f'<span class="live-fixed" data-about="{html.escape(about)}">'


def _unpacked(text: str) -> str:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()


def holds(text: str, when: Any) -> bool:
    """Whether a sentence's condition holds.

    Raises:
        ConclusionError: if it does not hold with the book's own values.
    """
    so = is_so(when)
    if not so and os.environ.get(BOOK):
        raise ConclusionError(f"with the book's own values this is not so: {text}")
    return so


def _asked(when: Any) -> Any:
    """A condition as such, where a function gives it; False where it asks for what was not run."""
    if not callable(when):
        return when
    try:
        return when()
    except (LookupError, ValueError):
        return False


def is_so(when: Any) -> bool:
    """Whether a condition holds, as `conclude` takes it."""
    found = np.asarray(_asked(when))
    return bool(found.size) and bool(found.astype(bool).all())


def take_away(paper: str, found: Text | list[Text], depends: str) -> Text:
    """Close a section: what the paper says, what we find (conclusions), and what that depends on."""
    said = " ".join(one.markdown for one in (found if isinstance(found, list) else [found]))
    lines = {"The paper says.": paper, "We find.": said, "Limits.": depends}
    body = "\n\n".join(f"**{head}** {text}" for head, text in lines.items())
    return Text(f":::{{admonition}} Take away\n:class: tip take-away\n\n{body}\n:::")


def ends_of(columns: Container[str], value: str) -> tuple[str, str] | None:
    """The columns of a value's interval, its own or `low` and `high`; None if the first is missing."""
    own = f"{value}_" if f"{value}_low" in columns else ""
    return (f"{own}low", f"{own}high") if f"{own}low" in columns else None


def block(text: str, language: str = "text") -> Text:
    """A text as it is, in a block of its own, coloured as its language is.

    >>> block("{}", "json").markdown.splitlines()
    ['~~~json', '{}', '~~~']
    """
    return Text(f"~~~{language}\n{text}\n~~~")


def number(value: float | None, digits: int = 2) -> str:
    """A number with a true minus sign; a missing one as a dash. Halves are rounded up, as in the page.

    >>> number(-0.25, 1), number(None)
    ('−0.3', '–')
    """
    if value is None or not math.isfinite(value):
        return EMPTY
    text = f"{Decimal(float(abs(value))).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):f}"
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


def change(value: float, low: float, high: float) -> str:
    r"""A change with its interval: bold where that leaves 0 out, a plain 0 where nothing moved.

    >>> change(1.5, 0.25, 3.0), change(0.0, 0.0, 0.0)
    ('**+1.50** [0.25,\xa03.00]', '0')
    """
    if math.isnan(value):
        return EMPTY
    if low == high == 0:
        return "0"
    text = f"**{signed(value)}**" if low > 0 or high < 0 else signed(value)
    return f"{text} {bracket(low, high)}"


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
    chunks = re.findall(rf"(.{{{least},}}?|.+)(?: |$)", text)
    return " ".join(chunk.replace(" ", FIXED) for chunk in chunks)


def code(names: Iterable[str]) -> str:
    """Join names of code as a sentence does."""
    return listed(f"`{name}`" for name in names)


def download(name: str, words: str, content: str, kind: str) -> str:
    """A link that saves a file which it carries itself, so that it works without a server."""
    packed = base64.b64encode(content.encode()).decode()
    return f'<a download="{name}" href="data:{kind};base64,{packed}">{words}</a>'
