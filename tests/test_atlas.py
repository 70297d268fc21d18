"""The atlas: an even sample, verdicts and targets equal to the reference's, its sensitivity."""

from dataclasses import fields, replace
from itertools import combinations

import numpy as np
import pytest

import envprobe_book.facts  # noqa: F401  # whose names `run_frame` is given
from envprobe_book.analyses import atlas
from envprobe_book.analyses.calibration import predict
from envprobe_book.claims import load_claims
from envprobe_book.claims.judge import HOLDS, INCONCLUSIVE, NEGLIGIBLE, NO_EFFECT, OTHER_SIZE, REVERSES, judge
from envprobe_core.agents.profiles import PROFILES, AgentProfile
from envprobe_core.conditions import Condition
from envprobe_core.experiment import run_frame
from envprobe_core.policies import OF_THE_PAPER
from envprobe_core.protocols import PROTOCOLS
from envprobe_core.worlds import WORLDS

NO_TABLE = {  # what only an agent without a table does: no axis of the box
    "scribe", "copies_gold", "lost", "loop", "critical", "risky", "names_goal", "asks", "lists_all",
    "critical_once",  # which acts where `critical` is below 1
}  # fmt: skip
OUTCOMES = {  # the atlas counts three; how a claim's kind calls them is the reference's
    OTHER_SIZE: HOLDS, "near": HOLDS, "as printed": HOLDS,
    NO_EFFECT: INCONCLUSIVE, NEGLIGIBLE: INCONCLUSIVE, "differs": REVERSES, "not as printed": REVERSES,
}  # fmt: skip


def test_the_sample_is_fixed_and_spread_evenly_in_a_box_that_holds_every_named_profile_with_a_table():
    points = atlas.coordinates(512)
    np.testing.assert_array_equal(points[:100], atlas.coordinates(100), "a smaller sample is a part")
    for column in points.T:  # one point in each of 512 slices
        np.testing.assert_array_equal(np.sort((column * 512).astype(int)), np.arange(512))
    sample, axes = atlas.sample_profiles(512), {axis.name for axis in atlas.BOX}
    assert len(set(sample)) == 512
    assert sum(profile.single_report for profile in sample) == 128
    later = {axis.name for axis in atlas.WIDE_BOX} - axes
    assert axes | later | NO_TABLE == {field.name for field in fields(AgentProfile)} - {"name", "assumption"}
    for profile in (*PROFILES.values(), *sample[:32]):
        for axis, value in zip(atlas.BOX, atlas.values_of(profile), strict=True):
            assert profile.scribe or axis.low <= value <= axis.high, (profile.name, axis.name)
        others = {name: getattr(profile, name) for name in NO_TABLE | later}
        plain = AgentProfile("")
        assert profile.scribe or others == {name: getattr(plain, name) for name in NO_TABLE | later}


def test_an_agent_of_the_wide_box_is_that_of_the_box_with_later_habits():
    later = [axis.name for axis in atlas.WIDE_BOX[len(atlas.BOX) :]]
    wide = atlas.sample_profiles(64, atlas.WIDE_BOX)
    assert all(len({getattr(agent, name) for agent in wide}) > 1 for name in later)
    plain = {name: getattr(AgentProfile(""), name) for name in later}
    assert tuple(replace(agent, **plain) for agent in wide) == atlas.sample_profiles(64)
    points = atlas.coordinates(512, len(atlas.WIDE_BOX))
    for column in points.T:  # one point in each of 512 slices
        np.testing.assert_array_equal(np.sort((column * 512).astype(int)), np.arange(512))
    for pair in combinations(points.T, 2):  # and 32 in each of 16 squares
        cells = (np.array(pair) * 4).astype(int)
        assert set(np.bincount(4 * cells[0] + cells[1])) == {32}, pair


def test_every_claim_of_the_frame_is_asked_and_none_is_asked_twice():
    claims = atlas.atlas_claims()
    asked = [claim.id for claim in claims]
    assert len(set(asked)) == len(asked)
    assert {claim.id for claim in load_claims() if claim.primary} <= set(asked)
    assert {arm for claim in claims for arm in claim.arms + claim.references} == set(OF_THE_PAPER)


@pytest.fixture(scope="module")
def small():
    """An atlas of tasks that hold three agents each, both kinds of report among them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(atlas, "AT_ONCE", 3)
        made = atlas.load_atlas(4, 12, " ".join(PROTOCOLS), resamples=150, jobs=1)
    assert {profile.single_report for profile in made.profiles} == {False, True}
    return made


def test_in_the_wide_box_too_verdicts_are_those_of_each_agent_s_own_episodes():
    """Luck of one's own makes copies of no policy, also where no answer arrives."""
    made = atlas.load_atlas(8, 10, "released", resamples=100, jobs=1, box=atlas.WIDE_BOX)
    for name in ("importance", "contrary", "own_noise"):
        assert len({getattr(profile, name) for profile in made.profiles}) > 1
    number = next(i for i, profile in enumerate(made.profiles) if profile.own_noise)
    conditions = [
        Condition(world, policy, atlas.REGIME, PROTOCOLS["released"], made.profiles[number])
        for world in WORLDS
        for policy in OF_THE_PAPER.values()
    ]
    seeds = [conditions[0].default_seeds()[:10]] * len(conditions)
    frame = run_frame(conditions, seeds, ("confident", "confident_wrong"))
    found = judge(frame, made.claims, profile=made.profiles[number].name, resamples=100)
    expected = [OUTCOMES.get(verdict, verdict) for verdict in found["verdict"]]
    assert made.verdict[0, number].tolist() == expected
    alone = frame.pivot(index=["world", "seed"], columns="policy", values="accuracy")
    assert (alone["placebo"] != alone["simple"]).any()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_verdicts_are_those_that_each_agents_own_episodes_get(small, protocol):
    """Whoever runs beside it, and whatever is copied rather than run again; so are its targets."""
    for number, profile in enumerate(small.profiles):
        conditions = [
            Condition(world, policy, atlas.REGIME, PROTOCOLS[protocol], profile)
            for world in WORLDS
            for policy in OF_THE_PAPER.values()
        ]
        seeds = conditions[0].default_seeds()[:12]
        frame = run_frame(conditions, [seeds] * len(conditions), ("confident", "confident_wrong"))
        reference = judge(frame, small.claims, profile=profile.name, resamples=150)
        expected = [(row.claim, OUTCOMES.get(row.verdict, row.verdict)) for row in reference.itertuples()]
        row = small.protocols.index(protocol), number
        assert list(zip(reference["claim"], small.verdict[row].tolist(), strict=True)) == expected
        for claim, size, reached in zip(small.claims, reference["estimate"], small.support[row], strict=True):
            if claim.directions == ("greater",) and claim.kind == "paired" and len(claim.comparisons) == 1:
                assert reached == pytest.approx(size, rel=1e-9, abs=1e-9, nan_ok=True)
    if protocol == "released":
        np.testing.assert_allclose(small.targets, predict(small.profiles, seeds), rtol=1e-12, atol=1e-12)
