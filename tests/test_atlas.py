"""The atlas: an even sample, verdicts equal to the reference, and nothing left out that is not a copy."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from envprobe_core.agents.profiles import PROFILES, TYPICAL, AgentProfile
from envprobe_core.analyses.calibration import predict
from envprobe_core.atlas import deciding, design, questions, running, sharing
from envprobe_core.atlas.testing import CODES, NO, UNTESTED, Cube, judge
from envprobe_core.cells import Cell
from envprobe_core.claims import load_claims
from envprobe_core.claims.judge import HOLDS, INCONCLUSIVE, NO_EFFECT, OTHER_SIZE, REVERSES, comparisons
from envprobe_core.claims.judge import judge as evaluate_all
from envprobe_core.engine.running import record
from envprobe_core.measures import confident_counts
from envprobe_core.policies import OF_THE_PAPER
from envprobe_core.protocols import OBSERVED, PAPER, PROTOCOLS, RELEASED, Protocol
from envprobe_core.regimes import REGIMES
from envprobe_core.sweep import run_cells
from envprobe_core.worlds import WORLDS

SEEDS = np.arange(12)


OUTCOMES = {  # the atlas counts three; how a claim's kind calls them is the reference's
    OTHER_SIZE: HOLDS,
    "near": HOLDS,
    "as printed": HOLDS,
    NO_EFFECT: INCONCLUSIVE,
    "differs": REVERSES,
    "not as printed": REVERSES,
}


def some_profiles(count: int) -> tuple[AgentProfile, ...]:
    """Profiles from all over the box, both kinds of report among them."""
    sample = design.sample_profiles(64)
    lone = next(profile for profile in sample if profile.single_report)
    return (lone, *[profile for profile in sample if not profile.single_report][: count - 1])


@pytest.fixture(scope="module")
def atlas() -> running.Atlas:
    return running.load_atlas(16, 10, resamples=200, jobs=1)


def frame_of(cube: Cube, profile: int, protocol: str, name: str, seeds: np.ndarray) -> pd.DataFrame:
    """The episode frame of one profile of a cube."""
    rows = [
        pd.DataFrame(
            {column: values[w, p, profile] for column, values in cube.columns.items()}
            | {"world": world, "policy": policy, "seed": seeds}
        )
        for w, world in enumerate(WORLDS)
        for p, policy in enumerate(OF_THE_PAPER)
    ]
    return pd.concat(rows, ignore_index=True).assign(regime="S2", protocol=protocol, profile=name)


def test_the_sample_is_fixed_and_each_behaviour_is_spread_evenly() -> None:
    points = design.coordinates(512)
    np.testing.assert_array_equal(points, design.coordinates(512))
    np.testing.assert_array_equal(points[:100], design.coordinates(100), "a smaller sample is a part")
    for column in points.T:  # one point in each of 512 slices
        np.testing.assert_array_equal(np.sort((column * 512).astype(int)), np.arange(512))
    assert len(set(design.sample_profiles(512))) == 512


def test_the_box_holds_every_named_profile_and_every_sampled_one() -> None:
    """Every one that keeps a table: a scribe is another form of agent, and the box does not speak of it."""
    behaviours = set(AgentProfile("").as_dict()) - {"name", "assumption"}
    assert {*design.NAMES, *design.NO_TABLE} == behaviours, "an axis each, or none because it needs no table"
    keeping = [profile for profile in PROFILES.values() if not profile.scribe]
    assert {"typical", "perfect", "scripted"} <= {profile.name for profile in keeping}
    for profile in (*keeping, *design.sample_profiles(32)):
        for axis, value in zip(design.BOX, design.values_of(profile), strict=True):
            assert axis.low <= value <= axis.high, (profile.name, axis.name)
        back = design.profile_of(design.values_of(profile), profile.name)
        assert replace(back, assumption="") == replace(profile, assumption="")
    for profile in PROFILES.values():
        back = design.profile_of(design.values_of(profile), profile.name)
        assert profile.scribe == (replace(back, assumption="") != replace(profile, assumption=""))
    shares = [profile.single_report for profile in design.sample_profiles(512)]
    assert sum(shares) == 128
    assert TYPICAL.name in PROFILES


def test_every_claim_of_the_frame_is_asked_and_none_is_asked_twice() -> None:
    asked = [claim.id for claim in questions.atlas_claims()]
    assert len(set(asked)) == len(asked)
    assert set(questions.HEADLINES) <= set(asked)
    primary = {claim.id for claim in load_claims() if claim.primary}
    assert primary <= set(asked)
    used = {arm for claim in questions.atlas_claims() for arm in claim.arms + claim.references}
    assert used == set(OF_THE_PAPER), "every policy has a question"


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_columns_are_those_of_the_engine(protocol: Protocol) -> None:
    """Copies included: what is not run again equals what a plain run gives, column by column."""
    profiles = some_profiles(4)
    cube = running.run_cube(profiles, protocol, SEEDS)
    cells = [
        Cell(world, policy, REGIMES["S2"], protocol, profile)
        for world in WORLDS
        for policy in OF_THE_PAPER.values()
        for profile in profiles
    ]
    plain = run_cells(cells, SEEDS)
    for name in questions.FRAME:
        if name != "budget":
            expected = plain[name].reshape(cube.columns[name].shape)
            np.testing.assert_array_equal(cube.columns[name], expected, name)
    assert (cube.columns["budget"] == REGIMES["S2"].budget).all()


@pytest.mark.parametrize("world", WORLDS)
def test_where_answers_are_withheld_the_skipped_policies_are_copies(world: str) -> None:
    """Beliefs, gold and steps of a copy are its original's bit for bit; only the field asked may differ."""
    assert running.copies(PAPER) == running.copies(OBSERVED) == {}
    kept = ("belief", "gold", "confidence", "action", "valid", "acted", "useful", "steps", "success")
    for profile in (*some_profiles(4), PROFILES["perfect"]):
        for copy, original in running.copies(RELEASED).items():
            one, other = (
                record(Cell(world, OF_THE_PAPER[name], protocol=RELEASED, profile=profile), SEEDS)
                for name in (copy, original)
            )
            for name in kept:
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
            np.testing.assert_array_equal(one.probe >= 0, other.probe >= 0)


def test_confidence_is_counted_as_the_calibration_counts_it() -> None:
    profiles = some_profiles(2)
    for protocol in (PAPER, RELEASED):
        cube = running.run_cube(profiles, protocol, SEEDS)
        recorded = ~np.isnan(cube.columns["confident"]).all(axis=(0, 2, 3))
        held = {name for name, known in zip(OF_THE_PAPER, recorded, strict=True) if known}
        assert held - set(running.copies(protocol)) == running.REPORTING
        cell = Cell("graphnav", OF_THE_PAPER["simple"], REGIMES["S2"], protocol, profiles[1])
        counts = confident_counts(record(cell, SEEDS), cell)
        at = list(WORLDS).index("graphnav"), list(OF_THE_PAPER).index("simple"), 1
        for name in questions.REPORTS:
            np.testing.assert_array_equal(cube.columns[name][at], counts[name])


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_verdicts_are_those_of_the_reference(protocol: Protocol) -> None:
    profiles, resamples = some_profiles(4), 150
    cube = running.run_cube(profiles, protocol, SEEDS)
    claims = questions.atlas_claims()
    ours = judge(claims, cube, resamples)
    for number, profile in enumerate(profiles):
        frame = frame_of(cube, number, protocol.name, profile.name, SEEDS)
        reference = evaluate_all(frame, claims, profile=profile.name, resamples=resamples)
        expected = [OUTCOMES.get(name, name) for name in reference["verdict"]]
        found = [CODES[code] for code in ours.verdict[number]]
        assert dict(zip(reference["claim"], found, strict=True)) == dict(
            zip(reference["claim"], expected, strict=True)
        )
        single = [len(comparisons(claim)) == 1 for claim in claims]
        estimate = reference["estimate"].to_numpy(dtype=float)
        np.testing.assert_allclose(ours.estimate[number][single], estimate[single], rtol=1e-9, atol=1e-9)


def test_episodes_are_counted(atlas: running.Atlas) -> None:
    assert atlas.episodes == 3 * 15 * 3 * 16 * 10
    assert atlas.simulated == (15 + 15 + 12) * 3 * 16 * 10


def test_targets_are_what_the_calibration_predicts(atlas: running.Atlas) -> None:
    seeds = np.arange(42, 52)
    np.testing.assert_allclose(
        sharing.target_measures(atlas), predict(atlas.profiles, seeds), rtol=1e-12, atol=1e-12
    )


def test_shares_add_up_and_leave_out_what_cannot_be_tested(atlas: running.Atlas) -> None:
    found = sharing.shares(atlas)
    known = found["holds"].notna()
    np.testing.assert_allclose(found.loc[known, ["holds", "inconclusive", "reverses"]].sum(axis=1), 100.0)
    untested = (atlas.verdict == UNTESTED).mean(axis=1)  # [protocol, claim]
    np.testing.assert_array_equal(known, (untested < 1 - sharing.TESTED).T.ravel())
    at = next(place for place, claim in enumerate(atlas.claims) if claim.id == "main-spatial")
    row = found[(found["claim"] == "main-spatial") & (found["protocol"] == atlas.protocols[0])].iloc[0]
    assert row["reverses"] == 100 * (atlas.verdict[0, :, at] == NO).mean()


def test_one_agent_run_again_gets_the_verdicts_of_the_atlas(atlas: running.Atlas) -> None:
    episodes = sharing.run_agent(atlas, 3, "tooldag", "periodic simple")
    found = evaluate_all(episodes, ["main-procedural"], profile=atlas.profiles[3].name, resamples=200)
    at = next(place for place, claim in enumerate(atlas.claims) if claim.id == "main-procedural")
    kept = [CODES[code] for code in atlas.verdict[:, 3, at]]
    assert [word.removesuffix(", other size") for word in found["verdict"]] == kept


def planted(support: np.ndarray, count: int) -> running.Atlas:
    """An atlas of no episodes whose one claim has this support."""
    claims = questions.atlas_claims()[:1]
    table = support[None, :, None]
    nothing = np.zeros(table.shape, dtype=np.int8)
    agents = design.sample_profiles(count)
    return running.Atlas(agents, claims, ("paper",), 1, nothing, table, table, {}, 0, 0)


def test_a_planted_behaviour_is_found_even_where_it_only_humps() -> None:
    values = np.array([design.values_of(profile) for profile in design.sample_profiles(256)])
    noise = np.random.default_rng(3).normal(size=256)
    slip, habit = design.NAMES.index("slip"), design.NAMES.index("writes")
    for support, axis in (
        (values[:, slip] + 0.02 * noise, slip),
        (-np.abs(values[:, slip] - np.median(values[:, slip])) + 0.01 * noise, slip),
        (values[:, habit] + 0.2 * noise, habit),
    ):
        found = deciding.sensitivity(planted(support, 256))
        assert found.first[0, 0] == axis
        assert found.share[0, 0, axis] > 0.6
        assert found.sure[0, 0] == 1.0
        assert found.low[0, 0, axis] <= found.share[0, 0, axis]
    assert deciding.sensitivity(planted(noise, 256)).share.max() < deciding.DECIDES
    assert deciding.sensitivity(planted(np.ones(256), 256)).first[0, 0] == -1


def test_the_share_between_slices_is_the_adjusted_correlation_ratio() -> None:
    rng = np.random.default_rng(8)
    values, support = rng.random(90), rng.random(90)
    cut = deciding.slices(values, 5)
    assert np.bincount(cut).tolist() == [18] * 5
    member = np.eye(5)[cut].T
    one = deciding.between(member, np.array([5]), np.ones((90, 1)), (support - support.mean())[:, None])
    grand = support.mean()
    within = sum(((support[cut == k] - support[cut == k].mean()) ** 2).sum() for k in range(5))
    whole = ((support - grand) ** 2).sum()
    assert one[0, 0] == pytest.approx(1 - (within / 85) / (whole / 89), abs=1e-12)
