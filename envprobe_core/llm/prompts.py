"""The prompts of the language-model agent: ours, versioned, the same for every policy.

A request begins with what never changes: the rules of the world, its fields, the form of the answer (the
system message, the same bytes for all episodes of one world and size). Then comes the user message: the
instance's task graph, which stays the same for an episode, and what changes (`situations`). So a
server that keeps prefixes reads the long part once.

Nothing in a prompt tells the policy, the budget or the gate, and nothing in it is gold. A new wording is a
new `PROMPT_VERSION`; a test holds its fingerprint.
"""

from __future__ import annotations

from typing import Any

from envprobe_core.llm.answers import UPDATE_SCHEMA, VERDICT_SCHEMA, WAITING, response_format
from envprobe_core.llm.asking import ChatRequest
from envprobe_core.llm.identity import ModelSettings
from envprobe_core.worlds.base import World
from envprobe_core.worlds.graphnav import GraphNav
from envprobe_core.worlds.objectstate import ObjectState
from envprobe_core.worlds.tooldag import ToolDAG

PROMPT_VERSION = "1-4e55db8f"
UPDATE_TITLE = "EnvProbe belief update"
JUDGE_TITLE = "EnvProbe judge"
LONGEST_ECHO = 600  # characters of an answer that a re-ask repeats

_UPDATE_RULES = """\
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


def headline(title: str, world: World) -> str:
    """Return the first line of a system message: what is asked, and the world's name, sizes and switches."""
    graph = "known" if world.protocol.structure == "graph" else "not known"
    sight = "what is near" if world.protocol.sight == "local" else "overview"
    return f"{title}. World: {world.title}, {_sizes(world.rules)}. Task graph: {graph}. Sight: {sight}."


def _sizes(rules: Any) -> str:
    if isinstance(rules, ToolDAG):
        return f"{rules.tools} tools"
    if isinstance(rules, ObjectState):
        return f"{rules.rooms} rooms, {rules.keys} keys, {rules.boxes} boxes, {rules.goals} goals"
    assert isinstance(rules, GraphNav)
    return f"{rules.nodes} nodes, {rules.keys} keys, {rules.edges} edges"


def update_system(world: World) -> str:
    """Return the system message of a belief update."""
    text = _UPDATE_RULES.format(
        rules=_rules(world),
        fields=_fields(world.rules),
        actions=_actions(world.rules),
        wait=WAITING,
        example=world.action_names[0],
    )
    return f"{headline(UPDATE_TITLE, world)}\n{text}"


def judge_system(world: World) -> str:
    """Return the system message of a judge's verdict."""
    text = _JUDGE_RULES.format(rules=_rules(world), fields=_fields(world.rules))
    return f"{headline(JUDGE_TITLE, world)}\n{text}"


def _rules(world: World) -> str:
    rules, near = world.rules, world.protocol.sight == "local"
    if isinstance(rules, ToolDAG):
        last = rules.tools - 1
        lines = [
            "call(t) is valid if tool t is not loaded and every tool that it needs is loaded. Then t is "
            "loaded and its "
            "subgoal is complete.",
            f"Task: complete the subgoal of tool {last}, the target.",
            "A loaded tool other than the target may become unloaded by itself at any step. A complete "
            "subgoal stays "
            "complete.",
            "After a call you see whether it was valid, and which of the called tool and the tools it "
            "needs are loaded."
            if near
            else "After each step you see whether your call was valid, and which of all tools are loaded.",
        ]
        if world.protocol.structure != "graph":
            lines.append("Which tools a tool needs is not known to you; lower tools never need higher ones.")
    elif isinstance(rules, ObjectState):
        lines = [
            f"Rooms 0 to {rules.rooms - 1} stand in a row; door d is between rooms d and d+1. move(r) is "
            "valid if r is "
            "next to your room and the door between is open. pick(x) is valid if x lies in your room; "
            "then you hold it. "
            "unlock(d) is valid if your room has door d, it is locked and you hold its key. place(x) "
            "puts down what you "
            "hold.",
            "Task: hold goal 0.",
            "At any step an object that nobody holds may be in another room, and a door that has a key "
            "may lock or "
            "unlock, by itself."
            if world.protocol.rates == "mean"
            else "At any step a key that nobody holds may be in another room by itself.",
            "After each step you see your room, what lies in it and what you hold"
            + (", and whether its doors are locked." if near else "; not the locks of doors.")
            + " You see whether your action was valid.",
        ]
    else:
        assert isinstance(rules, GraphNav)
        lines = [
            "move(v) is valid if an edge joins your node and v, and it is open or you hold its key. "
            "collect(k) is valid "
            "if k lies at your node; then you hold it.",
            "Task: reach the target node.",
            "At any step a key that nobody holds may be at another node, and an edge that has a key may "
            "lock or unlock, "
            "by itself.",
            "After each step you see your node, which keys lie there and which you hold, the edges there"
            + (" and whether they are locked." if near else "; not whether they are locked.")
            + " You see whether your action was valid.",
        ]
    return "\n".join(f"- {line}" for line in lines)


def _fields(rules: Any) -> str:
    if isinstance(rules, ToolDAG):
        n = rules.tools
        return (
            f"{_span(0, n)}: loaded(t) of tool t, in order: 0 no, 1 yes\n"
            f"{_span(n, n)}: dependency satisfied(t), all tools that t needs are loaded: 0 no, 1 yes\n"
            f"{_span(2 * n, n)}: subgoal complete(t): 0 no, 1 yes"
        )
    if isinstance(rules, ObjectState):
        items, doors = rules.objects, rules.doors
        return (
            f"{_span(0, items)}: location(x) of the keys, boxes and goals, in order: a room, or "
            f"{rules.rooms} for held\n"
            f"{_span(items, doors)}: lock(d) of door d, in order: 0 open, 1 locked\n"
            f"{_span(items + doors, items)}: held(x) of the same objects: 0 no, 1 yes"
        )
    assert isinstance(rules, GraphNav)
    return (
        f"0: node, where you are\n"
        f"{_span(1, rules.keys)}: location(k) of key k, in order: a node, or {rules.nodes} for held\n"
        f"{_span(1 + rules.keys, rules.edges)}: state(e) of edge e, in order: 0 open, 1 locked"
    )


def _actions(rules: Any) -> str:
    if isinstance(rules, ToolDAG):
        return f"call(0) to call({rules.tools - 1})"
    if isinstance(rules, ObjectState):
        objects = f"key 0 to {rules.keys - 1}, box 0 to {rules.boxes - 1}, goal 0 to {rules.goals - 1}"
        return (
            f"move(0) to move({rules.rooms - 1}); unlock(0) to unlock({rules.doors - 1}); pick(x) and "
            "place(x) with x "
            f"one of {objects}, as in pick(key 0)"
        )
    assert isinstance(rules, GraphNav)
    return f"move(0) to move({rules.nodes - 1}); collect(key 0) to collect(key {rules.keys - 1})"


def _span(first: int, count: int) -> str:
    return f"{first}-{first + count - 1}"


def update_request(settings: ModelSettings, system: str, situation: str, seed: int) -> ChatRequest:
    """Return the request of a belief update.

    Args:
        settings: which model, and how.
        system: from `update_system`.
        situation: from `situations.SituationWriter`.
        seed: the episode's.
    """
    return _request(settings.model, settings.max_tokens, settings, system, situation, seed, _UPDATE_FORMAT)


def judge_request(settings: ModelSettings, system: str, case: str, seed: int) -> ChatRequest:
    """Return the request of a judge's verdict on a case (`judging.cases_of`)."""
    model = settings.judge_model or settings.model
    return _request(model, settings.judge_max_tokens, settings, system, case, seed, _VERDICT_FORMAT)


def _request(
    model: str, tokens: int, settings: ModelSettings, system: str, user: str, seed: int, form: dict[str, Any]
) -> ChatRequest:
    return {
        "model": model,
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
        "response_format": form,
        "temperature": settings.temperature,
        "max_tokens": tokens,
        "seed": seed,
    }


_UPDATE_FORMAT = response_format("update", UPDATE_SCHEMA)
_VERDICT_FORMAT = response_format("verdict", VERDICT_SCHEMA)


def asked_again(request: ChatRequest, answer: str, fault: str) -> ChatRequest:
    """Return the request with the answer that cannot be used and a message that names its fault.

    The answer stands between the two, shortened and in ASCII, because chat templates of many
    local models insist that user and assistant take turns.
    """
    echo = answer[:LONGEST_ECHO].encode("ascii", "backslashreplace").decode("ascii") or "(empty)"
    return request | {
        "messages": [
            *request["messages"],
            {"role": "assistant", "content": echo},
            {"role": "user", "content": f"This answer cannot be used: {fault}. Give the whole answer again."},
        ]
    }
