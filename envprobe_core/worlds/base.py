"""What every world offers: instances, dynamics, observations, weights and dependency roles.

A world is built for one regime and one set of protocol switches; all its functions work on blocks of rows
and keep no state of their own. Everything that an agent or a policy may know without looking is in the
instance's `map`; the rest of the instance, and the state, are gold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from envprobe_core import noise
from envprobe_core.noise import Stream, Words
from envprobe_core.protocols import Protocol
from envprobe_core.regimes import Regime

UNKNOWN = -1
WAIT = -1
NO_ACTION = -2
PROCEDURAL, SPATIAL = "procedural", "spatial"
DROP_PROBABILITY = 0.4

Ints = npt.NDArray[np.int64]
Values = npt.NDArray[np.int8]
Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Rows = slice | Ints


@dataclass(frozen=True)
class Observation:
    """What an agent sees after a step; values of unseen fields are UNKNOWN.

    Attributes:
        seen: [row, field], which fields are shown.
        value: [row, field], their values.
        place: [row], own room or node (0 on tools).
        action: [row], the task action this observation follows, WAIT, or NO_ACTION.
        valid: [row], whether that action was valid.
        came_from: [row], the place where it was taken.
        distractor: whether an item that does not exist is shown.
        fresh: [row], whether the world has moved since the last observation.
    """

    seen: Mask
    value: Values
    place: Ints
    action: Ints
    valid: Mask
    came_from: Ints
    distractor: bool
    fresh: Mask


class World(ABC):
    """Base of the three worlds; subclasses set the class attributes and the sizes."""

    name: ClassVar[str]
    title: ClassVar[str]
    code: ClassVar[int]
    field_kinds: tuple[str, ...]
    field_names: tuple[str, ...]
    action_names: tuple[str, ...]
    domain: Ints  # [field], number of values
    rates: Floats  # [field], mutation probability of a mutable field
    exposed: int  # only the first so many fields mutate by themselves
    goal_fields: tuple[int, ...]  # the fields that say whether the task is done

    def __init__(self, regime: Regime, protocol: Protocol) -> None:
        """Set the sizes that the regime asks for."""
        self.regime = regime
        self.protocol = protocol
        self.drops = regime.observation == "partial"

    @property
    def fields(self) -> int:
        """Return the number of belief fields n."""
        return len(self.field_names)

    @cached_property
    def levels(self) -> Words:
        """Return the mutation thresholds of the exposed fields, for a word's lower half."""
        return noise.level32(self.rates[: self.exposed])

    @property
    def actions(self) -> int:
        """Return the number of task actions."""
        return len(self.action_names)

    def draws(self, seeds: npt.ArrayLike, count: int) -> Words:
        """Draw the words an instance is made of: [row, draw]."""
        return noise.wide_words(noise.keys(seeds, self.code, Stream.INSTANCE), count)

    @abstractmethod
    def instances(self, seeds: npt.ArrayLike) -> Any:
        """Make one solvable instance a seed; its `map` is the static task graph."""

    @abstractmethod
    def start(self, instance: Any) -> Any:
        """Return the state at step 0."""

    @abstractmethod
    def gold(self, instance: Any, state: Any) -> Values:
        """Return the true value of every field, [row, field]."""

    @abstractmethod
    def place(self, state: Any) -> Ints:
        """Return where the agent really is, [row]; always seen."""

    @abstractmethod
    def succeeded(self, instance: Any, state: Any) -> Mask:
        """Say which rows have reached the goal in this state, [row]."""

    @abstractmethod
    def act(self, instance: Any, state: Any, action: Ints) -> tuple[Any, Mask]:
        """Carry out one task action a row (negative: none); return the state and which were valid."""

    @abstractmethod
    def mutate(self, instance: Any, state: Any, draws: Words, moving: Mask) -> Any:
        """Let the world change by itself in the rows that move; draws are [row, exposed field]."""

    @abstractmethod
    def visible(self, instance: Any, state: Any, action: Ints, dropped: Mask) -> Mask:
        """Say which fields an observation shows, [row, field]; dropped rows lose their last item."""

    @abstractmethod
    def weights(self, static: Any) -> Floats:
        """Return task-importance weights w, [row, field], from the static structure alone."""

    @abstractmethod
    def roles(self, static: Any, place: Ints, action: Ints, rows: Rows = slice(None)) -> Floats:
        """Return the dependency role d of every field for the proposed action, [row, field].

        Args:
            static: the static structure of every row of the block.
            place: [row], where the agents of the chosen rows are.
            action: [row], what they propose.
            rows: the chosen rows; by default all.
        """

    def used_fields(self, static: Any, place: Ints, action: Ints) -> Mask:
        """Say which fields the agent itself knows the action to use, [row, field]."""
        return self.roles(static, place, action) == 1.0

    def observe(
        self,
        instance: Any,
        state: Any,
        gold: Values,
        draws: Words,
        action: Ints,
        valid: Mask,
        came_from: Ints,
        fresh: Mask,
    ) -> Observation:
        """Show the agent what its surroundings are after a step; `draws` are the VISIBLE words [row]."""
        dropped = (
            noise.low(draws) < noise.level32(DROP_PROBABILITY)
            if self.drops
            else np.zeros(len(draws), dtype=bool)
        )
        seen = self.visible(instance, state, action, dropped)
        return Observation(
            seen,
            gold | (seen.view(np.int8) - np.int8(1)),  # -1, all bits set, is UNKNOWN
            self.place(state),
            action,
            valid,
            came_from,
            self.regime.observation == "distractor",
            fresh,
        )


def ranked(draws: Words, candidates: Mask) -> Words:
    """Return the draws halved, and the largest word for what is no candidate, [row, item]."""
    return np.where(candidates, draws >> np.uint64(1), np.uint64((1 << 64) - 1))


def first_ranked(draws: Words, candidates: Mask, count: int) -> Mask:
    """Choose `count` of the candidates of every row at random: those with the smallest draws.

    Args:
        draws: [row, item].
        candidates: [row, item] or [item].
        count: how many; fewer where there are fewer candidates.

    Returns:
        [row, item], the chosen ones.
    """
    if count >= draws.shape[1]:
        return np.broadcast_to(candidates, draws.shape)
    order = ranked(draws, candidates)
    return (order < np.partition(order, count, axis=1)[:, count, None]) & candidates


def numbered(chosen: Mask) -> Ints:
    """Number the chosen items of a row 0, 1, ... from the left; the others get -1."""
    return np.where(chosen, np.cumsum(chosen, axis=1) - 1, -1)
