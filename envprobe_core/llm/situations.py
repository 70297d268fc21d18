"""Situations as text: all that a reader without memory needs to answer one step, and back again.

A situation is the user message of a belief update. Its first part, the instance's task graph, stays the
same for a whole episode; then come the belief table, the observation, what a check has told, and a few
notes that cannot grow without end: where the agent has been and when, which of its last calls failed, whether
its last task action was valid. Nothing in it tells the policy, the budget or the gate.

`situation_reading` takes the text back apart, so that an answering program can be stateless. Both use the
labels below and nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from envprobe_core.agents.base import Mind, Request
from envprobe_core.agents.graphnav import GraphMind
from envprobe_core.agents.objectstate import RoomMind
from envprobe_core.agents.tooldag import FAILURE_MEMORY, ToolMind
from envprobe_core.belief import BeliefTable
from envprobe_core.llm.answers import WAITING
from envprobe_core.worlds.base import NO_ACTION, UNKNOWN, WAIT, Ints, Mask, Observation, World
from envprobe_core.worlds.graphnav import GraphMap, GraphNavWorld
from envprobe_core.worlds.objectstate import ObjectStateWorld, RoomMap
from envprobe_core.worlds.tooldag import ToolDAGWorld, ToolMap

NONE_YET, INVALID, VALID = -1, 0, 1  # of the agent's last task action
NOTHING, UNKNOWN_SIGN = "nothing", "?"
TABLE = "Beliefs (index field: value, staleness, confidence)"
EDGES_HIDDEN = "only those that you have met are known, see below"
NEW, UNCHANGED = "new", "the same as before, the world has stood still"
NEWLINE = "\n"
LAST_AT = ", last step taken at "
NO_PLACE = f"0{LAST_AT}0"  # tools have none
VALIDITY = {NONE_YET: "none yet", INVALID: "invalid", VALID: "valid"}
_SIGNS = {UNKNOWN: UNKNOWN_SIGN} | {value: str(value) for value in range(128)}


def action_name(world: World, action: int) -> str:
    """Return how a task action is written."""
    if action == WAIT:
        return WAITING
    return NOTHING if action == NO_ACTION else world.action_names[action]


def distractor_item(world: World, place: int) -> str:
    """Return an item that no instance of this size has, as an observation shows it."""
    if isinstance(world, ToolDAGWorld):
        return f"loaded({world.tools})=1"
    if isinstance(world, ObjectStateWorld):
        return f"location(box {world.boxes})={place}"
    assert isinstance(world, GraphNavWorld)
    return f"location(key {world.keys})={place}"


def map_texts(world: World, static: Any) -> list[str]:
    """Write the task graph of every row, as far as it is known before anything is seen."""
    if isinstance(static, ToolMap):
        if world.protocol.structure != "graph":
            return ["Needs: not known"] * len(static.needs)
        return [
            "Needs: " + "; ".join(_needs(tool, row) for tool, row in enumerate(rows)) for rows in static.needs
        ]
    if isinstance(static, RoomMap):
        return [
            "Keys: " + _listed(f"key {key} opens door {door}" for key, door in enumerate(doors) if door >= 0)
            for doors in static.door_of_key.tolist()
        ]
    everything = np.ones(static.edges, dtype=bool)
    known = world.protocol.structure == "graph"
    return [
        f"Target: {target}\nEdges: {_edges(static, row, everything) if known else EDGES_HIDDEN}"
        for row, target in enumerate(static.target.tolist())
    ]


def _needs(tool: int, needed: Mask) -> str:
    return f"{tool}: {','.join(map(str, np.flatnonzero(needed))) or '-'}"


def _edges(static: GraphMap, row: int, met: Mask) -> str:
    ends, keys = static.ends[row].tolist(), static.key_of_edge[row].tolist()
    return _listed(
        f"{edge}: {ends[edge][0]}-{ends[edge][1]}" + (f" key {keys[edge]}" if keys[edge] >= 0 else "")
        for edge in np.flatnonzero(met).tolist()
    )


def _listed(items: Any) -> str:
    return "; ".join(items) or NOTHING


def note_texts(world: World, static: Any, mind: Mind) -> list[str]:
    """Write the notes of every row: at most an entry a place, edge or tool, however long the history."""
    if isinstance(mind, ToolMind):
        if mind.knows_graph:
            return [""] * len(mind.taken)
        ago = (mind.taken[:, None] - mind.failed_at).tolist()
        return [
            "\nFailed calls (tool and how many of your calls ago): "
            + _listed(f"{tool}: {calls}" for tool, calls in enumerate(row) if calls < FAILURE_MEMORY)
            for row in ago
        ]
    assert isinstance(mind, RoomMind | GraphMind)
    seen = [
        _listed(f"{place}: {step}" for place, step in enumerate(row) if step >= 0)
        for row in mind.last_seen.tolist()
    ]
    been = [f"\nLast been there (place and step): {places}" for places in seen]
    if isinstance(mind, GraphMind) and world.protocol.structure != "graph":
        return [
            f"\nEdges met: {_edges(static, row, met)}{places}"
            for row, (met, places) in enumerate(zip(mind.met, been, strict=True))
        ]
    return been


def belief_texts(world: World, table: BeliefTable) -> list[str]:
    """Write the belief table of every row, a field a line."""
    heads = [f"{index} {name}: " for index, name in enumerate(world.field_names)]
    signs = _SIGNS
    return [
        "\n".join(
            [
                f"{head}{signs[v]},{s},{c}"
                for head, v, s, c in zip(heads, value, staleness, confidence, strict=True)
            ]
        )
        for value, staleness, confidence in zip(
            table.value.tolist(), table.staleness.tolist(), table.confidence.tolist(), strict=True
        )
    ]


class SituationWriter:
    """Writes the situations of a block of episodes; the task graphs are written once."""

    def __init__(self, world: World, static: Any) -> None:
        """Take the world, for its rules and names, and the static task graph of every row."""
        self._world = world
        self._static = static
        self._maps = map_texts(world, static)

    def write(self, request: Request, mind: Mind, last_worked: Ints) -> list[str]:
        """Write the situation of every row.

        Args:
            request: what the rollout asks.
            mind: the notes, this step's included.
            last_worked: [row], NONE_YET, INVALID or VALID, this step's included.
        """
        world, observation = self._world, request.observation
        placeless = isinstance(world, ToolDAGWorld)
        lines = zip(
            self._maps,
            belief_texts(world, request.table),
            self._seen(observation),
            observation.place.tolist(),
            observation.came_from.tolist(),
            observation.action.tolist(),
            observation.valid.tolist(),
            observation.fresh.tolist(),
            request.told.tolist(),
            last_worked.tolist(),
            note_texts(world, self._static, mind),
            strict=True,
        )
        return [
            f"{known}\n\nStep: {request.step} of {world.regime.horizon}\n{TABLE}\n{table}\n\n"
            f"Last step: {action_name(world, action)}{_outcome(action, valid)}\n"
            f"Observation: {NEW if fresh else UNCHANGED}\n"
            f"{'' if placeless else f'Place: {place}{LAST_AT}{came_from}{NEWLINE}'}Seen: {seen}\n"
            f"Told: {NOTHING if told < 0 else told}\n"
            f"Your last task action: {VALIDITY[worked]}{notes}"
            for (known, table, seen, place, came_from, action, valid, fresh, told, worked, notes) in lines
        ]

    def _seen(self, observation: Observation) -> list[str]:
        names = self._world.field_names
        places = observation.place.tolist()
        rows = []
        for seen, value, place in zip(observation.seen, observation.value, places, strict=True):
            items = [f"{names[field]}={value[field]}" for field in np.flatnonzero(seen)]
            if observation.distractor:
                items.append(distractor_item(self._world, place))
            rows.append(_listed(items))
        return rows


def _outcome(action: int, valid: bool) -> str:
    if action < 0:
        return ""
    return f" ({VALIDITY[int(valid)]})"
