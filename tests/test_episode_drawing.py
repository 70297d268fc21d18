"""The drawing of one episode: what it says of the recording, and that it has no hue."""

import numpy as np
import pytest

from envprobe_book.facts.replay import witness
from envprobe_book.pages.episode import draw_episode
from envprobe_book.widgets.player import record_pair
from envprobe_core.conditions import make_condition
from envprobe_core.protocols import OBSERVED
from palette import hues


@pytest.mark.parametrize("world", ["tooldag", "objectstate", "graphnav"])
@pytest.mark.parametrize("policy", ["simple", "cd", "no-probe"])
def test_the_drawing_has_the_recordings_probes_terms_and_accuracy(world, policy):
    condition = make_condition(world, policy, protocol=OBSERVED)
    drawing = draw_episode(record_pair(world, (policy,), 3, protocol="observed"))
    seen = witness(condition, np.array([3]))
    recording, steps = seen.trajectory, int(seen.trajectory.steps[0])
    top, middle, bottom = drawing.figure.axes
    assert np.array_equal(top.lines[0].get_ydata(), recording.accuracy[0, : steps + 1], equal_nan=True)
    fired = np.flatnonzero(recording.probe[0, :steps] >= 0)
    marks = next(line for line in middle.lines if line.get_marker() == "v")
    assert marks.get_xdata().tolist() == fired.tolist()
    heights = np.array([[bar.get_height() for bar in term] for term in middle.containers])  # [term, step]
    assert len(heights) == len(seen.kept_terms or "csud")
    score = seen.rho()[0, fired, recording.probe[0, fired]]
    if policy != "no-probe":
        assert heights[:, fired].sum(axis=0) == pytest.approx(score)
        assert f"{len(fired)} probes, {int(recording.useful[0].sum())} of them useful" in drawing.alt
    assert [name.get_text() for name in bottom.get_yticklabels()] == list(seen.world.field_names)
    assert hues(drawing) == []
