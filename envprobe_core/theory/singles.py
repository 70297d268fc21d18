"""Single repairs of every field: uniform against targeted probes, and what self-reports add (Section 5.1).

One measurement serves Proposition 5.6 (efficiency of a uniform probe) and Lemma 5.4 (epsilon of the
self-reports): the gain Delta_i of repairing field i alone, for every field of every past.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from envprobe_core.experiments import Names, names
from envprobe_core.statistics import Interval, mean_interval
from envprobe_core.theory.forks import Past, Setting, look, seeds_in
from envprobe_core.theory.gains import accuracies, ratio_interval, terms_of
from envprobe_core.worlds.base import Floats, Mask

if TYPE_CHECKING:
    import pandas as pd

Ints = npt.NDArray[np.int64]
FUTURES = 8
FEWEST_IN_BIN = 30
STALENESS_EDGES = (0.0, 0.35, 0.75)  # bins of s: below .35, below .75, the rest
DOUBT_EDGES = (0.0, 0.15, 0.30)  # bins of u: sure, less sure, below alpha = .7
CRITICALITY_EDGES = (0.0, 1 / 3, 2 / 3)


@dataclass(frozen=True)
class SingleGains:
    """Gain of repairing each field alone.

    Attributes:
        setting, past: what was played.
        gain: [row, field], change of A_H^T of the field's own type, mean over futures.
        other: [row, field], change of A_H^T of the other type (0 in a world of one type).
        futures: futures a past.
    """

    setting: Setting
    past: Past
    gain: Floats
    other: Floats
    futures: int


def run_singles(setting: Setting, seeds: Ints, futures: int = FUTURES) -> SingleGains:
    """Repair every field alone, on every past.

    Args:
        setting: where the forks start.
        seeds: [past].
        futures: futures a past.
    """
    past = look(setting, seeds)
    row, field = np.nonzero(past.wrong)
    plain = np.arange(len(past.seeds))
    repaired = np.zeros((len(plain) + len(row), setting.world.fields), dtype=bool)
    repaired[len(plain) + np.arange(len(row)), field] = True
    by_type, _ = accuracies(setting, past, np.concatenate([plain, row]), repaired, futures)
    gain, other = np.zeros(past.c.shape), np.zeros(past.c.shape)
    for kind, accuracy in by_type.items():
        mean = accuracy.mean(axis=1)
        change = mean[len(plain) :] - mean[row]
        own = setting.of_type(kind)[field]
        gain[row[own], field[own]] = change[own]
        other[row[~own], field[~own]] = change[~own]
    return SingleGains(setting, past, gain, other, futures)


def load_singles(
    worlds: Names, regime: str, protocol: str, profile: str, seeds: str, futures: int = FUTURES,
    share: float = 0.5,
) -> list[SingleGains]:  # fmt: skip
    """Run single repairs in every world; arguments as in `run_singles`."""
    chosen = seeds_in(seeds, regime, protocol)
    return [
        run_singles(Setting.of(world, regime, protocol, profile, share), chosen, futures)
        for world in names(worlds)
    ]


def mean_gains(run: SingleGains, kind: str, resamples: int) -> pd.DataFrame:
    """Return q_i of every field of a type with its interval: `field q low high`, sorted down."""
    import pandas as pd

    rows = []
    for field in np.flatnonzero(run.setting.of_type(kind)):
        q = mean_interval(run.gain[:, field], resamples=resamples)
        rows.append((run.setting.world.field_names[field], q.value, q.low, q.high))
    frame = pd.DataFrame(rows, columns=["field", "q", "low", "high"])
    return frame.sort_values("q", ascending=False, ignore_index=True, kind="stable")


def efficiency_frame(runs: Sequence[SingleGains], resamples: int) -> pd.DataFrame:
    """Compare a uniform with a targeted single probe.

    The best field is chosen on one half of the pasts and valued on the other, in both directions.

    Returns:
        One row a world and type: `mean_gain` (q bar), `best_gain` (q_(1), cross-fitted), `efficiency` with
        `low high`, `below_one` (the interval lies below 1), `equal` (whether all q_i are equal), `negative`
        (fields whose interval lies below 0), `best_field`, `pasts`.
    """
    import pandas as pd

    rows = []
    for run in runs:
        for kind in run.setting.types:
            own = np.flatnonzero(run.setting.of_type(kind))
            gain = run.gain[:, own]
            q = gain.mean(axis=0)
            best = np.zeros(len(gain))
            for half in (0, 1):
                best[1 - half :: 2] = gain[1 - half :: 2, int(np.argmax(gain[half::2].mean(axis=0)))]
            share = ratio_interval(gain.mean(axis=1), best, resamples)
            each = mean_gains(run, kind, resamples)
            rows.append(
                {
                    "world": run.setting.world.name,
                    "kind": kind,
                    "mean_gain": float(q.mean()),
                    "best_gain": float(best.mean()),
                    "efficiency": share.value,
                    "low": share.low,
                    "high": share.high,
                    "below_one": share.high < 1.0,
                    "equal": bool(np.ptp(q) == 0.0),
                    "negative": int((each["high"] < 0).sum()),
                    "best_field": run.setting.world.field_names[own[int(np.argmax(q))]],
                    "pasts": len(gain),
                }
            )
    return pd.DataFrame(rows)


def binned(values: Floats, edges: tuple[float, ...]) -> Ints:
    """Return the number of the bin each value lies in; bins begin at their edges."""
    return np.searchsorted(np.asarray(edges), values, side="right") - 1


def feature_codes(past: Past, own: Mask) -> tuple[Ints, Ints]:
    """Code h = (c, d) and (h, z) with z = (s, u) by bins, [row, own field] each."""
    terms = {name: value[:, own] for name, value in terms_of(past).items()}
    h = binned(terms["c"], CRITICALITY_EDGES) * 3 + binned(terms["d"], (0.0, 0.5, 1.0))
    z = binned(terms["s"], STALENESS_EDGES) * 3 + binned(terms["u"], DOUBT_EDGES)
    return h, h * 9 + z


def bin_means(codes: Ints, gain: Floats, least: int = FEWEST_IN_BIN) -> tuple[Floats, Ints]:
    """Return the mean gain and the count of each code; means of bins with fewer entries are NaN."""
    count = np.bincount(codes.ravel(), minlength=81)
    total = np.bincount(codes.ravel(), gain.ravel(), minlength=81)
    return np.divide(total, count, out=np.full(len(count), np.nan), where=count >= least), count


def choose(codes: Ints, means: Floats) -> Ints:
    """Choose in each row the first field whose bin promises most, [row]; bins never met promise 0."""
    return np.argmax(np.nan_to_num(means)[codes], axis=1)


@dataclass(frozen=True)
class SelfReport:
    """Both sides of the self-report bound in one world and type.

    Attributes:
        world, kind: which.
        epsilon: the largest |m(h, z) - m0(h)| over bins with enough entries (plug-in, biased upwards).
        epsilon_split: the same bin chosen on one half of the pasts and valued on the other.
        bins: bins compared.
        left_out: share of (past, field) entries in bins with too few.
        structural, both: mean gain of the best rule of h, of (h, z); rules fitted and valued crosswise.
        advantage: both - structural with its interval.
    """

    world: str
    kind: str
    epsilon: float
    epsilon_split: float
    bins: int
    left_out: float
    structural: float
    both: float
    advantage: Interval

    @property
    def within(self) -> bool:
        """Say whether the advantage stays at or below the printed bound 2 epsilon."""
        return self.advantage.value <= 2 * self.epsilon


def self_report(run: SingleGains, kind: str, resamples: int) -> SelfReport:
    """Estimate epsilon and the advantage of seeing z = (s, u) beside h = (c, d)."""
    own = run.setting.of_type(kind)
    gain = run.gain[:, own]
    h, hz = feature_codes(run.past, own)

    def deviations(rows: slice, least: int) -> tuple[Floats, Ints]:
        m0, _ = bin_means(h[rows], gain[rows], least)
        m, count = bin_means(hz[rows], gain[rows], least)
        return m - np.repeat(m0[:9], 9), count

    whole, count = deviations(slice(None), FEWEST_IN_BIN)
    usable = ~np.isnan(whole)
    halves = [deviations(slice(half, None, 2), FEWEST_IN_BIN // 2)[0] for half in (0, 1)]
    both_usable = ~np.isnan(halves[0]) & ~np.isnan(halves[1])
    split = []
    for chooser in (0, 1):
        if both_usable.any():
            size = np.where(both_usable, np.abs(halves[chooser]), -1.0)
            worst = int(np.argmax(size))
            split.append(halves[1 - chooser][worst] * np.sign(halves[chooser][worst]))
    by_h, by_both = np.zeros(len(gain)), np.zeros(len(gain))
    for half in (0, 1):
        fit, test = slice(half, None, 2), slice(1 - half, None, 2)
        for codes, value in ((h, by_h), (hz, by_both)):
            means, _ = bin_means(codes[fit], gain[fit], 1)
            picked = choose(codes[test], means)
            value[test] = gain[test][np.arange(len(picked)), picked]
    return SelfReport(
        run.setting.world.name,
        kind,
        float(np.abs(whole[usable]).max()) if usable.any() else np.nan,
        float(np.mean(split)) if split else np.nan,
        int(usable.sum()),
        float(count[~usable].sum() / count.sum()),
        float(by_h.mean()),
        float(by_both.mean()),
        mean_interval(by_both - by_h, resamples=resamples),
    )


def self_reports(runs: Sequence[SingleGains], resamples: int) -> list[SelfReport]:
    """Estimate both sides of the bound for every world and type."""
    return [self_report(run, kind, resamples) for run in runs for kind in run.setting.types]
