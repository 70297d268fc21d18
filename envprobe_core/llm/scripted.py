"""A stateless program that answers as a language model would be asked to: the simulated agent, by text.

It reads a request's messages and seed and nothing else, rebuilds the episode that they describe, and
lets the simulated agent of that seed answer it; a judge's case it rules on as the embedded judge does.
So a run through it, in process or behind the scripted server, must equal the simulated run episode for
episode: whatever a prompt left out, or an answer could not say, would show.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from envprobe_core.agents.profiles import TYPICAL, AgentProfile
from envprobe_core.agents.simulated import RISK_LOW, RISK_MEDIUM
from envprobe_core.cells import Cell
from envprobe_core.engine.compiling import announced
from envprobe_core.engine.loop import PROPOSE
from envprobe_core.engine.running import take
from envprobe_core.engine.setting import setting_of
from envprobe_core.errors import InputError
from envprobe_core.llm.answers import (
    NO_UPDATE,
    Update,
    Vocabulary,
    apply_updates,
    write_update,
    write_verdict,
)
from envprobe_core.llm.asking import Answered, ChatRequest, Usage
from envprobe_core.llm.judging import embedded_verdict
from envprobe_core.llm.notes import take_over
from envprobe_core.llm.prompts import JUDGE_TITLE, headline
from envprobe_core.llm.situation_reading import Situation, read_situation
from envprobe_core.llm.situations import INVALID
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import Protocol, switch_values
from envprobe_core.regimes import OBSERVATIONS, Regime
from envprobe_core.worlds import WORLDS, World, make_world

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
    """Build every world an agent can tell apart, and, where it cannot, those with the most locks first."""
    switches = [
        (structure, sight) for structure in switch_values("structure") for sight in switch_values("sight")
    ]
    return [
        make_world(
            name,
            Regime("asked", complexity, density, 0, 0, LONGEST, (0, 1), "as asked"),
            Protocol("asked", structure=structure, sight=sight),
        )
        for name in WORLDS
        for complexity in range(3)
        for density in (2, 1, 0)
        for structure, sight in switches
    ]


def simulated_update(situation: Situation, world: World, seed: int, profile: AgentProfile) -> Update:
    """Let the simulated agent answer a situation, and write down what it changed."""
    block = situation.block
    fade = profile.fade if block.t[0] > 0 else 0
    before = block.table.copy()
    apply_updates(before, np.array([0]), [replace(NO_UPDATE, fade=fade)], block.told)
    setting = _setting(world, profile, situation.distracted)
    with announced(world.title):
        take_over(setting, block, np.array([seed]))
        block.risk[:] = np.where(situation.last_worked == INVALID, RISK_MEDIUM, RISK_LOW)
        take(PROPOSE, setting, block)
    entries = (
        (field, *now)
        for field, (now, was) in enumerate(zip(_rows(world, block.table), _rows(world, before), strict=True))
        if now != was
    )
    return Update(tuple(entries), fade, int(block.action[0]), int(block.risk[0]), _reasons(block, world))


@lru_cache(maxsize=256)
def _setting(world: World, profile: AgentProfile, distracted: bool) -> Any:
    """Return the setting of an agent that reports what it uses, asked for or not."""
    regime = replace(world.regime, noise=OBSERVATIONS.index("distractor") if distracted else 0)
    protocol = replace(world.protocol, structure="reported")
    return setting_of(Cell(world.name, POLICIES["no-probe"], regime, protocol, profile), world=world)


def _rows(world: World, table: Any) -> Iterator[tuple[int, int, int]]:
    """Go through the entries of a one-row table."""
    columns = (table[name][0, : world.fields].tolist() for name in ("value", "staleness", "confidence"))
    return zip(*columns, strict=True)


def _reasons(block: Any, world: World) -> tuple[tuple[int, int, int, int], ...]:
    """Turn the agent's own c into reasons; where the graph gives c, name what the action uses."""
    own = block.sight.c if world.protocol.structure == "reported" else block.used
    return tuple(
        (field, int(2 * c), int(c == 1), int(c == 1))
        for field, c in enumerate(own[0, : world.fields].tolist())
        if c
    )
