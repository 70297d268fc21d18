"""Readings: what the explorer shows for one setting, rounded once, for the static page and the live engine.

A reading is a record of plain numbers (`Readings.record`). The page's grid stores the same whole numbers, so
what it shows is what the engine computes, digit for digit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from envprobe_core.cells import Cell
from envprobe_core.engine.recording import Trajectory
from envprobe_core.engine.running import record
from envprobe_core.statistics import RESAMPLES, percentile_interval, resampled_sums
from envprobe_core.worlds import WORLDS
from envprobe_core.worlds.base import Floats, Ints, Mask

SHARE_UNITS = 10_000  # shares and their intervals are given to four decimals
CURVE_UNITS = 1_000  # curves to three
FIXED_POINT = 2.0**32  # sums of A_t are formed in whole numbers: no order of episodes moves a bit
NONE = -1  # in whole numbers, a value that does not exist
SETTINGS_AT_ONCE = 128
KEPT_SUMS = 2_000  # columns; one of 10,000 resamples takes 80 kB

Reading = dict[str, Any]
Setting = Cell | tuple[Cell, ...]
"""The cells whose episodes are read together: one, or the same in each of the three worlds, called pool."""


class Table:
    """Columns of one length."""

    def rows(self, which: Ints) -> Self:
        """Return some of the rows."""
        return type(self)(*(column[which] for column in vars(self).values()))


@dataclass(frozen=True)
class Episodes(Table):
    """What is read of episodes of one horizon, in any order."""

    accuracy: Floats  # [episode], A_H as the protocol scores it
    success: Mask  # [episode]
    useful: Ints  # [episode], probes whose answer differed from the belief held
    repeated: Ints  # [episode], probes of a field that the episode had probed before
    track: Floats  # [episode, time], A_t as `Trajectory.accuracy` has it; NaN where there is none
    fired: Mask  # [episode, step], whether it probes at step t


def join(parts: Sequence[Any]) -> Any:
    """Concatenate `Episodes` of one horizon, or `Readings`."""
    kind = type(parts[0])
    return kind(*map(np.concatenate, zip(*(vars(part).values() for part in parts), strict=True)))


def measure(recording: Trajectory) -> Episodes:
    """Take from a recording what is read of it."""
    found, fired = recording.measures, recording.probe >= 0
    return Episodes(
        found["accuracy"],
        recording.success,
        found["useful"],
        found["repeated_probes"],
        recording.accuracy,
        fired,
    )


@dataclass(frozen=True)
class Readings(Table):
    """Readings of many settings as whole numbers; `NONE` stands for a value that does not exist."""

    n: Ints  # [setting], episodes
    accuracy: Ints  # [setting, (mean, low, high)], in units of 1 / SHARE_UNITS
    success: Ints  # likewise
    curve: Ints  # [setting, time], mean A_t over the episodes that still run, in units of 1 / CURVE_UNITS
    fires: Ints  # [setting, step], episodes that probe at step t
    useful: Ints  # [setting, (useful, fired)], probes of all episodes
    useful_rate: Ints  # [setting, (mean, low, high)], over episodes that fired, in units of 1 / SHARE_UNITS
    repeated: Ints  # [setting], probes of a field that their episode had probed before

    def __len__(self) -> int:
        return len(self.n)

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


def take_readings(settings: Sequence[Setting], seeds: Ints, *, resamples: int = RESAMPLES) -> list[Reading]:
    """Run settings of one horizon and read them.

    Args:
        settings: each the cells that are read together, one or `pooled`.

    Returns:
        One reading a setting, as `Readings.record` gives it. The interval of a mean is the 95% percentile
        interval over episodes, resampled within each world.
    """
    groups = [(setting,) if isinstance(setting, Cell) else setting for setting in settings]
    cells = list(dict.fromkeys(cell for group in groups for cell in group))
    episodes = join([measure(record(cell, seeds, scores_all=False)) for cell in cells])
    rows = {cell: len(seeds) * place + np.arange(len(seeds)) for place, cell in enumerate(cells)}
    sums, found = ResampledSums(resamples), []
    for group in groups:
        which = np.concatenate([rows[cell] for cell in group])[None]
        found.append(read_episodes(episodes, which, len(group), sums).record(0))
    return found


class ResampledSums:
    """Exact resampled sums of columns, remembered; the means are those of `statistics.bootstrap_means`.

    The sums of a world's column are formed once, for the world and for the pool.
    """

    def __init__(self, resamples: int) -> None:
        """Remember nothing yet."""
        self._resamples = resamples
        self._known: dict[bytes, Floats] = {}

    def means(self, columns: Floats, strata: int = 1) -> Floats:
        """Return resampled means, [column, resample].

        Args:
            columns: [column, unit], finite; units of one stratum stand together.
            strata: how many there are, of one size.
        """
        if len(self._known) > KEPT_SUMS:
            self._known.clear()
        total = np.zeros((len(columns), self._resamples))
        for shift, part in enumerate(np.split(columns, strata, axis=1)):
            keys = [column.tobytes() for column in part]
            missing = {key: place for place, key in enumerate(keys) if key not in self._known}
            if missing:
                sums = resampled_sums(part[list(missing.values())].T, self._resamples, seed=0)
                self._known |= zip(missing, np.ascontiguousarray(sums.T), strict=True)
            for mean, key in zip(total, keys, strict=True):
                mean += np.roll(self._known[key], shift)  # the k-th stratum reads the count matrix k rows on
        return total / columns.shape[1]


def read_episodes(episodes: Episodes, rows: Ints, worlds: int, sums: ResampledSums) -> Readings:
    """Read settings from measured episodes.

    Args:
        episodes: those of all settings; settings may share some.
        rows: [setting, unit], the episodes of each setting, as many from each world, in order.
        sums: resampled sums, those of other settings included.
    """
    starts = range(0, len(rows), SETTINGS_AT_ONCE)
    return join([_read(episodes, rows[start : start + SETTINGS_AT_ONCE], worlds, sums) for start in starts])


def _read(episodes: Episodes, rows: Ints, worlds: int, sums: ResampledSums) -> Readings:
    settings, n = rows.shape
    fired, useful = episodes.fired[rows], episodes.useful[rows]
    probes = fired.sum(axis=2)
    some, every = (probes > 0).astype(np.float64), np.ones(rows.shape)
    ratios = (
        (episodes.accuracy[rows], every),
        (episodes.success[rows].astype(np.float64), every),
        (useful / np.maximum(probes, 1), some),
    )
    # settings often share all their episodes, so every distinct column is resampled once
    columns = np.concatenate([column for ratio in ratios for column in ratio])
    distinct, place = np.unique(columns, axis=0, return_inverse=True)
    draws = sums.means(distinct, worlds) if n > worlds else None
    places = np.split(place, len(ratios))
    accuracy, success, rate = (
        _ends(*ratio, draws, at.reshape(2, -1)) for ratio, at in zip(ratios, places, strict=True)
    )
    return Readings(
        np.full(settings, n),
        accuracy,
        success,
        _curve(episodes.track[rows]),
        fired.sum(axis=1),
        np.stack([useful.sum(axis=1), probes.sum(axis=1)], axis=1),
        rate,
        episodes.repeated[rows].sum(axis=1),
    )


def _ends(top: Floats, bottom: Floats, draws: Floats | None, places: Ints) -> Ints:
    """Return ratios of sums with their percentile intervals in whole units, [setting, (mean, low, high)].

    As `statistics.clustered_rate`; sums are correctly rounded, so that no order of units moves a bit.

    Args:
        top, bottom: [setting, unit].
        draws: their resampled means, [column, resample]; None where nothing can be resampled.
        places: of both among these, [2, setting].
    """
    count = bottom.sum(axis=1)
    sums = np.array([math.fsum(row) for row in top.tolist()])
    mean = np.divide(sums, count, out=np.full(len(top), np.nan), where=count > 0)
    ends = np.full((2, len(top)), np.nan)
    if draws is not None:
        pairs, number = np.unique(places, axis=1, return_inverse=True)
        found, there = np.full((2, pairs.shape[1]), np.nan), draws[pairs[1]] > 0
        whole = there.all(axis=1)  # read together; of the others, resamples without an event are left out
        for which in (np.flatnonzero(whole), *np.flatnonzero(~whole)[:, None]):
            if len(which) and (kept := there[which[0]]).any():
                above, below = draws[pairs[:, which]][..., kept]
                found[:, which] = percentile_interval((above / below).T)
        ends = found[:, number]
    return _whole(np.stack([mean, *ends], axis=1), SHARE_UNITS)


def _whole(values: Floats, units: int) -> Ints:
    """Round to whole units; NaN becomes NONE. A last bit more or less does not decide where a half goes."""
    whole = np.rint(np.round(np.nan_to_num(values) * units, 6))
    return np.where(np.isnan(values), NONE, whole).astype(np.int64)


def _curve(track: Floats) -> Ints:
    """Average tracks [setting, unit, time] over the episodes that still run, in whole units."""
    running = ~np.isnan(track)
    whole = np.rint(np.where(running, track, 0.0) * FIXED_POINT).astype(np.int64).sum(axis=1)
    count = running.sum(axis=1)
    mean = np.divide(whole, count * FIXED_POINT, out=np.full(whole.shape, np.nan), where=count > 0)
    return _whole(mean, CURVE_UNITS)
