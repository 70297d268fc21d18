"""What is asked of the functions of a module that joins: a world's, or one of policies."""

import inspect
from collections.abc import Sequence
from typing import Any

from envprobe_core.errors import InputError


def arguments_of(function: Any) -> list[str]:
    """The names of the arguments that a function must be given, compiled or not.

    >>> arguments_of(lambda world, task=None: 0)
    ['world']
    """
    known = inspect.signature(getattr(function, "py_func", function)).parameters.values()
    return [one.name for one in known if one.default is one.empty]


def check_arguments(where: str, name: str, function: Any, due: Sequence[str]) -> None:
    """Refuse a function that takes another number of arguments than it is given.

    Args:
        where: whose it is, as the message begins.
        name: of the function.
        function: compiled or not.
        due: the names of what it is given.

    Raises:
        InputError: which says what it takes, and what is accepted.
    """
    taken = arguments_of(function)
    if len(taken) != len(due):
        accepted = f"accepted is {name}({', '.join(due)})"
        raise InputError(f"{where}: {name}({', '.join(taken)}) takes {len(taken)}; {accepted}")
