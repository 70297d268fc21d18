"""Drawings of one section each: instances of worlds, and the optimum above its policies."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.sparse.csgraph import shortest_path

from envprobe_book.pages.optimum import draw_optimum
from envprobe_book.pages.worlds import (
    ROOMS_IN_A_ROW,
    build,
    describe_world,
    draw_graph,
    draw_rooms,
    draw_tools,
    layered,
)
from envprobe_core.protocols import PROTOCOLS
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import WORLDS


def texts(drawing):
    """What a drawing writes, in all its panels."""
    return [text.get_text() for panel in drawing.figure.axes for text in panel.texts]


@pytest.mark.parametrize("regime", REGIMES)
def test_a_graph_is_drawn_by_distance_with_every_lock_and_key(regime):
    world, instance, length = build("graphnav", regime, 3, "paper")
    ends, start = instance.task.ends[: world.rules.edges], int(instance.task.start)
    spot, joined = layered(world.rules.nodes, ends, start), np.zeros((world.rules.nodes,) * 2)
    joined[tuple(ends.T)] = 1
    far = shortest_path(joined, directed=False, unweighted=True, indices=start)
    assert [spot[node][0] for node in range(world.rules.nodes)] == far.tolist()
    assert len(set(spot.values())) == world.rules.nodes
    drawing = draw_graph(regime, 3)
    written = " ".join(texts(drawing)).split()
    assert {*map(str, range(world.rules.nodes)), "start", "target"} <= {*written}
    assert sum(bool(re.fullmatch(r"k\d", one)) for one in written) == world.rules.locks + world.rules.keys
    assert drawing.alt.endswith(f"{length} actions away.")


@pytest.mark.parametrize("regime", REGIMES)
def test_rooms_are_drawn_with_all_that_lies_in_them(regime):
    world, instance, length = build("objectstate", regime, 3, "paper")
    rules, drawing = world.rules, draw_rooms(regime, 3)
    written = texts(drawing)
    assert {*map(str, range(rules.rooms)), "agent", "goal"} <= {*written}
    between = instance.task.key_of_door[ROOMS_IN_A_ROW - 1 : rules.doors : ROOMS_IN_A_ROW]
    twice = int((between >= 0).sum())  # a locked door between two strips stands in both
    assert len(written) == rules.rooms + 1 + rules.objects + rules.locks + twice
    assert f"has {length} actions" in drawing.alt


@pytest.mark.parametrize("regime", REGIMES)
def test_tools_are_drawn_once_for_each_way_of_drawing_them(regime):
    drawing = draw_tools([*PROTOCOLS], regime, 3)
    ways = {one.instances for one in PROTOCOLS.values()}
    assert len(drawing.figure.axes) == len(ways)
    tools = build("tooldag", regime, 3, "paper").world.rules.tools
    assert texts(drawing).count(str(tools - 1)) == len(ways)


@pytest.mark.parametrize("world", WORLDS)
def test_a_world_is_described_by_its_own_numbers(world):
    found = describe_world("S2", world, "paper")
    assert found["procedural"] + found["spatial"] == found["fields"] >= found["mutable"]
    assert 0 < found["rate"] <= 1


def test_every_policy_stands_in_the_drawing_and_its_description():
    points = pd.DataFrame(
        {"panel": "one", "policy": ["simple", "periodic"], "accuracy": [0.5, 0.6], "success": [0.7, 0.4]}
    )
    corners = pd.DataFrame({"panel": "one", "line": "optimum", "accuracy": [0.6, 0.8], "success": [0.9, 0.5]})
    drawing = draw_optimum(points, corners, loud=["simple"])
    assert drawing.alt.endswith("one, EnvProbe-Simple 0.70, 0.50; one, Periodic 0.40, 0.60.")
    assert list(drawing.drawings) == ["one"]
    (shown,) = drawing.drawings["one"].figure.axes
    named = {own.get_label(): own for own in shown.lines}
    assert "EnvProbe-Simple" in named
    assert list(named["other policies"].get_ydata()) == [0.6]
    line = next(own for own in shown.lines if own.get_label() == "optimum")
    assert np.all(np.diff(line.get_xdata()) <= 0)  # past its corners lies what is given away
    assert np.all(np.diff(line.get_ydata()) >= 0)
