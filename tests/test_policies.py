"""Every policy on hand-worked sights: which rows probe, which field, at which score."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pytest

from envprobe_core import policies
from envprobe_core.cells import Cell
from envprobe_core.engine import loop
from envprobe_core.engine.compiling import entry
from envprobe_core.engine.records import NONE, new
from envprobe_core.engine.running import EPISODES, setting_of
from envprobe_core.errors import InputError
from envprobe_core.policies import POLICIES, custom_policy, find_policy, rules
from envprobe_core.policies.own import rule_of
from envprobe_core.protocols import PAPER, RELEASED, parse_protocol

STALENESS = np.array([[0, 5, 10, 40], [0, 0, 0, 0]])
CONFIDENCE = np.array([[100, 90, 60, 75], [100, 100, 100, 100]])
C = np.array([[1.0, 0.5, 0.25, 0.0], [0.5, 0.0, 0.25, 0.0]])
D = np.array([[1.0, 0.5, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0]])


@dataclass(frozen=True)
class Decision:
    """What came of two sights: the probed field or NONE, the field ranked first, the highest score, all."""

    field: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    highest: npt.NDArray[np.float64]
    rho: npt.NDArray[np.float64]


@entry
def choose(setting, block, own, fields):
    for row in range(len(block)):
        fields[row] = rules.choose(setting, block[row], own)


def episodes(**changes):
    """Two rows of four fields: the second row is calm (nothing critical, fresh, certain)."""
    block = new(EPISODES["tooldag"], 2)
    values = {
        "step": 3,
        "horizon": 30,
        "value": np.array([[0, 1, 2, -1], [1, 1, 1, 1]]),
        "staleness": STALENESS,
        "confidence": CONFIDENCE,
        "c": C,
        "d": D,
        "action": np.array([2, -1]),
        "risk": np.array([0, 0]),
        "budget": np.array([7, 7]),
        "used": np.array([0, 2]),
        "threshold": np.array([1.5, 1.5]),
        "draw": np.array([0, 0], dtype=np.uint64),
        "scheduled": np.array([NONE, NONE]),
    }
    gold = changes.pop("gold", np.array([[0, 2, 2, 3], [1, 1, 1, 1]]))
    weight = changes.pop("weight", np.array([[9.0, 1.0, 5.0, 4.0], [1.0, 1.0, 1.0, 1.0]]))
    values |= changes
    values |= {"s": loop.S[values["staleness"]], "u": loop.U[values["confidence"]]}
    for name, value in values.items():
        array = block["sight"][name]
        if array.ndim == 2:
            array[:, :4] = value
        else:
            array[:] = value
    block["sight"]["fields"] = 4
    block["gold"][:, :4], block["weight"][:, :4] = gold, weight
    return block


def decide(policy, protocol=PAPER, **changes):
    asked = POLICIES[policy] if isinstance(policy, str) else policy
    block, fields = episodes(**changes), np.zeros(2, dtype=np.int64)
    choose(setting_of(Cell("tooldag", asked, protocol=protocol)), block, rule_of(asked.score), fields)
    sight = block.sight
    return Decision(fields, sight.first.astype(np.int64), sight.highest.copy(), sight.rho[:, :4].copy())


def outcome(decision):
    """Return each row's probed field, or None."""
    return [None if field == NONE else int(field) for field in decision.field]


@pytest.mark.parametrize(
    ("name", "rho", "probed"),
    [
        # first row: c 1 .5 .25 0, s 0 .5 1 1, u 0 .1 .4 .25, d 1 .5 1 0
        ("simple", [2.0, 1.6, 2.65, 1.25], 2),
        ("minus-c", [1.0, 1.1, 2.4, 1.25], 2),
        ("minus-s", [2.0, 1.1, 1.65, 0.25], 0),
        ("minus-u", [2.0, 1.5, 2.25, 1.0], 2),
        ("minus-d", [1.0, 1.1, 1.65, 1.25], 2),
        ("cd", [2.0, 1.0, 1.25, 0.0], 0),
        ("placebo", [2.0, 1.6, 2.65, 1.25], 2),
        ("judge", [2.0, 1.6, 2.65, 1.25], 2),
    ],
)
def test_additive_scores(name, rho, probed):
    decision = decide(name)
    np.testing.assert_allclose(decision.rho[0], rho, atol=1e-12)
    assert outcome(decision) == [probed, None]
    assert decision.highest[0] == pytest.approx(max(rho))


def test_a_score_adds_left_to_right():
    assert loop.S[STALENESS[0]].tolist() == [0.0, 0.5, 1.0, 1.0]
    assert loop.U[CONFIDENCE[0]].tolist() == [0.0, 1 - 0.9, 1 - 0.6, 0.25]
    c, d = np.full((2, 4), 0.1), np.full((2, 4), 0.3)
    expected = ((c + loop.S[STALENESS]) + loop.U[CONFIDENCE]) + d
    np.testing.assert_array_equal(decide("simple", c=c, d=d).rho, expected)


def test_the_gate_includes_its_threshold_and_the_first_field_wins_a_tie():
    flat = {"c": np.full((2, 4), 0.5), "d": np.full((2, 4), 1.0)}
    assert outcome(decide("cd", **flat)) == [0, 0]
    assert outcome(decide("cd", **flat, threshold=np.array([1.5, 1.5000001]))) == [0, None]


def test_random_probes_at_rate_b_over_h():
    level = (7 << 32) // 30
    field = 3 << 30  # the upper half chooses among four: 3/4 of its range is field 3
    draws = np.array([(field << 32) | (level - 1), (field << 32) | level], dtype=np.uint64)
    assert outcome(decide("random", draw=draws)) == [3, None]
    assert outcome(decide("random", draw=np.zeros(2, dtype=np.uint64))) == [0, 0]
    assert outcome(decide("random", draw=draws, budget=np.array([0, 30]))) == [None, 3]


@pytest.mark.parametrize(("step", "fires"), [(0, False), (3, True), (4, False), (7, True), (27, True)])
def test_periodic_fires_at_the_last_step_of_every_period(step, fires):
    probed = outcome(decide("periodic", step=step))
    assert probed == ([0, 2] if fires else [None, None])  # fields in turn: probes used so far


def test_periodic_with_extreme_budgets():
    assert outcome(decide("periodic", step=3, used=np.array([5, 4]))) == [1, 0]  # back to the first field
    assert outcome(decide("periodic", step=3, protocol=RELEASED)) == [3, 0]  # the stalest
    assert outcome(decide("no-probe", budget=np.array([30, 30]))) == [None, None]
    assert outcome(decide("periodic", step=3, budget=np.array([0, 1]))) == [None, None]
    assert outcome(decide("periodic", step=29, horizon=31, budget=np.array([1, 31]))) == [None, 2]
    assert outcome(decide("periodic", step=30, horizon=31, budget=np.array([1, 31]))) == [0, 2]
    assert outcome(decide("periodic", step=0, horizon=2, budget=np.array([5, 2]))) == [0, 2]


def test_self_uncertainty_takes_the_least_confident_below_alpha():
    assert outcome(decide("self-uncertainty")) == [2, None]
    edge = np.array([[100, 100, 70, 100], [100, 69, 69, 100]], dtype=np.int32)
    assert outcome(decide("self-uncertainty", confidence=edge)) == [None, 1]


def test_self_uncertainty_of_the_public_code_asks_for_less_confidence_or_risk():
    edge = np.array([[100, 100, 50, 100], [100, 49, 80, 100]], dtype=np.int32)
    assert outcome(decide("self-uncertainty", confidence=edge, protocol=RELEASED)) == [None, 1]
    risky = np.array([1, 0], dtype=np.int32)
    assert outcome(decide("self-uncertainty", confidence=edge, protocol=RELEASED, risk=risky)) == [2, 1]
    assert outcome(decide("self-uncertainty", confidence=np.minimum(edge + 50, 100), risk=risky)) == [
        None,
        None,
    ]


def test_judge_vetoes_a_probe_of_no_use_for_the_action():
    calm = {"confidence": np.full((2, 4), 100, dtype=np.int32)}
    veto = np.array([[1.0, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    c = np.array([[0.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    assert outcome(decide("judge", d=veto, c=c, **calm)) == [None, None]
    assert outcome(decide("simple", d=veto, c=c, **calm)) == [2, None]


def test_judge_forces_a_doubted_direct_blocker_among_the_first_three():
    low = np.full((2, 4), 9.0)  # no score reaches this threshold
    confidence = np.array([[100, 69, 70, 10], [69, 100, 100, 69]], dtype=np.int32)
    d = np.array([[1.0, 1.0, 1.0, 1.0], [1.0, 0.5, 0.5, 1.0]])
    c = np.array([[0.9, 0.6, 0.3, 0.0], [1.0, 0.9, 0.8, 0.0]])
    nothing = np.zeros((2, 4), dtype=np.int32)
    forced = decide("judge", confidence=confidence, d=d, c=c, staleness=nothing, threshold=low[:, 0])
    # row 0, rho: 1.90, 1.91, 1.60, 1.90; field 1 leads, doubted (69) and blocking
    # row 1, rho: 2.31, 1.40, 1.30, 1.31; field 0 leads, doubted and blocking
    assert outcome(forced) == [1, 0]


def test_oracles():
    assert outcome(decide("oracle")) == [1, None]
    assert outcome(decide("oracle-tw")) == [3, None]
    everything = np.array([[9, 9, 9, 9], [9, 1, 1, 1]], dtype=np.int32)
    assert outcome(decide("oracle-tw", gold=everything)) == [0, 0]
    zero = np.zeros((2, 4))
    assert outcome(decide("oracle-tw", gold=everything, weight=zero)) == [0, 0]


def test_replay_follows_its_schedule():
    assert outcome(decide("yoked", scheduled=np.array([2, -1]))) == [2, None]
    assert outcome(decide("yoked", scheduled=np.array([0, 3]))) == [0, 3]
    assert decide("yoked").first.tolist() == [0, 0]


@pytest.mark.parametrize(("step", "opens"), [(22, 0), (23, 1), (24, 1), (25, 2), (29, 2)])
def test_late_policies_keep_their_budget_for_the_end(step, opens):
    """Of 30 steps the last 7 are left to the first row, to the second, which has spent 2, the last 5."""
    for policy, fields in (("late", [0, 2]), ("late-stalest", [3, 0])):
        probed = outcome(decide(policy, step=step))
        assert probed == fields[:opens] + [None] * (2 - opens), policy


def test_the_register():
    simple = ["simple", "minus-c", "minus-s", "minus-u", "minus-d", "cd", "judge"]
    values = ["voi", "voi-accuracy", "voi-success"]
    paper = [
        "no-probe",
        "random",
        "periodic",
        "self-uncertainty",
        *simple,
        "oracle",
        "oracle-tw",
        "placebo",
        "yoked",
    ]
    assert list(POLICIES) == [*paper, *values, "late", "late-stalest", "late-mismatch"]
    assert [p.name for p in POLICIES.values()] == list(POLICIES)
    assert list(policies.OF_THE_PAPER) == paper
    for attribute, names in {
        "remembers": [*values, "late-mismatch"],
        "sees_gold": ["oracle", "oracle-tw"],
        "has_threshold": [*simple, "placebo", "yoked"],
        "replays": ["yoked"],
    }.items():
        assert [name for name, policy in POLICIES.items() if getattr(policy, attribute)] == names, attribute
    assert [name for name, policy in POLICIES.items() if not policy.answered] == ["placebo", "yoked"]
    assert POLICIES["yoked"].replays == "simple"
    assert POLICIES["cd"].terms == ("c", "d")
    assert POLICIES["judge"].terms == POLICIES["yoked"].terms == policies.TERMS == ("c", "s", "u", "d")
    titles = [POLICIES[name].title for name in ("simple", "cd", "no-probe", "oracle-tw", "yoked", "minus-c")]
    assert titles[:3] == ["EnvProbe-Simple", "EnvProbe-(c+d)", "No-Probe"]
    assert titles[3:] == ["Oracle-TW", "Yoked Placebo", "Simple without c"]


@pytest.mark.parametrize(
    ("name", "scaled"), [("simple", 1.5), ("minus-c", 1.125), ("cd", 0.75), ("judge", 1.5)]
)
def test_thresholds_scale_with_the_kept_terms_where_the_protocol_says_so(name, scaled):
    assert POLICIES[name].scaled_threshold(1.5, RELEASED) == scaled
    assert POLICIES[name].scaled_threshold(1.5, PAPER) == 1.5
    turned = parse_protocol("paper:threshold=kept-terms")
    assert POLICIES[name].scaled_threshold(3.0, turned) == 2 * scaled
    assert POLICIES["random"].scaled_threshold(1.25, RELEASED) == 1.25


def test_names_that_are_unknown_or_taken_and_a_readers_own_score():
    with pytest.raises(InputError, match=r"unknown policy 'simpel'; accepted: no-probe, .*late-mismatch$"):
        find_policy("simpel")
    with pytest.raises(InputError, match=r"policy name 'cd' is taken; taken names: no-probe, "):
        custom_policy("cd", lambda seen: seen.c)
    own = custom_policy("mine", lambda seen: 2 * seen.c + seen.u)
    assert (own.name, own.title, own.terms) == ("mine", "mine", policies.TERMS)
    assert outcome(decide(own)) == [0, None]
    assert own.scaled_threshold(1.5, RELEASED) == 1.5
    assert replace(own, name="other").answered
