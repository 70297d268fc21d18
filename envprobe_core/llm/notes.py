"""Compiled loops over a block: the notes that a model is given, and the past of the program that answers."""

from __future__ import annotations

from envprobe_core import worlds
from envprobe_core.agents.simulated import forget, quits
from envprobe_core.engine.compiling import entry
from envprobe_core.engine.noise import stream_keys


@entry
def remember(setting, block):
    """Note where each agent is, which edges are there and whether its last call failed.

    Who keeps no table has lost it.
    """
    for row in range(len(block)):
        episode = block[row]
        if not episode.over:
            worlds.remember(setting.world, episode.task, episode.mind, episode.observation, episode.t)
            if setting.protocol.forgets and episode.t > 0:
                forget(setting.world, episode.table)


@entry
def take_over(setting, block, seeds):
    """Take episodes over at their step as the simulated agents of seeds, [row]; who had quit has quit."""
    for row in range(len(block)):
        episode = block[row]
        stream_keys(seeds[row], setting.world.code, episode.keys)
        for past in range(1, episode.t):
            if quits(setting.habits, episode.keys, past):
                episode.has_quit = 1
