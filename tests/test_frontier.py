"""Frontiers of success and accuracy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from envprobe_core import run
from envprobe_core.analyses.frontier import COMPETING, find_frontiers, nondominated

RESAMPLES = 200


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12))
def test_nondominated_points_are_those_that_no_point_beats(points):
    array = np.array(points, dtype=float)
    naive = [not any(a >= x and b >= y and (a, b) != (x, y) for a, b in points) for x, y in points]
    assert nondominated(array).tolist() == naive
    assert any(naive)
    stacked = np.stack([array, array[::-1]])
    assert nondominated(stacked).tolist() == [naive, naive[::-1]]


def test_frontiers_leave_oracles_out_and_name_who_beats():
    frame = run(policies=[*COMPETING, "oracle", "oracle-tw"], regimes="S1", protocols="paper", seeds="0:14")
    points = find_frontiers(frame, resamples=RESAMPLES)
    oracles, rest = points[~points["competing"]], points[points["competing"]]
    assert oracles["stability"].isna().all()
    assert not oracles["nondominated"].any()
    assert (rest["nondominated"] == (rest["beaten_by"] == "")).all()
    assert rest["stability"].between(0, 1).all()
    assert (points["success_low"] <= points["success"]).all()
    own = rest[rest["stratum"] == "procedural"].set_index("policy")
    tools = frame[(frame["world"] == "tooldag") & frame["policy"].isin(COMPETING)]
    means = tools.groupby("policy")[["success", "accuracy"]].mean()
    for policy, names in own["beaten_by"].items():
        beats = (means >= means.loc[policy]).all(axis=1) & (means > means.loc[policy]).any(axis=1)
        assert set(names.split()) == set(means.index[beats])


def test_a_policy_that_no_draw_beats_is_always_on_the_frontier():
    frame = run("tooldag", ["no-probe", "simple"], protocols="paper", seeds="0:12")
    better = frame.assign(
        success=frame["policy"] == "simple", accuracy=np.where(frame["policy"] == "simple", 1.0, 0.0)
    )
    points = find_frontiers(better, strata={"tools": ("tooldag",)}, resamples=RESAMPLES).set_index("policy")
    assert points["stability"].to_dict() == {"no-probe": 0.0, "simple": 1.0}
    assert points.loc["no-probe", "beaten_by"] == "simple"
