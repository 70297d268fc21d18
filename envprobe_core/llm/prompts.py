"""What the language-model agent is asked: ours, in versions, the same for every policy.

A request begins with what never changes: the rules of the world, its fields, the form of the answer (the
system message, the same bytes for all episodes of one world and size), and worked examples as turns. Then
comes the situation: the instance's task graph, which stays the same for an episode, the belief table, the
observation, what a check has told, and a few notes that cannot grow without end; what changes least first.
So a server that keeps prefixes reads the long part once. A judge is shown a case: the belief table, the
proposed action, and what the score makes of it (Section 4.2).

Nothing in a prompt tells the policy, the budget or the gate, and nothing in it is gold; only the version
`public-hint` names the policy, as the public code does. The words stand in `prompts.toml`. The tests
take a situation back apart and let the simulated agent answer it: nothing that it uses is missing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from envprobe_core.agents.profiles import PROFILES
from envprobe_core.cells import Cell
from envprobe_core.engine.records import NO_ACTION, NONE, UNKNOWN, WAIT
from envprobe_core.llm import FIRST, HINTED, PROMPT_VERSION, SECOND, ModelAgent, find_version
from envprobe_core.llm.answers import (
    UNKNOWN_SIGN,
    UPDATE_SCHEMA,
    VERDICT_SCHEMA,
    WAITING,
    Verdict,
    gives_reasons,
    update_schema,
    verdict_schema,
    write_update,
)
from envprobe_core.llm.calls import ChatRequest
from envprobe_core.policies import POLICIES
from envprobe_core.policies.rules import JUDGE_CANDIDATES
from envprobe_core.worlds import graphnav, make_world, objectstate, tooldag
from envprobe_core.worlds.base import Ints, World

UPDATE_TITLE = "EnvProbe belief update"
JUDGE_TITLE = "EnvProbe judge"
DEMAND = "This answer cannot be used"
"""How the last message of a request begins that asks again."""
LONGEST_ECHO = 600  # characters of an answer that a re-ask repeats
WARMER = 0.7  # the temperature of a re-ask: at 0 a model would repeat itself
EXAMPLE_SEED = 900_001  # of the episode that worked examples are taken from; in no regime's seeds
SURE = 95  # percent, in worked examples


@dataclass(frozen=True)
class Prompts:
    """How a model is asked about the episodes of one cell."""

    version: str  # of the prompts
    system: str  # the first message of a belief update: the rules
    turns: tuple[dict[str, str], ...]  # worked examples, as messages of user and assistant
    schema: dict[str, Any]  # of a belief update
    judge_system: str  # the first message of a judge's verdict
    hint: str = ""  # what a situation ends with, empty for nothing

    def update_request(self, agent: ModelAgent, situation: str, seed: int) -> ChatRequest:
        """Return the request of a belief update on a situation, for the episode of a seed."""
        messages = [_message("system", self.system), *self.turns, _message("user", situation + self.hint)]
        return _request(agent, agent.model, agent.max_tokens, messages, seed, "update", self.schema)

    def judge_request(
        self, agent: ModelAgent, case: str, candidates: Sequence[int], seed: int
    ) -> ChatRequest:
        """Return the request of a verdict on a case with its candidates."""
        schema = VERDICT_SCHEMA if self.version == FIRST else verdict_schema(candidates)
        messages = [_message("system", self.judge_system), _message("user", case)]
        model = agent.judge_model or agent.model
        return _request(agent, model, agent.judge_max_tokens, messages, seed, "verdict", schema)

    def asked_again(self, request: ChatRequest, answer: str, fault: str) -> ChatRequest:
        """Return the request with the answer that cannot be used and a message that names its fault.

        The answer stands between the two, shortened and in ASCII, because chat templates of many
        local models insist that user and assistant take turns.
        """
        echo = answer[:LONGEST_ECHO].encode("ascii", "backslashreplace").decode("ascii") or "(empty)"
        demand = f"{DEMAND}: {fault}. Give the whole answer again."
        more = [_message("assistant", echo), _message("user", demand)]
        warmer = {} if self.version == FIRST else {"temperature": max(request["temperature"], WARMER)}
        return request | {"messages": [*request["messages"], *more]} | warmer


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _request(
    agent: ModelAgent, model: str, tokens: int, messages: list[Any], seed: int, name: str, schema: Any
) -> ChatRequest:
    form = {"name": name, "strict": True, "schema": schema}
    return {
        "model": model,
        "messages": messages,
        "response_format": {"type": "json_schema", "json_schema": form},
        "temperature": agent.temperature,
        "max_tokens": tokens,
        "seed": seed,
    }


@lru_cache(maxsize=256)
def prompts_of(cell: Cell, version: str) -> Prompts:
    """Return the prompts of a cell in a version.

    Raises:
        InputError: if there is no such version.
    """
    find_version(version)
    world = make_world(cell.world, cell.regime, cell.protocol)
    hint = words()["hints"].get(cell.policy.name) if version == HINTED else None
    return Prompts(
        version,
        update_system(world, version),
        () if version == FIRST else worked_examples(cell, version),
        UPDATE_SCHEMA if version == FIRST else update_schema(world),
        judge_system(world),
        f"\nMethod hint: {hint}" if hint else "",
    )


@cache
def words() -> dict[str, Any]:
    """Return what `prompts.toml` holds."""
    return tomllib.loads(Path(__file__).with_name("prompts.toml").read_text(encoding="utf-8"))


def update_system(world: World, version: str = PROMPT_VERSION) -> str:
    """Return the system message of a belief update."""
    text = words()["update"]["first" if version == FIRST else "later"]
    if version != FIRST and gives_reasons(world):
        text += words()["update"]["why"]
    table = "none" if version not in (FIRST, SECOND) else "table" if _keeps(world) else "lost"
    return f"{headline(UPDATE_TITLE, world)}\n{_filled(text, world, kept=words()['kept'][table])}"


def judge_system(world: World) -> str:
    """Return the system message of a judge's verdict."""
    return f"{headline(JUDGE_TITLE, world)}\n{_filled(words()['judge']['rules'], world)}"


def headline(title: str, world: World) -> str:
    """Return the first line of a system message: what is asked, and the world's name, sizes and switches."""
    graph = "known" if world.protocol.structure == "graph" else "not known"
    sight = "what is near" if world.protocol.sight == "local" else "overview"
    line = f"{title}. World: {world.title}, {_filled('{sizes}', world)}. Task graph: {graph}. Sight: {sight}."
    return line if _keeps(world) else f"{line} Table: lost at each step."


def _keeps(world: World) -> bool:
    return world.protocol.memory == "kept"


def _filled(text: str, world: World, **more: Any) -> str:
    """Fill in what a world's words say, then its numbers: sizes, last members, and spans of fields."""
    sizes = {name: size for name, size in world.rules._asdict().items() if type(size) is int}
    kinds = groupby(enumerate(world.field_names), key=lambda field: field[1].partition("(")[0])
    spans = {kind.replace(" ", "_"): [index for index, _ in own] for kind, own in kinds}
    own = dict(words()["worlds"][world.name])
    turned = {switch: texts[getattr(world.protocol, switch)] for switch, texts in own.pop("by").items()}
    numbers = {
        **sizes,
        **{f"last_{name}": size - 1 for name, size in sizes.items()},
        **{kind: f"{span[0]}-{span[-1]}".removesuffix("-0") for kind, span in spans.items()},
    }
    told = {part: said.format(**numbers, **turned) for part, said in own.items()}
    return text.format(example=world.action_names[0], wait=WAITING, **told, **more)


def worked_examples(cell: Cell, version: str) -> tuple[dict[str, str], ...]:
    """Return three worked situations as turns: much seen, nothing seen, much seen late in the episode.

    A simulated agent without errors meets them; the answers set what is seen and nothing else.
    """
    from envprobe_core.llm.rehearsal import rehearse  # which runs the agent, which asks with these prompts

    world = make_world(cell.world, cell.regime, cell.protocol)
    simple = replace(cell, policy=POLICIES["simple"], budget=None, threshold=None)
    situations = rehearse(simple, np.array([EXAMPLE_SEED]), version, PROFILES["perfect"])
    acting = [one for one in situations if one.said.action >= 0] or situations
    most = max(len(seen_rows(one.text)) for one in acting)
    telling = [one for one in acting if len(seen_rows(one.text)) >= min(2, most)]
    late = acting[len(acting) // 2 :]
    blind = next((one for one in late if not seen_rows(one.text)), late[0])
    blind = replace(blind, text=f"{blind.text.rpartition(SEEN)[0]}{SEEN}{NOTHING}")
    turns = []
    for one in (telling[0], blind, telling[-1]):
        entries = tuple((*row, 0, SURE) for row in seen_rows(one.text))
        update = replace(one.said, entries=entries, fade=0, risk=0)
        turns += [_message("user", one.text), _message("assistant", write_update(update, world, one.step))]
    return tuple(turns)


def seen_rows(situation: str) -> list[tuple[int, int]]:
    """Return the fields that a situation of the second version shows, and their values."""
    shown = situation.rpartition(SEEN)[2].partition("\n")[0].split("; ")
    pairs = (item.split(":") for item in shown if item[0].isdigit())
    return [(int(field), int(value)) for field, value in pairs]


# ---------------------------------------------------------------- situations and cases, as text

NONE_YET, INVALID, VALID = -1, 0, 1  # of the agent's last task action
VALIDITY = {NONE_YET: "none yet", INVALID: "invalid", VALID: "valid"}
NOTHING, SEEN = "nothing", "Seen: "
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


@dataclass(frozen=True)
class Case:
    """What a judge rules on; a verdict that stays unusable lets the decision stand."""

    text: str  # what it is shown
    candidates: list[int]  # the highest-scored fields, best first
    decision: int  # the field that the score alone probes, or NONE

    def ruled(self, verdict: Verdict) -> int:
        """Return the field that is probed, or NONE."""
        return verdict.field if verdict.override else self.decision


class SituationWriter:
    """Writes the situations and cases of a block of episodes; the task graphs are written once."""

    def __init__(self, world: World, task: Any, version: str = SECOND) -> None:
        """Take the world, the task graph of every episode, [row], and the version of the prompts.

        In the first version the table gives ages; in the second it gives the steps of evidence, and what is
        seen comes last; the public code's two have no table and no notes, but the last five actions.
        """
        self._world, self._version = world, version
        self._maps = _map_texts(world, task)
        named = list(enumerate(world.field_names))
        self._named_heads = [f"{index} {name}: " for index, name in named]  # of the table's lines
        self._heads, self._labels = [f"{index}:" for index, _ in named], [f"{index}:" for index, _ in named]
        if version == FIRST:
            self._heads, self._labels = self._named_heads, [f"{name}=" for _, name in named]

    def write(
        self, block: Any, last_worked: Ints, rows: Ints, past: Sequence[Sequence[str]] = ()
    ) -> list[str]:
        """Write the situations of some rows of a block, whose episodes stand with their notes.

        Args:
            block: the episodes.
            last_worked: [row], NONE_YET, INVALID or VALID, this step's included.
            rows: which are written.
            past: [row], the actions so far, which only the public code's versions tell.
        """
        world, episodes = self._world, np.asarray(block)[rows]  # attributes of records take long
        table, seen, steps = episodes["table"], episodes["observation"], episodes["t"]
        ages = table["staleness"] if self._version == FIRST else steps[:, None] - table["staleness"]
        told = [seen[name] for name in ("place", "came_from", "action", "valid", "fresh")]
        columns = rows, steps, *told, episodes["told"], last_worked[rows]
        texts = zip(
            _table_texts(self._heads, episodes["fields"], table, ages),
            self._seen(seen),
            _note_texts(world, episodes),
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
                    f"{where}{SEEN}{shown}\n{checked}{validity}{notes}"
                )
            elif self._version == SECOND:
                still = "" if fresh else f"Observation: {UNCHANGED}\n"
                text = (
                    f"{DATED_TABLE}\n{table}\n\n{at}{done}{still}{where}{checked}{validity}{notes}"
                    f"\n{SEEN}{shown}"
                )
            else:
                recent = ", ".join(past[row][-REMEMBERED:]) or NOTHING
                answer = NOTHING if told == NONE else table.split("\n")[told].partition(",")[0]
                text = f"{at}Your last actions: {recent}\n{done}{where}Told: {answer}\n{SEEN}{shown}"
            written.append(f"{self._maps[row]}\n\n{text}")
        return written

    def cases(self, sights: Any) -> list[Case]:
        """Write the case of every sight, [row], which the score has been written to."""
        world, count = self._world, self._world.fields
        order = np.argsort(-sights.rho[:, :count], axis=1, kind="stable")[:, :JUDGE_CANDIDATES].tolist()
        terms = np.stack([sights[name][:, :count] for name in ("c", "s", "u", "d", "rho")], axis=2).tolist()
        tables = _table_texts(self._named_heads, sights.fields, sights, sights.staleness)
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

    def _seen(self, observation: Any) -> list[str]:
        distracted = self._world.regime.observation == "distractor"
        rows = []
        for values, place in zip(observation["value"].tolist(), observation["place"].tolist(), strict=True):
            pairs = zip(self._labels, values, strict=False)
            items = [f"{label}{value}" for label, value in pairs if value != UNKNOWN]
            rows.append(_listed([*items, _distractor(self._world, place)] if distracted else items))
        return rows


def _distractor(world: World, place: int) -> str:
    """Return an item that no instance of this size has, as an observation shows it."""
    if world.name == tooldag.NAME:
        return f"loaded({world.rules.tools})=1"
    if world.name == objectstate.NAME:
        return f"location(box {world.rules.boxes})={place}"
    return f"location(key {world.rules.keys})={place}"


def _map_texts(world: World, task: Any) -> list[str]:
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
    ends, keys = task["ends"][row].tolist(), task["key_of_edge"][row].tolist()
    return _listed(
        f"{edge}: {ends[edge][0]}-{ends[edge][1]}" + (f" key {keys[edge]}" if keys[edge] != NONE else "")
        for edge in _members(met)
    )


def _members(numbers: int) -> list[int]:
    """Return the members of one of the engine's `sets`, ascending."""
    return [number for number in range(numbers.bit_length()) if numbers >> number & 1]


def _listed(items: Iterable[str]) -> str:
    return "; ".join(items) or NOTHING


def _note_texts(world: World, block: Any) -> list[str]:
    """Write the notes of every episode, [row]: at most an entry a place, edge or tool, however long it is."""
    mind = block["mind"]
    if world.name == tooldag.NAME:
        if world.rules.knows_graph:
            return [""] * len(block)
        ago = (mind["calls"][:, None] - mind["failed_at"][:, : world.rules.tools]).tolist()
        return [
            "\nFailed calls (tool and how many of your calls ago): "
            + _listed(f"{tool}: {calls}" for tool, calls in enumerate(row) if calls < tooldag.FAILURE_MEMORY)
            for row in ago
        ]
    been = [
        "\nLast been there (place and step): "
        + _listed(f"{place}: {step}" for place, step in enumerate(row) if step >= 0)
        for row in mind["last_seen"].tolist()
    ]
    if world.name == graphnav.NAME and not world.rules.knows_graph:
        met = [_edges(block["task"], row, edges) for row, edges in enumerate(mind["met"].tolist())]
        return [f"\nEdges met: {edges}{places}" for edges, places in zip(met, been, strict=True)]
    return been


def _table_texts(heads: Sequence[str], counts: Ints, table: Any, ages: Ints) -> list[str]:
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
