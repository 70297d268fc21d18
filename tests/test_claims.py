"""Verdicts on hand-worked frames, their invariants, and the claims file itself."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envprobe_book.claims import LEVELS, load_claims, paper_value, paper_values, parse_claim, read_rows
from envprobe_book.claims.judge import COLUMNS, combine, judge
from envprobe_core.errors import InputError
from envprobe_core.statistics import paired_bootstrap
from envprobe_core.worlds import WORLDS

N = 20
NOISE = np.random.default_rng(0).normal(0, 0.02, N)
HALVES = np.resize([0.1, -0.1], N)


def claim(family=6, **changes):
    row = dict.fromkeys(read_rows("claims.csv")[0], "") | {
        "id": "c", "kind": "paired", "measure": "accuracy", "worlds": "tooldag", "arm": "simple",
        "reference": "periodic", "direction": "greater", "unit": "points", "regime": "S2",
    }  # fmt: skip
    return replace(parse_claim(row | {name: str(value) for name, value in changes.items()}), family=family)


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
    sides = {"simple": arm, "periodic": reference}
    return frame(*(episodes(policy, world, accuracy=own, **changes) for policy, own in sides.items()))


def judged(a_claim, a_frame, **settings_):
    table = judge(a_frame, a_claim, **{"protocols": ["paper"], "resamples": 400} | settings_)
    return next(table.itertuples(index=False))


# each kind by hand

PRINTED = {"value": 11.76, "ci_low": 10.77, "ci_high": 12.75}
MARGIN = {"kind": "equivalence", "direction": "none", "margin": 2, "value": -0.4}
EQUAL = {"direction": "equal", "value": 0.5, "margin": 0.03}
HOLDS, OTHER, REVERSES, OPEN = "holds", "holds, other size", "reverses", "inconclusive"
POINTS = [  # a claim, and its verdicts where all pairs show one difference, or all episodes one level
    (claim(**PRINTED), {12: HOLDS, 10.77: HOLDS, 12.75: HOLDS, 22: OTHER, 1: OTHER}),
    (claim(value=11.76), {-5: REVERSES, 0: "no effect"}),
    (claim(value="3.9"), {3.9: HOLDS, 4.0: OTHER}),
    (claim(value="4"), {4.0: HOLDS}),
    (claim(), {0.6: HOLDS, 0.5: "negligible", -0.5: "negligible", -0.6: REVERSES}),
    (claim(direction="either"), {0.4: "negligible"}),
    (replace(claim(), unit="share"), {0.004: HOLDS}),  # no trifle is stated for this unit
    (claim(direction="less"), {-5: HOLDS, 5: REVERSES}),
    (claim(**MARGIN), {0: HOLDS, 2: HOLDS, -2: HOLDS, 3: REVERSES, -3: REVERSES}),
    (level(**EQUAL), {0.53: "near", 0.54: "differs"}),
    (level(**EQUAL | {"margin": 0}), {0.5: "near"}),
    (level(**EQUAL | {"value": 9}, bound=0.5), {0.47: "near"}),
    (replace(level(**EQUAL), setting=True), {0.5: "as printed", 0.7: "not as printed"}),
    (level(bound=0.5), {0.6: HOLDS, 0.5: OPEN, 0.4: REVERSES}),
    (level(bound=0.5, value=0.735), {0.6: OTHER}),
    (level(bound=1, direction="less"), {0.4: HOLDS, 1.0: OPEN}),
]


@pytest.mark.parametrize(
    ("a_claim", "size", "verdict"),
    [(a_claim, size, verdict) for a_claim, found in POINTS for size, verdict in found.items()],
)
def test_a_verdict_says_on_which_side_and_how_near_a_number_lies(a_claim, size, verdict):
    same = two(0.5 + size / 100) if a_claim.references else episodes("simple", accuracy=size)
    assert judged(a_claim, same).verdict == verdict


CONTRAST = {"kind": "contrast", "worlds": "tooldag", "against": "graphnav"}
MIRRORED = CONTRAST | {"worlds": "graphnav", "against": "tooldag"}
BOTH = frame(two(0.6), two(0.55, world="graphnav"))
ORDER = {"kind": "ordering", "arm": "no-probe periodic simple", "reference": ""}
FALLING = ORDER | {"arm": "simple periodic no-probe", "direction": "less"}
DOMINANCE = {"kind": "dominance", "measure": "accuracy success", "direction": "greater greater"}
RIVALS = DOMINANCE | {"reference": "periodic random"}
ALIKE = two(0.5 + NOISE, 0.5 + NOISE)
EDGY = np.resize([0.05, -0.02], N)
WINS = {"kind": "mcnemar", "measure": "success"}


def ranked(*levels):
    return frame(*(episodes(p, accuracy=a) for p, a in zip(ORDER["arm"].split(), levels, strict=True)))


def rivals(accuracy, success):
    best = episodes("simple", accuracy=0.6, success=True)
    return frame(best, episodes("periodic"), episodes("random", accuracy=accuracy, success=success))


def won(arm, reference):
    """Episodes of which the arm alone wins so many, and the reference alone others."""
    sides = np.arange(N) < arm, np.arange(N) >= N - reference
    return frame(*(episodes(p, success=own) for p, own in zip(("simple", "periodic"), sides, strict=True)))


@pytest.mark.parametrize(
    ("a_claim", "a_frame", "verdict"),
    [
        (claim(), two(0.5 + NOISE - NOISE.mean()), OPEN),
        (claim(), two(0.6, n=10), HOLDS),  # ten episodes are enough
        (claim(**MARGIN), two(0.52 + NOISE), OPEN),
        (level(direction="equal", bound=0.5, margin=0.01), episodes("simple", accuracy=0.5 + NOISE), OPEN),
        # no effect is agreement in every episode; the same mean is not enough
        (claim(), ALIKE, "no effect"),
        (claim(), two(0.5 + NOISE, 0.5 + NOISE[::-1]), OPEN),
        (claim(**WINS, direction="either"), ALIKE, "no effect"),
        (claim(**DOMINANCE), ALIKE, "no effect"),
        # contrasts of gains, or of levels
        (claim(**CONTRAST), BOTH, HOLDS),
        (claim(**MIRRORED), BOTH, REVERSES),
        (claim(**MIRRORED | {"reference": "", "direction": "less"}), BOTH, HOLDS),
        # the adjusted interval decides, as McNemar's adjusted p does: 6 * 2 / 2**8 is .047
        (claim(family=6), two(0.5 + EDGY), OPEN),
        (claim(family=1), two(0.5 + EDGY), HOLDS),
        *((claim(**WINS, direction=direction), won(*pairs), verdict) for direction, pairs, verdict in (
            ("greater", (8, 0), HOLDS), ("greater", (7, 0), OPEN), ("less", (8, 0), REVERSES),
            ("either", (8, 0), HOLDS), ("either", (0, 8), HOLDS), ("less", (0, 8), HOLDS),
            ("greater", (0, 8), REVERSES), ("either", (5, 5), OPEN),
        )),
        # an ordering needs every step, dominance every reference and measure
        (claim(**ORDER), ranked(0.4, 0.5, 0.6), HOLDS),
        (claim(**ORDER), ranked(0.4, 0.5, 0.5), "no effect"),  # of one step; the other holds
        (claim(**FALLING), ranked(0.4, 0.5, 0.6), HOLDS),
        (claim(**RIVALS), rivals(0.5, False), HOLDS),
        (claim(**RIVALS), rivals(0.5, True), "no effect"),
        (claim(**RIVALS), rivals(0.597, False), "negligible"),
        (claim(**RIVALS), rivals(0.7, False), REVERSES),
        (claim(**RIVALS | {"direction": "greater less"}), rivals(0.5, False), REVERSES),
    ],
)  # fmt: skip
def test_a_verdict_says_where_the_adjusted_interval_lies(a_claim, a_frame, verdict):
    assert judged(a_claim, a_frame).verdict == verdict


@pytest.mark.parametrize(
    ("a_claim", "pairs", "verdict"),
    [
        (claim(**WINS), (0, 0), "cannot differ"),
        (claim(**WINS), (1, 0), "cannot differ"),
        (claim(**WINS), (2, 0), OPEN),
        (claim(**WINS | MARGIN | {"kind": "equivalence", "margin": 15}), (0, 1), "cannot differ"),
        (claim(**WINS | MARGIN | {"kind": "equivalence", "margin": 15}), (9, 12), HOLDS),
        (
            claim(),
            (0, 0),
            "no effect",
        ),  # the two accuracies are one in every episode: that could be otherwise
        (claim(**DOMINANCE | {"measure": "success", "direction": "less"}), (0, 0), "cannot differ"),
    ],
)
def test_arms_that_complete_the_same_episodes_cannot_differ(a_claim, pairs, verdict):
    """Whether a difference is claimed or none; a claim of several comparisons has the word of the weakest."""
    n = 220
    sides = np.arange(n) < pairs[0], np.arange(n) >= n - pairs[1]
    arms = zip(("simple", "periodic"), sides, strict=True)
    found = judged(a_claim, frame(*(episodes(policy, n=n, success=own) for policy, own in arms)))
    assert found.verdict == verdict
    assert (verdict == "cannot differ") == (f"differ in {sum(pairs)} pairs" in found.reason)
    if verdict == "cannot differ":
        assert combine(np.array([["cannot differ"] * 3, ["holds", "inconclusive", "reverses"]])).tolist() == [
            "cannot differ", "inconclusive", "reverses",
        ]  # fmt: skip


CENSORED = np.where(np.arange(N) < 4, np.nan, 3.0)
PAIR = "accuracy, EnvProbe-Simple minus Periodic: "
TOLD = "(n = 20); the adjusted interval "


@pytest.mark.parametrize(
    ("a_claim", "a_frame", "reason"),
    [
        (claim(**PRINTED, n=N), two(0.62),
         f"{PAIR}12 points {TOLD}[12, 12] lies above 0 as claimed, meeting the paper's [10.77, 12.75]."),
        (claim(**PRINTED, n=220), two(0.72),
         f"{PAIR}22 points {TOLD}[22, 22] lies above 0 as claimed, missing the paper's [10.77, 12.75]; "
         "the paper's n is 220."),
        (claim(value=11.76), two(0.45), f"{PAIR}-5 points {TOLD}[-5, -5] lies below 0, against the claim."),
        (claim(direction="less"), two(0.45), f"{PAIR}-5 points {TOLD}[-5, -5] lies below 0 as claimed."),
        (claim(direction="less"), two(0.55), f"{PAIR}5 points {TOLD}[5, 5] lies above 0, against the claim."),
        (claim(), two(0.5 + HALVES), f"{PAIR}0 points {TOLD}[-5, 5.338] lies around 0."),
        (claim(**MARGIN), two(0.515), f"{PAIR}1.5 points {TOLD}[1.5, 1.5] lies within the margin [-2, 2]."),
        (claim(**MARGIN), two(0.55), f"{PAIR}5 points {TOLD}[5, 5] lies outside the margin [-2, 2]."),
        (claim(**MARGIN), two(0.52 + HALVES),
         f"{PAIR}2 points {TOLD}[-3, 7.338] lies across an end of the margin [-2, 2]."),
        (level(bound=0.5, value=0.735), episodes("simple", accuracy=0.6),
         f"accuracy: 0.6 {TOLD}[0.6, 0.6] lies above 0.5 as claimed, missing the paper's [0.7345, 0.7355]."),
        (level(measure="collapse_onset", bound=1, unit="steps"), episodes("simple", collapse_onset=CENSORED),
         "collapse_onset: 3 steps (n = 16); the adjusted interval [3, 3] lies above 1 as claimed; 4 left out "
         "(censored, or without an event)."),
        (level(kind="median", measure="collapse_onset", bound=5, direction="less", unit="steps"),
         episodes("simple", collapse_onset=np.arange(N) % 7.0),
         f"collapse_onset: 3 steps {TOLD}[1, 4] lies below 5 as claimed."),
        (claim(**DOMINANCE), two(0.5), "0 of 2 comparisons hold, 0 reverse; the weakest: "
         "success, EnvProbe-Simple minus Periodic: 0 points (n = 20); the two sides agree in every episode."),
        (claim(), two(0.503), f"{PAIR}0.3 points {TOLD}[0.3, 0.3] lies within 0.5 of zero."),
        (claim(**WINS), won(8, 0), "success, EnvProbe-Simple minus Periodic: 40 points (n = 20); 8 against 0 "
         "discordant pairs give an exact p of 0.0078 (0.047 adjusted)."),
        (claim(**FALLING), ranked(0.4, 0.55, 0.6), "2 of 2 comparisons hold, 0 reverse; the weakest: "
         f"accuracy, Periodic minus EnvProbe-Simple: -5 points {TOLD}[-5, -5] lies below 0 as claimed."),
        (claim(**ORDER), ranked(0.4, 0.6, 0.5), "1 of 2 comparisons hold, 1 reverse; the weakest: "
         f"{PAIR}-10 points {TOLD}[-10, -10] lies below 0, against the claim."),
    ],
)  # fmt: skip
def test_the_reason_says_it_whole(a_claim, a_frame, reason):
    assert judged(a_claim, a_frame).reason == reason


def test_a_record_holds_the_statistics_and_what_the_paper_prints():
    arm = 0.6 + NOISE
    result = judged(claim(**PRINTED, n=220), two(arm))
    naive = paired_bootstrap(100 * (arm - 0.5), resamples=400, family=6)
    assert result.estimate == pytest.approx(naive.mean)
    for name in ("low", "high", "low_adjusted", "high_adjusted", "p", "p_adjusted"):
        assert getattr(result, name) == pytest.approx(getattr(naive, name))
    told = (result.claim, result.unit, result.n, result.protocol, result.profile, result.same_n)
    assert told == ("c", "points", N, "paper", "typical", False)
    printed = (result.paper_value, result.paper_low, result.paper_high, result.paper_n)
    assert printed == (11.76, 10.77, 12.75, 220)
    assert result.difference == pytest.approx(result.estimate - 11.76)
    same = judged(claim(n=N), two(arm))
    assert same.same_n
    assert np.isnan([same.difference, same.paper_value]).all()
    for accuracy, p in ((0.6, 2 / 401), (0.5, 1.0), (0.4, 2 / 401)):  # of a level it is against its bound
        assert judged(level(bound=0.5), episodes("simple", accuracy=accuracy)).p == pytest.approx(p)
    assert judged(claim(**WINS, direction="either"), won(5, 5)).p_adjusted == 1
    far = frame(two(0.5 + NOISE), two(0.9 + NOISE, world="graphnav"))  # worlds are resampled within
    for a_claim in (
        claim(worlds="tooldag+graphnav"),
        level(kind="median", worlds="tooldag+graphnav", bound=0),
    ):
        pooled = judged(a_claim, far)
        assert pooled.high - pooled.low < (0.05 if a_claim.unit == "share" else 5)


ONSETS = episodes("simple", collapse_onset=CENSORED)
WRONG = frame(
    episodes("simple", confident_wrong=np.resize([1, 2, 9], N), confident=np.resize([2, 3, 10], N)),
    episodes("periodic", confident_wrong=0, confident=0),
)
PROBING = frame(
    episodes("simple", probes=np.resize([0, 4], N), useful=np.resize([0, 2], N)),
    episodes("periodic", probes=np.resize([4, 4, 0, 4], N), useful=np.resize([1, 1, 0, 1], N)),
)


@pytest.mark.parametrize(
    ("a_claim", "a_frame", "n", "estimate"),
    [  # a rate is a sum over a sum; without an event, or where one was censored, nothing counts
        (level(kind="rate", measure="confident_wrong/confident", arm="simple periodic", bound=0.6), WRONG,
         WRONG["confident"].sum(), WRONG["confident_wrong"].sum() / WRONG["confident"].sum()),
        (level(measure="confident_wrong/confident", bound=0.6), WRONG, N,
         (WRONG["confident_wrong"] / WRONG["confident"])[:N].mean()),
        (claim(measure="useful/probes"), PROBING, N // 2, 25),
        (level(measure="collapse_onset<4", bound=0.5), ONSETS, N, 0.8),
        (level(measure="collapse_onset>4", bound=0.5), ONSETS, N, 0.2),
        (level(measure="action_onset>collapse_onset", bound=0.5), ONSETS, N - 4, 1.0),
        (level(measure="action_onset-collapse_onset", bound=0, unit="steps"), ONSETS, N - 4, 6.0),
    ],
)  # fmt: skip
def test_what_counts_and_what_is_left_out(a_claim, a_frame, n, estimate):
    result = judged(a_claim, a_frame)
    assert (result.n, result.estimate) == (n, pytest.approx(estimate))


def test_calibration_targets_are_inputs_of_calibrated_profiles_only():
    target, fitted = claim(input="periodic accuracy"), {"profile": "calibrated"}
    assert judged(target, two(0.6)).verdict == HOLDS
    assert judged(claim(), two(0.6, **fitted), **fitted).verdict == HOLDS
    result = judged(target, two(0.6, **fitted), **fitted)
    assert (result.verdict, result.estimate) == ("input", pytest.approx(10))
    assert result.reason.endswith("calibrated on periodic accuracy.")


NEVER = {world: two(0.6, world=world, collapse_onset=np.nan) for world in WORLDS}
ONSET = {"kind": "contrast", "measure": "collapse_onset"}


@pytest.mark.parametrize(
    ("changes", "a_frame", "reason"),
    [
        ({}, episodes("simple"), "the frame has no periodic in tooldag, S2"),
        ({"worlds": "graphnav"}, two(0.6), "the frame has no simple in graphnav, S2"),
        ({"regime": "S3"}, two(0.6), "the frame has no simple in tooldag, S3"),
        ({"measure": "chain_length"}, two(0.6), "the frame has no column chain_length"),
        ({}, two(np.nan), "accuracy was not measured for simple in tooldag, S2"),
        ({}, two(0.6, n=9), "accuracy: 9 episodes with a value, 10 are needed"),
        ({}, two(0.6, n=1), "tooldag has 1 episodes in common"),
        ({"measure": "useful/probes"}, two(0.6, probes=0),
         "useful/probes: 0 episodes with a value, 10 are needed"),
        (ONSET | {"against": "graphnav"}, frame(NEVER["tooldag"], NEVER["graphnav"]),
         "collapse_onset: 0 episodes with a value, 10 are needed"),
        (ONSET | {"against": "graphnav+objectstate"},
         frame(two(0.6), NEVER["graphnav"], NEVER["objectstate"]),
         "graphnav and objectstate: 0 episodes with a value, 10 are needed"),
    ],
)  # fmt: skip
def test_what_a_frame_cannot_test_is_not_tested(changes, a_frame, reason):
    result = judged(claim(value=1, n=7, **changes), a_frame)
    assert (result.verdict, result.reason) == ("not tested", f"{reason}.")
    assert np.isnan([result.estimate, result.n, result.p]).all()
    assert (result.paper_value, result.paper_n, result.same_n) == (1, 7, True)


@pytest.mark.parametrize(
    ("a_claim", "a_frame", "settings_", "message"),
    [
        (claim(), two(0.6).drop(columns="seed"), {}, "the frame has no column seed"),
        (claim(), two(0.6), {"protocols": ["released"]}, "no protocol 'released'; it holds paper"),
        (claim(), two(0.6), {"profile": "perfect"}, "no profile 'perfect'; it holds typical"),
        (claim(), frame(two(0.6), episodes("simple", n=1, first=3)), {},
         "seed 3 of simple in tooldag, S2, occurs twice"),
        (claim(), two(np.where(np.arange(N) == 7, np.nan, 0.6)), {},
         "accuracy is missing for seed 7 of simple in tooldag"),
        (claim(measure="accuracy<"), two(0.6), {}, "measure 'accuracy<' cannot be read"),
        (claim(), two(0.6), {"section": "main"}, "section 'main' are both given"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(a_claim, a_frame, settings_, message):
    with pytest.raises(InputError) as error:
        judged(a_claim, a_frame, **settings_)
    assert message in str(error.value)


# joins, invariants, many claims


def test_pairs_are_joined_by_key():
    arm, reference = np.random.default_rng(2).random((2, N))
    both = frame(
        episodes("simple", accuracy=arm, first=0),
        episodes("periodic", accuracy=reference, first=5),
        episodes("simple", "graphnav", accuracy=0.9),
        episodes("simple", accuracy=0.9, regime="S3"),
        episodes("simple", accuracy=0.9, protocol="released"),
    ).sample(frac=1, random_state=3)
    result, pairs = judged(claim(), both), 100 * (arm[5:] - reference[: N - 5])
    expected = paired_bootstrap(pairs, resamples=400)
    assert (result.n, result.estimate) == (N - 5, pytest.approx(pairs.mean()))
    assert (result.low, result.high) == pytest.approx((expected.low, expected.high))


STEPS = st.lists(st.integers(0, 27), min_size=N, max_size=N)


@settings(max_examples=25)
@given(STEPS, STEPS)
def test_swapping_the_arms_mirrors_the_verdict(arm, reference):
    both = two(np.array(arm) / 27, np.array(reference) / 27)
    plain, swapped = judged(claim(), both), judged(claim(arm="periodic", reference="simple"), both)
    assert swapped.verdict == {HOLDS: REVERSES, REVERSES: HOLDS}.get(plain.verdict, plain.verdict)
    assert swapped.low == pytest.approx(-plain.high, abs=1e-9)
    turned = judged(claim(arm="periodic", reference="simple", direction="less"), both)
    assert turned.verdict == plain.verdict


def test_all_claims_under_all_protocols():
    both = frame(two(0.4, protocol="released"), two(0.6))
    table = judge(both, [claim(id="a"), claim(id="b", direction="less")], resamples=50)
    assert table[["claim", "protocol", "verdict"]].to_numpy().tolist() == [
        ["a", "paper", HOLDS], ["a", "released", REVERSES],
        ["b", "paper", REVERSES], ["b", "released", HOLDS],
    ]  # fmt: skip
    assert tuple(table) == COLUMNS
    one = judge(both, ["main-procedural"], protocols=["released"], resamples=50)
    assert one[["claim", "verdict"]].to_numpy().tolist() == [["main-procedural", REVERSES]]
    moved = judge(two(0.6, regime="R1"), section="main", regime="R1", resamples=50)
    assert moved["claim"].tolist() == [c.id for c in load_claims(section="main")]
    verdict = moved.set_index("claim")["verdict"]
    assert verdict[["main-procedural", "main-spatial"]].tolist() == [OTHER, "not tested"]


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
        inputs = ["canonical p_cw"] if c.id == "pcw-canonical" else ["periodic accuracy"] * fitted
        assert [*c.inputs] == inputs, c.id
        if (c.source, c.value, c.low, c.high) in printed:
            ns = {v.n for v in paper_values() if v.source == c.source and v.value == c.value}
            assert c.n in ns or ns == {None}, c.id
        elif c.value is not None:  # a difference of two printed percentages
            row = f"procedural: {c.arms[0]} vs {c.references[0]}"
            sides = (paper_value(c.source, row, f"{side}_success_pct") for side in ("method", "reference"))
            assert c.value == pytest.approx(np.subtract(*(side.value for side in sides))), c.id


DIRECTIONS = {  # those that each kind accepts; an unknown one would be taken for `less`
    **dict.fromkeys(("paired", "contrast", "ordering", "dominance"), "greater less"),
    **dict.fromkeys(LEVELS, "greater less equal"),
    "mcnemar": "greater less either", "equivalence": "none",
}  # fmt: skip


def test_every_claim_says_one_thing():
    """What no scoreboard would fail on: unknown names are refused there, and what is missing raises."""
    rows = read_rows("claims.csv")
    assert len({row["id"] for row in rows}) == len(rows)
    assert {row["primary"] for row in rows} == {"yes", ""}
    for c in load_claims():
        several, sides = c.kind in ("ordering", "dominance"), (len(c.arms), len(c.references))
        assert set(c.directions) <= set(DIRECTIONS[c.kind].split()), c.id
        assert len(c.directions) == len(c.measures) == (len(c.measures) if several else 1), c.id
        if c.kind in ("paired", "mcnemar", "equivalence"):
            assert sides == (1, 1), c.id
        elif c.kind in (*LEVELS, "ordering"):
            assert (sides[0] > several, sides[1]) == (True, 0), c.id
        else:
            assert min(sides) >= several, c.id
        assert bool(c.against) == (c.kind == "contrast"), c.id
        assert not set(c.worlds) & set(c.against), c.id
        assert (c.margin is not None) == bool({"none", "equal"} & set(c.directions)), c.id
        assert c.bound is not None or c.kind not in LEVELS or c.value is not None, c.id
        assert (c.low is None) == (c.high is None), c.id
        assert c.kind != "rate" or all("/" in measure for measure in c.measures), c.id


@pytest.mark.parametrize(
    ("n", "family", "unseen", "exact"), [(220, 1, 3, 1.663), (220, 6, 4, 2.460), (20, 1, 3, 16.843)]
)
def test_agreement_in_every_pair_or_episode_is_no_certainty(n, family, unseen, exact):
    """Of a measure that says yes or no; resampling alone would give [0, 0]."""
    alike = frame(*(episodes(policy, n=n) for policy in ("simple", "periodic")))
    found = judged(claim(measure="success", family=family), alike, resamples=10_000)
    reach = 100 * unseen / n
    assert (found.verdict, found.low_adjusted, found.high_adjusted) == (
        "cannot differ" if n == 220 else "no effect", pytest.approx(-reach), pytest.approx(reach)
    )  # fmt: skip
    none_succeeds = level(measure="success", bound=0.5, direction="less", family=family)
    found = judged(none_succeeds, alike)
    assert (found.low_adjusted, found.high_adjusted) == (0, pytest.approx(exact / 100, abs=1e-5))
    margin = {"kind": "equivalence", "direction": "none", "measure": "success", "family": family}
    assert judged(claim(**margin, margin=2), alike).verdict == ("cannot differ" if n == 220 else OPEN)
