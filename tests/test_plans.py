"""Shortest plans: a proof by neighbours, which only the world's `act` names, and what they are for."""

from dataclasses import replace

import numpy as np
import pytest

from envprobe_core import worlds
from envprobe_core.engine.compiling import entry
from envprobe_core.engine.noise import MUTATION, STREAMS, stream_keys
from envprobe_core.engine.records import Word
from envprobe_core.instances import act, chain_length, gold_of, instances, plan_length, states_of, succeeded
from envprobe_core.protocols import PAPER, RELEASED
from envprobe_core.regimes import HIGH, REGIMES
from envprobe_core.worlds import WORLDS, make_world

SHAKEN = {  # small and large worlds in which much mutates
    "small": replace(REGIMES["S1"], mutation=HIGH),
    "medium": replace(REGIMES["S2"], mutation=HIGH),
    "large": REGIMES["S3"],
}
BOTH = pytest.mark.parametrize("protocol", [PAPER, RELEASED], ids=lambda protocol: protocol.name)


def neighbours_of(world, instance, states, actions):
    """The states after each action, [row, state * action], and which of the actions were valid."""
    tried = np.tile(actions, (len(states), states.shape[1]))
    return act(world, instance, np.repeat(states, len(actions), axis=1), tried)


@entry
def mutate(world, instance, states, seeds, tick):
    keys = np.zeros(STREAMS, Word)
    for row in range(len(seeds)):
        stream_keys(seeds[row], world.code, keys)
        worlds.mutate(world, instance[row].task, states[row, 0], keys[MUTATION], tick)


def shaken(world, seeds, ticks, generator):
    """The instances, and a state each after some ticks of mutation and random actions, [row, 1]."""
    instance = instances(world, seeds)
    states = instance.state[:, None]
    for tick in range(ticks):
        states, _ = act(world, instance, states, generator.integers(0, world.actions, (len(seeds), 1)))
        mutate(world.record, instance, states, seeds, tick)
    return instance, states


@pytest.mark.parametrize("size", SHAKEN)
@pytest.mark.parametrize("name", WORLDS)
def test_the_length_is_a_distance_and_a_state_comes_back_from_its_gold_values(name, size):
    """Zero at the goal alone, and elsewhere one more than at the best neighbour: so it is exact.

    Infinity included: where some plan leads to the goal, one neighbour on it has a smaller length.
    """
    world = make_world(name, SHAKEN[size], PAPER)
    instance, states = shaken(world, np.arange(500, 560), 7, np.random.default_rng(2))
    length = plan_length(world, instance, states)
    np.testing.assert_array_equal(length == 0, succeeded(world, instance, states))
    after, _ = neighbours_of(world, instance, states, np.arange(world.actions))
    nearest = plan_length(world, instance, after).min(axis=1, keepdims=True)
    away = length > 0
    np.testing.assert_array_equal(nearest[away] + 1, length[away])
    assert np.isfinite(length).any()
    assert (length > 3).any()
    where = np.zeros(states.shape, int) if name == "tooldag" else states["place"]
    assert states_of(world, gold_of(world, instance, states), where).tobytes() == states.tobytes()


@BOTH
@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("name", WORLDS)
def test_every_instance_is_solvable_at_step_0(name, regime, protocol):
    """But for graphs as the public code draws them, whose keys lie anywhere."""
    lengths = chain_length(make_world(name, REGIMES[regime], protocol), np.arange(60))
    solvable = np.isfinite(lengths)
    drawn = name == "graphnav" and protocol.instances == "sampled"
    assert 0.5 < solvable.mean() <= 1.0 if drawn else solvable.all()
    assert (lengths[solvable] >= 1).all()


def test_the_public_codes_tool_world_needs_fewer():
    """220 instances of the public code need 5.85 calls on average: ours agree within that sample's error."""
    lengths = chain_length(make_world("tooldag", REGIMES["S2"], RELEASED), np.arange(20_000))
    assert abs(lengths.mean() - 5.85) < 2 * lengths.std() / np.sqrt(220)
