"""What a world is called and made of, for those who look at it from Python; and what worlds draw alike."""

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core.compiled.noise import level32, numbered
from envprobe_core.compiled.numba_support import inline
from envprobe_core.compiled.records import FIELDS, NONE, Flag, Int, fill, has_bit, record_from, with_bit
from envprobe_core.errors import InputError
from envprobe_core.protocols import Protocol, numbered_switch
from envprobe_core.regimes import Regime

PROCEDURAL, SPATIAL = "procedural", "spatial"
SWITCHES = ("instances", "sight", "structure")  # of the protocol, that act in every world
DROP_PROBABILITY = 0.4  # of a partial observation
EDITIONS: dict[str, str] = {}
"""What tells two texts of a world from outside apart, by its name; the paper's have none."""

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
        rules: its own sizes (`tools`, `nodes`, ...), and the protocol's `SWITCHES`.
        record: the rules as the engine works with them, with what all worlds have: `fields`, `domain`, ...
    """

    def __init__(
        self,
        identity: tuple[str, str, int],
        regime: Regime,
        protocol: Protocol,
        rates: dict[str, tuple[float, float, float]],
        fields: Iterable[tuple[str, str, int, bool]],
        actions: Iterable[str],
        goal_fields: Sequence[int],
        rules: dict[str, Any],
    ) -> None:
        """Lay out a world: `identity` is its name, title and code.

        The rates are by the protocol's table and the regime's level. Of each field come name, kind, number of
        values, and whether it mutates by itself. The rules are the world's own.

        Raises:
            InputError: if there are too many fields, or no rates of the protocol's table.
        """
        (self.name, self.title, self.code), self.regime, self.protocol = identity, regime, protocol
        self.field_names, self.field_kinds, domain, mutable = zip(*fields, strict=True)
        self.action_names, self.goal_fields = tuple(actions), tuple(goal_fields)
        self.fields, self.actions = len(self.field_names), len(self.action_names)
        if self.fields > FIELDS:
            raise InputError(f"world {self.name!r} has {self.fields} fields; accepted are up to {FIELDS}")
        if protocol.rates not in rates:
            raise InputError(f"world {self.name!r} has no rates of the table {protocol.rates!r}: {[*rates]}")
        rate = rates[protocol.rates][regime.mutation]
        self.domain, self.rates = np.array(domain, np.int64), np.where(mutable, rate, 0.0)
        rules |= {
            "mutation": level32(rate),  # of a mutable field, a tick
            "drop": level32(DROP_PROBABILITY if regime.observation == "partial" else 0.0),
            "rate": float(self.rates.max()),  # the same as a share, for a policy that is told
            "distracts": int(regime.observation == "distractor"),  # it shows what does not exist
        } | {switch: numbered_switch(protocol, switch) for switch in SWITCHES}
        self.rules = SimpleNamespace(code=self.code, **rules)
        values, goals = np.zeros(FIELDS, Int), np.zeros(FIELDS, Flag)
        values[: self.fields], goals[list(goal_fields)] = domain, 1
        sizes = {"code": self.code, "fields": self.fields, "actions": self.actions}
        goal = {"goal_field": goal_fields[-1], "is_goal": goals}
        # no two worlds' records are of one kind (`numba_support.ByWorld`), nor two editions of one
        kind = {f"is_{self.name}{EDITIONS.get(self.name, '')}": 1}
        self.record = record_from(sizes | goal | {"domain": values} | kind | rules)


@inline
def lowest_draw(key, first, taken, count):
    """Which of `count` numbers has the lowest draw, of those not taken yet; draws begin at `first`."""
    lowest, least = NONE, np.uint64(0)
    for number in range(count):
        word = numbered(key, first + number)
        if not has_bit(taken, number) and (lowest == NONE or word < least):
            lowest, least = number, word
    return lowest


@inline
def draw_locks(key, first, count, locks, key_of, opens):
    """Draw which of `count` doors or edges can be locked, and number their keys; return them as a set."""
    lockable = number = 0
    for _ in range(locks):
        lockable = with_bit(lockable, lowest_draw(key, first, lockable, count))
    fill(key_of, NONE)
    fill(opens, NONE)
    for lock in range(count):
        if has_bit(lockable, lock):
            key_of[lock], opens[number] = number, lock
            number += 1
    return lockable


@inline
def ratio(part, whole):
    """Divide counts; nothing out of nothing counts 1."""
    return part / whole if whole else 1.0
