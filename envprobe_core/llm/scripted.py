"""A stateless program that answers as a language model would be asked to: the simulated agent, by text.

It reads a request's messages and seed and nothing else, rebuilds the one-row situation they describe, and
lets the simulated agent of that seed answer it; a judge's case it rules on as the embedded judge does.
So a run through it, in process or behind the scripted server, must equal the simulated run episode for
episode: whatever a prompt left out, or an answer could not say, would show.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from envprobe_core.agents.base import RISK_MEDIUM, Reply
from envprobe_core.agents.simulated import SimulatedAgent
from envprobe_core.belief import BeliefTable
from envprobe_core.errors import InputError
from envprobe_core.llm.answers import Update, Vocabulary, write_update, write_verdict
from envprobe_core.llm.asking import Answered, ChatRequest, Usage
from envprobe_core.llm.judging import embedded_verdict
from envprobe_core.llm.prompts import JUDGE_TITLE, headline
from envprobe_core.llm.situation_reading import Situation, read_situation
from envprobe_core.llm.situations import INVALID
from envprobe_core.profiles import TYPICAL, AgentProfile
from envprobe_core.protocols import Protocol, switch_values
from envprobe_core.regimes import Regime
from envprobe_core.worlds import WORLDS, World
from envprobe_core.worlds.base import UNKNOWN, Floats, Mask

FINGERPRINT = "scripted-1"  # its answers carry it wherever they go: no language model gave them
LONGEST = 40  # more steps than any horizon has
CHARACTERS_A_TOKEN = 4  # a rough count, for the usage it reports


class Scripted:
    """Answers in this process; remembers nothing between two requests."""

    def __init__(self, profile: AgentProfile = TYPICAL) -> None:
        """Take the profile whose errors it makes."""
        self.profile = profile

    async def ask(self, request: ChatRequest, identity: str) -> Answered:
        """Answer at once."""
        text = answer(request, self.profile)
        return Answered(text, usage=rough_usage(request, text))


def answer(request: ChatRequest, profile: AgentProfile = TYPICAL) -> str:
    """Answer a request as the simulated agent of its seed, or the embedded judge, would.

    Args:
        request: the body of a chat completion that `prompts` made.
        profile: the agent's errors.

    Raises:
        InputError: if the request is not one of ours.
    """
    system, user = (_content(request, role) for role in ("system", "user"))
    if system.startswith(JUDGE_TITLE):
        return write_verdict(embedded_verdict(user))
    world = world_of(system.partition("\n")[0])
    try:
        situation = read_situation(user, world)
    except (KeyError, ValueError, IndexError) as error:
        raise InputError(f"the user message is not a situation of this program ({error!r})") from None
    return write_update(simulated_update(situation, world, int(request["seed"]), profile), Vocabulary(world))


def _content(request: ChatRequest, role: str) -> str:
    for message in request["messages"]:
        if message["role"] == role:
            return message["content"]
    raise InputError(f"the request has no {role} message")


def rough_usage(request: ChatRequest, text: str) -> Usage:
    """Count tokens roughly: four characters each."""
    asked = sum(len(message["content"]) for message in request["messages"])
    return Usage(-(-asked // CHARACTERS_A_TOKEN), -(-len(text) // CHARACTERS_A_TOKEN))


@lru_cache(maxsize=64)
def world_of(line: str) -> World:
    """Rebuild the world of a system message from its first line.

    Raises:
        InputError: if no world has that line.
    """
    title, _, _ = line.partition(".")
    for world in _worlds():
        if headline(title, world) == line:
            return world
    raise InputError(f"the system message does not begin as one of this program's: {ascii(line)[:120]}")


@lru_cache(maxsize=1)
def _worlds() -> list[World]:
    """Build every world an agent can tell apart: sizes, and what is known and seen of them."""
    switches = [
        (structure, sight) for structure in switch_values("structure") for sight in switch_values("sight")
    ]
    return [
        kind(
            Regime("asked", complexity, density, 0, 0, LONGEST, (0, 1), "as asked"),
            Protocol("asked", structure=structure, sight=sight),
        )
        for kind in WORLDS.values()
        for complexity in range(3)
        for density in range(3)
        for structure, sight in switches
    ]


def simulated_update(situation: Situation, world: World, seed: int, profile: AgentProfile) -> Update:
    """Let the simulated agent answer a situation, and write down what it changed."""
    request = situation.request
    agent = SimulatedAgent(world, situation.static, [seed], [profile], np.zeros(1, dtype=np.int64))
    agent.mind = situation.mind
    agent.resume(request.step, (situation.last_worked == INVALID).astype(np.int8) * np.int8(RISK_MEDIUM))
    fade = profile.fade if request.step > 0 else 0
    before = faded(request.table, fade, int(request.told[0]))
    reply = agent.answer(request)
    after = request.table
    changed = np.flatnonzero(
        (after.value != before.value)
        | (after.staleness != before.staleness)
        | (after.confidence != before.confidence)
    )
    columns = (changed, after.value[0, changed], after.staleness[0, changed], after.confidence[0, changed])
    entries = tuple(zip(*(column.tolist() for column in columns), strict=True))
    reasons = _reasons(reply, world, situation)
    return Update(entries, fade, int(reply.action[0]), int(reply.risk[0]), reasons)


def faded(table: BeliefTable, fade: int, told: int) -> BeliefTable:
    """Return a copy of a one-row table whose confidence has faded, but for the field just told."""
    confidence = table.confidence - np.minimum(table.confidence, np.uint8(fade))
    if told >= 0:
        confidence[0, told] = table.confidence[0, told]
    return BeliefTable(table.value.copy(), table.staleness.copy(), confidence)


def _reasons(reply: Reply, world: World, situation: Situation) -> tuple[tuple[int, int, int, int], ...]:
    """Turn the agent's own c into reasons; where the graph gives c, name what the action uses."""
    known: Mask = situation.request.table.value[0] != UNKNOWN
    if reply.criticality is None:
        place = situation.request.observation.place
        used: Floats = world.used_fields(situation.static, place, reply.action)[0] * 1.0
    else:
        used = reply.criticality[0]
    return tuple(
        (field, int(2 * used[field]), int(used[field] == 1.0), int(used[field] == 1.0))
        for field in np.flatnonzero(used * known).tolist()
    )
