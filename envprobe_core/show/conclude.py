"""Sentences that people write, and the condition under which each is true."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from envprobe_core.show.markup import Text

BOOK = "ENVPROBE_BOOK_VALUES"
"""Set where a notebook runs with the book's own values: there a sentence that is not true is a fault."""


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
    if callable(when):
        try:
            when = when()
        except LookupError:
            when = False
    found = np.asarray(when)
    holds = bool(found.size) and bool(found.astype(bool).all())
    if not holds and os.environ.get(BOOK):
        raise ConclusionError(f"with the book's own values this is not so: {text}")
    return Conclusion(text, holds)


def take_away(paper: str, found: Conclusion | list[Conclusion], depends: str) -> Text:
    """Close a section: what the paper says, what we find, and what that depends on.

    Args:
        paper: a sentence or two.
        found: conclusions, each guarded by its condition.
        depends: a sentence or two.
    """
    several = found if isinstance(found, list) else [found]
    said = " ".join(str(one._repr_mimebundle_()["text/markdown"]) for one in several)
    lines: Mapping[str, str] = {"The paper says.": paper, "We find.": said, "It depends on.": depends}
    body = "\n\n".join(f"**{head}** {text}" for head, text in lines.items())
    return Text(f":::{{admonition}} Take away\n:class: tip take-away\n\n{body}\n:::")
