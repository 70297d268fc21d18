"""The worlds under Gymnasium: its own checker passes, and a seed is the episode that `run` measures."""

import doctest

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from envprobe_core import gym_env
from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import simulate_logged
from envprobe_core.errors import InputError
from envprobe_core.protocols import PROTOCOLS, parse_protocol
from envprobe_core.sources import ROOT

ENVS = gym_env.IDS


def played(env, seed, decide):
    """Play an episode; return its observations, rewards and the last info."""
    shown, info = env.reset(seed=seed)
    seen, rewards, over = [shown], [], False
    while not over:
        shown, reward, terminated, truncated, info = env.step(decide(shown, info))
        seen.append(shown)
        rewards.append(reward)
        over = terminated or truncated
    return seen, rewards, info, (terminated, truncated)


def as_proposed(env):
    """Return a learner that does what the agent that keeps notes proposes."""
    wait = env.unwrapped.world.actions
    return lambda shown, info: shown["proposal"] if shown["proposal"] >= 0 else wait


def test_the_example_gives_what_it_says():
    assert list(ENVS.values()) == ["envprobe/ToolDAG-v0", "envprobe/ObjectState-v0", "envprobe/GraphNav-v0"]
    assert doctest.testmod(gym_env) == (0, 7)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("world", ENVS)
def test_gymnasium_s_checker_passes(world, protocol):
    check_env(gymnasium.make(ENVS[world], protocol=protocol).unwrapped)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("world", ENVS)
def test_doing_what_is_proposed_is_the_kernel_s_no_probe(world, protocol):
    env = gymnasium.make(ENVS[world], protocol=protocol)
    kernel = simulate_logged(
        make_condition(world, "no-probe", "S2", PROTOCOLS[protocol], "perfect"), np.arange(3)
    )
    for seed in range(3):
        info = played(env, seed, as_proposed(env))[2]
        assert info["measures"]["digest"] == kernel.measures["digest"][seed]
        assert info["success"] == kernel.success[seed]


def test_simple_played_through_the_actions_is_the_kernel_s():
    env = gymnasium.make("envprobe/GraphNav-v0", profile="typical")
    wait, propose = env.unwrapped.world.actions, as_proposed(env)

    def simple(shown, info):
        s, u = np.minimum(shown["staleness"], 10) / 10.0, 1.0 - shown["confidence"] / 100.0
        rho = ((shown["c"] + s) + u) + shown["d"]
        best = int(np.argmax(rho[: env.unwrapped.environment.fields]))
        return wait + 1 + best if info["probes_left"] and rho[best] >= 1.5 else propose(shown, info)

    kernel = simulate_logged(make_condition("graphnav", "simple"), np.arange(4))
    for seed in range(4):
        assert played(env, seed, simple)[2]["measures"]["digest"] == kernel.measures["digest"][seed]


@pytest.mark.parametrize("world", ENVS)
def test_random_actions_stay_in_the_spaces_and_end_at_the_horizon(world):
    env = gymnasium.make(ENVS[world], regime="S1")
    env.action_space.seed(1)
    for seed in range(5):
        seen, _, info, end = played(env, seed, lambda shown, info: env.action_space.sample())
        assert all(env.observation_space.contains(one) for one in seen)
        assert (len(seen) - 1, end) == (20, (False, True))
        assert info["measures"]["probes"] == 5  # the rest were waits
        assert info["action_mask"][env.unwrapped.world.actions + 1 :].max() == 0


def test_rewards_sum_to_the_measures():
    env = gymnasium.make("envprobe/ToolDAG-v0", regime="S1", reward="accuracy", probe_cost=0.25)
    _, rewards, info, _ = played(env, 3, as_proposed(env))
    cell = make_condition("tooldag", "no-probe", "S1", PROTOCOLS["paper"], "perfect")
    kernel = simulate_logged(cell, np.array([3]))
    assert np.isclose(sum(rewards), kernel.accuracy[0, 1:].mean())
    assert np.isclose(info["accuracy"], info["measures"]["accuracy"])
    env.reset(seed=3)
    probe = env.unwrapped.world.actions + 1
    _, reward, _, _, info = env.step(probe)
    assert np.isclose(reward, info["accuracy"] / 20 - 0.25)

    reached = gymnasium.make("envprobe/ToolDAG-v0", regime="S1")
    total = [sum(played(reached, seed, as_proposed(reached))[1]) for seed in range(12)]
    known = simulate_logged(cell, np.arange(12)).success
    assert total == known.astype(float).tolist()
    assert known.sum() > 0


def test_the_goal_terminates_where_the_protocol_says_so():
    text = "paper:end=success"
    env = gymnasium.make("envprobe/ToolDAG-v0", regime="S1", protocol=text)
    kernel = simulate_logged(
        make_condition("tooldag", "no-probe", "S1", parse_protocol(text), "perfect"), np.arange(12)
    )
    ends = []
    for seed in range(12):
        seen, _, _, end = played(env, seed, as_proposed(env))
        assert len(seen) - 1 == kernel.steps[seed]
        ends.append(end)
        assert end == (kernel.success[seed], not kernel.success[seed])
    assert (True, False) in ends


def test_seeds_fix_the_luck_and_none_draws_another():
    env = gymnasium.make("envprobe/ObjectState-v0")
    wait = env.unwrapped.world.actions
    gold = []
    for seed in (5, 5, 6):
        env.reset(seed=seed)
        for _ in range(20):
            env.step(wait)
        gold.append(env.unwrapped.environment.episodes.block.gold[0].tolist())
    assert gold[0] == gold[1] != gold[2]
    env.reset(seed=5)
    first = [env.reset()[1] and int(env.unwrapped.environment.episodes.seeds[0]) for _ in range(2)]
    env.reset(seed=5)
    again = [env.reset()[1] and int(env.unwrapped.environment.episodes.seeds[0]) for _ in range(2)]
    assert first == again
    assert first[0] != first[1]


def test_unknown_settings_are_refused():
    for given in ({"reward": "fun"}, {"regime": "S9"}, {"budget": 99}, {"protocol": "mine"}):
        with pytest.raises(InputError):
            gymnasium.make("envprobe/ToolDAG-v0", **given)


def test_the_page_s_example_runs_as_it_stands():
    page = (ROOT / "book" / "provenance.md").read_text(encoding="utf-8")
    code = page.partition("### Gymnasium")[2].partition("```python\n")[2].partition("```")[0]
    names = {}
    exec(code, names)
    assert names["info"].keys() >= {"success", "accuracy", "probes_left", "action_mask"}
    assert 0 < names["reward"] <= 1 / 30
