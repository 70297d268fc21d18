"""Scores of hand-made recordings: slot overlap by world, pairing, encoding, onset, what A_H is."""

from dataclasses import replace

import numpy as np
import pytest

from envprobe_core.protocols import PAPER, RELEASED
from envprobe_core.regimes import REGIMES
from envprobe_core.scoring import score_episodes
from envprobe_core.slots import jaccard, share, slot_overlap
from envprobe_core.trajectory import Trajectory
from envprobe_core.worlds import World, make_world


def recording(belief: np.ndarray, gold: np.ndarray, place: np.ndarray | None = None) -> Trajectory:
    """Make a recording of one row that only acts."""
    times = belief.shape[0]
    flags = np.zeros((1, times - 1), dtype=bool)
    return Trajectory(
        belief=belief[None],
        gold=gold[None],
        staleness=None,
        confidence=None,
        place=np.zeros((1, times), dtype=np.int8) if place is None else place[None],
        action=np.zeros((1, times - 1), dtype=np.int16),
        probe=np.full((1, times - 1), -1, dtype=np.int16),
        answer=np.zeros((1, times - 1), dtype=np.int8),
        useful=flags,
        valid=flags,
        acted=~flags,
        score=np.full((1, times - 1), np.nan),
        steps=np.array([times - 1]),
        success=np.array([False]),
    )


def fields_of(world: World, values: dict[str, int], fill: int = 0) -> np.ndarray:
    """Fill a field vector by name."""
    vector = np.full(world.fields, fill, dtype=np.int8)
    for name, value in values.items():
        vector[world.field_names.index(name)] = value
    return vector


TOOLS = make_world("tooldag", REGIMES["S1"], PAPER)
ROOMS = make_world("objectstate", REGIMES["S1"], PAPER)
GRAPH = make_world("graphnav", REGIMES["S1"], PAPER)
YES, NO = np.array([True]), np.array([False])


def test_set_and_map_overlap() -> None:
    members = np.array([[True, True, False], [False, False, False], [True, False, False]])
    others = np.array([[True, False, True], [False, False, False], [False, False, False]])
    assert jaccard(members, others).tolist() == [1 / 3, 1.0, 0.0]
    assert share(members).tolist() == [2 / 3, 0.0, 1 / 3]


@pytest.mark.parametrize(
    ("match", "keeps", "expected"),
    [
        # believed loaded {0, 1}, unloaded {2, 3} (4 unknown); gold loaded {1, 2}
        # completed 1/3; values 1 of 2 match; open {2, 3} against {0, 3, 4}: 1/4
        (YES, YES, 0.3 / 3 + 0.4 / 2 + 0.3 / 4),
        (NO, YES, 0.3 / 3 + 0.3 / 4),
        (YES, NO, 0.3 / 3 + 0.4 / 2),
        (NO, NO, 0.3 / 3),
    ],
)
def test_tool_slots(match: np.ndarray, keeps: np.ndarray, expected: float) -> None:
    belief = fields_of(TOOLS, {"loaded(0)": 1, "loaded(1)": 1, "loaded(4)": -1})
    gold = fields_of(TOOLS, {"loaded(1)": 1, "loaded(2)": 1})
    track = slot_overlap(recording(np.stack([belief] * 2), np.stack([gold] * 2)), TOOLS, False, match, keeps)
    assert track[0, 0] == pytest.approx(expected)


def test_an_idle_agent_scores_at_least_seven_tenths_on_tools() -> None:
    nothing = fields_of(TOOLS, {})
    still = recording(np.stack([nothing] * 3), np.stack([nothing] * 3))
    assert slot_overlap(still, TOOLS, True, NO, NO)[0].tolist() == pytest.approx([0.7, 0.7])
    assert slot_overlap(still, TOOLS, True, NO, YES)[0].tolist() == pytest.approx([1.0, 1.0])


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
    track = slot_overlap(recording(np.stack([belief] * 2), np.stack([gold] * 2)), ROOMS, False, YES, YES)
    # position right, inventory 1 of 2, objects 2 of 4, doors 3 of 4, subgoals both empty
    assert track[0, 0] == pytest.approx(0.2 + 0.15 / 2 + 0.3 * 2 / 4 + 0.2 * 3 / 4 + 0.15)
    done = gold.copy()
    done[ROOMS.field_names.index("held(goal 0)")] = 1
    track = slot_overlap(recording(np.stack([gold] * 2), np.stack([done] * 2)), ROOMS, False, YES, YES)
    assert track[0, 0] == pytest.approx(0.2 + 0.15 / 2 + 0.3 + 0.2)


def test_lagged_position_in_rooms_is_the_room_before() -> None:
    gold = np.stack([fields_of(ROOMS, {})] * 3)
    moved = recording(gold, gold, np.array([0, 1, 1], dtype=np.int8))
    assert slot_overlap(moved, ROOMS, True, YES, YES)[0].tolist() == pytest.approx([0.8, 1.0])
    assert slot_overlap(moved, ROOMS, False, YES, YES)[0].tolist() == pytest.approx([1.0, 1.0])


def test_graph_slots() -> None:
    # S1: 6 nodes, 2 keys, 6 edges
    gold = fields_of(GRAPH, {"node": 3, "location(key 0)": 6, "location(key 1)": 2, "state(edge 4)": 1})
    belief = fields_of(GRAPH, {"node": 3, "location(key 0)": 6, "location(key 1)": 6, "state(edge 5)": 1})
    track = slot_overlap(recording(np.stack([belief] * 2), np.stack([gold] * 2)), GRAPH, False, YES, YES)
    assert track[0, 0] == pytest.approx(0.25 + 0.2 / 2 + 0.3 * 4 / 6 + 0.25 / 2)
    lost = belief.copy()
    lost[0] = 1
    track = slot_overlap(recording(np.stack([lost] * 2), np.stack([gold] * 2)), GRAPH, False, YES, YES)
    assert track[0, 0] == pytest.approx(0.2 / 2 + 0.3 * 4 / 6 + 0.25 / 2)


def tool_episode() -> Trajectory:
    """Three steps on five tools: right at first, then one tool behind the world."""
    gold = [fields_of(TOOLS, {})]
    for tool in range(3):
        following = gold[-1].copy()
        following[tool] = 1
        gold.append(following)
    belief = [gold[0], gold[1], gold[1], gold[1]]
    return recording(np.stack(belief), np.stack(gold))


def test_the_switches_of_the_scorer() -> None:
    episode = tool_episode()
    n = TOOLS.fields

    def score(**switches: str) -> dict[str, np.ndarray]:
        return score_episodes(episode, TOOLS, replace(PAPER, name="x", **switches), NO, YES)

    plain = score()
    assert plain["accuracy"][0] == plain["accuracy_terminal"][0] == (n - 2) / n
    assert np.isnan(plain["collapse_onset"][0])
    lagged = score(pairing="lagged")
    assert lagged["accuracy"][0] == (n - 2) / n  # b_2 against g_3
    assert lagged["accuracy_terminal"][0] == (n - 2) / n
    slots = score(accuracy="slots")
    # same-step, values read by meaning: exact; 1 of 2 loaded, 3 of 4 open; 1 of 3 and 2 of 4
    second = 0.3 / 2 + 0.4 / 2 + 0.3 * 3 / 4
    third = 0.3 / 3 + 0.4 / 3 + 0.3 * 2 / 4
    assert slots["accuracy"][0] == pytest.approx((1.0 + second + third) / 3)
    assert slots["accuracy_slot"][0] == slots["accuracy"][0]
    assert slots["accuracy_terminal"][0] == (n - 2) / n
    assert slots["collapse_onset"][0] == 2
    literal = score(accuracy="slots", encoding="literal")
    assert literal["accuracy"][0] == pytest.approx(slots["accuracy"][0] - 0.4 * (1 + 1 / 2 + 1 / 3) / 3)
    writes_true = score_episodes(
        episode, TOOLS, replace(PAPER, name="x", accuracy="slots", encoding="literal"), YES, YES
    )
    assert writes_true["accuracy"][0] == slots["accuracy"][0]
    assert score(accuracy="slots", onset="two-below")["collapse_onset"][0] == 2
    assert plain["accuracy_slot"][0] == slots["accuracy"][0]


def test_counts() -> None:
    episode = replace(
        tool_episode(),
        probe=np.array([[-1, 4, 4]], dtype=np.int16),
        useful=np.array([[False, True, False]]),
        acted=np.array([[True, False, False]]),
        valid=np.array([[False, False, False]]),
        success=np.array([True]),
    )
    columns = score_episodes(episode, TOOLS, RELEASED, NO, NO)
    counted = {
        name: columns[name][0] for name in ("probes", "useful", "repeated_probes", "actions", "valid_actions")
    }
    assert counted == {"probes": 2, "useful": 1, "repeated_probes": 1, "actions": 1, "valid_actions": 0}
    assert columns["action_onset"][0] == 0
    assert columns["success"][0]
    assert columns["steps"][0] == 3
