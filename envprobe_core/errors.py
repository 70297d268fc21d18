"""What a user is told in one line: input that cannot be used, and work that had to stop."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import pandas as pd
    from pydantic import ValidationError

Meant = TypeVar("Meant")
LONGEST = 200  # characters of what was given that a message repeats
WHOLE = 1000  # characters of a message
COMPILING = "envprobe: compiling the engine for "  # begins the line that says it, which no result keeps
DAMAGED = "envprobe: a file of compiled code is damaged: "  # as this one
_UNKNOWN = re.compile(r"unknown [\w ]+ '(?P<given>[^']*)'(?P<rest>.*; accepted: (?P<names>[\w:, .()+-]+))$")


class InputError(ValueError):
    """Input that cannot be used: its message says what, the value given, and what is accepted.

    The command line shows it as one line and ends with exit code 2.
    """


class StoppedError(Exception):
    """Work that had to stop: its message says why. The command line ends with exit code 1."""


def look_up(kind: str, name: str, known: Mapping[str, Meant]) -> Meant:
    """What a name stands for.

    Raises:
        InputError: if there is none of that name; the message lists those there are.

    >>> look_up("letter", "a", {"a": 1})
    1
    """
    if not isinstance(name, str) or name not in known:
        raise InputError(f"unknown {kind} {name!r}; accepted: {', '.join(known)}")
    return known[name]


def counted(count: int, one: str) -> str:
    """Write how many there are of something: `1 condition`, `2 conditions`.

    >>> counted(1, "episode"), counted(2, "episode")
    ('1 episode', '2 episodes')
    """
    return f"{count} {one}{'' if count == 1 else 's'}"


def require(frame: pd.DataFrame, names: Iterable[str]) -> None:
    """Refuse what is no frame, or one without some columns."""
    if not hasattr(frame, "columns"):
        raise InputError(f"{str(frame)[:LONGEST]!r} is no frame, as `run` gives; one is needed here")
    if missing := [str(name) for name in names if name not in frame.columns]:
        has = ", ".join(map(str, frame.columns))
        raise InputError(f"the frame has no column {', '.join(missing)}; it has {has[:LONGEST]}")


def first_fault(error: ValidationError) -> str:
    """Where the first fault of a file is, and what; a refusal of ours in its own words."""
    first = error.errors()[0]
    if isinstance(own := first.get("ctx", {}).get("error"), InputError):
        return str(own)
    return f"{' '.join(str(part) for part in first['loc'])}: {first['msg']}".removeprefix(": ")


def in_one_line(message: str) -> str:
    """A message as one line: what it repeats is cut, and a near miss of a name is pointed out.

    >>> in_one_line("two  blanks")
    'two blanks'
    """
    line = " ".join(message.encode("utf-8", "backslashreplace").decode().split())
    line = re.sub(r"[^\x20-\x7e\u00a0-\U0010ffff]", "?", line)
    line = re.sub(rf"(\S{{{LONGEST}}})\S+", r"\1…", line)
    for sign in "'\"":
        line = re.sub(rf"{sign}([^{sign}]{{{LONGEST}}})[^{sign}]+{sign}", rf"{sign}\1…{sign}", line)
    if len(line) > WHOLE:  # of what is given without quotes, as a path with blanks
        line = f"{line[:LONGEST]}… {line[LONGEST - WHOLE :]}"
    if match := _UNKNOWN.search(line):
        names = {}
        for listed in match["names"].split(", "):  # a name, or one with its titles behind it
            name, _, titles = listed.removesuffix(")").partition(" (")
            names |= {one.lower(): one for one in (name, *filter(None, titles.split(" or ")))}
        for near in get_close_matches(match["given"].lower(), names, n=1):
            line = line.replace(match["rest"], f" (did you mean {names[near]}?){match['rest']}", 1)
    return line
