"""The measures of arrays on hand-worked episodes, and against plain loops on random ones."""

from collections import Counter
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import mannwhitneyu

from envprobe_book.analyses.confidence import (
    area_under_curve,
    expected_calibration_error,
    pooled_measure,
    reliability,
)
from envprobe_book.analyses.failures import shares_with_pattern, stage_counts
from envprobe_book.analyses.useful_probes import pairs_that_fired
from envprobe_book.facts import FACTS, SURE
from envprobe_book.facts.replay import Witnessed
from envprobe_core import measures
from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import simulate_logged
from envprobe_core.errors import InputError
from envprobe_core.protocols import RELEASED
from strategies import conditions, seeds

counts = st.lists(st.integers(0, 6), min_size=101, max_size=101).map(np.array)


SHAPES = arrays.array_shapes(min_dims=1, max_dims=3, max_side=127)


@given(arrays.arrays(np.int8, SHAPES, elements=st.integers(-1, 2)))
def test_fields_are_right_where_gold_is_known_and_believed(belief):
    gold = np.roll(belief, 1, axis=-1)
    expected = ((belief == gold) & (gold >= 0)).sum(axis=-1)
    assert measures.right_fields(belief, gold).tolist() == expected.tolist()


@settings(max_examples=25)
@given(counts, counts)
def test_auc_and_ece_equal_their_definitions(right, wrong):
    percents, total = np.arange(101), right + wrong
    area = float(area_under_curve(right, wrong))
    if right.sum() and wrong.sum():
        one, other = np.repeat(percents, right), np.repeat(percents, wrong)
        expected = mannwhitneyu(one, other).statistic / (len(one) * len(other))
        assert area == pytest.approx(expected, abs=1e-12)
    else:
        assert np.isnan(area)
    if total.sum():
        gap = 0.0
        for low in range(0, 100, 10):
            inside = slice(low, 101 if low == 90 else low + 10)
            if count := total[inside].sum():
                sure = (total[inside] * percents[inside] / 100).sum() / count
                gap += count / total.sum() * abs(right[inside].sum() / count - sure)
        assert float(expected_calibration_error(right, wrong)) == pytest.approx(gap, abs=1e-12)
        assert reliability(right, wrong)["count"].sum() == total.sum()


def test_a_pooled_measure_is_that_of_all_beliefs_and_does_not_vary_where_seeds_agree():
    right, wrong = np.zeros((2, 101), int)
    right[[60, 95]], wrong[60] = (2, 3), 1
    rows = [
        {"protocol": name, "world": world, "seed": seed, "sure_right": right, "sure_wrong": wrong}
        for name in ("paper", "released")
        for world in ("tooldag", "graphnav")
        for seed in range(3)
    ]
    found = pooled_measure(pd.DataFrame(rows), area_under_curve, 100)
    assert found["protocol"].tolist() == ["paper", "released"]
    np.testing.assert_allclose(found.drop(columns="protocol").to_numpy(float), (3 + 0.5 * 2) / 5)


# probes, fired and allowed; patterns


def test_pairs_in_which_one_did_not_fire_drop_out():
    useful, probes = (
        {"simple": [2, 0, 1, 1], "random": [1, 1, 0, 3]},
        {"simple": [2, 0, 4, 2], "random": [4] * 4},
    )
    rows = [
        {
            "world": "tooldag",
            "seed": seed,
            "policy": own,
            "useful": useful[own][seed],
            "probes": probes[own][seed],
        }
        for own in useful
        for seed in range(4)
    ]
    episodes = pd.DataFrame(rows).assign(world="tooldag")
    found = pairs_that_fired(episodes, 100)
    assert found["n"] == 3
    assert (found["simple"], found["random"]) == pytest.approx((1.75 / 3, 1 / 3))
    alone = pairs_that_fired(episodes[lambda own: own["seed"] < 2], 100)
    assert (alone["n"], alone["p_greater"], alone["floors"]) == (1, "–", "–")


def test_patterns_are_counted_in_the_order_asked_for_and_stages_in_that_of_the_pattern():
    rows = [
        {"protocol": "paper", "world": "tooldag", "policy": policy, "hit": seed < hits}
        for policy, hits in (("random", 1), ("simple", 3))
        for seed in range(4)
    ]
    found = shares_with_pattern(pd.DataFrame(rows), ["simple", "random"])
    assert found[["policy", "sum", "size", "share"]].to_numpy().tolist() == [
        ["simple", 3, 4, 75.0],
        ["random", 1, 4, 25.0],
    ]
    episodes = pd.DataFrame({"protocol": "paper", "probes": [3, 4], "stage1": [2, 1], "stage2": [1, 0]})
    stages = stage_counts(episodes, ["uncertain", "minor"])
    assert dict(zip(stages["condition"], stages["count"], strict=True)) == {
        "all probes": 7,
        "uncertain": 3,
        "… and minor": 1,
    }


@settings(max_examples=90)
@given(conditions(("simple", "oracle", "random")), seeds, st.sampled_from([0, 60, 70, 90, 100]))
def test_what_was_sure_by_naive_loops(condition, own, threshold):
    """Every belief with gold of its own time, or of the next; of fields that the instance has."""
    made, anything = simulate_logged(condition, own), condition.protocol.confident == "anything"
    seen, later = Witnessed(condition, own, made), condition.protocol.pairing == "lagged"
    accuracy = measures.step_accuracy(made, condition.protocol)
    compared = not anything or condition.policy.name in ("simple", "oracle")
    canonical, audit = measures.confident_counts(made, condition, threshold), FACTS["wrong"](seen)
    _, _, told_wrong, told_sure = measures.reports(condition, made)
    sure = [measures.reports(condition, made, threshold)[3], told_sure]
    histogram = np.zeros((2, len(own), 101), int)
    for row, steps in enumerate(made.steps.tolist()):
        counts, at, passes = Counter(), Counter(), True
        for t in range(steps):
            if (made.acted[row, t] or anything) and accuracy[row, t] < 0.6:
                counts += Counter(low_steps=1, low_consistent=passes or condition.profile.scribe)
            passes = bool(made.valid[row, t]) if made.acted[row, t] else passes
        for t, field in product(range(steps + 1 - later), range(made.gold.shape[2])):
            belief, true = made.belief[row, t, field], made.gold[row, t + later, field]
            confidence = int(made.confidence[row, t, field])
            histogram[int(belief != true), row, confidence] += belief >= 0
            if true < 0 or not compared:
                continue
            wrong, confident = told_wrong[row, t, field], [bool(one[row, t, field]) for one in sure]
            if not anything:
                wrong = belief != true
                confident = [bool(belief >= 0 and confidence >= level) for level in (threshold, 70)]
            at += Counter(
                total=1, wrong=wrong, confident=confident[0], confident_wrong=wrong and confident[0]
            )
            known = belief >= 0 or confident[1]
            found = {"confident": confident[1], "confident_wrong": wrong and confident[1], "wrong": wrong}
            counts += Counter(found, total=1, wrong_known=wrong and known)
            if own[row] % 5 == 0:
                counts += Counter(sample_confident=confident[1], sample_wrong=wrong and confident[1])
            if accuracy[row, t] < 0.5:
                found = {"beliefs": known, "confident": confident[1], "wrong": wrong and confident[1]}
                counts += Counter({f"scan_{name}": int(value) for name, value in found.items()})
        for names, expected, columns in ((canonical, at, canonical), (SURE, counts, audit)):
            assert {name: columns[name][row] for name in names} == {name: expected[name] for name in names}
    for part, whole in pairwise(("confident_wrong", "wrong_known", "wrong", "total")):
        assert (audit[part] <= audit[whole]).all(), "what is shown as a share is one"
    for name, expected in zip(("sure_right", "sure_wrong"), histogram, strict=True):
        np.testing.assert_array_equal(np.stack(FACTS[name](seen)[name]), expected)
    if anything and compared and condition.profile.scribe:  # one report a step
        lasts = (made.steps + (not later)) * (condition.profile.confidence >= 70)
        np.testing.assert_array_equal(audit["confident"], lasts)


@pytest.mark.parametrize("threshold", [-1, 101])
def test_a_threshold_is_in_percent(threshold):
    condition = make_condition("tooldag", "simple", "S1")
    with pytest.raises(InputError, match=f"^confidence threshold {threshold} is not in 0..100 percent$"):
        measures.confident_counts(simulate_logged(condition, np.arange(2)), condition, threshold)


# what the public code calls wrong

EVERYTHING, NOTHING = "everything", "nothing"


@pytest.mark.parametrize(
    ("world", "profile", "believed", "true", "action", "wrong"),
    [
        # tools: by name, and all of them where the number of loaded tools differs
        ("tooldag", "typical", {}, {}, "call(0)", ["dependency satisfied(1)"]),
        ("tooldag", "typical", {"loaded(0)": 1}, {}, "call(0)", EVERYTHING),
        ("tooldag", "typical", {"loaded(0)": 1}, {"loaded(2)": 1}, "call(0)",
         ["loaded(0)", "loaded(2)", "dependency satisfied(1)", "subgoal complete"]),
        # a scribe's report names the tool that it calls, here one that is not ready
        ("tooldag", "scribe", {}, {}, "call(1)", ["loaded", "dependency satisfied(1)", "subgoal complete"]),
        # rooms: any location, any lock, or what is held
        ("objectstate", "typical", {}, {}, "move(1)", NOTHING),
        ("objectstate", "typical", {"location(box 0)": 2}, {}, "move(1)", EVERYTHING),
        ("objectstate", "typical", {"lock(0)": 1}, {}, "move(1)", EVERYTHING),
        ("objectstate", "typical", {"held(key 0)": -1}, {}, "move(1)", ["held(key 0)"]),
        ("objectstate", "typical", {"held(key 0)": 1}, {}, "move(1)", EVERYTHING),
        # graphs: any edge; a key's location of its own; the node's name brings nothing to compare
        ("graphnav", "typical", {"node": 3}, {}, "move(1)", NOTHING),
        ("graphnav", "typical", {"location(key 0)": 2}, {}, "move(1)", ["location(key 0)"]),
        ("graphnav", "typical", {"state(edge 1)": 1}, {}, "move(1)", EVERYTHING),
        ("graphnav", "typical", {"state(edge 1)": -1}, {"state(edge 1)": -1}, "move(1)", NOTHING),
        ("graphnav", "scribe", {"location(key 0)": 2}, {}, "move(1)", ["location(key 0)"]),
        ("graphnav", "scribe", {"location(key 0)": 2}, {}, "collect(key 0)", EVERYTHING),
        ("graphnav", "scribe", {"location(key 1)": 2}, {}, "collect(key 0)", ["location(key 1)"]),
    ],
)  # fmt: skip
def test_what_the_public_code_calls_wrong(world, profile, believed, true, action, wrong):
    condition = make_condition(world, "simple", "S1", RELEASED, profile)
    built = condition.built
    gold = np.zeros((1, 1, built.fields), np.int8)
    if world == "tooldag":
        gold[..., built.rules.tools : 2 * built.rules.tools] = 1  # all are ready but tool 1
        gold[..., built.rules.tools + 1] = 0
    belief = gold.copy()
    for values, told in ((belief, believed), (gold, true)):
        for name, value in told.items():
            values[..., built.field_names.index(name)] = value
    held = measures.Held(belief, gold, np.full_like(belief, 90), np.ones((1, 1), bool))
    found = measures.wrong_anywhere(condition, held, np.array([[built.action_names.index(action)]]))
    names = [name for name, is_wrong in zip(built.field_names, found[0, 0], strict=True) if is_wrong]
    listed = {EVERYTHING: [""], NOTHING: []}.get(wrong, wrong) if isinstance(wrong, str) else wrong
    assert names == [name for name in built.field_names if any(name.startswith(one) for one in listed)]
    unheld = measures.Held(belief, gold, np.full_like(belief, 90), np.zeros((1, 1), bool))
    assert not measures.wrong_anywhere(condition, unheld, np.zeros((1, 1), int)).any()
