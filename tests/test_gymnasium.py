"""The worlds under Gymnasium: its own checker passes, and a seed is the episode that `run` measures."""

import copy
import doctest

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.wrappers.vector import RecordEpisodeStatistics

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
    assert doctest.testmod(gym_env) == (0, 10)


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
        assert int(info["measures"]["digest"], 16) == kernel.measures["digest"][seed]
        assert info["success"] == kernel.success[seed]


def test_simple_played_through_the_actions_is_the_kernel_s():
    env = gymnasium.make("envprobe/GraphNav-v0", profile="typical")
    wait, propose = env.unwrapped.world.actions, as_proposed(env)

    def simple(shown, info):
        s, u = np.minimum(shown["staleness"], 10) / 10.0, 1.0 - shown["confidence"] / 100.0
        rho = ((shown["c"] + s) + u) + shown["d"]
        best = int(np.argmax(rho[: int(env.unwrapped.rows.block["fields"][0])]))
        return wait + 1 + best if info["probes_left"] and rho[best] >= 1.5 else propose(shown, info)

    kernel = simulate_logged(make_condition("graphnav", "simple"), np.arange(4))
    for seed in range(4):
        digest = played(env, seed, simple)[2]["measures"]["digest"]
        assert int(digest, 16) == kernel.measures["digest"][seed]


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
        gold.append(env.unwrapped.rows.block.gold[0].tolist())
    assert gold[0] == gold[1] != gold[2]
    env.reset(seed=5)
    first = [env.reset()[1] and int(env.unwrapped.rows.seeds[0]) for _ in range(2)]
    env.reset(seed=5)
    again = [env.reset()[1] and int(env.unwrapped.rows.seeds[0]) for _ in range(2)]
    assert first == again
    assert first[0] != first[1]


def test_unknown_settings_are_refused():
    for given in (
        {"reward": "fun"},
        {"probe_cost": float("nan")},
        {"probe_cost": -0.1},
        {"regime": "S9"},
        {"budget": 99},
        {"protocol": "mine"},
    ):
        with pytest.raises(InputError):
            gymnasium.make("envprobe/ToolDAG-v0", **given)


@pytest.mark.parametrize("action", [-1, 1.5, 999, True, None, [1, 2]])
def test_what_is_no_action_is_refused_in_a_line_and_changes_nothing(action):
    env = gymnasium.make("envprobe/ToolDAG-v0", regime="S1").unwrapped
    with pytest.raises(InputError, match="reset"):
        env.step(0)
    env.reset(seed=1)
    twin = copy.deepcopy(env)
    with pytest.raises(InputError, match=r"action .* 0\.\.20") as refused:
        env.step(action)
    assert "\n" not in str(refused.value)
    assert env.render() is None
    assert data_equivalence(env.step(3), twin.step(3))


@pytest.mark.parametrize("count", [0, -1, 1.5, "3", True])
def test_a_number_of_environments_that_there_is_not_is_refused_in_a_line(count):
    with pytest.raises(InputError, match=r"num_envs .* whole number from 1"):
        gymnasium.make_vec("envprobe/ToolDAG-v0", count, regime="S1")


@pytest.mark.parametrize("seed", [-1, 1.5, "abc", [1, 2], [1, 2, -3], 2**70])
def test_what_is_no_seed_of_many_is_refused_in_a_line(seed):
    envs = gymnasium.make_vec("envprobe/ToolDAG-v0", 3, regime="S1")
    with pytest.raises((InputError, gymnasium.error.Error)):
        envs.reset(seed=seed)


def test_a_way_of_rendering_that_there_is_not_is_refused():
    with pytest.raises(InputError, match="render_mode 'human' is none of ansi, rgb_array"):
        gym_env.ProbingEnv("tooldag", render_mode="human")


def test_after_the_end_an_episode_takes_no_step():
    env = gymnasium.make("envprobe/ToolDAG-v0", regime="S1")
    played(env, 0, as_proposed(env))
    with pytest.raises(InputError, match="has ended"):
        env.unwrapped.step(0)


def test_a_copy_goes_its_own_way():
    env = gymnasium.make("envprobe/GraphNav-v0", regime="S1")
    env.reset(seed=2)
    env.step(0)
    twin, probe = copy.deepcopy(env), env.unwrapped.rows.probing
    told = twin.step(probe)[0]
    assert (told["probed"], env.step(probe + 1)[0]["probed"]) == (0, 1)
    ends = [played(each, 5, as_proposed(each))[2]["measures"]["digest"] for each in (env, twin)]
    assert ends[0] == ends[1]


@pytest.mark.parametrize("mode", ["ansi", "rgb_array"])
def test_an_episode_is_rendered_with_what_is_believed_and_what_is_so(mode):
    env = gymnasium.make("envprobe/ToolDAG-v0", regime="S1", render_mode=mode)
    env.reset(seed=3)
    frames = [env.render()]
    for action in (0, env.unwrapped.rows.probing):
        env.step(action)
        frames.append(env.render())
    if mode == "ansi":
        assert all(name in frames[0] for name in env.unwrapped.world.field_names)
        assert "step 2 of 20, 4 of 5 probes left" in frames[2]
        assert "loaded(0)" in next(line for line in frames[2].splitlines() if line.endswith("<- probed"))
    else:
        assert {frame.shape for frame in frames} == {frames[0].shape}
        assert frames[0].dtype == np.uint8
        assert (frames[0] != frames[2]).any()
        many = gymnasium.make_vec("envprobe/ToolDAG-v0", 2, regime="S1", render_mode=mode)
        many.reset(seed=3)
        assert np.array_equal(many.render()[0], frames[0])
        many.close()


def walked(envs, steps, seed=11):
    """What vectors of environments give over some steps of the same actions; at least two ends each."""
    envs = RecordEpisodeStatistics(envs)
    draws, told = np.random.default_rng(5), [envs.reset(seed=seed)]
    for _ in range(steps):
        told.append(envs.step(draws.integers(envs.single_action_space.n, size=envs.num_envs)))
    envs.close()
    return told


@pytest.mark.parametrize("world", ENVS)
def test_many_at_once_are_the_same_episodes_as_one_by_one_over_their_ends(world):
    given = {"num_envs": 3, "regime": "S1", "reward": "accuracy", "probe_cost": 0.01}
    given |= {"protocol": "paper:end=success"}
    modes = ("vector_entry_point", "sync", "async") if world == "tooldag" else ("vector_entry_point", "sync")
    whole, *others = (
        walked(gymnasium.make_vec(ENVS[world], vectorization_mode=mode, **given), 50) for mode in modes
    )
    ends = [step[4] for step in whole[1:] if (step[2] | step[3]).any()]
    assert sum(info["_measures"].sum() for info in ends) >= 6
    assert all("episode" in info for info in ends)
    for other in others:
        for one, two in zip(whole, other, strict=True):
            for info in (one[-1], two[-1]):
                info.get("episode", {}).pop("t", None)  # how long it took
            assert data_equivalence(one[0], two[0])
            assert all(np.array_equal(*pair) for pair in zip(one[1:-1], two[1:-1], strict=True))
            assert one[-1].keys() == two[-1].keys()
            for name in one[-1]:
                np.testing.assert_equal(one[-1][name], two[-1][name])


def test_what_was_recorded_of_an_end_is_the_kernel_s():
    envs = gymnasium.make_vec("envprobe/GraphNav-v0", 5, regime="S1")
    wait, told = envs.single_action_space.n, None
    shown, _ = envs.reset(seed=[4, 5, 6, 7, 8])
    wait = envs.unwrapped.rows.world.actions
    while told is None or "measures" not in told:
        proposed = shown["proposal"]
        shown, _, _, _, told = envs.step(np.where(proposed >= 0, proposed, wait))
    kernel = simulate_logged(
        make_condition("graphnav", "no-probe", "S1", PROTOCOLS["paper"], "perfect"), np.arange(4, 9)
    )
    digests = [int(one, 16) for one in told["measures"]["digest"]]
    assert digests == kernel.measures["digest"].tolist()


def test_vectors_of_observations_hold_what_the_paper_s_terms_are_made_of():
    env = gymnasium.make("envprobe/ToolDAG-v0", regime="S1", profile="typical")
    one = gym_env.FlatObservation(env)
    many = gymnasium.make_vec("envprobe/ToolDAG-v0", 4, regime="S1", profile="typical")
    many = gym_env.FlatVectorObservation(many)
    vectors, (shown, _) = many.reset(seed=0)[0], env.reset(seed=0)
    assert np.array_equal(one.reset(seed=0)[0], vectors[0])
    assert many.observation_space.contains(vectors)
    by_field = vectors[0][: shown["c"].size * len(gym_env.BY_FIELD)].reshape(shown["c"].size, -1)
    for name in ("c", "d", "in_view"):
        np.testing.assert_allclose(by_field[:, gym_env.BY_FIELD.index(name)], shown[name], atol=1e-7)
    assert one.observation_space.contains(one.step(0)[0])


def test_the_page_s_example_runs_as_it_stands():
    page = (ROOT / "book" / "provenance.md").read_text(encoding="utf-8")
    code = page.partition("### Gymnasium")[2].partition("```python\n")[2].partition("```")[0]
    names = {}
    exec(code, names)
    assert names["info"].keys() >= {"success", "accuracy", "probes_left", "action_mask"}
    assert 0 < names["reward"] <= 1 / 30
