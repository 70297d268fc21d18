"""What the language-model agent is asked: ours, in versions, the same for every policy.

A request begins with what never changes: the rules of the world, its fields, the form of the answer (the
system message, the same bytes for all episodes of one world and size), and worked examples as turns. Then
comes the situation, what changes least first: the instance's task graph, the belief table, the observation,
what a check has told, and a few notes that cannot grow without end. So a server that keeps prefixes reads the
long part once. A judge is shown a case: the belief table, the proposed action, and what the score makes of it
(Section 4.2).

Nothing in a prompt tells the policy, the budget or the gate, and nothing in it is gold; only the version
`public-hint` names the policy, as the public code does. The words, and what tells a version from others,
stand in `prompts.toml`. The tests take a situation back apart and let the simulated agent answer it: nothing
that it uses is missing.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from envprobe_core.agents.mind_of_tools import FAILURE_MEMORY
from envprobe_core.agents.model import PROMPT_VERSION, ModelAgent
from envprobe_core.compiled.records import NO_ACTION, NONE, UNKNOWN, WAIT
from envprobe_core.errors import InputError
from envprobe_core.llm import answers
from envprobe_core.llm.answers import UNKNOWN_SIGN, WAITING
from envprobe_core.llm.calls import ChatRequest
from envprobe_core.policies.rules import JUDGE_CANDIDATES
from envprobe_core.worlds import graphnav, tooldag
from envprobe_core.worlds.base import SWITCHES, Ints, World

WORDS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("prompts.toml").read_text(encoding="utf-8"))
UPDATE_TITLE, JUDGE_TITLE = "EnvProbe belief update", "EnvProbe judge"
DEMAND = "This answer cannot be used"  # how the last message of a request begins that asks again
LONGEST_ECHO = 600  # characters of an answer that a re-ask repeats
NONE_YET, INVALID, VALID = -1, 0, 1  # of the agent's last task action
VALIDITY = {NONE_YET: "none yet", INVALID: "invalid", VALID: "valid"}
NOTHING, SEEN, LAST_AT = "nothing", "Seen: ", ", last step taken at "
NEW, UNCHANGED = "new", "the same as before, the world has stood still"
REMEMBERED = 5  # last actions, where there is no table
ACT, CHECK = "carry out the action", "check field "
VERSIONS: dict[str, dict[str, Any]] = WORDS["versions"]
_SIGNS = {UNKNOWN: UNKNOWN_SIGN} | {value: str(value) for value in range(128)}


def find_version(text: str) -> str:
    """The version of a name: `1`, `2`, `public`, `public-hint`, or with its fingerprint.

    Raises:
        InputError: if there is none; the message lists those there are.
    """
    for version in VERSIONS:
        if text in (version, version.rpartition("-")[0]):
            return version
    raise InputError(f"unknown prompts {text[:200]!r}; accepted: {', '.join(VERSIONS)}")


@dataclass(frozen=True)
class Prompts:
    """How a model is asked about the episodes of one condition."""

    version: dict[str, Any]  # what tells it from others, as `prompts.toml` states it
    system: str  # the first message of a belief update: the rules
    judge_system: str  # and of a judge's verdict
    schema: dict[str, Any]  # of a belief update
    turns: tuple[tuple[str, str], ...] = ()  # worked examples: who speaks, user or assistant, and the text
    hint: str = ""  # what a situation ends with, empty for nothing

    def request(self, agent: ModelAgent, asked: str | Case, seed: int) -> ChatRequest:
        """What is asked in a seed's episode: an update on a situation, or a verdict on a case."""
        if isinstance(asked, Case):
            name, model, tokens = "verdict", agent.judge_model or agent.model, agent.judge_max_tokens
            schema = answers.verdict_schema(asked.candidates if self.version["fitted"] else None)
            texts = [("system", self.judge_system), ("user", asked.text)]
        else:
            name, model, tokens, schema = "update", agent.model, agent.max_tokens, self.schema
            texts = [("system", self.system), *self.turns, ("user", asked + self.hint)]
        form = {"name": name, "strict": True, "schema": schema}
        return {
            "model": model,
            "messages": [{"role": role, "content": text} for role, text in texts],
            "response_format": {"type": "json_schema", "json_schema": form},
            "temperature": agent.temperature,
            "max_tokens": tokens,
            "seed": seed,
        } | (json.loads(agent.extra_body) if agent.extra_body else {})

    def asked_again(self, request: ChatRequest, answer: str, fault: str) -> ChatRequest:
        """The request with the answer that cannot be used and a message that names its fault.

        The answer stands between the two, shortened and in ASCII, because chat templates of many
        local models insist that user and assistant take turns.
        """
        echo = answer[:LONGEST_ECHO].encode("ascii", "backslashreplace").decode("ascii") or "(empty)"
        demand = f"{DEMAND}: {fault}. Give the whole answer again."
        more = [{"role": "assistant", "content": echo}, {"role": "user", "content": demand}]
        warmer = max(request["temperature"], self.version["warmer"])
        return request | {"messages": [*request["messages"], *more], "temperature": warmer}


# ---------------------------------------------------------------- system messages


def plain_prompts(world: World, version: str, policy: str = "") -> Prompts:
    """The prompts of a world in a version, with the policy's hint, without worked examples."""
    how = VERSIONS[find_version(version)]
    text = WORDS["update"][how["update"]]
    if how["fitted"] and answers.gives_reasons(world):
        text += WORDS["update"]["why"]
    kept = WORDS["kept"]["none" if not how["table"] else "table" if _keeps(world) else "lost"]
    hint = WORDS["hints"].get(policy) if how["hinted"] else None
    return Prompts(
        how,
        f"{headline(UPDATE_TITLE, world)}\n{_filled(text, world, kept=kept)}",
        f"{headline(JUDGE_TITLE, world)}\n{_filled(WORDS['judge']['rules'], world)}",
        answers.update_schema(world if how["fitted"] else None),
        hint=hint_line(hint or ""),
    )


def hint_line(hint: str) -> str:
    """The line that a situation ends with where a hint is given, empty for an empty one.

    >>> print(hint_line("Probe."))
    <BLANKLINE>
    Method hint: Probe.
    """
    return f"\nMethod hint: {hint}" if hint else ""


def headline(title: str, world: World) -> str:
    """The first line of a system message: what is asked, and the world's name, sizes and switches."""
    graph = "known" if world.protocol.structure == "graph" else "not known"
    sight = "what is near" if world.protocol.sight == "local" else "overview"
    line = f"{title}. World: {world.title}, {_filled('{sizes}', world)}. Task graph: {graph}. Sight: {sight}."
    return line if _keeps(world) else f"{line} Table: lost at each step."


def _keeps(world: World) -> bool:
    return world.protocol.memory == "kept"


def _filled(text: str, world: World, **more: Any) -> str:
    """Fill in what a world's words say, then its numbers: sizes, last members, and spans of fields."""
    rules = vars(world.rules).items()
    sizes = {name: size for name, size in rules if type(size) is int and name not in SWITCHES}
    sizes |= {"fields": world.fields, "actions": world.actions}
    kinds = groupby(enumerate(world.field_names), key=lambda field: field[1].partition("(")[0])
    spans = {kind.replace(" ", "_"): [index for index, _ in own] for kind, own in kinds}
    own = dict(WORDS["worlds"][world.name])
    turned = {switch: texts[getattr(world.protocol, switch)] for switch, texts in own.pop("by").items()}
    numbers = {
        **sizes,
        **{f"last_{name}": size - 1 for name, size in sizes.items()},
        **{kind: f"{span[0]}-{span[-1]}".removesuffix("-0") for kind, span in spans.items()},
    }
    told = {part: said.format(**numbers, **turned) for part, said in own.items()}
    return text.format(example=world.action_names[0], wait=WAITING, **told, **more)


# ---------------------------------------------------------------- situations and cases, as text


def action_name(world: World, action: int) -> str:
    """How a task action is written."""
    return {WAIT: WAITING, NO_ACTION: NOTHING}.get(action) or world.action_names[action]


@dataclass(frozen=True)
class Case:
    """What a judge rules on; a verdict that stays unusable lets the decision stand."""

    text: str  # what it is shown
    candidates: list[int]  # the highest-scored fields, best first
    decision: int  # the field that the score alone probes, or NONE


class SituationWriter:
    """Writes the situations and cases of a block of episodes; the task graphs are written once."""

    def __init__(self, world: World, task: Any, version: str = PROMPT_VERSION) -> None:
        """Take the world, the task graph of every episode, [row], and the version of the prompts."""
        how, named = VERSIONS[find_version(version)], list(enumerate(world.field_names))
        self._world, self._dated, self._layout = world, how["dated"], WORDS["situations"][how["situation"]]
        self._maps = _maps(world, task)
        self._named = [f"{index} {name}: " for index, name in named]  # how the table's lines begin
        self._heads = self._labels = [f"{index}:" for index, _ in named]
        if not self._dated:
            self._heads, self._labels = self._named, [f"{name}=" for _, name in named]
        distracted = world.regime.observation == "distractor"  # by what no instance of this size has
        self._distractors = [_filled("{distractor}", world)] if distracted else []

    def write(self, block: Any, last_worked: Ints, rows: Ints, past: Ints | None = None) -> list[str]:
        """Write the situations of some rows of a block, whose episodes stand with their notes.

        Args:
            block: the episodes.
            last_worked: [row], NONE_YET, INVALID or VALID, this step's included.
            rows: which are written.
            past: [row, step], the actions so far, which only the public code's versions tell.
        """
        world, episodes = self._world, np.asarray(block)[rows]  # attributes of records take long
        table, seen, steps = episodes["table"], episodes["observation"], episodes["t"]
        ages = steps[:, None] - table["staleness"] if self._dated else table["staleness"]
        told = [seen[name] for name in ("place", "came_from", "action", "valid", "fresh", "value")]
        columns = rows, steps, *told, episodes["told"], last_worked[rows]
        texts = zip(
            _tables(self._heads, episodes["fields"], table, ages),
            _notes(world, episodes),
            *(column.tolist() for column in columns),
            strict=True,
        )
        written = []
        for table, notes, row, step, place, origin, action, valid, fresh, values, told, worked in texts:
            recent = [] if past is None else past[row, max(0, step - REMEMBERED) : step].tolist()
            shown = [f"{label}{v}" for label, v in zip(self._labels, values, strict=False) if v != UNKNOWN]
            parts = {
                "map": self._maps[row],
                "step": step,
                "horizon": world.regime.horizon,
                "table": table,
                "done": action_name(world, action) + (f" ({VALIDITY[valid]})" if action >= 0 else ""),
                "news": NEW if fresh else UNCHANGED,
                "still": "" if fresh else f"Observation: {UNCHANGED}\n",
                "where": "" if world.name == tooldag.NAME else f"Place: {place}{LAST_AT}{origin}\n",
                "told": NOTHING if told == NONE else told,
                "answer": NOTHING if told == NONE else table.split("\n")[told].partition(",")[0],
                "seen": _listed(shown + [one.format(place=place) for one in self._distractors]),
                "worked": VALIDITY[worked],
                "notes": notes,
                "recent": ", ".join(action_name(world, one) for one in recent) or NOTHING,
            }
            written.append(self._layout.format_map(parts))
        return written

    def cases(self, sights: Any) -> list[Case]:
        """Write the case of every sight, [row], which the score has been written to."""
        world, count = self._world, self._world.fields
        order = np.argsort(-sights.rho[:, :count], axis=1, kind="stable")[:, :JUDGE_CANDIDATES].tolist()
        terms = np.stack([sights[name][:, :count] for name in ("c", "s", "u", "d", "rho")], axis=2).tolist()
        tables = _tables(self._named, sights.fields, sights, sights.staleness)
        probes = (sights.highest >= sights.threshold).tolist()
        cases = []
        for table, action, probe, candidates, scored in zip(
            tables, sights.action.tolist(), probes, order, terms, strict=True
        ):
            lines, decision = table.split("\n"), candidates[0] if probe else NONE
            text = WORDS["judge"]["case"].format(
                table=table,
                action=action_name(world, action),
                candidates="\n".join(
                    f"{lines[i]}; " + ", ".join(f"{term:.3f}" for term in scored[i]) for i in candidates
                ),
                decision=ACT if decision == NONE else f"{CHECK}{decision}",
            )
            cases.append(Case(text, candidates, decision))
        return cases


def _tables(heads: Sequence[str], counts: Ints, table: Any, ages: Ints) -> list[str]:
    """Write the beliefs of every table or sight, [row], a line for each of the fields that its instance has.

    A line begins with the field's head; `ages` are staleness or the steps of evidence, [row, field].
    """
    columns = (counts, table["value"], ages, table["confidence"])
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [
        "\n".join(
            [f"{head}{_SIGNS[v]},{age},{c}" for head, v, age, c in zip(heads[:count], *row, strict=False)]
        )
        for count, *row in rows
    ]


def _maps(world: World, task: Any) -> list[str]:
    """Write the task graph of every episode, [row], as far as it is known before anything is seen."""
    known = world.protocol.structure == "graph"
    if world.name == tooldag.NAME:
        needs = task.needs[:, : world.rules.tools].tolist()
        shown = [
            _listed(f"{tool}: {','.join(map(str, _members(own))) or '-'}" for tool, own in enumerate(row))
            for row in needs
        ]
        return [f"Needs: {needed if known else 'not known'}" for needed in shown]
    if world.name == graphnav.NAME:
        edges = [_edges(task, row, (1 << count) - 1) for row, count in enumerate(task.edges.tolist())]
        hidden = "only those that you have met are known, see below"
        pairs = zip(task.target.tolist(), edges, strict=True)
        return [f"Target: {target}\nEdges: {shown if known else hidden}" for target, shown in pairs]
    doors = task.key_of_door.tolist()
    opens = (
        [f"key {key} opens door {door}" for door, key in enumerate(keys) if key != NONE] for keys in doors
    )
    return [f"Keys: {_listed(own)}" for own in opens]


def _notes(world: World, episodes: Any) -> list[str]:
    """Write the notes of every episode, [row]: at most an entry a place, edge or tool, however long it is."""
    mind, known = episodes["mind"], world.protocol.structure == "graph"
    if world.name == tooldag.NAME:
        if known:
            return [""] * len(episodes)
        head, most = "Failed calls (tool and how many of your calls ago)", FAILURE_MEMORY - 1
        rows = mind["calls"][:, None] - mind["failed_at"][:, : world.rules.tools]
    else:
        head, most = "Last been there (place and step)", world.regime.horizon
        rows = mind["last_seen"]
    notes = [
        f"\n{head}: " + _listed(f"{of}: {number}" for of, number in enumerate(row) if 0 <= number <= most)
        for row in rows.tolist()
    ]
    if known or world.name != graphnav.NAME:
        return notes
    met = [_edges(episodes["task"], row, edges) for row, edges in enumerate(mind["met"].tolist())]
    return [f"\nEdges met: {edges}{places}" for edges, places in zip(met, notes, strict=True)]


def _edges(task: Any, row: int, met: int) -> str:
    ends, keys = task["ends"][row].tolist(), task["key_of_edge"][row].tolist()
    return _listed(
        f"{edge}: {ends[edge][0]}-{ends[edge][1]}" + (f" key {keys[edge]}" if keys[edge] != NONE else "")
        for edge in _members(met)
    )


def _members(numbers: int) -> list[int]:
    """The members of one of the engine's `sets`, ascending."""
    return [number for number in range(numbers.bit_length()) if numbers >> number & 1]


def _listed(items: Iterable[str]) -> str:
    return "; ".join(items) or NOTHING
