"""What `run` measures beside the scores, and means over worlds, by hand."""

import numpy as np
import pytest

from envprobe_core import run, summarize
from envprobe_core.cells import make_cell
from envprobe_core.intervals import wilson
from envprobe_core.protocols import PROTOCOLS
from envprobe_core.sweep import Piece, Task, simulate

SPATIAL = {"spatial": ("objectstate", "graphnav")}


@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_tracks_are_the_accuracy_that_the_protocol_watches(protocol):
    frame = run("tooldag graphnav", "simple random", protocols=protocol, seeds="3:9", facts="track")
    for (world, policy), own in frame.groupby(["world", "policy"]):
        cell = make_cell(world, policy, protocol=PROTOCOLS[protocol])
        recording = simulate(Task((Piece(0, cell, np.arange(3, 9)),)))
        np.testing.assert_array_equal(np.stack(own["track"]), recording.accuracy)


def test_the_first_time_below_the_threshold_is_the_onset_where_one_time_is_enough():
    frame = run("tooldag", "no-probe", protocols="paper observed", seeds="0:40", facts="track")
    low = np.stack(frame["track"]) < 0.6
    first = np.where(low.any(axis=1), low.argmax(axis=1), np.nan)
    np.testing.assert_array_equal(first, frame["collapse_onset"])


def test_pooled_worlds_have_plain_means_and_success_has_wilsons_interval():
    frame = run(policies="simple", protocols="paper", seeds="0:12")
    spatial = frame[frame["world"] != "tooldag"]
    found = summarize(frame, "accuracy success", ["policy"], strata=SPATIAL, resamples=200)
    found = found.set_index("measure")
    assert found["stratum"].eq("spatial").all()
    assert found.loc["accuracy", "mean"] == pytest.approx(spatial["accuracy"].mean(), rel=1e-12)
    assert found.loc["accuracy", "low"] < found.loc["accuracy", "mean"] < found.loc["accuracy", "high"]
    share = wilson(int(spatial["success"].sum()), 24)
    assert tuple(found.loc["success", ["mean", "low", "high", "n"]]) == tuple(share)


def test_a_single_episode_has_a_mean_and_no_interval():
    frame = run("tooldag", "simple", protocols="paper", seeds="0:1")
    found = summarize(frame, "accuracy", ["policy"], strata={"tools": ("tooldag",)}).iloc[0]
    assert found["mean"] == frame["accuracy"].iloc[0]
    assert np.isnan(found["low"])
    assert found["n"] == 1
