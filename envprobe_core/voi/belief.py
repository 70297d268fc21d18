"""The change-point belief: for every field the last value with evidence, and the chance that it still holds.

A field changes at an unknown moment, at a rate that fields of one kind share and that is learned from the
episode itself: how often a value that was evident before had changed when it was seen again.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from envprobe_core.voi.knowledge import Knowledge
from envprobe_core.worlds.base import DROP_PROBABILITY, UNKNOWN, Floats, Ints, Mask, Values, World

PRIOR_CHANGES, PRIOR_STEPS = 0.5, 5.0  # as if half a change had been seen in five steps, before any is


class ChangePointBelief:
    """What a policy believes of every field of its rows, apart from what the agent's table says.

    Attributes:
        value: [row, field], the last evident value, UNKNOWN where there never was one.
        chance: [row, field], the chance that it still holds.
        since: [row, field], steps since the evidence.
        watched: [row, field], whether a change since the evidence would still be counted.
        changes, steps: [row, kind], changes seen and steps watched, prior included; h is their ratio.
    """

    def __init__(self, world: World, knowledge: Knowledge, rows: int) -> None:
        """Start with nothing but what can never change."""
        self.knowledge = knowledge
        kinds = len(knowledge.spans)
        fixed = knowledge.fixed()
        self.value = np.where(fixed, 0, UNKNOWN).astype(np.int8)
        self.chance = fixed.astype(np.float64)
        self.since = np.zeros(fixed.shape, dtype=np.int64)
        self.watched = np.zeros(fixed.shape, dtype=bool)
        self.changes = np.full((rows, kinds), PRIOR_CHANGES)
        self.steps = np.full((rows, kinds), PRIOR_STEPS)
        self._domain = world.domain
        self._overlooked = DROP_PROBABILITY if world.drops else 0.0

    def take(self, rows: Ints) -> None:
        """Keep only some rows."""
        for name in ("value", "chance", "since", "watched", "changes", "steps"):
            setattr(self, name, getattr(self, name)[rows])

    def hazard(self) -> Floats:
        """Return each field's chance to change in one step, [row, field]; 0 where it cannot by itself."""
        rate = self.changes / self.steps
        hazard = np.zeros(self.value.shape)
        for kind, (span, loose) in enumerate(zip(self.knowledge.spans, self._loose(), strict=True)):
            hazard[:, span] = np.where(loose, rate[:, kind : kind + 1], 0.0)
        return hazard

    def step(self, moving: Mask) -> None:
        """Let the world move once in some rows, [row]: a change leads away, or by luck back."""
        hazard = np.where(moving[:, None], self.hazard(), 0.0)
        returns = (1.0 - self.chance) * (hazard * self.knowledge.landing)
        self.chance = self.chance * (1.0 - hazard) + returns
        self.chance[self.value == UNKNOWN] = 0.0
        self.since += moving[:, None]

    def learn(self, known: Mask, value: Values, touched: Mask) -> None:
        """Take evidence in, and count changes for the hazard.

        Args:
            known: [row, field], which fields the evidence shows.
            value: [row, field], their values.
            touched: [row, field], which ones the agent's own action may have changed: they count for nothing.
        """
        counted = known & (self.value != UNKNOWN) & ~touched & self.watched & (self.since > 0)
        changed = counted & (value != self.value)
        for kind, (span, loose) in enumerate(zip(self.knowledge.spans, self._loose(), strict=True)):
            seen, gone, since = counted[:, span] & loose, changed[:, span] & loose, self.since[:, span]
            wait = self._wait(kind)
            # what comes back when it changes twice looks unchanged: no longer wait than the mean says more
            stayed = np.minimum(since, wait) if self.knowledge.landing[span.start] == 1.0 else since
            steps = np.where(gone, np.minimum((since + 1) * 0.5, wait), stayed)
            self._count(kind, gone.astype(np.float64), np.where(seen, steps, 0.0))
        np.copyto(self.value, value, where=known)
        self.chance[known], self.since[known] = 1.0, 0
        self.watched |= known

    def miss(self, missed: Mask) -> None:
        """Doubt, by Bayes' rule, what should have been seen and was not, [row, field]."""
        if not missed.any():
            return
        overlooked = self.chance * self._overlooked
        total = np.where(missed, overlooked + (1.0 - self.chance), 1.0)
        doubted = np.where(total > 0.0, overlooked / np.where(total > 0.0, total, 1.0), 0.0)
        gone = np.where(missed & self.watched, 1.0 - doubted, 0.0)
        for kind, span in enumerate(self.knowledge.spans):
            steps = np.minimum((self.since[:, span] + 1) * 0.5, self._wait(kind))
            self._count(kind, gone[:, span], gone[:, span] * steps)
        np.copyto(self.chance, doubted, where=missed)
        self.watched &= ~missed

    def _loose(self) -> Iterator[Mask]:
        """Say for each kind which of its fields could change by themselves, [row, field of the kind]."""
        loose = self.knowledge.loose(self.value)
        return (loose[:, span] for span in self.knowledge.spans)

    def _wait(self, kind: int) -> Floats:
        """Return the mean number of steps between changes, by what is known so far, [row, 1]."""
        return (self.steps[:, kind] / self.changes[:, kind])[:, None]

    def _count(self, kind: int, changes: Floats, steps: Floats) -> None:
        """Add the changes seen and the steps watched to those of a kind, field by field."""
        self.changes[:, kind] += np.add.accumulate(changes, axis=1)[:, -1]
        self.steps[:, kind] += np.add.accumulate(steps, axis=1)[:, -1]

    def right(self, value: Values) -> Floats:
        """Return the chance that the agent's beliefs are right, [row, field].

        Args:
            value: [row, field], the agent's table.
        """
        other = (1.0 - self.chance) / (self._domain - 1)
        informed = np.where(value == self.value, self.chance, other)
        right = np.where(self.value == UNKNOWN, 1.0 / self._domain, informed)
        return np.where(value == UNKNOWN, 0.0, right)
