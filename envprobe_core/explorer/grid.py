"""The explorer's grid: readings of every policy at every budget and threshold, in every world and protocol.

The three worlds' episodes are run first, each distinct trajectory once (`distinct`); then every setting is
read, and the pool of the three worlds too. Settings that share all their episodes share one reading.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from envprobe_core.cells import find_profile, find_regime, parse_seeds
from envprobe_core.explorer.distinct import Table, run_place
from envprobe_core.explorer.episodes import Episodes, join
from envprobe_core.explorer.readings import Readings, join_readings, read_episodes
from envprobe_core.explorer.replays import Place
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PROTOCOLS, parse_protocol
from envprobe_core.resampling import RESAMPLES
from envprobe_core.sweep import run_tasks
from envprobe_core.worlds import WORLDS

POOL = "pool"
VIEWS = (*WORLDS, POOL)
THRESHOLDS = tuple(quarters / 4 for quarters in range(17))
SETTINGS_A_TASK = 400
Rows = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Grid:
    """All readings of a grid.

    Attributes:
        regime, profile, seeds: what it was run on, as text.
        budgets, thresholds: the positions of the two sliders.
        rows: (protocol, world or pool, policy) -> [budget, threshold], positions in `readings`; one threshold
            where the policy has none.
        readings: the distinct ones.
        resamples: of their intervals.
        simulated: episodes that were run for it.
    """

    regime: str
    profile: str
    seeds: str
    resamples: int
    simulated: int
    budgets: tuple[int, ...]
    thresholds: tuple[float, ...]
    rows: dict[tuple[str, str, str], Rows]
    readings: Readings


@dataclass(frozen=True)
class ReadingTask:
    """Settings to read: their episodes, [setting, unit] positions in these, and episodes a world."""

    number: int
    episodes: Episodes
    rows: npt.NDArray[np.int64]
    worlds: tuple[int, ...]
    resamples: int


def run_one_place(place: Place) -> tuple[Place, Table]:
    """Run one world under one protocol, with every policy."""
    return place, run_place(place, list(POLICIES.values()))


def read_task(task: ReadingTask) -> tuple[int, Readings]:
    """Read a task's settings."""
    return task.number, read_episodes(task.episodes, task.rows, task.worlds, resamples=task.resamples)


def run_grid(
    regime: str = "S2",
    protocols: Sequence[str] = tuple(PROTOCOLS),
    profile: str = "typical",
    seeds: str = "0:220",
    resamples: int = RESAMPLES,
    jobs: int = 2,
) -> Grid:
    """Run and read every setting: budgets 0..H/2, base thresholds 0..4 in steps of .25, every policy.

    Args:
        regime: name of the regime.
        protocols: names of protocols, with or without switches turned.
        profile: name of the agent's profile.
        seeds: as `cells.parse_seeds` reads them; the same under every protocol.
        resamples: bootstrap resamples of the intervals.
        jobs: processes; changes nothing but the time.
    """
    level = find_regime(regime)
    budgets = tuple(range(level.horizon // 2 + 1))
    chosen = [parse_protocol(name) for name in protocols]
    places = [
        Place(world, level, protocol, find_profile(profile), parse_seeds(seeds), budgets, THRESHOLDS)
        for protocol, world in product(chosen, WORLDS)
    ]
    tables = {
        (place.protocol.name, place.world): table for place, table in run_tasks(run_one_place, places, jobs)
    }
    rows: dict[tuple[str, str, str], Rows] = {}
    tasks: list[ReadingTask] = []
    total = 0
    for protocol in chosen:
        for view in VIEWS:
            several = [tables[protocol.name, world] for world in (WORLDS if view == POOL else (view,))]
            own, which = _settings(several)
            rows |= {(protocol.name, view, policy): total + at for policy, at in own.items()}
            tasks += _cut(several, which, len(tasks), resamples)
            total += len(which)
    parts = dict(run_tasks(read_task, tasks, jobs))
    readings = join_readings([parts[number] for number in range(len(tasks))])
    simulated = sum(table.simulated for table in tables.values())
    return Grid(regime, profile, seeds, resamples, simulated, budgets, THRESHOLDS, rows, readings)


def _settings(tables: Sequence[Table]) -> tuple[dict[str, Rows], npt.NDArray[np.int64]]:
    """Find the distinct settings of a world, or of several that are pooled.

    Returns:
        policy -> [budget, threshold], number of the setting, in the order in which they are met; and the
        episodes of each, [setting, unit], where the worlds' episodes lie behind one another.
    """
    starts = np.cumsum([0, *(len(table.episodes.accuracy) for table in tables)])
    numbers: dict[bytes, int] = {}
    found: list[npt.NDArray[np.int64]] = []
    own: dict[str, Rows] = {}
    for policy in tables[0].rows:
        joined = np.concatenate(
            [table.rows[policy] + start for table, start in zip(tables, starts[:-1], strict=True)], axis=-1
        )
        # thresholds outside, so that a reading's neighbour is that of the budget before
        settings = np.swapaxes(joined, 0, 1).reshape(-1, joined.shape[-1])
        for setting in settings:
            if numbers.setdefault(setting.tobytes(), len(numbers)) == len(found):
                found.append(setting)
        keys = np.array([numbers[setting.tobytes()] for setting in settings], dtype=np.int32)
        own[policy] = keys.reshape(joined.shape[1], joined.shape[0]).T
    return own, np.stack(found)


def _cut(
    tables: Sequence[Table], which: npt.NDArray[np.int64], number: int, resamples: int
) -> Iterator[ReadingTask]:
    """Cut a view's settings into tasks that carry the episodes they need and no others."""
    episodes = join([table.episodes for table in tables])
    seeds = next(iter(tables[0].rows.values())).shape[-1]
    for start in range(0, len(which), SETTINGS_A_TASK):
        used, rows = np.unique(which[start : start + SETTINGS_A_TASK], return_inverse=True)
        part = which[start : start + SETTINGS_A_TASK]
        yield ReadingTask(
            number, episodes.rows(used), rows.reshape(part.shape), (seeds,) * len(tables), resamples
        )
        number += 1
