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


def short_name(label: str) -> str:
    """Shorten an object's name: key 1 -> k1, box 0 -> b0, the first goal -> goal."""
    kind, number = label.split()
    return "goal" if label == "goal 0" else f"{kind[0]}{number}"


def layered(nodes: int, ends: Any, start: int) -> dict[int, tuple[float, float]]:
    """Place the nodes of a connected graph: x is the distance from the start, y avoids crossings.

    Args:
        ends: [edge, 2].
        start: the node in the first column.

    Returns:
        A place (x, y) for each node; a column is centred at y = 0, its nodes one apart.
    """
    neighbours: dict[int, list[int]] = {node: [] for node in range(nodes)}
    for one, other in ends:
        neighbours[int(one)].append(int(other))
        neighbours[int(other)].append(int(one))
    distance, queue = {start: 0}, [start]
    for node in queue:
        for other in sorted(neighbours[node]):
            if other not in distance:
                distance[other] = distance[node] + 1
                queue.append(other)
    spot: dict[int, tuple[float, float]] = {}
    for depth in range(max(distance.values()) + 1):
        column = [node for node in range(nodes) if distance[node] == depth]

        def height(node: int, depth: int = depth) -> tuple[float, int]:
            before = [spot[other][1] for other in neighbours[node] if distance[other] == depth - 1]
            return (-sum(before) / max(len(before), 1), node)

        for place, node in enumerate(sorted(column, key=height)):
            spot[node] = (float(depth), (len(column) - 1) / 2 - place)
    return spot
