"""Frames behind the sections: what they hold, what the environments measure, how means are made."""

import numpy as np
import pandas as pd
import pytest

from envprobe_core import cells, instances, run
from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.analyses import environments as worlds_described
from envprobe_core.cells import PAPER_POLICIES, Cell, make_cell
from envprobe_core.claims import load_claims
from envprobe_core.claims.judge import NOT_TESTED, judge
from envprobe_core.engine.noise import Stream
from envprobe_core.engine.running import record
from envprobe_core.errors import InputError
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PAPER, PROTOCOLS, RELEASED
from envprobe_core.regimes import REGIMES
from envprobe_core.statistics import MIN_RUNNING, mean_track
from envprobe_core.worlds import WORLDS, make_world

FEW = "0:14"
FACTS = ("chain_length", "mutation_rate", "initial_accuracy", "changed", "changed_all", "right_track")


@pytest.fixture(scope="module")
def episodes():
    """No-Probe in the three regimes, the paper's other policies in S2."""
    idle = run(policies="no-probe", regimes="S1 S2 S3", seeds=FEW, facts=FACTS)
    return pd.concat([idle, run(policies=PAPER_POLICIES[1:], seeds=FEW)], ignore_index=True)


@pytest.fixture(scope="module")
def idle():
    return run(policies="no-probe", protocols="paper released", seeds="0:30", facts=FACTS)


@pytest.fixture(scope="module")
def curves(idle):
    groups = idle.groupby(["world", "protocol"], sort=False)
    tracks = {key: mean_track(np.stack(rows["right_track"]), 200) for key, rows in groups}
    return pd.concat(
        [pd.DataFrame(found).assign(world=key[0], protocol=key[1]) for key, found in tracks.items()]
    )


# --- grids ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("paper released", ("paper", "released")),
        ("paper, released", ("paper", "released")),
        ("released paper:clock=stands,end=success", ("released", "paper:clock=stands,end=success")),
        (("simple", "cd"), ("simple", "cd")),
    ],
)
def test_names(given, expected):
    assert cells.names(given) == expected


def test_seeds_are_given_or_the_cells_own():
    assert cells.read_seeds("default") is None
    assert cells.read_seeds("3:6").tolist() == [3, 4, 5]
    assert cells.first_seed("7:9", "S2") == 7
    assert cells.first_seed("default", "S3") == 1000
    own = run("tooldag", "no-probe", protocols="paper released")
    seeds = own.groupby("protocol")["seed"].agg(["min", "max", "size"])
    assert seeds.loc["paper"].tolist() == [0, 219, 220]
    assert seeds.loc["released"].tolist() == [42, 261, 220]
    with pytest.raises(InputError, match="accepted"):
        run("moon", seeds=FEW)


@pytest.mark.parametrize("protocol", [PAPER, RELEASED], ids=["paper", "released"])
def test_periodic_probes_at_its_steps(protocol):
    part = record(make_cell("tooldag", "periodic", protocol=protocol), np.arange(12))
    for fired, steps in zip(part.probe >= 0, part.steps, strict=True):
        # at K - 1, 2 K - 1, ..., counted from 0, where K is floor(30 / 7), while the episode lasts
        assert np.flatnonzero(fired).tolist() == [step for step in range(3, 28, 4) if step < steps]


# --- what the environments measure ------------------------------------------------------------


def test_environments_have_what_their_claims_need(episodes):
    assert set(episodes["regime"]) == {"S1", "S2", "S3"}
    idle = episodes[episodes["policy"] == "no-probe"]
    assert len(idle) == 3 * 3 * 3 * 14
    assert idle[["mutation_rate", "initial_accuracy"]].notna().all().all()
    drawn = (idle["world"] == "graphnav") & (idle["protocol"] == "released")
    assert idle.loc[~drawn, "chain_length"].notna().all()
    stuck = idle.loc[drawn, "chain_length"].isna()  # the public code draws graphs that cannot be solved
    assert 0 < stuck.mean() < 0.5
    verdicts = judge(episodes, load_claims(section="environments"), resamples=200)
    assert (verdicts["verdict"] != NOT_TESTED).all()
    told = verdicts[verdicts["claim"] == "chain-spatial"].set_index("protocol")
    assert f"{stuck[idle['regime'] == 'S2'].sum()} left out" in told.loc["released", "reason"]
    assert told["n"].to_dict() == {
        "paper": 28,
        "observed": 28,
        "released": 28 - stuck[idle["regime"] == "S2"].sum(),
    }


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


GOLDEN, WRAP = 0x9E3779B97F4A7C15, (1 << 64) - 1


def split_mix(word):
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & WRAP
    word = (word ^ word >> 27) * 0x94D049BB133111EB & WRAP
    return word ^ word >> 31


def plain_word(seed, world, stream, clock, field):
    """The word of a draw, in whole numbers of any size."""
    salt = split_mix(((world << 32) + stream) * GOLDEN & WRAP)
    key = split_mix(split_mix(seed + GOLDEN & WRAP) ^ salt)
    return split_mix(key + (clock * 64 + field + 1) * GOLDEN & WRAP)


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
@pytest.mark.parametrize("name", WORLDS)
def test_drawn_mutation_against_a_plain_count(name, protocol):
    world = make_world(name, REGIMES["S1" if name == "tooldag" else "S2"], protocol)
    seeds = np.array([3, 11])
    mutable = instances.mutable_fields(world, instances.instances(world, seeds))
    rates = instances.drawn_mutation(world, seeds)
    for row, seed in enumerate(seeds.tolist()):
        events = chances = 0
        for tick in range(world.regime.horizon):
            for field in range(world.fields):
                if mutable[row, field]:
                    word = plain_word(seed, world.rules.code, Stream.MUTATION, tick, field)
                    events += (word & 0xFFFFFFFF) < int(world.rates[field] * 2**32 + 0.5)
                    chances += 1
        assert rates[row] == (events / chances if chances else 0)


@pytest.mark.parametrize("name", WORLDS)
def test_effective_mutation_of_an_agent_that_does_nothing(name):
    """What changes in the world of an agent that waits, mutation changed."""
    idler = AgentProfile("idler", quit=1.0)
    cell = Cell(name, POLICIES["no-probe"], profile=idler)
    seeds = np.arange(12)
    recording = record(cell, seeds)
    world = make_world(name, cell.regime, cell.protocol)
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
        assert (first >= 0).all()
        assert (first <= size).all()


def test_worlds_are_described_as_they_are():
    facts = worlds_described.describe_worlds(["S2"], PAPER).set_index("world")
    assert facts.loc["tooldag", ["fields", "procedural", "spatial", "actions"]].tolist() == [27, 27, 0, 9]
    assert facts.loc["objectstate", ["fields", "procedural", "spatial"]].tolist() == [23, 7, 16]
    assert facts.loc["graphnav", "sizes"] == "12 nodes, 17 edges, 3 keys, 3 locked edges"
    small = worlds_described.describe_worlds(["S1"], PAPER).set_index("world")
    assert small.loc["objectstate", "sizes"] == "5 rooms, 2 keys, 1 box, 1 goal, 1 locked door"
    released = worlds_described.describe_worlds(["S1"], RELEASED)
    assert released["rate"].isna().all()


def test_summaries_are_means_of_their_episodes(episodes, idle, curves):
    mutation = worlds_described.summarise_mutation(episodes, "S2", 200).set_index(["protocol", "world"])
    for key, rows in worlds_described.idle(episodes, "S2").groupby(["protocol", "world"]):
        assert mutation.loc[key, "drawn"] == pytest.approx(rows["mutation_rate"].mean())
        assert mutation.loc[key, "changed_all"] == pytest.approx(rows["changed_all"].mean())
    assert mutation.loc[("released", "objectstate"), "rate"] == 0.15
    drift = worlds_described.summarise_drift(idle, curves, "S2", 200).set_index(["protocol", "world"])
    assert drift.loc["paper", "below"].eq(0).all()
    assert drift.loc["released", "below"].eq(1).all()
    assert drift.loc["paper", "running"].eq(30).all()
    assert (drift["top"] >= drift["last"]).all()


# --- curves and means -------------------------------------------------------------------------


def test_curves_end_where_episodes_do(curves):
    grid = run(policies="no-probe", protocols="paper", seeds="0:30")
    text = curves[curves["protocol"] == "paper"]
    for world, rows in text.groupby("world"):
        assert rows["t"].tolist() == list(range(31))
        assert rows["accuracy"].iloc[0] == 1
        final = grid.loc[grid["world"] == world, "accuracy"].mean()
        assert rows["accuracy"].iloc[-1] == pytest.approx(final)
        assert (rows["low"] <= rows["accuracy"]).all()
        assert (rows["accuracy"] <= rows["high"]).all()
    stopped = curves[(curves["protocol"] == "released") & (curves["world"] == "graphnav")]
    assert stopped["running"].is_monotonic_decreasing
    assert stopped.loc[stopped["running"] < MIN_RUNNING, "accuracy"].isna().all()
    assert stopped.loc[stopped["running"] >= MIN_RUNNING, "accuracy"].notna().all()
