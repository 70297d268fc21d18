"""VoI beside the paper's policies: the arithmetic of the held-out test."""

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
