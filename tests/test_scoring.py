"""Scores of hand-made recordings: right fields, slot overlap, pairing, encoding, onsets, counts."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import cells, seeds

from envprobe_core.agents.profiles import PROFILES
from envprobe_core.cells import Cell, make_cell
from envprobe_core.engine.recording import Trajectory, score
from envprobe_core.engine.running import record
from envprobe_core.engine.setting import setting_of
from envprobe_core.protocols import PAPER
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import World, make_world

TOOLS = make_world("tooldag", REGIMES["S1"], PAPER)
ROOMS = make_world("objectstate", REGIMES["S1"], PAPER)
GRAPH = make_world("graphnav", REGIMES["S1"], PAPER)


def cell_of(world: World, profile: str = "typical", **switches: str) -> Cell:
    protocol = replace(PAPER, name="x", **switches)
    return replace(make_cell(world.name, "simple", "S1", protocol), profile=PROFILES[profile])


def fields_of(world: World, values: dict[str, int], fill: int = 0) -> np.ndarray:
    """Fill a field vector by name."""
    vector = np.full(world.fields, fill, dtype=np.int8)
    for name, value in values.items():
        vector[world.field_names.index(name)] = value
    return vector


def scored(world: World, belief: Any, gold: Any, profile: str = "typical", **given: Any) -> Trajectory:
    """Score an episode that only acts, [time, field]; `given` are switches and parts of the recording."""
    belief, gold = np.stack(belief), np.stack(gold)
    times = len(belief)
    none = np.zeros(times - 1, dtype=bool)
    recorded = {
        "belief": belief,
        "gold": gold,
        "staleness": np.zeros_like(belief),
        "confidence": np.zeros_like(belief),
        "place": np.zeros(times, dtype=np.int8),
        "action": np.zeros(times - 1, dtype=np.int16),
        "probe": np.full(times - 1, -1, dtype=np.int16),
        "answer": np.zeros(times - 1, dtype=np.int8),
        "useful": none,
        "valid": none,
        "acted": ~none,
        "score": np.full(times - 1, np.nan),
        "steps": times - 1,
        "success": False,
    }
    parts = {name: given.pop(name) for name in recorded if name in given}
    rows = {name: np.asarray(part)[None] for name, part in (recorded | parts).items()}
    return score(setting_of(cell_of(world, profile, **given)), rows)


def overlap(
    world: World, belief: np.ndarray, gold: np.ndarray, profile: str = "typical", **given: Any
) -> float:
    """Return the slot overlap of one state."""
    made = scored(world, [belief] * 2, [gold] * 2, profile, accuracy="slots", **given)
    assert np.isnan(made.accuracy[0, 0])
    assert made.measures["accuracy"][0] == made.measures["accuracy_slot"][0] == made.accuracy[0, 1]
    return made.accuracy[0, 1]


# ---------------------------------------------------------------- right fields


def test_right_fields_and_the_belief_before() -> None:
    gold = [fields_of(TOOLS, {}), fields_of(TOOLS, {"loaded(0)": 1}), fields_of(TOOLS, {"loaded(1)": 1})]
    # b_0 is right; b_1 knows one field too few; b_2 is that of g_1, unknown in one more field
    belief = [gold[0], gold[0], fields_of(TOOLS, {"loaded(0)": 1, "loaded(4)": -1})]
    plain, lagged = (scored(TOOLS, belief, gold, pairing=name) for name in ("same-step", "lagged"))
    assert plain.accuracy[0].tolist() == [15 / 15, 14 / 15, 12 / 15]
    # b_0 with g_0, b_0 with g_1, b_1 with g_2
    assert lagged.accuracy[0].tolist() == [15 / 15, 14 / 15, 14 / 15]
    assert plain.measures["accuracy"][0] == 12 / 15
    assert lagged.measures["accuracy"][0] == 14 / 15
    assert plain.measures["accuracy_terminal"][0] == lagged.measures["accuracy_terminal"][0] == 12 / 15


def test_what_lies_behind_the_end_does_not_count() -> None:
    right, wrong = fields_of(TOOLS, {}), fields_of(TOOLS, {}, fill=-1)
    made = scored(TOOLS, [right, right, wrong, wrong], [right] * 4, steps=1)
    assert made.accuracy[0, :2].tolist() == [1.0, 1.0]
    assert np.isnan(made.accuracy[0, 2:]).all()
    assert made.measures["accuracy"][0] == made.measures["accuracy_terminal"][0] == 1.0
    assert np.isnan(made.measures["collapse_onset"][0])
    nothing = scored(TOOLS, [right, wrong], [right] * 2, steps=0, accuracy="slots")
    assert nothing.measures["accuracy"][0] == 0.0  # the mean over no step


# ---------------------------------------------------------------- slots


@pytest.mark.parametrize(
    ("encoding", "profile", "expected"),
    [
        # believed loaded {0, 1}, unloaded {2, 3} (4 unknown); gold loaded {1, 2}
        # completed 1/3; values 1 of 2 match; open {2, 3} against {0, 3, 4}: 1/4
        ("meaning", "scripted-open", 0.3 / 3 + 0.4 / 2 + 0.3 / 4),
        ("literal", "scripted-open", 0.3 / 3 + 0.3 / 4),
        ("literal", "scripted-true-open", 0.3 / 3 + 0.4 / 2 + 0.3 / 4),
        ("meaning", "scripted", 0.3 / 3 + 0.4 / 2),
        ("literal", "scripted", 0.3 / 3),
        ("literal", "scripted-true", 0.3 / 3 + 0.4 / 2),
    ],
)
def test_tool_slots(encoding: str, profile: str, expected: float) -> None:
    belief = fields_of(TOOLS, {"loaded(0)": 1, "loaded(1)": 1, "loaded(4)": -1})
    gold = fields_of(TOOLS, {"loaded(1)": 1, "loaded(2)": 1})
    assert overlap(TOOLS, belief, gold, profile, encoding=encoding) == pytest.approx(expected)


def test_an_idle_agent_scores_at_least_seven_tenths_on_tools() -> None:
    nothing = [fields_of(TOOLS, {})] * 3
    for profile, expected in (("scripted", 0.7), ("scripted-open", 1.0)):
        still = scored(
            TOOLS, nothing, nothing, profile, accuracy="slots", pairing="lagged", encoding="literal"
        )
        assert still.accuracy[0, 1:].tolist() == pytest.approx([expected] * 2)
        assert still.measures["accuracy"][0] == pytest.approx(expected)


def test_room_slots() -> None:
    # S1: 5 rooms, 2 keys, 1 box, 1 goal, 4 doors
    gold = fields_of(
        ROOMS, {"location(key 0)": 5, "held(key 0)": 1, "location(key 1)": 2, "lock(1)": 1, "lock(2)": 1}
    )
    belief = fields_of(
        ROOMS,
        {
            "location(key 0)": 5,
            "held(key 0)": 1,
            "held(key 1)": 1,
            "location(key 1)": 3,
            "location(goal 0)": -1,
            "lock(1)": 1,
        },
    )
    # position right, inventory 1 of 2, objects 2 of 4, doors 3 of 4, subgoals both empty
    # subgoals: both keys and door 2 unlocked against one key
    expected = 0.2 + 0.15 / 2 + 0.3 * 2 / 4 + 0.2 * 3 / 4 + 0.15 / 3
    assert overlap(ROOMS, belief, gold) == pytest.approx(expected)
    done = gold.copy()
    done[ROOMS.field_names.index("held(goal 0)")] = 1  # the goal is no subgoal
    assert overlap(ROOMS, gold, done) == pytest.approx(0.2 + 0.15 / 2 + 0.3 + 0.2 + 0.15)


def test_a_door_is_a_subgoal_once_it_is_unlocked() -> None:
    locked, opened = (fields_of(ROOMS, {"lock(1)": lock, "lock(2)": 1}) for lock in (1, 0))
    for belief, doors, subgoals in ((opened, 1.0, 1.0), (locked, 3 / 4, 0.0)):
        made = scored(ROOMS, [locked, belief], [locked, opened], accuracy="slots")
        expected = 0.2 + 0.15 + 0.3 + 0.2 * doors + 0.15 * subgoals
        assert made.accuracy[0, 1] == pytest.approx(expected)


def test_a_scribe_names_its_target_alone_and_no_place_of_what_it_holds() -> None:
    """And no subgoal; an oracle names all."""
    loaded = fields_of(TOOLS, {"loaded(0)": 1})  # open are 1 to 4
    held = fields_of(ROOMS, {"location(key 0)": 5, "held(key 0)": 1})  # one of 4 objects
    key = fields_of(GRAPH, {"location(key 0)": 6})  # one of 2 keys
    for profile, tools, rooms, graph in (
        ("scribe", 0.7 + 0.3 / 4, 0.2 + 0.15 + 0.3 * 3 / 4 + 0.2, 0.75 + 0.25 / 2),
        ("scribe-hesitant", 0.7 + 0.3 / 4, 0.2 + 0.15 + 0.3 * 3 / 4 + 0.2, 0.75 + 0.25 / 2),
        ("copy-gold", 1.0, 1.0, 1.0),
    ):
        found = [overlap(w, b, b, profile) for w, b in ((TOOLS, loaded), (ROOMS, held), (GRAPH, key))]
        assert found == pytest.approx([tools, rooms, graph])
    idle = fields_of(TOOLS, {})  # the hesitant one lists all of the five tools until one is loaded
    assert [overlap(TOOLS, idle, idle, name) for name in ("scribe", "scribe-hesitant")] == pytest.approx(
        [0.7 + 0.3 / 5, 1.0]
    )


def test_edges_that_an_instance_lacks_count_in_no_mean() -> None:
    gold = fields_of(GRAPH, {"state(edge 4)": 1, "state(edge 5)": -1})  # 8 of 9 fields
    belief = fields_of(GRAPH, {"state(edge 5)": -1})
    made = scored(GRAPH, [belief] * 2, [gold] * 2)
    assert made.accuracy[0].tolist() == [7 / 8] * 2
    assert made.measures["accuracy_terminal"][0] == 7 / 8
    assert overlap(GRAPH, belief, gold) == pytest.approx(0.25 + 0.2 + 0.3 * 4 / 5 + 0.25)


def test_lagged_position_in_rooms_is_the_room_before() -> None:
    still = [fields_of(ROOMS, {})] * 3
    for pairing, expected in (("lagged", [0.8, 1.0]), ("same-step", [1.0, 1.0])):
        moved = scored(ROOMS, still, still, accuracy="slots", pairing=pairing, place=[0, 1, 1])
        assert moved.accuracy[0, 1:].tolist() == pytest.approx(expected)


def test_graph_slots() -> None:
    # S1: 6 nodes, 2 keys, 6 edges
    gold = fields_of(GRAPH, {"node": 3, "location(key 0)": 6, "location(key 1)": 2, "state(edge 4)": 1})
    belief = fields_of(GRAPH, {"node": 3, "location(key 0)": 6, "location(key 1)": 6, "state(edge 5)": 1})
    assert overlap(GRAPH, belief, gold) == pytest.approx(0.25 + 0.2 / 2 + 0.3 * 4 / 6 + 0.25 / 2)
    lost = belief.copy()
    lost[0] = 1
    assert overlap(GRAPH, lost, gold) == pytest.approx(0.2 / 2 + 0.3 * 4 / 6 + 0.25 / 2)


def naive_overlap(
    world: World, belief: list[int], gold: list[int], first: list[int], stayed: bool, match: bool,
    keeps: bool, bare: bool, lists_all: bool,
) -> float:  # fmt: skip
    """The slot overlap by the names of the fields and Python's own sets."""
    believed, true, started = (
        {
            name: value
            for name, value, there in zip(world.field_names, values, first, strict=True)
            if there >= 0
        }
        for values in (belief, gold, first)
    )

    def chosen(values: dict[str, int], kind: str, *wanted: int) -> set[str]:
        return {name for name, value in values.items() if name.startswith(kind) and value in wanted}

    def jaccard(one: set[str], other: set[str]) -> float:
        return len(one & other) / len(one | other) if one | other else 1.0

    def share(kind: str, unwritten: int = -1) -> float:
        """The share of right fields; of a true value that a scribe does not write, none is."""
        names = [name for name in true if name.startswith(kind)]
        return sum(believed[name] == true[name] != unwritten for name in names) / len(names)

    def unlocked(values: dict[str, int]) -> set[str]:
        return chosen(values, "lock", 0) & chosen(started, "lock", 1)

    if world.name == "tooldag":
        mine, loaded = chosen(believed, "loaded", 1), chosen(true, "loaded", 1)
        values = len(mine & loaded) * match / len(loaded) if loaded else 1.0
        unloaded = chosen(believed, "loaded", 0) if keeps else set()
        if bare:
            named = range(world.rules.tools) if lists_all and not mine else [world.rules.tools - 1]
            unloaded = {f"loaded({tool})" for tool in named}
        return 0.3 * jaccard(mine, loaded) + 0.4 * values + 0.3 * jaccard(unloaded, chosen(true, "loaded", 0))
    if world.name == "objectstate":
        mine, held = chosen(believed, "held", 1), chosen(true, "held", 1)
        objects, doors = share("location", world.rules.rooms if bare else -1), share("lock")
        done = chosen(true, "held(key", 1) | unlocked(true)
        named = set() if bare else chosen(believed, "held(key", 1) | unlocked(believed)
        return (
            0.2 * stayed + 0.15 * jaccard(mine, held) + 0.3 * objects + 0.2 * doors
            + 0.15 * jaccard(named, done)
        )  # fmt: skip
    nodes = int(world.domain[0])
    keys = share("location", nodes if bare else -1)
    mine, held = chosen(believed, "location", nodes), chosen(true, "location", nodes)
    return 0.25 * share("node") + 0.2 * jaccard(mine, held) + 0.3 * share("state") + 0.25 * keys


@settings(max_examples=60, deadline=None)
@given(cells(), seeds)
def test_the_track_is_that_of_plain_sets_and_counts(cell: Cell, some: np.ndarray) -> None:
    made, world = record(cell, some), make_world(cell.world, cell.regime, cell.protocol)
    lagged, slots = cell.protocol.pairing == "lagged", cell.protocol.accuracy == "slots"
    match = cell.protocol.encoding == "meaning" or cell.profile.writes == "true"
    keeps = cell.profile.keeps_open or cell.profile.copies_gold
    bare = cell.profile.scribe and not cell.profile.copies_gold
    lists_all = cell.profile.lists_all
    for row, steps in enumerate(made.steps.tolist()):
        first = made.gold[row, 0].tolist()
        there = made.gold[row, 0] >= 0
        overlaps, track = [], {}
        for t in range(steps + 1):
            before = t - 1 if lagged and t > 0 else t
            belief, gold = made.belief[row, before].tolist(), made.gold[row, t].tolist()
            if t > 0:
                stayed = made.place[row, before] == made.place[row, t]
                overlaps.append(
                    naive_overlap(world, belief, gold, first, stayed, match, keeps, bare, lists_all)
                )
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


# ---------------------------------------------------------------- onsets

HIGH, LIMIT, LOW = 14, 9, 8  # right fields of 15: 9 of them are exactly .6


def with_right(counts: list[int]) -> dict[str, list[np.ndarray]]:
    """Make an episode on five tools with as many right fields at each time."""
    belief = [np.where(np.arange(TOOLS.fields) < count, 0, -1).astype(np.int8) for count in counts]
    return {"belief": belief, "gold": [fields_of(TOOLS, {})] * len(counts)}


def with_slots(counts: list[int]) -> dict[str, list[np.ndarray]]:
    """Make an episode on a graph whose slots agree in full, or in nothing but an empty inventory."""
    right, wrong = fields_of(GRAPH, {}), fields_of(GRAPH, {}, fill=-1)
    belief = [right if count >= LIMIT else wrong for count in counts]
    return {"belief": belief, "gold": [right] * len(counts)}


@pytest.mark.parametrize(
    ("track", "steps", "first_time", "rule", "onset"),
    [
        ([HIGH, LIMIT, LOW, HIGH], 3, 0, "first", 2),
        ([LOW, HIGH, HIGH, HIGH], 3, 0, "first", 0),
        ([LIMIT, LIMIT, LIMIT, LIMIT], 3, 0, "first", None),
        ([HIGH, HIGH, HIGH, LOW], 2, 0, "first", None),
        ([HIGH, HIGH, LOW, HIGH], 2, 0, "first", 2),
        ([LOW, HIGH, LOW, LOW], 3, 0, "two-below", 2),
        ([LOW, LOW, HIGH, HIGH], 3, 0, "two-below", 0),
        ([LOW, HIGH, LOW, HIGH], 3, 0, "two-below", None),
        ([LOW, HIGH, LOW, HIGH], 2, 0, "two-below", 2),
        ([LOW, HIGH, LOW, LOW], 4, 1, "two-below", 3),
        ([LOW, LOW, HIGH, HIGH], 4, 1, "two-below", 1),
        ([HIGH, LOW, HIGH, LOW], 4, 1, "two-below", 4),
        ([HIGH, LOW, HIGH, LOW], 3, 1, "two-below", None),
        ([HIGH, LOW, LOW, HIGH], 2, 1, "two-below", 2),
        ([HIGH, LOW, HIGH, HIGH], 4, 1, "first", 2),
        ([HIGH, HIGH, HIGH, LOW], 4, 1, "first", 4),
    ],
)
def test_collapse_onset(track: list[int], steps: int, first_time: int, rule: str, onset: int | None) -> None:
    """Slots have a track from time 1 on: what they would say of time 0, here a collapse, does not count."""
    if first_time == 0:
        made = scored(TOOLS, **with_right(track), steps=steps, onset=rule)
    else:
        made = scored(GRAPH, **with_slots([LOW, *track]), steps=steps, onset=rule, accuracy="slots")
    np.testing.assert_array_equal(made.measures["collapse_onset"], [np.nan if onset is None else onset])


@settings(deadline=None)
@given(st.lists(st.sampled_from([0, LOW, LIMIT, 15]), min_size=2, max_size=13), st.data())
def test_onset_against_a_plain_loop(track: list[int], data: st.DataObject) -> None:
    steps = data.draw(st.integers(0, len(track) - 1))
    for first_time, episode, switches in (
        (0, (TOOLS, with_right(track)), {}),
        (1, (GRAPH, with_slots(track)), {"accuracy": "slots"}),
    ):
        single = [t for t in range(first_time, steps + 1) if track[t] < LIMIT]
        double = [t for t in single if t == steps or track[t + 1] < LIMIT]
        for rule, hits in (("first", single), ("two-below", double)):
            made = scored(episode[0], **episode[1], steps=steps, onset=rule, **switches)
            np.testing.assert_array_equal(made.measures["collapse_onset"], [hits[0] if hits else np.nan])


@pytest.mark.parametrize(
    ("acted", "valid", "onset"),
    [
        ([1, 1, 0, 1, 1], [1, 1, 0, 0, 0], 4),  # 1/1, 2/2, probe, 2/3, 2/4 < .6
        ([1, 1, 1, 1, 1], [1, 1, 1, 0, 0], None),  # 3/5 is not below .6
        ([0, 0, 0, 0, 0], [0, 0, 0, 0, 0], None),
        ([1, 1, 1, 1, 1], [0, 1, 1, 1, 1], 0),  # 0/1 at once
    ],
)
def test_action_onset_counts_valid_task_actions_only(
    acted: list[int], valid: list[int], onset: int | None
) -> None:
    flags = {name: np.array(part, dtype=bool) for name, part in (("acted", acted), ("valid", valid))}
    made = scored(TOOLS, **with_right([15] * 6), **flags)
    np.testing.assert_array_equal(made.measures["action_onset"], [np.nan if onset is None else onset])
    assert made.measures["actions"][0] == sum(acted)
    assert made.measures["valid_actions"][0] == sum(valid)


@pytest.mark.parametrize(
    ("valid", "onset"),
    [
        ([1, 0, 1, 0, 0], 4),  # steps count from 1
        ([0, 0, 1, 1, 1], 1),
        ([1, 0, 1, 0, 1], None),
        ([1, 1, 1, 1, 0], None),  # alone at the end
    ],
)
def test_two_steps_without_a_valid_action_are_drift(valid: list[int], onset: int | None) -> None:
    """Probes, which act on nothing, among them."""
    flags = {"acted": np.array(valid, dtype=bool), "valid": np.array(valid, dtype=bool)}
    made = scored(TOOLS, **with_right([15] * 6), **flags, actions="two-invalid")
    np.testing.assert_array_equal(made.measures["action_onset"], [np.nan if onset is None else onset])


@pytest.mark.parametrize(
    ("probe", "repeated"), [([2, -1, 2, 2, 0], 2), ([-1, -1, -1, -1, -1], 0), ([3, 0, 1, 2, -1], 0)]
)
def test_repeated_probes(probe: list[int], repeated: int) -> None:
    made = scored(TOOLS, **with_right([15] * 6), probe=np.array(probe, dtype=np.int16))
    assert made.measures["repeated_probes"][0] == repeated
    assert made.measures["probes"][0] == sum(field >= 0 for field in probe)


# ---------------------------------------------------------------- the switches together


def tool_episode() -> dict[str, list[np.ndarray]]:
    """Three steps on five tools: right at first, then one tool behind the world."""
    gold = [fields_of(TOOLS, {})]
    for tool in range(3):
        following = gold[-1].copy()
        following[tool] = 1
        gold.append(following)
    return {"belief": [gold[0], gold[1], gold[1], gold[1]], "gold": gold}


def test_the_switches_of_the_scorer() -> None:
    n = TOOLS.fields

    def measures(profile: str = "scripted-open", **switches: str) -> dict[str, float]:
        made = scored(TOOLS, **tool_episode(), profile=profile, **switches)
        return {name: column[0] for name, column in made.measures.items()}

    plain = measures()
    assert plain["accuracy"] == plain["accuracy_terminal"] == (n - 2) / n
    assert np.isnan(plain["collapse_onset"])
    lagged = measures(pairing="lagged")
    assert lagged["accuracy"] == (n - 2) / n  # b_2 against g_3
    assert lagged["accuracy_terminal"] == (n - 2) / n
    slots = measures(accuracy="slots")
    # same-step, values read by meaning: exact; 1 of 2 loaded, 3 of 4 open; 1 of 3 and 2 of 4
    second = 0.3 / 2 + 0.4 / 2 + 0.3 * 3 / 4
    third = 0.3 / 3 + 0.4 / 3 + 0.3 * 2 / 4
    assert slots["accuracy"] == pytest.approx((1.0 + second + third) / 3)
    assert slots["accuracy_slot"] == slots["accuracy"]
    assert slots["accuracy_terminal"] == (n - 2) / n
    assert slots["collapse_onset"] == 2
    literal = measures(accuracy="slots", encoding="literal")
    assert literal["accuracy"] == pytest.approx(slots["accuracy"] - 0.4 * (1 + 1 / 2 + 1 / 3) / 3)
    writes_true = measures("scripted-true-open", accuracy="slots", encoding="literal")
    assert writes_true["accuracy"] == slots["accuracy"]
    assert measures(accuracy="slots", onset="two-below")["collapse_onset"] == 2
    assert plain["accuracy_slot"] == slots["accuracy"]


def test_counts() -> None:
    made = scored(
        TOOLS,
        **tool_episode(),
        probe=np.array([-1, 4, 4], dtype=np.int16),
        useful=np.array([False, True, False]),
        acted=np.array([True, False, False]),
        valid=np.array([False, False, False]),
        success=True,
    )
    columns = {name: column[0] for name, column in made.measures.items()}
    names = ("probes", "useful", "repeated_probes", "actions", "valid_actions")
    assert [columns[name] for name in names] == [2, 1, 1, 1, 0]
    assert columns["action_onset"] == 0
    assert columns["success"]
    assert columns["steps"] == 3
