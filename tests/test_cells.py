"""Names, seeds and protocols are read strictly, and refusals say what is accepted."""

import re
from dataclasses import fields

import numpy as np
import pytest

from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.conditions import first_seed, make_condition, names, parse_seeds, read_seeds
from envprobe_core.errors import InputError
from envprobe_core.protocols import DEPARTURES, OBSERVED, PAPER, RELEASED, SWITCHES, Protocol, parse_protocol
from envprobe_core.protocols import switch_values as values_of


def test_seeds_are_given_or_the_cells_own():
    assert parse_seeds("3:5, 9, 0:2").tolist() == [3, 4, 9, 0, 1]
    assert parse_seeds(str(2**63 - 1)).dtype == np.int64
    assert (read_seeds("default"), read_seeds("3:6").tolist()) == (None, [3, 4, 5])
    assert (first_seed("7:9", "S2"), first_seed("default", "S3")) == (7, 1000)
    for given, first, past in (
        (("S2", RELEASED), 42, 262), (("S2", PAPER), 0, 220), (("S1", RELEASED), 1000, 1030),
        (("R4",), 2000, 2060),
    ):  # fmt: skip
        assert make_condition("tooldag", "simple", *given).default_seeds().tolist() == list(
            range(first, past)
        )


def test_cells_know_what_is_in_force():
    condition = make_condition("tooldag", "minus-c", "S2", RELEASED)
    assert (condition.budget_in_force, condition.key["threshold"], condition.threshold_in_force) == (
        7,
        1.5,
        1.125,
    )
    bare = make_condition("tooldag", "random")
    assert (bare.key["threshold"], bare.threshold_in_force) == (None, 0.0)
    key = {"world": "tooldag", "policy": "simple", "regime": "S2", "protocol": "paper", "profile": "typical"}
    key |= {"budget": 0, "threshold": 0.5}
    assert make_condition("tooldag", "simple", budget=0, threshold=0.5).key == key


@pytest.mark.parametrize(
    ("make", "given", "says"),
    [
        *((parse_seeds, bad, f"seeds {bad!r}: {bad!r} is not FIRST:PAST or a number (as in 0:220")
          for bad in ("", "a:b", "-1:4", "1.5", "0:", "٣", "1_0")),
        (parse_seeds, "4:4", "seeds '4:4': the range 4:4 is empty; PAST must exceed FIRST"),
        (parse_seeds, "5:4", "the range 5:4 is empty"),
        (parse_seeds, "0:3,2", "seeds '0:3,2': a seed stands twice"),
        (parse_seeds, str(2**63), f"{2**63} exceeds the largest seed {2**63 - 1}"),
        (parse_seeds, "0:1000000000000", "1000000000000 seeds; at most 10000000"),
        (parse_seeds, "0:9000000,9000000:18000000", "18000000 seeds; at most 10000000"),
        (parse_seeds, "0:3,800499:800600", "800000..800499 are kept for learning the zero"),
        (parse_protocol, "papr", "unknown protocol 'papr'; accepted: paper (as written), observed ("),
        (parse_protocol, "paper:clock", "'clock' is not SWITCH=VALUE"),
        (parse_protocol, "paper:colour=red", "unknown protocol switch 'colour'; accepted: start"),
        (parse_protocol, "paper:clock=slow", "protocol switch clock accepts runs or stands, not 'slow'"),
        (parse_protocol, "paper:clock=runs,clock=stands", "turns 'clock' twice; give each switch once"),
        (lambda policy: make_condition("tooldag", policy, threshold=1.0), "random",
         "policy random has no threshold; those that have one: simple"),
        *((lambda bad: AgentProfile("x", **bad), bad, "profile") for bad in (
            {"omit": 1.1}, {"slip": -0.1}, {"quit": float("nan")}, {"confidence": 101}, {"fade": -1},
            {"confidence": 50, "spread": 60}, {"writes": "yes"},
        )),
    ],
)  # fmt: skip
def test_what_is_not_accepted_is_told(make, given, says):
    with pytest.raises(InputError, match=re.escape(says)):
        make(given)


def test_protocols_differ_as_their_tables_say_and_are_read_with_their_switches():
    assert Protocol("paper") == PAPER
    assert [one for one in SWITCHES if getattr(OBSERVED, one) != getattr(PAPER, one)] == ["start"]
    for switch in DEPARTURES:
        assert (getattr(PAPER, switch), getattr(RELEASED, switch)) == values_of(switch)
    assert {field.name for field in fields(Protocol)} == {"name", *SWITCHES}
    assert parse_protocol("released") is RELEASED
    assert parse_protocol("paper:clock=runs") is PAPER
    turned = parse_protocol("paper:end=success,clock=stands")
    assert (turned.clock, turned.end, turned.start) == ("stands", "success", "gold")
    assert turned.name == "paper:clock=stands,end=success"
    assert parse_protocol(turned.name) == turned


def test_names_are_split_at_blanks_and_commas_but_for_switches():
    for given, expected in {
        "paper, released": ("paper", "released"),
        "released paper:clock=stands,end=success": ("released", "paper:clock=stands,end=success"),
        ("simple", "cd"): ("simple", "cd"),
    }.items():
        assert names(given) == expected
