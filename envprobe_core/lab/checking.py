"""Self-checks: what a student's result must be like, said without the result."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from envprobe_core.errors import InputError, in_one_line
from envprobe_core.show.markup import Text, code


def self_check(names: str, wanted: Mapping[str, Callable[..., Any]]) -> Text:
    """Look at results of the notebook and say of each property whether they have it.

    Args:
        names: of the notebook's variables, divided by spaces.
        wanted: a property in words -> a function of these variables that says whether it is so; where it
            fails, the answer is no, with the failure.

    Raises:
        InputError: if no name or no property is given.
    """
    asked = names.split() if isinstance(names, str) else []
    if not asked or not wanted:
        raise InputError('self_check takes names and properties: self_check("frame", {"is not empty": len})')
    frame = inspect.currentframe()
    space = frame.f_back.f_globals if frame and frame.f_back else {}
    lacking = [name for name in asked if name not in space]
    if lacking:
        them = "it" if len(lacking) == 1 else "them"
        return Text(
            f"☐ There is no {code(lacking)} yet: work the exercise in the cell above, name your result so, "
            f"and run both cells. The check looks at {them} by name."
        )
    lines, missing = [], 0
    for words, has in wanted.items():
        fault = ""
        try:
            good = bool(has(*(space[name] for name in asked)))
        except Exception as error:  # a result of another kind may fail in any way
            good, fault = False, f" ({in_one_line(f'{type(error).__name__}: {error}')[:120]})"
        missing += not good
        lines.append(f"* {'☑' if good else '☐'} {words}{fault}")
    end = "The form is right; whether the answer is, the numbers must say." if not missing else "Not yet."
    return Text("\n".join([*lines, "", end]))
