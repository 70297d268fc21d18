"""Algorithm 1 in plain Python gives the kernel's digests; a reader's own agent runs like the paper's."""

import doctest
from dataclasses import replace

import numpy as np
import pytest

from envprobe_core import algorithm1, environment, own_agent
from envprobe_core.algorithm1 import EnvProbeSimple, play_episode
from envprobe_core.comparing import compare
from envprobe_core.compiled.records import WAIT
from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import simulate, simulate_logged
from envprobe_core.environment import Belief, Environment, NamedPolicy, SimulatedAgent, make_environment
from envprobe_core.errors import InputError
from envprobe_core.experiment import run
from envprobe_core.own_agent import run_agent
from envprobe_core.policies import OF_THE_PAPER, custom_policy
from envprobe_core.protocols import PROTOCOLS
from envprobe_core.sources import ROOT
from envprobe_core.worlds import WORLDS

SEEDS = np.array([0, 1, 42])


def digests(cell, seeds=SEEDS, policy=None):
    """Play a cell's episodes one by one; return their digests."""
    one = Environment(cell)
    chooser = policy or NamedPolicy(one)
    played = [play_episode(one, SimulatedAgent(one), chooser, int(seed)) for seed in seeds]
    return [recording.measures["digest"].item() for recording in played]


@pytest.mark.parametrize("module", [algorithm1, environment, own_agent])
def test_the_examples_give_what_they_say(module):
    failed, tried = doctest.testmod(module)
    assert (failed, tried > 0) == (0, True)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("world", WORLDS)
def test_the_paper_s_algorithm_gives_the_kernel_s_digests(world, protocol):
    cell = make_condition(world, "simple", protocol=PROTOCOLS[protocol])
    assert digests(cell, policy=EnvProbeSimple()) == simulate(cell, SEEDS)["digest"].tolist()


@pytest.mark.parametrize("policy", OF_THE_PAPER)
def test_each_policy_of_the_paper_does_too_in_all_worlds_and_named_protocols(policy):
    for world in WORLDS:
        for protocol in PROTOCOLS.values():
            cell = make_condition(world, policy, protocol=protocol)
            assert digests(cell) == simulate(cell, SEEDS)["digest"].tolist(), (world, protocol.name)


@pytest.mark.parametrize("profile", ["perfect", "typical"])
@pytest.mark.parametrize("regime", ["S1", "S3"])
def test_other_regimes_and_profiles_are_no_different(regime, profile):
    cell = make_condition("graphnav", "simple", regime, PROTOCOLS["paper"], profile, budget=3, threshold=1.2)
    assert digests(cell, policy=EnvProbeSimple()) == simulate(cell, SEEDS)["digest"].tolist()


def test_everything_that_is_recorded_is_the_kernel_s_and_not_the_digest_alone():
    cell = make_condition("objectstate", "simple", protocol=PROTOCOLS["released"])
    one = Environment(cell)
    ours = play_episode(one, SimulatedAgent(one), NamedPolicy(one), 7)
    kernels = simulate_logged(cell, np.array([7]), scores_all=False)
    for name in ("belief", "gold", "staleness", "confidence", "action", "probe", "answer", "useful", "valid"):
        assert np.array_equal(getattr(ours, name), getattr(kernels, name)), name


def test_a_policy_that_shuts_its_gate_leaves_the_kernel_s_no_probe():
    class Shut(EnvProbeSimple):
        def choose(self, view):
            return -1

    cell = make_condition("tooldag", "simple")
    assert (
        digests(cell, policy=Shut())
        == simulate(make_condition("tooldag", "no-probe"), SEEDS)["digest"].tolist()
    )
    assert digests(cell, policy=Shut()) != simulate(cell, SEEDS)["digest"].tolist()


# ---------------------------------------------------------------- a reader's own agent


class NoteTaker:
    """Writes down what it sees, believes it for ever, and calls the first tool that it thinks is missing."""

    made = 0

    def __init__(self, environment):
        type(self).made += 1
        self.environment, self.tools = environment, environment.world.actions

    def update(self, observation):
        belief = observation.belief
        for field, value in observation.seen.items():
            belief.value[field], belief.staleness[field], belief.confidence[field] = value, 0, 95
        if observation.action >= 0 and observation.valid:  # a valid call completes its tool
            belief.value[2 * self.tools + observation.action] = 1
        self.belief = belief
        return belief

    def propose(self):
        missing = [tool for tool in range(self.tools) if self.belief.value[tool] != 1]
        return missing[0] if missing else WAIT


def test_a_hand_written_agent_runs_under_each_policy_and_meets_the_same_world():
    NoteTaker.made = 0
    mine = run_agent(NoteTaker, worlds="tooldag", policies="no-probe simple", seeds="0:20")
    assert NoteTaker.made == 40
    assert mine.profile.unique().tolist() == ["NoteTaker"]
    theirs = run("tooldag", "no-probe simple", protocols="paper", seeds="0:20")
    assert mine.columns.tolist() == theirs.columns.tolist()
    assert mine.groupby("policy").probes.max().to_dict() == {"no-probe": 0, "simple": 7}
    again = run_agent(NoteTaker, worlds="tooldag", policies="no-probe simple", seeds="0:20")
    assert again.equals(mine)
    assert run_agent(NoteTaker, "tooldag", "simple", seeds="11").valid_actions.tolist() == [
        mine[(mine.policy == "simple") & (mine.seed == 11)].valid_actions.item()
    ]
    assert np.isfinite(compare(mine, "simple", "no-probe").gain[0])  # of the procedural stratum


def losses(agent, seed, policy):
    """Return whether each tool was loaded at each step, [time, tool], in an episode of an agent."""
    return own_agent.play_own(agent, make_condition("tooldag", policy), seed).gold[0, :, :8] == 1


def test_the_luck_of_a_seed_is_the_same_whatever_agent_and_policy_do():
    """Which loaded tools a tick unloads is drawn by seed, tick and tool alone."""

    class InTurn(NoteTaker):
        def propose(self):
            return self.environment.episodes.block.t[0] % self.tools

    shared = lost = differ = 0
    for seed in range(12):
        mine, other = losses(NoteTaker, seed, "simple"), losses(InTurn, seed, "no-probe")
        both = mine[:-1] & other[:-1]
        assert np.array_equal(mine[1:][both], other[1:][both]), seed
        shared, lost = shared + both.sum(), lost + (~mine[1:][both]).sum()
        elsewhere = losses(InTurn, seed + 100, "no-probe")
        both = mine[:-1] & elsewhere[:-1]
        differ += (mine[1:][both] != elsewhere[1:][both]).sum()
    assert shared > 100
    assert lost > 10
    assert differ > 10  # other seeds, other luck


class StandStill:
    """Believes what it was told at first, and waits."""

    def __init__(self, environment):
        pass

    def update(self, observation):
        return observation.belief

    def propose(self):
        return WAIT


@pytest.mark.parametrize("world", WORLDS)
def test_an_agent_s_table_ages_is_repaired_by_probes_and_lost_where_none_is_kept(world):
    one = make_environment(world)
    first = one.reset(3)
    assert (first.step, first.action, first.probed) == (0, -2, -1)
    assert first.belief.value.min() >= 0  # the paper starts from the truth
    one.view(first.belief, WAIT)
    second = one.step(WAIT)
    assert second.belief.staleness.tolist() == [1] * one.fields
    one.view(second.belief._replace(value=np.full(one.fields, -1)), WAIT)
    third = one.probe(2)
    assert (third.probed, third.belief.value[2], third.belief.staleness[2]) == (2, third.answer, 0)
    assert third.answer >= 0
    assert np.delete(third.belief.value, 2).max() == -1
    released = make_environment(world, protocol="released")
    released.reset(3)
    assert released.step(WAIT).belief.value.max() == -1
    assert released.task is None
    assert one.task is not None


def test_what_an_agent_believes_is_what_is_scored():
    class Knowing(StandStill):
        def __init__(self, environment):
            self.environment = environment

        def update(self, observation):
            gold = self.environment.episodes.block.gold[0, : self.environment.fields]
            return observation.belief._replace(value=gold.copy())

    assert run_agent(Knowing, policies="no-probe", seeds="0:3").accuracy.tolist() == [1.0] * 9


def test_a_replayed_schedule_is_that_of_the_agent_s_own_episode():
    simple, yoked = (
        own_agent.play_own(NoteTaker, make_condition("tooldag", name), 5) for name in ("simple", "yoked")
    )
    assert simple.probe.max() >= 0
    assert yoked.probe[0].tolist() == simple.probe[0].tolist()
    frame = run_agent(NoteTaker, "tooldag", [custom_policy("mine", lambda view: view.s + 2)], seeds="0:2")
    assert frame.probes.tolist() == [7, 7]


def test_what_is_no_belief_action_or_field_is_refused_in_one_line():
    one = make_environment("tooldag", budget=1)
    with pytest.raises(InputError, match="call reset"):
        one.step(0)
    belief = one.reset(0).belief
    short, high = belief.value[:-1], belief.confidence + 1
    faults = {
        "value must hold 27 whole numbers": belief._replace(value=short),
        "confidence of field 0 is 101; accepted: 0..100": belief._replace(confidence=high),
        "must hold 27 whole": belief._replace(staleness=belief.staleness * 0.5),
        "risk 3": belief._replace(risk=3),
    }
    for message, wrong in faults.items():
        with pytest.raises(InputError, match=message):
            one.view(wrong, 0)
    with pytest.raises(InputError, match=r"action 9 is not a whole number in -1\.\.8"):
        one.step(9)
    with pytest.raises(InputError, match=r"field 27 is not a whole number in 0\.\.26"):
        one.probe(27)
    with pytest.raises(InputError, match="not ended"):
        one.finish(belief)
    one.probe(0)
    with pytest.raises(InputError, match="budget of 1 probes is spent"):
        one.probe(0)
    while not (seen := one.step(WAIT)).last:
        pass
    assert seen.step == one.horizon
    with pytest.raises(InputError, match="has ended"):
        one.step(WAIT)
    assert one.finish(seen.belief).measures["probes"].item() == 1
    with pytest.raises(InputError, match="is that of a profile"):
        run_agent(StandStill, name="typical", seeds="0:2")
    told = make_environment("tooldag", protocol="paper:structure=reported")
    belief = told.reset(0).belief
    with pytest.raises(InputError, match="c must hold 27 numbers from 0 to 1"):
        told.view(belief._replace(c=np.full(27, 1.5)), 0)
    own = np.linspace(0, 1, 27)
    assert told.view(belief._replace(c=own, d=None), 0).c.tolist() == own.tolist()
    assert told.view(belief._replace(c=own, d=None), 0).d.max() == 0


def test_the_environment_ends_at_the_goal_where_the_protocol_does():
    cell = make_condition("tooldag", "simple", "S1", PROTOCOLS["released"], "perfect")
    ended = simulate(cell, np.arange(12))
    assert ended["steps"].min() < cell.regime.horizon
    assert digests(cell, np.arange(12)) == ended["digest"].tolist()
    assert isinstance(Environment(replace(cell)).reset(0).belief, Belief)


def test_the_page_s_example_runs_as_it_stands():
    page = (ROOT / "book" / "provenance.md").read_text(encoding="utf-8")
    code = page.partition("### Your own agent")[2].partition("```python\n")[2].partition("```")[0]
    assert 'seeds="0:50"' in code
    names = {}
    exec(code.replace('seeds="0:50"', 'seeds="0:10"'), names)
    assert names["episodes"].groupby("policy").size().to_dict() == {"no-probe": 30, "simple": 30}
    assert np.isfinite(compare(names["episodes"], "simple", "no-probe").gain).all()
