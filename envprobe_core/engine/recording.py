"""What a run leaves behind: every belief, gold value and decision of a block of episodes, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core.worlds.base import Floats, Ints, Mask, Values

Reports = npt.NDArray[np.uint8]
Columns = dict[str, npt.NDArray[np.generic]]


@dataclass(frozen=True)
class Trajectory:
    """A block's recording; time axes are [step] for t = 0..H-1 and [time] for t = 0..H.

    What lies behind an episode's end is empty: 0, False, WAIT, -1, NaN.

    Attributes:
        belief, gold: [row, time, field]; b_t after the agent's update, and g_t.
        staleness, confidence: [row, time, field], as reported: steps and percent.
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
        accuracy: [row, time], the accuracy whose fall the protocol calls collapse: the share of right fields,
            b_t or b_(t-1) against g_t, or the weighted slot overlap, which has no value at time 0 (NaN).
        measures: a column [row] for each measure of the episode table.
    """

    belief: Values
    gold: Values
    staleness: npt.NDArray[np.uint8]
    confidence: npt.NDArray[np.uint8]
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
    accuracy: Floats
    measures: Columns

    def rows(self, part: slice | Ints) -> Trajectory:
        """Return the recording of some rows."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        measures = {name: column[part] for name, column in arrays.pop("measures").items()}
        return Trajectory(**{name: array[part] for name, array in arrays.items()}, measures=measures)

    @classmethod
    def of(cls, setting: Any, logs: Any, measures: Columns) -> Trajectory:
        """Return the recording that scored logs [row, time] of a setting hold."""
        width, steps = int(setting.world.fields), measures["steps"].astype(np.int64)
        accuracy = logs["accuracy"].copy()
        accuracy[np.arange(logs.shape[1])[None, :] > steps[:, None]] = np.nan
        if setting.scoring.by_slots:
            accuracy[:, 0] = np.nan
        return cls(
            *(logs[name][:, :, :width] for name in ("belief", "gold", "staleness", "confidence")),
            logs["place"],
            *(logs[name][:, :-1] for name in ("action", "probe", "answer")),
            *(logs[name][:, :-1].astype(bool) for name in ("useful", "valid", "acted")),
            logs["score"][:, :-1],
            steps,
            measures["success"].astype(bool),
            accuracy,
            measures,
        )

    @classmethod
    def joined(cls, parts: list[Trajectory]) -> Trajectory:
        """Put the rows of several recordings one after the other."""
        if len(parts) == 1:
            return parts[0]
        names = [field.name for field in fields(cls) if field.name != "measures"]
        arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        measures = {
            name: np.concatenate([part.measures[name] for part in parts]) for name in parts[0].measures
        }
        return cls(**arrays, measures=measures)


def columns_of(measures: Any) -> Columns:
    """Return measures [row] as columns of the episode table."""
    kinds = {"i": np.int64, "f": np.float64, "u": np.uint64}
    columns = {name: measures[name].astype(kinds[measures[name].dtype.kind]) for name in measures.dtype.names}
    return columns | {"success": columns["success"] == 1}
