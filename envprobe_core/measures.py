"""The paper's measures as pure functions on recorded arrays: accuracy, probes, and what confidence says.

Section 6.1 of the paper (Metrics) and book/definitions.md. Two conditionals come from the same counts:
Pr(wrong | conf >= .7), the paper's canonical p_cw (`tab:pcw_audit`), and Pr(conf >= .7 | wrong), which its
miscoverage proposition needs. All four estimators of that table are per-episode counts, so that a rate is a
sum over a sum and its interval is clustered by episode.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from envprobe_core.compiled.records import UNKNOWN, WAIT
from envprobe_core.conditions import Condition
from envprobe_core.engine.batch import Reports, Trajectory
from envprobe_core.errors import InputError
from envprobe_core.protocols import Protocol
from envprobe_core.worlds.base import Floats, Ints, Mask, Values

CONFIDENT = 70  # percent, Table "p_cw estimator audit"
REPORTING = ("simple", "oracle")  # the conditions in which the public code compares reports with gold


def is_played(invalid_share: Floats) -> Mask:
    """Whether an episode is one, [row]: a model none of whose belief updates could be read has played none.

    It waited to the end, on the beliefs it was given: where these were the truth, it would look perfect.

    >>> is_played(np.array([0.0, 0.95, 1.0])).tolist()
    [True, True, False]
    """
    return invalid_share < 1.0


# tracks and probes


def count_true(members: Mask) -> Ints:
    """Count the true members [..., member] of up to 127; much faster than `sum` along a short axis.

    >>> count_true(np.array([[True, False, True]])).tolist()
    [2]
    """
    return np.einsum("...i->...", np.ascontiguousarray(members).view(np.int8)).astype(np.int64)


def right_fields(belief: Values, gold: Values) -> Ints:
    """Count the fields believed right, n A_t, [row, time]: b_t against g_t, both [row, time, field].

    An unknown value (-1) matches nothing, so that a field that the instance lacks is never right.

    >>> right_fields(np.array([[[1, 0, -1]]]), np.array([[[1, 1, -1]]])).tolist()
    [[1]]
    """
    return count_true((belief == gold) & (gold != UNKNOWN))


def step_accuracy(recording: Trajectory, protocol: Protocol) -> Floats:
    """The accuracy that belongs to the beliefs held at each time, [row, time].

    The track whose fall is called collapse or drift. Under lagged pairing a belief is scored one step later,
    so the track moves one step forward and its last time is left out.

    >>> from envprobe_core.conditions import make_condition
    >>> from envprobe_core.engine.batch import simulate_logged
    >>> condition = make_condition("tooldag", "simple")
    >>> track = step_accuracy(simulate_logged(condition, np.arange(2)), condition.protocol)
    >>> track.shape, track[:, 0].tolist()
    ((2, 31), [1.0, 1.0])
    """
    return recording.accuracy[:, 1:] if protocol.pairing == "lagged" else recording.accuracy


# beliefs and confidence


class Held(NamedTuple):
    """Beliefs beside the gold values that a protocol compares them with."""

    belief: Values  # [row, time, field]
    gold: Values
    confidence: Reports  # percent
    counted: Mask  # [row, time], whether the time belongs to the episode


def held_beliefs(trajectory: Trajectory, protocol: Protocol) -> Held:
    """Pair every belief with gold as the protocol's switch `pairing` says.

    `same-step`: b_t with g_t at t = 0..T, after the agent's update. `lagged`: the belief before an action
    with gold after that action and mutation, b_(t-1) with g_t at t = 1..T. T is the executed steps. The
    other scoring switches (slots, encoding) do not act here: a belief is one field of the table.

    >>> from envprobe_core.conditions import make_condition
    >>> from envprobe_core.engine.batch import simulate_logged
    >>> condition = make_condition("tooldag", "simple")
    >>> held = held_beliefs(simulate_logged(condition, np.arange(2)), condition.protocol)
    >>> held.counted.sum(axis=1).tolist()
    [31, 31]
    """
    belief, gold, confidence = trajectory.belief, trajectory.gold, trajectory.confidence
    last = trajectory.steps
    if protocol.pairing == "lagged":
        belief, gold, confidence, last = belief[:, :-1], gold[:, 1:], confidence[:, :-1], last - 1
    times = np.arange(belief.shape[1])
    return Held(belief, gold, confidence, times[None, :] <= last[:, None])


def wrong_anywhere(condition: Condition, held: Held, action: npt.NDArray[np.integer]) -> Mask:
    """Which reports the public code calls wrong, [row, time, field].

    A report about a field is wrong where what its text names differs from gold, or else where anything
    does: the number of loaded tools; any location, lock or thing held; any edge.

    Args:
        condition: its world says what a field is, its profile what a report names.
        held: beliefs and gold, [row, time, field].
        action: the task actions proposed at the same times, [row, time]; the scribe's report names them.
    """
    belief, gold, rules = held.belief, held.gold, condition.built.rules
    differs = belief != gold
    if condition.world == "tooldag":
        tools = rules.tools
        loaded, is_loaded = belief[..., :tools] == 1, gold[..., :tools] == 1
        named = loaded != is_loaded
        anywhere = count_true(loaded) != count_true(is_loaded)
        unready = gold[..., tools : 2 * tools] == 0
        if condition.profile.scribe:
            called = np.take_along_axis(unready, np.maximum(action, 0)[..., None].astype(np.int64), axis=2)
            named = named | ((action >= 0)[..., None] & called)
        named = np.concatenate([named, unready, np.repeat(named.any(-1, keepdims=True), tools, -1)], axis=-1)
    elif condition.world == "objectstate":
        held_differ = ((belief == 1) != (gold == 1))[..., rules.held :].any(axis=-1)
        named, anywhere = differs, differs[..., : rules.held].any(axis=-1) | held_differ
    elif condition.world != "graphnav":
        raise InputError(f"the public code has no rule of reports for {condition.world}")
    else:
        edges = (differs & (gold != UNKNOWN))[..., 1 + rules.keys :]
        named, anywhere = differs.copy(), edges.any(axis=-1)
        if condition.profile.scribe:  # the report names the key that is collected
            key = np.where(action >= rules.nodes, 1 + action - rules.nodes, 0)[..., None].astype(np.int64)
            anywhere = anywhere | (np.take_along_axis(differs, key, axis=2) & (key > 0))[..., 0]
        named[..., 0] = False  # a node's name alone brings nothing to compare
    return held.counted[..., None] & (named | anywhere[..., None])


def reports(
    condition: Condition, recording: Trajectory, threshold: int = CONFIDENT
) -> tuple[Held, Mask, Mask, Mask]:
    """Which beliefs are compared with gold, which of these are wrong, and which held with confidence.

    A belief is compared where the instance has the field, but under `confident=anything` in the conditions of
    `REPORTING` alone. An unknown one is wrong, and never confident: no agent is sure of it, but one
    with `single_report`, which reports full confidence for the whole table, empty places included.
    Under `confident=anything` the public code's rule holds, by which a scribe is confident of one belief a
    step, known or not.

    Returns:
        The beliefs, and three masks [row, time, field]: compared, wrong, confident.
    """
    held, anything = held_beliefs(recording, condition.protocol), condition.protocol.confident == "anything"
    counted = held.counted[..., None]
    here = counted & (held.gold != UNKNOWN) & (not anything or condition.policy.name in REPORTING)
    wrong = held.belief != held.gold
    confident = (held.confidence >= threshold) & (held.belief != UNKNOWN)
    if anything and here.any():
        action = np.pad(recording.action, ((0, 0), (0, 1)), constant_values=WAIT)[:, : held.belief.shape[1]]
        wrong = wrong_anywhere(condition, held, action)
        if condition.profile.scribe:
            goal = condition.built.goal_fields[0]
            confident = np.zeros_like(confident)
            confident[..., goal] = condition.profile.confidence >= threshold
    return held, here, here & wrong, here & confident


def confident_counts(
    recording: Trajectory, condition: Condition, threshold: int = CONFIDENT
) -> dict[str, Ints]:
    """Count each episode's beliefs, the wrong, the confident, and those that are both, [row] each.

    Args:
        recording: a condition's episodes, with reports.
        condition: whose protocol says what counts as wrong (`reports`).
        threshold: percent, 0..100, from which a belief is confident.

    Returns:
        `confident confident_wrong wrong total`, the first three among the last; canonical p_cw is the sum of
        `confident_wrong` over that of `confident`. All are 0 where the protocol compares no report with gold.

    >>> from envprobe_core.conditions import make_condition
    >>> from envprobe_core.engine.batch import simulate_logged
    >>> condition = make_condition("tooldag", "simple")
    >>> counts = confident_counts(simulate_logged(condition, np.arange(2)), condition)
    >>> counts["total"].tolist()
    [837, 837]
    """
    if not 0 <= threshold <= 100:
        raise InputError(f"confidence threshold {threshold} is not in 0..100 percent")
    _, here, wrong, confident = reports(condition, recording, threshold)
    masks = {"confident": confident, "confident_wrong": confident & wrong, "wrong": wrong, "total": here}
    return {name: count_true(mask).sum(axis=1) for name, mask in masks.items()}


def consistent(acted: Mask, valid: Mask) -> Mask:
    """Say before which steps the agent's self-check passes, [row, step].

    The simulated agent reports low risk unless its last own task action was invalid (ours: the paper does
    not say what its self-check asks); before its first action it reports low risk.

    >>> consistent(np.array([[True, True, False]]), np.array([[True, False, False]])).tolist()
    [[True, True, False]]
    """
    passes = np.ones(acted.shape, dtype=bool)
    for t in range(1, acted.shape[1]):
        passes[:, t] = np.where(acted[:, t - 1], valid[:, t - 1], passes[:, t - 1])
    return passes
