"""Scores of hand-made recordings: right fields, slot overlap, pairing, encoding, onsets, counts."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from envprobe_core.agents.profiles import PROFILES
from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import kernel_params, score, simulate_logged
from envprobe_core.protocols import PAPER
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import make_world
from strategies import conditions, seeds

TOOLS = make_world("tooldag", REGIMES["S1"], PAPER)
GRAPH = make_world("graphnav", REGIMES["S1"], PAPER)


def fields_of(world, values, fill=0):
    """Fill a field vector by name."""
    vector = np.full(world.fields, fill, dtype=np.int8)
    for name, value in values.items():
        vector[world.field_names.index(name)] = value
    return vector


def scored(world, belief, gold, profile="typical", **given):
    """Score an episode that only acts, [time, field]; `given` are switches and parts of the recording."""
    names = ("staleness", "confidence", "place", "action", "answer", "useful", "valid", "success")
    recorded = dict.fromkeys(names, 0) | {"belief": np.stack(belief), "gold": np.stack(gold)}
    recorded |= {"probe": -1, "acted": True, "score": np.nan, "steps": len(belief) - 1}
    recorded |= {name: given.pop(name) for name in recorded.keys() & given.keys()}
    protocol = replace(PAPER, name="x", **given)
    condition = replace(make_condition(world.name, "simple", "S1", protocol), profile=PROFILES[profile])
    return score(kernel_params(condition), {name: np.asarray(part)[None] for name, part in recorded.items()})


def test_what_lies_behind_the_end_does_not_count():
    right, wrong = fields_of(TOOLS, {}), fields_of(TOOLS, {}, fill=-1)
    made = scored(TOOLS, [right, right, wrong, wrong], [right] * 4, steps=1)
    np.testing.assert_array_equal(made.accuracy[0], [1.0, 1.0, np.nan, np.nan])
    assert made.measures["accuracy"][0] == made.measures["accuracy_terminal"][0] == 1.0
    assert np.isnan(made.measures["collapse_onset"][0])
    nothing = scored(TOOLS, [right, wrong], [right] * 2, steps=0, accuracy="slots")
    assert nothing.measures["accuracy"][0] == 0.0  # the mean over no step


# beliefs and gold that differ from all zeros, first all of the start, and the weighted shares they give;
# where `bare`, a scribe names no place of what is held, no subgoal, and its target alone as open
HELD_TOOLS = {"loaded(0)": 1, "loaded(1)": 1, "loaded(4)": -1}, {"loaded(1)": 1, "loaded(2)": 1}, {}
NO_TOOLS = {}, HELD_TOOLS[1], {}
ROOM_START = {"location(key 0)": 2, "location(goal 0)": 3, "lock(1)": 1}
IN_ROOMS = (
    {"location(key 0)": 5, "held(key 0)": 1, "location(goal 0)": 5, "held(goal 0)": 1, "lock(1)": 1}
    | {"location(box 0)": 4},
    {"location(key 0)": 5, "held(key 0)": 1, "location(goal 0)": 3},
    ROOM_START,
)
LACKING = {"state(edge 5)": -1}  # the instance has five edges
ON_GRAPH = (
    {"node": 3, "location(key 0)": 6, "location(key 1)": 6, "state(edge 0)": 1, "state(edge 1)": 1} | LACKING,
    {"node": 3, "location(key 0)": 6} | LACKING,
    LACKING,
)


@pytest.mark.parametrize(
    ("name", "values", "encoding", "profile", "expected"),
    [
        # completed 1 of 3; values 1 of 2 match; open {2, 3} against {0, 3, 4}: 1 of 4
        ("tooldag", HELD_TOOLS, "meaning", "scripted-open", 0.3 / 3 + 0.4 / 2 + 0.3 / 4),
        ("tooldag", HELD_TOOLS, "literal", "scripted-open", 0.3 / 3 + 0.3 / 4),
        ("tooldag", HELD_TOOLS, "literal", "scripted-true", 0.3 / 3 + 0.4 / 2),
        ("tooldag", HELD_TOOLS, "meaning", "scribe", 0.3 / 3 + 0.4 / 2 + 0.3 / 3),
        ("tooldag", NO_TOOLS, "meaning", "scribe-hesitant", 0.3 * 3 / 5),  # it lists all five as open
        # position; held 1 of 2; objects 2 of 4 (bare: 1); doors 3 of 4; subgoals 1 of 2 (bare: none)
        ("objectstate", IN_ROOMS, "meaning", "typical", 0.2 + 0.15 / 2 + 0.3 / 2 + 0.2 * 3 / 4 + 0.15 / 2),
        ("objectstate", IN_ROOMS, "meaning", "scribe", 0.2 + 0.15 / 2 + 0.3 / 4 + 0.2 * 3 / 4),
        # position; held 1 of 2; edges 3 of 5; keys 1 of 2 (bare: none)
        ("graphnav", ON_GRAPH, "meaning", "typical", 0.25 + 0.2 / 2 + 0.3 * 3 / 5 + 0.25 / 2),
        ("graphnav", ON_GRAPH, "meaning", "scribe", 0.25 + 0.2 / 2 + 0.3 * 3 / 5),
    ],
)
def test_slots(name, values, encoding, profile, expected):
    world = make_world(name, REGIMES["S1"], PAPER)
    belief, gold, first = (fields_of(world, own) for own in values)
    made = scored(world, [belief] * 2, [first, gold], profile, accuracy="slots", encoding=encoding)
    assert made.measures["accuracy"][0] == made.accuracy[0, 1] == pytest.approx(expected)
    if name == "objectstate":  # the agent's own place is where it was when it last looked
        moved = {"accuracy": "slots", "pairing": "lagged", "place": [0, 1]}
        gone = scored(world, [belief] * 2, [first, gold], profile, **moved)
        assert gone.measures["accuracy"][0] == pytest.approx(expected - 0.2)


@settings(max_examples=60)
@given(conditions(), seeds)
def test_the_track_is_the_share_of_right_fields(condition, some):
    made = simulate_logged(condition, some)
    lagged, slots = condition.protocol.pairing == "lagged", condition.protocol.accuracy == "slots"
    for row, steps in enumerate(made.steps.tolist()):
        there = made.gold[row, 0] >= 0
        belief, gold = made.belief[row][:, there], made.gold[row][:, there]
        track = [(belief[max(t - lagged, 0)] == gold[t]).mean() for t in range(steps + 1)]
        found = {name: column[row] for name, column in made.measures.items()}
        assert slots or made.accuracy[row, : steps + 1].tolist() == track
        assert np.isnan(made.accuracy[row, steps + 1 :]).all()
        assert found["accuracy_terminal"] == (belief[steps] == gold[steps]).sum() / there.sum()
        assert found["accuracy"] == (found["accuracy_slot"] if slots else track[steps])
        if slots and steps:
            assert found["accuracy_slot"] == pytest.approx(made.accuracy[row, 1 : steps + 1].mean())


# onsets

HIGH, LIMIT, LOW = 14, 9, 8  # right fields of 15: 9 of them are exactly .6


def with_right(counts):
    """Make an episode on five tools with as many right fields at each time."""
    belief = [np.where(np.arange(TOOLS.fields) < count, 0, -1).astype(np.int8) for count in counts]
    return {"belief": belief, "gold": [fields_of(TOOLS, {})] * len(counts)}


@pytest.mark.parametrize(
    ("track", "steps", "rule", "onset"),
    [
        ([HIGH, LIMIT, LOW, HIGH], 3, "first", 2),
        ([LIMIT, LIMIT, LIMIT, LIMIT], 3, "first", None),
        ([HIGH, HIGH, HIGH, LOW], 2, "first", None),
        ([LOW, HIGH, LOW, LOW], 3, "two-below", 2),
        ([LOW, LOW, HIGH, HIGH], 3, "two-below", 0),
        ([LOW, HIGH, LOW, HIGH], 3, "two-below", None),
        ([LOW, HIGH, LOW, HIGH], 2, "two-below", 2),  # alone at the end
    ],
)
def test_collapse_onset(track, steps, rule, onset):
    """Slots have a track from time 1 on: what they would say of time 0, here a collapse, does not count."""
    made = scored(TOOLS, **with_right(track), steps=steps, onset=rule)
    np.testing.assert_array_equal(made.measures["collapse_onset"], [np.nan if onset is None else onset])
    right, wrong = fields_of(GRAPH, {}), fields_of(GRAPH, {}, fill=-1)
    belief = [wrong, *(right if count >= LIMIT else wrong for count in track)]
    made = scored(GRAPH, belief, [right] * len(belief), steps=steps + 1, onset=rule, accuracy="slots")
    np.testing.assert_array_equal(made.measures["collapse_onset"], [np.nan if onset is None else onset + 1])


@pytest.mark.parametrize(
    ("acted", "valid", "rule", "onset"),
    [
        ([1, 1, 0, 1, 1], [1, 1, 0, 0, 0], "running", 4),  # 1/1, 2/2, probe, 2/3, 2/4 < .6
        ([1, 1, 1, 1, 1], [1, 1, 1, 0, 0], "running", None),  # 3/5 is not below .6
        ([0, 0, 0, 0, 0], [0, 0, 0, 0, 0], "running", None),
        ([1, 1, 1, 1, 1], [0, 1, 1, 1, 1], "running", 0),  # 0/1 at once
        ([1, 1, 0, 1, 1], [1, 1, 0, 0, 1], "two-invalid", 3),  # counted from 1
        ([1, 1, 1, 1, 1], [1, 0, 1, 1, 0], "two-invalid", None),
    ],
)
def test_action_onset_counts_valid_task_actions_only(acted, valid, rule, onset):
    made = scored(TOOLS, **with_right([15] * 6), acted=acted, valid=valid, actions=rule)
    np.testing.assert_array_equal(made.measures["action_onset"], [np.nan if onset is None else onset])
    assert made.measures["actions"][0] == sum(acted)
    assert made.measures["valid_actions"][0] == sum(valid)


def test_counts():
    done = {"probe": [-1, 4, 4], "useful": [0, 1, 0], "acted": [1, 0, 0], "success": True}
    made = scored(TOOLS, **with_right([15] * 4), **done)
    columns = {name: column[0] for name, column in made.measures.items()}
    names = ("probes", "useful", "repeated_probes", "actions", "valid_actions", "success", "steps")
    assert [columns[name] for name in names] == [2, 1, 1, 1, 0, True, 3]
