"""The three worlds of Section 6.1, by name."""

from __future__ import annotations

from envprobe_core.errors import InputError
from envprobe_core.protocols import Protocol
from envprobe_core.regimes import Regime
from envprobe_core.worlds.base import World
from envprobe_core.worlds.graphnav import GraphNavWorld
from envprobe_core.worlds.objectstate import ObjectStateWorld
from envprobe_core.worlds.tooldag import ToolDAGWorld

WORLDS: dict[str, type[World]] = {
    world.name: world for world in (ToolDAGWorld, ObjectStateWorld, GraphNavWorld)
}


def make_world(name: str, regime: Regime, protocol: Protocol) -> World:
    """Build a world for a regime and a protocol.

    Raises:
        InputError: if there is no world of that name.
    """
    if name not in WORLDS:
        raise InputError(f"unknown world {name!r}; accepted: {', '.join(WORLDS)}")
    return WORLDS[name](regime, protocol)
