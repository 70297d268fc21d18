"""What an episode was worth under a protocol's rules (Section 6.1, Metrics; book/definitions.md)."""

import numpy as np

from envprobe_core import released
from envprobe_core.compiled.noise import numbered, u64
from envprobe_core.compiled.numba_support import helper, inline
from envprobe_core.compiled.records import CODE, NONE, TEXT, UNKNOWN

COLLAPSE = 0.6  # tau_c and tau_d: the first A_t below this
DIGEST_KEY = u64(0x456E7650726F6265)


@helper
def measure(params, log, m):
    """Fill in the measures of a recorded episode, and how right its beliefs were at each time.

    Of the measures, steps and success are given.
    """
    world, protocol, steps, fields, overlaps = params.world, params.protocol, m.steps, 0, 0.0
    for field in range(world.fields):
        fields += log[0].gold[field] != UNKNOWN
    for t in range(steps + 1):
        compare(params, log, t, fields)
        overlaps += log[t].overlap if t > 0 else 0.0
    m.accuracy_terminal = log[steps].right / fields
    m.accuracy_slot = overlaps / max(steps, 1)
    m.accuracy = m.accuracy_slot if protocol.accuracy == CODE else log[steps].accuracy
    m.collapse_onset = collapse_onset(protocol, log, steps)
    m.digest = digest(protocol.horizon, log, steps)
    count_actions(protocol, log, steps, m)


@inline
def compare(params, log, t, fields):
    """Compare beliefs with gold at a time: how many are right, A_t, and the overlap of slots."""
    world, protocol = params.world, params.protocol
    now, before = log[t], log[t - 1 if protocol.pairing == CODE and t > 0 else t]
    now.right = count_right(world, now.belief, now.gold)
    stayed = before.place == now.place
    now.overlap = released.overlap(
        world, protocol, params.habits, before.belief, now.gold, log[0].gold, stayed
    )
    now.accuracy = now.right / fields
    if protocol.accuracy == CODE:
        now.accuracy = now.overlap
    elif protocol.pairing == CODE:
        now.accuracy = count_right(world, before.belief, now.gold) / fields


@inline
def count_right(world, belief, gold):
    """Count the fields believed right."""
    right = 0
    for field in range(world.fields):
        right += (belief[field] == gold[field]) & (gold[field] != UNKNOWN)
    return right


@inline
def collapse_onset(protocol, log, steps):
    """The first time accuracy is below .6 (tau_c), or of two in a row; NaN where it never is."""
    for t in range(1 if protocol.accuracy == CODE else 0, steps + 1):
        below_next = t == steps or log[t + 1].accuracy < COLLAPSE
        if log[t].accuracy < COLLAPSE and (below_next or protocol.onset == TEXT):
            return float(t)
    return np.nan


@inline
def count_actions(protocol, log, steps, m):
    """Count probes, task actions and the valid ones, and find when too few are valid (tau_d).

    That is where the share of valid ones falls below .6, or, counted from 1, where two steps have none.
    """
    probes = useful = actions = valid_actions = repeated = 0
    m.action_onset = np.nan
    for t in range(steps):
        actions += log[t].acted
        valid_actions += log[t].valid
        useful += log[t].useful
        if log[t].probe != NONE:
            probes += 1
            for earlier in range(t):
                if log[earlier].probe == log[t].probe:
                    repeated += 1
                    break
        if np.isnan(m.action_onset):
            if protocol.actions == CODE:
                if t + 1 < steps and not log[t].valid and not log[t + 1].valid:
                    m.action_onset = t + 1
            elif log[t].acted and valid_actions < COLLAPSE * actions:
                m.action_onset = t
    m.probes, m.useful, m.repeated_probes = probes, useful, repeated
    m.actions, m.valid_actions = actions, valid_actions


@inline
def digest(horizon, log, steps):
    """Condense right fields by time and probes by step into 64 bits.

    The sum modulo 2**64 of (right + 1) times a word of its time, over t = 0..steps, and of (field + 2) times
    a word of its step, over t = 0..steps - 1 (no probe is field -1).
    """
    total = u64(0)
    for t in range(steps + 1):
        total += u64(log[t].right + 1) * numbered(DIGEST_KEY, t)
    for t in range(steps):
        total += u64(log[t].probe + 2) * numbered(DIGEST_KEY, horizon + 1 + t)
    return total
