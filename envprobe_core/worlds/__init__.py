"""The three worlds of Sections 3 and 6.1: a module each, with the same functions; a call goes to its world's.

A module defines NAME, TITLE and CODE, the records TASK and STATE, `describe`, and the functions below of its
rules (`base.World.record`) and of an episode's parts (`compiled.records`). Arrays [field] are filled in.

A world of one's own is one more such module: a file in this folder, or any module that `register` is given.
It holds the agent's mind too (`agents.minds`), and may hold the public code's estimators (end of `released`);
neither the engine nor the agent is touched. VoI, whose arithmetic differs by world (end of `policies.voi`),
refuses it. `tests/corridor.py` is a whole one, of three fields. While one is written,
NUMBA_DISABLE_JIT=1 runs it as plain Python, whose errors name the line; the compiler's do not.
Where the paper leaves room, book/definitions.md decides.
"""

import hashlib
import inspect
import pkgutil
from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from envprobe_core.compiled.numba_support import ByWorld, inline
from envprobe_core.errors import InputError
from envprobe_core.naming import find_name
from envprobe_core.own_modules import arguments_of, check_arguments
from envprobe_core.protocols import PAPER, Protocol
from envprobe_core.regimes import REGIMES, Regime
from envprobe_core.worlds import base, graphnav, objectstate, tooldag
from envprobe_core.worlds.base import World

OF_THE_PAPER = (tooldag, objectstate, graphnav)
WORLDS: dict[str, str] = {"tooldag": "tools", "objectstate": "rooms", "graphnav": "graphs"}
"""Names of the paper's worlds, which experiments run by default, and what pages call them."""
MODULES: dict[str, ModuleType] = {}
"""Every registered world's module by its name, the paper's first."""


def world_titles() -> dict[str, tuple[str, ...]]:
    """Names of the registered worlds with what pages and the paper call them, as `naming` takes them."""
    titles = {name: (module.TITLE,) for name, module in MODULES.items()}
    called = {name: (title, *titles[name]) for name, title in WORLDS.items()}
    return titles | called | {"tooldag": (*called["tooldag"], "tool world")}


def find_world(name: str) -> str:
    """The name of the world that a name or title stands for; an unknown one is refused with the known.

    >>> find_world("ToolDAGWorld"), find_world("rooms")
    ('tooldag', 'objectstate')
    """
    return name if isinstance(name, str) and name in MODULES else find_name("world", name, world_titles())


@cache
def make_world(name: str, regime: Regime, protocol: Protocol) -> World:
    """The world of a name, built for a regime and a protocol; an unknown name is refused with the known.

    >>> make_world("tooldag", REGIMES["S2"], PAPER).fields
    27
    """
    return MODULES[find_world(name)].describe(regime, protocol)


def kind_of(name: str) -> Any:
    """The dtype of a world's record of rules, by which compiled functions tell worlds apart."""
    return make_world(name, REGIMES["S2"], PAPER).record.dtype


@inline
def nothing(world, *asked):
    """Nothing: there is nothing of this sort in this world."""


@inline
def zero(world, *asked):
    """Zero, what a world without this rule answers."""
    return 0.0


CONSTANTS = ("NAME", "TITLE", "CODE", "TASK", "STATE", "describe")
Found = Callable[[ModuleType], Any]
_joined: list[tuple[ByWorld, Found]] = []
"""Every function that goes to a world's own, and how that is found by the world's module."""
_required: dict[str, tuple[list[str], Found]] = {}
"""The arguments of what every world must define, and the module that has it."""


def of_each(
    *functions: Callable[..., Any], otherwise: Callable[..., Any] = nothing, name: str = ""
) -> Callable[..., Any]:
    """A function that goes to the world's own of these, one a world of the paper.

    Other worlds have the one of that name in their module, if there is a name and such a function, or
    `otherwise`.
    """
    named = dict(zip(WORLDS, functions, strict=True))
    return _join(lambda module: named.get(module.NAME, getattr(module, name, otherwise)))


def itself(world: ModuleType) -> ModuleType:
    """The world's own module, where its dynamics are."""
    return world


def required(home: Found = itself) -> Callable[[Callable[..., Any]], Any]:
    """Turn a function's head into one that goes to the world's own, which must be in the module `home`."""

    def join(function: Callable[..., Any]) -> Any:
        name = function.__name__
        _required[name] = arguments_of(function), home
        for module in MODULES.values():
            _check(module)
        return _join(lambda module: getattr(home(module), name))

    return join


def optional(home: Found = itself) -> Callable[[Callable[..., Any]], Any]:
    """Turn a function into one that goes to the world's own, and serves where the module `home` has none."""

    def join(function: Callable[..., Any]) -> Any:
        name, otherwise = function.__name__, inline(function)
        return _join(lambda module: getattr(home(module), name, otherwise))

    return join


def _check(module: ModuleType) -> None:
    """Refuse a world that lacks something, or whose function takes other arguments than it is given."""
    missing = [name for name in CONSTANTS if not hasattr(module, name)]
    missing += [name for name, (_, home) in _required.items() if not hasattr(home(module), name)]
    if missing:
        raise InputError(f"world module {module.__name__} lacks {', '.join(missing)}")
    for name, (due, home) in _required.items():
        check_arguments(f"world {module.NAME!r}", name, getattr(home(module), name), due)


def _join(find: Found) -> Callable[..., Any]:
    joined = ByWorld()
    for module in MODULES.values():
        joined.add(kind_of(module.NAME), find(module))
    _joined.append((joined, find))  # a name that some world lacks is in no list
    return joined.function


@required()
def create(world, task, state, key):
    """Draw the instance of a seed: its task graph and its first state."""


@required()
def weigh(world, task, weight):
    """Fill in w, the importance of each field for the task, from which c follows."""


@required()
def reveal(world, task, state, gold):
    """Fill in g_t, the true value of every field."""


@required()
def succeeded(world, task, state):
    """Whether the goal is reached."""


@required()
def act(world, task, state, action):
    """Carry out an action; return whether it was valid."""


@required()
def mutate(world, task, state, key, tick):
    """Let the world move once."""


@required()
def show(world, task, state, action, word, observation):
    """Fill in what is seen after an action."""


@required()
def roles(world, task, place, action, d):
    """Fill in d, the dependency role of every field for a proposed action."""


@required()
def uses(world, task, place, action, used):
    """Mark the fields that the agent itself knows an action to use."""


def register(module: ModuleType) -> None:
    """Make a world known: it runs in `run`, `play` and `compare` like the paper's.

    Args:
        module: defines `CONSTANTS`, all `required` functions, which are `inline`, and MIND. Its text enters
            the key of the machine code, so that an edit is compiled anew.

    Raises:
        InputError: if something is missing or takes other arguments, or the name or code is taken or is none.
    """
    _check(module)
    for other in (one for one in MODULES.values() if one is not module):
        if other.NAME == module.NAME:
            raise InputError(
                f"world module {module.__name__}: the name {module.NAME!r} is {other.__name__}'s"
            )
        if other.CODE == module.CODE:
            free = max(one.CODE for one in MODULES.values()) + 1
            claim = f"code {module.CODE} is that of {other.NAME!r}; {free} is free"
            raise InputError(f"world {module.NAME!r}: {claim}")
    if not isinstance(module.CODE, int):  # it keys random draws
        raise InputError(f"world {module.NAME!r}: CODE {module.CODE!r} is not a whole number")
    if module not in OF_THE_PAPER:
        text = inspect.getsource(module)
        base.EDITIONS[module.NAME] = hashlib.sha256(text.encode()).hexdigest()[:8]
    MODULES[module.NAME] = module
    for joined, find in _joined:
        joined.add(kind_of(module.NAME), find(module))


for _module in OF_THE_PAPER:
    register(_module)
for _file in pkgutil.iter_modules(__path__):
    _module = import_module(f"{__name__}.{_file.name}")
    if hasattr(_module, "NAME") and _module not in OF_THE_PAPER:
        register(_module)
