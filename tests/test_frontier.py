"""Frontiers of success and accuracy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from envprobe_core.analyses.frontier import nondominated


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12))
def test_nondominated_points_are_those_that_no_point_beats(points):
    array = np.array(points, dtype=float)
    naive = [not any(a >= x and b >= y and (a, b) != (x, y) for a, b in points) for x, y in points]
    assert nondominated(array).tolist() == naive
    assert any(naive)
    stacked = np.stack([array, array[::-1]])
    assert nondominated(stacked).tolist() == [naive, naive[::-1]]
