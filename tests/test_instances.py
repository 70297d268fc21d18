"""Worlds without an agent: what can mutate, what the draws give, and what mutation changed."""

import numpy as np
import pandas as pd
import pytest
from test_noise import naive_word

from envprobe_core import instances, run
from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.cells import PAPER_POLICIES, Cell, make_cell
from envprobe_core.claims import load_claims
from envprobe_core.claims.judge import NOT_TESTED, judge
from envprobe_core.engine.noise import MUTATION
from envprobe_core.engine.running import record
from envprobe_core.facts import FACTS, NOTICING
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PAPER, PROTOCOLS, RELEASED
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import WORLDS, make_world


@pytest.mark.parametrize("protocol", [PAPER, RELEASED], ids=["paper", "released"])
def test_periodic_probes_at_its_steps(protocol):
    part = record(make_cell("tooldag", "periodic", protocol=protocol), np.arange(12))
    for fired, steps in zip(part.probe >= 0, part.steps, strict=True):
        # at K - 1, 2 K - 1, ..., counted from 0, where K is floor(30 / 7), while the episode lasts
        assert np.flatnonzero(fired).tolist() == [step for step in range(3, 28, 4) if step < steps]


def test_environments_have_what_their_claims_need():
    facts = "chain_length mutation_rate initial_accuracy changed changed_all right_track"
    idle = run(policies="no-probe", regimes="S1 S2 S3", seeds="0:14", facts=facts)
    episodes = pd.concat([idle, run(policies=PAPER_POLICIES[1:], seeds="0:14")], ignore_index=True)
    assert idle[["mutation_rate", "initial_accuracy"]].notna().all().all()
    drawn = (idle["world"] == "graphnav") & (idle["protocol"] == "released")
    assert idle.loc[~drawn, "chain_length"].notna().all()
    stuck = idle.loc[drawn, "chain_length"].isna()  # the public code draws graphs that cannot be solved
    assert 0 < stuck.mean() < 0.5
    verdicts = judge(episodes, load_claims(section="environments"), resamples=200)
    assert (verdicts["verdict"] != NOT_TESTED).all()
    told, left_out = verdicts[verdicts["claim"] == "chain-spatial"], stuck[idle["regime"] == "S2"].sum()
    assert told["n"].tolist() == [28, 28, 28 - left_out]
    assert f"{left_out} left out" in told["reason"].iloc[-1]


@pytest.mark.parametrize(
    ("world", "protocol", "regime", "count"),
    [
        ("tooldag", PAPER, "S2", 8),  # every tool but the target
        ("objectstate", PAPER, "S2", 7 + 3),  # objects and lockable doors
        ("objectstate", RELEASED, "S2", 3),  # keys alone drift
        ("graphnav", PAPER, "S2", 3 + 3),  # keys and lockable edges
        ("graphnav", PAPER, "S3", 5 + 5),
        ("graphnav", RELEASED, "S1", 0),
    ],
)
def test_mutable_fields(world, protocol, regime, count):
    built = make_world(world, REGIMES[regime], protocol)
    mutable = instances.mutable_fields(built, instances.instances(built, np.arange(5)))
    assert mutable.shape == (5, built.fields)
    assert (mutable.sum(axis=1) == count).all()


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
@pytest.mark.parametrize("name", WORLDS)
def test_drawn_mutation_against_a_plain_count(name, protocol):
    world, seeds = make_world(name, REGIMES["S1" if name == "tooldag" else "S2"], protocol), [3, 11]
    mutable = instances.mutable_fields(world, instances.instances(world, seeds))
    for seed, own, rate in zip(seeds, mutable, instances.drawn_mutation(world, seeds), strict=True):
        events = [
            (naive_word(seed, world.code, MUTATION, tick, field) & 0xFFFFFFFF)
            < int(world.rates[field] * 2**32 + 0.5)
            for tick in range(world.regime.horizon)
            for field in np.flatnonzero(own).tolist()
        ]
        assert rate == (np.mean(events) if events else 0)


@pytest.mark.parametrize("name", WORLDS)
def test_effective_mutation_of_an_agent_that_does_nothing(name):
    """What changes in the world of an agent that waits, mutation changed."""
    cell, seeds = Cell(name, POLICIES["no-probe"], profile=AgentProfile("idler", quit=1.0)), np.arange(12)
    recording, world = record(cell, seeds), make_world(name, cell.regime, cell.protocol)
    mutable = instances.mutable_fields(world, instances.instances(world, seeds))
    changed, everywhere = instances.effective_mutation(world, seeds, recording)
    moved = recording.gold[:, 2:] != recording.gold[:, 1:-1]  # it acts at step 0 alone
    for share, counted, size in (
        (changed, moved & mutable[:, None], mutable.sum(axis=1)),
        (everywhere, moved, world.fields),
    ):
        found = np.rint(share * size * 30)
        np.testing.assert_allclose(share * size * 30, found)
        first = found - counted.sum(axis=(1, 2))  # what mutation did at step 0
        assert ((first >= 0) & (first <= size)).all()


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_answers_and_what_is_noticed_against_plain_loops(world, protocol):
    cell, seeds = make_cell(world, "simple", protocol=PROTOCOLS[protocol]), np.arange(7)
    recording = record(cell, seeds, scores_all=False)
    found = {name: FACTS[name](cell, seeds, recording)[name] for name in ("answered", "noticed", "changes")}
    stands = recording.belief[:, 1:] == recording.answer[:, :, None]
    answered = [
        sum(stands[row, t, field] for t, field in enumerate(fields) if field >= 0)
        for row, fields in enumerate(recording.probe)
    ]
    built, right = make_world(world, cell.regime, cell.protocol), recording.belief == recording.gold
    moved = instances.exogenous(built, instances.instances(built, seeds), recording)
    counts = np.zeros((2, len(seeds)), dtype=int)
    for row, t, field in np.argwhere(moved & right[:, :-1]):
        if t + 1 + NOTICING <= recording.steps[row]:
            gold, held = recording.gold[row, t + 1 :, field], right[row, t + 1 :, field]
            seen = any(held[k] and (gold[: k + 1] == gold[0]).all() for k in range(NOTICING + 1))
            counts[:, row] += 1, seen
    np.testing.assert_array_equal([*counts, answered], [found[n] for n in ("changes", "noticed", "answered")])
