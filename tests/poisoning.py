"""Truths that lie: what agents and policies must not look at is junk whenever they are asked."""

from collections.abc import Callable
from typing import Any

import numpy as np

from envprobe_core.engine.running import Episodes, schedules_of

Spoil = Callable[[Any], None]


def spoil_gold(block):
    """Make every gold value wrong."""
    block.gold[:] = block.gold % 2 + 1


def spoil_state(block):
    """Give every episode the hidden state of another."""
    block.state = np.roll(block.state, 1)


def spoil_weights(block):
    """Make the heaviest fields the lightest."""
    block.weight[:] = 9.0 - block.weight


def spoil_start(block):
    """Tell lies about where things were at first, which only viewers may know."""
    for name in {"start", "start_room", "object_room"} & set(block.task.dtype.names):
        block.task[name] = 1 - block.task[name] % 2


def spoil_observation(block):
    """Show other things than there are, but the own place, on which every policy's d depends."""
    observation = block.observation
    observation.value[:] = np.where(observation.value < 0, 0, -1)
    observation.count[:] = 0
    observation.action[:] = -observation.action
    observation.valid[:] = 1 - observation.valid
    observation.fresh[:] = 1 - observation.fresh


def run_poisoned(cell, seeds, *, agent=None, policy=None):
    """Run a cell; the world, what is observed, told, recorded and scored stays true.

    Args:
        cell: the cell.
        seeds: [row].
        agent: spoils a block whenever the agent is asked.
        policy: spoils it whenever the policy is.
    """
    episodes = Episodes(cell, seeds, schedules=schedules_of(cell, seeds))
    while True:
        _spoiled(episodes, agent, episodes.propose)
        if not episodes.settle():
            return episodes.recording()
        episodes.advance(_spoiled(episodes, policy, episodes.decide))


def _spoiled(episodes, spoil, ask):
    """Spoil the block, ask, and put back what was spoiled."""
    if spoil is None:
        return ask()
    block = episodes.block
    true = block.copy()
    spoil(block)
    spoiled = [name for name in block.dtype.names if block[name].tobytes() != true[name].tobytes()]
    answer = ask()
    for name in spoiled:
        block[name] = true[name]
    return answer
