"""The one error a user can cause and mend."""

import re
from difflib import get_close_matches

LONGEST = 200  # characters of what was given that a message repeats
_UNKNOWN = re.compile(r"unknown [\w ]+ '(?P<given>[^']*)'(?P<rest>.*; accepted: (?P<names>[\w:, -]+))$")


class InputError(ValueError):
    """Input that cannot be used: its message says what, the value given, and what is accepted.

    The command line shows it as one line and ends with exit code 2.
    """


def in_one_line(message: str) -> str:
    """Return a message as one line: what it repeats is cut, and a near miss of a name is pointed out."""
    line = " ".join(message.encode("utf-8", "backslashreplace").decode().split())
    line = re.sub(r"[^\x20-\x7e\u00a0-\U0010ffff]", "?", line)
    line = re.sub(rf"(\S{{{LONGEST}}})\S+", r"\1…", line)
    line = re.sub(rf"'([^']{{{LONGEST}}})[^']+'", r"'\1…'", line)
    if match := _UNKNOWN.search(line):
        near = get_close_matches(match["given"].lower(), re.split(r", ", match["names"]), n=1)
        if near:
            line = line.replace(match["rest"], f" (did you mean {near[0]}?){match['rest']}", 1)
    return line
