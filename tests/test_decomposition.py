"""The split of gains: Shapley values against closed forms and their definition, arms against plain runs."""

from itertools import combinations, permutations
from math import factorial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envprobe_book import conclude
from envprobe_book.analyses.decomposition import (
    ALL,
    FACTORS,
    INFORMATION,
    MEMORY,
    METRIC,
    SELECTION,
    SPLIT,
    TIME,
    TIMING,
    Arms,
    arm,
    by_cell,
    context,
    interactions,
    own_level,
    split_gains,
)
from envprobe_book.analyses.departures import GROUPS, TURNED, between, scheduled_accuracy, turn, turned_alone
from envprobe_core import run
from envprobe_core.conditions import Condition, make_condition
from envprobe_core.experiment import run_conditions
from envprobe_core.policies import POLICIES, hybrid
from envprobe_core.protocols import PROTOCOLS, SWITCHES, parse_protocol
from in_sight import run_cell

SHAPLEY = run_cell("text-and-code", "shapley", np=np, pd=pd, v=[0, 1, 2, 3]).shapley  # as the page shows it


@pytest.fixture(scope="module")
def arms():
    """All arms of three policies on few episodes."""
    coalitions = range(ALL + 1)
    policies = {own: [arm(own, s) for s in coalitions] for own in ("periodic", "simple", "cd")}
    policies["no-probe"] = [POLICIES["no-probe"]] * len(coalitions)
    contexts = {name: [context(name, s) for s in coalitions] for name in ("paper", "released")}
    played = run(
        policies={one.name: one for own in policies.values() for one in own}.values(),
        regimes="S1",
        protocols=dict.fromkeys(one for own in contexts.values() for one in own),
        seeds="0:14",
    )
    return Arms(policies, contexts, *by_cell(played))


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
    shares = SHAPLEY(game)
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
    np.testing.assert_allclose(interactions(game, SHAPLEY), naive, atol=1e-9)


# hybrids


@pytest.mark.parametrize("protocol", ["observed", "released"])
def test_a_policy_crossed_with_itself_is_the_policy(protocol):
    for own in map(POLICIES.get, SPLIT):
        pair = [
            Condition("objectstate", one, protocol=PROTOCOLS[protocol]) for one in (own, hybrid(own, own))
        ]
        first, second = run_conditions(pair, np.arange(20))["digest"].reshape(2, -1)
        np.testing.assert_array_equal(first, second, own.name)


@pytest.mark.parametrize("protocol", ["paper", "released"])
def test_without_answers_the_field_leaves_no_trace(protocol):
    """Why arms without answers are run once whatever selects the field."""
    rules = parse_protocol(context(protocol, 0))
    for name in SPLIT[1:]:
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
    own = SELECTION | TIMING
    assert own_level("paper") == own | INFORMATION | MEMORY
    assert own_level("released") == own | TIME | METRIC
    assert own_level("released:answer=delivered,memory=kept") == ALL


@pytest.mark.parametrize("protocol", ["paper", "released"])
@pytest.mark.parametrize("reference", ["periodic", "no-probe"])
def test_the_gain_that_is_split_is_the_plain_one_and_its_parts_add_up(arms, protocol, reference):
    for world, policy in (("tooldag", "simple"), ("graphnav", "simple"), ("objectstate", "cd")):
        conditions = [make_condition(world, name, "S1", PROTOCOLS[protocol]) for name in (policy, reference)]
        accuracy = 100 * run_conditions(conditions, np.arange(14))["accuracy"].reshape(2, -1)
        game = arms.gains(protocol, world, policy, reference)
        np.testing.assert_array_equal(game[:, own_level(protocol)], accuracy[0] - accuracy[1])
    for whole in (False, True):
        split = split_gains(arms, reference, ["simple", "cd"], SHAPLEY, 200, whole)
        wide = split.pivot(index=["protocol", "world", "policy"], columns="part", values="value")
        assert ("start" in wide) == (reference == "no-probe")
        np.testing.assert_allclose(wide.drop(columns="gain").sum(axis=1), wide["gain"], atol=1e-9)
        assert set(FACTORS) <= set(wide)


# switches


def test_groups_hold_every_switch_that_is_turned_once_and_lead_from_text_to_code():
    assert sorted(switch for group in GROUPS.values() for switch in group) == sorted(TURNED)
    assert set(TURNED) < set(SWITCHES)
    last = 2 ** len(GROUPS) - 1
    assert (between("paper", "released", 0), between("paper", "released", last)) == (
        "paper",
        turn("paper", *TURNED),
    )
    rules, released = parse_protocol(between("paper", "released", last)), PROTOCOLS["released"]
    assert all(getattr(rules, switch) == getattr(released, switch) for switch in TURNED)


def test_a_switch_turned_alone_moves_a_headline_by_the_difference_of_its_means():
    protocols = ["paper", *(turn("paper", switch) for switch in TURNED)]
    episodes = run("tooldag", "periodic simple", "S1", protocols, seeds="0:12")
    headlines = {"main-procedural": ("Simple − Periodic, tools", "points"), "pcw-canonical": ("c", "points")}
    found = turned_alone(episodes, headlines, ["paper"], "S1", 200).set_index(["claim", "turned"])
    assert found.loc["pcw-canonical", ["value", "shift"]].isna().all(axis=None)  # of worlds that were not run
    gain = episodes.pivot_table("accuracy", "protocol", "policy").pipe(
        lambda own: own["simple"] - own["periodic"]
    )
    own = found.loc["main-procedural"]
    assert len(own) == len(protocols)
    for turned, row in own.iterrows():
        name = turn("paper", turned.partition("=")[0]) if turned else "paper"
        assert row["value"] == pytest.approx(100 * gain[name])
        assert row["shift"] == pytest.approx(100 * (gain[name] - gain["paper"]), abs=1e-9)
        assert row["shift_low"] <= row["shift"] <= row["shift_high"]


def test_the_schedule_that_begins_where_periodic_does_is_periodic():
    condition = make_condition("graphnav", "periodic")
    period = condition.regime.horizon // condition.budget_in_force
    own = run_conditions([condition], np.arange(20))["accuracy"]
    np.testing.assert_array_equal(scheduled_accuracy(condition, np.arange(20), period - 1, period), own)
    assert (scheduled_accuracy(condition, np.arange(20), 0, period) != own).any()


# conclusions


def test_nothing_is_concluded_of_protocols_that_were_not_run():
    row = {"protocol": "observed", "world": "tooldag", "pair": "timing × metric", "first": 0}
    row |= {"value": 1.0, "value_high": -1.0, "gain": -1.0, "gain_low": 1.0, "terminal_low": 0.0, "differ": 0}
    rows = pd.DataFrame([row])
    given = dict.fromkeys(("crossed", "unanswered", "phases"), rows) | {
        "splits": rows.assign(part="information")
    }
    given["way"] = pd.DataFrame({("tools", "gain"): [1.0]}, ["scoring"])
    given |= {"first": "observed", "last": "released", "GROUPS": ["scoring"], "conclude": conclude}
    cells = {
        "said-shares": ["scoring"], "said-untold": ["agents"],
        "said-phases": ["phase"], "said-crossed": ["interact"],
    }  # fmt: skip
    made = {cell: run_cell("text-and-code", cell, **given) for cell in cells}
    said = [getattr(made[cell], name) for cell, names in cells.items() for name in names]
    assert ["these do not:" in one.markdown for one in said] == [True, False, True, False]
