"""What probes find: useful probes, confidence, failure patterns, and episodes in words."""

from __future__ import annotations

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


@pytest.fixture(scope="module")
def episodes():
    policies = ["no-probe", "simple", "random", "self-uncertainty", "oracle"]
    return run(policies=policies, protocols="paper released", seeds="0:40", facts=PATTERN)


# --- useful probes ----------------------------------------------------------------------------


def test_what_was_asked_for_is_told_in_the_papers_words():
    protocols = ["paper", "released", "released:useful=answer"]
    found = run(policies="simple random", protocols=protocols, seeds="0:40", facts=FOUND)
    parts = [found[found["protocol"] == name].reset_index(drop=True) for name in protocols]
    sums = [part["unknown_probes"] + part["wrong_probes"] for part in parts]
    assert (sums[0] == parts[0]["useful"]).all()
    assert (sums[2] == parts[2]["useful"]).all()
    assert (
        (parts[1][["unknown_probes", "wrong_probes"]] == parts[2][["unknown_probes", "wrong_probes"]])
        .all()
        .all()
    )
    assert (sums[1] != parts[1]["useful"]).any(), "the public code counts by rules of its own"


# --- failure patterns


def naive_procedural(seen, row, t):
    """The procedural pattern, condition by condition, for one probe."""
    r, n = seen.trajectory, seen.world.rules.tools
    needs, field = seen.instance[row].task.needs, int(r.probe[row, t])
    u, c = (seen.terms[row, t, field, TERMS.index(name)] for name in "uc")

    def blockers(time):
        call = int(r.action[row, time])
        if call < 0:
            return set()
        tools = {p for p in range(n) if int(needs[call]) >> p & 1}
        return {p for p in tools if r.gold[row, time, p] == 0 and r.belief[row, time, p] != 0}

    standing = blockers(t) - {field if field < n else -1}
    later = next((k for k in range(t + 1, int(r.steps[row])) if r.acted[row, k]), None)
    failed = later is not None and not r.valid[row, later] and bool(standing & blockers(later))
    done = r.gold[row, : t + 1, seen.world.fields - 1].any()
    conditions = [
        u >= 0.3 and c < 0.5, bool(standing), failed, bool(r.useful[row, t]),
        not done and not r.success[row],
    ]  # fmt: skip
    return np.logical_and.accumulate(conditions)


def naive_spatial(seen, row, t):
    """The spatial pattern, condition by condition, for one probe."""
    r, field = seen.trajectory, int(seen.trajectory.probe[row, t])
    reported = min(int(r.staleness[row, t, field]), t)
    window = r.gold[row, t - reported : t + 1, field]
    after, stale = seen.after_action()[row], False
    for place, name in enumerate(seen.world.field_names):
        held, truth = int(r.belief[row, t, place]), r.gold[row, : t + 2, place]
        if not name.startswith("location") or place == field or held in (UNKNOWN, int(truth[t])):
            continue
        changes = [k for k in range(1, t + 1) if truth[k] != truth[k - 1]]
        drifted = bool(changes) and after[changes[-1] - 1, place] != truth[changes[-1]]
        still = r.belief[row, t + 1, place] != truth[t + 1]
        stale |= drifted and still and held in truth[:t].tolist()
    conditions = [
        seen.terms[row, t, field, TERMS.index("s")] >= 0.5, len(set(window.tolist())) == 1,
        not r.useful[row, t], stale,
    ]  # fmt: skip
    return np.logical_and.accumulate(conditions)


@settings(max_examples=25, deadline=None)
@given(cells(("simple", "random", "self-uncertainty", "periodic", "cd")), seeds)
def test_patterns_equal_their_definitions(cell, own):
    seen = witness(cell, own)
    found = match(seen)
    naive = naive_procedural if cell.world == "tooldag" else naive_spatial
    assert len(found.row) == (seen.trajectory.probe >= 0).sum()
    for row, step, stage in zip(found.row, found.step, found.stage, strict=True):
        np.testing.assert_array_equal(stage, naive(seen, int(row), int(step)))


def test_the_facts_of_a_pattern_are_its_first_match(episodes):
    hits = episodes[episodes["pattern"] > 0]
    assert set(hits["world"]) == {"tooldag", "objectstate", "graphnav"}
    assert not (
        episodes["policy"].eq("oracle") & episodes["world"].ne("tooldag") & episodes["pattern"].gt(0)
    ).any()
    for (world, policy, protocol), rows in hits.groupby(["world", "policy", "protocol"]):
        row = rows.iloc[0]
        seen = witness(make_cell(world, policy, protocol=parse_protocol(protocol)), np.array([row["seed"]]))
        naive = naive_procedural if world == "tooldag" else naive_spatial
        assert naive(seen, 0, int(row["pattern_step"])).all()
        assert seen.trajectory.probe[0, int(row["pattern_step"])] == row["pattern_field"]
    stages = episodes[["probes", *PATTERN[:4]]].to_numpy()
    assert (np.diff(stages, axis=1) <= 0).all()


# --- one episode ------------------------------------------------------------------------------


def test_a_helping_probe_corrects_a_belief_and_the_next_action_works():
    frame = run("objectstate", "simple", protocols="paper", seeds="0:20", facts="helped_step")
    assert frame["helped_step"].notna().any()
    for row in frame.itertuples():
        episode = play("objectstate", "simple", row.seed)
        found = [
            t
            for t, view in episode.groupby("t")
            for probed in [view[view["probe"]]]
            if (probed["belief"].ne(probed["gold"]) & probed["belief"].ne(UNKNOWN)).any()
            and (episode["t"].eq(t + 1) & episode["acted"] & episode["valid"]).any()
        ]
        np.testing.assert_equal(row.helped_step, found[0] if found else np.nan)


# --- episodes in words ------------------------------------------------------------------------


@pytest.mark.parametrize(("world", "protocol"), [("objectstate", "paper"), ("tooldag", "released")])
def test_steps_say_what_the_recording_holds(world, protocol):
    episode = play(world, "simple", 7, protocol=protocol)
    steps = describe_steps(episode, world, protocol=protocol, fold=False)
    first = episode.drop_duplicates("t").reset_index(drop=True)
    fired = episode.groupby("t")["probe"].any()
    assert steps["deed"].str.startswith("asks").tolist() == fired.tolist()
    acts = first["acted"] & ~fired.to_numpy()
    assert (steps["deed"] == WAITS).tolist() == (~acts & ~fired.to_numpy()).tolist()
    works = steps.loc[acts, "deed"].str.endswith("works")
    assert works.tolist() == first.loc[acts, "valid"].tolist()
    told = steps["deed"].str.contains("never reaches")
    assert told.tolist() == (fired & (protocol == "released")).tolist()
    folded = describe_steps(episode, world, protocol=protocol)
    ends = folded["step"].str.split("–").map(lambda ends: int(ends[-1]) - int(ends[0]) + 1)
    assert ends.sum() == len(steps)
    both = folded["deed"].eq(WAITS) & folded["deed"].shift().eq(WAITS)
    assert not both.any()
