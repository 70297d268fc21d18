"""The split of gains: Shapley values against closed forms and their definition, arms against plain runs."""

from itertools import combinations, permutations
from math import factorial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envprobe_book import conclude
from envprobe_core.conditions import Condition, make_condition
from envprobe_core.experiment import run_conditions
from envprobe_core.policies import POLICIES, hybrid
from envprobe_core.protocols import PROTOCOLS
from notebook_cells import definitions

PAGE = definitions("text-and-code", "3", "answer", "shapley", "23", "arms", "33")


@pytest.fixture(scope="module")
def page():
    few = {"protocol": "paper released", "regime": "S1", "seeds": "0:14", "resamples": 200}
    conditions = ("3", "answer", "shapley", "16", "23", "arms", "25")
    return definitions("text-and-code", *conditions, whole=["3", "25"], **few)


# Shapley values


def games(least, most):
    """Whole numbers for every coalition of some players."""
    whole = st.integers(-99, 99)
    return (
        st.integers(least, most)
        .flatmap(lambda n: st.lists(whole, min_size=2**n, max_size=2**n))
        .map(np.array)
    )


@given(games(1, 5))
def test_shapley_values_are_means_over_all_orders_of_arrival_and_add_up(game):
    players = len(game).bit_length() - 1
    naive = np.zeros(players)
    for order in permutations(range(players)):
        for k, player in enumerate(order):
            there = sum(1 << other for other in order[:k])
            naive[player] += game[there | 1 << player] - game[there]
    shares = PAGE.shapley(game)
    np.testing.assert_allclose(shares, naive / factorial(players), atol=1e-9)
    assert shares.sum() == pytest.approx(game[-1] - game[0], abs=1e-9)


@given(games(6, 6))
def test_interactions_are_second_differences_weighed_over_the_others(game):
    naive = []
    for i, j in combinations(range(6), 2):
        total = 0
        for rest in (s for s in range(64) if not s >> i & 1 and not s >> j & 1):
            weight = factorial(rest.bit_count()) * factorial(4 - rest.bit_count()) / factorial(5)
            one, other = 1 << i, 1 << j
            total += weight * (game[rest | one | other] - game[rest | one] - game[rest | other] + game[rest])
        naive.append(total)
    np.testing.assert_allclose(PAGE.interactions(game), naive, atol=1e-9)


# hybrids


@pytest.mark.parametrize("protocol", ["observed", "released"])
def test_a_policy_crossed_with_itself_is_the_policy(protocol):
    for own in map(POLICIES.get, PAGE.SPLIT):
        pair = [
            Condition("objectstate", one, protocol=PROTOCOLS[protocol]) for one in (own, hybrid(own, own))
        ]
        first, second = run_conditions(pair, np.arange(20))["digest"].reshape(2, -1)
        np.testing.assert_array_equal(first, second, own.name)


@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_without_answers_the_field_leaves_no_trace(protocol):
    """Why arms without answers are run once whatever selects the field."""
    rules = PAGE.parse_protocol(PAGE.context(protocol, 0))
    for name in PAGE.SPLIT[1:]:
        for gate in (name, "periodic"):
            arms = [hybrid(POLICIES[gate], POLICIES[own], answered=False) for own in (name, "periodic")]
            columns = run_conditions(
                [Condition("graphnav", arm, protocol=rules) for arm in arms], np.arange(20)
            )
            for measure in ("accuracy", "accuracy_slot", "success", "probes"):
                first, second = columns[measure].reshape(2, -1)
                np.testing.assert_array_equal(first, second)


# the factorial


def test_own_levels():
    own = PAGE.SELECTION | PAGE.TIMING
    assert PAGE.own_level("paper") == own | PAGE.INFORMATION | PAGE.MEMORY
    assert PAGE.own_level("released") == own | PAGE.TIME | PAGE.METRIC
    assert PAGE.own_level("released:answer=delivered,memory=kept") == PAGE.ALL


@pytest.mark.parametrize("protocol", ["paper", "released"])
@pytest.mark.parametrize("reference", ["periodic", "no-probe"])
def test_the_gain_that_is_split_is_the_plain_one_and_its_parts_add_up(page, protocol, reference):
    for world, policy in (("tooldag", "simple"), ("graphnav", "simple"), ("objectstate", "cd")):
        conditions = [make_condition(world, name, "S1", PROTOCOLS[protocol]) for name in (policy, reference)]
        accuracy = 100 * run_conditions(conditions, np.arange(14))["accuracy"].reshape(2, -1)
        game = page.gains(protocol, world, policy, reference)
        np.testing.assert_array_equal(game[:, page.own_level(protocol)], accuracy[0] - accuracy[1])
    for whole in (False, True):
        split = page.split_gains(reference, ["simple", "cd"], whole)
        wide = split.pivot(index=["protocol", "world", "policy"], columns="part", values="value")
        assert ("start" in wide) == (reference == "no-probe")
        np.testing.assert_allclose(wide.drop(columns="gain").sum(axis=1), wide["gain"], atol=1e-9)
        assert set(page.FACTORS) <= set(wide)


def test_nothing_is_concluded_of_protocols_that_were_not_run():
    said, row = [], {"protocol": "observed", "world": "tooldag", "pair": "timing × metric", "first": 0}
    row |= {"value": 1.0, "value_low": 1.0, "value_high": -1.0, "gain": -1.0, "gain_low": 1.0, "share": 1.0}
    rows = pd.DataFrame(
        [row | {"stratum": "tools", "part": "answers alone", "terminal_low": 0.0, "differ": 0}]
    )
    given = dict.fromkeys(("way", "crossed", "splits", "answers", "unanswered", "phases"), rows)
    given |= {"way": rows.assign(part="scoring"), "splits": rows.assign(part="information")}
    given |= {"first": "observed", "last": "released", "GROUPS": ["scoring"], "conclude": conclude}
    definitions(
        "text-and-code", "41", whole=["41"], take_away=lambda paper, found, on: said.extend(found), **given
    )
    assert ["~~" in one.markdown for one in said] == [True, False, True, False, True, False]
