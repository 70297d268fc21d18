"""Situations as text: all that a reader without memory needs to answer one step, or to judge it.

A situation is the user message of a belief update. Its first part, the instance's task graph, stays the
same for a whole episode; then come the belief table, the observation, what a check has told, and a few
notes that cannot grow without end: where the agent has been and when, which of its last calls failed, whether
its last task action was valid. Nothing in it tells the policy, the budget or the gate. A judge is shown a
case: the belief table, the proposed action, and what the score makes of it (Section 4.2).

The tests take the text back apart and let the simulated agent answer it: nothing that it uses is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from envprobe_core.engine.records import NO_ACTION, NONE, UNKNOWN, WAIT
from envprobe_core.llm.answers import UNKNOWN_SIGN, WAITING, Verdict
from envprobe_core.llm.identity import FIRST, SECOND
from envprobe_core.policies.rules import JUDGE_CANDIDATES
from envprobe_core.worlds import graphnav, objectstate, tooldag
from envprobe_core.worlds.base import Ints, World

NONE_YET, INVALID, VALID = -1, 0, 1  # of the agent's last task action
VALIDITY = {NONE_YET: "none yet", INVALID: "invalid", VALID: "valid"}
NOTHING = "nothing"
TABLE = "Beliefs (index field: value, staleness, confidence)"
DATED_TABLE = "Table"
REMEMBERED = 5  # last actions, where there is no table
EDGES_HIDDEN = "only those that you have met are known, see below"
NEW, UNCHANGED = "new", "the same as before, the world has stood still"
LAST_AT = ", last step taken at "
CANDIDATES = "Candidates (index field: value, staleness, confidence; c, s, u, d, score)"
ACT, CHECK = "carry out the action", "check field "
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
        return [
            "Needs: "
            + "; ".join(f"{tool}: {','.join(map(str, _members(own))) or '-'}" for tool, own in enumerate(row))
            for row in needed
        ]
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


def _edges(task: Any, row: int, met: int) -> str:
    ends, keys = task.ends[row].tolist(), task.key_of_edge[row].tolist()
    return _listed(
        f"{edge}: {ends[edge][0]}-{ends[edge][1]}" + (f" key {keys[edge]}" if keys[edge] != NONE else "")
        for edge in _members(met)
    )


def _members(numbers: int) -> list[int]:
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
    been = [
        "\nLast been there (place and step): "
        + _listed(f"{place}: {step}" for place, step in enumerate(row) if step >= 0)
        for row in mind.last_seen.tolist()
    ]
    if world.name == graphnav.NAME and not world.rules.knows_graph:
        met = [_edges(block.task, row, edges) for row, edges in enumerate(mind.met.tolist())]
        return [f"\nEdges met: {edges}{places}" for edges, places in zip(met, been, strict=True)]
    return been


def table_texts(heads: Sequence[str], counts: Ints, table: Any, ages: Ints) -> list[str]:
    """Write the beliefs of every table or sight, [row], a line for each of the fields that its instance has.

    A line begins with the field's head; `ages` are staleness or the steps of evidence, [row, field].
    """
    columns = (counts, table.value, ages, table.confidence)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [
        "\n".join(
            [f"{head}{_SIGNS[v]},{age},{c}" for head, v, age, c in zip(heads[:count], *row, strict=False)]
        )
        for count, *row in rows
    ]


def named_heads(world: World) -> list[str]:
    """Return what the lines of a table begin with that names its fields, [field]."""
    return [f"{index} {name}: " for index, name in enumerate(world.field_names)]


class SituationWriter:
    """Writes the situations of a block of episodes; the task graphs are written once."""

    def __init__(self, world: World, task: Any, version: str = SECOND) -> None:
        """Take the world, the task graph of every episode, [row], and the version of the prompts.

        In the first version the table gives ages; in the second it gives the steps of evidence, and what is
        seen comes last; the public code's two have no table and no notes, but the last five actions.
        """
        self._world, self._version = world, version
        self._maps = map_texts(world, task)
        fields, named = enumerate(world.field_names), version == FIRST
        self._labels = [f"{name}=" if named else f"{index}:" for index, name in fields]
        self._heads = named_heads(world) if named else self._labels

    def write(
        self, block: Any, last_worked: Ints, rows: Ints, past: Sequence[Sequence[str]] = ()
    ) -> list[str]:
        """Write the situations of some rows of a block, whose episodes stand with their notes.

        Args:
            last_worked: [row], NONE_YET, INVALID or VALID, this step's included.
            past: [row], the actions so far, which only the public code's versions tell.
        """
        world, episodes = self._world, block[rows]
        table, seen = episodes.table, episodes.observation
        ages = table.staleness if self._version == FIRST else episodes.t[:, None] - table.staleness
        columns = (
            rows, episodes.t, seen.place, seen.came_from, seen.action, seen.valid, seen.fresh, episodes.told,
            last_worked[rows],
        )  # fmt: skip
        texts = zip(
            table_texts(self._heads, episodes.fields, table, ages),
            self._seen(seen),
            note_texts(world, episodes),
            *(column.tolist() for column in columns),
            strict=True,
        )
        written = []
        for table, shown, notes, row, step, place, origin, action, valid, fresh, told, worked in texts:
            at = f"Step: {step} of {world.regime.horizon}\n"
            outcome = "" if action < 0 else f" ({VALIDITY[valid]})"
            done = f"Last step: {action_name(world, action)}{outcome}\n"
            where = "" if world.name == tooldag.NAME else f"Place: {place}{LAST_AT}{origin}\n"
            checked = f"Told: {NOTHING if told == NONE else told}\n"
            validity = f"Your last task action: {VALIDITY[worked]}"
            if self._version == FIRST:
                text = (
                    f"{at}{TABLE}\n{table}\n\n{done}Observation: {NEW if fresh else UNCHANGED}\n"
                    f"{where}Seen: {shown}\n{checked}{validity}{notes}"
                )
            elif self._version == SECOND:
                still = "" if fresh else f"Observation: {UNCHANGED}\n"
                text = (
                    f"{DATED_TABLE}\n{table}\n\n{at}{done}{still}{where}{checked}{validity}{notes}"
                    f"\nSeen: {shown}"
                )
            else:
                recent = ", ".join(past[row][-REMEMBERED:]) or NOTHING
                answer = NOTHING if told == NONE else table.split("\n")[told].partition(",")[0]
                text = f"{at}Your last actions: {recent}\n{done}{where}Told: {answer}\nSeen: {shown}"
            written.append(f"{self._maps[row]}\n\n{text}")
        return written

    def _seen(self, observation: Any) -> list[str]:
        world = self._world
        distracted = world.regime.observation == "distractor"
        rows = []
        for values, place in zip(observation.value.tolist(), observation.place.tolist(), strict=True):
            pairs = zip(self._labels, values, strict=False)
            items = [f"{label}{value}" for label, value in pairs if value != UNKNOWN]
            rows.append(_listed([*items, distractor_item(world, place)] if distracted else items))
        return rows


@dataclass(frozen=True)
class Case:
    """What a judge rules on; a verdict that stays unusable lets the decision stand."""

    text: str  # what it is shown
    candidates: list[int]  # the highest-scored fields, best first
    decision: int  # the field that the score alone probes, or NONE

    def ruled(self, verdict: Verdict) -> int:
        """Return the field that is probed, or NONE."""
        return verdict.field if verdict.override else self.decision


def cases_of(world: World, sights: Any) -> list[Case]:
    """Write the case of every sight, [row], which the score has been written to."""
    count = world.fields
    order = np.argsort(-sights.rho[:, :count], axis=1, kind="stable")[:, :JUDGE_CANDIDATES].tolist()
    terms = np.stack([sights[name][:, :count] for name in ("c", "s", "u", "d", "rho")], axis=2).tolist()
    tables = table_texts(named_heads(world), sights.fields, sights, sights.staleness)
    probes = (sights.highest >= sights.threshold).tolist()
    columns = zip(tables, sights.action.tolist(), probes, order, terms, strict=True)
    cases = []
    for table, action, probe, candidates, scored in columns:
        lines, decision = table.split("\n"), candidates[0] if probe else NONE
        shown = [f"{lines[i]}; " + ", ".join(f"{term:.3f}" for term in scored[i]) for i in candidates]
        text = (
            f"{TABLE}\n{table}\n\nProposed action: {action_name(world, action)}\n"
            + "\n".join([CANDIDATES, *shown])
            + f"\nDecision: {ACT if decision == NONE else f'{CHECK}{decision}'}"
        )
        cases.append(Case(text, candidates, decision))
    return cases
