"""What a figure's values are, as data: a statistic of a measure, over policies, worlds and seeds.

An `Asked` says it, and Python and a page find the same number for it: Python by `evaluate`, which runs the
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
from envprobe_core.comparing import STRATA, columns_read, measured
from envprobe_core.conditions import Condition, read_seeds
from envprobe_core.engine.batch import Columns, simulate, simulate_logged
from envprobe_core.estimating import What, estimates_of, sample_of
from envprobe_core.policies import find_policy
from envprobe_core.protocols import parse_protocol
from envprobe_core.statistics import RESAMPLES, mean_track, wilson
from envprobe_core.worlds import find_world
from envprobe_core.worlds.base import Floats
from envprobe_core.zero import zero_accuracy, zero_of

Plain = Mapping[str, Any]
Found = dict[str, Any]
"""`value low high` of an estimate; of a track arrays [time], with `t`."""
BANDS = 1_000  # resamples of a track: its band is read by eye
MEASURES, LOGS, ZERO = "measures", "logs", "zero"  # what is asked of a condition's episodes
KNOBS = ("budget", "threshold", "regime", "horizon", "profile", "protocol")


@dataclass(frozen=True)
class Asked(What):
    """A value of a figure: what is asked of episodes that a page can run.

    Attributes:
        statistic: also `fixed`, a number that nobody moves.
        measure: of a track `accuracy`, or `probe` for the share of episodes that probe at a step.
        arms: plain conditions without a world.
        worlds: whose episodes are pooled.
        found: of what is fixed.
    """

    worlds: tuple[str, ...] = ()
    found: Plain | None = None

    def as_data(self) -> dict[str, Any]:
        """The estimate as a page is given it."""
        arms, worlds = [dict(arm) for arm in self.arms], list(self.worlds)
        said = {"statistic": self.statistic, "measure": self.measure, "arms": arms, "worlds": worlds}
        found = {name: own if math.isfinite(own) else None for name, own in (self.found or {}).items()}
        return said | {"scale": self.scale} | ({"found": found} if found else {})  # JSON has no NaN


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
) -> Asked:
    """The mean of a measure of one policy; `own` is what no reader moves, such as `protocol`.

    >>> mean("simple", "success", "procedural", protocol="paper").worlds
    ('tooldag',)
    """
    ordered = tuple(sorted(_worlds(worlds)))  # as `summarize` resamples them
    return Asked("mean", measure, (_arm(policy, own),), ordered)


def gain(
    arm: str, reference: str, measure: str = "accuracy", worlds: str | Iterable[str] = "combined", **own: Any
) -> Asked:
    """What an arm is ahead of a reference, in points where the measure is a share.

    >>> gain("simple", "periodic", protocol="released").scale
    100.0
    >>> gain("EnvProbe-Simple", "Periodic", worlds="tools", protocol="as written").arms[0]
    {'policy': 'simple', 'protocol': 'paper'}
    """
    return Asked("gain", measure, tuple(_arm(one, own) for one in (arm, reference)), _worlds(worlds))


def shift(arm: str, reference: str, after: Plain, before: Plain, **named: Any) -> Asked:
    """What a gain changes by when the setting turns from `before` to `after`.

    >>> len(shift("simple", "periodic", {"protocol": "paper:clock=stands"}, {"protocol": "paper"}).arms)
    4
    """
    one, other = (gain(arm, reference, **named, **dict(side)) for side in (after, before))
    return Asked("shift", one.measure, one.arms + other.arms, one.worlds)


def steps(arm: str, reference: str, worlds: str | Iterable[str] = "combined", **own: Any) -> Asked:
    """What of a gain in accuracy is there without any answer: between the yoked placebos of two policies.

    >>> steps("voi", "periodic", protocol="paper").arms[0]
    {'policy': 'yoked', 'replays': 'voi', 'protocol': 'paper'}
    """
    arms = tuple(_arm("yoked", {"replays": find_policy(one).name} | own) for one in (arm, reference))
    return Asked("gain", "accuracy", arms, _worlds(worlds))


def answers(arm: str, reference: str, worlds: str | Iterable[str] = "combined", **own: Any) -> Asked:
    """What of a gain in accuracy is answers: the gain minus what is there without them.

    >>> answers("simple", "periodic", protocol="paper").statistic
    'shift'
    """
    whole, without = gain(arm, reference, worlds=worlds, **own), steps(arm, reference, worlds, **own)
    return Asked("shift", "accuracy", whole.arms + without.arms, whole.worlds)


def easing(arm: str, reference: str, worlds: str | Iterable[str] = "combined", **own: Any) -> Asked:
    """What of the steps a table that never changes gains too, as they make episodes easier.

    >>> easing("simple", "periodic", protocol="paper").measure
    'zero'
    """
    return replace(steps(arm, reference, worlds, **own), measure="zero")


def idling(arm: str, reference: str, worlds: str | Iterable[str] = "combined", **own: Any) -> Asked:
    """What of the steps is beyond `easing`; with it and `answers` it adds up to the gain.

    >>> idling("simple", "periodic", protocol="paper").measure
    'accuracy-zero'
    """
    return replace(steps(arm, reference, worlds, **own), measure="accuracy-zero")


def track(
    policy: str, worlds: str | Iterable[str] = "combined", measure: str = "accuracy", **own: Any
) -> Asked:
    """The accuracy of one policy at each step, or with `probe` the share of episodes that probe at it.

    >>> track("simple", "tooldag", protocol="paper").statistic
    'track'
    """
    return Asked("track", measure, (_arm(policy, own),), _worlds(worlds))


def fixed(value: float, low: float = math.nan, high: float = math.nan) -> Asked:
    """A number that stays as it is beside those that move, such as one that the paper prints.

    >>> fixed(6.1, 4.0, 8.2).found
    {'value': 6.1, 'low': 4.0, 'high': 8.2}
    """
    return Asked("fixed", "", (), (), {"value": value, "low": low, "high": high})


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
    estimates: Iterable[Asked], setting: Plain, seeds: str = "default", resamples: int = RESAMPLES
) -> list[Found]:
    """The values of estimates at a setting, each condition run once.

    Raises:
        InputError: for an unknown name, or a value that a condition refuses.

    >>> ahead = gain("simple", "periodic", worlds="procedural", protocol="paper")
    >>> round(evaluate([ahead], {"budget": 7, "threshold": 1.5}, "0:40")[0]["value"], 2)
    -0.46
    """
    asked, seeds_of_all = list(estimates), read_seeds(seeds)
    run: dict[Any, Columns] = {}

    def columns(arm: Plain, world: str, kind: str) -> Columns:
        condition = condition_of(arm, world, setting)
        key = (condition.policy, *condition.key.values(), kind)
        if key not in run:
            own = condition.default_seeds() if seeds_of_all is None else seeds_of_all
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

    ready: dict[int, Found] = {}
    samples = {}
    for place, estimate in enumerate(asked):
        if estimate.statistic == "track":
            logs = [columns(estimate.arms[0], world, LOGS) for world in estimate.worlds]
            ready[place] = _track([log[estimate.measure] for log in logs], estimate.measure, resamples)
        elif estimate.found is None:
            kind = ZERO if ZERO in columns_read([estimate.measure]) else MEASURES
            tables = [[columns(arm, world, kind) for world in estimate.worlds] for arm in estimate.arms]
            arms = [[_measure(estimate.measure, table) for table in of_arm] for of_arm in tables]
            worlds = np.repeat(np.arange(len(estimate.worlds)), [len(values) for values in arms[0]])
            samples[place] = sample_of(estimate, [np.concatenate(values) for values in arms], worlds)
    numbers = estimates_of([*samples.values()], resamples=resamples)
    for place, own in zip(samples, numbers, strict=True):
        ready[place] = {"value": float(own.mean[0]), "low": float(own.low[0]), "high": float(own.high[0])}
    return [_found(estimate, ready.get(place)) for place, estimate in enumerate(asked)]


def _found(estimate: Asked, measured: Found | None) -> Found:
    """What a figure is given: what was measured, or what is fixed."""
    return dict(measured if estimate.found is None else estimate.found)


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
