"""Printed numbers against each other: what is planted is found, by the rule it breaks and no other."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envprobe_book.claims import PaperValue, paper_values
from envprobe_book.claims.consistency import RULES, find_contradictions, row_and_measure

PAIR = "spatial: simple vs periodic"


def number(row, column, text, source="tab:x", relation="=", low=None, high=None, n=None):
    return PaperValue(source, row, column, relation, float(text), low, high, n, len(text.partition(".")[2]))


SOUND = (  # numbers that agree: a comparison, pooled figures, a set-up and a bound
    number(PAIR, "method_accuracy", "0.600"),
    number(PAIR, "reference_accuracy", "0.560"),
    number(PAIR, "accuracy_difference_pct", "4.00", low=2.0, high=6.0, n=440),
    number(PAIR, "accuracy_p", "0.001", relation="<"),
    number("graphnav: random", "accuracy", "0.50", n=220),
    number("objectstate: random", "accuracy", "0.70", n=220),
    number("spatial: random", "accuracy", "0.60", n=440),
    number("graphnav", "pairs", "220", source="sec:setup"),
    number("objectstate", "pairs", "220", source="sec:setup"),
    number("spatial", "pairs", "440", source="sec:setup"),
    number("medium", "horizon", "30"),
    number("medium", "budget", "7"),
    number("seeds", "first", "42"),
    number("seeds", "last", "261", n=220),
    number("every estimator", "rate", "0.80", source="tab:x caption", relation=">"),
    number("canonical", "rate", "0.90"),
    number("canonical", "rate_lcb", "0.85", n=319),
    number(PAIR, "method_useful_probe_rate", "0.70", source="tab:g4_main", n=320),
    number("spatial: simple", "useful_per_budget", "0.50", source="tab:g4_norm"),
)


def changed(row, column, **how):
    found = [one for one in SOUND if (one.row, one.column) == (row, column)]
    assert len(found) == 1
    return [replace(one, **how) if one is found[0] else one for one in SOUND]


def broken_by(numbers):
    return [rule.__name__ for rule in RULES if list(rule(numbers))]


def test_sound_numbers_break_no_rule():
    assert find_contradictions(SOUND) == []


@pytest.mark.parametrize(
    ("planted", "rule"),
    [
        (changed(PAIR, "accuracy_difference_pct", value=4.2), "differences_follow"),
        ([*SOUND, number("canonical", "rate", "0.93", source="tab:y")], "quantities_have_one_value"),
        (changed("spatial: random", "accuracy", value=0.65), "pools_are_those_of_their_parts"),
        (changed("spatial: random", "accuracy", n=400), "pools_are_those_of_their_parts"),
        (changed(PAIR, "accuracy_difference_pct", n=150), "counts_are_as_announced"),
        (changed("medium", "budget", value=8.0), "counts_are_as_announced"),
        (changed("seeds", "last", value=260.0), "counts_are_as_announced"),
        (changed("every estimator", "rate", value=0.95), "bounds_hold_in_every_row"),
        (changed(PAIR, "accuracy_p", relation="=", value=0.99), "p_values_fit_their_intervals"),
        (changed("spatial: simple", "useful_per_budget", value=0.53), "rates_fit_the_probes_allowed"),
        (
            [*SOUND, number("tools: judge vs oracle", "accuracy_difference_pct", "-4.00")],
            "differences_differ",
        ),
        (changed("canonical", "rate_lcb", value=0.6), "lower_bounds_are_within_reach"),
    ],
)  # fmt: skip
def test_a_planted_fault_breaks_its_rule_alone(planted, rule):
    assert broken_by(planted) == [rule]


def test_a_cell_of_a_comparison_is_its_policys_number():
    assert row_and_measure(SOUND[0]) == ("spatial: simple", "accuracy")
    assert row_and_measure(SOUND[1]) == ("spatial: periodic", "accuracy")
    assert row_and_measure(SOUND[2]) == (PAIR, "accuracy_difference_pct")
    other = [*SOUND, number("spatial: simple vs judge", "reference_accuracy", "0.30")]
    assert broken_by(other) == []
    other = [*SOUND, number("spatial: periodic vs judge", "method_accuracy", "0.30")]
    assert broken_by(other) == ["quantities_have_one_value"]


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(-60, 60), st.integers(0, 1))
def test_rounding_is_no_contradiction_and_more_than_rounding_is(method, reference, off, digits):
    """Two accuracies with three digits and a difference in points with one or two, true before rounding."""
    true = (method - reference) / 10
    shown = f"{true + off / 100:.{1 + digits}f}"
    numbers = [
        number(PAIR, "method_accuracy", f"{method / 1000:.3f}"),
        number(PAIR, "reference_accuracy", f"{reference / 1000:.3f}"),
        number(PAIR, "accuracy_difference_pct", shown),
    ]
    slack = 0.1 + (0.05 if digits == 0 else 0.005)
    assert bool(find_contradictions(numbers)) == (abs(float(shown) - true) > slack + 1e-9)


def test_what_the_paper_prints_twice_is_found_whatever_its_order():
    numbers = paper_values()
    there, back = ({one.what for one in find_contradictions(own)} for own in (numbers, numbers[::-1]))
    assert there == back
