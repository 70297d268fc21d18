"""The one error a user can cause and mend."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pydantic import ValidationError

Meant = TypeVar("Meant")
LONGEST = 200  # characters of what was given that a message repeats
_UNKNOWN = re.compile(r"unknown [\w ]+ '(?P<given>[^']*)'(?P<rest>.*; accepted: (?P<names>[\w:, .-]+))$")


class InputError(ValueError):
    """Input that cannot be used: its message says what, the value given, and what is accepted.

    The command line shows it as one line and ends with exit code 2.
    """


def look_up(kind: str, name: str, known: Mapping[str, Meant]) -> Meant:
    """Return what a name stands for.

    Raises:
        InputError: if there is none of that name; the message lists those there are.
    """
    if name not in known:
        raise InputError(f"unknown {kind} {name!r}; accepted: {', '.join(known)}")
    return known[name]


def first_fault(error: ValidationError) -> str:
    """Return where the first fault of a file is, and what."""
    first = error.errors()[0]
    return f"{' '.join(str(part) for part in first['loc'])}: {first['msg']}".removeprefix(": ")


def in_one_line(message: str) -> str:
    """Return a message as one line: what it repeats is cut, and a near miss of a name is pointed out."""
    line = " ".join(message.encode("utf-8", "backslashreplace").decode().split())
    line = re.sub(r"[^\x20-\x7e\u00a0-\U0010ffff]", "?", line)
    line = re.sub(rf"(\S{{{LONGEST}}})\S+", r"\1…", line)
    line = re.sub(rf"'([^']{{{LONGEST}}})[^']+'", r"'\1…'", line)
    if match := _UNKNOWN.search(line):
        names = {name.lower(): name for name in match["names"].split(", ")}
        for near in get_close_matches(match["given"].lower(), names, n=1):
            line = line.replace(match["rest"], f" (did you mean {names[near]}?){match['rest']}", 1)
    return line
