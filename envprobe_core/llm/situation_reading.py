"""Situations read back: from the text of `situations` to the one-row request and notes it was made of."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from envprobe_core.agents.base import Mind, Request
from envprobe_core.agents.graphnav import GraphMind
from envprobe_core.agents.objectstate import RoomMind
from envprobe_core.agents.tooldag import ToolMind
from envprobe_core.belief import BeliefTable
from envprobe_core.llm.answers import WAITING
from envprobe_core.llm.situations import LAST_AT, NEW, NO_PLACE, NOTHING, TABLE, UNKNOWN_SIGN, VALIDITY
from envprobe_core.worlds.base import NO_ACTION, UNKNOWN, WAIT, Ints, Observation, World
from envprobe_core.worlds.graphnav import GraphMap, GraphNavWorld
from envprobe_core.worlds.objectstate import ObjectStateWorld, RoomMap
from envprobe_core.worlds.tooldag import ToolDAGWorld, ToolMap


@dataclass(frozen=True)
class Situation:
    """One row's situation, read back from its text.

    Attributes:
        static: the task graph, as far as the text tells it.
        request: what the rollout asks, for one row.
        mind: the notes, as they were before this step.
        last_worked: [row], whether the last task action was valid, before this step is counted.
    """

    static: Any
    request: Request
    mind: Mind
    last_worked: Ints


def read_situation(text: str, world: World) -> Situation:
    """Read a situation back; `world` needs the sizes, structure and sight of the one that wrote it."""
    labels = _labels(text)
    numbers = {name: index for index, name in enumerate(world.field_names)}
    actions = {name: index for index, name in enumerate(world.action_names)} | {
        WAITING: WAIT,
        NOTHING: NO_ACTION,
    }
    shown = [item.split("=") for item in _items(labels["Seen"])]
    seen = np.zeros((1, world.fields), dtype=bool)
    value = np.full((1, world.fields), UNKNOWN, dtype=np.int8)
    for name, number in shown:
        if name in numbers:
            seen[0, numbers[name]] = True
            value[0, numbers[name]] = int(number)
    step = int(labels["Step"].split(" of ")[0])
    done, _, outcome = labels["Last step"].partition(" (")
    place, _, came_from = labels.get("Place", NO_PLACE).partition(LAST_AT)
    action, fresh = actions[done], labels["Observation"] == NEW
    observation = Observation(
        seen,
        value,
        _column(int(place)),
        _column(action),
        np.array([outcome == "valid)"]),
        _column(int(came_from)),
        any(name not in numbers for name, _ in shown),
        np.array([fresh]),
    )
    told = -1 if labels["Told"] == NOTHING else int(labels["Told"])
    static, mind = _READERS[type(world)](world, labels, fresh and action >= 0)
    worked = next(code for code, word in VALIDITY.items() if word == labels["Your last task action"])
    return Situation(
        static, Request(step, _read_table(text, world), observation, _column(told)), mind, _column(worked)
    )


def _labels(text: str) -> dict[str, str]:
    found = (line.partition(": ") for line in text.split("\n"))
    return {label.partition(" (")[0]: rest for label, colon, rest in found if colon}


def _items(text: str) -> list[str]:
    return [] if text == NOTHING else text.split("; ")


def _pairs(text: str) -> list[tuple[int, int]]:
    return [(int(one), int(other)) for one, _, other in (item.partition(": ") for item in _items(text))]


def _column(number: int) -> Ints:
    return np.array([number], dtype=np.int64)


def _read_table(text: str, world: World) -> BeliefTable:
    lines = text.partition(TABLE + "\n")[2].split("\n")[: world.fields]
    rows = [line.rpartition(": ")[2].split(",") for line in lines]
    value = [UNKNOWN if row[0] == UNKNOWN_SIGN else int(row[0]) for row in rows]
    return BeliefTable(
        np.array([value], dtype=np.int8),
        np.array([[int(row[1]) for row in rows]], dtype=np.uint8),
        np.array([[int(row[2]) for row in rows]], dtype=np.uint8),
    )


def _read_tools(world: ToolDAGWorld, labels: dict[str, str], called: bool) -> tuple[ToolMap, Mind]:
    needs = np.zeros((1, world.tools, world.tools), dtype=bool)
    if world.protocol.structure == "graph":
        for item in labels["Needs"].split("; "):
            tool, _, needed = item.partition(": ")
            needs[0, int(tool), [int(one) for one in needed.split(",") if one != "-"]] = True
    static = ToolMap(needs)
    mind = ToolMind(world, static)
    mind.taken -= called  # the mind counts this step's call, and its failure, itself
    for tool, calls in _pairs(labels.get("Failed calls", NOTHING)):
        mind.failed_at[0, tool] = -calls
    return static, mind


def _read_rooms(world: ObjectStateWorld, labels: dict[str, str], called: bool) -> tuple[RoomMap, Mind]:
    door_of_key = np.full((1, world.keys), UNKNOWN, dtype=np.int64)
    key_of_door = np.full((1, world.doors), UNKNOWN, dtype=np.int64)
    for key, door in re.findall(r"key (\d+) opens door (\d+)", labels["Keys"]):
        door_of_key[0, int(key)], key_of_door[0, int(door)] = int(door), int(key)
    static = RoomMap(world.rooms, world.keys, world.objects, world.goal, key_of_door, door_of_key)
    mind = RoomMind(world, static)
    _read_places(mind, labels)
    return static, mind


def _read_graph(world: GraphNavWorld, labels: dict[str, str], called: bool) -> tuple[GraphMap, Mind]:
    known = world.protocol.structure == "graph"
    ends = np.empty((1, world.edges, 2), dtype=np.int64)
    ends[:] = world.nodes, world.nodes + 1  # edges not yet met join two nodes that do not exist
    key_of_edge = np.full((1, world.edges), UNKNOWN, dtype=np.int64)
    edge_of_key = np.full((1, world.keys), UNKNOWN, dtype=np.int64)
    met = np.zeros((1, world.edges), dtype=bool)
    for item in _items(labels["Edges" if known else "Edges met"]):
        numbers = [int(number) for number in re.findall(r"\d+", item)]
        edge, met[0, numbers[0]] = numbers[0], True
        ends[0, edge] = numbers[1:3]
        for key in numbers[3:]:
            key_of_edge[0, edge], edge_of_key[0, key] = key, edge
    target = _column(int(labels["Target"]))
    static = GraphMap(world.nodes + 2, world.keys, ends, key_of_edge, edge_of_key, target, target)
    mind = GraphMind(world, static)
    mind.met = met
    _read_places(mind, labels)
    return static, mind


def _read_places(mind: RoomMind | GraphMind, labels: dict[str, str]) -> None:
    for place, step in _pairs(labels["Last been there"]):
        mind.last_seen[0, place] = step


_READERS: dict[type[World], Callable[..., tuple[Any, Mind]]] = {
    ToolDAGWorld: _read_tools,
    ObjectStateWorld: _read_rooms,
    GraphNavWorld: _read_graph,
}
