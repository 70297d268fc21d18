"""Exact means of every policy on a small world: the engine runs it on every script of mutations there is.

After each step an episode forks: one copy goes on for every set of tools that may have unloaded. What stands
in the end are the leaves of the policy's chance tree, whatever the rate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from envprobe_core.bound.optimum import Point
from envprobe_core.bound.small import LOSSES, Setting, act, lose
from envprobe_core.engine.recording import Trajectory
from envprobe_core.engine.running import Episodes, walk
from envprobe_core.policies import THRESHOLD, Policy
from envprobe_core.worlds.base import Floats, Ints, Mask

Chooser = Callable[[Any, Ints], tuple[Ints, Ints]]
"""From a block of episodes, and what is remembered of each, to the fields to probe, or NONE, and what is
remembered now; [row] whole numbers each."""


@dataclass(frozen=True)
class Leaves:
    """The episodes that a policy can have, one a leaf of its chance tree."""

    right: Floats  # [leaf], share of fields right at the end
    success: Mask  # [leaf]
    lost: Ints  # [leaf], how often a loaded tool unloaded
    kept: Ints  # [leaf], and how often it did not

    def chances(self, rate: float) -> Floats:
        """Return each leaf's chance at a mutation rate."""
        return rate**self.lost * (1.0 - rate) ** self.kept

    def means(self, rate: float) -> Point:
        """Return the policy's exact accuracy and success at a mutation rate."""
        chance = self.chances(rate)
        return float((chance * self.right).sum()), float(chance[self.success].sum())


def leaves(setting: Setting, policy: Policy, threshold: float = THRESHOLD) -> Leaves:
    """Run a policy on every script; the setting's own rate does not matter.

    Args:
        policy: any policy that draws nothing; Random does, see `optimum.random_policy`.
    """
    episodes = setting.episodes(policy, np.zeros(1), threshold)
    return leaves_of(episodes, lambda _, memory: (episodes.decide(), memory))


def leaves_of(episodes: Episodes, choose: Chooser) -> Leaves:
    """Run whoever chooses the probes on every script, from one episode that has just begun."""
    lost = kept = memory = np.zeros(1, dtype=np.int64)
    while True:
        episodes.propose()
        if not episodes.settle():
            break
        fields, memory = choose(episodes.block, memory)
        act(episodes.setting, episodes.block, fields, episodes.logs)
        exposed = episodes.block.state.loaded & LOSSES[-1]
        row, gone = np.nonzero(np.array(LOSSES) & ~exposed[:, None] == 0)
        lost = lost[row] + np.bitwise_count(gone)
        kept = kept[row] + np.bitwise_count(exposed[row] & ~gone)
        memory = memory[row]
        episodes.block, episodes.logs = episodes.block[row], episodes.logs[row]
        lose(episodes.setting, episodes.block, gone)
    right = (episodes.block.table.value == episodes.block.gold)[:, : episodes.setting.world.fields]
    return Leaves(right.mean(axis=1), episodes.block.ended == 1, lost, kept)


def run(setting: Setting, policy: Policy, seeds: Ints, threshold: float = THRESHOLD) -> Trajectory:
    """Run one policy with the perfect agent, a row a seed, on what the hash draws."""
    episodes = setting.episodes(policy, seeds, threshold)
    walk(episodes, episodes.decide)
    return episodes.recording()


def accuracy(found: Trajectory) -> Floats:
    """Return the share of fields right at the end, [row]."""
    return found.measures["accuracy_terminal"]
