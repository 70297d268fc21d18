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

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from envprobe_core.compiled.numba_support import announced
from envprobe_core.compiled.records import FIELDS, UNKNOWN
from envprobe_core.conditions import RESERVED, Condition, Seeds
from envprobe_core.constant import VALUES, constant
from envprobe_core.engine.batch import Trajectory, kernel_params, simulate_logged
from envprobe_core.policies import POLICIES
from envprobe_core.worlds import MODULES
from envprobe_core.worlds.base import Floats, Mask, Values

REFERENCE = np.arange(RESERVED.start, RESERVED.stop, dtype=np.int64)
"""The seeds of the episodes that a zero's table is learned from; no page shows one of them."""
LEAST_ROOM = 0.1  # below a zero of .9, a skill says something
ABOUT_SECONDS = 3  # to compile what finds a table, on a machine of today


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
    return _constant(condition, None, recording, zero)[2]


def zero_accuracy(condition: Condition, zero: Zero, recording: Trajectory) -> Floats:
    """The accuracy of a table that never changes in recorded episodes, [row], by the protocol's own measure.

    >>> from envprobe_core.conditions import make_condition
    >>> condition = make_condition("tooldag", "simple")
    >>> recording = simulate_logged(condition, np.arange(220))
    >>> float(zero_accuracy(condition, zero_of(condition), recording).mean().round(4))
    0.7914
    """
    return _constant(condition, None, recording, zero)[1]


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
    return _constant(condition, recording, None)[0]


def _constant(
    condition: Condition, learned: Trajectory | None, own: Trajectory | None, zero: Zero | None = None
) -> tuple[Zero, Floats, Floats]:
    """The best table of some episodes, or the one given, and what it scores in others, as `constant` says."""
    width, table = condition.built.fields, np.zeros(FIELDS + 1, np.int64)
    if zero is not None:
        table[:width], table[width] = zero.table, zero.place
    parts = [_arrays(width, one) for one in (learned, own)]
    found, track = np.empty(len(parts[1][0])), np.empty(parts[1][1].shape)
    scratch = np.zeros((3, FIELDS), np.int64), np.zeros((FIELDS + 1, VALUES))
    with announced(f"zeros of {MODULES[condition.world].TITLE}", ABOUT_SECONDS):
        constant(kernel_params(condition), *parts[0], *parts[1], table, found, track, *scratch)
    return Zero(table[:width].astype(np.int8), int(table[width])), found, track


def _arrays(width: int, recording: Trajectory | None) -> tuple[Values, Values, Seeds]:
    """What a table is compared with in some episodes, or in none: gold, places and last times."""
    if recording is None:
        return np.zeros((0, 1, width), np.int8), np.zeros((0, 1), np.int8), np.zeros(0, np.int64)
    gold, place = (np.ascontiguousarray(one, np.int8) for one in (recording.gold, recording.place))
    return gold, place, recording.steps.astype(np.int64)


def logged_accuracy(condition: Condition, zero: Zero, recording: Trajectory) -> Floats:
    """The share of fields right at the end, [row], of a table that never changes but for the agent's own log.

    The log tells what the agent's actions alone change: where it stands, what it holds, which calls it has
    completed. An agent that keeps a log and never looks at the world has such a table.

    >>> from envprobe_core.conditions import make_condition
    >>> condition = make_condition("tooldag", "simple")
    >>> recording = simulate_logged(condition, np.arange(220))
    >>> float(logged_accuracy(condition, zero_of(condition), recording).mean().round(2))
    0.92
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


# the zero of a condition, and its yoked placebo


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
