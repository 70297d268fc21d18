"""Verdicts on hand-worked frames, their invariants, and the claims file itself."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envprobe_core.claims import (
    LEVELS,
    UNITS,
    load_claims,
    paper_value,
    paper_values,
    parse_claim,
    policy_and_budget,
    read_rows,
)
from envprobe_core.claims.judge import COLUMNS, judge
from envprobe_core.comparing import MEASURE
from envprobe_core.errors import InputError
from envprobe_core.policies import POLICIES
from envprobe_core.regimes import REGIMES
from envprobe_core.statistics import paired_bootstrap
from envprobe_core.worlds import WORLDS

N = 20


def claim(**changes):
    row = dict.fromkeys(read_rows("claims.csv")[0], "") | {
        "id": "c", "kind": "paired", "measure": "accuracy", "worlds": "tooldag", "arm": "simple",
        "reference": "periodic", "direction": "greater", "unit": "points", "family": "6",
        "regime": "S2",
    }  # fmt: skip
    return parse_claim(row | {name: str(value) for name, value in changes.items()})


def level(**changes):
    return claim(**{"kind": "level", "reference": "", "unit": "share"} | changes)


def episodes(policy, world="tooldag", n=N, first=0, **columns):
    base = {
        "world": world, "policy": policy, "regime": "S2", "protocol": "paper", "profile": "typical",
        "seed": np.arange(first, first + n), "accuracy": 0.5, "success": False, "probes": 4,
        "useful": 2, "budget": 7, "collapse_onset": 5.0, "action_onset": 9.0,
    }  # fmt: skip
    return pd.DataFrame(base | columns)


def frame(*parts):
    return pd.concat(parts, ignore_index=True)


def two(arm, reference=0.5, world="tooldag", **changes):
    return frame(
        episodes("simple", world, accuracy=arm, **changes),
        episodes("periodic", world, accuracy=reference, **changes),
    )


def judged(a_claim, a_frame, **settings_):
    table = judge(a_frame, a_claim, **{"protocols": ["paper"], "resamples": 400} | settings_)
    return next(table.itertuples(index=False))


NOISE = np.random.default_rng(0).normal(0, 0.02, N)


# each kind by hand

PRINTED = {"value": 11.76, "ci_low": 10.77, "ci_high": 12.75}
HALVES = np.resize([0.1, -0.1], N)
MARGIN = {"kind": "equivalence", "direction": "none", "margin": 2}
EQUAL = {"direction": "equal", "value": 0.5}
CONTRAST = {"kind": "contrast", "worlds": "tooldag", "against": "graphnav"}
BOTH = frame(two(0.6), two(0.55, world="graphnav"))
ORDER = {"kind": "ordering", "arm": "no-probe periodic simple", "reference": ""}
DOMINANCE = {"kind": "dominance", "measure": "accuracy success", "direction": "greater greater"}
TWO_RIVALS = DOMINANCE | {"reference": "periodic random"}
ALIKE = two(0.5 + NOISE, 0.5 + NOISE)
EDGY = np.resize([0.05, -0.02], N)
WINS = {"kind": "mcnemar", "measure": "success"}


def ranked(*levels):
    return frame(*(episodes(p, accuracy=a) for p, a in zip(ORDER["arm"].split(), levels, strict=True)))


def rivals(accuracy, success):
    return frame(
        episodes("simple", accuracy=0.6, success=True),
        episodes("periodic"),
        episodes("random", accuracy=accuracy, success=success),
    )


def alone(accuracy):
    return episodes("simple", accuracy=accuracy)


def won(arm, reference):
    """Episodes of which the arm alone wins so many, and the reference alone others."""
    sides = np.arange(N) < arm, np.arange(N) >= N - reference
    return frame(*(episodes(p, success=won) for p, won in zip(("simple", "periodic"), sides, strict=True)))


@pytest.mark.parametrize(
    ("a_claim", "a_frame", "expected"),
    [
        (claim(**PRINTED), two(0.62), "holds"),
        (claim(**PRINTED), two(0.72), "holds, other size"),
        (claim(**PRINTED), two(0.51), "holds, other size"),
        (claim(), two(0.51), "holds"),
        (claim(value="3.9"), two(0.539), "holds"),
        (claim(value="3.9"), two(0.540), "holds, other size"),
        (claim(value="4"), two(0.540), "holds"),
        (claim(value=11.76), two(0.45), "reverses"),
        (claim(), two(0.5 + NOISE - NOISE.mean()), "inconclusive"),
        (claim(), two(0.5 + HALVES), "inconclusive"),
        (claim(direction="less"), two(0.45), "holds"),
        (claim(direction="less"), two(0.55), "reverses"),
        (claim(), two(0.6, n=10), "holds"),  # ten episodes are enough
        # no effect is agreement in every episode; the same mean is not enough
        (claim(value=11.76), ALIKE, "no effect"),
        (claim(), two(0.5 + NOISE, 0.5 + NOISE[::-1]), "inconclusive"),
        (claim(kind="mcnemar", measure="success", direction="either"), ALIKE, "no effect"),
        (claim(**DOMINANCE), ALIKE, "no effect"),
        # no difference is claimed within a margin
        (claim(**MARGIN), ALIKE, "holds"),
        *((claim(**MARGIN, value=-0.4), two(0.5 + gap), "holds") for gap in (0.0, 0.02, -0.02)),
        *((claim(**MARGIN, value=-0.4), two(0.5 + gap), "reverses") for gap in (0.03, -0.03)),
        (claim(**MARGIN, value=-0.4), two(0.52 + NOISE), "inconclusive"),
        # levels and settings
        (level(**EQUAL, margin=0), alone(0.5), "near"),
        (level(**EQUAL, margin=0.03), alone(0.53), "near"),
        (level(**EQUAL, margin=0.03), alone(0.54), "differs"),
        (level(**EQUAL | {"value": 9}, bound=0.5, margin=0.1), alone(0.45), "near"),
        (level(direction="equal", bound=0.5, margin=0.01), alone(0.5 + NOISE), "inconclusive"),
        (level(bound=0.5), alone(0.6), "holds"),
        (level(bound=0.5, value=0.735), alone(0.6), "holds, other size"),
        (level(bound=0.5), alone(0.5), "inconclusive"),
        (level(bound=0.5), alone(0.4), "reverses"),
        (level(bound=1, direction="less"), alone(0.4), "holds"),
        (level(bound=1, direction="less"), alone(1.0), "inconclusive"),
        (level(**EQUAL, family="setting", margin=0.03), alone(0.5), "as printed"),
        (level(**EQUAL, family="setting", margin=0.03), alone(0.7), "not as printed"),
        # contrasts of gains, or of levels
        (claim(**CONTRAST), BOTH, "holds"),
        (claim(**CONTRAST | {"worlds": "graphnav", "against": "tooldag"}), BOTH, "reverses"),
        (claim(**CONTRAST | {"worlds": "graphnav", "against": "tooldag", "reference": "",
                             "direction": "less"}), BOTH, "holds"),
        # the adjusted interval decides, as McNemar's adjusted p does: 6 * 2 / 2**8 is .047
        (claim(family=6), two(0.5 + EDGY), "inconclusive"),
        (claim(family=1), two(0.5 + EDGY), "holds"),
        *((claim(**WINS, direction=direction), won(*pairs), expected) for direction, pairs, expected in (
            ("greater", (8, 0), "holds"), ("greater", (7, 0), "inconclusive"), ("less", (8, 0), "reverses"),
            ("either", (8, 0), "holds"), ("either", (0, 8), "holds"), ("less", (0, 8), "holds"),
            ("greater", (0, 8), "reverses"), ("either", (5, 5), "inconclusive"),
        )),
        # an ordering needs every step, dominance every reference and measure
        (claim(**ORDER), ranked(0.4, 0.5, 0.6), "holds"),
        (claim(**ORDER), ranked(0.4, 0.5, 0.5), "inconclusive"),
        (claim(**ORDER), ranked(0.4, 0.6, 0.5), "reverses"),
        (claim(**ORDER | {"arm": "simple periodic no-probe", "direction": "less"}), ranked(0.4, 0.5, 0.6),
         "holds"),
        (claim(**TWO_RIVALS), rivals(0.5, False), "holds"),
        (claim(**TWO_RIVALS), rivals(0.5, True), "inconclusive"),
        (claim(**TWO_RIVALS), rivals(0.7, False), "reverses"),
        (claim(**TWO_RIVALS | {"direction": "greater less"}), rivals(0.5, False), "reverses"),
    ],
)  # fmt: skip
def test_a_verdict_says_where_the_interval_lies(a_claim, a_frame, expected):
    assert judged(a_claim, a_frame).verdict == expected


@pytest.mark.parametrize("accuracy", [0.6, 0.5, 0.4])
def test_the_p_of_a_level_is_against_its_bound(accuracy):
    result = judged(level(bound=0.5), alone(accuracy))
    assert result.p == pytest.approx(1.0 if accuracy == 0.5 else 2 / 401)


def test_a_record_holds_the_statistics_and_what_the_paper_prints():
    arm = 0.6 + NOISE
    changes = {"value": "11.76", "ci_low": "10.77", "ci_high": "12.75", "n": 220}
    result = judged(claim(**changes), two(arm))
    naive = paired_bootstrap(100 * (arm - 0.5), resamples=400, family=6)
    assert result.estimate == pytest.approx(naive.mean)
    for name in ("low", "high", "low_adjusted", "high_adjusted", "p", "p_adjusted"):
        assert getattr(result, name) == pytest.approx(getattr(naive, name))
    told = (result.claim, result.unit, result.n, result.protocol, result.profile, result.same_n)
    assert told == ("c", "points", N, "paper", "typical", False)
    assert (result.paper_value, result.paper_low, result.paper_high, result.paper_n) == (
        11.76,
        10.77,
        12.75,
        220,
    )
    assert result.difference == pytest.approx(result.estimate - 11.76)
    same = judged(claim(n=N), two(arm))
    assert same.same_n
    assert "the paper's n" not in same.reason
    assert np.isnan([same.difference, same.paper_value]).all()


ONSETS = episodes("simple", collapse_onset=np.where(np.arange(N) < 4, np.nan, 3.0))
PAIR = "accuracy, EnvProbe-Simple minus Periodic: "
TOLD = "(n = 20); the adjusted interval "
PAIRS = "success, EnvProbe-Simple minus Periodic: 40 points (n = 20); 8 against 0 discordant pairs give "


@pytest.mark.parametrize(
    ("a_claim", "a_frame", "reason"),
    [
        (claim(**PRINTED), two(0.62),
         f"{PAIR}12 points {TOLD}[12, 12] lies above 0 as claimed, meeting the paper's [10.77, 12.75]."),
        (claim(**PRINTED, n=220), two(0.72),
         f"{PAIR}22 points {TOLD}[22, 22] lies above 0 as claimed, missing the paper's [10.77, 12.75]; "
         "the paper's n is 220."),
        (claim(value=11.76), two(0.45), f"{PAIR}-5 points {TOLD}[-5, -5] lies below 0, against the claim."),
        (claim(direction="less"), two(0.45), f"{PAIR}-5 points {TOLD}[-5, -5] lies below 0 as claimed."),
        (claim(direction="less"), two(0.55), f"{PAIR}5 points {TOLD}[5, 5] lies above 0, against the claim."),
        (claim(), two(0.5 + HALVES), f"{PAIR}0 points {TOLD}[-5.338, 6] lies around 0."),
        (claim(), two(0.5), f"{PAIR}0 points (n = 20); the two sides agree in every episode."),
        (claim(**MARGIN), two(0.515), f"{PAIR}1.5 points {TOLD}[1.5, 1.5] lies within the margin [-2, 2]."),
        (claim(**MARGIN), two(0.55), f"{PAIR}5 points {TOLD}[5, 5] lies outside the margin [-2, 2]."),
        (claim(**MARGIN), two(0.52 + HALVES),
         f"{PAIR}2 points {TOLD}[-3.337, 8] lies across an end of the margin [-2, 2]."),
        (level(bound=0.5, value=0.735), episodes("simple", accuracy=0.6),
         f"accuracy: 0.6 {TOLD}[0.6, 0.6] lies above 0.5 as claimed, missing the paper's [0.7345, 0.7355]."),
        (level(measure="collapse_onset", bound=1, unit="steps"), ONSETS,
         "collapse_onset: 3 steps (n = 16); the adjusted interval [3, 3] lies above 1 as claimed; 4 left out "
         "(censored, or without an event)."),
        (level(kind="median", measure="collapse_onset", bound=5, direction="less", unit="steps"),
         episodes("simple", collapse_onset=np.arange(N) % 7.0),
         f"collapse_onset: 3 steps {TOLD}[1, 4.5] lies below 5 as claimed."),
        (claim(kind="dominance", measure="accuracy success", direction="greater greater"), two(0.5),
         f"0 of 2 comparisons hold, 0 reverse; the weakest: {PAIR}0 points (n = 20); the two sides agree in "
         "every episode."),
        (claim(**WINS), won(8, 0), f"{PAIRS}an exact p of 0.0078 (0.047 adjusted)."),
        (claim(**WINS, direction="less"), won(8, 0),
         f"{PAIRS}an exact p of 0.0078 (0.047 adjusted), against the claim."),
        (claim(kind="ordering", arm="no-probe periodic simple", reference=""),
         frame(episodes("no-probe", accuracy=0.4), episodes("periodic", accuracy=0.6), episodes("simple")),
         f"1 of 2 comparisons hold, 1 reverse; the weakest: {PAIR}-10 points {TOLD}[-10, -10] lies below 0, "
         "against the claim."),
        (claim(kind="contrast", against="graphnav"), frame(two(0.6), two(0.55, world="graphnav")),
         f"{PAIR}5 points {TOLD.replace('20', '40')}[5, 5] lies above 0 as claimed."),
    ],
)  # fmt: skip
def test_the_reason_says_it_whole(a_claim, a_frame, reason):
    assert judged(a_claim, a_frame).reason == reason


def test_rates_are_sums_over_sums_clustered_by_episode():
    top, bottom = np.resize([1, 2, 9], N), np.resize([2, 3, 10], N)
    wrong = frame(
        episodes("simple", confident_wrong=top, confident=bottom),
        episodes("periodic", confident_wrong=0, confident=0),
    )
    changes = {"kind": "rate", "measure": "confident_wrong/confident", "bound": 0.6}
    result = judged(level(**changes, arm="simple periodic", n=int(bottom.sum())), wrong)
    assert result.estimate == pytest.approx(top.sum() / bottom.sum())
    assert (result.n, result.same_n) == (bottom.sum(), True)
    assert result.verdict == "holds"
    mean_of_ratios = judged(level(measure="confident_wrong/confident", bound=0.6), wrong)
    assert mean_of_ratios.estimate == pytest.approx(np.mean(top / bottom))
    assert mean_of_ratios.n == N


# undefined measures


def test_pairs_without_a_ratio_on_both_sides_are_left_out():
    both = frame(
        episodes("simple", probes=np.resize([0, 4], N), useful=np.resize([0, 2], N)),
        episodes("random", probes=np.resize([4, 4, 0, 4], N), useful=np.resize([1, 1, 0, 1], N)),
    )
    result = judged(claim(measure="useful/probes", reference="random"), both)
    assert result.n == N // 2
    assert result.estimate == pytest.approx(25)
    assert f"{N // 2} left out" in result.reason


def test_censored_events():
    never = np.where(np.arange(N) < 4, np.nan, 3.0)
    one = episodes("simple", collapse_onset=never)
    onset = judged(level(measure="collapse_onset", bound=1, unit="steps"), one)
    assert (onset.n, onset.estimate) == (N - 4, 3.0)
    early = judged(level(measure="collapse_onset<4", bound=0.5), one)
    assert (early.n, early.estimate) == (N, pytest.approx(0.8))
    late = judged(level(measure="collapse_onset>4", bound=0.5), one)
    assert late.estimate == pytest.approx(0.2)
    first = judged(level(measure="action_onset>collapse_onset", bound=0.5), one)
    assert (first.n, first.estimate) == (N - 4, 1.0)
    offset = judged(level(measure="action_onset-collapse_onset", bound=0, unit="steps"), one)
    assert (offset.n, offset.estimate, offset.verdict) == (N - 4, 6.0, "holds")


# calibration and what cannot be tested


def test_calibration_targets_are_inputs_of_calibrated_profiles_only():
    a_claim = claim(input="periodic accuracy")
    assert judged(a_claim, two(0.6)).verdict == "holds"
    fitted = judged(a_claim, two(0.6, profile="calibrated"), profile="calibrated")
    assert fitted.verdict == "input"
    assert fitted.estimate == pytest.approx(10)
    assert fitted.reason.endswith("calibrated on periodic accuracy.")
    free = judged(claim(), two(0.6, profile="calibrated"), profile="calibrated")
    assert free.verdict == "holds"


@pytest.mark.parametrize(
    ("changes", "a_frame", "reason"),
    [
        ({}, episodes("simple"), "the frame has no periodic in tooldag, S2"),
        ({"worlds": "graphnav"}, two(0.6), "the frame has no simple in graphnav, S2"),
        ({"regime": "S3"}, two(0.6), "the frame has no simple in tooldag, S3"),
        ({"measure": "chain_length"}, two(0.6), "the frame has no column chain_length"),
        ({}, two(0.6, n=9), "accuracy: 9 episodes with a value, 10 are needed"),
        ({}, two(0.6, n=1), "tooldag has 1 episodes in common"),
        ({"measure": "useful/probes"}, two(0.6, probes=0),
         "useful/probes: 0 episodes with a value, 10 are needed"),
        ({"kind": "contrast", "against": "graphnav", "measure": "collapse_onset"},
         frame(*(two(0.6, world=w, collapse_onset=np.nan) for w in ("tooldag", "graphnav"))),
         "collapse_onset: 0 episodes with a value, 10 are needed"),
        ({"kind": "contrast", "against": "graphnav+objectstate",
          "measure": "collapse_onset"},
         frame(two(0.6), *(two(0.6, world=w, collapse_onset=np.nan)
                           for w in ("graphnav", "objectstate"))),
         "graphnav and objectstate: 0 episodes with a value, 10 are needed"),
    ],
)  # fmt: skip
def test_what_a_frame_cannot_test_is_not_tested(changes, a_frame, reason):
    result = judged(claim(value=1, n=7, **changes), a_frame)
    assert (result.verdict, result.reason) == ("not tested", f"{reason}.")
    assert np.isnan([result.estimate, result.n, result.p]).all()
    assert (result.paper_value, result.paper_n, result.same_n) == (1, 7, True)


@pytest.mark.parametrize(
    ("a_frame", "settings_", "message"),
    [
        (two(0.6).drop(columns="seed"), {}, "the frame has no column seed"),
        (two(0.6), {"protocols": ["released"]}, "no protocol 'released'; it holds paper"),
        (two(0.6), {"profile": "perfect"}, "no profile 'perfect'; it holds typical"),
        (frame(two(0.6), episodes("simple", n=1, first=3)), {}, "seed 3 of simple in tooldag, S2, "
         "occurs twice"),
        (two(np.where(np.arange(N) == 7, np.nan, 0.6)), {}, "accuracy is missing for seed 7 of "
         "simple in tooldag"),
    ],
)  # fmt: skip
def test_a_damaged_frame_is_refused(a_frame, settings_, message):
    with pytest.raises(InputError) as error:
        judged(claim(), a_frame, **settings_)
    assert message in str(error.value)


# joins and invariants


def test_pairs_are_joined_by_key():
    rng = np.random.default_rng(2)
    arm, reference = rng.random(N), rng.random(N)
    both = frame(
        episodes("simple", accuracy=arm, first=0),
        episodes("periodic", accuracy=reference, first=5),
        episodes("simple", "graphnav", accuracy=0.9),
        episodes("simple", accuracy=0.9, regime="S3"),
        episodes("simple", accuracy=0.9, protocol="released"),
    ).sample(frac=1, random_state=3)
    result = judged(claim(), both)
    pairs = arm[5:] - reference[: N - 5]
    assert result.n == N - 5
    assert result.estimate == pytest.approx(100 * pairs.mean())
    expected = paired_bootstrap(100 * pairs, resamples=400)
    assert (result.low, result.high) == pytest.approx((expected.low, expected.high))


STEPS = st.lists(st.integers(0, 27), min_size=N, max_size=N)


@settings(max_examples=25, deadline=None)
@given(STEPS, STEPS)
def test_swapping_the_arms_mirrors_the_verdict(arm, reference):
    both = two(np.array(arm) / 27, np.array(reference) / 27)
    plain = judged(claim(), both)
    swapped = judged(claim(arm="periodic", reference="simple"), both)
    mirror = {"holds": "reverses", "reverses": "holds"}
    assert swapped.verdict == mirror.get(plain.verdict, plain.verdict)
    assert swapped.low == pytest.approx(-plain.high, abs=1e-9)
    turned = judged(claim(arm="periodic", reference="simple", direction="less"), both)
    assert turned.verdict == plain.verdict


# many claims


def test_all_claims_under_all_protocols():
    both = frame(two(0.4, protocol="released"), two(0.6))
    table = judge(both, [claim(id="a"), claim(id="b", direction="less")], resamples=50)
    assert table["claim"].tolist() == ["a", "a", "b", "b"]
    assert table["protocol"].tolist() == ["paper", "released"] * 2
    assert table["verdict"].tolist() == ["holds", "reverses", "reverses", "holds"]
    assert tuple(table) == COLUMNS
    one = judge(both, ["main-procedural"], protocols=["released"], resamples=50)
    assert one[["claim", "verdict"]].values.tolist() == [["main-procedural", "reverses"]]
    moved = judge(two(0.6, regime="R1"), section="main", regime="R1", resamples=50)
    assert moved["claim"].tolist() == [c.id for c in load_claims(section="main")]
    assert set(moved["regime"]) == {"R1"}
    verdict = moved.set_index("claim")["verdict"]
    assert verdict[["main-procedural", "main-spatial"]].tolist() == ["holds, other size", "not tested"]
    with pytest.raises(InputError, match="section 'main' are both given"):
        judge(both, "main-procedural", section="main")
    with pytest.raises(InputError, match="measure 'accuracy<' cannot be read"):
        judge(both, claim(measure="accuracy<"))


# the claims file


def test_a_family_is_all_that_its_source_says_of_a_sort():
    claims = load_claims()
    for c in claims:
        kin = [other for other in claims if (other.source, other.about) == (c.source, c.about)]
        assert c.family == (1 if c.setting else len(kin)), c.id
    assert {c.about for c in claims} == {"comparison", "level", "setting"}
    assert not any(c.references for c in claims if c.setting)
    six = int(paper_value("tab:hparams_appendix", "bonferroni", "family").value)
    assert sum(c.primary for c in claims) == six


def test_claimed_numbers_are_the_papers_and_inputs_the_calibration_targets():
    printed = {(v.source, v.value, v.low, v.high) for v in paper_values()}
    for c in load_claims():
        fitted = "accuracy" in c.measures and "periodic" in c.arms + c.references
        expected = (
            {"canonical p_cw"} if c.id == "pcw-canonical" else {"periodic accuracy"} if fitted else set()
        )
        assert set(c.inputs) == expected, c.id
        if (c.source, c.value, c.low, c.high) in printed:
            ns = {v.n for v in paper_values() if v.source == c.source and v.value == c.value}
            assert c.n in ns or ns == {None}, c.id
        elif c.value is not None:  # a difference of two printed percentages
            row = f"procedural: {c.arms[0]} vs {c.references[0]}"
            sides = (paper_value(c.source, row, f"{side}_success_pct") for side in ("method", "reference"))
            assert c.value == pytest.approx(np.subtract(*(side.value for side in sides))), c.id


DIRECTIONS = {  # those that each kind accepts
    "paired": {"greater", "less"}, "mcnemar": {"greater", "less", "either"}, "equivalence": {"none"},
    "level": {"greater", "less", "equal"}, "median": {"greater", "less", "equal"},
    "rate": {"greater", "less", "equal"}, "contrast": {"greater", "less"}, "ordering": {"greater", "less"},
    "dominance": {"greater", "less"},
}  # fmt: skip


def test_every_claim_can_be_tested():
    rows = read_rows("claims.csv")
    assert len({row["id"] for row in rows}) == len(rows)
    assert {row["primary"] for row in rows} == {"yes", ""}
    for c in load_claims():
        several, equal = c.kind in ("ordering", "dominance"), c.directions == ("equal",)
        sides = len(c.arms), len(c.references)
        reads = [MEASURE.fullmatch(measure)[2] for measure in c.measures]
        assert (c.regime in REGIMES, c.unit in UNITS) == (True, True), c.id
        assert set(c.directions) <= DIRECTIONS[c.kind], c.id
        assert set(c.worlds + c.against) <= set(WORLDS), c.id
        assert not set(c.worlds) & set(c.against), c.id
        assert {policy_and_budget(arm)[0] for arm in c.arms + c.references} <= set(POLICIES), c.id
        assert len(c.directions) == len(c.measures) == (len(c.measures) if several else 1), c.id
        if c.kind in ("paired", "mcnemar", "equivalence"):
            assert sides == (1, 1), c.id
        elif c.kind in (*LEVELS, "ordering"):
            assert (sides[0] > several, sides[1]) == (True, 0), c.id
        else:
            assert min(sides) >= several, c.id
        assert bool(c.against) == (c.kind == "contrast"), c.id
        assert (c.margin is not None) == (equal or c.kind == "equivalence"), c.id
        assert c.bound is not None or c.kind not in LEVELS or (equal and c.value is not None), c.id
        assert (c.low is None) == (c.high is None), c.id
        assert reads == ["/"] or c.kind != "rate", c.id
