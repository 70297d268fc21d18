"""Situations read back: from the text of `situations` to the record of an episode, as the text tells it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from envprobe_core.engine.records import NO_ACTION, NONE, UNKNOWN, WAIT
from envprobe_core.engine.setting import room_for_episodes
from envprobe_core.llm.answers import WAITING
from envprobe_core.llm.situations import LAST_AT, NEW, NO_PLACE, NOTHING, TABLE, UNKNOWN_SIGN, VALIDITY
from envprobe_core.worlds import graphnav, objectstate, tooldag
from envprobe_core.worlds.base import Ints, World


@dataclass(frozen=True)
class Situation:
    """One episode's situation, read back from its text.

    Attributes:
        block: the episode, [1]; its notes as they were before this step, and of the hidden state nothing.
        last_worked: [1], whether the last task action was valid, this step's included.
        distracted: whether an item was shown that does not exist.
    """

    block: Any
    last_worked: Ints
    distracted: bool


def read_situation(text: str, world: World) -> Situation:
    """Read a situation back; `world` needs the sizes, structure and sight of the one that wrote it."""
    labels = _labels(text)
    block = room_for_episodes(world.name, 1)
    block.t[:] = int(labels["Step"].split(" of ")[0])
    block.told[:] = NONE if labels["Told"] == NOTHING else int(labels["Told"])
    _read_table(text, world, block.table)
    distracted = _read_observation(labels, world, block.observation)
    _READERS[world.name](world, labels, block)
    worked = next(code for code, word in VALIDITY.items() if word == labels["Your last task action"])
    return Situation(block, np.array([worked]), distracted)


def _labels(text: str) -> dict[str, str]:
    found = (line.partition(": ") for line in text.split("\n"))
    return {label.partition(" (")[0]: rest for label, colon, rest in found if colon}


def _items(text: str) -> list[str]:
    return [] if text == NOTHING else text.split("; ")


def _pairs(text: str) -> list[tuple[int, int]]:
    return [(int(one), int(other)) for one, _, other in (item.partition(": ") for item in _items(text))]


def _read_table(text: str, world: World, table: Any) -> None:
    lines = text.partition(TABLE + "\n")[2].split("\n")[: world.fields]
    rows = [line.rpartition(": ")[2].replace(UNKNOWN_SIGN, str(UNKNOWN)).split(",") for line in lines]
    for name, column in zip(("value", "staleness", "confidence"), zip(*rows, strict=True), strict=True):
        table[name][0, : world.fields] = list(map(int, column))


def _read_observation(labels: dict[str, str], world: World, observation: Any) -> bool:
    """Read what was seen, and say whether an item is among it that does not exist."""
    numbers = {name: index for index, name in enumerate(world.field_names)}
    actions = {name: index for index, name in enumerate(world.action_names)}
    shown = [item.split("=") for item in _items(labels["Seen"])]
    seen = [(numbers[name], int(value)) for name, value in shown if name in numbers]
    observation.value[:] = UNKNOWN
    observation.count[:] = len(seen)
    for number, (field, value) in enumerate(seen):
        observation["field"][0, number], observation.value[0, field] = field, value
    done, _, outcome = labels["Last step"].partition(" (")
    place, _, came_from = labels.get("Place", NO_PLACE).partition(LAST_AT)
    observation.place[:], observation.came_from[:] = int(place), int(came_from)
    observation.action[:] = (actions | {WAITING: WAIT, NOTHING: NO_ACTION})[done]
    observation.valid[:], observation.fresh[:] = outcome == "valid)", labels["Observation"] == NEW
    return len(seen) < len(shown)


def _read_tools(world: World, labels: dict[str, str], block: Any) -> None:
    task, mind, last = block.task, block.mind, block.observation
    if world.rules.knows_graph:
        for item in labels["Needs"].split("; "):
            tool, _, needed = item.partition(": ")
            task.needs[0, int(tool)] = sum(1 << int(one) for one in needed.split(",") if one != "-")
    called = (last.fresh == 1) & (last.action >= 0)
    mind.calls[called] = -1  # the agent counts this step's call, and its failure, itself
    mind.failed_at[:] = -tooldag.FAILURE_MEMORY
    for tool, calls in _pairs(labels.get("Failed calls", NOTHING)):
        mind.failed_at[0, tool] = -calls


def _read_rooms(world: World, labels: dict[str, str], block: Any) -> None:
    task = block.task
    task.key_of_door[:] = NONE
    task.door_of_key[:] = world.rules.doors  # what opens nothing opens a door that is not there
    for key, door in re.findall(r"key (\d+) opens door (\d+)", labels["Keys"]):
        task.door_of_key[0, int(key)], task.key_of_door[0, int(door)] = int(door), int(key)
    _read_places(labels, block.mind)


def _read_graph(world: World, labels: dict[str, str], block: Any) -> None:
    task = block.task
    task.target[:] = int(labels["Target"])
    task.key_of_edge[:] = NONE
    task.edge_of_key[:] = world.rules.edges  # an edge that is not there, until the key's own is met
    ways: list[list[tuple[int, int]]] = [[] for _ in range(world.rules.nodes)]
    met = 0
    for item in _items(labels["Edges" if world.rules.knows_graph else "Edges met"]):
        edge, one, other, *keys = map(int, re.findall(r"\d+", item))
        met |= 1 << edge
        task.ends[0, edge] = one, other
        ways[one].append((other, edge))
        ways[other].append((one, edge))
        for key in keys:
            task.key_of_edge[0, edge], task.edge_of_key[0, key] = key, edge
    block.mind.met[:] = met
    _read_places(labels, block.mind)
    for node, found in enumerate(ways):
        task.neighbours[0, node] = len(found)
        task.edges_at[0, node] = sum(1 << edge for _, edge in found)
        for number, (other, edge) in enumerate(found):  # ascending, as edges are numbered by their ends
            task.neighbour[0, node, number], task.edge[0, node, number] = other, edge


def _read_places(labels: dict[str, str], mind: Any) -> None:
    mind.last_seen[:] = graphnav.NEVER
    for place, step in _pairs(labels["Last been there"]):
        mind.last_seen[0, place] = step


_READERS: dict[str, Callable[[World, dict[str, str], Any], None]] = {
    tooldag.NAME: _read_tools,
    objectstate.NAME: _read_rooms,
    graphnav.NAME: _read_graph,
}
