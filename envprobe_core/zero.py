"""A zero for belief accuracy: what a table scores that was written before an episode begins (ours).

The table holds one value a field and never changes. Of all such tables the *zero* of a condition is the best:
it has the highest mean accuracy, by the protocol's own measure, on reference episodes of the same condition.
These have seeds that no page shows, so the table is not fitted to what it is compared with. An accuracy below
its zero is that of an agent who would have been right more often without looking at the world at all. A
forecast is measured against climatology in the same way (Murphy, 1988).

Beside it stands what an agent's steps alone are worth: the *yoked placebo* probes the same fields at the same
steps of the same episodes, and is not answered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np

from envprobe_core.conditions import Condition, Seeds, parse_seeds
from envprobe_core.engine.batch import Trajectory, kernel_params, room_for_logs, scored, simulate_logged
from envprobe_core.engine.records import UNKNOWN
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import turned
from envprobe_core.worlds.base import Floats, Ints, Mask, Values

REFERENCE = parse_seeds("800000:800500")
"""The seeds of the episodes that a zero's table is learned from; no page shows one of them."""
LEAST_ROOM = 0.1  # below a zero of .9, a skill says something
MOST_TABLES = 1024  # so many are all tried; of more, those that climb from two starts
RISE = 1e-12  # of a mean accuracy, which rounding does not make


@dataclass(frozen=True)
class Zero:
    """A table that never changes, and in rooms the place that it names."""

    table: Values  # [field], never unknown
    place: int


# scores of a table that never changes


def zero_track(condition: Condition, zero: Zero, recording: Trajectory) -> Floats:
    """The accuracy of a table that never changes, [row, time]: A_t as the protocol measures it.

    NaN behind an episode's end and, where accuracy is an overlap of slots, at the first time.

    >>> from envprobe_core.conditions import make_condition
    >>> condition = make_condition("tooldag", "simple")
    >>> zero_track(condition, zero_of(condition), simulate_logged(condition, np.arange(2))).shape
    (2, 31)
    """
    gold, steps = recording.gold, recording.steps.astype(np.int64)
    track, times = np.full(gold.shape[:2], np.nan), np.arange(gold.shape[1])
    if condition.protocol.accuracy == "slots":
        row, time = np.nonzero((times >= 1) & (times <= steps[:, None]))
        measure = _overlaps(condition, gold[row, time], gold[row, 0], recording.place[row, time], zero.place)
        track[row, time] = measure(zero.table)
        return track
    known = gold != UNKNOWN
    track = ((gold == zero.table) & known).sum(axis=2) / known.sum(axis=2)
    track[times > steps[:, None]] = np.nan
    return track


def zero_accuracy(condition: Condition, zero: Zero, recording: Trajectory) -> Floats:
    """The accuracy of a table that never changes in recorded episodes, [row], by the protocol's own measure.

    >>> from envprobe_core.conditions import make_condition
    >>> condition = make_condition("tooldag", "simple")
    >>> recording = simulate_logged(condition, np.arange(220))
    >>> float(zero_accuracy(condition, zero_of(condition), recording).mean().round(4))
    0.7914
    """
    track, steps = zero_track(condition, zero, recording), recording.steps.astype(np.int64)
    if condition.protocol.accuracy == "slots":
        return np.nansum(track, axis=1) / np.maximum(steps, 1)
    return track[np.arange(len(track)), steps]


def logged_accuracy(condition: Condition, zero: Zero, recording: Trajectory) -> Floats:
    """The share of fields right at the end, [row], of a table that never changes but for the agent's own log.

    The log tells what the agent's actions alone change: where it stands, what it holds, which calls it has
    completed. An agent that keeps a log and never looks at the world has such a table.

    >>> from envprobe_core.conditions import make_condition
    >>> condition = make_condition("tooldag", "simple")
    >>> recording = simulate_logged(condition, np.arange(220))
    >>> float(logged_accuracy(condition, zero_of(condition), recording).mean().round(2))
    0.9
    """
    gold = recording.gold[np.arange(len(recording.steps)), recording.steps.astype(np.int64)]
    table, known = np.where(_in_log(condition, gold), gold, zero.table), gold != UNKNOWN
    return ((table == gold) & known).sum(axis=1) / known.sum(axis=1)


def _in_log(condition: Condition, gold: Values) -> Mask:
    """Which fields an agent knows from its own actions, [row, field]; none in a world from outside."""
    rules, own = condition.built.rules, np.zeros(gold.shape, bool)
    if condition.world == "tooldag":
        own[:, rules.tools - 1] = True  # the target is never lost
        own[:, 2 * rules.tools :] = True
    elif condition.world == "objectstate":
        own[:, rules.held :] = True
        own[:, : rules.objects] = gold[:, rules.held :] == 1
    elif condition.world == "graphnav":
        own[:, 0] = True
        own[:, 1 : 1 + rules.keys] = gold[:, 1 : 1 + rules.keys] == rules.nodes
    return own


def skill(accuracy: Floats, zero: Floats) -> float:
    """The share of what a zero leaves open that an accuracy reaches, both [row]: (A - A0) / (1 - A0).

    NaN where the zero leaves less than a tenth open: then a small difference makes any skill.

    >>> round(skill(np.array([0.8]), np.array([0.6])), 2)
    0.5
    """
    room = 1 - float(np.mean(zero))
    return (float(np.mean(accuracy)) - float(np.mean(zero))) / room if room >= LEAST_ROOM else np.nan


def _overlaps(
    condition: Condition, gold: Values, first: Values, places: Values, place: int
) -> Callable[[Values], Floats]:
    """What gives the overlap of a table [field] with each of some states, gold [state, field].

    It is what the engine scores of an episode of one step, in which the table is written before that step
    and the place that it names is where the agent stood: no formula stands here a second time.

    Args:
        condition: whose slots.
        gold: [state, field].
        first: the first state of each one's episode, [state, field].
        places: where the agent is, [state].
        place: where the table says that it is.
    """
    protocol = turned(condition.protocol, accuracy="slots", pairing="lagged")
    params, width = kernel_params(replace(condition, protocol=protocol)), gold.shape[1]
    logs, once, never = room_for_logs(1, len(gold)), np.ones(len(gold), np.int64), np.zeros(len(gold), bool)
    logs["gold"][:, 0, :width], logs["gold"][:, 1, :width] = first, gold
    logs["place"][:, 0], logs["place"][:, 1] = place, places

    def overlap(table: Values) -> Floats:
        logs["belief"][:, :, :width] = table
        return scored(params, logs, once, never).measures["accuracy_slot"]

    return overlap


# the best of all tables


@lru_cache(4096)
def zero_of(condition: Condition) -> Zero:
    """The zero of a condition, learned from its reference episodes.

    >>> from envprobe_core.conditions import make_condition
    >>> zero_of(make_condition("tooldag", "no-probe")).table[:9].tolist()  # no tool is loaded
    [0, 0, 0, 0, 0, 0, 0, 0, 0]
    """
    return best_table(condition, simulate_logged(condition, REFERENCE, scores_all=False))


@lru_cache(4096)
def placebo_zero_of(condition: Condition) -> Zero:
    """The zero of a condition's yoked placebo, learned from the placebo's reference episodes.

    >>> from envprobe_core.conditions import make_condition
    >>> placebo_zero_of(make_condition("tooldag", "simple")).table[:3].tolist()
    [0, 0, 0]
    """
    return best_table(condition, yoked(condition, REFERENCE))


def yoked(condition: Condition, seeds: Seeds, recording: Trajectory | None = None) -> Trajectory:
    """The yoked placebo of a condition: the probes of its own episodes on the same seeds, without answers.

    Args:
        condition: whose probes are repeated.
        seeds: [row].
        recording: the condition's own episodes on these seeds; by default they are run.

    >>> from envprobe_core.conditions import make_condition
    >>> yoked(make_condition("tooldag", "voi"), np.arange(3)).measures["probes"].tolist()
    [7, 7, 7]
    """
    if recording is None:
        recording = simulate_logged(condition, seeds, scores_all=False)
    # an agent whose errors are keyed by its policy errs as it did
    placebo = replace(POLICIES["yoked"], name=condition.policy.name)
    alike = replace(condition, policy=placebo, threshold=None)
    probes = np.ascontiguousarray(recording.probe, dtype=np.int64)
    return simulate_logged(alike, seeds, scores_all=False, schedules=probes)


def best_table(condition: Condition, recording: Trajectory) -> Zero:
    """The table that never changes and has the highest mean accuracy in recorded episodes.

    Where each field counts by itself, it holds each one's most frequent value. Where a part of the overlap
    of slots reads several fields at once, as Jaccard's index of a list does, tables are tried: all of them
    if they are few, else changes of one field at a time from two starts, which may end below the best.

    >>> from envprobe_core.conditions import make_condition
    >>> condition = make_condition("tooldag", "simple")
    >>> best_table(condition, simulate_logged(condition, np.arange(50))).table[:9].tolist()
    [0, 0, 0, 0, 0, 0, 0, 0, 0]
    """
    if condition.protocol.accuracy != "slots":
        last = recording.gold[np.arange(len(recording.steps)), recording.steps.astype(np.int64)]
        return Zero(_modes(last, 1 / (last != UNKNOWN).sum(axis=1)), 0)
    steps, times = recording.steps.astype(np.int64), np.arange(recording.gold.shape[1])
    row, time = np.nonzero((times >= 1) & (times <= steps[:, None]))
    gold, first, places = recording.gold[row, time], recording.gold[row, 0], recording.place[row, time]
    weight = 1 / (len(steps) * steps[row])
    table, (single, joint) = np.zeros(gold.shape[1], np.int8), _slots(condition)
    for part in single:
        own = gold[:, part]
        table[part] = _modes(own, weight / (own != UNKNOWN).sum(axis=1))
    table[joint] = _modes(gold[:, joint], weight)
    place = int(np.bincount(places, weight).argmax())
    return Zero(_climbed(condition, table, joint, gold, first, weight), place)


def _modes(gold: Values, weight: Floats) -> Values:
    """The value of each field with the greatest weight, [field]; of several the lowest, and never UNKNOWN."""
    values = np.arange(max(int(gold.max(initial=0)), 0) + 1)
    sums = np.stack([weight @ (gold == value) for value in values])
    return sums.argmax(axis=0).astype(np.int8)


def _slots(condition: Condition) -> tuple[tuple[slice, ...], slice]:
    """The fields that slots read one by one, in parts that weigh alike, and those that are read together."""
    rules, fields = condition.built.rules, condition.built.fields
    if condition.world == "tooldag":  # the tools that are loaded; the other fields are in no slot
        return (slice(rules.tools, fields),), slice(0, rules.tools)
    if (
        condition.world == "objectstate" and not condition.profile.scribe
    ):  # who names no place of what is held
        return (slice(0, rules.objects),), slice(rules.objects, fields)
    if condition.world == "graphnav":
        return (slice(0, 1), slice(1 + rules.keys, fields)), slice(1, 1 + rules.keys)
    return (), slice(0, fields)


def _climbed(
    condition: Condition, table: Values, joint: slice, gold: Values, first: Values, weight: Floats
) -> Values:
    """A table whose joint fields have the values of the highest mean overlap, as far as the search finds."""
    fields = np.arange(len(table))[joint]
    # states that look alike to what reads these fields are one; all else adds the same to every table
    states = np.concatenate([gold[:, joint], first[:, joint]], axis=1)
    states, alike = np.unique(states, axis=0, return_inverse=True)
    sums = np.bincount(alike.ravel(), weight)
    seen, began = np.zeros((2, len(states), len(table)), np.int8)
    seen[:, joint], began[:, joint] = np.split(states, 2, axis=1)
    overlap = _overlaps(condition, seen, began, np.zeros(len(states), np.int8), 0)

    def mean(values: Values) -> float:
        tried = np.zeros(len(table), np.int8)
        tried[joint] = values
        return float(overlap(tried) @ sums)

    domain = condition.built.domain[fields].astype(int)
    if np.prod(domain.astype(float)) <= MOST_TABLES:
        best = max((np.array(values, np.int8) for values in product(*map(range, domain))), key=mean)
    else:
        starts = (table[joint].copy(), np.zeros(len(fields), np.int8))
        best = max((_ascent(mean, start, domain) for start in starts), key=mean)
    found = table.copy()
    found[joint] = best
    return found


def _ascent(mean: Callable[[Values], float], values: Values, domain: Ints) -> Values:
    """Values [field] that no change of one of them improves, reached from those given."""
    best = mean(values)
    while True:
        before = best
        for place, count in enumerate(domain):
            for value in range(count):
                tried = values.copy()
                tried[place] = value
                if (found := mean(tried)) > best + RISE:
                    best, values = found, tried
        if best == before:
            return values
