"""Notes by Bayes' rule: chances that are right as often as they say, and nothing looked at that is hidden."""

import numpy as np
import pytest

from envprobe_book import compare
from envprobe_book.analyses.notes import (
    NEEDED,
    NOTES,
    TABLE,
    BayesNotes,
    notetaker,
    run_notes,
    simulate_bayes,
)
from envprobe_core.agents.profiles import TYPICAL
from envprobe_core.compiled.records import NONE, UNKNOWN, WAIT
from envprobe_core.conditions import Condition, make_condition
from envprobe_core.engine.batch import EpisodeBatch, simulate
from envprobe_core.errors import InputError
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PAPER, SWITCHES, parse_protocol, turned
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import WORLDS
from test_engine import HIDDEN

AGENT = notetaker(TYPICAL, "bayes")


def condition(world, policy="periodic", regime="R5", protocol="paper"):
    return Condition(world, POLICIES[policy], REGIMES[regime], parse_protocol(protocol), AGENT)


def steps_of(episodes, notes):
    """Play episodes to their end, and stop at each decision."""
    while True:
        notes.take_in()
        notes.write()
        episodes.propose()
        notes.write()
        if not episodes.record():
            return
        yield
        episodes.advance(episodes.decide())


@pytest.mark.parametrize("world", WORLDS)
def test_what_is_said_to_be_right_so_often_is(world):
    """With clean observations the filter is exact: of values with the chance p, the share p is true."""
    episodes = EpisodeBatch(condition(world), np.arange(1000))
    notes, chances, true = BayesNotes(episodes), [], []
    for _ in steps_of(episodes, notes):
        gold = episodes.block.gold[:, : notes.world.fields]
        there = gold != UNKNOWN
        chances.append(notes.chance[there])
        true.append((gold[..., None] == np.arange(notes.chance.shape[2]))[there])
    chance, hit = np.concatenate(chances).ravel(), np.concatenate(true).ravel()
    np.testing.assert_allclose(np.concatenate(chances).sum(axis=1), 1.0)
    assert hit[chance == 0].sum() == 0
    assert hit[chance == 1].all()
    for low in np.arange(0, 1, 0.1):
        own = (chance > low) & (chance <= low + 0.1) & (chance < 1)
        if own.sum() > 5000:
            assert abs(hit[own].mean() - chance[own].mean()) < 0.01, (low, own.sum())


@pytest.mark.parametrize("protocol", ["paper", "observed"])
@pytest.mark.parametrize("world", WORLDS)
def test_it_is_the_same_whatever_is_true(world, protocol):
    """Lie about gold, state and start while the notes are taken: nothing that is written changes."""
    episodes = EpisodeBatch(condition(world, "simple", "S2", protocol), np.arange(20))
    notes = BayesNotes(episodes)
    for step, _ in enumerate(steps_of(episodes, notes)):
        if step == 12:
            break
    block = episodes.block.copy()
    tables = []
    for spoils in ((), HIDDEN):
        episodes.block[:] = block
        for spoil in spoils:
            spoil(episodes.block)
        again = BayesNotes(episodes)
        again.take_in()
        again.take_in()
        again.write()
        tables.append(episodes.block.table.copy())
    assert tables[0].tobytes() == tables[1].tobytes()


def test_a_tool_seen_loaded_is_believed_lost_once_that_is_likelier():
    """At ten percent a step, after seven: .9^6 = .53, .9^7 = .48."""
    episodes = EpisodeBatch(condition("tooldag"), np.array([0]))
    notes = BayesNotes(episodes)
    notes.take_in()
    notes._certain(np.array([0]), np.array([0]), np.array([1]))
    episodes.block["observation"]["action"] = WAIT
    said = []
    for _ in range(8):
        notes.take_in()
        notes.write()
        said.append((int(episodes.block.table.value[0, 0]), int(episodes.block.table.confidence[0, 0])))
    assert said[:7] == [(1, 90), (1, 81), (1, 73), (1, 66), (1, 59), (1, 53), (0, 52)]


def test_a_value_as_likely_as_another_stays_and_what_is_ruled_out_is_unknown():
    episodes = EpisodeBatch(condition("objectstate"), np.array([0]))
    notes = BayesNotes(episodes)
    task, first = episodes.block.task[0], int(notes.world.rules.objects)
    lock = first + int(np.flatnonzero(task.key_of_door[: notes.world.rules.doors] != NONE)[0])
    notes.write()
    for _ in range(200):
        notes._move()
    notes.write()
    assert notes.chance[0, lock, 0] == pytest.approx(0.5)
    assert episodes.block.table.value[0, lock] == 1  # all are locked at first
    room = int(episodes.block.table.value[0, 0])
    notes._rule_out(np.array([0]), np.array([0]), np.array([room]), 0.0)  # it is not where it was believed
    notes.write()
    assert notes.chance[0, 0, room] == 0
    assert notes.chance[0, 0].sum() == pytest.approx(1.0)
    assert episodes.block.table.value[0, 0] == UNKNOWN  # all other rooms are alike


ANY = (  # what Bayes' rule takes as it is: it changes neither how the world moves nor what shows
    "start", "answer", "instances", "baselines", "end", "accuracy", "pairing", "encoding", "onset",
    "actions", "confident", "useful", "oracle", "threshold", "seeds", "wrong",
)  # fmt: skip


def test_of_every_switch_it_is_decided_whether_notes_need_a_value():
    assert sorted([*NEEDED, *ANY]) == sorted(SWITCHES)


@pytest.mark.parametrize("switch", NEEDED)
def test_a_protocol_under_which_the_world_moves_otherwise_is_refused(switch):
    other = {"memory": "none", "clock": "stands", "structure": "reported", "sight": "released"}
    other |= {"rates": "released", "delay": "2", "failing": "20"}
    protocol = turned(PAPER, **{switch: other[switch]})
    with pytest.raises(InputError, match=f"take {switch}={NEEDED[switch]}, not {other[switch]}"):
        simulate_bayes(make_condition("tooldag", "simple", protocol=protocol), np.arange(2))


def test_agents_share_seeds_and_bayes_rule_is_no_worse_than_the_notes_it_is_made_of():
    frame = run_notes("no-probe simple", protocols="paper", seeds="0:60")
    assert frame.groupby("agent")["seed"].nunique().eq(60).all()
    assert frame["protocol"].unique().tolist() == ["paper"]
    of_tools = (frame["agent"] == TABLE) & (frame["world"] == "tooldag") & (frame["policy"] == "simple")
    plain = simulate(make_condition("tooldag", "simple"), np.arange(60))["accuracy"]
    assert frame.loc[of_tools, "accuracy"].tolist() == plain.tolist()
    alone = frame[frame["policy"] == "no-probe"].assign(policy=lambda rows: rows["agent"])
    gains = compare(alone, "bayes", NOTES, resamples=500).set_index("stratum")
    assert gains.loc["procedural", "gain_low"] > 15
    assert abs(gains.loc["spatial", "gain"]) < 1
