"""A world of somebody's own: one module, registered by one call; the engine is not touched."""

import types

import numpy as np
import pytest

import corridor
from envprobe_core import compare, play, run
from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import EpisodeBatch, simulate, walk
from envprobe_core.errors import InputError
from envprobe_core.protocols import RELEASED
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import MODULES, WORLDS, register
from envprobe_core.worlds.base import World


@pytest.fixture(scope="module")
def world():
    """The corridor, which stays registered: machine code knows it for as long as the process lives."""
    register(corridor)
    return corridor.NAME


def test_it_runs_beside_the_worlds_of_the_paper(world):
    frame = run(
        f"tooldag {world}", "no-probe periodic simple oracle", seeds="0:40", protocols="paper observed"
    )
    own = frame[frame["world"] == world]
    assert len(own) == 2 * 4 * 40
    assert own["success"].any()
    assert not own["success"].all()
    assert (
        own.query("policy == 'oracle'")["accuracy"].mean()
        > own.query("policy == 'no-probe'")["accuracy"].mean()
    )
    assert (own.query("policy == 'simple'")["probes"] <= 7).all()
    assert len(compare(own, "simple", "periodic", resamples=200))


def test_steps_give_what_the_kernel_gives(world):
    condition, seeds = make_condition(world, "simple"), np.arange(12)
    episodes = EpisodeBatch(condition, seeds)
    walk(episodes, episodes.decide)
    assert (episodes.recording().measures["digest"] == simulate(condition, seeds)["digest"]).all()
    assert len(play(world, "simple", seed=3)) > 0


def test_default_experiments_stay_the_papers(world):
    assert world in MODULES
    assert world not in WORLDS


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"plan": None}, "lacks plan"),
        ({"NAME": "corridor", "CODE": 9}, "world module other: the name 'corridor' is corridor's"),
        ({"NAME": "hall", "CODE": 1}, rf"'hall': code 1 is that of 'tooldag'; {corridor.CODE + 1} is free"),
        ({"NAME": "hall", "CODE": "9"}, "CODE '9' is not a whole number"),
        (
            {"NAME": "hall", "CODE": 9, "act": lambda world, state: 0},
            r"act\(world, state\) takes 2; accepted is act\(world, task, state, action\)",
        ),
    ],
)
def test_what_is_no_world_is_refused_in_one_line(world, change, says):
    other = types.ModuleType("other")
    vars(other).update({name: value for name, value in vars(corridor).items() if not name.startswith("__")})
    for name, value in change.items():
        delattr(other, name) if value is None else setattr(other, name, value)
    with pytest.raises(InputError, match=says):
        register(other)


@pytest.mark.parametrize(
    ("field", "rates", "says"),
    [(50, corridor.RATES, "50 fields; accepted are up to 48"), (3, {"mean": (0, 0, 0)}, "table 'released'")],
)
def test_what_no_world_can_be_made_of_is_refused_in_one_line(field, rates, says):
    fields = [("x", "spatial", 2, False)] * field
    with pytest.raises(InputError, match=says):
        World(("hall", "Hall", 9), REGIMES["S2"], RELEASED, rates, fields, ["go"], [0], {})


def test_voi_which_has_no_arithmetic_for_it_is_refused(world):
    with pytest.raises(InputError, match="policy voi has no rules for corridor"):
        run(world, "voi", seeds="0:2")


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        ("released", "released:accuracy=terminal,useful=answer,oracle=fields"),
        ("paper:accuracy=slots", "paper:accuracy=terminal"),
    ],
)
def test_the_public_codes_estimators_which_it_lacks_are_refused_in_a_line(world, protocol, said):
    with pytest.raises(InputError, match="is the public code's, which has no corridor") as refused:
        run(world, "oracle", protocols=protocol, seeds="0:2")
    assert "\n" not in str(refused.value)
    assert f"accepted: {said}, or a world of tooldag" in str(refused.value)


def test_as_released_with_plain_estimators_it_means_what_it_does_elsewhere(world):
    plain = "released:accuracy=terminal,useful=answer,oracle=fields"
    frame = run(world, "oracle no-probe", protocols=plain, seeds="0:30")
    means = frame.groupby("policy")[["accuracy", "probes"]].mean()
    assert (means["accuracy"] > 0).all()
    assert means["probes"]["oracle"] > 0
    with pytest.raises(InputError, match="keeps no table, and corridor has no rules"):
        run(world, "no-probe", profiles="scribe", protocols=plain, seeds="0:2")
