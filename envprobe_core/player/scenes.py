"""Where things stand when the player draws a world: the static structure of one instance, with places.

A scene names for every thing that is drawn the field that belongs to it, and for every task action what it
aims at. What is true or believed is not part of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from envprobe_core.schematics import layered, short_name
from envprobe_core.timeline import word
from envprobe_core.witness import Witnessed
from envprobe_core.worlds.base import UNKNOWN, World


def make_scene(seen: Witnessed, row: int = 0) -> dict[str, Any]:
    """Return what is drawn of one row's instance, with the names and values of its fields.

    Returns:
        `kind` (tools, rooms or graph) and its parts; `aims`, for every action what it aims at (a kind of part
        and its number); `fields`, `actions`, their names; `words`, lists of what values mean, the unknown
        first, and `word_of`, the list that each field uses.
    """
    make = {"tooldag": _tools, "objectstate": _rooms, "graphnav": _graph}[seen.world.name]
    return {
        **make(seen, row),
        "fields": list(seen.world.field_names),
        "actions": list(seen.world.action_names),
        **_vocabulary(seen.world),
    }


def _vocabulary(world: World) -> dict[str, Any]:
    lists = [
        tuple(word(world, field, value) for value in range(UNKNOWN, int(world.domain[field])))
        for field in range(world.fields)
    ]
    distinct = list(dict.fromkeys(lists))
    return {"words": [list(words) for words in distinct], "word_of": [distinct.index(w) for w in lists]}


def _tools(seen: Witnessed, row: int) -> dict[str, Any]:
    world, static = seen.world, seen.instance.map
    needed = int(static.ancestor_bits[row, -1]) | 1 << world.tools - 1
    return {
        "kind": "tools",
        "tools": [
            {
                "needs": np.flatnonzero(static.needs[row, tool]).tolist(),
                "needed": bool(needed >> tool & 1),
                "parts": [tool, tool + world.tools, tool + 2 * world.tools],
            }
            for tool in range(world.tools)
        ],
        "heads": ["loaded", "satisfied", "complete"],
        "target": world.tools - 1,
        "aims": [["tool", tool] for tool in range(world.tools)],
    }


def _rooms(seen: Witnessed, row: int) -> dict[str, Any]:
    world, static = seen.world, seen.instance.map
    labels = [name[len("location(") : -1] for name in world.field_names[: world.objects]]
    first_lock, first_held = world.objects, world.objects + world.doors
    return {
        "kind": "rooms",
        "rooms": world.rooms,
        "things": [
            {
                "label": short_name(label),
                "location": thing,
                "held": first_held + thing,
                "goal": thing == world.goal,
                "key": thing < world.keys,
            }
            for thing, label in enumerate(labels)
        ],
        "doors": [
            {"field": first_lock + door, "key": int(static.key_of_door[row, door])}
            for door in range(world.doors)
        ],
        "aims": [
            *(["room", room] for room in range(world.rooms)),
            *(["thing", thing] for thing in range(world.objects)),
            *(["door", door] for door in range(world.doors)),
            *(["thing", thing] for thing in range(world.objects)),
        ],
    }


def _graph(seen: Witnessed, row: int) -> dict[str, Any]:
    world, static = seen.world, seen.instance.map
    spots = layered(world.nodes, static.ends[row], int(static.start[row]))
    return {
        "kind": "graph",
        "spots": [list(spots[node]) for node in range(world.nodes)],
        "edges": [
            {
                "ends": static.ends[row, edge].tolist(),
                "field": 1 + world.keys + edge,
                "key": int(static.key_of_edge[row, edge]),
            }
            for edge in range(world.edges)
        ],
        "things": [{"label": f"k{key}", "location": 1 + key, "key": True} for key in range(world.keys)],
        "target": int(static.target[row]),
        "aims": [
            *(["node", node] for node in range(world.nodes)),
            *(["thing", key] for key in range(world.keys)),
        ],
    }
