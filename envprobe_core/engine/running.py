"""Cells and seeds in, recordings and measures out; and a block of episodes that Python takes step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core.cells import Cell
from envprobe_core.engine import loop, records
from envprobe_core.engine.compiling import announced
from envprobe_core.engine.recording import Columns, Ints, Trajectory, columns_of
from envprobe_core.engine.records import NONE
from envprobe_core.engine.setting import room_for_episodes, room_for_logs, setting_of
from envprobe_core.policies import POLICIES
from envprobe_core.policies.own import NOBODY, Called, rule_of
from envprobe_core.worlds import RULES, WORLDS, World

NO_SCHEDULE = np.zeros((1, 0), np.int64)
NO_LOGS, NO_MEASURES = room_for_logs(0, 1), records.new(records.MEASURES, 0)


class Episodes:
    """A block of episodes of one cell, step by step: `propose`, `settle`, `decide`, `advance`, again.

    Attributes:
        cell, seeds: what is run, [row].
        setting: the cell's numbers.
        rule: a reader's policy, which Python calls here, or `own.NOBODY`.
        block: the episodes as they stand, [row]; a fork is a copy of its rows.
        logs: [row, time].
    """

    def __init__(
        self,
        cell: Cell,
        seeds: Ints,
        *,
        world: World | None = None,
        schedules: Ints | None = None,
        scores_all: bool = True,
    ) -> None:
        """Create the worlds; the agents look around.

        Args:
            cell: the cell.
            seeds: [row].
            world: a world other than that of the cell's regime and protocol, as a smaller one.
            schedules: [row, step], the fields that a replayed policy probes, or NONE.
            scores_all: whether policies are asked also where the budget is spent.
        """
        self.cell, self.seeds = cell, np.array(seeds, np.int64)
        self.setting = setting_of(cell, scores_all=scores_all, world=world)
        self.rule = NOBODY if cell.policy.score is None else Called(cell.policy.score)
        self.block = room_for_episodes(cell.world, len(self.seeds))
        self.logs = room_for_logs(cell.regime.horizon, len(self.seeds))
        self.schedules = NO_SCHEDULE if schedules is None else schedules
        with announced(WORLDS[cell.world]):
            take(loop.BEGIN, self.setting, self.block, seeds=self.seeds)

    def take(self, stages: int, fields: Ints | None = None) -> Ints:
        """Take the episodes through some stages of a step; return the fields that are probed, [row]."""
        fields = np.full(len(self.block), NONE) if fields is None else fields
        take(
            stages, self.setting, self.block,
            logs=self.logs, schedules=self.schedules, fields=fields, rule=self.rule,
        )  # fmt: skip
        return fields

    def propose(self) -> None:
        """Let the simulated agents update their tables and propose."""
        self.take(loop.PROPOSE)

    def settle(self) -> bool:
        """Record b_t and g_t; say whether any episode still runs."""
        self.take(loop.SETTLE)
        return not self.block.over.all()

    def look(self) -> Any:
        """Fill in what a policy may see; return the sights, [row]."""
        self.take(loop.LOOK)
        return self.block.sight

    def decide(self) -> Ints:
        """Ask the cell's policy for the field to probe, or NONE, [row]."""
        return self.take(loop.DECIDE)

    def advance(self, fields: Ints) -> None:
        """Probe a field or act, [row]; the worlds mutate; the agents observe."""
        self.take(loop.ADVANCE, fields)

    def go_on(self) -> None:
        """Run every episode from its decision to its end."""
        self.advance(self.decide())
        self.take(loop.TO_THE_END)

    def recording(self) -> Trajectory:
        """Score the episodes, which are over, and return what was recorded."""
        return scored(self.setting, self.logs, self.block.t, self.block.ended)


def measure(cell: Cell, seeds: Ints) -> Columns:
    """Run a cell; return a column [row] for each measure."""
    return _run(cell, np.array(seeds, np.int64), keep=False)[2]


def record(cell: Cell, seeds: Ints, *, scores_all: bool = True, schedules: Ints | None = None) -> Trajectory:
    """Run a cell; return what was recorded, with a column [row] for each measure.

    Args:
        cell: the cell.
        seeds: [row].
        scores_all: whether the highest score is recorded also where the budget is spent.
        schedules: [row, step], the fields that a replayed policy probes; by default those of the policy that
            the cell's replays.
    """
    own = np.array(seeds, np.int64)
    return Trajectory.of(*_run(cell, own, keep=True, scores_all=scores_all, schedules=schedules))


def _run(
    cell: Cell,
    seeds: Ints,
    *,
    keep: bool,
    scores_all: bool = False,
    schedules: Ints | None = None,
    rule: Any = None,
) -> tuple[Any, Any, Columns]:
    """Run a cell; return its setting, its logs, all of them or the last one, and its measures."""
    rule = rule_of(cell.policy.score) if rule is None else rule
    setting = setting_of(cell, scores_all=scores_all)
    logs = room_for_logs(cell.regime.horizon, len(seeds) if keep else 1)
    measures = records.new(records.MEASURES, len(seeds))
    block = room_for_episodes(cell.world, 1)
    schedules = schedules_of(cell, seeds) if schedules is None else schedules
    with announced(WORLDS[cell.world]):
        failed = take(
            loop.WHOLE, setting, block,
            seeds=seeds, logs=logs, schedules=schedules, measures=measures, rule=rule,
        )  # fmt: skip
    if failed != NONE:  # compiled code has no words for it: Python raises the reader's own error, or goes on
        assert cell.policy.score is not None
        python = Called(cell.policy.score)
        _run(cell, seeds[failed : failed + 1], keep=False, scores_all=scores_all, rule=python)
        return _run(cell, seeds, keep=keep, scores_all=scores_all, rule=python)
    return setting, logs, columns_of(measures)


def score(setting: Any, recorded: Mapping[str, npt.NDArray[np.generic]]) -> Trajectory:
    """Score episodes that were recorded before, under a setting's rules.

    Args:
        setting: the record of a cell.
        recorded: `belief` to `success` of a `Trajectory`.
    """
    rows, times, width = recorded["belief"].shape
    logs = room_for_logs(times - 1, rows)
    for name in ("belief", "gold", "staleness", "confidence"):
        logs[name][:, :, :width] = recorded[name]
    logs["place"] = recorded["place"]
    for name in ("action", "probe", "answer", "useful", "valid", "acted", "score"):
        logs[name][:, :-1] = recorded[name]
    return scored(setting, logs, recorded["steps"], recorded["success"])


def scored(
    setting: Any, logs: Any, steps: npt.NDArray[np.generic], success: npt.NDArray[np.generic]
) -> Trajectory:
    """Score logs [row, time] of episodes that are over, and return what they hold."""
    measures = records.new(records.MEASURES, len(logs))
    measures.steps, measures.success = steps, success
    world = next(name for name, kind in RULES.items() if kind == setting.world.dtype)
    over = room_for_episodes(world, 1)
    over.over = 1
    take(loop.MEASURE, setting, over, seeds=np.zeros(len(logs), np.int64), logs=logs, measures=measures)
    return Trajectory.of(setting, logs, columns_of(measures))


def take(
    stages: int,
    setting: Any,
    block: Any,
    *,
    seeds: Ints | None = None,
    logs: Any = NO_LOGS,
    schedules: Ints = NO_SCHEDULE,
    fields: Ints | None = None,
    measures: Any = NO_MEASURES,
    rule: Any = NOBODY,
) -> int:
    """Take a block through some stages of a step (`loop.run`), with what these need."""
    rows = len(block) if seeds is None else len(seeds)
    failed = loop.run(
        stages, setting, block,
        np.zeros(rows, np.int64) if seeds is None else seeds,
        logs, schedules,
        np.full(1, NONE) if fields is None else fields,
        measures, rule,
    )  # fmt: skip
    if isinstance(rule, Called) and rule.error is not None:
        raise rule.error
    return failed


def walk(episodes: Episodes, decide: Callable[[], Ints]) -> None:
    """Run episodes to their end, asking Python for the fields to probe, [row], at each step."""
    while True:
        episodes.propose()
        if not episodes.settle():
            return
        episodes.advance(decide())


def schedules_of(cell: Cell, seeds: Ints) -> Ints:
    """Return the probes of the policy that a cell replays, [row, step]."""
    if cell.policy.replays is None:
        return NO_SCHEDULE
    played = record(replace(cell, policy=POLICIES[cell.policy.replays]), seeds, scores_all=False)
    return np.ascontiguousarray(played.probe, dtype=np.int64)
