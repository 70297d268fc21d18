"""What a world is called and made of, for those who look at it from Python: names, kinds, sizes and rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core.protocols import Protocol
from envprobe_core.regimes import Regime

PROCEDURAL, SPATIAL = "procedural", "spatial"
DROP_PROBABILITY = 0.4  # of a partial observation

Ints = npt.NDArray[np.int64]
Values = npt.NDArray[np.int8]
Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class World:
    """One world, built for a regime and a protocol.

    Attributes:
        name, title: on the command line, and as printed.
        regime, protocol: what it was built for.
        rules: the numbers that the engine works with, sizes among them (`rules.tools`, `rules.nodes`, ...).
        field_names, field_kinds: [field].
        action_names: [action].
        domain: [field], number of values.
        rates: [field], mutation probability of a mutable field.
        goal_fields: the fields that say whether the task is done.
    """

    name: str
    title: str
    regime: Regime
    protocol: Protocol
    rules: Any
    field_names: tuple[str, ...]
    field_kinds: tuple[str, ...]
    action_names: tuple[str, ...]
    domain: npt.NDArray[np.int64]
    rates: npt.NDArray[np.float64]
    goal_fields: tuple[int, ...]

    @property
    def fields(self) -> int:
        """Return the number of belief fields n."""
        return len(self.field_names)

    @property
    def actions(self) -> int:
        """Return the number of task actions."""
        return len(self.action_names)
