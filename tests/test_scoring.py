"""Scores of hand-made recordings: right fields, slot overlap, pairing, encoding, onsets, counts."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import cells, seeds

from envprobe_core.agents.profiles import PROFILES
from envprobe_core.cells import make_cell
from envprobe_core.engine.running import record, score, setting_of
from envprobe_core.protocols import PAPER
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import make_world

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
    recorded = dict.fromkeys(("staleness", "confidence", "place", "action", "answer", "useful", "valid"), 0)
    recorded |= {
        "belief": np.stack(belief),
        "gold": np.stack(gold),
        "probe": -1,
        "acted": True,
        "score": np.nan,
    }
    recorded |= {"steps": len(belief) - 1, "success": False}
    recorded |= {name: given.pop(name) for name in recorded.keys() & given.keys()}
    protocol = replace(PAPER, name="x", **given)
    cell = replace(make_cell(world.name, "simple", "S1", protocol), profile=PROFILES[profile])
    return score(setting_of(cell), {name: np.asarray(part)[None] for name, part in recorded.items()})


def test_what_lies_behind_the_end_does_not_count():
    right, wrong = fields_of(TOOLS, {}), fields_of(TOOLS, {}, fill=-1)
    made = scored(TOOLS, [right, right, wrong, wrong], [right] * 4, steps=1)
    np.testing.assert_array_equal(made.accuracy[0], [1.0, 1.0, np.nan, np.nan])
    assert made.measures["accuracy"][0] == made.measures["accuracy_terminal"][0] == 1.0
    assert np.isnan(made.measures["collapse_onset"][0])
    nothing = scored(TOOLS, [right, wrong], [right] * 2, steps=0, accuracy="slots")
    assert nothing.measures["accuracy"][0] == 0.0  # the mean over no step


@pytest.mark.parametrize(
    ("encoding", "profile", "expected"),
    [
        # believed loaded {0, 1}, unloaded {2, 3} (4 unknown); gold loaded {1, 2}
        # completed 1/3; values 1 of 2 match; open {2, 3} against {0, 3, 4}: 1/4
        ("meaning", "scripted-open", 0.3 / 3 + 0.4 / 2 + 0.3 / 4),
        ("literal", "scripted-open", 0.3 / 3 + 0.3 / 4),
        ("literal", "scripted-true", 0.3 / 3 + 0.4 / 2),
    ],
)
def test_tool_slots(encoding, profile, expected):
    belief = fields_of(TOOLS, {"loaded(0)": 1, "loaded(1)": 1, "loaded(4)": -1})
    gold = fields_of(TOOLS, {"loaded(1)": 1, "loaded(2)": 1})
    made = scored(TOOLS, [belief] * 2, [gold] * 2, profile, accuracy="slots", encoding=encoding)
    assert made.measures["accuracy"][0] == made.accuracy[0, 1] == pytest.approx(expected)


def naive_overlap(world, belief, gold, first, stayed, match, keeps, bare, lists_all):
    """The slot overlap by the names of the fields and Python's own sets."""
    believed, true, started = (
        {
            name: value
            for name, value, there in zip(world.field_names, values, first, strict=True)
            if there >= 0
        }
        for values in (belief, gold, first)
    )

    def chosen(values, kind, *wanted):
        return {name for name, value in values.items() if name.startswith(kind) and value in wanted}

    def jaccard(one, other):
        return len(one & other) / len(one | other) if one | other else 1.0

    def share(kind, unwritten=-1):
        """The share of right fields; of a true value that a scribe does not write, none is."""
        names = [name for name in true if name.startswith(kind)]
        return sum(believed[name] == true[name] != unwritten for name in names) / len(names)

    def done(values):
        unlocked = chosen(values, "lock", 0) & chosen(started, "lock", 1)
        return chosen(values, "held(key", 1) | unlocked

    if world.name == "tooldag":
        mine, loaded = chosen(believed, "loaded", 1), chosen(true, "loaded", 1)
        values = len(mine & loaded) * match / len(loaded) if loaded else 1.0
        unloaded = chosen(believed, "loaded", 0) if keeps else set()
        if bare:
            named = range(world.rules.tools) if lists_all and not mine else [world.rules.tools - 1]
            unloaded = {f"loaded({tool})" for tool in named}
        return 0.3 * jaccard(mine, loaded) + 0.4 * values + 0.3 * jaccard(unloaded, chosen(true, "loaded", 0))
    holding = int(world.domain.max()) - 1
    things = share("location", holding if bare else -1)
    held = [chosen(values, "location", holding) for values in (believed, true)]
    if world.name == "graphnav":
        return 0.25 * share("node") + 0.2 * jaccard(*held) + 0.3 * share("state") + 0.25 * things
    held = [chosen(values, "held", 1) for values in (believed, true)]
    subgoals = jaccard(set() if bare else done(believed), done(true))
    return 0.2 * stayed + 0.15 * jaccard(*held) + 0.3 * things + 0.2 * share("lock") + 0.15 * subgoals


@settings(max_examples=60, deadline=None)
@given(cells(), seeds)
def test_the_track_is_that_of_plain_sets_and_counts(cell, some):
    made, world = record(cell, some), make_world(cell.world, cell.regime, cell.protocol)
    lagged, slots = cell.protocol.pairing == "lagged", cell.protocol.accuracy == "slots"
    habits = cell.profile
    writes = {
        "match": cell.protocol.encoding == "meaning" or habits.writes == "true",
        "keeps": habits.keeps_open or habits.copies_gold,
        "bare": habits.scribe and not habits.copies_gold,
        "lists_all": habits.lists_all,
    }
    for row, steps in enumerate(made.steps.tolist()):
        first = made.gold[row, 0].tolist()
        there = made.gold[row, 0] >= 0
        overlaps, track = [], {}
        for t in range(steps + 1):
            before = t - 1 if lagged and t > 0 else t
            belief, gold = made.belief[row, before].tolist(), made.gold[row, t].tolist()
            if t > 0:
                stayed = made.place[row, before] == made.place[row, t]
                overlaps.append(naive_overlap(world, belief, gold, first, stayed, **writes))
            right = np.equal(belief, gold)[there].mean()
            track[t] = right if not slots else overlaps[-1] if overlaps else np.nan
        mean = sum(overlaps) / steps if steps else 0.0
        found = {name: column[row] for name, column in made.measures.items()}
        assert made.accuracy[row, : steps + 1].tolist() == pytest.approx(list(track.values()), nan_ok=True)
        assert np.isnan(made.accuracy[row, steps + 1 :]).all()
        assert found["accuracy_slot"] == pytest.approx(mean)
        assert found["accuracy"] == (found["accuracy_slot"] if slots else track[steps])
        same = (made.belief[row, steps] == made.gold[row, steps])[there].sum() / there.sum()
        assert found["accuracy_terminal"] == same


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
    made = scored(
        TOOLS,
        **with_right([15] * 4),
        probe=np.array([-1, 4, 4], dtype=np.int16),
        useful=np.array([False, True, False]),
        acted=np.array([True, False, False]),
        success=True,
    )
    columns = {name: column[0] for name, column in made.measures.items()}
    names = ("probes", "useful", "repeated_probes", "actions", "valid_actions", "success", "steps")
    assert [columns[name] for name in names] == [2, 1, 1, 1, 0, True, 3]
