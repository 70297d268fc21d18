"""A world small enough to enumerate: ToolDAGWorld with three tools, and a perfect agent.

It is the engine's own world, only smaller. Chance enters through mutation alone: after each step every
loaded tool but the target may unload. So an episode is determined by the policy and by a *script*, what
unloads at each tick, and all episodes are enumerated by running the engine on all scripts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from envprobe_core import bits
from envprobe_core.errors import InputError
from envprobe_core.noise import Words
from envprobe_core.profiles import PROFILES
from envprobe_core.protocols import PAPER, Protocol
from envprobe_core.regimes import HIGH, LOW, MEDIUM, Regime
from envprobe_core.worlds.base import Mask
from envprobe_core.worlds.tooldag import ToolDAGWorld, ToolInstance, ToolState

SMALL_TOOLS, MUTABLE = 3, 2  # the target, the last tool, never unloads
LONGEST = 10  # steps
AGENT = PROFILES["perfect"]
MUTATIONS = (LOW, MEDIUM, HIGH)
SOLVED = (
    "the optimum is computed where answers are delivered, the world runs on during a probe, sight is local, "
    "the task graph is known and A_H is terminal"
)


class FewTools(ToolDAGWorld):
    """ToolDAGWorld with three tools at any complexity."""

    sizes = (SMALL_TOOLS,) * 3


def forced(lost: Mask) -> Words:
    """Return words that let exactly these mutable fields mutate, [row, exposed field]."""
    return np.where(lost, np.uint64(0), ~np.uint64(0))


class ScriptedTools(FewTools):
    """The same world, mutating by a script instead of by the hash, one call a tick.

    Attributes:
        at_risk: [row, tick, tool], which tools could unload when each tick passed.
    """

    def __init__(self, regime: Regime, protocol: Protocol, script: Mask) -> None:
        """Take what is lost, [row, tick, tool]; ticks past the script's end lose nothing."""
        super().__init__(regime, protocol)
        self._script, self._tick = script, 0
        self.at_risk = np.zeros((len(script), regime.horizon, SMALL_TOOLS), dtype=bool)

    def mutate(self, instance: ToolInstance, state: ToolState, draws: Words, moving: Mask) -> ToolState:
        """Unload what the script says."""
        tick = self._tick
        self._tick += 1
        self.at_risk[:, tick, :MUTABLE] = bits.unpack(state.loaded, SMALL_TOOLS)[:, :MUTABLE]
        lost = np.zeros(self.at_risk[:, tick].shape, dtype=bool)
        if tick < self._script.shape[1]:
            lost = self._script[:, tick]
        return super().mutate(instance, state, forced(lost), moving)


@dataclass(frozen=True)
class Setting:
    """One small world.

    Attributes:
        density: 0: a chain, every tool needs the one before it; 1: a tool needs both earlier ones.
        mutation: the regimes' level, 0, 1 or 2, for a rate of .02, .10 or .30.
        horizon: H.
        budget: B.
        protocol: the protocol in force.
    """

    density: int = 0
    mutation: int = 2
    horizon: int = 8
    budget: int = 2
    protocol: Protocol = PAPER

    def __post_init__(self) -> None:
        """Refuse what cannot be enumerated, or is no question."""
        if not 1 <= self.horizon <= LONGEST:
            raise InputError(f"horizon {self.horizon} of a small world is not in 1..{LONGEST}")
        if not 0 <= self.budget <= self.horizon:
            raise InputError(f"budget {self.budget} is not in 0..{self.horizon}")
        if not can_be_solved(self.protocol):
            raise InputError(f"protocol {self.protocol.name!r} cannot be solved exactly; {SOLVED}")

    @property
    def regime(self) -> Regime:
        """Return the world's regime: clean observations, the sizes of the small world."""
        return Regime("small", LOW, self.density, self.mutation, LOW, self.horizon, (0, 1), "three tools")

    @cached_property
    def world(self) -> FewTools:
        """Return the world."""
        return FewTools(self.regime, self.protocol)

    @property
    def rate(self) -> float:
        """Return the chance that a loaded tool unloads in one step, to the last bit of the engine."""
        return int(self.world.levels[0]) / 2.0**32

    def instance(self, rows: int) -> ToolInstance:
        """Return the instance, the same in all rows: with three tools there is but one."""
        return self.world.instances(np.zeros(rows, dtype=np.int64))

    def agent_arguments(self, static: Any, rows: int) -> tuple[Any, ...]:
        """Return what `SimulatedAgent` is made of; a perfect agent draws nothing that matters."""
        nobody = np.zeros(rows, dtype=np.int64)
        return self.world, static, nobody, [AGENT], nobody


def can_be_solved(protocol: Protocol) -> bool:
    """Say whether the small world's optimum is computed under a protocol."""
    needed = {
        "answer": "delivered",
        "clock": "runs",
        "rates": "mean",
        "instances": "ancestors",
        "sight": "local",
        "structure": "graph",
        "end": "horizon",
        "accuracy": "terminal",
        "pairing": "same-step",
    }
    return all(getattr(protocol, switch) == value for switch, value in needed.items())
