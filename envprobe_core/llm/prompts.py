"""The prompts of the language-model agent: ours, in versions, the same for every policy.

A request begins with what never changes: the rules of the world, its fields, the form of the answer (the
system message, the same bytes for all episodes of one world and size), and worked examples as turns. Then
comes the user message: the instance's task graph, which stays the same for an episode, and what changes
(`situations`), what changes least first. So a server that keeps prefixes reads the long part once.

Nothing in a prompt tells the policy, the budget or the gate, and nothing in it is gold; only the version
`public-hint` names the policy, as the public code does. A new wording is a new version; a test holds the
fingerprint of each. Earlier versions stay, so that what they were answered can be replayed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from envprobe_core.cells import Cell
from envprobe_core.llm.answers import (
    UPDATE_SCHEMA,
    VERDICT_SCHEMA,
    WAITING,
    gives_reasons,
    update_schema,
    verdict_schema,
    write_update,
)
from envprobe_core.llm.calls import DEMAND, ChatRequest
from envprobe_core.llm.identity import FIRST, HINTED, PROMPT_VERSION, SECOND, ModelAgent, find_version
from envprobe_core.policies import POLICIES
from envprobe_core.worlds import graphnav, make_world, objectstate, tooldag
from envprobe_core.worlds.base import World

UPDATE_TITLE = "EnvProbe belief update"
JUDGE_TITLE = "EnvProbe judge"
LONGEST_ECHO = 600  # characters of an answer that a re-ask repeats
WARMER = 0.7  # the temperature of a re-ask: at 0 a model would repeat itself
EXAMPLE_SEED = 900_001  # of the episode that worked examples are taken from; in no regime's seeds
SURE = 95  # percent, in worked examples
SEEN = "Seen: "

HINTS = {  # of the public code (commit 3266b54), by policy; its ablations' translated
    "no-probe": "Probing is DISABLED. You must always choose type=='act'.",
    "random": "Use random probing roughly within the given probe budget.",
    "periodic": "Probing is allowed periodically. The method will trigger probes at fixed intervals.",
    "self-uncertainty": "Probe ONLY when you genuinely judge your belief is uncertain. "
    "Set risk_level honestly.",
    "simple": "Maintain accurate criticality / staleness / confidence / required_for fields. "
    "Probing is triggered when belief score is high. "
    "Score = criticality + staleness + (1-confidence) + dependency_role.",
    "minus-c": "Probing score ignores the criticality dimension (ablation).",
    "minus-s": "Probing score ignores the staleness dimension (ablation).",
    "minus-u": "Probing score ignores the uncertainty dimension (ablation).",
    "minus-d": "Probing score ignores the dependency_role dimension (ablation).",
    "cd": "Maintain accurate criticality / required_for fields. "
    "Probing triggered when (criticality + dependency_role) score is high.",
    "judge": "An external judge will decide whether to act or probe. Provide accurate belief table.",
    "oracle": "An oracle scheduler may force probes on critically mismatched beliefs.",
}

_SECOND_RULES = """\
You carry out a task in a world that also changes by itself. {memory} At each step you first correct the \
table, then propose your next action.

Rules
{rules}
- A step may be spent on a check of one field instead of your action. {told}

Fields, by index
{fields}

Actions
{actions}; {wait} does nothing.

A row is index:value,step,confidence; the value is ? where it is not known, the step is that of your last \
evidence, the confidence in percent. "Seen" shows index:value; it may leave fields out, and may show what \
has no field.

Answer with one JSON object:
"set": a new row for every field seen, and for others that you now know better, in order of index, each \
row ended by ; or "" if there is none.
"fade": by how many percent your confidence in all other fields falls, 0 to 100.
"act": your next action.
"risk": how likely it is to fail: 0 low, 1 medium, 2 high."""
_WITH_TABLE = {
    "memory": "You keep a table of beliefs about it, a row a field; besides it you remember only your notes.",
    "told": '"Told" names a field that was just checked; its row is already corrected.',
}
_LOST_TABLE = _WITH_TABLE | {
    "memory": "Your table of beliefs about it, a row a field, is empty again after every step; you remember "
    "only your notes.",
    "told": '"Told" names a field that was just checked.',
}
_WITHOUT_TABLE = {
    "memory": "You are given what you see and your last five actions, and write a table of what you believe.",
    "told": '"Told" shows index:value of a field that was just checked.',
}
_WHY = """
"why": the known fields that your action depends on, "index:criticality,used,steps" in order of index, \
each ended by ; criticality 0 low, 1 medium, 2 high; used 1 if the action needs the field now, else 0; \
steps, how many later steps need it; "" if there is none."""

_FIRST_RULES = """\
You carry out a task in a world that also changes by itself. You keep a table of beliefs about it. At \
each step you first correct the table, then propose your next action. Two things count: that the table \
is right at every step, and that the task gets done within the steps.

Rules
{rules}
- A step may be spent on something other than your action, for instance on checking one field. If a \
check has told you something, "Told" names the field; its entry in the table is already corrected.
- An observation may leave an item out, and it may show an item that does not exist and has no field.

Fields, by index
{fields}
A value that is not known is written ?.

Actions
{actions}; {wait} does nothing.

The table
Each field has a value, a staleness (steps since you last had evidence for it, 0 to 99) and a confidence\
 (whole percents, 0 to 100). Every staleness grows by 1 a step by itself. Besides the table you are \
given the observation after the last step and a few notes of your own. You remember nothing else.

Your answer is one JSON object with these five keys and nothing else:
"set": the entries that change, as "index:value,staleness,confidence" with ; between them; "" if none \
does. Write what the observation shows, and what follows from it. Leave out every entry that stays as it\
 is.
"fade": by how many percent your confidence in all other fields falls at this step (not in one just \
told), 0 to 100.
"act": your next action.
"risk": how likely it is to fail: 0 low, 1 medium, 2 high.
"why": the known fields your action depends on, at most 8, as "index:criticality,used,steps" with ; \
between them: criticality 0 low, 1 medium, 2 high; used 1 if the action needs the field now, else 0; \
steps, how many later steps need it; "" if there is none.
Example: {{"set":"0:1,0,95;2:?,0,0","fade":0,"act":"{example}","risk":0,"why":"0:2,1,1"}}"""

_JUDGE_RULES = """\
An agent carries out a task in a world that also changes by itself, and keeps a table of beliefs about \
it. At each step it either carries out its proposed action, or checks one field, whose true value it is \
then told; a check costs the step. A score decides: c (how critical the field is for the task) + s \
(reported staleness) + u (reported doubt) + d (1 if the action reads the field, less if it depends on it\
 indirectly, 0 if it does not). You may override the decision.

Rules
{rules}

Fields, by index
{fields}
A value that is not known is written ?.

Your answer is one JSON object with these two keys and nothing else:
"override": true to override the decision, false to let it stand.
"field": where you override, the index of the candidate to check instead, or -1 to carry out the action;\
 else -1.
Example: {{"override":false,"field":-1}}"""


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
        """Return the request of a verdict on a case (`situations.cases_of`) with its candidates."""
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
    hint = HINTS.get(cell.policy.name) if version == HINTED else None
    return Prompts(
        version,
        update_system(world, version),
        () if version == FIRST else worked_examples(cell, version),
        UPDATE_SCHEMA if version == FIRST else update_schema(world),
        judge_system(world),
        f"\nMethod hint: {hint}" if hint else "",
    )


def update_system(world: World, version: str = PROMPT_VERSION) -> str:
    """Return the system message of a belief update."""
    words = WORDS[world.name](world)
    parts = {"rules": words.rules, "fields": words.fields, "actions": words.actions, "wait": WAITING}
    if version == FIRST:
        text = _FIRST_RULES.format(example=world.action_names[0], **parts)
    else:
        kept = _LOST_TABLE if world.protocol.memory == "none" else _WITH_TABLE
        text = _SECOND_RULES.format(**(kept if version == SECOND else _WITHOUT_TABLE), **parts)
        text += _WHY if gives_reasons(world) else ""
    return f"{headline(UPDATE_TITLE, world)}\n{text}"


def judge_system(world: World) -> str:
    """Return the system message of a judge's verdict."""
    words = WORDS[world.name](world)
    text = _JUDGE_RULES.format(rules=words.rules, fields=words.fields)
    return f"{headline(JUDGE_TITLE, world)}\n{text}"


def headline(title: str, world: World) -> str:
    """Return the first line of a system message: what is asked, and the world's name, sizes and switches."""
    graph = "known" if world.protocol.structure == "graph" else "not known"
    sight = "what is near" if world.protocol.sight == "local" else "overview"
    sizes = WORDS[world.name](world).sizes
    line = f"{title}. World: {world.title}, {sizes}. Task graph: {graph}. Sight: {sight}."
    return line if world.protocol.memory == "kept" else f"{line} Table: lost at each step."


# ---------------------------------------------------------------- worked examples


def worked_examples(cell: Cell, version: str) -> tuple[dict[str, str], ...]:
    """Return three worked situations as turns: much seen, nothing seen, much seen late in the episode.

    A simulated agent without errors meets them; the answers set what is seen and nothing else.
    """
    from envprobe_core.llm.rehearsal import met  # which runs the agent, which asks with these prompts

    world = make_world(cell.world, cell.regime, cell.protocol)
    simple = replace(cell, policy=POLICIES["simple"], budget=None, threshold=None)
    situations = met(simple, [EXAMPLE_SEED], version)
    acting = [one for one in situations if one.said.action >= 0] or situations
    most = max(len(seen_rows(one.text)) for one in acting)
    telling = [one for one in acting if len(seen_rows(one.text)) >= min(2, most)]
    late = acting[len(acting) // 2 :]
    blind = next((one for one in late if not seen_rows(one.text)), late[0])
    blind = replace(blind, text=f"{blind.text.rpartition(SEEN)[0]}{SEEN}nothing")
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


# ---------------------------------------------------------------- the worlds, in words


class Words(NamedTuple):
    """What a prompt says of a world: its sizes, and its rules, fields by index and actions."""

    sizes: str
    rules: str
    fields: str
    actions: str


def _tools(world: World) -> Words:
    n, last = world.rules.tools, world.rules.tools - 1
    seen = (
        "After a call you see whether it was valid, and which of the called tool and the tools it needs are "
        "loaded."
        if world.protocol.sight == "local"
        else "After each step you see whether your call was valid, and which of all tools are loaded."
    )
    unknown = "Which tools a tool needs is not known to you; lower tools never need higher ones."
    return Words(
        f"{n} tools",
        _rules(
            "call(t) is valid if tool t is not loaded and every tool that it needs is loaded. Then t is "
            "loaded and its subgoal is complete.",
            f"Task: complete the subgoal of tool {last}, the target.",
            "A loaded tool other than the target may become unloaded by itself at any step. A complete "
            "subgoal stays complete.",
            seen,
            "" if world.protocol.structure == "graph" else unknown,
        ),
        f"{_span(0, n)}: loaded(t) of tool t, in order: 0 no, 1 yes\n"
        f"{_span(n, n)}: dependency satisfied(t), all tools that t needs are loaded: 0 no, 1 yes\n"
        f"{_span(2 * n, n)}: subgoal complete(t): 0 no, 1 yes",
        f"call(0) to call({last})",
    )


def _rooms(world: World) -> Words:
    rules, near = world.rules, world.protocol.sight == "local"
    items, doors = rules.objects, rules.doors
    objects = f"key 0 to {rules.keys - 1}, box 0 to {rules.boxes - 1}, goal 0 to {rules.goals - 1}"
    doors_seen = ", and whether its doors are locked." if near else "; not the locks of doors."
    return Words(
        f"{rules.rooms} rooms, {rules.keys} keys, {rules.boxes} boxes, {rules.goals} goals",
        _rules(
            f"Rooms 0 to {rules.rooms - 1} stand in a row; door d is between rooms d and d+1. move(r) is "
            "valid if r is next to your room and the door between is open. pick(x) is valid if x lies in "
            "your room; then you hold it. unlock(d) is valid if your room has door d, it is locked and you "
            "hold its key. place(x) puts down what you hold.",
            "Task: hold goal 0.",
            "At any step an object that nobody holds may be in another room, and a door that has a key may "
            "lock or unlock, by itself."
            if world.protocol.rates == "mean"
            else "At any step a key that nobody holds may be in another room by itself.",
            f"After each step you see your room, what lies in it and what you hold{doors_seen} You see "
            "whether your action was valid.",
        ),
        f"{_span(0, items)}: location(x) of the keys, boxes and goals, in order: a room, or {rules.rooms} "
        f"for held\n{_span(items, doors)}: lock(d) of door d, in order: 0 open, 1 locked\n"
        f"{_span(items + doors, items)}: held(x) of the same objects: 0 no, 1 yes",
        f"move(0) to move({rules.rooms - 1}); unlock(0) to unlock({doors - 1}); pick(x) and place(x) with x "
        f"one of {objects}, as in pick(key 0)",
    )


def _graph(world: World) -> Words:
    rules, near = world.rules, world.protocol.sight == "local"
    most = "" if world.protocol.instances == "ancestors" else "at most "  # one drawn twice is one edge
    edges_seen = " and whether they are locked." if near else "; not whether they are locked."
    return Words(
        f"{rules.nodes} nodes, {rules.keys} keys, {most}{rules.edges} edges",
        _rules(
            "move(v) is valid if an edge joins your node and v, and it is open or you hold its key. "
            "collect(k) is valid if k lies at your node; then you hold it.",
            "Task: reach the target node.",
            "At any step a key that nobody holds may be at another node, and an edge that has a key may lock "
            "or unlock, by itself.",
            "After each step you see your node, which keys lie there and which you hold, the edges there"
            f"{edges_seen} You see whether your action was valid.",
        ),
        f"0: node, where you are\n"
        f"{_span(1, rules.keys)}: location(k) of key k, in order: a node, or {rules.nodes} for held\n"
        f"{_span(1 + rules.keys, rules.edges)}: state(e) of edge e, in order: 0 open, 1 locked",
        f"move(0) to move({rules.nodes - 1}); collect(key 0) to collect(key {rules.keys - 1})",
    )


WORDS = {tooldag.NAME: _tools, objectstate.NAME: _rooms, graphnav.NAME: _graph}


def _rules(*lines: str) -> str:
    return "\n".join(f"- {line}" for line in lines if line)


def _span(first: int, count: int) -> str:
    return f"{first}-{first + count - 1}"
