"""What an episode was worth under a protocol's rules (Section 6.1, Metrics; book/definitions.md)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from envprobe_core import worlds
from envprobe_core.engine.compiling import apart, compiled
from envprobe_core.engine.noise import U, numbered
from envprobe_core.engine.records import NONE, UNKNOWN

COLLAPSE = 0.6  # tau_c and tau_d: the first A_t below this
DIGEST_KEY = U(0x456E7650726F6265)


class Scoring(NamedTuple):
    """The switches that act on a recorded episode."""

    by_slots: bool  # A_H is the public code's mean overlap
    lagged: bool  # b_(t-1) is scored against g_t
    two_below: bool  # collapse needs two in a row
    values_match: bool  # a tool value as the agent writes it can match gold
    keeps_open: bool  # the agent keeps its list of open tools
    bare: bool  # it writes as the scribe does: the target as open, held objects at no place, no subgoals
    lists_all: bool  # but every tool as open while it sees none loaded
    two_invalid: bool  # drift of actions is two steps in a row without a valid one


@apart
def measure(setting, log, m):
    """Fill in the measures of a recorded episode, and how right its beliefs were at each time.

    Of the measures, steps and success are given.
    """
    world, scoring, fields = setting.world, setting.scoring, count_fields(setting.world, log)
    steps = m.steps
    for t in range(steps + 1):
        compare(world, scoring, log, t, fields)
    m.accuracy_terminal = log[steps].right / fields
    m.accuracy_slot = mean_overlap(log, steps)
    m.accuracy = m.accuracy_slot if scoring.by_slots else log[steps].accuracy
    m.collapse_onset = collapse_onset(scoring, log, steps)
    m.digest = digest(setting.protocol.horizon, log, steps)
    count_actions(log, steps, m)
    if scoring.two_invalid:
        m.action_onset = two_invalid(log, steps)


@compiled
def count_fields(world, log):
    """Count the fields that the instance has."""
    fields = 0
    for field in range(world.fields):
        fields += log[0].gold[field] != UNKNOWN
    return fields


@compiled
def compare(world, scoring, log, t, fields):
    """Compare beliefs with gold at a time: how many are right, A_t, and the overlap of slots."""
    now, before = log[t], log[t - 1 if scoring.lagged and t > 0 else t]
    now.right = count_right(world, now.belief, now.gold)
    now.overlap = worlds.overlap(
        world, before.belief, now.gold, log[0].gold, before.place == now.place, scoring
    )
    if scoring.by_slots:
        now.accuracy = now.overlap
    elif scoring.lagged:
        now.accuracy = count_right(world, before.belief, now.gold) / fields
    else:
        now.accuracy = now.right / fields


@compiled
def count_right(world, belief, gold):
    """Count the fields believed right."""
    right = 0
    for field in range(world.fields):
        right += (belief[field] == gold[field]) & (gold[field] != UNKNOWN)
    return right


@compiled
def mean_overlap(log, steps):
    """Return the mean overlap of slots over the executed steps."""
    total = 0.0
    for t in range(1, steps + 1):
        total += log[t].overlap
    return total / max(steps, 1)


@compiled
def collapse_onset(scoring, log, steps):
    """Return the first time accuracy is below .6 (tau_c), or of two in a row; NaN where it never is."""
    for t in range(1 if scoring.by_slots else 0, steps + 1):
        below_next = t == steps or log[t + 1].accuracy < COLLAPSE
        if log[t].accuracy < COLLAPSE and (below_next or not scoring.two_below):
            return float(t)
    return np.nan


@compiled
def two_invalid(log, steps):
    """Return the step, counted from 1, from which two in a row have no valid task action; NaN if none."""
    for t in range(steps - 1):
        if not log[t].valid and not log[t + 1].valid:
            return float(t + 1)
    return np.nan


@compiled
def count_actions(log, steps, m):
    """Count probes, task actions and the valid ones, and find when too few are valid (tau_d)."""
    probes = useful = actions = valid_actions = repeated = 0
    m.action_onset = np.nan
    for t in range(steps):
        actions += log[t].acted
        valid_actions += log[t].valid
        if log[t].acted and np.isnan(m.action_onset) and valid_actions < COLLAPSE * actions:
            m.action_onset = t
        useful += log[t].useful
        if log[t].probe != NONE:
            probes += 1
            repeated += probed_before(log, t)
    m.probes, m.useful, m.repeated_probes = probes, useful, repeated
    m.actions, m.valid_actions = actions, valid_actions


@compiled
def probed_before(log, t):
    """Say whether the field probed at a step was probed at an earlier one."""
    for earlier in range(t):  # noqa: SIM110  (Numba compiles no generators here)
        if log[earlier].probe == log[t].probe:
            return True
    return False


@compiled
def digest(horizon, log, steps):
    """Condense right fields by time and probes by step into 64 bits.

    The sum modulo 2**64 of (right + 1) times a word of its time, over t = 0..steps, and of (field + 2) times
    a word of its step, over t = 0..steps - 1 (no probe is field -1).
    """
    total = U(0)
    for t in range(steps + 1):
        total += U(log[t].right + 1) * numbered(DIGEST_KEY, t)
    for t in range(steps):
        total += U(log[t].probe + 2) * numbered(DIGEST_KEY, horizon + 1 + t)
    return total
