"""What probes find: useful probes, failure patterns, and episodes in words."""

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import cells, seeds

from envprobe_core import play, run
from envprobe_core.cells import make_cell
from envprobe_core.engine.records import UNKNOWN
from envprobe_core.facts import FOUND, PATTERN
from envprobe_core.facts.witness import match, witness
from envprobe_core.policies import TERMS
from envprobe_core.protocols import parse_protocol
from envprobe_core.show.timeline import WAITS, describe_steps


def test_what_was_asked_for_is_told_in_the_papers_words():
    """The public code counts useful probes by rules of its own; a switch turns them to the paper's."""
    protocols = ["paper", "released", "released:useful=answer"]
    found = run(policies="simple random", protocols=protocols, seeds="0:40", facts=FOUND)
    told = found["unknown_probes"] + found["wrong_probes"] == found["useful"]
    assert [told[found["protocol"] == name].all() for name in protocols] == [True, False, True]
    columns = ["unknown_probes", "wrong_probes"]
    ends = (found.loc[found["protocol"] == name, columns].to_numpy() for name in protocols[1:])
    np.testing.assert_array_equal(*ends)


# failure patterns


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
    useful, unfinished = bool(r.useful[row, t]), not done and not r.success[row]
    return np.logical_and.accumulate([u >= 0.3 and c < 0.5, bool(standing), failed, useful, unfinished])


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
    return np.logical_and.accumulate([old, len(set(window.tolist())) == 1, not r.useful[row, t], stale])


def naive(seen, row, t):
    return (naive_procedural if seen.cell.world == "tooldag" else naive_spatial)(seen, row, t)


@settings(max_examples=25, deadline=None)
@given(cells(("simple", "random", "self-uncertainty", "periodic", "cd")), seeds)
def test_patterns_equal_their_definitions(cell, own):
    seen = witness(cell, own)
    found = match(seen)
    assert len(found.row) == (seen.trajectory.probe >= 0).sum()
    for row, step, stage in zip(found.row, found.step, found.stage, strict=True):
        np.testing.assert_array_equal(stage, naive(seen, int(row), int(step)))


def test_the_facts_of_a_pattern_are_its_first_match():
    policies = ["no-probe", "simple", "random", "self-uncertainty", "oracle"]
    episodes = run(policies=policies, protocols="paper released", seeds="0:40", facts=PATTERN)
    hits = episodes[episodes["pattern"] > 0]
    assert set(hits["world"]) == {"tooldag", "objectstate", "graphnav"}
    assert set(hits.loc[hits["policy"] == "oracle", "world"]) <= {"tooldag"}
    for (world, policy, protocol), rows in hits.groupby(["world", "policy", "protocol"]):
        first = rows.iloc[0]
        seen = witness(make_cell(world, policy, protocol=parse_protocol(protocol)), np.array([first["seed"]]))
        step, probe = int(first["pattern_step"]), seen.trajectory.probe[0]
        matching = [t for t in np.flatnonzero(probe >= 0).tolist() if naive(seen, 0, t).all()]
        assert (step, probe[step]) == (matching[0], first["pattern_field"])
    assert (np.diff(episodes[["probes", *PATTERN[:4]]].to_numpy(), axis=1) <= 0).all()


# one episode, and in words


def test_a_helping_probe_corrects_a_belief_and_the_next_action_works():
    frame = run("objectstate", "simple", protocols="paper", seeds="0:20", facts="helped_step")
    assert frame["helped_step"].notna().any()
    for row in frame.itertuples():
        episode = play("objectstate", "simple", row.seed)
        works = set(episode.loc[episode["acted"] & episode["valid"], "t"] - 1)
        known = episode["belief"].ne(UNKNOWN) & episode["belief"].ne(episode["gold"])
        found = [t for t in episode.loc[episode["probe"] & known, "t"] if t in works]
        np.testing.assert_equal(row.helped_step, found[0] if found else np.nan)


@pytest.mark.parametrize(("world", "protocol"), [("objectstate", "paper"), ("tooldag", "released")])
def test_steps_say_what_the_recording_holds(world, protocol):
    episode = play(world, "simple", 7, protocol=protocol)
    steps = describe_steps(episode, world, protocol=protocol, fold=False)
    first, deed = episode.drop_duplicates("t").reset_index(drop=True), steps["deed"]
    fired = episode.groupby("t")["probe"].any()
    acts = first["acted"] & ~fired.to_numpy()
    assert deed.str.startswith("asks").tolist() == fired.tolist()
    assert (deed == WAITS).tolist() == (~acts & ~fired.to_numpy()).tolist()
    assert deed[acts].str.endswith("works").tolist() == first.loc[acts, "valid"].tolist()
    assert deed.str.contains("never reaches").tolist() == (fired & (protocol == "released")).tolist()
    folded = describe_steps(episode, world, protocol=protocol)
    ends = folded["step"].str.split("–").map(lambda ends: int(ends[-1]) - int(ends[0]) + 1)
    assert ends.sum() == len(steps)
    assert not (folded["deed"].eq(WAITS) & folded["deed"].shift().eq(WAITS)).any()
