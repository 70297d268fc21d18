"""Situations as text: all that a reader without memory needs to answer one step.

A situation is the user message of a belief update. Its first part, the instance's task graph, stays the
same for a whole episode; then come the belief table, the observation, what a check has told, and a few
notes that cannot grow without end: where the agent has been and when, which of its last calls failed, whether
its last task action was valid. Nothing in it tells the policy, the budget or the gate.

The tests take the text back apart and let the simulated agent answer it: nothing that it uses is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from envprobe_core.engine.records import NO_ACTION, NONE, UNKNOWN, WAIT
from envprobe_core.llm.answers import WAITING
from envprobe_core.worlds import graphnav, objectstate, tooldag
from envprobe_core.worlds.base import Ints, World

NONE_YET, INVALID, VALID = -1, 0, 1  # of the agent's last task action
NOTHING, UNKNOWN_SIGN = "nothing", "?"
TABLE = "Beliefs (index field: value, staleness, confidence)"
DATED_TABLE = "Table"
AGED, DATED, BARE = "aged", "dated", "bare"  # forms
REMEMBERED = 5  # last actions, where there is no table
EDGES_HIDDEN = "only those that you have met are known, see below"
NEW, UNCHANGED = "new", "the same as before, the world has stood still"
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
    if world.name == tooldag.NAME:
        return f"loaded({world.rules.tools})=1"
    if world.name == objectstate.NAME:
        return f"location(box {world.rules.boxes})={place}"
    return f"location(key {world.rules.keys})={place}"


def map_texts(world: World, task: Any) -> list[str]:
    """Write the task graph of every episode, [row], as far as it is known before anything is seen."""
    if world.name == tooldag.NAME:
        if not world.rules.knows_graph:
            return ["Needs: not known"] * len(task)
        needed = task.needs[:, : world.rules.tools].tolist()
        return ["Needs: " + "; ".join(map(_needs, range(world.rules.tools), row)) for row in needed]
    if world.name == objectstate.NAME:
        return [
            "Keys: " + _listed(f"key {key} opens door {door}" for door, key in enumerate(keys) if key != NONE)
            for keys in task.key_of_door.tolist()
        ]
    edges = [EDGES_HIDDEN] * len(task)
    if world.rules.knows_graph:
        edges = [_edges(task, row, (1 << count) - 1) for row, count in enumerate(task.edges.tolist())]
    targets = task.target.tolist()
    return [f"Target: {target}\nEdges: {shown}" for target, shown in zip(targets, edges, strict=True)]


def _needs(tool: int, needed: int) -> str:
    return f"{tool}: {','.join(map(str, members(needed))) or '-'}"


def _edges(task: Any, row: int, met: int) -> str:
    ends, keys = task.ends[row].tolist(), task.key_of_edge[row].tolist()
    return _listed(
        f"{edge}: {ends[edge][0]}-{ends[edge][1]}" + (f" key {keys[edge]}" if keys[edge] != NONE else "")
        for edge in members(met)
    )


def members(numbers: int) -> list[int]:
    """Return the members of one of the engine's `sets`, ascending."""
    return [number for number in range(numbers.bit_length()) if numbers >> number & 1]


def _listed(items: Iterable[str]) -> str:
    return "; ".join(items) or NOTHING


def note_texts(world: World, block: Any) -> list[str]:
    """Write the notes of every episode, [row]: at most an entry a place, edge or tool, however long it is."""
    mind = block.mind
    if world.name == tooldag.NAME:
        if world.rules.knows_graph:
            return [""] * len(block)
        ago = (mind.calls[:, None] - mind.failed_at[:, : world.rules.tools]).tolist()
        return [
            "\nFailed calls (tool and how many of your calls ago): "
            + _listed(f"{tool}: {calls}" for tool, calls in enumerate(row) if calls < tooldag.FAILURE_MEMORY)
            for row in ago
        ]
    seen = [
        _listed(f"{place}: {step}" for place, step in enumerate(row) if step >= 0)
        for row in mind.last_seen.tolist()
    ]
    been = [f"\nLast been there (place and step): {places}" for places in seen]
    if world.name == graphnav.NAME and not world.rules.knows_graph:
        met = [_edges(block.task, row, edges) for row, edges in enumerate(mind.met.tolist())]
        return [f"\nEdges met: {edges}{places}" for edges, places in zip(met, been, strict=True)]
    return been


def belief_texts(world: World, table: Any, counts: Ints) -> list[str]:
    """Write the beliefs of every table or sight, [row], a line for each field that its instance has."""
    heads = [f"{index} {name}: " for index, name in enumerate(world.field_names)]
    return _table_texts(heads, counts, table.value, table.staleness, table.confidence)


def dated_texts(table: Any, steps: Ints, counts: Ints) -> list[str]:
    """Write the beliefs of every table, [row], as rows of an answer: index:value,step,confidence."""
    heads = [f"{index}:" for index in range(counts.max(initial=0))]
    return _table_texts(heads, counts, table.value, steps[:, None] - table.staleness, table.confidence)


def _table_texts(heads: Sequence[str], counts: Ints, *columns: Ints) -> list[str]:
    rows = zip(counts.tolist(), *(column.tolist() for column in columns), strict=True)
    return [
        "\n".join(
            [f"{head}{_SIGNS[v]},{age},{c}" for head, v, age, c in zip(heads[:count], *row, strict=False)]
        )
        for count, *row in rows
    ]


class SituationWriter:
    """Writes the situations of a block of episodes; the task graphs are written once."""

    def __init__(self, world: World, task: Any, form: str = DATED) -> None:
        """Take the world, for its rules and names, the task graph of every episode, [row], and the form.

        `AGED` is the first prompts' form, whose table gives ages; `DATED` gives the steps of evidence and
        ends with what is seen; `BARE` has no table and no notes, but the last five actions.
        """
        self._world, self._form = world, form
        self._maps = map_texts(world, task)
        names = enumerate(world.field_names)
        self._labels = [f"{name}=" if form == AGED else f"{index}:" for index, name in names]

    def write(
        self, block: Any, last_worked: Ints, rows: Ints, past: Sequence[Sequence[str]] = ()
    ) -> list[str]:
        """Write the situations of some episodes.

        Args:
            block: all episodes as they stand, with their notes.
            last_worked: [row], NONE_YET, INVALID or VALID, this step's included.
            rows: which are wanted.
            past: [row], the actions so far, which only `BARE` tells.
        """
        world, episodes, form = self._world, block[rows], self._form
        observation, steps = episodes.observation, episodes.t
        tables = (
            belief_texts(world, episodes.table, episodes.fields)
            if form == AGED
            else dated_texts(episodes.table, steps, episodes.fields)
        )
        columns = (
            rows.tolist(),
            steps.tolist(),
            tables,
            self._seen(observation),
            observation.place.tolist(),
            observation.came_from.tolist(),
            observation.action.tolist(),
            observation.valid.tolist(),
            observation.fresh.tolist(),
            episodes.told.tolist(),
            last_worked[rows].tolist(),
            note_texts(world, episodes),
        )
        texts = []
        for row, step, table, seen, place, origin, action, valid, fresh, told, worked, notes in zip(
            *columns, strict=True
        ):
            at = f"Step: {step} of {world.regime.horizon}\n"
            done = f"Last step: {action_name(world, action)}{_outcome(action, valid)}\n"
            where = "" if world.name == tooldag.NAME else f"Place: {place}{LAST_AT}{origin}\n"
            checked = f"Told: {NOTHING if told == NONE else told}\n"
            validity = f"Your last task action: {VALIDITY[worked]}"
            if form == AGED:
                text = (
                    f"{at}{TABLE}\n{table}\n\n{done}Observation: {NEW if fresh else UNCHANGED}\n"
                    f"{where}Seen: {seen}\n{checked}{validity}{notes}"
                )
            elif form == DATED:
                still = "" if fresh else f"Observation: {UNCHANGED}\n"
                text = (
                    f"{DATED_TABLE}\n{table}\n\n{at}{done}{still}{where}{checked}{validity}{notes}"
                    f"\nSeen: {seen}"
                )
            else:
                recent = ", ".join(past[row][-REMEMBERED:]) or NOTHING
                answer = NOTHING if told == NONE else table.split("\n")[told].partition(",")[0]
                text = f"{at}Your last actions: {recent}\n{done}{where}Told: {answer}\nSeen: {seen}"
            texts.append(f"{self._maps[row]}\n\n{text}")
        return texts

    def _seen(self, observation: Any) -> list[str]:
        world = self._world
        distracted = world.regime.observation == "distractor"
        rows = []
        for values, place in zip(observation.value.tolist(), observation.place.tolist(), strict=True):
            pairs = zip(self._labels, values, strict=False)
            items = [f"{label}{value}" for label, value in pairs if value != UNKNOWN]
            rows.append(_listed([*items, distractor_item(world, place)] if distracted else items))
        return rows


def _outcome(action: int, valid: int) -> str:
    return "" if action < 0 else f" ({VALIDITY[valid]})"
