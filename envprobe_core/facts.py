"""What `run` can measure of an episode beside its scores: a registry that others fill."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from envprobe_core.cells import Cell, Seeds
from envprobe_core.engine.running import Columns, Trajectory


@dataclass
class Recorded:
    """Recorded episodes of one cell, as a fact is given them; `seen` is for what facts share."""

    cell: Cell
    seeds: Seeds  # [row]
    trajectory: Trajectory
    seen: dict[str, Any] = field(default_factory=dict)


FACTS: dict[str, Callable[[Recorded], Columns]] = {}
"""What measures a column that `run` can add, by the column's name."""
