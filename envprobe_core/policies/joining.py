"""What is asked of a module of policies before it joins the others."""

from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType

import numpy as np

from envprobe_core.compiled.numba_support import INTERPRETED
from envprobe_core.compiled.records import TABLE, episode
from envprobe_core.errors import InputError
from envprobe_core.own_modules import check_arguments
from envprobe_core.policies.base import Policy

ALWAYS = {"opens": ("params", "rule", "episode", "reader")}
REMEMBERING = {"begin": ("params", "episode"), "notice": ("params", "episode")}
"""The functions of a module and what each is given; these two are of one that has a MEMORY."""
MEMBERS = ("POLICIES", "KINDS", *ALWAYS, "MEMORY", *REMEMBERING)
PARTS = frozenset(episode(TABLE, TABLE, TABLE, {}).names or ())
"""The names of what an episode has without the records that policies keep."""


def holds_policies(module: ModuleType) -> bool:
    """Whether a module is one of policies: it has something of what such a module has."""
    return any(hasattr(module, name) for name in MEMBERS)


def check(module: ModuleType, others: Sequence[ModuleType]) -> None:
    """Refuse a module that lacks something, is made wrongly, or takes what one of the others has.

    Raises:
        InputError: in one line, which names the module.
    """
    where = f"policy module {module.__name__}"
    remembers = any(hasattr(module, name) for name in ("MEMORY", *REMEMBERING))
    functions = ALWAYS | (REMEMBERING if remembers else {})
    due = ("POLICIES", "KINDS", *functions, *(("MEMORY",) if remembers else ()))
    if missing := [name for name in due if not hasattr(module, name)]:
        raise InputError(f"{where} lacks {', '.join(missing)}")
    for name, arguments in functions.items():
        function = getattr(module, name)
        check_arguments(where, name, function, arguments)
        if not (INTERPRETED or hasattr(function, "py_func")):
            raise InputError(f"{where}: {name} is not compiled; it needs the decorator `inline`")
    _check_constants(where, module)
    for other in others:
        _check_free(where, module, other, free=1 + max(kind for one in others for kind in one.KINDS))


def _check_constants(where: str, module: ModuleType) -> None:
    """Refuse constants that are something else, or two policies of one name."""
    policies, memory = module.POLICIES, getattr(module, "MEMORY", {})
    if not (isinstance(policies, tuple | list) and _all(policies, Policy)):
        raise InputError(f"{where}: POLICIES {policies!r} is not accepted; a tuple of policies is")
    names = [policy.name for policy in policies]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"{where}: {twice[0]!r} is the name of two policies; one of a name is accepted")
    if not (isinstance(kinds := module.KINDS, Mapping) and _all(kinds, int) and _all(kinds.values(), str)):
        raise InputError(f"{where}: KINDS {kinds!r} is not accepted; sentences by whole numbers are")
    if not (isinstance(memory, Mapping) and _all(memory, str) and _all(memory.values(), np.dtype)):
        raise InputError(f"{where}: MEMORY {memory!r} is not accepted; dtypes by names are")
    for name in PARTS & memory.keys():
        raise InputError(f"{where}: MEMORY name {name!r} is that of a part of every episode; choose another")


def _all(values: Iterable[object], kind: type) -> bool:
    return all(isinstance(value, kind) for value in values)


def _check_free(where: str, module: ModuleType, other: ModuleType, free: int) -> None:
    """Refuse what is another module's."""
    taken = {word: policy.name for policy in other.POLICIES for word in (policy.name, policy.title)}
    for word in (word for policy in module.POLICIES for word in (policy.name, policy.title)):
        if word in taken:
            theirs = f"is taken by policy {taken[word]!r} of {other.__name__}"
            raise InputError(f"{where}: policy name or title {word!r} {theirs}; choose another")
    for kind in module.KINDS.keys() & other.KINDS.keys():
        raise InputError(f"{where}: kind {kind} is taken by {other.__name__}; {free} is free")
    for name in getattr(module, "MEMORY", {}).keys() & getattr(other, "MEMORY", {}).keys():
        raise InputError(f"{where}: MEMORY name {name!r} is taken by {other.__name__}; choose another")
