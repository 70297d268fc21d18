"""Probe sequences that are known beforehand: each is numbered once and replayed once.

An episode depends on its policy through its probes alone, so a sequence of probes on a seed is an episode,
whatever policies and settings it belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.cells import Cell
from envprobe_core.engine.running import record
from envprobe_core.explorer.episodes import Episodes, Ints, Mask, join, measure
from envprobe_core.policies import Policy
from envprobe_core.policies.rules import REPLAY, Rule
from envprobe_core.protocols import Protocol
from envprobe_core.regimes import Regime
from envprobe_core.sweep import BATCH_SIZE

Rows = npt.NDArray[np.int32]
Sequences = npt.NDArray[np.int8]  # [run, step], the probed field or -1


@dataclass(frozen=True)
class Place:
    """Where a grid runs.

    Attributes:
        world, regime, protocol, profile: as of a cell.
        seeds: [seed].
        budgets: [budget], ascending.
        thresholds: [threshold], base thresholds, ascending.

    """

    world: str
    regime: Regime
    protocol: Protocol
    profile: AgentProfile
    seeds: Ints
    budgets: tuple[int, ...]
    thresholds: tuple[float, ...]

    def cell(self, policy: Policy, budget: int | None = None, threshold: float | None = None) -> Cell:
        """Return a cell of this place."""
        return Cell(self.world, policy, self.regime, self.protocol, self.profile, budget, threshold)

    def answers(self, policy: Policy) -> bool:
        """Say whether the policy's probes are answered here."""
        return policy.answered and self.protocol.answer == "delivered"


class Catalogue:
    """Numbers probe sequences in the order in which they are first met."""

    def __init__(self, horizon: int) -> None:
        """Start empty; sequences have `horizon` steps."""
        self._horizon = horizon
        self._numbers: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def find(self, answered: Mask | bool, at: Ints, probe: Sequences) -> Rows:
        """Return the number of each sequence, [run]; new ones are entered.

        Args:
            answered: [run], whether its probes are answered; means nothing where there are none.
            at: [run], position of the seed.
            probe: [run, step], the probed field or -1.
        """
        keys = np.empty((len(probe), 5 + self._horizon), dtype=np.uint8)
        keys[:, 0] = answered | ~(probe >= 0).any(axis=1)
        keys[:, 1:5] = at.astype("<u4")[:, None].view(np.uint8)
        keys[:, 5:] = probe.view(np.uint8)
        numbers = self._numbers
        listed = keys.view(f"V{keys.shape[1]}")[:, 0].tolist()
        return np.array([numbers.setdefault(key, len(numbers)) for key in listed], dtype=np.int32)

    def entries(self, start: int) -> tuple[Mask, Ints, Sequences]:
        """Return answered [run], positions of seeds [run] and probes [run, step] from a number on."""
        joined = b"".join(list(self._numbers)[start:])
        keys = np.frombuffer(joined, dtype=np.uint8).reshape(-1, 5 + self._horizon)
        at = keys[:, 1:5].copy().view("<u4")[:, 0].astype(np.int64)
        return keys[:, 0] == 1, at, keys[:, 5:].view(np.int8)


def replay(place: Place, known: Catalogue, start: int) -> Iterator[Episodes]:
    """Run the sequences of a catalogue from a number on; their episodes come in its order."""
    answered, at, probe = known.entries(start)
    order = np.lexsort((at, answered))  # rows of a block share seeds, and with them draws
    unanswered = int((~answered).sum())
    parts = []
    for group in (order[:unanswered], order[unanswered:]):
        for first in range(0, len(group), BATCH_SIZE):
            rows = group[first : first + BATCH_SIZE]
            policy = Policy("replay", "Replay", Rule(REPLAY), answered=bool(answered[rows[0]]))
            parts.append(_replay_block(place, policy, place.seeds[at[rows]], probe[rows].astype(np.int64)))
    if parts:
        yield join(parts).rows(np.argsort(order))


def _replay_block(place: Place, policy: Policy, seeds: Ints, schedule: Ints) -> Episodes:
    cell = place.cell(policy, budget=place.regime.horizon)
    return measure(record(cell, seeds, scores_all=False, schedules=schedule), cell)
