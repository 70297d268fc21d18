"""What `run` can measure of an episode beside its scores: a registry that others fill."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from envprobe_core.conditions import Condition, Seeds
from envprobe_core.engine.batch import Columns, Trajectory


@dataclass
class Recorded:
    """Recorded episodes of one condition, as a fact is given them; `seen` is for what facts share."""

    condition: Condition
    seeds: Seeds  # [row]
    trajectory: Trajectory
    seen: dict[str, Any] = field(default_factory=dict)


FACTS: dict[str, Callable[[Recorded], Columns]] = {}
"""What measures a column that `run` can add, by the column's name."""
