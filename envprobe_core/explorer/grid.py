"""The explorer's grid: readings of every policy at every budget and threshold, in every world and protocol.

The three worlds' episodes are run first, each distinct trajectory once (`distinct`); then every setting is
read, and the pool of the three worlds too. Settings that share all their episodes share one reading; a pooled
one is read together with the three it is made of, so that each world is resampled once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import numpy.typing as npt

from envprobe_core.cells import find_profile, find_regime, parse_seeds
from envprobe_core.explorer.distinct import Table, run_place
from envprobe_core.explorer.episodes import Episodes, Ints, join
from envprobe_core.explorer.readings import Readings, join_readings, read_episodes
from envprobe_core.explorer.replays import Place
from envprobe_core.explorer.sums import ResampledSums
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PROTOCOLS, parse_protocol
from envprobe_core.resampling import RESAMPLES
from envprobe_core.sweep import run_tasks
from envprobe_core.worlds import WORLDS

POOL = "pool"
VIEWS = (*WORLDS, POOL)
THRESHOLDS = tuple(quarters / 4 for quarters in range(17))
SETTINGS_A_TASK = 128  # of the pool
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
class Part:
    """Settings of one view.

    Attributes:
        numbers: [setting], of the readings.
        rows: [setting, unit], positions of their episodes.
        worlds: episodes of each world.
    """

    numbers: Ints
    rows: Ints
    worlds: tuple[int, ...]


@dataclass(frozen=True)
class ReadingTask:
    """Settings to read together, and the episodes that they need."""

    episodes: Episodes
    parts: tuple[Part, ...]
    resamples: int


def run_one_place(place: Place) -> tuple[Place, Table]:
    """Run one world under one protocol, with every policy."""
    return place, run_place(place, list(POLICIES.values()))


def read_task(task: ReadingTask) -> tuple[Ints, Readings]:
    """Read a task's settings; return their numbers, and the readings in that order."""
    sums = ResampledSums(task.resamples)
    found = [
        read_episodes(task.episodes, part.rows, part.worlds, resamples=task.resamples, sums=sums)
        for part in task.parts
    ]
    return np.concatenate([part.numbers for part in task.parts]), join_readings(found)


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
        several = [tables[protocol.name, world] for world in WORLDS]
        starts = np.cumsum([0, *(len(table.episodes.accuracy) for table in several)])
        parts = []
        for view in VIEWS:
            seen = range(len(WORLDS)) if view == POOL else [VIEWS.index(view)]
            own, which = _settings([(several[at], int(starts[at])) for at in seen])
            rows |= {(protocol.name, view, policy): total + at for policy, at in own.items()}
            parts.append(Part(total + np.arange(len(which)), which, (len(places[0].seeds),) * len(seen)))
            total += len(which)
        tasks += _cut(join([table.episodes for table in several]), parts, resamples)
    numbers, read = zip(*run_tasks(read_task, tasks, jobs), strict=True)
    readings = join_readings(read).rows(np.argsort(np.concatenate(numbers)))
    simulated = sum(table.simulated for table in tables.values())
    return Grid(regime, profile, seeds, resamples, simulated, budgets, THRESHOLDS, rows, readings)


def _settings(tables: Sequence[tuple[Table, int]]) -> tuple[dict[str, Rows], Ints]:
    """Find the distinct settings of a world, or of several that are pooled.

    Args:
        tables: of each world, and where its episodes begin.

    Returns:
        policy -> [budget, threshold], number of the setting, in the order in which they are met; and the
        episodes of each, [setting, unit].
    """
    numbers: dict[bytes, int] = {}
    found: list[Ints] = []
    own: dict[str, Rows] = {}
    for policy in tables[0][0].rows:
        joined = np.concatenate([table.rows[policy].astype(np.int64) + start for table, start in tables], -1)
        # thresholds outside, so that a reading's neighbour is that of the budget before
        settings = np.ascontiguousarray(np.swapaxes(joined, 0, 1)).reshape(-1, joined.shape[-1])
        keys = [setting.tobytes() for setting in settings]
        for key, setting in zip(keys, settings, strict=True):
            if numbers.setdefault(key, len(numbers)) == len(found):
                found.append(setting)
        places = np.array([numbers[key] for key in keys], dtype=np.int32)
        own[policy] = places.reshape(joined.shape[1], joined.shape[0]).T
    return own, np.stack(found)


def _cut(episodes: Episodes, parts: Sequence[Part], resamples: int) -> Iterator[ReadingTask]:
    """Cut the settings of a protocol into tasks that carry the episodes they need and no others.

    Args:
        episodes: of all worlds.
        parts: of each world, and of the pool.
        resamples: bootstrap resamples.
    """
    *worlds, pool = parts
    left = [{row.tobytes(): place for place, row in enumerate(part.rows)} for part in worlds]
    for start in range(0, len(pool.rows), SETTINGS_A_TASK):
        at = slice(start, start + SETTINGS_A_TASK)
        chosen = [Part(pool.numbers[at], pool.rows[at], pool.worlds)]
        split = np.split(chosen[0].rows, len(worlds), axis=1)
        for part, settings, waiting in zip(worlds, split, left, strict=True):
            met = [waiting.pop(key) for row in settings if (key := row.tobytes()) in waiting]
            if met:
                chosen.append(Part(part.numbers[met], part.rows[met], part.worlds))
        used = np.unique(np.concatenate([part.rows.ravel() for part in chosen]))
        moved = tuple(replace(part, rows=np.searchsorted(used, part.rows)) for part in chosen)
        yield ReadingTask(episodes.rows(used), moved, resamples)
