"""What a rollout leaves behind: every belief, gold value and decision of a block of episodes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core.belief import BeliefTable
from envprobe_core.protocols import Protocol
from envprobe_core.worlds.base import WAIT, Floats, Ints, Mask, Values

Reports = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Trajectory:
    """A block's recording; time axes are [step] for t = 0..H-1 and [time] for t = 0..H.

    Attributes:
        belief, gold: [row, time, field]; b_t after the agent's update, and g_t.
        staleness, confidence: [row, time, field], or None where they were not recorded.
        place: [row, time], the agent's true room or node.
        action: [row, step], the proposed task action.
        probe: [row, step], the probed field or -1.
        answer: [row, step], gold of the probed field (0 where there was no probe).
        useful: [row, step], whether a probe's answer differed from the belief held.
        valid: [row, step], whether the executed task action was valid (False for probes and waits).
        acted: [row, step], whether a task action was executed.
        score: [row, step], max rho, NaN where the policy has none.
        steps: [row], executed decision steps.
        success: [row], whether the goal was reached.
    """

    belief: Values
    gold: Values
    staleness: Reports | None
    confidence: Reports | None
    place: npt.NDArray[np.int8]
    action: npt.NDArray[np.int16]
    probe: npt.NDArray[np.int16]
    answer: Values
    useful: Mask
    valid: Mask
    acted: Mask
    score: Floats
    steps: Ints
    success: Mask

    def rows(self, part: slice | Ints) -> Trajectory:
        """Return the recording of some rows."""
        taken = {
            field.name: None if (value := getattr(self, field.name)) is None else value[part]
            for field in fields(self)
        }
        return Trajectory(**taken)


class Recorder:
    """Fills a trajectory step by step."""

    def __init__(self, rows: int, horizon: int, width: int, reports: bool) -> None:
        """Make room for all rows up to the horizon."""
        self._horizon = horizon

        def room(times: int, fill: float, dtype: npt.DTypeLike, *rest: int) -> npt.NDArray[Any]:
            # written step by step, so time is the outer axis in memory
            return np.swapaxes(np.full((times, rows, *rest), fill, dtype=dtype), 0, 1)

        self.belief = room(horizon + 1, 0, np.int8, width)
        self.gold = room(horizon + 1, 0, np.int8, width)
        self.staleness = room(horizon + 1, 0, np.uint8, width) if reports else None
        self.confidence = room(horizon + 1, 0, np.uint8, width) if reports else None
        self.place = room(horizon + 1, 0, np.int8)
        self.reached = room(horizon + 1, 0, np.bool_)
        self.action = room(horizon, WAIT, np.int16)
        self.probe = room(horizon, -1, np.int16)
        self.answer = room(horizon, 0, np.int8)
        self.useful = room(horizon, 0, np.bool_)
        self.valid = room(horizon, 0, np.bool_)
        self.acted = room(horizon, 0, np.bool_)
        self.score = room(horizon, np.nan, np.float64)
        self._ended = np.zeros(rows, dtype=bool)

    @property
    def all_ended(self) -> bool:
        """Say whether every row has succeeded by now."""
        return bool(self._ended.all())

    @property
    def running(self) -> Mask:
        """Say which rows have not succeeded by now, [row]."""
        return ~self._ended

    def state(self, t: int, table: BeliefTable, gold: Values, place: Ints, reached: Mask) -> None:
        """Record the table and the world at time t."""
        self.belief[:, t] = table.value
        self.gold[:, t] = gold
        if self.staleness is not None and self.confidence is not None:
            self.staleness[:, t] = table.staleness
            self.confidence[:, t] = table.confidence
        self.place[:, t] = place
        self.reached[:, t] = reached
        self._ended |= reached

    def decision(
        self,
        t: int,
        action: Ints,
        probes: Mask,
        target: Ints,
        answer: Values,
        useful: Mask,
        valid: Mask,
        score: Floats,
    ) -> None:
        """Record what was decided at step t and what came of it."""
        self.action[:, t] = action
        self.probe[:, t] = np.where(probes, target, -1)
        self.answer[:, t] = np.where(probes, answer, 0)
        self.useful[:, t] = useful
        self.valid[:, t] = valid
        self.acted[:, t] = ~probes & (action != WAIT)
        self.score[:, t] = score

    def finish(self, protocol: Protocol) -> Trajectory:
        """Settle success and length, and clear what lies behind an episode's end."""
        success = self.reached.any(axis=1)
        steps = np.full(len(success), self._horizon)
        if protocol.end == "success":
            steps = np.where(success, np.argmax(self.reached, axis=1), steps)
            self._clear_after(steps)
        return Trajectory(
            self.belief,
            self.gold,
            self.staleness,
            self.confidence,
            self.place,
            self.action,
            self.probe,
            self.answer,
            self.useful,
            self.valid,
            self.acted,
            self.score,
            steps,
            success,
        )

    def _clear_after(self, steps: Ints) -> None:
        over = np.arange(self._horizon + 1)[None, :] > steps[:, None]
        gone = over[:, 1:]
        for array in (self.belief, self.gold, self.staleness, self.confidence, self.place):
            if array is not None:
                array[over] = 0
        self.action[gone] = WAIT
        self.probe[gone] = -1
        self.score[gone] = np.nan
        self.answer[gone] = 0
        for flags in (self.useful, self.valid, self.acted):
            flags[gone] = False
