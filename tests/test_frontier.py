"""Frontiers of success and accuracy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from envprobe_core import run
from envprobe_core.analyses.frontier import find_frontiers, nondominated

RESAMPLES = 200


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12))
def test_nondominated_points_are_those_that_no_point_beats(points):
    array = np.array(points, dtype=float)
    naive = [not any(a >= x and b >= y and (a, b) != (x, y) for a, b in points) for x, y in points]
    assert nondominated(array).tolist() == naive
    assert any(naive)
    stacked = np.stack([array, array[::-1]])
    assert nondominated(stacked).tolist() == [naive, naive[::-1]]


def test_a_policy_that_no_draw_beats_is_always_on_the_frontier():
    frame = run("tooldag", ["no-probe", "simple"], protocols="paper", seeds="0:12")
    better = frame.assign(
        success=frame["policy"] == "simple", accuracy=np.where(frame["policy"] == "simple", 1.0, 0.0)
    )
    points = find_frontiers(better, strata={"tools": ("tooldag",)}, resamples=RESAMPLES).set_index("policy")
    assert points["stability"].to_dict() == {"no-probe": 0.0, "simple": 1.0}
    assert points.loc["no-probe", "beaten_by"] == "simple"
