"""Learned weights: the area under the curve and the regression, each beside a reference."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from envprobe_book.analyses.learned import Beliefs, auc, beliefs_of, best_gate, fit_weights, learned_policy
from envprobe_core import run
from envprobe_core.conditions import make_condition
from envprobe_core.errors import InputError
from envprobe_core.policies import find_policy, weighted_policy


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=60))
def test_the_area_is_mann_whitneys_statistic(pairs):
    score, wrong = map(np.array, zip(*pairs, strict=True))
    if wrong.all() or not wrong.any():
        with pytest.raises(InputError, match="at least one of each"):
            auc(score, wrong)
        return
    expected = mannwhitneyu(score[wrong], score[~wrong]).statistic / (wrong.sum() * (~wrong).sum())
    assert auc(score, wrong) == pytest.approx(expected, abs=1e-12)


def test_weights_are_those_of_a_logistic_regression():
    from statsmodels.api import GLM, families  # takes half a second

    random = np.random.default_rng(1)
    terms = random.random((4000, 4))
    wrong = random.random(4000) < 1 / (1 + np.exp(-(terms @ [0.5, 2.0, -1.0, 0.0] - 1)))
    expected = (
        GLM(wrong, np.column_stack([terms, np.ones(4000)]), family=families.Binomial()).fit().params[:-1]
    )
    np.testing.assert_allclose(
        fit_weights(Beliefs(terms, wrong)), expected / np.abs(expected).max(), atol=0.01
    )


def test_beliefs_are_those_that_the_recording_holds():
    condition = make_condition("tooldag", "no-probe")
    found = beliefs_of(condition, np.arange(3))
    frame = run("tooldag", "no-probe", protocols="paper", seeds="0:3", facts="step_wrong")
    assert found.wrong.sum() == frame["step_wrong"].sum()
    assert ((found.terms >= 0) & (found.terms <= 1)).all()


def test_equal_weights_are_envprobe_simple():
    same = weighted_policy("same", "Same", [1, 1, 1, 1])
    one = run("tooldag", [same], protocols="paper observed", seeds="0:20")
    other = run("tooldag", "simple", protocols="paper observed", seeds="0:20")
    assert one.drop(columns="policy").equals(other.drop(columns="policy"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("simple", "S", [1, 1, 1, 1]), "taken"),
        (("m", "M", [1, 1]), "one finite number"),
        (("m", "M", [1, 1, 1, np.nan]), "one finite number"),
    ],
)
def test_weights_that_cannot_be_meant_are_refused(given, words):
    with pytest.raises(InputError, match=words):
        weighted_policy(*given)


def test_the_gate_is_the_most_accurate_one_of_its_seeds():
    setting, seeds, gates = make_condition("tooldag", "simple"), np.arange(40), [0.0, 2.5, 4.5]
    chosen = best_gate(find_policy("simple"), setting, seeds, gates)
    means = [
        run("tooldag", "simple", protocols="paper", seeds="0:40", thresholds=gate)["accuracy"].mean()
        for gate in gates
    ]
    assert chosen == gates[int(np.argmax(means))]


def test_a_learned_policy_sees_no_gold():
    policy, _ = learned_policy(make_condition("tooldag", "no-probe"), np.arange(9000, 9010), [1.0])
    assert not policy.sees_gold
