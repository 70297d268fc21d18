"""How sure beliefs are and how often they are wrong: the counts behind the confident-wrong rate.

Two conditionals come from the same counts: Pr(wrong | conf >= .7), the paper's canonical p_cw
(`tab:pcw_audit`), and Pr(conf >= .7 | wrong), which its miscoverage proposition needs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from envprobe_core.engine.recording import Reports, Trajectory
from envprobe_core.engine.records import UNKNOWN
from envprobe_core.errors import InputError
from envprobe_core.metrics import Ints, Mask, Values, count_true
from envprobe_core.protocols import Protocol

CONFIDENT = 70  # percent, Table "p_cw estimator audit"


@dataclass(frozen=True)
class Held:
    """Beliefs beside the gold values that a protocol compares them with.

    Attributes:
        belief, gold: [row, time, field].
        confidence: [row, time, field], percent.
        counted: [row, time], whether the time belongs to the episode.
    """

    belief: Values
    gold: Values
    confidence: Reports
    counted: Mask

    @property
    def wrong(self) -> Mask:
        """Say which beliefs are wrong, [row, time, field]; an unknown one is."""
        return self.counted[..., None] & (self.belief != self.gold)

    def confident(self, threshold: int = CONFIDENT) -> Mask:
        """Say which beliefs are held with confidence, [row, time, field]; an unknown one never is.

        Agents report no confidence in a value they do not know, but for profiles with `single_report`:
        they report full confidence for the whole table, empty places included. No belief stands there.

        Args:
            threshold: percent, 0..100.
        """
        return self.counted[..., None] & (self.confidence >= threshold) & (self.belief != UNKNOWN)


def held_beliefs(trajectory: Trajectory, protocol: Protocol) -> Held:
    """Pair every belief with gold as the protocol's switch `pairing` says.

    `same-step`: b_t with g_t at t = 0..T, after the agent's update. `lagged`: the belief before an action
    with gold after that action and mutation, b_(t-1) with g_t at t = 1..T. T is the executed steps. The
    other scoring switches (slots, encoding) do not act here: a belief is one field of the table.

    Args:
        trajectory: a recording.
        protocol: whose pairing applies.
    """
    belief, gold, confidence = trajectory.belief, trajectory.gold, trajectory.confidence
    last = trajectory.steps
    if protocol.pairing == "lagged":
        belief, gold, confidence, last = belief[:, :-1], gold[:, 1:], confidence[:, :-1], last - 1
    times = np.arange(belief.shape[1])
    return Held(belief, gold, confidence, times[None, :] <= last[:, None])


def confident_counts(
    trajectory: Trajectory, protocol: Protocol, threshold: int = CONFIDENT
) -> dict[str, Ints]:
    """Count each episode's beliefs, the wrong, the confident, and those that are both, [row] each.

    Args:
        trajectory: a recording.
        protocol: whose pairing applies (`held_beliefs`).
        threshold: percent, 0..100, from which a belief is confident.

    Returns:
        `confident`, `confident_wrong`, `wrong`, `total`. Canonical p_cw is the sum of `confident_wrong`
        over that of `confident`.

    Raises:
        InputError: if the threshold is not in 0..100.
    """
    if not 0 <= threshold <= 100:
        raise InputError(f"confidence threshold {threshold} is not in 0..100 percent")
    held = held_beliefs(trajectory, protocol)
    wrong, confident = held.wrong, held.confident(threshold)
    return {
        "confident": count_true(confident).sum(axis=1),
        "confident_wrong": count_true(confident & wrong).sum(axis=1),
        "wrong": count_true(wrong).sum(axis=1),
        "total": held.counted.sum(axis=1) * held.belief.shape[2],
    }
