"""Exact means of every policy on a small world: the engine runs it on every script of mutations there is.

Scripts grow by two ticks at a time; one that unloads what is not loaded is no other than the one that does
not, and is dropped. What is left are the leaves of the policy's chance tree, whatever the rate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from envprobe_core.agents.simulated import SimulatedAgent
from envprobe_core.blocks import Arm, Block
from envprobe_core.bound.optimum import Point
from envprobe_core.bound.small import MUTABLE, SMALL_TOOLS, ScriptedTools, Setting
from envprobe_core.errors import InputError
from envprobe_core.policies import THRESHOLD, Policy
from envprobe_core.rollout import drive, rollout
from envprobe_core.trajectory import Trajectory
from envprobe_core.worlds.base import Floats, Ints, Mask, World

TICKS = 2  # by which scripts grow


@dataclass(frozen=True)
class Leaves:
    """The episodes that a policy can have, one a leaf of its chance tree.

    Attributes:
        right: [leaf], share of fields right at the end.
        success: [leaf].
        lost, kept: [leaf], how often a loaded tool unloaded, and how often it did not.
    """

    right: Floats
    success: Mask
    lost: Ints
    kept: Ints

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
        setting: the small world.
        policy: any policy that draws nothing; Random does, see `optimum.random_policy`.
        threshold: its threshold, where it has one.
    """
    script = np.zeros((1, 0, SMALL_TOOLS), dtype=bool)
    while (ticks := script.shape[1]) < setting.horizon:
        script = _lengthened(script, min(TICKS, setting.horizon - ticks))
        world = ScriptedTools(setting.regime, setting.protocol, script)
        found = run(setting, world, policy, np.zeros(len(script), dtype=np.int64), threshold)
        at_risk = world.at_risk[:, : script.shape[1]]
        real = ~(script & ~at_risk).any(axis=(1, 2))
        script = script[real]
    lost, at_risk = script.sum(axis=(1, 2)), at_risk[real].sum(axis=(1, 2))
    return Leaves(accuracy(found)[real], found.success[real], lost, at_risk - lost)


def accuracy(found: Trajectory) -> Floats:
    """Return the share of fields right at the end, [row]."""
    return (found.belief[:, -1] == found.gold[:, -1]).mean(axis=1)


def _lengthened(script: Mask, ticks: int) -> Mask:
    """Append all that may be lost in some further ticks."""
    size = ticks * MUTABLE
    tails = np.zeros((1 << size, ticks, SMALL_TOOLS), dtype=bool)
    tails[:, :, :MUTABLE] = (np.arange(1 << size)[:, None] >> np.arange(size) & 1).reshape(-1, ticks, MUTABLE)
    long = np.repeat(script, len(tails), axis=0)
    return np.concatenate([long, np.tile(tails, (len(script), 1, 1))], axis=1)


def run(
    setting: Setting, world: World, policy: Policy, seeds: Ints, threshold: float = THRESHOLD
) -> Trajectory:
    """Run one policy with the perfect agent, a row a seed.

    Raises:
        InputError: if the policy repeats another one's probes.
    """
    if policy.replays is not None:
        raise InputError(
            f"policy {policy.name} replays another's probes; the small world runs none that does"
        )
    rows = len(seeds)
    block = Block(
        world,
        seeds,
        (Arm(policy, slice(0, rows)),),
        np.full(rows, setting.budget),
        np.full(rows, policy.scaled_threshold(threshold, setting.protocol)),
    )
    instance = world.instances(seeds)
    agent = SimulatedAgent(*setting.agent_arguments(instance.map, rows))
    return drive(rollout(block, instance, reports=False), agent)
