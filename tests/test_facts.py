"""Facts of episodes against plain loops: what mutates, what probes find, and how an episode fails."""

import numpy as np
import pytest
from hypothesis import given, settings

from envprobe_book import plans
from envprobe_book.facts import FACTS, FOUND, NOTICING, PATTERN
from envprobe_book.facts.replay import match, witness
from envprobe_core import play, run
from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.compiled.noise import MUTATION
from envprobe_core.compiled.records import UNKNOWN
from envprobe_core.conditions import Condition, make_condition
from envprobe_core.policies import POLICIES, TERMS
from envprobe_core.protocols import PROTOCOLS, parse_protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import WORLDS, make_world
from strategies import conditions, seeds
from test_noise import naive_word


@pytest.mark.parametrize("world", WORLDS)
def test_there_is_room_above_and_below_and_a_perfect_agent_in_a_still_world_loses_nothing(world):
    found = run(world, "no-probe", "S2", "paper observed").groupby("protocol")
    for means in (found[name].mean() for name in ("success", "accuracy_terminal")):
        assert means.between(0.1, 0.9).all()
    still = run(world, "no-probe", "S1", "paper:rates=released", "perfect")  # its low regime does not mutate
    assert (still["accuracy"] == 1.0).all()
    assert still["success"].all()


# mutation


@pytest.mark.parametrize(
    ("name", "protocol", "regime", "count"),
    [
        ("tooldag", "paper", "S2", 8),  # every tool but the target
        ("objectstate", "paper", "S2", 7 + 3),  # objects and lockable doors
        ("objectstate", "released", "S2", 3),  # keys alone drift
        ("graphnav", "paper", "S2", 3 + 3),  # keys and lockable edges
        ("graphnav", "paper", "S3", 5 + 5),
        ("graphnav", "released", "S1", 0),
    ],
)
def test_what_can_mutate_and_how_often_its_draws_say_so(name, protocol, regime, count):
    world, own = make_world(name, REGIMES[regime], PROTOCOLS[protocol]), [3, 11]
    mutable = plans.mutable_fields(world, plans.instances(world, own))
    assert mutable.sum(axis=1).tolist() == [count, count]
    for seed, fields, rate in zip(own, mutable, plans.drawn_mutation(world, own), strict=True):
        events = [
            (naive_word(seed, world.code, MUTATION, tick, field) & 0xFFFFFFFF)
            < int(world.rates[field] * 2**32 + 0.5)
            for tick in range(world.regime.horizon)
            for field in np.flatnonzero(fields).tolist()
        ]
        assert rate == (np.mean(events) if events else 0)


@pytest.mark.parametrize("name", WORLDS)
def test_what_changes_while_an_agent_waits_mutation_changed(name):
    seen = witness(
        Condition(name, POLICIES["no-probe"], profile=AgentProfile("idler", quit=1.0)), np.arange(12)
    )
    mutable, gold = plans.mutable_fields(seen.world, seen.instance), seen.trajectory.gold
    moved = gold[:, 2:] != gold[:, 1:-1]  # it acts at step 0 alone
    np.testing.assert_array_equal(seen.exogenous()[:, 1:], moved)
    moved = seen.exogenous()
    changed = FACTS["changed"](seen)
    for row, own in enumerate(moved):
        assert changed["changed"][row] == pytest.approx(own[:, mutable[row]].mean())
        assert changed["changed_all"][row] == pytest.approx(own.mean())


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_answers_and_what_is_noticed_against_plain_loops(world, protocol):
    seen = witness(make_condition(world, "simple", protocol=PROTOCOLS[protocol]), np.arange(7))
    recording, counts = seen.trajectory, np.zeros((3, 7), dtype=int)
    right = recording.belief == recording.gold
    for row, t in np.argwhere(recording.probe >= 0):
        counts[0, row] += recording.belief[row, t + 1, recording.probe[row, t]] == recording.answer[row, t]
    for row, t, field in np.argwhere(seen.exogenous() & right[:, :-1]):
        if t + 1 + NOTICING <= recording.steps[row]:
            gold, held = recording.gold[row, t + 1 :, field], right[row, t + 1 :, field]
            noticed = any(held[k] and (gold[: k + 1] == gold[0]).all() for k in range(NOTICING + 1))
            counts[1:, row] += 1, noticed
    for name, own in zip(("answered", "changes", "noticed"), counts, strict=True):
        np.testing.assert_array_equal(FACTS[name](seen)[name], own)


# what probes find


def test_what_was_asked_for_is_told_in_the_papers_words():
    """The public code counts useful probes by rules of its own; a switch turns them to the paper's."""
    protocols = ["paper", "released", "released:useful=answer"]
    found = run(policies="simple random", protocols=protocols, seeds="0:40", facts=FOUND)
    told = found["unknown_probes"] + found["wrong_probes"] == found["useful"]
    assert [told[found["protocol"] == name].all() for name in protocols] == [True, False, True]
    ends = (found.loc[found["protocol"] == name, [*FOUND]].to_numpy() for name in protocols[1:])
    np.testing.assert_array_equal(*ends)


def test_a_helping_probe_corrects_a_belief_and_the_next_action_works():
    frame = run("objectstate", "simple", protocols="paper", seeds="0:20", facts="helped_step")
    assert frame["helped_step"].notna().any()
    for row in frame.itertuples():
        episode = play("objectstate", "simple", row.seed)
        works = set(episode.loc[episode["acted"] & episode["valid"], "t"] - 1)
        known = episode["belief"].ne(UNKNOWN) & episode["belief"].ne(episode["gold"])
        found = [t for t in episode.loc[episode["probe"] & known, "t"] if t in works]
        np.testing.assert_equal(row.helped_step, found[0] if found else np.nan)


def naive_procedural(seen, row, t):
    """The procedural pattern, condition by condition, for one probe."""
    r, n = seen.trajectory, seen.world.rules.tools
    needs, field = seen.instance[row].task.needs, int(r.probe[row, t])
    u, c = (seen.terms[row, t, field, TERMS.index(name)] for name in "uc")

    def blockers(time):
        call = int(r.action[row, time])
        tools = {p for p in range(n) if call >= 0 and int(needs[call]) >> p & 1}
        return {p for p in tools if r.gold[row, time, p] == 0 and r.belief[row, time, p] != 0}

    standing = blockers(t) - {field if field < n else -1}
    later = next((k for k in range(t + 1, int(r.steps[row])) if r.acted[row, k]), None)
    failed = later is not None and not r.valid[row, later] and bool(standing & blockers(later))
    done = r.gold[row, : t + 1, seen.world.fields - 1].any()
    return [u >= 0.3 and c < 0.5, bool(standing), failed, r.useful[row, t], not done and not r.success[row]]


def naive_spatial(seen, row, t):
    """The spatial pattern, condition by condition, for one probe."""
    r, field = seen.trajectory, int(seen.trajectory.probe[row, t])
    window = r.gold[row, t - min(int(r.staleness[row, t, field]), t) : t + 1, field]
    after, stale = seen.after_action()[row], False
    for place, name in enumerate(seen.world.field_names):
        held, truth = int(r.belief[row, t, place]), r.gold[row, : t + 2, place]
        if not name.startswith("location") or place == field or held in (UNKNOWN, int(truth[t])):
            continue
        changes = [k for k in range(1, t + 1) if truth[k] != truth[k - 1]]
        drifted = bool(changes) and after[changes[-1] - 1, place] != truth[changes[-1]]
        still = r.belief[row, t + 1, place] != truth[t + 1]
        stale |= drifted and still and held in truth[:t].tolist()
    old = seen.terms[row, t, field, TERMS.index("s")] >= 0.5
    return [old, len(set(window.tolist())) == 1, not r.useful[row, t], stale]


def naive(seen, row, t):
    follow = naive_procedural if seen.condition.world == "tooldag" else naive_spatial
    return np.logical_and.accumulate(follow(seen, row, t))


@settings(max_examples=25)
@given(conditions(("simple", "random", "self-uncertainty", "periodic", "cd")), seeds)
def test_patterns_equal_their_definitions(condition, own):
    seen = witness(condition, own)
    found = match(seen)
    assert len(found.row) == (seen.trajectory.probe >= 0).sum()
    for row, step, stage in zip(found.row, found.step, found.stage, strict=True):
        np.testing.assert_array_equal(stage, naive(seen, int(row), int(step)))


def test_the_facts_of_a_pattern_are_its_first_match():
    episodes = run(policies="no-probe simple random self-uncertainty oracle", protocols="paper released",
                   seeds="0:40", facts=PATTERN)  # fmt: skip
    hits = episodes[episodes["pattern"] > 0]
    assert set(hits["world"]) == {"tooldag", "objectstate", "graphnav"}
    for (world, policy, protocol), rows in hits.groupby(["world", "policy", "protocol"]):
        first = rows.iloc[0]
        seen = witness(
            make_condition(world, policy, protocol=parse_protocol(protocol)), np.array([first["seed"]])
        )
        step, probe = int(first["pattern_step"]), seen.trajectory.probe[0]
        matching = [t for t in np.flatnonzero(probe >= 0).tolist() if naive(seen, 0, t).all()]
        assert (step, probe[step]) == (matching[0], first["pattern_field"])
    assert (np.diff(episodes[["probes", *PATTERN[:4]]].to_numpy(), axis=1) <= 0).all()


def test_actions_read_fields_where_the_task_graph_says_so():
    read = {"facts": "read read_right", "seeds": "0:12"}
    frame = run("tooldag objectstate graphnav", "simple", protocols="paper observed released", **read)
    released = frame["protocol"] == "released"
    assert (frame.loc[released, ["read", "read_right"]] == 0).all().all()
    own = frame[~released]
    assert (own["read_right"] <= own["read"]).all()
    assert (own["read"] > 0).any()
    sure = run("tooldag", "no-probe", "S1", "paper:rates=released", "perfect", **read)  # a still world
    assert (sure["read"] == sure["read_right"]).all()
    assert (sure["read"] > 0).all()
