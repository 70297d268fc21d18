"""A stateless program that answers as a language model would be asked to: the simulated agent, by text.

It reads a request's messages and seed and nothing else, rebuilds the episode that they describe, and
lets the simulated agent of that seed answer it; a judge's case it rules on as the embedded judge does.
So a run through it, in process or behind the scripted server, must equal the simulated run episode for
episode: whatever a prompt left out, or an answer could not say, would show.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from envprobe_core.agents import mind_of_graphs, mind_of_tools
from envprobe_core.agents.profiles import TYPICAL
from envprobe_core.agents.simulated import RISK_LOW, RISK_MEDIUM, UNKNOWN_STALENESS
from envprobe_core.compiled.records import NO_ACTION, NONE, UNKNOWN, WAIT, new
from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import EpisodeBatch, episode_dtype, step_batch
from envprobe_core.engine.kernel import PROPOSE
from envprobe_core.errors import InputError
from envprobe_core.llm import prompts
from envprobe_core.llm.agent import simulated_setting, simulated_updates
from envprobe_core.llm.answers import STANDS, WAITING, Verdict, write_update
from envprobe_core.llm.calls import Answer, Tokens
from envprobe_core.policies.rules import JUDGE_CONFIDENCE
from envprobe_core.protocols import Protocol, switch_values
from envprobe_core.regimes import OBSERVATIONS, Regime
from envprobe_core.worlds import WORLDS, graphnav, make_world, objectstate, tooldag
from envprobe_core.worlds.base import Ints

LONGEST = 40  # more steps than any horizon has
CHARACTERS_A_TOKEN = 4  # a rough count, for the usage it reports


class Scripted:
    """Answers in this process; remembers nothing between two requests."""

    def __init__(self, profile=TYPICAL):
        self.profile = profile

    async def ask(self, request, identity, spoilt=""):
        """Answer at once."""
        text = answer(request, self.profile)
        return Answer(text, used=rough_tokens(request, text))


def answer(request, profile=TYPICAL):
    """Answer as the simulated agent of the request's seed, or the embedded judge, would.

    Raises:
        InputError: if the request is not one of `prompts`.
    """
    system, user = request["messages"][0]["content"], asked_of(request)
    if system.startswith(prompts.JUDGE_TITLE):
        return embedded_verdict(user).model_dump_json()
    world = world_of(system.partition("\n")[0])
    try:
        situation = read_situation(user, world)
    except (KeyError, ValueError, IndexError) as error:
        raise InputError(f"the user message is not a situation of this program ({error!r})") from None
    setting = _setting(world, profile, situation.distracted)
    block = situation.block
    block.keys[:] = _keys(world.name, int(request["seed"]))
    block.prone[:] = 1.0  # its errors fall evenly
    block.risk[:] = RISK_MEDIUM if situation.last_worked[0] == prompts.INVALID else RISK_LOW
    past = np.repeat(block, block.t[0])[1:]  # who took its task for finished has quit for good
    past.t[:] = np.arange(1, block.t[0])
    if len(past):
        step_batch(PROPOSE, setting, past)
        block.has_quit[:] = past.has_quit.any()
    (update,) = simulated_updates(block, world, setting)
    return write_update(update, world, int(block.t[0]))


@lru_cache(maxsize=1024)
def _keys(world, seed):
    """Return the keys of an episode's random streams, of which its agent has its own."""
    return EpisodeBatch(make_condition(world, "no-probe", "S1"), np.array([seed])).block.keys[0]


def asked_of(request):
    """Return what is asked: the last user message but for demands to answer again."""
    asked = [message["content"] for message in request["messages"] if message["role"] == "user"]
    asked = [text for text in asked if not text.startswith(prompts.DEMAND)]
    if not asked:
        raise InputError("the request has no user message")
    return asked[-1]


def rough_tokens(request, text):
    """Count tokens roughly: four characters each."""
    asked = sum(len(message["content"]) for message in request["messages"])
    return Tokens(-(-asked // CHARACTERS_A_TOKEN), -(-len(text) // CHARACTERS_A_TOKEN))


def embedded_verdict(case):
    """Rule on a case's text as the embedded judge does: veto d = 0, force a doubted direct blocker."""
    lines = case.partition("c, s, u, d, score)\n")[2].split("\n")
    probes = lines.pop().startswith(f"Decision: {prompts.CHECK}")
    fields, confidence, d = [], [], []
    for line in lines:
        entry, _, terms = line.rpartition("; ")
        fields.append(int(re.match(r"\d+", line)[0]))
        confidence.append(int(entry.rpartition(",")[2]))
        d.append(float(terms.split(", ")[3]))
    if probes and d[0] > 0:
        return STANDS
    told = zip(fields, confidence, d, strict=True)
    doubted = (field for field, sure, role in told if role == 1.0 and sure < JUDGE_CONFIDENCE)
    forced = next(doubted, NONE)
    return Verdict(override=probes or forced != NONE, field=forced)


# ---------------------------------------------------------------- the world, from the system message


@lru_cache(maxsize=64)
def world_of(line):
    """Rebuild the world of a system message from its first line."""
    title, _, _ = line.partition(".")
    for world in worlds():
        if prompts.headline(title, world) == line:
            return world
    raise InputError(f"the system message does not begin as one of this program's: {ascii(line)[:120]}")


@lru_cache(maxsize=1)
def worlds():
    """Build every world an agent can tell apart, and, where it cannot, those with the most locks first."""
    return [
        make_world(
            name,
            Regime("asked", complexity, density, 0, 0, LONGEST, (0, 1), "as asked"),
            Protocol("asked", structure=structure, sight=sight, memory=memory, instances=instances),
        )
        for name in WORLDS
        for complexity in range(3)
        for density in (2, 1, 0)
        for structure in switch_values("structure")
        for sight in switch_values("sight")
        for memory in switch_values("memory")
        for instances in switch_values("instances")
    ]


@lru_cache(maxsize=256)
def _setting(world, profile, distracted):
    noise = OBSERVATIONS.index("distractor") if distracted else 0
    return simulated_setting(world, replace(world.regime, noise=noise), profile)


# ---------------------------------------------------------------- the episode, from the user message


@dataclass(frozen=True)
class Situation:
    """One episode's situation, read back from its text."""

    block: Any  # the episode, [1]; its notes as they were before this step, and of the hidden state nothing
    last_worked: Ints  # [1], whether the last task action was valid, this step's included
    distracted: bool  # whether an item was shown that does not exist


def read_situation(text, world):
    """Read a situation back; `world` needs the sizes, structure and sight of the one that wrote it."""
    labels = _labels(text)
    block = new(episode_dtype(world.name), 1)
    block.t[:] = int(labels["Step"].split(" of ")[0])
    block.told[:] = NONE if labels["Told"] == prompts.NOTHING else int(labels["Told"])
    block.fields[:] = _read_table(text, block.table, int(block.t[0]))
    distracted = _read_observation(labels, world, block.observation)
    _READERS[world.name](world, labels, block)
    worked = next(code for code, word in prompts.VALIDITY.items() if word == labels["Your last task action"])
    return Situation(block, np.array([worked]), distracted)


def _labels(text):
    found = (line.partition(": ") for line in text.split("\n"))
    return {label.partition(" (")[0]: rest for label, colon, rest in found if colon}


def _items(text):
    return [] if text == prompts.NOTHING else text.split("; ")


def _pairs(text):
    return [(int(one), int(other)) for one, _, other in (item.partition(": ") for item in _items(text))]


def _read_table(text, table, step):
    """Read the table; return how many fields there are."""
    lines = text.partition("Table\n")[2].partition("\n\n")[0].split("\n")
    rows = [line.partition(":")[2].replace(prompts.UNKNOWN_SIGN, str(UNKNOWN)).split(",") for line in lines]
    table.value[:], table.staleness[:] = UNKNOWN, step - UNKNOWN_STALENESS  # of what the instance lacks
    for name, column in zip(("value", "staleness", "confidence"), zip(*rows, strict=True), strict=True):
        table[name][0, : len(rows)] = list(map(int, column))
    table.staleness[0] = step - table.staleness[0]
    return len(rows)


def _read_observation(labels, world, observation):
    """Read what was seen, and say whether an item is among it that does not exist."""
    actions = {name: index for index, name in enumerate(world.action_names)}
    shown = _items(labels["Seen"])
    seen = [tuple(map(int, item.split(":"))) for item in shown if item[0].isdigit()]
    observation.value[:] = UNKNOWN
    observation.count[:] = len(seen)
    for number, (field, value) in enumerate(seen):
        observation["field"][0, number], observation.value[0, field] = field, value
    done, _, outcome = labels["Last step"].partition(" (")
    place, _, came_from = labels.get("Place", f"0{prompts.LAST_AT}0").partition(prompts.LAST_AT)
    observation.place[:], observation.came_from[:] = int(place), int(came_from)
    observation.action[:] = (actions | {WAITING: WAIT, prompts.NOTHING: NO_ACTION})[done]
    observation.valid[:], observation.fresh[:] = outcome == "valid)", "Observation" not in labels
    return len(seen) < len(shown)


def _read_tools(world, labels, block):
    task, mind, last = block.task, block.mind, block.observation
    if world.protocol.structure == "graph":
        for item in labels["Needs"].split("; "):
            tool, _, needed = item.partition(": ")
            task.needs[0, int(tool)] = sum(1 << int(one) for one in needed.split(",") if one != "-")
    called = (last.fresh == 1) & (last.action >= 0)
    mind.calls[called] = -1  # the agent counts this step's call, and its failure, itself
    mind.failed_at[:] = -mind_of_tools.FAILURE_MEMORY
    for tool, calls in _pairs(labels.get("Failed calls", prompts.NOTHING)):
        mind.failed_at[0, tool] = -calls


def _read_rooms(world, labels, block):
    task = block.task
    task.key_of_door[:] = NONE
    task.door_of_key[:] = world.rules.doors  # what opens nothing opens a door that is not there
    for key, door in re.findall(r"key (\d+) opens door (\d+)", labels["Keys"]):
        task.door_of_key[0, int(key)], task.key_of_door[0, int(door)] = int(door), int(key)
    _read_places(labels, block.mind)


def _read_graph(world, labels, block):
    task = block.task
    task.target[:] = int(labels["Target"])
    task.key_of_edge[:] = NONE
    task.edge_of_key[:] = world.rules.edges  # an edge that is not there, until the key's own is met
    ways = [[] for _ in range(world.rules.nodes)]
    task.edges[:] = block.fields - 1 - world.rules.keys
    met = 0
    for item in _items(labels["Edges" if world.protocol.structure == "graph" else "Edges met"]):
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
        for number, (other, edge) in enumerate(found):  # ascending, as edges are numbered by their ends
            task.neighbour[0, node, number], task.edge[0, node, number] = other, edge


def _read_places(labels, mind):
    mind.last_seen[:] = mind_of_graphs.NEVER
    for place, step in _pairs(labels["Last been there"]):
        mind.last_seen[0, place] = step


_READERS = {tooldag.NAME: _read_tools, objectstate.NAME: _read_rooms, graphnav.NAME: _read_graph}
