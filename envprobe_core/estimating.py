"""One estimate: what is asked of episodes, the sample that it is made of, and its value with an interval.

Whatever a page prints or draws of episodes is one of four statistics of a measure. `estimates_of` finds them
all, many at once: frames (`comparing`), claims and live figures only say whose episodes they are made of.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from envprobe_core.statistics import LEVEL, RESAMPLES, Estimate, mean_intervals, ratios, wilson
from envprobe_core.worlds.base import Floats, Ints, Mask

MIN_UNITS = 10  # fewer episodes carry no bootstrap worth a verdict
AT_ONCE = 64  # columns that share a resample: more would need more memory than time
_SHARES = r"(accuracy|success|zero|placebo)(_[a-z_]+)?"
SHARE = re.compile(rf"{_SHARES}(-{_SHARES})?|[a-z_]+[/<>].+")  # measures that are told in points
YES_OR_NO = re.compile(r"success|[a-z_]+[<>].+")
Arm = Mapping[str, Any]
"""Whose episodes: the columns of a frame, or the parts of a condition, with their values."""
Kind = Literal["rate", "mean", "share", "shift"]


@dataclass(frozen=True)
class What:
    """What is asked of episodes.

    Attributes:
        statistic: `mean` of one arm, `gain` of an arm over a reference in pairs of equal world and seed,
            `shift`, a gain minus another one, or `track`, a mean at each step.
        measure: as in `comparing.measured`.
        arms: (arm,), (arm, reference), or of a shift both after the turn and both before it.
    """

    statistic: str
    measure: str
    arms: tuple[Arm, ...] = ()

    @property
    def scale(self) -> float:
        """What the statistic is multiplied with: differences of shares are told in points."""
        return 100.0 if self.statistic in ("gain", "shift") and SHARE.fullmatch(self.measure) else 1.0


def mean(measure: str = "accuracy", **arm: Any) -> What:
    """The mean of a measure, of all episodes or those of one arm.

    >>> mean("success", policy="simple").arms
    ({'policy': 'simple'},)
    """
    return What("mean", measure, (arm,) if arm else ())


def gain(arm: str, reference: str, measure: str = "accuracy", **both: Any) -> What:
    """What a policy is ahead of a reference, in points where the measure is a share.

    >>> gain("simple", "periodic").scale
    100.0
    """
    return What("gain", measure, tuple({"policy": policy, **both} for policy in (arm, reference)))


def shift(arm: str, reference: str, after: Arm, before: Arm, measure: str = "accuracy", **all_: Any) -> What:
    """What a gain changes by from the episodes `before` to those `after`.

    >>> len(shift("simple", "periodic", {"protocol": "released"}, {"protocol": "paper"}).arms)
    4
    """
    sides = [gain(arm, reference, measure, **all_, **side) for side in (after, before)]
    return What("shift", measure, sides[0].arms + sides[1].arms)


def track(measure: str = "accuracy", **arm: Any) -> What:
    """The mean of a measure at each step.

    >>> track().statistic
    'track'
    """
    return What("track", measure, (arm,) if arm else ())


@dataclass(frozen=True, slots=True)
class Sample:
    """What a statistic is made of: sums over units, a seed in a world or a pair of them."""

    top: Floats  # [unit, column], numerators
    bottom: Floats  # [unit, column], denominators
    worlds: Ints  # [unit], each unit's world by its position, ascending
    kind: Kind = "rate"  # a ratio of sums; a mean or a share, of known values; of a shift two a column
    each: Floats | None = None  # [arm, unit, column], every value, NaN: undefined; None for events pooled
    reach: float | None = None  # how far a pair can differ, 0 if that is not known; None of no pairs

    @classmethod
    def of_mean(cls, values: Floats, worlds: Ints, *, is_share: bool = False) -> Sample:
        """The values [unit] that are known, each of which counts once; a share has Wilson's interval."""
        known = ~np.isnan(values)
        top = values[known][:, None]
        return cls(top, np.ones_like(top), worlds[known], "share" if is_share else "mean")

    @classmethod
    def of_values(cls, each: Floats, worlds: Ints, reach: float | None = None) -> Sample:
        """Values or differences [arm, unit, column] summed by unit; what is undefined does not count."""
        known = ~np.isnan(each)
        top, bottom = np.where(known, each, 0.0).sum(axis=0), known.sum(axis=0).astype(float)
        return cls(top, bottom, worlds, each=each, reach=reach)

    def minus(self, other: Sample) -> Sample:
        """A statistic of this sample minus that of another, of the same units."""
        top = np.concatenate([self.top, other.top], axis=1)
        bottom = np.concatenate([self.bottom, other.bottom], axis=1)
        return Sample(top, bottom, self.worlds, "shift", reach=self.reach)

    def among(self, units: Mask) -> Sample:
        """The sample in which some units [unit] alone count."""
        top, bottom = (np.where(units[:, None], own, 0.0) for own in (self.top, self.bottom))
        return replace(self, top=top, bottom=bottom, each=None)

    def times(self, scale: float) -> Sample:
        """The sample in another unit."""
        return replace(self, top=scale * self.top, reach=None if self.reach is None else scale * self.reach)

    @property
    def columns(self) -> int:
        """How many statistics it gives."""
        return self.top.shape[1] // (2 if self.kind == "shift" else 1)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many units each world has."""
        return tuple(np.unique(self.worlds, return_counts=True)[1].tolist())


def reach_of(measure: str) -> float:
    """How far a pair can differ in a measure: 1 in one that says yes or no, else 0, not known.

    >>> reach_of("success"), reach_of("collapse_onset<12"), reach_of("accuracy")
    (1.0, 1.0, 0.0)
    """
    return float(YES_OR_NO.fullmatch(measure) is not None)


def sample_of(what: What, arms: Sequence[Floats], worlds: Ints) -> Sample:
    """The sample of a statistic but a track, from the measure of each arm, [unit].

    >>> arms = [np.array([0.5, 1.0]), np.array([0.25, np.nan])]
    >>> sample_of(gain("simple", "periodic"), arms, np.zeros(2, int)).top.tolist()
    [[25.0], [0.0]]
    """
    if what.statistic == "mean":
        return Sample.of_mean(arms[0], worlds, is_share=what.measure == "success")
    differences = [arm - other for arm, other in zip(arms[::2], arms[1::2], strict=True)]
    reach = reach_of(what.measure)
    pairs = [Sample.of_values(own[None, :, None], worlds, reach).times(what.scale) for own in differences]
    return pairs[0] if what.statistic == "gain" else pairs[0].minus(pairs[1])


def estimates_of(
    samples: Sequence[Sample],
    *,
    resamples: int = RESAMPLES,
    null: float = 0.0,
    level: float = LEVEL,
    family: int = 1,
) -> list[Estimate]:
    """Estimate the statistics of samples; those of one kind, with as many units a world, share resamples.

    Args:
        samples: any number, each of any number of columns.
        resamples: of each interval.
        null: what p is against; a mean or a share has no p.
        level: of the raw interval.
        family: comparisons that the adjusted interval and p allow for.

    Returns:
        Of each sample an estimate whose parts are [column]; NaN, but for `n`, where a mean has no unit, or a
        column of any other fewer than `MIN_UNITS`.

    >>> sample = Sample.of_mean(np.array([0.0, 1.0, 1.0, 0.0]), np.zeros(4, int), is_share=True)
    >>> [round(float(estimate.high[0]), 2) for estimate in estimates_of([sample])]
    [0.85]
    """
    estimates = [_unknown(sample) for sample in samples]
    asked = {"null": null, "level": level, "family": family}
    alike: dict[tuple[Kind, tuple[int, ...], float | None], list[int]] = {}
    for place, sample in enumerate(samples):
        if sample.kind == "share" and len(sample.top):
            ends = wilson(int(sample.top.sum()), len(sample.top))
            mean, low, high = np.array(ends[:3])[:, None]
            estimates[place] = estimates[place]._replace(mean=mean, low=low, high=high)
        elif np.count_nonzero(sample.bottom, axis=0).min() >= (1 if sample.kind == "mean" else MIN_UNITS):
            alike.setdefault((sample.kind, sample.sizes, sample.reach), []).append(place)
    for (kind, sizes, reach), places in alike.items():
        for first in range(0, len(places), AT_ONCE):
            some = places[first : first + AT_ONCE]
            settings = asked | {"reach": reach}
            parts = _resampled(kind, sizes, [samples[place] for place in some], resamples, settings)
            for place, estimate in zip(some, parts, strict=True):
                estimates[place] = estimate
    return estimates


def _unknown(sample: Sample) -> Estimate:
    """An estimate that says nothing but how many units there are."""
    counts = np.count_nonzero(sample.bottom, axis=0)
    unknown = np.full(sample.columns, np.nan)
    return Estimate(*[unknown] * 4, counts.reshape(-1, sample.columns).sum(axis=0), *[unknown] * 5)


def _resampled(
    kind: Kind, sizes: tuple[int, ...], samples: Sequence[Sample], resamples: int, asked: Mapping[str, Any]
) -> list[Estimate]:
    """The estimates of samples of one kind, with as many units in each world."""
    worlds = np.repeat(np.arange(len(sizes)), sizes)
    tops, bottoms = [sample.top for sample in samples], [sample.bottom for sample in samples]
    if kind == "mean":
        strata = worlds if len(sizes) > 1 else None
        value, low, high = mean_intervals(
            np.concatenate(tops, axis=1), strata, asked["level"], resamples=resamples
        )
        counts, unknown = np.full(len(value), len(worlds)), np.full(len(value), np.nan)
        whole = Estimate(value, low, high, unknown, counts, *[unknown] * 5)
    else:
        halves = 2 if kind == "shift" else 1
        sides = [[np.split(columns, halves, axis=1) for columns in part] for part in (tops, bottoms)]
        top, bottom = (  # of shifts all that is taken away stands behind
            np.concatenate([own[half] for half in range(halves) for own in part], axis=1) for part in sides
        )
        whole = ratios(top, bottom, worlds, contrasted=kind == "shift", resamples=resamples, **asked)
    past = np.cumsum([sample.columns for sample in samples])
    return [
        Estimate(*(part[last - sample.columns : last] for part in whole))
        for sample, last in zip(samples, past, strict=True)
    ]
