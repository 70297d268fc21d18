"""A world small enough to enumerate: ToolDAGWorld with three tools, and a perfect agent.

It is the engine's own world, only smaller. Chance enters through mutation alone: after each step every
loaded tool but the target may unload. So an episode is determined by the policy and by a *script*, what
unloads at each tick, and all episodes are enumerated by running the engine on all scripts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from envprobe_core.agents.profiles import PROFILES
from envprobe_core.cells import Cell
from envprobe_core.engine import loop
from envprobe_core.engine.compiling import entry
from envprobe_core.engine.running import Episodes
from envprobe_core.errors import InputError
from envprobe_core.policies import THRESHOLD, Policy
from envprobe_core.protocols import PAPER, Protocol
from envprobe_core.regimes import HIGH, LOW, MEDIUM, Regime
from envprobe_core.worlds.base import Ints, World
from envprobe_core.worlds.tooldag import describe

SMALL_TOOLS, MUTABLE = 3, 2  # the target, the last tool, never unloads
LOSSES = range(1 << MUTABLE)  # which tools a tick may unload, as sets
LONGEST = 10  # steps
AGENT = PROFILES["perfect"]
MUTATIONS = (LOW, MEDIUM, HIGH)
SOLVED = (
    "the optimum is computed where answers are delivered, the world runs on during a probe, sight is local, "
    "the task graph is known and A_H is terminal"
)


@entry
def act(setting, block, fields, logs):
    """Probe a field or carry out the proposed action, [row]; the world stands still."""
    for row in range(len(block)):
        loop.act(setting, block[row], fields[row], logs[row])


@entry
def lose(setting, block, lost):
    """Unload tools, sets [row], and let the agents observe."""
    for row in range(len(block)):
        episode = block[row]
        episode.state.loaded &= ~lost[row]
        loop.observe(setting, episode, episode.acting, episode.worked)
        episode.t += 1


@dataclass(frozen=True)
class Setting:
    """One small world."""

    density: int = 0  # 0: a chain, every tool needs the one before it; 1: a tool needs both earlier ones
    mutation: int = 2  # the regimes' level, 0, 1 or 2, for a rate of .02, .10 or .30
    horizon: int = 8  # H
    budget: int = 2  # B
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
    def world(self) -> World:
        """Return the world."""
        return describe(self.regime, self.protocol, SMALL_TOOLS)

    @property
    def rate(self) -> float:
        """Return the chance that a loaded tool unloads in one step, to the last bit of the engine."""
        return int(self.world.rules.mutation) / 2.0**32

    def episodes(self, policy: Policy, seeds: Ints, threshold: float = THRESHOLD) -> Episodes:
        """Begin episodes of the perfect agent, a row a seed; with three tools all have the same task.

        Raises:
            InputError: if the policy repeats another one's probes.
        """
        if policy.replays is not None:
            raise InputError(
                f"policy {policy.name} replays another's probes; the small world runs none that does"
            )
        own = threshold if policy.has_threshold else None
        cell = Cell("tooldag", policy, self.regime, self.protocol, AGENT, self.budget, own)
        return Episodes(cell, seeds, world=self.world, scores_all=False)


def can_be_solved(protocol: Protocol) -> bool:
    """Say whether the small world's optimum is computed under a protocol."""
    needed = {
        "answer": "delivered", "clock": "runs", "rates": "mean", "instances": "ancestors", "sight": "local",
        "structure": "graph", "end": "horizon", "accuracy": "terminal", "pairing": "same-step",
    }  # fmt: skip
    return all(getattr(protocol, switch) == value for switch, value in needed.items())
