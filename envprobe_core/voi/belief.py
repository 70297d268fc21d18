"""The change-point belief: for every field the last value with evidence, and the chance that it still holds.

A field changes at an unknown moment, at a rate that fields of one kind share and that is learned from the
episode itself: how often a value that was evident before had changed when it was seen again.
"""

from __future__ import annotations

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
        kinds = int(knowledge.kind.max()) + 1
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
        rate = (self.changes / self.steps)[:, self.knowledge.kind]
        return np.where(self.knowledge.loose(self.value), rate, 0.0)

    def step(self, moving: Mask) -> None:
        """Let the world move once in some rows, [row]: a change leads away, or by luck back."""
        hazard = np.where(moving[:, None], self.hazard(), 0.0)
        stays = self.chance * (1.0 - hazard)
        returns = (1.0 - self.chance) * (hazard * self.knowledge.landing)
        self.chance = np.where(self.value == UNKNOWN, 0.0, stays + returns)
        self.since += moving[:, None]

    def learn(self, known: Mask, value: Values, touched: Mask) -> None:
        """Take evidence in, and count changes for the hazard.

        Args:
            known: [row, field], which fields the evidence shows.
            value: [row, field], their values.
            touched: [row, field], which ones the agent's own action may have changed: they count for nothing.
        """
        counted = known & (self.value != UNKNOWN) & self.knowledge.loose(self.value) & ~touched
        counted &= self.watched & (self.since > 0)
        changed = counted & (value != self.value)
        # what comes back when it changes twice looks unchanged: no longer wait than the mean says more
        wait = self._wait()
        stayed = np.where(self.knowledge.landing == 1.0, np.minimum(self.since, wait), self.since)
        steps = np.where(changed, np.minimum((self.since + 1) * 0.5, wait), stayed)
        self._count(changed.astype(np.float64), np.where(counted, steps, 0.0))
        self.value = np.where(known, value, self.value)
        self.chance = np.where(known, 1.0, self.chance)
        self.since = np.where(known, 0, self.since)
        self.watched = known | self.watched

    def miss(self, missed: Mask) -> None:
        """Doubt, by Bayes' rule, what should have been seen and was not, [row, field]."""
        overlooked = self.chance * self._overlooked
        total = np.where(missed, overlooked + (1.0 - self.chance), 1.0)
        doubted = np.where(total > 0.0, overlooked / np.where(total > 0.0, total, 1.0), 0.0)
        gone = np.where(missed & self.watched, 1.0 - doubted, 0.0)
        self._count(gone, gone * np.minimum((self.since + 1) * 0.5, self._wait()))
        self.chance = np.where(missed, doubted, self.chance)
        self.watched = self.watched & ~missed

    def _wait(self) -> Floats:
        """Return the mean number of steps between changes, by what is known so far, [row, field]."""
        return (self.steps / self.changes)[:, self.knowledge.kind]

    def _count(self, changes: Floats, steps: Floats) -> None:
        """Add the changes seen and the steps watched to those of each kind, field by field."""
        for kind in range(self.changes.shape[1]):
            mine = self.knowledge.kind == kind
            for seen, total in ((changes, self.changes), (steps, self.steps)):
                total[:, kind] += np.add.accumulate(seen[:, mine], axis=1)[:, -1]

    def right(self, value: Values) -> Floats:
        """Return the chance that the agent's beliefs are right, [row, field].

        Args:
            value: [row, field], the agent's table.
        """
        other = (1.0 - self.chance) / (self._domain - 1)
        informed = np.where(value == self.value, self.chance, other)
        right = np.where(self.value == UNKNOWN, 1.0 / self._domain, informed)
        return np.where(value == UNKNOWN, 0.0, right)
