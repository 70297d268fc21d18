"""A block: episodes of one world, regime and protocol that advance together, and whose policies they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from envprobe_core.policies import Policy
from envprobe_core.worlds.base import Floats, Ints, Mask, World


@dataclass(frozen=True)
class Arm:
    """A run of neighbouring rows of a block that share their policy."""

    policy: Policy
    rows: slice


@dataclass(frozen=True)
class Block:
    """A block of episodes of one world, regime and protocol.

    Attributes:
        world: the world, built for its regime and protocol.
        seeds: [row].
        arms: the policies and their rows, in order, covering all rows.
        budget: [row], at least 0.
        threshold: [row], already scaled.
        schedule: [row, step], for replayed policies the field to probe or -1; None if there are none.
        consults: names of policies whose decisions the agent is asked for instead of their rules.
    """

    world: World
    seeds: npt.NDArray[np.int64]
    arms: Sequence[Arm]
    budget: Ints
    threshold: Floats
    schedule: Ints | None = None
    consults: tuple[str, ...] = ()

    def by_arm(self, value: Callable[[Policy], bool]) -> Mask:
        """Spread a property of the policies over the rows, [row]."""
        spread = np.zeros(len(self.seeds), dtype=bool)
        for arm in self.arms:
            spread[arm.rows] = value(arm.policy)
        return spread
