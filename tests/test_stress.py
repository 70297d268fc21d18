"""Other regimes: the claims asked in each, and the order of policies compared."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envprobe_core.analyses.stress import agreement


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
