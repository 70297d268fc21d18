"""Figures of whole distributions: what they count, that hues stay the policies', that bytes are the same."""

import numpy as np
import pandas as pd

from envprobe_book.pages.distributions import draw_onsets
from palette import hues


def timed(drift, action, world="tooldag", protocol="paper"):
    known = {"protocol": protocol, "world": world, "horizon": 30}
    return pd.DataFrame(known | {"collapse_onset": drift, "action_onset": action})


def test_onsets_are_counted_above_the_diagonal_and_the_censored_left_out():
    tools = timed([1.0, 1, 5, np.nan, 2], [4.0, 4, 5, 9, np.nan])
    rooms = timed([9.0], [2.0], "objectstate")
    drawing = draw_onsets(pd.concat([tools, rooms]))
    assert "as written, tools: 2 of 3 episodes above the diagonal" in drawing.alt
    assert "as written, rooms and graphs: 0 of 1 episodes" in drawing.alt
    spatial, procedural = drawing.figure.axes
    areas = procedural.collections[0].get_sizes().tolist()  # of two episodes on a spot, and of one
    assert areas[0] > areas[1]
    assert len(spatial.collections[0].get_offsets()) == 1
    assert hues(drawing) == []


def test_onsets_that_never_come_make_an_empty_figure_and_the_same_data_the_same_bytes():
    nothing = draw_onsets(timed([np.nan], [np.nan]))
    assert nothing.alt.endswith("as written, tools: 0 of 0 episodes above the diagonal.")
    some = timed([3.0, 4.0], [8.0, 1.0])
    assert draw_onsets(some).svg() == draw_onsets(some).svg()
