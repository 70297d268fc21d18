"""VoI: its belief and prices by hand, its decisions under any arrangement of rows."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from envprobe_book import run
from envprobe_book.analyses import voi as held_out
from envprobe_core.compiled.noise import level32
from envprobe_core.compiled.numba_support import kernel
from envprobe_core.compiled.records import NONE, UNKNOWN
from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import EpisodeBatch, kernel_params, simulate_logged, step_batch, walk
from envprobe_core.engine.kernel import BEGIN
from envprobe_core.errors import InputError
from envprobe_core.experiment import run_conditions
from envprobe_core.policies import POLICIES, value_policy, voi
from envprobe_core.policies.voi import FINISH, PACE, PRIOR_CHANGES, PRIOR_STEPS
from envprobe_core.protocols import OBSERVED, PAPER, RELEASED
from envprobe_core.worlds import WORLDS, make_world

NAMES = {"voi": 0.5, "voi-accuracy": 1.0, "voi-success": 0.0}  # what accuracy weighs


@kernel
def ask(what, setting, block, field, value):
    """Show VoI a field (0, or 1 if an own action changed it) or nothing (2); say if a belief is right."""
    world, task, evidence, seen = setting.world, block[0].task, block[0].evidence, block[0].observation
    for other in range(world.fields):
        seen.value[other] = UNKNOWN
    if what < 2:
        seen.value[field] = value
        voi.learn(world, task, evidence, seen.value, field if what == 1 else NONE)
    elif what == 2:
        voi.miss(world, evidence, seen)
    return voi.right(world, evidence, field, value)


@kernel
def let_pass(setting, block):
    voi.let_pass(setting.world, block[0].task, block[0].evidence)


@kernel
def hear_late(setting, block, field, value, steps):
    voi.note(block[0].evidence, field, value)
    voi.grow_old(setting.world, block[0].task, block[0].evidence, field, steps)


class Belief:
    """What VoI remembers of one episode that has just begun."""

    def __init__(self, regime="S1"):
        episodes = EpisodeBatch(make_condition("objectstate", "voi", regime), np.zeros(1))
        self.given, self.rules = (episodes.params, episodes.block), episodes.params.world
        self.task, self.evidence = episodes.block.task[0], episodes.block.evidence[0]

    def see(self, field, value, touched=False):
        """Show one field."""
        ask(int(touched), *self.given, field, value)

    def step(self, times=1):
        """Let the world move."""
        for _ in range(times):
            let_pass(*self.given)

    def hear(self, field, value, late):
        """Take in an answer of so many steps ago."""
        hear_late(*self.given, field, value, late)

    def miss(self, place):
        """See nothing at a place."""
        self.given[1].observation.place = place
        ask(2, *self.given, 0, 0)

    def right(self, field, believed):
        """Return the chance that a belief of the agent's is right."""
        return ask(3, *self.given, field, believed)


def test_finish_chances_are_those_of_counting_steps():
    """m actions in l steps: at least m successes in l trials."""
    for left in range(7):
        trials = np.array([bin(x).count("1") for x in range(2**left)])
        weight = PACE**trials * (1 - PACE) ** (left - trials)
        for to_go in range(8):
            assert FINISH[left, to_go] == pytest.approx(weight[trials >= to_go].sum())


def test_a_rate_is_changes_over_steps_and_own_doing_counts_for_nothing():
    mine = Belief()
    held = mine.evidence
    mine.see(0, 3)
    assert held.changes[0] / held.steps[0] == PRIOR_CHANGES / PRIOR_STEPS == 0.1
    mine.step(4)
    mine.see(0, 3)  # unchanged after four steps
    assert (held.changes[0], held.steps[0]) == (0.5, 9.0)
    mine.step()
    mine.see(0, 1)  # changed within one
    assert (held.changes[0], held.steps[0]) == (1.5, 10.0)
    mine.step()
    mine.see(0, 2, touched=True)
    mine.see(1, 2)  # there was no evidence before
    assert (held.changes[0], held.steps[0]) == (1.5, 10.0)
    assert held.chance[:2].tolist() == [1.0, 1.0]


def test_the_filter_by_hand():
    """A lock flips back (landing 1), a drifting object lands anywhere, what is held stays."""
    mine = Belief()
    doors = int(mine.rules.doors)
    lock = int(mine.rules.objects) + int(np.flatnonzero(mine.task.key_of_door[:doors] != NONE)[0])
    mine.see(lock, 1)
    mine.see(0, 3)
    mine.see(1, 5)  # held: 5 rooms
    mine.step(2)
    assert mine.evidence.chance[lock] == pytest.approx(0.9 * 0.9 + 0.1 * 0.1)
    assert mine.evidence.chance[0] == pytest.approx(0.9 * 0.9 + 0.1 * 0.1 / 5)
    assert mine.evidence.chance[1] == 1.0
    assert [mine.right(field, UNKNOWN) for field in range(mine.rules.fields)] == [0.0] * mine.rules.fields
    assert mine.right(lock, 0) == pytest.approx(1 - 0.82)
    assert mine.right(0, 2) == pytest.approx((1 - 0.812) / 5)


@pytest.mark.parametrize("late", [1, 2, 4, 8])
def test_an_answer_that_is_late_is_worth_what_the_filter_would_have_left_of_it(late):
    """Heard so many steps late, a value has the chance of one that was seen then, and its age."""
    mine, other = Belief(), Belief()
    lock = int(mine.rules.objects) + int(np.flatnonzero(mine.task.key_of_door[: mine.rules.doors] != NONE)[0])
    held = 5  # as a place: there are 5 rooms
    for field, value in ((lock, 1), (0, 3), (1, held)):
        mine.see(field, value)
        other.hear(field, value, late)
    mine.step(late)
    for name in ("value", "chance", "since"):
        assert mine.evidence[name][[lock, 0, 1]].tolist() == other.evidence[name][[lock, 0, 1]].tolist(), name
    assert other.evidence.chance[1] == 1.0
    assert (other.evidence.chance[lock] > 0.9**late) == (late > 1)  # it may have changed back


def test_what_should_be_in_sight_is_doubted():
    clean, partial = Belief(), Belief("S2")
    for mine, left in ((clean, 0.0), (partial, 0.9 * 0.4 / (0.9 * 0.4 + 0.1))):
        held = mine.evidence
        mine.see(0, 3)
        held.chance[0] = 0.9
        mine.miss(2)  # it is not expected there
        assert (held.chance[0], held.changes[0]) == (0.9, 0.5)
        mine.miss(3)
        assert held.chance[0] == pytest.approx(left)
        assert held.changes[0] == pytest.approx(0.5 + 1 - left)
        mine.miss(3)  # it is counted once
        assert held.changes[0] == pytest.approx(0.5 + 1 - left)


@pytest.mark.parametrize("world", WORLDS)
def test_it_is_not_told_the_rates(world):
    """The true rates, spoiled for its eyes alone, change nothing but the privileged variant."""
    some, condition = np.arange(40), make_condition(world, "voi", "S1", OBSERVED)
    made = make_world(world, condition.regime, condition.protocol)
    spoiled = copy(made)
    spoiled.rates, spoiled.record = np.full_like(made.rates, 0.9), made.record.copy()
    spoiled.record.mutation, spoiled.record.rate = level32(0.9), 0.9

    for given_rates in (False, True):
        own = replace(condition, policy=value_policy("mine", "mine", 0.5, given=given_rates))
        dirty, setting = EpisodeBatch(own, some), kernel_params(own, scores_all=True, world=spoiled)
        true = dirty.params
        step_batch(BEGIN, setting, dirty.block, seeds=some)

        def decide(dirty=dirty, setting=setting, true=true):
            dirty.params = setting
            fields = dirty.decide()
            dirty.params = true
            return fields

        walk(dirty, decide)
        same = np.array_equal(simulate_logged(own, some).probe, dirty.recording().probe)
        assert same is not given_rates


@pytest.mark.parametrize("name", NAMES)
def test_answers_that_reach_nobody_are_not_asked_for(name):
    assert (POLICIES[name].rule.weight, POLICIES[name].given) == (NAMES[name], False)
    for protocol in (RELEASED, replace(PAPER, name="x", answer="withheld")):
        ours = run_conditions([make_condition("graphnav", name, "S2", protocol)], np.arange(10))
        idle = run_conditions([make_condition("graphnav", "no-probe", "S2", protocol)], np.arange(10))
        np.testing.assert_array_equal(ours["digest"], idle["digest"])


@pytest.mark.parametrize("world", WORLDS)
def test_probes_for_accuracy_come_last_and_unpaced_ones_first(world):
    """In any block and order of rows; and where no scores are kept, nobody whose budget is spent is asked."""
    late = simulate_logged(make_condition(world, "voi-accuracy", "S2", OBSERVED), np.arange(20)).probe
    at_once = value_policy("at-once", "at once", 1.0, paced=False)
    condition = replace(make_condition(world, "voi", "S2", OBSERVED), policy=at_once)
    early = simulate_logged(condition, np.arange(20)).probe
    budget, horizon = condition.budget_in_force, condition.regime.horizon
    assert (late[:, horizon - budget :] >= 0).all()
    assert (late[:, : horizon - budget] < 0).all()
    assert (early[:, :budget] >= 0).all()
    turned = simulate_logged(condition, np.arange(20)[::-1], scores_all=False)
    np.testing.assert_array_equal(turned.probe[::-1], early)
    np.testing.assert_array_equal(simulate_logged(condition, np.arange(7, 9)).probe, early[7:9])


@pytest.fixture(scope="module")
def compared():
    return held_out.load_heldout("S1", "observed", seeds="300000:300060", resamples=300)


def test_design_seeds_are_refused():
    with pytest.raises(InputError, match="seed 101999 was used to design VoI"):
        held_out.load_heldout("S1", "paper", seeds="101999:102003")


def test_differences_are_paired_and_in_points(compared):
    found = run("graphnav", "voi periodic", "S1", "observed", seeds="300000:300060")
    row = compared.set_index(["world", "variant", "rival"]).loc["graphnav", "voi", "periodic"]
    for measure in held_out.MEASURES:
        wide = found.pivot(index="seed", columns="policy", values=measure).astype(float)
        assert row[measure] == pytest.approx(100 * (wide["voi"] - wide["periodic"]).mean())
        assert row[f"{measure}_low"] <= row[measure] <= row[f"{measure}_high"]
