"""The belief table: for each field a value, a reported staleness and a reported confidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from envprobe_core.worlds.base import UNKNOWN, Ints, Mask, Values

STALENESS_LIMIT = 99
UNKNOWN_STALENESS = 10
CERTAIN = 100


@dataclass
class BeliefTable:
    """Beliefs of a block of episodes.

    Attributes:
        value: [row, field] int8; UNKNOWN counts as wrong.
        staleness: [row, field] uint8, reported whole steps, 0..99.
        confidence: [row, field] uint8, reported whole percents, 0..100.
    """

    value: Values
    staleness: npt.NDArray[np.uint8]
    confidence: npt.NDArray[np.uint8]

    @classmethod
    def known(cls, value: Values, known: Mask) -> BeliefTable:
        """Start a table from the values that are known at step 0; the rest is unknown and stale."""
        known = np.broadcast_to(known, value.shape)
        return cls(
            np.where(known, value, np.int8(UNKNOWN)),
            np.where(known, np.uint8(0), np.uint8(UNKNOWN_STALENESS)),
            np.where(known, np.uint8(CERTAIN), np.uint8(0)),
        )

    def reported(self) -> BeliefTable:
        """Return what an agent reports of its own accord: of unknown fields neither age nor doubt."""
        known = self.value != UNKNOWN
        return BeliefTable(
            self.value,
            self.staleness * known,
            np.where(known, self.confidence, np.uint8(CERTAIN)),
        )

    def age(self) -> None:
        """Let one step pass: every reported staleness grows by one."""
        self.staleness += self.staleness < STALENESS_LIMIT

    def put(self, where: Ints, value: Values, staleness: Ints, confidence: Ints) -> None:
        """Write entries by their position row * fields + field."""
        self.value.reshape(-1)[where] = value
        self.staleness.reshape(-1)[where] = staleness
        self.confidence.reshape(-1)[where] = confidence

    def repair(self, rows: Ints, field: Ints, answer: Values) -> None:
        """Write a probe's answers: b(t+1) := g(t), staleness 0, full confidence (Definition 3.1)."""
        self.value[rows, field] = answer
        self.staleness[rows, field] = 0
        self.confidence[rows, field] = CERTAIN
