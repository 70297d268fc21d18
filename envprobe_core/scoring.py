"""Scorers: what one recorded trajectory is worth under a protocol's rules; one rollout, several scores.

The scoring switches act here: what A_H is, which belief meets which gold, whether a copied number matches,
when accuracy counts as collapsed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
import numpy.typing as npt

from envprobe_core import metrics, noise
from envprobe_core.protocols import Protocol
from envprobe_core.slots import slot_overlap
from envprobe_core.trajectory import Trajectory
from envprobe_core.worlds.base import Mask, World

DIGEST_KEY = np.array([0x456E7650726F6265], dtype=np.uint64)
Columns = dict[str, npt.NDArray[np.generic]]


def outcome_digest(
    right: npt.NDArray[np.int64], probe: npt.NDArray[np.int16], steps: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint64]:
    """Condense each episode's right-field counts by time and its probes by step into 64 bits, [row].

    The sum modulo 2**64 of (count + 1) times a word of its time, over t = 0..steps, and of
    (field + 2) times a word of its step, over t = 0..steps - 1 (no probe is field -1). These are
    whole numbers, so neither the size of a block nor its order can move a bit.

    Args:
        right: [row, time], from `metrics.right_fields`.
        probe: [row, step], the probed field or -1.
        steps: [row], executed steps.
    """
    times = right.shape[1]
    word = noise.wide_words(DIGEST_KEY, 2 * times - 1)[0]
    lived = np.arange(times)[None, :] <= steps[:, None]
    counts = np.where(lived, right + 1, 0).astype(np.uint64)
    probes = np.where(lived[:, 1:], probe + 2, 0).astype(np.uint64)
    return (counts * word[:times]).sum(axis=1) + (probes * word[times:]).sum(axis=1)


def score_episodes(
    trajectory: Trajectory,
    world: World,
    protocol: Protocol,
    writes_true: Mask,
    keeps_open: Mask,
    wanted: Collection[str] | None = None,
) -> Columns:
    """Score every episode of a recording.

    Args:
        trajectory: the recording.
        world: the world, for the layout of its fields.
        protocol: whose scoring switches apply.
        writes_true: [row], whether the agent writes tool values as `True`.
        keeps_open: [row], whether it keeps its list of open tools.
        wanted: the measures to compute; by default all.

    Returns:
        A column [row] for each measure of the episode table, in the same order whatever is wanted.
    """
    steps, lagged = trajectory.steps, protocol.pairing == "lagged"
    belief, gold = trajectory.belief, trajectory.gold
    right = metrics.right_fields(belief, gold)
    if protocol.accuracy == "slots" or wanted is None or "accuracy_slot" in wanted:
        matches = writes_true | (protocol.encoding == "meaning")
        slots = slot_overlap(trajectory, world, lagged, matches, keeps_open)
        slot_mean = metrics.mean_over_steps(slots, steps)
    if protocol.accuracy == "slots":
        accuracy = slot_mean
        onset = metrics.collapse_onset(slots, steps, 1, protocol.onset)
    else:
        track = metrics.lagged_right_fields(belief, gold) if lagged else right
        accuracy = metrics.at_end(track, steps) / world.fields
        onset = metrics.collapse_onset(track / world.fields, steps, 0, protocol.onset)
    scores: dict[str, Callable[[], npt.NDArray[np.generic]]] = {
        "steps": lambda: steps,
        "accuracy": lambda: accuracy,
        "accuracy_terminal": lambda: metrics.at_end(right, steps) / world.fields,
        "accuracy_slot": lambda: slot_mean,
        "success": lambda: trajectory.success,
        "probes": lambda: (trajectory.probe >= 0).sum(axis=1),
        "useful": lambda: trajectory.useful.sum(axis=1),
        "collapse_onset": lambda: onset,
        "actions": lambda: trajectory.acted.sum(axis=1),
        "valid_actions": lambda: trajectory.valid.sum(axis=1),
        "action_onset": lambda: metrics.action_onset(trajectory.acted, trajectory.valid),
        "repeated_probes": lambda: metrics.repeated_probes(trajectory.probe, world.fields),
        "digest": lambda: outcome_digest(right, trajectory.probe, steps),
    }
    return {name: score() for name, score in scores.items() if wanted is None or name in wanted}
