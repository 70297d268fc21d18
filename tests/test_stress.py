"""Other regimes: the claims asked in each, and the order of policies compared."""

import numpy as np
import pytest

from envprobe_core.analyses.stress import agreement


def test_agreement_equals_kendall_without_ties():
    from scipy.stats import kendalltau

    generator = np.random.default_rng(3)
    for _ in range(20):
        one, other = generator.permutation(7), generator.permutation(7)
        assert agreement(one, other) == pytest.approx(kendalltau(one, other).statistic)
