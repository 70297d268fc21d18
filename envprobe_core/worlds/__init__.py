"""The three worlds of Section 6.1: a module each, with the same functions; each call goes to its world's."""

from __future__ import annotations

from envprobe_core.engine.compiling import by_world
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


def _of(name):
    return by_world({RULES[world]: getattr(module, name) for world, module in MODULES.items()})


create, weigh, reveal, where, succeeded = (
    _of("create"),
    _of("weigh"),
    _of("reveal"),
    _of("where"),
    _of("succeeded"),
)
act, mutate, show, roles, uses = _of("act"), _of("mutate"), _of("show"), _of("roles"), _of("uses")
meet, remember, conclude, derive, plan = (
    _of("meet"),
    _of("remember"),
    _of("conclude"),
    _of("derive"),
    _of("plan"),
)
overlap, values, is_goal = _of("overlap"), _of("values"), _of("is_goal")
wander, stand_in, informs, mismatched = _of("wander"), _of("stand_in"), _of("informs"), _of("mismatched")
