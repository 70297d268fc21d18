"""The atlas: an even sample, columns of the engine, verdicts equal to the reference, its sensitivity."""

import numpy as np
import pandas as pd
import pytest
from notebook_cells import definitions

from envprobe_core.agents.profiles import PROFILES, AgentProfile
from envprobe_core.analyses import atlas
from envprobe_core.analyses.calibration import predict
from envprobe_core.cells import PAPER_POLICIES, Cell
from envprobe_core.claims import load_claims
from envprobe_core.claims.judge import HOLDS, INCONCLUSIVE, NO_EFFECT, OTHER_SIZE, REVERSES, judge
from envprobe_core.engine.running import record
from envprobe_core.grid import run_cells
from envprobe_core.measures import confident_counts
from envprobe_core.policies import OF_THE_PAPER
from envprobe_core.protocols import PROTOCOLS
from envprobe_core.worlds import WORLDS

SEEDS = np.arange(12)
NO_TABLE = {  # what only an agent without a table does: no axis of the box
    "scribe", "copies_gold", "lost", "loop", "critical", "risky", "names_goal", "asks", "lists_all",
}  # fmt: skip
OUTCOMES = {  # the atlas counts three; how a claim's kind calls them is the reference's
    OTHER_SIZE: HOLDS, "near": HOLDS, "as printed": HOLDS,
    NO_EFFECT: INCONCLUSIVE, "differs": REVERSES, "not as printed": REVERSES,
}  # fmt: skip


@pytest.fixture(scope="module")
def profiles():
    """Profiles from all over the box, both kinds of report among them."""
    sample = sorted(atlas.sample_profiles(64), key=lambda profile: not profile.single_report)
    return (sample[0], *sample[-3:])


@pytest.fixture(scope="module", params=PROTOCOLS)
def ran(request, profiles):
    """A protocol, and the columns of every agent under it."""
    protocol = PROTOCOLS[request.param]
    return protocol, atlas.run_profiles(profiles, protocol, SEEDS)


def test_the_sample_is_fixed_and_spread_evenly_in_a_box_that_holds_every_named_profile_with_a_table():
    points = atlas.coordinates(512)
    np.testing.assert_array_equal(points[:100], atlas.coordinates(100), "a smaller sample is a part")
    for column in points.T:  # one point in each of 512 slices
        np.testing.assert_array_equal(np.sort((column * 512).astype(int)), np.arange(512))
    sample, axes = atlas.sample_profiles(512), {axis.name for axis in atlas.BOX}
    assert len(set(sample)) == 512
    assert sum(profile.single_report for profile in sample) == 128
    assert axes | NO_TABLE == set(AgentProfile("").as_dict()) - {"name", "assumption"}
    for profile in (*PROFILES.values(), *sample[:32]):
        for axis, value in zip(atlas.BOX, atlas.values_of(profile), strict=True):
            assert profile.scribe or axis.low <= value <= axis.high, (profile.name, axis.name)
        others = {name: getattr(profile, name) for name in NO_TABLE}
        assert profile.scribe or others == {name: getattr(AgentProfile(""), name) for name in NO_TABLE}


def test_every_claim_of_the_frame_is_asked_and_none_is_asked_twice():
    claims = atlas.atlas_claims()
    asked = [claim.id for claim in claims]
    assert len(set(asked)) == len(asked)
    assert {claim.id for claim in load_claims() if claim.primary} <= set(asked)
    assert {arm for claim in claims for arm in claim.arms + claim.references} == set(OF_THE_PAPER)


def test_columns_are_those_of_the_engine(ran, profiles):
    """Copies included: what is not run again equals what a plain run gives, column by column."""
    protocol, columns = ran
    cells = [
        Cell(world, policy, atlas.REGIME, protocol, profile)
        for world in WORLDS
        for policy in OF_THE_PAPER.values()
        for profile in profiles
    ]
    plain = run_cells(cells, SEEDS)
    shape = (len(WORLDS), len(OF_THE_PAPER), len(profiles), len(SEEDS))
    for name in set(atlas.COLUMNS) & set(plain):
        np.testing.assert_array_equal(columns[name], plain[name].reshape(shape).swapaxes(2, 3), name)
    assert (columns["budget"] == atlas.REGIME.budget).all()
    for name in PAPER_POLICIES:
        cell = Cell("graphnav", OF_THE_PAPER[name], atlas.REGIME, protocol, profiles[1])
        counts = confident_counts(record(cell, SEEDS), cell)
        at = list(WORLDS).index("graphnav"), list(OF_THE_PAPER).index(name), slice(None), 1
        for column in ("confident", "confident_wrong"):
            np.testing.assert_array_equal(columns[column][at], counts[column])


def test_verdicts_are_those_of_the_reference(ran, profiles):
    (protocol, columns), claims, resamples = ran, atlas.atlas_claims(), 150
    verdict, support = atlas.judge_all(claims, columns, resamples)
    for number, profile in enumerate(profiles):
        frame = pd.concat(
            pd.DataFrame({name: table[w, p, :, number] for name, table in columns.items()}).assign(
                world=world, policy=policy, seed=SEEDS
            )
            for w, world in enumerate(WORLDS)
            for p, policy in enumerate(OF_THE_PAPER)
        ).assign(regime="S2", protocol=protocol.name, profile=profile.name)
        reference = judge(frame, claims, profile=profile.name, resamples=resamples)
        expected = [(row.claim, OUTCOMES.get(row.verdict, row.verdict)) for row in reference.itertuples()]
        found = [atlas.OUTCOMES[code] for code in verdict[number]]
        assert list(zip(reference["claim"], found, strict=True)) == expected
        for claim, size, reached in zip(claims, reference["estimate"], support[number], strict=True):
            if claim.directions == ("greater",) and claim.kind == "paired" and len(claim.comparisons) == 1:
                assert reached == pytest.approx(size, rel=1e-9, abs=1e-9, nan_ok=True)


def test_the_atlas_puts_each_agent_in_its_place(monkeypatch):
    """However many agents a task holds; targets are what the calibration predicts."""
    monkeypatch.setattr(atlas, "AT_ONCE", 3)
    small = atlas.load_atlas(4, 10, "observed released", resamples=100, jobs=1)
    columns = atlas.run_profiles(small.profiles, PROTOCOLS["released"], np.arange(42, 52))
    verdict, support = atlas.judge_all(small.claims, columns, 100)
    np.testing.assert_array_equal(small.verdict[1], verdict)
    np.testing.assert_array_equal(small.support[1], support)
    ours = predict(small.profiles, np.arange(42, 52))
    np.testing.assert_allclose(small.targets, ours, rtol=1e-12, atol=1e-12)
    assert atlas.load_atlas(2, 2, "paper", resamples=100, jobs=1).targets is None


def test_the_behaviour_that_decides_explains_the_variance():
    """Planted: half of the variance lies between the slices of one behaviour, none between the other's."""
    page = definitions("other-settings", "sensitivity", np=np, behaviours=np.zeros((2_000, 2)))
    generator = np.random.default_rng(0)
    decides, other, noise = generator.uniform(size=(3, 2_000))
    support = page.rankdata(decides) / 2_000 + noise
    support[::50] = np.nan  # not tested
    cuts = [page.slices(column, 8) for column in (decides, other)]
    assert np.bincount(cuts[0]).tolist() == [250] * 8
    share, nothing = (page.explained(cut, support, np.ones((1, 2_000)))[0] for cut in cuts)
    assert share == pytest.approx(0.5 * (1 - 1 / 64), abs=0.03)  # of a uniform behaviour, eight slices
    assert nothing == pytest.approx(0, abs=0.01)
