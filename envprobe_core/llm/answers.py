"""Answers of a language model: their schema, what each part means, and how they are applied.

A belief update is one JSON object of five keys, short enough that a whole table fits in 512 tokens:

    {"set": "3:1,0,95;12:?,0,0", "fade": 1, "act": "call(4)", "risk": 0, "why": "4:2,1,1"}

* `set`: only the fields whose entry changes, `index:value,staleness,confidence`, in whole steps and percents;
  `?` is an unknown value.
* `fade`: by how many percent the confidence of every other field falls (not that of a field just told).
* `act`: the proposed action.
* `risk`: how likely it is to fail, 0 low, 1 medium, 2 high.
* `why`: the fields the action depends on, `index:criticality,used,steps`: criticality 0, 1, 2 (low, medium,
  high), whether the action uses it now, for how many later steps it is required. It is read where the
  protocol takes c and d from the agent's report; a field that is not listed reports nothing.

`checking` turns the text of an answer into an `Update` or a `Verdict`, or refuses it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from envprobe_core.engine.records import NONE, UNKNOWN, WAIT
from envprobe_core.worlds.base import Floats, Ints, World

MOST_REASONS = 8
HIGHEST_CRITICALITY = 2
REQUIRED_STEPS = 3.0  # d = .5 used + .5 min(1, steps / 3)
WAITING = "wait"


@dataclass(frozen=True)
class Update:
    """A checked belief update.

    Attributes:
        entries: (field, value, staleness, confidence), each field at most once.
        fade: percents by which the confidence of every other field falls.
        action: the proposed action, or WAIT.
        risk: 0, 1 or 2.
        reasons: (field, criticality, used, steps), each field at most once.
    """

    entries: tuple[tuple[int, int, int, int], ...]
    fade: int
    action: int
    risk: int
    reasons: tuple[tuple[int, int, int, int], ...]


@dataclass(frozen=True)
class Verdict:
    """A checked judge's verdict: whether it overrides, and which candidate is probed then (NONE: none)."""

    override: bool
    field: int


NO_UPDATE = Update((), 0, WAIT, 0, ())
"""What an answer that cannot be used comes to."""
STANDS = Verdict(False, NONE)
"""What lets the score's decision stand."""


def _schema(properties: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


UPDATE_SCHEMA = _schema(
    {
        "set": {"type": "string"},
        "fade": {"type": "integer"},
        "act": {"type": "string"},
        "risk": {"type": "integer", "enum": [0, 1, 2]},
        "why": {"type": "string"},
    }
)
VERDICT_SCHEMA = _schema({"override": {"type": "boolean"}, "field": {"type": "integer"}})


def response_format(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the `response_format` of a request that asks for a schema strictly."""
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


class Vocabulary:
    """What an update of one world may name: its fields' values and its actions."""

    def __init__(self, world: World) -> None:
        """List them once for many answers."""
        self.domain: list[int] = world.domain.tolist()  # [field], number of values
        self.names: tuple[str, ...] = world.action_names
        self.actions = {name: number for number, name in enumerate(self.names)} | {WAITING: WAIT}


def write_update(update: Update, vocabulary: Vocabulary) -> str:
    """Write a belief update as the shortest answer that means it."""
    rows = (f"{field}:{'?' if v == UNKNOWN else v},{s},{c}" for field, v, s, c in update.entries)
    return _dump(
        {
            "set": ";".join(rows),
            "fade": update.fade,
            "act": WAITING if update.action == WAIT else vocabulary.names[update.action],
            "risk": update.risk,
            "why": ";".join(f"{field}:{c},{used},{steps}" for field, c, used, steps in update.reasons),
        }
    )


def write_verdict(verdict: Verdict) -> str:
    """Write a judge's verdict."""
    return _dump({"override": verdict.override, "field": verdict.field})


def _dump(content: dict[str, Any]) -> str:
    return json.dumps(content, separators=(",", ":"))


def apply_updates(table: Any, rows: Ints, updates: Sequence[Update], told: Ints) -> None:
    """Write checked updates to a block's beliefs.

    Args:
        table: `records.TABLE`, [row].
        rows: [update], whose beliefs they are.
        updates: what the model answered.
        told: [update], the field a delivered probe has just repaired, or NONE; its confidence does not fade.
    """
    confidence = table.confidence[rows]
    confidence -= np.minimum(confidence, np.array([update.fade for update in updates])[:, None])
    knowing = np.flatnonzero(told != NONE)
    confidence[knowing, told[knowing]] = table.confidence[rows[knowing], told[knowing]]
    table.confidence[rows] = confidence
    entries = [(row, *entry) for row, update in zip(rows, updates, strict=True) for entry in update.entries]
    if entries:
        row, field, *columns = np.array(entries).T
        table.value[row, field], table.staleness[row, field], table.confidence[row, field] = columns


def reported_terms(update: Update, known: Sequence[bool]) -> tuple[Floats, Floats]:
    """Return the agent's own c and d, [field], from the reasons of an update.

    Args:
        update: what the model answered.
        known: [field], whether the value is known after the update; an unknown field reports nothing.
    """
    c, d = np.zeros(len(known)), np.zeros(len(known))
    for field, criticality, used, steps in update.reasons:
        if known[field]:
            c[field] = criticality / HIGHEST_CRITICALITY
            d[field] = 0.5 * used + 0.5 * min(1.0, steps / REQUIRED_STEPS)
    return c, d
