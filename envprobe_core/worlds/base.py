"""What a world is called and made of, for those who look at it from Python; and what worlds draw alike."""

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core.engine.compiling import compiled
from envprobe_core.engine.noise import numbered
from envprobe_core.engine.records import FIELDS, NONE, Flag, Int, fill, filled, has, plus
from envprobe_core.protocols import Protocol
from envprobe_core.regimes import Regime

PROCEDURAL, SPATIAL = "procedural", "spatial"
DROP_PROBABILITY = 0.4  # of a partial observation

Ints = npt.NDArray[np.int64]
Values = npt.NDArray[np.int8]
Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


class World:
    """One world, built for a regime and a protocol.

    Attributes:
        name, title, code: on the command line, as printed, and as the number that keys its random draws.
        regime, protocol: what it was built for.
        fields, actions: how many belief fields (n) and task actions there are.
        field_names, field_kinds: [field].
        action_names: [action].
        domain: [field], number of values.
        rates: [field], mutation probability of a mutable field.
        goal_fields: the fields that say whether the task is done, the one that says so for good last.
        rules: sizes (`rules.tools`, `rules.nodes`, ...), levels of draws, and switches.
        record: the rules as the engine works with them, with what all worlds have: `fields`, `domain`, ...
    """

    def __init__(
        self,
        name: str,
        title: str,
        code: int,
        regime: Regime,
        protocol: Protocol,
        *,
        fields: Iterable[tuple[str, str, int, float]],
        actions: Iterable[str],
        goal_fields: Sequence[int],
        rules: dict[str, Any],
    ) -> None:
        """Lay out a world: of each field come its name, kind, number of values and mutation probability."""
        self.name, self.title, self.code, self.regime, self.protocol = name, title, code, regime, protocol
        self.field_names, self.field_kinds, domain, rates = zip(*fields, strict=True)
        self.action_names, self.goal_fields = tuple(actions), tuple(goal_fields)
        self.fields, self.actions = len(self.field_names), len(self.action_names)
        self.domain, self.rates = np.array(domain, np.int64), np.array(rates, np.float64)
        self.rules = SimpleNamespace(code=code, **rules)
        values, goals = np.zeros(FIELDS, Int), np.zeros(FIELDS, Flag)
        values[: self.fields], goals[list(goal_fields)] = domain, 1
        sizes = {"code": code, "fields": self.fields, "actions": self.actions, "goal_field": goal_fields[-1]}
        self.record = filled(sizes | {"domain": values, "is_goal": goals} | rules)


@compiled
def lowest_draw(key, first, taken, count):
    """Return which of `count` numbers has the lowest draw, of those not taken yet; draws begin at `first`."""
    lowest, least = NONE, np.uint64(0)
    for number in range(count):
        word = numbered(key, first + number)
        if not has(taken, number) and (lowest == NONE or word < least):
            lowest, least = number, word
    return lowest


@compiled
def draw_locks(key, first, count, locks, key_of, opens):
    """Draw which of `count` doors or edges can be locked, and number their keys; return them as a set."""
    lockable = number = 0
    for _ in range(locks):
        lockable = plus(lockable, lowest_draw(key, first, lockable, count))
    fill(key_of, NONE)
    fill(opens, NONE)
    for one in range(count):
        if has(lockable, one):
            key_of[one], opens[number] = number, one
            number += 1
    return lockable


@compiled
def ratio(part, whole):
    """Divide counts; nothing out of nothing counts 1."""
    return part / whole if whole else 1.0
