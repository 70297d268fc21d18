"""Gold that lies: what observations and answers show stays true, every other gold value is wrong."""

from collections.abc import Iterator

import numpy as np
import pytest

from envprobe_core import rollout
from envprobe_core.belief import BeliefTable
from envprobe_core.deciding import Deciders
from envprobe_core.worlds.base import World


def poison_gold(kind: type[World], monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace every gold value of a world but those that observations and answers show."""
    gold, observe = kind.gold, kind.observe
    known, ask, repair = BeliefTable.known.__func__, Deciders.decide, BeliefTable.repair
    truth: list[np.ndarray] = []
    told: list[np.ndarray] = []

    def poisoned(self: World, instance: object, state: object) -> np.ndarray:
        truth.append(gold(self, instance, state))
        return ((truth[-1] + 1) % self.domain).astype(np.int8)

    def shows(self: World, instance: object, state: object, _: np.ndarray, *rest: object) -> object:
        return observe(self, instance, state, truth[-1], *rest)

    class Table(BeliefTable):
        @classmethod
        def known(cls, value: np.ndarray, mask: np.ndarray) -> BeliefTable:
            return known(BeliefTable, truth[-1], mask)

    def decide(self: Deciders, *asked: object) -> Iterator[object]:
        probes, target, rho = yield from ask(self, *asked)
        told.append(np.take_along_axis(truth[-1], target[:, None], axis=1)[:, 0])
        return probes, target, rho

    def repaired(self: BeliefTable, rows: np.ndarray, field: np.ndarray, _: np.ndarray) -> None:
        repair(self, rows, field, told[-1][rows])

    monkeypatch.setattr(kind, "gold", poisoned)
    monkeypatch.setattr(kind, "observe", shows)
    monkeypatch.setattr(rollout, "BeliefTable", Table)
    monkeypatch.setattr(Deciders, "decide", decide)
    monkeypatch.setattr(BeliefTable, "repair", repaired)
