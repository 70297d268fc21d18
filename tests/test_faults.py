"""Answers that are wrong or late, and calls that fail: what each switch does, alone and with the others."""

import numpy as np
import pytest

from envprobe_core.algorithm1 import EnvProbeSimple, play_episode
from envprobe_core.compiled.records import CERTAIN, NONE, UNKNOWN, WAIT
from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import EpisodeBatch, simulate, simulate_logged
from envprobe_core.environment import Environment, NamedPolicy, SimulatedAgent, make_environment
from envprobe_core.protocols import DEPARTURES, FAULTS, PROTOCOLS, SWITCHES, parse_protocol, switch_values
from envprobe_core.worlds import WORLDS

SEEDS = np.array([0, 1, 42])
MANY = np.arange(400)
TURNED = ("wrong=40", "delay=2", "failing=20", "wrong=20,delay=8,failing=40")


def test_every_named_protocol_has_the_faults_off_and_they_are_no_departure_of_the_code():
    assert {getattr(one, fault) for one in PROTOCOLS.values() for fault in FAULTS} == {"0"}
    assert set(SWITCHES) == {*DEPARTURES, *FAULTS}
    assert all(switch_values(fault)[0] == "0" for fault in FAULTS)


@pytest.mark.parametrize("turned", TURNED)
@pytest.mark.parametrize("world", WORLDS)
def test_algorithm_1_on_objects_gives_the_kernel_s_digests(world, turned):
    for name in PROTOCOLS:
        protocol = parse_protocol(f"{name}:{turned}")
        for policy in ("simple", "periodic", "voi"):
            cell = make_condition(world, policy, protocol=protocol)
            one = Environment(cell)
            chooser = EnvProbeSimple() if policy == "simple" else NamedPolicy(one)
            played = [play_episode(one, SimulatedAgent(one), chooser, int(seed)) for seed in SEEDS]
            found = [recording.measures["digest"].item() for recording in played]
            assert found == simulate(cell, SEEDS)["digest"].tolist(), (name, policy)


@pytest.mark.parametrize("turned", ["wrong=40", "delay=4"])
@pytest.mark.parametrize("policy", ["no-probe", "placebo"])
def test_a_fault_of_answers_is_nothing_to_an_agent_that_gets_none(policy, turned):
    for world in WORLDS:
        plain, faulty = (
            simulate(make_condition(world, policy, protocol=parse_protocol(name)), SEEDS)["digest"].tolist()
            for name in ("paper", f"paper:{turned}")
        )
        assert plain == faulty


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("wrong", switch_values("wrong"))
def test_an_answer_is_another_value_of_the_field_as_often_as_the_switch_says(world, wrong):
    cell = make_condition(world, "simple", protocol=parse_protocol(f"paper:wrong={wrong}"))
    episodes = EpisodeBatch(cell, MANY)
    field = int(np.argmax(cell.built.domain[: int(episodes.block.fields.min())]))
    episodes.propose()
    episodes.record()
    truth = episodes.block.gold[:, field].copy()
    episodes.advance(np.full(len(MANY), field))
    told = episodes.block.answer
    assert ((told >= 0) & (told < cell.built.domain[field])).all()
    assert (episodes.block.told == field).all()
    assert (episodes.block.table.value[:, field] == told).all()
    assert (episodes.block.table.confidence[:, field] == CERTAIN).all()
    assert (episodes.logs["answer"][:, 0] == truth).all()  # the record keeps the truth
    rate = int(wrong) / 100
    share, error = (told != truth).mean(), np.sqrt(rate * (1 - rate) / len(MANY))
    assert abs(share - rate) <= 4 * error


@pytest.mark.parametrize("delay", switch_values("delay"))
def test_an_answer_comes_so_many_steps_later_as_the_value_was_when_asked(delay):
    environment, late = make_environment("objectstate", protocol=f"paper:delay={delay}"), int(delay)
    changed = 0
    for seed in range(40):
        environment.reset(seed)
        gold = environment.episodes.block.gold[0]
        asked = {}
        for step in range(environment.horizon):
            if step in (0, 1, 5):
                asked[step] = (step, int(gold[step]))
                seen = environment.probe(step)
            else:
                seen = environment.step(WAIT)
            field, value = asked.get(step - late, (NONE, UNKNOWN))
            assert (seen.probed, seen.answer) == (field, value)
            if field != NONE:
                assert (seen.belief.value[field], seen.belief.staleness[field]) == (value, late)
                changed += value != gold[field]
    assert changed > 0 or late == 0


@pytest.mark.parametrize("world", WORLDS)
def test_a_failed_call_is_a_no_op_that_leaves_a_kept_table_as_it_was(world):
    cell = make_condition(world, "no-probe", protocol=parse_protocol("paper:failing=40"), profile="perfect")
    sound = simulate_logged(make_condition(world, "no-probe", profile="perfect"), MANY)
    found = simulate_logged(cell, MANY)
    waits = found.action == WAIT
    assert not found.acted[waits].any()
    first = waits[:, 0]  # an agent that errs in nothing has something to do at the start
    assert abs(first.mean() - 0.4) < 4 * np.sqrt(0.4 * 0.6 / len(MANY))
    same = (found.belief[:, 1:-1] == found.belief[:, :-2]).all(axis=2) & waits[:, 1:]
    assert same[waits[:, 1:]].mean() > 0.5
    assert found.success.mean() < sound.success.mean()


def test_as_released_a_failed_call_reports_nothing_and_shuts_every_gate_that_reads_the_report():
    for world in WORLDS:
        protocol = parse_protocol("released:failing=40")
        found = simulate_logged(make_condition(world, "simple", protocol=protocol), MANY)
        silent = (found.belief[:, :-1] == UNKNOWN).all(axis=2) & (found.action == WAIT)
        assert 0.3 < silent[:, 0].mean() < 0.5
        assert (found.probe[silent] == NONE).all()
