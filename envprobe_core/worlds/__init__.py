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

A world is added to MODULES. What is each world's own stands also at the end of `policies.voi`, in `plans`
and in `measures.wrong_anywhere`. Where the paper leaves room, book/definitions.md decides.
"""

from functools import cache

from envprobe_core.engine.numba_support import by_world, inline
from envprobe_core.errors import look_up
from envprobe_core.protocols import PAPER, Protocol
from envprobe_core.regimes import REGIMES, Regime
from envprobe_core.worlds import graphnav, objectstate, tooldag
from envprobe_core.worlds.base import World

MODULES = {module.NAME: module for module in (tooldag, objectstate, graphnav)}
WORLDS: dict[str, str] = {name: module.TITLE for name, module in MODULES.items()}
"""Names and printed titles."""


@cache
def make_world(name: str, regime: Regime, protocol: Protocol) -> World:
    """Build a world for a regime and a protocol; an unknown name is refused with the known."""
    return look_up("world", name, MODULES).describe(regime, protocol)


RULES = {name: make_world(name, REGIMES["S2"], PAPER).record.dtype for name in WORLDS}
"""The kind of each world's record of rules, by which compiled functions tell worlds apart."""


@inline
def nothing(world, *given):
    """Do nothing: there is nothing of this sort in this world."""


def of_each(*functions):
    """Return a function that goes to the world's own of these: one a world, in the order of MODULES."""
    return by_world(dict(zip(RULES.values(), functions, strict=True)))


def _of(names, *otherwise):
    """Return functions that each go to the function of their name in the world's module."""
    return [
        of_each(*(getattr(module, name, *otherwise) for module in MODULES.values())) for name in names.split()
    ]


create, weigh, reveal, succeeded, act, mutate = _of("create weigh reveal succeeded act mutate")
show, roles, uses = _of("show roles uses")
meet, remember, conclude, plan = _of("meet remember conclude plan")
(derive,) = _of("derive", nothing)
wander, stand_in, informs, mismatched, overlap = _of("wander stand_in informs mismatched overlap")
