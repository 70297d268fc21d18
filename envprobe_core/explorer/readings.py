"""Readings: what the explorer shows for one setting, rounded once, for the static page and the live engine.

A reading is a record of plain numbers (`Readings.record`). The page's grid stores the same whole numbers, so
what it shows is what the engine computes, digit for digit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np

from envprobe_core.cells import Cell
from envprobe_core.explorer.episodes import Episodes, Floats, Ints, Mask, measure_task
from envprobe_core.explorer.sums import ResampledSums
from envprobe_core.intervals import percentile_interval
from envprobe_core.resampling import RESAMPLES
from envprobe_core.sweep import run_cells, seeds_of_cells
from envprobe_core.worlds import WORLDS

SHARE_UNITS = 10_000  # shares and their intervals are given to four decimals
CURVE_UNITS = 1_000  # curves to three
FIXED_POINT = 2.0**32  # sums of A_t are formed in whole numbers: no order of episodes moves a bit
NONE = -1  # in whole numbers, a value that does not exist
AT_ONCE = 128  # settings whose intervals are resampled together

Reading = dict[str, Any]
Setting = Cell | tuple[Cell, ...]


@dataclass(frozen=True)
class Readings:
    """Readings of many settings as whole numbers; `NONE` stands for a value that does not exist.

    Attributes:
        n: [setting], episodes.
        accuracy, success: [setting, (mean, low, high)], in units of 1 / SHARE_UNITS.
        curve: [setting, time], mean A_t over the episodes that still run, in units of 1 / CURVE_UNITS.
        fires: [setting, step], episodes that probe at step t.
        useful: [setting, (useful, fired)], probes of all episodes.
        useful_rate: [setting, (mean, low, high)], over episodes that fired, in units of 1 / SHARE_UNITS.
        repeated: [setting], probes of a field that their episode had probed before.
    """

    n: Ints
    accuracy: Ints
    success: Ints
    curve: Ints
    fires: Ints
    useful: Ints
    useful_rate: Ints
    repeated: Ints

    def __len__(self) -> int:
        return len(self.n)

    def rows(self, which: Ints) -> Readings:
        """Return some of the readings."""
        return Readings(*(getattr(self, field.name)[which] for field in fields(self)))

    def record(self, index: int) -> Reading:
        """Return one reading, ready for JSON.

        `curve` is None at times that no episode reaches (`released` stops at success and has no A_0);
        `useful_rate` is None where no episode probes; ends of an interval are None for a single episode.
        """

        def scaled(whole: Ints, units: int) -> list[float | None]:
            return [None if part == NONE else part / units for part in whole.tolist()]

        rate = scaled(self.useful_rate[index], SHARE_UNITS)
        return {
            "n": int(self.n[index]),
            "accuracy": scaled(self.accuracy[index], SHARE_UNITS),
            "success": scaled(self.success[index], SHARE_UNITS),
            "curve": scaled(self.curve[index], CURVE_UNITS),
            "fires": self.fires[index].tolist(),
            "useful": self.useful[index].tolist(),
            "useful_rate": None if rate[0] is None else rate,
            "repeated": int(self.repeated[index]),
        }


def pooled(cell: Cell) -> tuple[Cell, ...]:
    """Return the cell in each of the three worlds: the setting called pool."""
    return tuple(replace(cell, world=world) for world in WORLDS)


def take_readings(
    settings: Sequence[Setting], seeds: Ints | None = None, *, resamples: int = RESAMPLES
) -> list[Reading]:
    """Run settings and read them.

    Args:
        settings: cells, or the cells that a setting pools (as from `pooled`).
        seeds: of every cell; by default each cell's own.
        resamples: bootstrap resamples of the intervals.

    Returns:
        One reading a setting, as `Readings.record` gives it. The interval of a mean is the 95% percentile
        interval over episodes, resampled within each world.
    """
    groups = [(setting,) if isinstance(setting, Cell) else tuple(setting) for setting in settings]
    found: dict[int, Reading] = {}
    for horizon in {group[0].regime.horizon for group in groups}:  # tracks of one length are read together
        chosen = [index for index, group in enumerate(groups) if group[0].regime.horizon == horizon]
        cells = list(dict.fromkeys(cell for index in chosen for cell in groups[index]))
        starts = np.cumsum([0, *map(len, seeds_of_cells(cells, seeds))])
        rows = [np.arange(first, past) for first, past in pairwise(starts)]
        rows_of = dict(zip(cells, rows, strict=True))
        table = run_cells(cells, seeds, work=measure_task)
        episodes = Episodes(*(table[field.name] for field in fields(Episodes)))
        # settings of one shape: the same number of episodes in each of their worlds
        shapes: dict[tuple[int, ...], list[int]] = {}
        for index in chosen:
            shapes.setdefault(tuple(len(rows_of[cell]) for cell in groups[index]), []).append(index)
        for shape, indices in shapes.items():
            which = np.stack([np.concatenate([rows_of[cell] for cell in groups[i]]) for i in indices])
            readings = read_episodes(episodes, which, shape, resamples=resamples)
            found |= {index: readings.record(at) for at, index in enumerate(indices)}
    return [found[index] for index in range(len(groups))]


def read_episodes(
    episodes: Episodes,
    rows: Ints,
    worlds: Sequence[int] = (),
    *,
    resamples: int = RESAMPLES,
    sums: ResampledSums | None = None,
) -> Readings:
    """Read settings from measured episodes.

    Args:
        episodes: those of all settings; settings may share some.
        rows: [setting, unit], the episodes of each setting.
        worlds: how many of a setting's episodes come from each world, in order; by default all from one.
        resamples: bootstrap resamples of the intervals.
        sums: what other settings have resampled, of as many resamples.
    """
    sums = ResampledSums(resamples) if sums is None else sums
    sizes = tuple(worlds) or (rows.shape[1],)
    parts = [
        _read(episodes, rows[start : start + AT_ONCE], sizes, sums) for start in range(0, len(rows), AT_ONCE)
    ]
    return join_readings(parts)


def join_readings(parts: Sequence[Readings]) -> Readings:
    """Put readings behind one another."""
    return Readings(*(np.concatenate([getattr(part, f.name) for part in parts]) for f in fields(Readings)))


def _read(episodes: Episodes, rows: Ints, sizes: Sequence[int], sums: ResampledSums) -> Readings:
    settings, n = rows.shape
    fired = episodes.fired[rows]
    probes, useful = fired.sum(axis=2), episodes.useful[rows]
    rate = useful / np.maximum(probes, 1)
    accuracy, success = episodes.accuracy[rows], episodes.success[rows].astype(np.float64)
    # settings often share all their episodes, so every distinct column is resampled once
    columns = np.concatenate([accuracy, success, rate, (probes > 0).astype(np.float64)])
    distinct, place = np.unique(columns, axis=0, return_inverse=True)
    draws = sums.means(distinct, sizes) if n > len(sizes) else None
    of_accuracy, of_success, tops, bottoms = np.split(place, 4)
    return Readings(
        np.full(settings, n),
        _ends(accuracy, of_accuracy, draws),
        _ends(success, of_success, draws),
        _curve(episodes.track[rows]),
        fired.sum(axis=1),
        np.stack([useful.sum(axis=1), probes.sum(axis=1)], axis=1),
        _rate(rate, probes > 0, tops, bottoms, draws),
        episodes.repeated[rows].sum(axis=1),
    )


def _means(values: Floats) -> Floats:
    """Average [setting, unit] over units; correctly rounded sums, whose bits no order moves."""
    return np.array([math.fsum(row) for row in values.tolist()]) / values.shape[1]


def _whole(values: Floats, units: int) -> Ints:
    """Round to whole units; NaN becomes NONE. A last bit more or less does not decide where a half goes."""
    whole = np.rint(np.round(np.nan_to_num(values) * units, 6))
    return np.where(np.isnan(values), NONE, whole).astype(np.int64)


def _ends(values: Floats, place: Ints, draws: Floats | None) -> Ints:
    """Return means and percentile intervals of [setting, unit] in whole units, [setting, (mean, low, high)].

    `place` [setting] says where in `draws` [column, resample] their resampled means are, if there are any.
    """
    if draws is None:
        return _rounded(_means(values))
    wanted, inverse = np.unique(place, return_inverse=True)
    low, high = percentile_interval(draws[wanted].T)
    return _rounded(_means(values), low[inverse], high[inverse])


def _rounded(mean: Floats, low: Floats | None = None, high: Floats | None = None) -> Ints:
    """Return means with the ends of their intervals, or with none, in whole units."""
    ends = [np.full_like(mean, np.nan) if end is None else end for end in (low, high)]
    return _whole(np.stack([mean, *ends], axis=1), SHARE_UNITS)


def _rate(rate: Floats, fired: Mask, tops: Ints, bottoms: Ints, draws: Floats | None) -> Ints:
    """Return the mean of useful / fired over the episodes that fired, as `stats.mean_of_ratios` does.

    Both are [setting, unit]; `tops` and `bottoms` [setting] are their places in `draws` [column, resample].
    """
    count = fired.sum(axis=1)
    sums = _means(rate) * rate.shape[1]
    mean = np.divide(sums, count, out=np.full(len(rate), np.nan), where=count > 0)
    if draws is None:
        return _rounded(mean)
    low, high = np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    pairs, inverse = np.unique(np.stack([tops, bottoms]), axis=1, return_inverse=True)
    there = draws[pairs[1]] > 0
    always = there.all(axis=1)  # no resample is without a probe: read together
    at = np.flatnonzero(always[inverse])
    if len(at):
        order = np.cumsum(always) - 1
        ends = percentile_interval((draws[pairs[0, always]] / draws[pairs[1, always]]).T)
        low[at], high[at] = (end[order[inverse[at]]] for end in ends)
    for index in np.flatnonzero((count > 0) & ~always[inverse]):
        top, bottom = pairs[:, inverse[index]]  # resamples without any probe are left out
        some = there[inverse[index]]
        low[index], high[index] = percentile_interval(draws[top, some] / draws[bottom, some])
    return _rounded(mean, low, high)


def _curve(track: Floats) -> Ints:
    """Average tracks [setting, unit, time] over the episodes that still run, in whole units."""
    running = ~np.isnan(track)
    whole = np.rint(np.where(running, track, 0.0) * FIXED_POINT).astype(np.int64).sum(axis=1)
    count = running.sum(axis=1)
    mean = np.divide(whole, count * FIXED_POINT, out=np.full(whole.shape, np.nan), where=count > 0)
    return _whole(mean, CURVE_UNITS)
