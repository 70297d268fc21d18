"""The three worlds of Section 6.1: a module each, with the same functions; each call goes to its world's."""

from __future__ import annotations

from envprobe_core.engine.compiling import by_world, compiled
from envprobe_core.engine.records import numbers
from envprobe_core.errors import look_up
from envprobe_core.protocols import Protocol
from envprobe_core.regimes import Regime
from envprobe_core.worlds import graphnav, objectstate, tooldag
from envprobe_core.worlds.base import World

MODULES = {module.NAME: module for module in (tooldag, objectstate, graphnav)}
WORLDS: dict[str, str] = {name: module.TITLE for name, module in MODULES.items()}
"""Names and printed titles."""
RULES = {
    "tooldag": numbers(tooldag.ToolDAG),
    "objectstate": numbers(objectstate.ObjectState),
    "graphnav": numbers(graphnav.GraphNav),
}


def make_world(name: str, regime: Regime, protocol: Protocol) -> World:
    """Build a world for a regime and a protocol.

    Raises:
        InputError: if there is no world of that name.
    """
    return look_up("world", name, MODULES).describe(regime, protocol)


@compiled
def nothing(world, *given):
    """Do nothing: there is nothing of this sort in this world."""


def _of(*names):
    """Return functions that each go to the function of their name in the world's module."""
    return [
        by_world({RULES[world]: getattr(module, name, nothing) for world, module in MODULES.items()})
        for name in names
    ]


create, weigh, reveal, where, succeeded = _of("create", "weigh", "reveal", "where", "succeeded")
act, mutate, show, roles, uses = _of("act", "mutate", "show", "roles", "uses")
meet, remember, conclude, derive, plan = _of("meet", "remember", "conclude", "derive", "plan")
overlap, values, is_goal = _of("overlap", "values", "is_goal")
wander, stand_in, informs, mismatched = _of("wander", "stand_in", "informs", "mismatched")
