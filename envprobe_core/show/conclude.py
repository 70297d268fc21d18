"""Sentences that people write, and the condition under which each is true."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from typing import Any

import numpy as np

from envprobe_core.show import BOOK
from envprobe_core.show.markup import Text


class ConclusionError(AssertionError):
    """A sentence of the book is not what its own numbers say."""


@dataclass(frozen=True)
class Conclusion:
    """A sentence, and whether it is so."""

    text: str
    holds: bool

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        told = self.text if self.holds else f"*Not so with these values:* <s>{self.text}</s>"
        return {"text/markdown": told, "text/plain": told}


def conclude(text: str, when: Any) -> Conclusion:
    """Say `text` where `when` is true; strike it out where it is not.

    Args:
        text: a sentence or two, in Markdown, written by hand.
        when: the condition, or a function that gives it (what it asks of a protocol, world or policy that was
            not run is not so); of an array or a frame's column, that it is true everywhere and not empty.

    Raises:
        ConclusionError: if the condition fails with the book's own values.
    """
    holds = _is_so(when)
    if not holds and os.environ.get(BOOK):
        raise ConclusionError(f"with the book's own values this is not so: {text}")
    return Conclusion(text, holds)


def _is_so(when: Any) -> bool:
    """Say whether a condition holds, as `conclude` takes it."""
    if callable(when):
        try:
            when = when()
        except LookupError:
            when = False
    found = np.asarray(when)
    return bool(found.size) and bool(found.astype(bool).all())


@dataclass(frozen=True)
class Guess:
    """A question to answer before reading on; a page keeps what was guessed, and then shows what is right."""

    question: str
    choices: tuple[str, ...]
    right: int | None
    because: str

    @property
    def answer(self) -> str:
        """The right choice and the reason, or that there is none with these values."""
        return "With these values none is right." if self.right is None else f"{self.choices[self.right]}."

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        name = f"guess-{sha256(self.question.encode()).hexdigest()[:8]}"
        options = "".join(
            f'<label><input type="radio" name="{name}" value="{place}"> {escape(choice)}</label>'
            for place, choice in enumerate(self.choices)
        )
        right = "" if self.right is None else f' data-right="{self.right}"'
        page = (
            f'<form class="guess"{right}><fieldset><legend>Guess first: {escape(self.question)}</legend>'
            f"{options}</fieldset><details><summary>The answer</summary><p><strong>{escape(self.answer)}"
            f"</strong> {escape(self.because)}</p></details></form>"
        )
        plain = f"Guess first: {self.question} {' / '.join(self.choices)}? {self.answer} {self.because}"
        return {"text/html": page, "text/plain": plain}


def guess(question: str, choices: Mapping[str, Any], because: str) -> Guess:
    """Ask the reader before the page answers; which choice is right is computed.

    Args:
        question: one sentence, plain text.
        choices: each with the condition under which it is right, as in `conclude`.
        because: the reason, a sentence or two of plain text.

    Raises:
        ConclusionError: if with the book's own values not exactly one choice is right.
    """
    right = [place for place, when in enumerate(choices.values()) if _is_so(when)]
    if len(right) != 1 and os.environ.get(BOOK):
        raise ConclusionError(f"with the book's own values {len(right)} answers are right: {question}")
    return Guess(question, tuple(choices), right[0] if len(right) == 1 else None, because)


def take_away(paper: str, found: Conclusion | list[Conclusion], depends: str) -> Text:
    """Close a section: what the paper says, what we find (conclusions), and what that depends on."""
    several = found if isinstance(found, list) else [found]
    said = " ".join(str(one._repr_mimebundle_()["text/markdown"]) for one in several)
    lines: Mapping[str, str] = {"The paper says.": paper, "We find.": said, "It depends on.": depends}
    body = "\n\n".join(f"**{head}** {text}" for head, text in lines.items())
    return Text(f":::{{admonition}} Take away\n:class: tip take-away\n\n{body}\n:::")
