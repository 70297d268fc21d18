"""Switches of a protocol in words: what one does who turns one, and what is turned in an experiment."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar

from envprobe_core.errors import InputError
from envprobe_core.protocols import TITLES

Words = TypeVar("Words")
OTHERS = {  # switches that no one turns on the way from text to code
    "wrong": "{}% of answers wrong",
    "delay": "answers {} steps late",
    "failing": "{}% of calls failing",
    "seeds": "with the {} seeds",
}


@cache
def deeds() -> dict[str, dict[str, list[str]]]:
    """The switches between text and code in words: of each value what one does, the doing, what it means."""
    return json.loads((Path(__file__).parent / "switches.json").read_text(encoding="utf-8"))


def words_of(switch: str, table: Mapping[str, Words], place: str) -> Words:
    """What a table says of a switch; one that it lacks is refused.

    >>> words_of("delay", OTHERS, "OTHERS")
    'answers {} steps late'
    """
    if switch not in table:
        there = ", ".join(table)
        raise InputError(f"protocol switch {switch!r} has no words in {place}; there are those of {there}")
    return table[switch]


def deed(switch: str, value: str) -> str:
    """What one does who sets a switch of a protocol to a value.

    >>> deed("clock", "stands")
    'stop the world to probe'
    """
    return words_of(switch, deeds(), "switches.json")[value][0]


def protocol_title(name: str) -> str:
    """How pages call a protocol, what is turned in it included; another text as it is.

    >>> protocol_title("released:memory=kept,wrong=20"), protocol_title("paper:delay=1")
    ('as released, keeping the table, 20% of answers wrong', 'as written, answers 1 step late')
    """
    base, _, turned = name.partition(":")
    if base not in TITLES:
        return name
    return ", ".join([TITLES[base], *(_turned(*one.split("=")) for one in filter(None, turned.split(",")))])


def _turned(switch: str, value: str) -> str:
    if switch in OTHERS:
        return OTHERS[switch].format(value).replace(" 1 steps", " 1 step")
    return words_of(switch, deeds(), "switches.json, nor in OTHERS")[value][1]
