"""What `run` measures beside the scores."""

import numpy as np
import pytest

from envprobe_core import run
from envprobe_core.cells import make_cell
from envprobe_core.engine.running import record
from envprobe_core.protocols import PROTOCOLS


@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_tracks_are_the_accuracy_that_the_protocol_watches(protocol):
    frame = run("tooldag graphnav", "simple random", protocols=protocol, seeds="3:9", facts="track")
    for (world, policy), own in frame.groupby(["world", "policy"]):
        cell = make_cell(world, policy, protocol=PROTOCOLS[protocol])
        recording = record(cell, np.arange(3, 9), scores_all=False)
        np.testing.assert_array_equal(np.stack(own["track"]), recording.accuracy)


def test_the_first_time_below_the_threshold_is_the_onset_where_one_time_is_enough():
    frame = run("tooldag", "no-probe", protocols="paper observed", seeds="0:40", facts="track")
    low = np.stack(frame["track"]) < 0.6
    first = np.where(low.any(axis=1), low.argmax(axis=1), np.nan)
    np.testing.assert_array_equal(first, frame["collapse_onset"])
