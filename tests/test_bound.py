"""The optimum on small worlds, against a naive twin and every policy; ceilings of the full-size worlds."""

import operator
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import compress, product

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given, settings

from envprobe_book.analyses import ceilings
from envprobe_book.analyses.small_worlds import (
    SmallWorld,
    frontier,
    grow,
    leaves,
    loaded_at_end,
    random_policy,
    reached_under,
    solve,
    worth,
)
from envprobe_core.agents.profiles import PROFILES
from envprobe_core.conditions import Condition
from envprobe_core.engine.batch import walk
from envprobe_core.errors import InputError
from envprobe_core.experiment import run_conditions
from envprobe_core.policies import POLICIES, custom_policy
from envprobe_core.protocols import OBSERVED, PAPER, RELEASED
from strategies import conditions, seeds

DRAWN = tuple(name for name in POLICIES if name not in ("random", "yoked"))
small_worlds = st.builds(
    SmallWorld,
    density=st.sampled_from([0, 1]),
    mutation=st.sampled_from([0, 1, 2]),
    horizon=st.integers(2, 6),
    budget=st.integers(0, 2),
    protocol=st.sampled_from([PAPER, OBSERVED]),
)


# a naive twin: whole histories, exact fractions, nothing merged


def naive_best(small, weight):
    """Expectimax over histories: a hidden state is (loaded, complete), a belief maps it to its weight."""
    needs = [set(), {0}, {1} if small.density == 0 else {0, 1}]
    rate = Fraction(int(small.built.rules.mutation), 2**32)

    def gold(loaded, complete):
        facts = (*(t in loaded for t in range(3)), *(own <= loaded for own in needs))
        return [int(fact) for fact in (*facts, *(t in complete for t in range(3)))]

    def plan(table):
        needed = {2}
        for tool in (2, 1):
            if tool in needed and table[tool] != 1:
                needed |= needs[tool]
        return None if table[8] == 1 else min((tool for tool in needed if table[tool] != 1), default=2)

    def written(table, field, answer, call, valid, seen):
        table, news = list(table), {tool for tool, _ in seen} | ({field} & {0, 1, 2})
        for place, value in ((field, answer), *seen, (6 + call if valid else None, 1)):
            if place is not None:
                table[place] = value
        for tool in range(3):
            if news & needs[tool]:
                table[3 + tool] = int(all(table[need] == 1 for need in needs[tool]))
        return table

    def value(t, table, used, belief):
        if t < small.horizon:
            fields = range(9) if used < small.budget else ()
            return max(after(t, table, used, belief, field) for field in (None, *fields))
        right = {own: sum(map(operator.eq, table, gold(*own))) for own in belief}
        worth = {own: weight * Fraction(right[own], 9) + (1 - weight) * (2 in own[1]) for own in belief}
        return sum(chance * worth[own] for own, chance in belief.items())

    def after(t, table, used, belief, field):
        shown, call = {}, plan(table) if field is None else None  # what is shown, and the belief it leaves
        for (loaded, complete), chance in belief.items():
            answer = None if field is None else gold(loaded, complete)[field]
            valid = call is not None and call not in loaded and needs[call] <= loaded
            loaded, complete = (loaded | {call}, complete | {call}) if valid else (loaded, complete)
            at_risk = sorted(loaded - {2})
            for gone in product((False, True), repeat=len(at_risk)):
                kept = loaded - set(compress(at_risk, gone))
                odds = rate ** sum(gone) * (1 - rate) ** (len(gone) - sum(gone))
                looked = () if call is None else (call, *needs[call])
                seen = tuple((tool, int(tool in kept)) for tool in looked)
                group = shown.setdefault((answer, valid, seen), Counter())
                group[kept, complete] += chance * odds
        probes = used + (field is not None)
        return sum(
            value(t + 1, written(table, field, answer, call, valid, seen), probes, group)
            for (answer, valid, seen), group in shown.items()
        )

    nothing = frozenset()
    start = gold(nothing, nothing) if small.protocol.start == "gold" else [None] * 9
    return value(0, start, 0, {(nothing, nothing): Fraction(1)})


@pytest.mark.parametrize("protocol", [PAPER, OBSERVED], ids=lambda protocol: protocol.name)
@pytest.mark.parametrize(("density", "horizon", "budget"), [(0, 4, 1), (1, 4, 1), (1, 3, 2), (0, 4, 0)])
def test_the_optimum_is_that_of_exhaustive_search(protocol, density, horizon, budget):
    small = SmallWorld(density, 2, horizon, budget, protocol)
    tree = grow(small)
    for weight in (Fraction(0), Fraction(1, 2), Fraction(1)):
        exact = float(naive_best(small, weight))
        assert solve(tree, float(weight)).worth == pytest.approx(exact, abs=1e-12)


# the tree is the engine's


@settings(max_examples=8)
@given(small_worlds, st.floats(0, 1))
def test_the_best_policies_have_the_means_they_promise_and_serve_every_weight(small, weight):
    tree = grow(small)
    corners = frontier(tree)
    for corner in corners:
        best = pytest.approx((corner.accuracy, corner.success), abs=1e-10)
        last = reached_under(tree, corner)[-1]
        assert (last @ tree.accuracy, last @ tree.success) == best
    of_corners = max(worth(weight, (corner.accuracy, corner.success)) for corner in corners)
    assert solve(tree, weight).worth == pytest.approx(of_corners, abs=1e-9)


def test_under_no_probes_the_loaded_tools_are_those_of_every_script():
    """A chain of three, one action a step: each call loads a tool unless what it needs has unloaded."""
    small = SmallWorld(0, 2, 4, 0, PAPER)
    tree = grow(small)
    only = solve(tree, 0.5)
    chances = reached_under(tree, only)
    assert [chance.sum() for chance in chances] == pytest.approx([1] * 5)
    episodes = small.episodes(POLICIES["no-probe"], np.arange(8000))
    walk(episodes, episodes.decide)
    loaded = np.bitwise_count(episodes.block.state.loaded)
    error = loaded.std() / len(loaded) ** 0.5
    assert loaded_at_end(tree, only) == pytest.approx(loaded.mean(), abs=4 * error)


@pytest.mark.parametrize("name", ["random", "simple", "voi-accuracy", "oracle-tw"])
def test_the_engines_own_draws_agree(name):
    small, some = SmallWorld(1, 2, 8, 2, OBSERVED), np.arange(8000)
    episodes = small.episodes(POLICIES[name], some)
    walk(episodes, episodes.decide)
    found, own = episodes.recording(), None if name == "random" else leaves(small, POLICIES[name])
    exact = own.means(small.rate) if own else random_policy(grow(small))
    for mean, sample in zip(exact, (found.measures["accuracy_terminal"], found.success), strict=True):
        assert sample.mean() == pytest.approx(mean, abs=4 * sample.std() / len(some) ** 0.5)
    for rate in (0.0, 0.1, 1.0):
        assert own is None or own.chances(rate).sum() == pytest.approx(1)


# no policy beats its bound


@settings(max_examples=30)
@given(small_worlds, st.integers(0, 2**32), st.floats(-1, 3), st.floats(0, 1))
def test_no_policy_beats_its_bound(small, seed, threshold, weight):
    """Neither one of the book nor one with a score drawn at random."""
    amounts = np.random.default_rng(seed).uniform(-1, 1, (5, 9))

    def score(view):
        own = sum(amount * getattr(view, name) for amount, name in zip(amounts[0], "csud", strict=False))
        return own + amounts[1] + amounts[2] * view.value + amounts[3][view.step]

    tree, policies = grow(small), {name: POLICIES[name] for name in DRAWN}
    policies["drawn"] = custom_policy("drawn", score)
    blind, golden = (solve(own, weight).worth for own in (tree, grow(small, sees_gold=True)))
    assert blind <= golden + 1e-9
    points = {name: leaves(small, own, threshold).means(small.rate) for name, own in policies.items()}
    for name, point in (points | {"random": random_policy(tree)}).items():
        assert worth(weight, point) <= (golden if name.startswith("oracle") else blind) + 1e-9, name


def test_what_cannot_be_solved_is_refused():
    turned = [replace(PAPER, name="x", clock="stands"), replace(PAPER, name="x", answer="withheld")]
    for protocol in (RELEASED, *turned):
        with pytest.raises(InputError, match="cannot be solved exactly"):
            SmallWorld(protocol=protocol)
    with pytest.raises(InputError, match="replays"):
        leaves(SmallWorld(), POLICIES["yoked"])


# ceilings


@settings(max_examples=80)
@given(conditions(), seeds)
def test_no_policy_succeeds_where_none_can(condition, some):
    assume(ceilings.has_ceiling(condition.protocol))
    possible = ceilings.success_ceiling(condition, some)
    assert not (run_conditions([condition], some)["success"] & ~possible).any()


def test_the_ceiling_of_accuracy_by_hand():
    """S2 rooms: 23 fields; two boxes and one idle goal at risk; of three keyed doors at most two in sight."""
    profile = replace(PROFILES["perfect"], name="x", slip=0.1)
    found = ceilings.accuracy_ceiling(
        Condition("objectstate", POLICIES["no-probe"], profile=profile), np.arange(30)
    )
    loose = 3 * 0.1 * 0.8 * (1 - 30 * 0.1 / 33)
    assert set(np.round((1 - found) * 23, 9)) <= {round(loose + doors * 0.1, 9) for doors in (1, 2)}
    tools = ceilings.accuracy_ceiling(Condition("tooldag", POLICIES["no-probe"]), np.arange(2))
    assert tools == pytest.approx([1 - 0.2 * 0.5 / 27] * 2)
