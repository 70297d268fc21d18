"""When a look pays: closed forms against a simulated field, and grafting against a plain loop."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envprobe_book import run
from envprobe_book.analyses.looks import (
    best_step,
    budget,
    foreseen,
    graft,
    lost_end,
    lost_mean,
    net_worth,
    pays_at,
    regret,
    worth_end,
    worth_mean,
    worth_use,
)
from envprobe_core.compiled.records import NONE, WAIT
from envprobe_core.conditions import make_condition, parse_seeds
from envprobe_core.engine.batch import EpisodeBatch, simulate_logged
from envprobe_core.protocols import PROTOCOLS, parse_protocol
from envprobe_core.worlds import WORLDS

H = 30
EPISODES = 200_000


def right_by_step(rate, t, values, lost=False):
    """The share of simulated fields that are right because of a look at step t, by step 0..H, with its error.

    Each step the field takes, with probability `rate`, one of its values at random (any of them), or is lost.
    """
    random = np.random.default_rng(1)
    field, held = np.zeros((2, EPISODES), np.int64)
    without, found = held.copy(), []
    for step in range(H + 1):
        found.append((held == field).astype(float) - (without == field))
        if step == t:
            held = field.copy()
        moved = random.random(EPISODES) < rate
        field = np.where(moved, 1 if lost else random.integers(0, values, EPISODES), field)
    return np.array(found)


@pytest.mark.parametrize(("rate", "values"), [(0.1, 10), (0.3, 4), (0.02, 10)])
@pytest.mark.parametrize("t", [29, 14, 3])
def test_the_worth_of_a_look_is_that_of_a_simulated_field(rate, values, t):
    found, lam, limit = right_by_step(rate, t, values), 1 - rate, 1 - 1 / values
    error = found[-1].std() / EPISODES**0.5
    assert found[-1].mean() == pytest.approx(worth_end(t, H, lam, limit), abs=4.5 * error)
    each = found[1:].mean(axis=0)
    assert each.mean() == pytest.approx(worth_mean(t, H, lam, limit), abs=4.5 * each.std() / EPISODES**0.5)


@pytest.mark.parametrize("t", [14, 3])
def test_the_worth_of_a_look_at_what_is_lost_for_good(t):
    found = right_by_step(0.1, t, 2, lost=True)
    assert found[-1].mean() == pytest.approx(lost_end(t, H, 0.1), abs=0.006)
    assert found[1:].mean() == pytest.approx(lost_mean(t, H, 0.1), abs=0.004)


@given(st.floats(0.05, 0.999), st.integers(2, 60))
def test_the_best_step_is_the_last_one_or_the_middle_at_any_rate(lam, horizon):
    ends = [worth_end(t, horizon, lam) for t in range(horizon)]
    assert all(one <= other + 1e-12 for one, other in pairwise(ends))
    middle = worth_mean(horizon // 2, horizon, lam)
    assert all(worth_mean(t, horizon, lam) <= middle + 1e-12 for t in range(horizon))
    for t in range(horizon):
        assert worth_mean(t, horizon, lam) == pytest.approx(worth_mean(horizon - t, horizon, lam))


def test_values_worked_out_by_hand():
    assert worth_end(29, H, 0.9, 0.9) == pytest.approx(0.9 * (0.9 - 0.9**30))
    assert [best_step(lost_mean, H, rate) for rate in (0.02, 0.1, 0.3)] == [14, 11, 6]
    assert [budget(H, 1 - rate, 1, 0.2) for rate in (0.02, 0.1, 0.3)] == [14, 13, 4]
    assert net_worth(13, H, 0.9, 1, 0.2) == pytest.approx(3.56, abs=0.005)
    third, thrice = ((0.1, 0.18), (0.02, 1.63), (0.3, 1.26)), ((0.1, 1.44), (0.3, 0.97))
    wrong = [(rate, rate / 3, lost) for rate, lost in third] + [
        (rate, 3 * rate, lost) for rate, lost in thrice
    ]
    for rate, told, lost in wrong:
        assert regret(H, rate, told, 1, 0.2) == pytest.approx(lost, abs=0.005)
    assert worth_use(20, 20, 0.9) == worth_use(25, 20, 0.9) == 0 < worth_use(19, 20, 0.9)


@given(st.floats(0.3, 0.99), st.floats(0.01, 0.9), st.integers(0, 40))
def test_no_other_number_of_looks_is_worth_more_and_the_gate_agrees(lam, price, other):
    best = budget(H, lam, 1, price)
    assert net_worth(min(other, H), H, lam, 1, price) <= net_worth(best, H, lam, 1, price) + 1e-9
    for t in range(H):  # of a belief that is as old as the episode
        assert pays_at(t, t, H, lam, 1, price) == (worth_end(t, H, lam) > price)


@pytest.mark.parametrize("world", WORLDS)
def test_without_a_look_the_forms_foresee_an_agent_that_keeps_the_start_for_ever(world):
    """Against the engine: the start table, kept; tools are lost, and nobody loads one again."""
    condition = make_condition(world, "no-probe", profile="perfect")
    episodes = EpisodeBatch(condition, np.arange(600))
    while True:
        episodes.propose()
        if not episodes.record():
            break
        episodes.block.action = WAIT
        episodes.advance(np.full(600, NONE))
    recording = episodes.recording()
    start, gold = recording.gold[:, 0], recording.gold[:, -1]
    kept = ((start == gold) & (gold != -1)).sum(axis=1) / (gold != -1).sum(axis=1)
    told = foreseen(condition, recording)
    if world == "tooldag":  # nothing is loaded at the start: there is nothing to lose
        assert (kept == 1).all()
    else:
        assert told.mean() == pytest.approx(kept.mean(), abs=4 * kept.std() / 600**0.5 + 1e-3)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("averaged", [False, True])
def test_grafting_against_a_plain_loop(world, averaged):
    condition = make_condition(world, "no-probe", protocol=PROTOCOLS["observed"])
    recording, random = simulate_logged(condition, np.arange(5)), np.random.default_rng(0)
    shape = recording.probe.shape
    probe = np.where(random.random(shape) < 0.3, random.integers(0, 5, shape), -1)
    expected = []
    for row, steps in enumerate(recording.steps.tolist()):
        table, gold = recording.belief[row].astype(int), recording.gold[row].astype(int)
        told, kept = table.copy(), {}
        for t in range(1, steps + 1):
            for field in [one for one in kept if table[t, one] != table[t - 1, one]]:
                del kept[field]
            if (asked := int(probe[row, t - 1])) >= 0 and table[t, asked] == table[t - 1, asked]:
                kept[asked] = gold[t - 1, asked]
            for field, value in kept.items():
                told[t, field] = value
        right = ((told == gold) & (gold != -1)).sum(1) - ((table == gold) & (gold != -1)).sum(1)
        own = right[1 : steps + 1].mean() if averaged else right[steps]
        expected.append(own / (gold[0] != -1).sum())
    np.testing.assert_allclose(graft(recording, probe, averaged=averaged), expected, atol=1e-12)


def test_a_graft_has_the_sign_of_the_answers_as_written():
    """Beside the engine: what answers add in episodes of their own."""
    seeds = parse_seeds("700000:700200")
    facts = run(policies="simple periodic", protocols="paper", seeds="40000:40400", facts="placebo")
    found = 100 * (facts["accuracy"] - facts["placebo"]).groupby([facts["world"], facts["policy"]]).mean()
    for world in WORLDS:
        without = simulate_logged(make_condition(world, "no-probe"), seeds)
        worth = {
            name: 100 * graft(without, simulate_logged(make_condition(world, name), seeds).probe).mean()
            for name in ("simple", "periodic")
        }
        assert worth["simple"] - worth["periodic"] < -1
        assert found[world, "simple"] - found[world, "periodic"] < -1


@pytest.mark.parametrize("world", WORLDS)
def test_looks_in_the_last_steps_cost_the_tasks_that_are_done_in_them(world):
    """The share of tasks done by step H minus that by step H - 7, to the digit: both meet the same events."""
    seeds, looks = np.arange(930_000, 930_400), np.full((400, H), -1)
    looks[:, H - 7 :] = 0
    late = simulate_logged(make_condition(world, "yoked"), seeds, schedules=looks)
    ended = make_condition(world, "no-probe", protocol=parse_protocol("paper:end=success"))
    done = simulate_logged(ended, seeds)
    assert late.success.sum() == (done.success & (done.steps <= H - 7)).sum()
    assert 0 < late.success.sum() < done.success.sum()
