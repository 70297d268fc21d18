"""A guess before the answer: the same form, with the same script, in a page of the book and in JupyterLab."""

import os
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from html import escape
from typing import Any

from envprobe_book.pages import BOOK
from envprobe_book.pages.markup import ConclusionError, Html, is_so
from envprobe_core.ledger import ENVIRONMENT
from envprobe_core.sources import ROOT

ASSETS = ROOT / "book" / "assets"
SCRIPT, STYLE = "guess.js", "guess.css"


class Guess(Html):
    """A question with its choices; the plain text has no answer."""

    def _repr_mimebundle_(self, **keywords: Any) -> Any:
        page = {"text/html": self.html, "text/plain": self.text}
        if ENVIRONMENT in os.environ:  # a page is made, which loads the script itself
            return page
        data, metadata = _widget()(html=self.html)._repr_mimebundle_(**keywords) or ({}, {})
        return {**data, **page}, metadata


def guess(question: str, choices: Mapping[str, Any], because: Any) -> Guess:
    """Ask the reader before the page answers, and which choice is right is computed.

    A page keeps what was guessed, and then shows what is right.

    Args:
        question: one sentence, plain text.
        choices: each with the condition under which it is right, as in `conclude`.
        because: the reason with the book's own values, a sentence or two of plain text; or a telling
            sentence, which says what is right itself, wherever the reader is.

    Raises:
        ConclusionError: if with the book's own values not exactly one choice is right.
    """
    so = [place for place, when in enumerate(choices.values()) if is_so(when)]
    if len(so) != 1 and os.environ.get(BOOK):
        raise ConclusionError(f"with the book's own values {len(so)} answers are right: {question}")
    told = getattr(because, "html", None)
    answer, right = "These values do not decide it.", ""
    if len(so) == 1:
        answer = f"{list(choices)[so[0]]}."
        right = "" if told else f' data-right="{so[0]}"'
    if not told and not os.environ.get(BOOK):  # another answer may be right, or none
        because = f"With the book's own values: {because}"
    name = f"guess-{sha256(question.encode()).hexdigest()[:8]}"
    options = "".join(
        f'<label><input type="radio" name="{name}" value="{place}"> {escape(choice)}</label>'
        for place, choice in enumerate(choices)
    )
    page = (
        f'<form class="guess"{right}><fieldset><legend>Guess first: {escape(question)}</legend>{options}'
        f"</fieldset><details><summary>The answer</summary><p>"
        f"{told or f'<strong>{escape(answer)}</strong> {escape(because)}'}</p></details></form>"
    )
    return Guess(page, f"Guess first: {question} {' / '.join(choices)}?")


@cache
def _widget() -> Any:
    """The form as a widget, for a host that runs no script of a page."""
    import anywidget
    import traitlets

    script = (ASSETS / SCRIPT).read_text(encoding="utf-8")

    class GuessForm(anywidget.AnyWidget):
        _esm = (
            f"function load() {{\n{script}\n}}\n"
            "export default {\n"
            "  render({ model, el }) {\n"
            "    if (!globalThis.EnvProbe?.guessing) load();\n"
            '    el.innerHTML = model.get("html"); // of `markup.guess`, which escapes all that it is given\n'
            '    globalThis.EnvProbe.guessing(el.querySelector("form"));\n'
            "  },\n"
            "};\n"
        )
        _css = (ASSETS / STYLE).read_text(encoding="utf-8")
        html = traitlets.Unicode().tag(sync=True)

    return GuessForm
