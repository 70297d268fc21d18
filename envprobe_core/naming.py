"""Names, and the titles that pages print instead: each is accepted wherever the other is, in either case.

A world, a policy and a protocol have a name that a command line, a frame and an address hold (`paper`), and a
title that text and figures show (*as written*). Here a text is read as the one it means.
"""

import re
from collections.abc import Iterable, Mapping

from envprobe_core.errors import InputError

Titles = Mapping[str, tuple[str, ...]]
"""The titles of each name, the one that is printed first."""
_LIKE = str.maketrans({"\u00a0": " ", "\u2011": "-", "\u2212": "-"})  # as pages set them
_JOIN = "\ue000"  # of no alphabet


def _folded(text: str) -> str:
    return " ".join(text.translate(_LIKE).split()).casefold()


def find_name(kind: str, given: str, titles: Titles) -> str:
    """The name that a name or a title stands for.

    Raises:
        InputError: if there is none such; the message lists names and titles.

    >>> rules = {"paper": ("as written",), "released": ("as released",)}
    >>> find_name("protocol", "As written", rules), find_name("protocol", "released", rules)
    ('paper', 'released')
    >>> find_name("rule", "printed", {"paper": ("as written",)})
    Traceback (most recent call last):
    envprobe_core.errors.InputError: unknown rule 'printed'; accepted: paper (as written)
    """
    if isinstance(given, str):
        if given in titles:
            return given
        for name, others in titles.items():
            if _folded(given) in map(_folded, (name, *others)):
                return name
    raise InputError(f"unknown {kind} {given!r}; accepted: {accepted(titles)}")


def accepted(titles: Titles) -> str:
    """Every name with the titles that say more than it does, as a message lists them.

    >>> accepted({"tooldag": ("ToolDAGWorld", "tools"), "random": ("Random",)})
    'tooldag (ToolDAGWorld or tools), random'
    """
    told = []
    for name, others in titles.items():
        more = [title for title in others if _folded(title) != _folded(name)]
        told.append(f"{name} ({' or '.join(more)})" if more else name)
    return ", ".join(told)


def split_names(text: str, titles: Titles | None = None) -> list[str]:
    """Split a text at blanks and commas, but not inside a title.

    A protocol with switches turned (`paper:clock=stands,end=success`) has commas of its own: where a colon
    occurs, blanks alone separate.

    >>> rules = {"paper": ("as written",), "released": ("as released",)}
    >>> split_names("as written, as released", rules)
    ['as written', 'as released']
    >>> split_names("as written:clock=stands,end=success released", rules)
    ['as written:clock=stands,end=success', 'released']
    """
    text = text.translate(_LIKE)
    longest = sorted(_with_blanks(titles or {}), key=len, reverse=True)
    if longest:
        words = "|".join(r"\s+".join(map(re.escape, title.split())) for title in longest)
        found = re.compile(rf"(?<![^\s,])(?:{words})(?![^\s,:])", re.IGNORECASE)
        text = found.sub(lambda match: re.sub(r"\s+", _JOIN, match[0]), text)
    parts = (text if ":" in text else text.replace(",", " ")).split()
    return [part.replace(_JOIN, " ") for part in parts]


def _with_blanks(titles: Titles) -> Iterable[str]:
    every = (title.translate(_LIKE) for others in titles.values() for title in others)
    return (title for title in every if len(title.split()) > 1)
