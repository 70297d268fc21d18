"""The three worlds of Section 6.1: a module each, with the same functions; each call goes to its world's."""

from functools import cache

from envprobe_core.engine.compiling import by_world, compiled
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
    """Build a world for a regime and a protocol.

    Raises:
        InputError: if there is no world of that name.
    """
    return look_up("world", name, MODULES).describe(regime, protocol)


RULES = {name: make_world(name, REGIMES["S2"], PAPER).record.dtype for name in WORLDS}
"""The kind of each world's record of rules, by which compiled functions tell worlds apart."""


@compiled
def nothing(world, *given):
    """Do nothing: there is nothing of this sort in this world."""


def _of(*names):
    """Return functions that each go to the function of their name in the world's module."""
    return [
        by_world({RULES[world]: getattr(module, name, nothing) for world, module in MODULES.items()})
        for name in names
    ]


create, weigh, reveal, succeeded, act, mutate = _of("create", "weigh", "reveal", "succeeded", "act", "mutate")
show, roles, uses, overlap = _of("show", "roles", "uses", "overlap")
meet, remember, conclude, derive, plan = _of("meet", "remember", "conclude", "derive", "plan")
wander, stand_in, informs, mismatched = _of("wander", "stand_in", "informs", "mismatched")
