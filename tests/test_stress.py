"""Other regimes: the claims asked in each, and the order of policies compared."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envprobe_core import run
from envprobe_core.analyses.stress import agreement, ask_everywhere, order_policies, policies_of
from envprobe_core.regimes import REGIMES


@given(st.lists(st.integers(0, 9), min_size=2, max_size=8, unique=True))
def test_agreement_is_one_with_itself_and_minus_one_reversed(scores):
    assert agreement(scores, scores) == 1
    assert agreement(scores, [-score for score in scores]) == -1


def test_agreement_equals_kendall_without_ties():
    from scipy.stats import kendalltau

    generator = np.random.default_rng(3)
    for _ in range(20):
        one, other = generator.permutation(7), generator.permutation(7)
        assert agreement(one, other) == pytest.approx(kendalltau(one, other).statistic)


def test_every_regime_is_asked_and_ordered():
    parts = [
        run(policies=policies_of(name), regimes=name, protocols="paper", seeds="0:12") for name in REGIMES
    ]
    episodes = pd.concat(parts, ignore_index=True)
    asked = ask_everywhere(episodes, "typical", 200)
    assert len(asked) == 3 * len(REGIMES)
    assert asked.loc[asked["regime"] != "S2", "paper_value"].isna().all()
    assert not asked["title"].isna().any()
    order = order_policies(episodes, "S1")
    assert len(order) == 3 * len(REGIMES)
    assert order["tau"].between(-1, 1).all()
    assert order["rank"].between(1, 6).all()
