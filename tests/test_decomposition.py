"""The split of gains: Shapley values against closed forms and their definition, arms against plain runs."""

from fractions import Fraction
from itertools import permutations
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envprobe_core.analyses.decomposition import (
    ALL,
    FACTOR_NAMES,
    INFORMATION,
    MEMORY,
    METRIC,
    SELECTION,
    SPLIT,
    TIME,
    TIMING,
    arm,
    context,
    gains,
    interactions,
    own_level,
    pairs,
    restrict,
    run_factorial,
    shapley_values,
    split_gains,
)
from envprobe_core.cells import Cell, make_cell
from envprobe_core.engine.running import record
from envprobe_core.grid import run_cells
from envprobe_core.policies import POLICIES, hybrid
from envprobe_core.protocols import PROTOCOLS

SEEDS = "0:14"


@pytest.fixture(scope="module")
def runs():
    return run_factorial("paper released", "S1", seeds=SEEDS, policies="periodic simple cd")


# --- Shapley values ---------------------------------------------------------------------------


def by_orders(game, players):
    """The definition: what each player adds, averaged over all orders of arrival, in exact fractions."""
    shares = [Fraction(0)] * players
    for order in permutations(range(players)):
        there = 0
        for player in order:
            shares[player] += Fraction(int(game[there | 1 << player])) - Fraction(int(game[there]))
            there |= 1 << player
    return [float(share / factorial(players)) for share in shares]


@given(st.integers(1, 5).flatmap(lambda n: st.lists(st.integers(-99, 99), min_size=2**n, max_size=2**n)))
def test_shapley_values_are_means_over_orders_and_add_up(game):
    players = len(game).bit_length() - 1
    shares = shapley_values(game)
    np.testing.assert_allclose(shares, by_orders(game, players), atol=1e-9)
    assert shares.sum() == pytest.approx(game[-1] - game[0], abs=1e-9)


@given(st.lists(st.integers(-99, 99), min_size=8, max_size=8))
def test_interaction_is_the_change_of_one_share_by_the_other_player(game):
    """I_ij: i's share in the game with j always there, minus its share in the game without j."""
    found = dict(zip(pairs(3), interactions(game), strict=True))
    for first, second in pairs(3):
        rest = [player for player in range(3) if player != second]
        with_j = shapley_values(restrict(game, rest, 1 << second))[rest.index(first)]
        without_j = shapley_values(restrict(game, rest))[rest.index(first)]
        assert found[first, second] == pytest.approx(with_j - without_j, abs=1e-9)


# --- hybrids ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPLIT)
@pytest.mark.parametrize("protocol", ["observed", "released"])
def test_a_policy_crossed_with_itself_is_the_policy(name, protocol):
    seeds = np.arange(20)
    own = POLICIES[name]
    cells = [Cell("objectstate", policy, protocol=PROTOCOLS[protocol]) for policy in (own, hybrid(own, own))]
    digests = run_cells(cells, seeds)["digest"].reshape(2, -1)
    np.testing.assert_array_equal(digests[0], digests[1])


def test_arms_of_a_hybrid_probe_at_the_gates_times():
    cells = [
        Cell("tooldag", policy) for policy in (POLICIES["periodic"], arm("simple", INFORMATION | SELECTION))
    ]
    periodic, mixed = (record(cell, np.arange(8), scores_all=False) for cell in cells)
    np.testing.assert_array_equal(periodic.probe >= 0, mixed.probe >= 0)
    assert (periodic.probe != mixed.probe).any()


@pytest.mark.parametrize("name", [name for name in SPLIT if name != "periodic"])
def test_without_answers_the_field_leaves_no_trace(name):
    """Why arms without answers are run once whatever selects the field."""
    for protocol in ("paper", "released"):
        for gate in (name, "periodic"):
            cells = [
                Cell(
                    "graphnav",
                    hybrid(POLICIES[gate], POLICIES[selector], answered=False),
                    protocol=context(protocol, 0),
                )
                for selector in (name, "periodic")
            ]
            columns = run_cells(cells, np.arange(20))
            for measure in ("accuracy", "accuracy_slot", "success", "probes"):
                first, second = columns[measure].reshape(2, -1)
                np.testing.assert_array_equal(first, second)


# --- the factorial ----------------------------------------------------------------------------


def test_own_levels():
    assert own_level("paper") == INFORMATION | MEMORY | SELECTION | TIMING
    assert own_level("released") == TIME | SELECTION | TIMING | METRIC
    assert own_level("released:answer=delivered,memory=kept") == ALL


@pytest.mark.parametrize("protocol", ["paper", "released"])
@pytest.mark.parametrize("policy", ["simple", "cd"])
def test_the_gain_that_is_split_is_the_plain_one(runs, protocol, policy):
    seeds = np.arange(14)
    for world in runs.worlds:
        for reference in ("periodic", "no-probe"):
            cells = [make_cell(world, name, "S1", PROTOCOLS[protocol]) for name in (policy, reference)]
            accuracy = 100 * run_cells(cells, seeds)["accuracy"].reshape(2, -1)
            game = gains(runs, protocol, world, policy, reference)
            np.testing.assert_array_equal(game[:, own_level(protocol)], accuracy[0] - accuracy[1])


@pytest.mark.parametrize("reference", ["periodic", "no-probe"])
@pytest.mark.parametrize("whole", [False, True])
def test_parts_add_up_to_the_gain(runs, reference, whole):
    found = split_gains(runs, reference, "simple cd", whole=whole, resamples=200)
    wide = found.pivot(index=["protocol", "world", "policy"], columns="part", values="value")
    assert ("start" in wide) == (reference == "no-probe")
    np.testing.assert_allclose(wide.drop(columns="gain").sum(axis=1), wide["gain"], atol=1e-9)
    assert set(FACTOR_NAMES) <= set(wide)


def test_periodic_has_nothing_to_select_or_to_time(runs):
    own = split_gains(runs, "no-probe", "periodic", resamples=200)
    own = own[own["part"].isin(["selection", "timing"])]
    assert len(own)
    assert (own[["value", "value_low", "value_high"]] == 0).all().all()
