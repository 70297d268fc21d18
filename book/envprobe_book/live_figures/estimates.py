"""What a figure's values are, as data: a statistic of a measure, over policies, worlds and seeds.

An `Estimate` says it, and Python and a page find the same number for it: Python by `evaluate`, which runs the
core and its statistics, a page by `estimates.js` beside this module, which asks the engine that the page
carries. What an arm leaves open (budget, threshold, regime, profile, protocol) is the setting's, and that is
what a reader moves.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from envprobe_book.page_engine.settings import from_plain
from envprobe_core.comparing import MIN_UNITS, SHARE, STRATA, columns_read, measured
from envprobe_core.conditions import Condition, read_seeds
from envprobe_core.engine.batch import Columns, simulate, simulate_logged
from envprobe_core.policies import find_policy
from envprobe_core.protocols import parse_protocol
from envprobe_core.resampling import HIGH, LOW, MEAN
from envprobe_core.statistics import RESAMPLES, clustered_rate, mean_intervals, mean_track, ratios, wilson
from envprobe_core.worlds import find_world
from envprobe_core.worlds.base import Floats, Ints
from envprobe_core.zero import zero_accuracy, zero_of

Plain = Mapping[str, Any]
Sizes = tuple[int, ...]
"""How many episodes of each world are pooled."""
Found = dict[str, Any]
"""`value low high` of an estimate; of a track arrays [time], with `t`."""
NOTHING: Found = {"value": math.nan, "low": math.nan, "high": math.nan}
BANDS = 1_000  # resamples of a track: its band is read by eye
MEASURES, LOGS, ZERO = "measures", "logs", "zero"  # what is asked of a condition's episodes
KNOBS = ("budget", "threshold", "regime", "horizon", "profile", "protocol")


@dataclass(frozen=True)
class Estimate:
    """A value of a figure.

    Attributes:
        statistic: `mean` of one arm, `gain` of an arm over a reference in pairs of equal world and seed,
            `shift`, a gain minus another one, `track`, a mean at each step, or `fixed`, which nobody moves.
        measure: as in `comparing.measured`; of a track `accuracy`, or `probe` for the share of episodes that
            probe at a step.
        arms: plain conditions without a world, one, two, four or one of them: (arm, reference), and of a
            shift those after the turn and those before it.
        worlds: whose episodes are pooled.
        found: of what is fixed.
    """

    statistic: str
    measure: str
    arms: tuple[Plain, ...]
    worlds: tuple[str, ...]
    found: Plain | None = None

    @property
    def scale(self) -> float:
        """What the statistic is multiplied with: differences of shares are told in points."""
        return 100.0 if self.statistic in ("gain", "shift") and SHARE.fullmatch(self.measure) else 1.0

    def as_data(self) -> dict[str, Any]:
        """The estimate as a page is given it."""
        arms, worlds = [dict(arm) for arm in self.arms], list(self.worlds)
        said = {"statistic": self.statistic, "measure": self.measure, "arms": arms, "worlds": worlds}
        return said | {"scale": self.scale} | ({"found": dict(self.found)} if self.found else {})


def _worlds(given: str | Iterable[str]) -> tuple[str, ...]:
    """The worlds of a stratum's name, of one world's, or of several."""
    if isinstance(given, str) and given in STRATA:
        return STRATA[given]
    return tuple(map(find_world, [given] if isinstance(given, str) else given))


def _arm(policy: str, own: Plain) -> dict[str, Any]:
    """An arm as the page has it: names where titles are given."""
    named = {"policy": find_policy(policy).name, **own}
    if "protocol" in own:
        named["protocol"] = parse_protocol(own["protocol"]).name
    return named


def mean(
    policy: str, measure: str = "accuracy", worlds: str | Iterable[str] = "combined", **own: Any
) -> Estimate:
    """The mean of a measure of one policy; `own` is what no reader moves, such as `protocol`.

    >>> mean("simple", "success", "procedural", protocol="paper").worlds
    ('tooldag',)
    """
    ordered = tuple(sorted(_worlds(worlds)))  # as `summarize` resamples them
    return Estimate("mean", measure, (_arm(policy, own),), ordered)


def gain(
    arm: str, reference: str, measure: str = "accuracy", worlds: str | Iterable[str] = "combined", **own: Any
) -> Estimate:
    """What an arm is ahead of a reference, in points where the measure is a share.

    >>> gain("simple", "periodic", protocol="released").scale
    100.0
    >>> gain("EnvProbe-Simple", "Periodic", worlds="tools", protocol="as written").arms[0]
    {'policy': 'simple', 'protocol': 'paper'}
    """
    return Estimate("gain", measure, tuple(_arm(one, own) for one in (arm, reference)), _worlds(worlds))


def shift(arm: str, reference: str, after: Plain, before: Plain, **named: Any) -> Estimate:
    """What a gain changes by when the setting turns from `before` to `after`.

    >>> len(shift("simple", "periodic", {"protocol": "paper:clock=stands"}, {"protocol": "paper"}).arms)
    4
    """
    one, other = (gain(arm, reference, **named, **dict(side)) for side in (after, before))
    return Estimate("shift", one.measure, one.arms + other.arms, one.worlds)


def steps(arm: str, reference: str, worlds: str | Iterable[str] = "combined", **own: Any) -> Estimate:
    """What of a gain in accuracy is there without any answer: between the yoked placebos of two policies.

    >>> steps("voi", "periodic", protocol="paper").arms[0]
    {'policy': 'yoked', 'replays': 'voi', 'protocol': 'paper'}
    """
    arms = tuple(_arm("yoked", {"replays": find_policy(one).name} | own) for one in (arm, reference))
    return Estimate("gain", "accuracy", arms, _worlds(worlds))


def answers(arm: str, reference: str, worlds: str | Iterable[str] = "combined", **own: Any) -> Estimate:
    """What of a gain in accuracy is answers: the gain minus what is there without them.

    >>> answers("simple", "periodic", protocol="paper").statistic
    'shift'
    """
    whole, without = gain(arm, reference, worlds=worlds, **own), steps(arm, reference, worlds, **own)
    return Estimate("shift", "accuracy", whole.arms + without.arms, whole.worlds)


def idling(arm: str, reference: str, worlds: str | Iterable[str] = "combined", **own: Any) -> Estimate:
    """What of a gain is the steps' beyond easier episodes; these are `gain(..., "zero")`.

    >>> idling("simple", "periodic", protocol="paper").measure
    'accuracy-zero'
    """
    return replace(steps(arm, reference, worlds, **own), measure="accuracy-zero")


def track(
    policy: str, worlds: str | Iterable[str] = "combined", measure: str = "accuracy", **own: Any
) -> Estimate:
    """The accuracy of one policy at each step, or with `probe` the share of episodes that probe at it.

    >>> track("simple", "tooldag", protocol="paper").statistic
    'track'
    """
    return Estimate("track", measure, (_arm(policy, own),), _worlds(worlds))


def fixed(value: float, low: float = math.nan, high: float = math.nan) -> Estimate:
    """A number that stays as it is beside those that move, such as one that the paper prints.

    >>> fixed(6.1, 4.0, 8.2).found
    {'value': 6.1, 'low': 4.0, 'high': 8.2}
    """
    return Estimate("fixed", "", (), (), {"value": value, "low": low, "high": high})


def condition_of(arm: Plain, world: str, setting: Plain) -> Condition:
    """The condition of an arm in a world: its own words, and the setting's where it has none.

    >>> condition_of({"policy": "periodic"}, "tooldag", {"budget": 3, "threshold": 2.0}).budget
    3
    """
    plain = {name: setting[name] for name in KNOBS if setting.get(name) is not None} | dict(arm)
    if not find_policy(plain["policy"]).has_threshold:
        plain.pop("threshold", None)
    return from_plain(plain | {"world": world})


def evaluate(
    estimates: Iterable[Estimate], setting: Plain, seeds: str = "default", resamples: int = RESAMPLES
) -> list[Found]:
    """The values of estimates at a setting, each condition run once.

    Raises:
        InputError: for an unknown name, or a value that a condition refuses.

    >>> ahead = gain("simple", "periodic", worlds="procedural", protocol="paper")
    >>> round(evaluate([ahead], {"budget": 7, "threshold": 1.5}, "0:40")[0]["value"], 2)
    -0.46
    """
    asked, given = list(estimates), read_seeds(seeds)
    run: dict[Any, Columns] = {}

    def columns(arm: Plain, world: str, kind: str) -> Columns:
        condition = condition_of(arm, world, setting)
        key = (condition.policy, *condition.key.values(), kind)
        if key not in run:
            own = condition.default_seeds() if given is None else given
            if kind == MEASURES:
                found = simulate(condition, own)
            else:
                logs = simulate_logged(condition, own, scores_all=False)
                found = logs.measures if kind == ZERO else {"accuracy": logs.accuracy, "probe": logs.probe}
            if kind == ZERO:
                found = found | {ZERO: zero_accuracy(condition, zero_of(condition), logs)}
            if kind != LOGS:
                same = {"budget": condition.budget_in_force, "horizon": condition.regime.horizon}
                found = found | {name: np.full(len(own), value) for name, value in same.items()}
            run[key] = found
        return run[key]

    found: list[Found] = []
    pairs: dict[Sizes, list[tuple[Found, Floats, Floats]]] = {}
    means: dict[Sizes, list[tuple[Found, Floats]]] = {}
    for one in asked:
        if one.statistic not in ("gain", "mean"):
            found.append(_found(one, columns, resamples))
            continue
        found.append(own := dict(NOTHING))
        sizes, arms = _values(one, columns)
        if one.statistic == "gain":
            top, counts = _differences(*arms, one.scale)
            if counts.sum() >= MIN_UNITS:
                pairs.setdefault(sizes, []).append((own, top, counts))
            continue
        known = ~np.isnan(arms[0])
        values = arms[0][known]
        if one.measure == "success" and len(values):  # Wilson's interval, as in `summarize`
            _keep([own], *([end] for end in wilson(int(values.sum()), len(values))[:3]))
        elif len(values):
            kept = np.bincount(_labels(sizes)[known], minlength=len(sizes))
            means.setdefault(tuple(kept[kept > 0].tolist()), []).append((own, values))
    # what is resampled over as many episodes shares its resamples: many estimates cost few draws
    for sizes, gains in pairs.items():
        tops, counts = (np.stack(own, axis=1) for own in list(zip(*gains, strict=True))[1:])
        rates = clustered_rate(tops, counts, _labels(sizes), resamples=resamples)
        _keep([own for own, *_ in gains], rates.mean, rates.low, rates.high)
    for sizes, group in means.items():
        strata = _labels(sizes) if len(sizes) > 1 else None
        table = np.stack([values for _, values in group], axis=1)
        _keep([own for own, _ in group], *mean_intervals(table, strata, resamples=resamples))
    return found


def _keep(found: list[Found], *ends: Any) -> None:
    """Write value, low and high, [estimate] each, into what was found."""
    for own, *three in zip(found, *ends, strict=True):
        own.update(zip(("value", "low", "high"), map(float, three), strict=True))


def _values(estimate: Estimate, columns: Any) -> tuple[Sizes, list[Floats]]:
    """How many episodes each world has, and the measure of each arm, world after world, [row]."""
    kind = ZERO if ZERO in columns_read([estimate.measure]) else MEASURES
    arms = [
        [_measure(estimate.measure, columns(arm, world, kind)) for world in estimate.worlds]
        for arm in estimate.arms
    ]
    return tuple(len(own) for own in arms[0]), [np.concatenate(own) for own in arms]


def _labels(sizes: Sizes) -> Ints:
    return np.repeat(np.arange(len(sizes)), sizes)


def _found(estimate: Estimate, columns: Any, resamples: int) -> Found:
    if estimate.found is not None:
        return dict(estimate.found)
    if estimate.statistic == "track":
        tables = [columns(estimate.arms[0], world, LOGS)[estimate.measure] for world in estimate.worlds]
        return _track(tables, estimate.measure, resamples)
    sizes, arms = _values(estimate, columns)
    return _shift(arms, _labels(sizes), estimate.scale, resamples)


def _track(tables: list[Any], measure: str, resamples: int) -> Found:
    """The track of some worlds' episodes, [row, time] each; a share of probes has Wilson's intervals."""
    joined = np.concatenate(tables)
    if measure == "probe":
        shares = [wilson(int(fired), len(joined)) for fired in (joined >= 0).sum(axis=0)]
        ends = {name: np.array([getattr(one, name) for one in shares]) for name in ("value", "low", "high")}
        return {"t": np.arange(len(shares))} | ends
    labels = np.repeat(np.arange(len(tables)), [len(own) for own in tables])
    found = mean_track(joined, min(BANDS, resamples), labels if len(tables) > 1 else None)
    return {"t": found["t"], "value": found["accuracy"], "low": found["low"], "high": found["high"]}


def _measure(text: str, table: Columns) -> Floats:
    """A measure of some episodes, [row]; see `measured`."""
    read = {name: np.asarray(table[name], dtype=np.float64) for name in columns_read([text])}
    return np.asarray(measured(text, read.__getitem__), dtype=np.float64)


def _differences(one: Floats, other: Floats, scale: float) -> tuple[Floats, Floats]:
    """The differences of pairs, 0 where one side is unknown, and which pairs count, [row] each."""
    each = one - other
    known = ~np.isnan(each)
    return scale * np.where(known, each, 0.0), known.astype(float)


def _shift(arms: list[Floats], labels: Ints, scale: float, resamples: int) -> Found:
    """The change of a gain; a resample draws the same seeds on both sides."""
    pairs = (_differences(*arms[:2], scale), _differences(*arms[2:], scale))
    tops, counts = (np.stack(columns, axis=1) for columns in zip(*pairs, strict=True))
    if counts.sum(axis=0).min() < MIN_UNITS:
        return NOTHING
    found = ratios(tops, counts, labels, contrasted=True, resamples=resamples)
    return {name: float(found[part, 0]) for name, part in (("value", MEAN), ("low", LOW), ("high", HIGH))}
