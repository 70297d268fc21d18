"""Where things stand when the player draws a world: the static structure of one instance, with places.

A scene names for every thing that is drawn the field that belongs to it, and for every task action what it
aims at. What is true or believed is not part of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from envprobe_core.engine.records import UNKNOWN
from envprobe_core.facts.witness import Witnessed
from envprobe_core.instances import members
from envprobe_core.show.schematics import layered, short_name
from envprobe_core.show.timeline import word
from envprobe_core.worlds.base import World


def make_scene(seen: Witnessed) -> dict[str, Any]:
    """Return what is drawn of the first row's instance, with the names and values of its fields.

    Returns:
        `kind` (tools, rooms or graph) and its parts; `aims`, for every action what it aims at (a kind of part
        and its number); `fields`, `actions`, their names; `words`, lists of what values mean, the unknown
        first, and `word_of`, the list that each field uses.
    """
    make = {"tooldag": _tools, "objectstate": _rooms, "graphnav": _graph}[seen.world.name]
    return {
        **make(seen),
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


def _tools(seen: Witnessed) -> dict[str, Any]:
    tools, task = seen.world.rules.tools, seen.instance[0].task
    needed = members(task.ancestors[tools - 1] | 1 << tools - 1, tools)
    return {
        "kind": "tools",
        "tools": [
            {
                "needs": np.flatnonzero(members(task.needs[tool], tools)).tolist(),
                "needed": bool(needed[tool]),
                "parts": [tool, tool + tools, tool + 2 * tools],
            }
            for tool in range(tools)
        ],
        "heads": ["loaded", "satisfied", "complete"],
        "target": tools - 1,
        "aims": [["tool", tool] for tool in range(tools)],
    }


def _rooms(seen: Witnessed) -> dict[str, Any]:
    world, rules, task = seen.world, seen.world.rules, seen.instance[0].task
    labels = [name[len("location(") : -1] for name in world.field_names[: rules.objects]]
    first_lock, first_held = rules.objects, rules.objects + rules.doors
    return {
        "kind": "rooms",
        "rooms": rules.rooms,
        "things": [
            {
                "label": short_name(label),
                "location": thing,
                "held": first_held + thing,
                "goal": thing == rules.goal,
                "key": thing < rules.keys,
            }
            for thing, label in enumerate(labels)
        ],
        "doors": [
            {"field": first_lock + door, "key": int(task.key_of_door[door])} for door in range(rules.doors)
        ],
        "aims": [
            *(["room", room] for room in range(rules.rooms)),
            *(["thing", thing] for thing in range(rules.objects)),
            *(["door", door] for door in range(rules.doors)),
            *(["thing", thing] for thing in range(rules.objects)),
        ],
    }


def _graph(seen: Witnessed) -> dict[str, Any]:
    rules, task = seen.world.rules, seen.instance[0].task
    spots = layered(rules.nodes, task.ends[: rules.edges], int(task.start))
    return {
        "kind": "graph",
        "spots": [list(spots[node]) for node in range(rules.nodes)],
        "edges": [
            {
                "ends": task.ends[edge].tolist(),
                "field": 1 + rules.keys + edge,
                "key": int(task.key_of_edge[edge]),
            }
            for edge in range(rules.edges)
        ],
        "things": [{"label": f"k{key}", "location": 1 + key, "key": True} for key in range(rules.keys)],
        "target": int(task.target),
        "aims": [
            *(["node", node] for node in range(rules.nodes)),
            *(["thing", key] for key in range(rules.keys)),
        ],
    }
