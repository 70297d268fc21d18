"""VoI beside the paper's policies: the held-out test's arithmetic, dominance by hand, what it learns."""

import pandas as pd
import pytest

from envprobe_core import run
from envprobe_core.analyses import voi
from envprobe_core.errors import InputError


@pytest.fixture(scope="module")
def compared():
    return voi.load_heldout("S1", "observed", seeds="300000:300060", resamples=300)


def test_design_seeds_are_refused():
    with pytest.raises(InputError, match="seed 101999 was used to design VoI"):
        voi.load_heldout("S1", "paper", seeds="101999:102003")


def test_differences_are_paired_and_in_points(compared):
    found = run("graphnav", "voi periodic", "S1", "observed", seeds="300000:300060")
    row = compared[
        (compared["world"] == "graphnav") & (compared["variant"] == "voi") & (compared["rival"] == "periodic")
    ].iloc[0]
    for measure in voi.MEASURES:
        wide = found.pivot(index="seed", columns="policy", values=measure).astype(float)
        assert row[measure] == pytest.approx(100 * (wide["voi"] - wide["periodic"]).mean())
        assert row[f"{measure}_low"] <= row[measure] <= row[f"{measure}_high"]


def test_dominance_by_hand():
    points = pd.DataFrame(
        [
            ("no-probe", 0.9, 0.5), ("simple", 0.5, 0.7), ("cd", 0.4, 0.6), ("oracle", 1.0, 1.0),
            ("voi-success", 0.8, 0.8), ("voi-accuracy", 0.5, 0.65),
        ],
        columns=["policy", "success", "accuracy"],
    )  # fmt: skip
    found = voi.dominance(points.assign(protocol="paper", regime="S2", world="tooldag")).iloc[0]
    assert (found["rivals"], found["beats"]) == (2, 1)
    assert (found["weights"], found["beaten"]) == (2, 1)
    assert (found["most"], found["best"]) == ("simple", "no-probe")
    assert (found["accuracy"], found["success"]) == pytest.approx((10, -10))
    assert not found["idle"]


def test_under_a_protocol_without_answers_voi_stands_still():
    arms = ["no-probe", "periodic", *voi.WEIGHTED.values()]
    found = run(policies=arms, regimes="S1", protocols="released observed", seeds="0:12")
    key = ["protocol", "regime", "world", "policy"]
    points = found.groupby(key, sort=False)[["accuracy", "success"]].mean().reset_index()
    idle = voi.dominance(points).groupby("protocol")["idle"].agg(["all", "any"])
    assert idle.to_numpy().tolist() == [[False, False], [True, True]]  # observed, released


def test_learned_rates_come_nearer_to_the_truth():
    learned = voi.learned_rates("S3", "paper", seeds="0:40")
    assert (learned[learned["step"] == 0]["rate"] == 0.1).all()
    assert (learned["true"] == 0.3).all()
    last = learned[learned["step"] == 39]
    assert last["rate"].between(0.1, 0.35, inclusive="neither").all()
    assert (last["rate_low"] <= last["rate_high"]).all()
