"""Names, seeds, budgets and protocols are read strictly, and refusals say what is accepted."""

import re
from dataclasses import fields

import numpy as np
import pytest

from envprobe_core import run
from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.cells import first_seed, make_cell, names, parse_seeds, read_seeds
from envprobe_core.errors import InputError
from envprobe_core.protocols import (
    OBSERVED,
    PAPER,
    RELEASED,
    SWITCHES,
    Protocol,
    parse_protocol,
    switch_values,
)


def test_seeds() -> None:
    assert parse_seeds("0:220").tolist() == list(range(220))
    assert parse_seeds("7").tolist() == [7]
    assert parse_seeds("3:5, 9, 0:2").tolist() == [3, 4, 9, 0, 1]
    assert parse_seeds(str(2**63 - 1)).dtype == np.int64


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not FIRST:PAST"),
        ("a:b", "is not FIRST:PAST"),
        ("-1:4", "is not FIRST:PAST"),
        ("1.5", "is not FIRST:PAST"),
        ("0:", "is not FIRST:PAST"),
        ("4:4", "the range 4:4 is empty"),
        ("5:4", "the range 5:4 is empty"),
        ("0:3,2", "a seed stands twice"),
        (str(2**63), "exceeds the largest seed"),
        ("0:1000000000000", "1000000000000 seeds; at most 10000000"),
        ("0:9000000,9000000:18000000", "18000000 seeds; at most 10000000"),
        ("٣", "is not FIRST:PAST"),
    ],
)
def test_bad_seeds(text: str, says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)) as refused:
        parse_seeds(text)
    assert repr(text) in str(refused.value)


def test_cells_know_their_defaults() -> None:
    cell = make_cell("tooldag", "minus-c", "S2", RELEASED)
    assert cell.budget_in_force == 7
    assert cell.base_threshold == 1.5
    assert cell.threshold_in_force == 1.125
    assert cell.default_seeds().tolist() == list(range(42, 262))
    assert make_cell("tooldag", "simple").default_seeds().tolist() == list(range(220))
    assert make_cell("tooldag", "simple", "S1", RELEASED).default_seeds().tolist() == list(range(1000, 1030))
    assert make_cell("tooldag", "simple", "R4").default_seeds().tolist() == list(range(2000, 2060))
    assert make_cell("tooldag", "random").base_threshold is None
    assert make_cell("tooldag", "random").threshold_in_force == 0.0
    assert make_cell("tooldag", "simple", budget=0, threshold=0.5).key == {
        "world": "tooldag",
        "policy": "simple",
        "regime": "S2",
        "protocol": "paper",
        "profile": "typical",
        "budget": 0,
        "threshold": 0.5,
    }


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"world": "moon"}, "unknown world 'moon'; accepted: tooldag, objectstate, graphnav"),
        ({"policy": "best"}, "unknown policy 'best'; accepted: no-probe"),
        ({"regime": "S9"}, "unknown regime 'S9'; accepted: S1, S2"),
        ({"profile": "angel"}, "unknown profile 'angel'; accepted: typical, perfect"),
        ({"budget": -1}, "budget -1 is not in 0..30"),
        ({"budget": 31}, "budget 31 is not in 0..30"),
        ({"threshold": float("nan")}, "threshold nan is not a finite number"),
        ({"threshold": float("inf")}, "threshold inf is not a finite number"),
        (
            {"policy": "random", "threshold": 1.0},
            "policy random has no threshold; those that have one: simple",
        ),
    ],
)
def test_bad_cells(arguments: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        make_cell(**({"world": "tooldag", "policy": "simple"} | arguments))


def test_protocols_differ_as_their_tables_say() -> None:
    assert Protocol("paper") == PAPER
    changed = [switch for switch in SWITCHES if getattr(OBSERVED, switch) != getattr(PAPER, switch)]
    assert changed == ["start"]
    for switch in SWITCHES:
        values = switch_values(switch)
        assert len(values) == 2
        assert (getattr(PAPER, switch), getattr(RELEASED, switch)) == values
    assert {field.name for field in fields(Protocol)} == {"name", *SWITCHES}


def test_protocols_are_read_with_their_switches() -> None:
    assert parse_protocol("released") is RELEASED
    turned = parse_protocol("paper:end=success,clock=stands")
    assert (turned.clock, turned.end, turned.start) == ("stands", "success", "gold")
    assert turned.name == "paper:clock=stands,end=success"
    assert parse_protocol(turned.name) == turned
    assert parse_protocol("paper:clock=runs") is PAPER


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("papr", "unknown protocol 'papr'; accepted: paper, observed, released"),
        ("paper:clock", "'clock' is not SWITCH=VALUE"),
        ("paper:colour=red", "unknown switch 'colour' of a protocol; accepted: start"),
        ("paper:clock=slow", "switch clock accepts runs or stands, not 'slow'"),
    ],
)
def test_bad_protocols(text: str, says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        parse_protocol(text)


def test_a_protocol_value_is_checked_in_code_too() -> None:
    with pytest.raises(InputError, match="protocol switch end: 'never' is not one of horizon, success"):
        Protocol("x", end="never")


@pytest.mark.parametrize(
    "bad",
    [
        {"omit": 1.1},
        {"slip": -0.1},
        {"quit": float("nan")},
        {"confidence": 101},
        {"fade": -1},
        {"confidence": 50, "spread": 60},
        {"writes": "yes"},
    ],
)
def test_bad_profiles(bad: dict[str, object]) -> None:
    with pytest.raises(InputError, match="profile"):
        AgentProfile("x", **bad)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("paper released", ("paper", "released")),
        ("paper, released", ("paper", "released")),
        ("released paper:clock=stands,end=success", ("released", "paper:clock=stands,end=success")),
        (("simple", "cd"), ("simple", "cd")),
    ],
)
def test_names(given, expected):
    assert names(given) == expected


def test_seeds_are_given_or_the_cells_own():
    assert read_seeds("default") is None
    assert read_seeds("3:6").tolist() == [3, 4, 5]
    assert first_seed("7:9", "S2") == 7
    assert first_seed("default", "S3") == 1000
    own = run("tooldag", "no-probe", protocols="paper released")
    seeds = own.groupby("protocol")["seed"].agg(["min", "max", "size"])
    assert seeds.loc["paper"].tolist() == [0, 219, 220]
    assert seeds.loc["released"].tolist() == [42, 261, 220]
    with pytest.raises(InputError, match="accepted"):
        run("moon", seeds="0:3")
