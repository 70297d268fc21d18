"""A policy that learns when to ask: its gradient, and that what it learned is what `run` plays."""

import gymnasium
import numpy as np
import pytest

from envprobe_book.classroom.learning import FEATURES, features, greedy, learn, play_round
from envprobe_core import run
from envprobe_core.gym_env import IDS
from envprobe_core.policies import custom_policy

WEIGHTS = np.array([0.2, 0.5, 2.0, 0.4, -4.0, 1.5, -0.5, 1.0])


def make(count):
    return gymnasium.make_vec(IDS["tooldag"], count, regime="S1", profile="typical", protocol="observed")


def test_the_slope_of_the_log_chance_is_zero_in_the_mean():
    """Whatever the weights: chances sum to one."""
    found = play_round(make(600), WEIGHTS, 0, np.random.default_rng(3))
    error = found.slope.std(axis=0) / np.sqrt(len(found.slope))
    assert (np.abs(found.slope.mean(axis=0)) < 4.5 * error).all()
    assert (found.slope.std(axis=0) > 0).all()


def test_the_same_arguments_give_the_same_weights_and_each_round_its_own_seeds():
    first, again = (learn(make(8), 3, 500, 0.1) for _ in range(2))
    assert all(np.array_equal(*pair) for pair in zip(first, again, strict=True))
    assert first.weights.shape == (4, len(FEATURES))
    assert np.isfinite(first.weights).all()
    envs = make(8)
    learn(envs, 3, 500, 0.1)
    assert envs.unwrapped.rows.seeds.tolist() == [*range(516, 524)]


def test_sure_weights_play_in_gymnasium_what_run_plays():
    """So large that nothing is left to chance; of fields with equal numbers either may be asked."""
    sure = np.zeros(len(FEATURES))
    sure[[FEATURES.index("always"), FEATURES.index("late")]] = -420.0, 800.0  # in the second half
    found = play_round(make(20), sure, 40, np.random.default_rng(0))
    assert np.isin(found.asked, (0.0, 1.0)).all()
    frame = run("tooldag", [custom_policy("sure", greedy(sure))], "S1", "observed", seeds="40:60")
    assert frame["probes"].tolist() == [5] * 20
    assert found.asked.sum() == pytest.approx(5)


def test_features_are_the_paper_s_terms_and_the_moment():
    terms = np.linspace(0.0, 1.0, 6).reshape(2, 3)
    phi = features(terms, terms, terms, terms, [0, 9], 10, [4, 1], 4)
    assert phi.shape == (2, 3, len(FEATURES))
    assert phi[:, 0, 4:].tolist() == [[1.0, 0.0, 1.0, 0.0], [1.0, 0.9, 0.25, 1.0]]
