"""Sentences that people write, and the condition under which each is true."""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from typing import Any

import numpy as np

from envprobe_core.show import BOOK
from envprobe_core.show.markup import Html, Text


class ConclusionError(AssertionError):
    """A sentence of the book is not what its own numbers say."""


def conclude(text: str, when: Any) -> Text:
    """Say `text` where `when` is true; strike it out where it is not.

    Args:
        text: a sentence or two, in Markdown, written by hand.
        when: the condition, or a function that gives it (what it asks of a protocol, world or policy that was
            not run is not so, nor is what it asks of an empty frame, such as its largest value); of an array
            or a frame's column, that it is true everywhere and not empty.

    Raises:
        ConclusionError: if the condition fails with the book's own values.
    """
    if _is_so(when):
        return Text(text)
    if os.environ.get(BOOK):
        raise ConclusionError(f"with the book's own values this is not so: {text}")
    return Text(f"*Not so with these values:* <s>{text}</s>")


def _is_so(when: Any) -> bool:
    """Say whether a condition holds, as `conclude` takes it."""
    if callable(when):
        try:
            when = when()
        except (LookupError, ValueError):
            when = False
    found = np.asarray(when)
    return bool(found.size) and bool(found.astype(bool).all())


def guess(question: str, choices: Mapping[str, Any], because: str) -> Html:
    """Ask the reader before the page answers, and which choice is right is computed.

    A page keeps what was guessed, and then shows what is right.

    Args:
        question: one sentence, plain text.
        choices: each with the condition under which it is right, as in `conclude`.
        because: the reason, a sentence or two of plain text.

    Raises:
        ConclusionError: if with the book's own values not exactly one choice is right.
    """
    so = [place for place, when in enumerate(choices.values()) if _is_so(when)]
    if len(so) != 1 and os.environ.get(BOOK):
        raise ConclusionError(f"with the book's own values {len(so)} answers are right: {question}")
    answer, right = "With these values none is right.", ""
    if len(so) == 1:
        answer, right = f"{list(choices)[so[0]]}.", f' data-right="{so[0]}"'
    name = f"guess-{sha256(question.encode()).hexdigest()[:8]}"
    options = "".join(
        f'<label><input type="radio" name="{name}" value="{place}"> {escape(choice)}</label>'
        for place, choice in enumerate(choices)
    )
    page = (
        f'<form class="guess"{right}><fieldset><legend>Guess first: {escape(question)}</legend>{options}'
        f"</fieldset><details><summary>The answer</summary><p><strong>{escape(answer)}</strong> "
        f"{escape(because)}</p></details></form>"
    )
    return Html(page, f"Guess first: {question} {' / '.join(choices)}? {answer} {because}")


def take_away(paper: str, found: Text | list[Text], depends: str) -> Text:
    """Close a section: what the paper says, what we find (conclusions), and what that depends on."""
    said = " ".join(one.markdown for one in (found if isinstance(found, list) else [found]))
    lines = {"The paper says.": paper, "We find.": said, "It depends on.": depends}
    body = "\n\n".join(f"**{head}** {text}" for head, text in lines.items())
    return Text(f":::{{admonition}} Take away\n:class: tip take-away\n\n{body}\n:::")
