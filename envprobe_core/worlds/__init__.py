"""The three worlds of Sections 3 and 6.1: a module each, with the same functions; a call goes to its world's.

A module defines NAME, TITLE and CODE, the records TASK, STATE and MIND, `describe`, and functions of its
rules (`base.World.record`) and of an episode's parts (`engine.records`). Arrays [field] are filled in.

    create     the instance of a seed            meet      what the agent remembers at first
    weigh      w, from which c follows           remember  what it notes of a step
    reveal     g_t                               conclude  what its own action's outcome tells it
    succeeded  whether the goal is reached       derive    what follows by the task graph (may be left out)
    act        an action; says if it was valid   plan      the action that it proposes
    mutate     the world moves once              wander    what the scribe proposes, which keeps no table
    show       what is seen after a step         stand_in  what the public harness does for a probe
    roles      d, for the proposed action        informs, mismatched, overlap: by the public code whether a
    uses       what the agent knows it to use              probe is useful, an oracle probes, and accuracy

A world of one's own is one more such module: a file in this folder, or any module that `register` is given.
Neither the engine nor the agent is touched. What it need not define has a neutral meaning (`derive`, and the
public code's functions); VoI, whose arithmetic is each world's own (end of `policies.voi`), refuses it.
`tests/corridor.py` is a whole one, of three fields. While one is written, NUMBA_DISABLE_JIT=1 runs it as
plain Python, whose errors name the line; the compiler's do not.
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

from envprobe_core.engine.numba_support import ByWorld, inline
from envprobe_core.errors import InputError
from envprobe_core.naming import find_name
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
def nothing(world, *given):
    """Nothing: there is nothing of this sort in this world."""


@inline
def zero(world, *given):
    """Zero, what a world without this rule answers."""
    return 0.0


@inline
def never(world, *given):
    """False, what a world without this rule answers."""
    return False


@inline
def stay(world, *given):
    """WAIT, what an agent does in a world without this rule."""
    return -1


_joined: list[tuple[ByWorld, Callable[[ModuleType], Any]]] = []
"""Every function that goes to a world's own, and how that is found in a world's module."""


def of_each(*functions: Callable[..., Any], otherwise: Callable[..., Any] = nothing) -> Callable[..., Any]:
    """A function that goes to the world's own of these, one a world of the paper; others have `otherwise`."""
    named = dict(zip(WORLDS, functions, strict=True))
    return _join(lambda module: named.get(module.NAME, otherwise))


def _own(name: str, otherwise: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """A function that goes to the one of this name in the world's module, or to what stands for it."""
    if otherwise is None:
        return _join(lambda module: getattr(module, name))
    return _join(lambda module: getattr(module, name, otherwise))


def _join(find: Callable[[ModuleType], Any]) -> Callable[..., Any]:
    joined = ByWorld()
    for module in MODULES.values():
        joined.add(kind_of(module.NAME), find(module))
    _joined.append((joined, find))  # a name that some world lacks is in no list
    return joined.function


REQUIRED = (
    "NAME", "TITLE", "CODE", "TASK", "STATE", "MIND", "describe", "create", "weigh", "reveal", "succeeded",
    "act", "mutate", "show", "roles", "uses", "meet", "remember", "conclude", "plan",
)  # fmt: skip


def register(module: ModuleType) -> None:
    """Make a world known: it runs in `run`, `play` and `compare` like the paper's.

    Args:
        module: defines all of `REQUIRED`; its functions of rules are `inline`. Its text enters the key of the
            machine code, so that an edit is compiled anew.

    Raises:
        InputError: if something is missing or takes other arguments, or the name or code is taken or is none.
    """
    if missing := [name for name in REQUIRED if not hasattr(module, name)]:
        raise InputError(f"world module {module.__name__} lacks {', '.join(missing)}")
    for other in (one for one in MODULES.values() if one is not module):
        if other.NAME == module.NAME:
            raise InputError(
                f"world module {module.__name__}: the name {module.NAME!r} is {other.__name__}'s"
            )
        if other.CODE == module.CODE:
            free = max(one.CODE for one in MODULES.values()) + 1
            taken = f"code {module.CODE} is that of {other.NAME!r}; {free} is free"
            raise InputError(f"world {module.NAME!r}: {taken}")
    if not isinstance(module.CODE, int):  # it keys random draws
        raise InputError(f"world {module.NAME!r}: CODE {module.CODE!r} is not a whole number")
    for name in (name for name in REQUIRED if name.islower()):
        own, due = (_arguments(getattr(one, name)) for one in (module, objectstate))
        if len(own) != len(due):
            accepted = f"accepted is {name}({', '.join(due)})"
            raise InputError(f"world {module.NAME!r}: {name}({', '.join(own)}) takes {len(own)}; {accepted}")
    if module not in OF_THE_PAPER:
        text = inspect.getsource(module)
        base.EDITIONS[module.NAME] = hashlib.sha256(text.encode()).hexdigest()[:8]
    MODULES[module.NAME] = module
    for joined, find in _joined:
        joined.add(kind_of(module.NAME), find(module))


def _arguments(function: Any) -> list[str]:
    """The names of the arguments that a function must be given, compiled or not."""
    known = inspect.signature(getattr(function, "py_func", function)).parameters.values()
    return [one.name for one in known if one.default is one.empty]


for _module in OF_THE_PAPER:
    register(_module)
for _found in pkgutil.iter_modules(__path__):
    _module = import_module(f"{__name__}.{_found.name}")
    if hasattr(_module, "NAME") and _module not in OF_THE_PAPER:
        register(_module)

create, weigh, reveal = _own("create"), _own("weigh"), _own("reveal")
succeeded, act, mutate, show = _own("succeeded"), _own("act"), _own("mutate"), _own("show")
roles, uses = _own("roles"), _own("uses")
meet, remember, conclude, plan = _own("meet"), _own("remember"), _own("conclude"), _own("plan")
derive = _own("derive", nothing)
wander, stand_in = _own("wander", stay), _own("stand_in", stay)
informs, mismatched, overlap = _own("informs", never), _own("mismatched", never), _own("overlap", zero)
