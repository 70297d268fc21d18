"""What each knob does to the engine's record: data, by which a page makes the record of any condition.

Of the record's numbers most depend on one knob, some on a few (`scoring.values_match` on the protocol's
encoding and on what the profile writes). Which depend on which is found by turning each knob at some random
settings; then every combination of a number's own knobs is made once by Python, and its bytes are kept. So no
rule of `setting_of` is written again, and `tests/test_page_engine.py` compares random conditions.
"""

import base64
import random
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np

from envprobe_book.page_engine.settings import HABITS, LEVELS, WEIGHTS, params_for
from envprobe_core.agents.profiles import PROFILES
from envprobe_core.conditions import LARGEST_SEED, Condition, titles
from envprobe_core.engine import batch, records
from envprobe_core.policies import POLICIES, THRESHOLD
from envprobe_core.protocols import PROTOCOLS, SWITCHES, parse_protocol, switch_values, turned
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import WORLDS

Values = dict[str, Any]
SETTINGS = 64  # at which each knob is turned; 16 missed a dependency, and 128 find no other
SEED = 31  # of their draws
MOST_COMBINATIONS = 4_000  # of the knobs of one number
SWITCHED = tuple(name for name, default in HABITS.items() if isinstance(default, bool | str))
NUMBERED = tuple(name for name in HABITS if name not in SWITCHED)
OWN = "the policy's own"  # where a condition says nothing

KNOBS: dict[str, list[Any]] = (
    {level: [0, 1, 2] for level in LEVELS}
    | {switch: list(switch_values(switch)) for switch in SWITCHES}
    | {"policy": list(POLICIES), "selector": [OWN, *POLICIES], "answered": [OWN, False, True]}
    | {"given": [OWN, False, True]}
    | {name: ["number", "true"] if name == "writes" else [False, True] for name in SWITCHED}
    | {"scores_all": [False, True]}
)
"""What has few values, each with all of them."""


def layout(dtype: np.dtype) -> dict[str, Any]:
    """A record's description: where each number lies, of what kind, in which shape.

    >>> layout(records.RECENT)["valid"]
    {'at': 20, 'type': 'i4', 'shape': [5]}
    """
    described = {}
    for name in dtype.names or ():
        kind, at = dtype.fields[name][:2]
        base, shape = kind.subdtype or (kind, ())
        if base.names:
            described[name] = {"at": at, "size": base.itemsize, "parts": layout(base)}
        else:
            described[name] = {"at": at, "type": base.str[1:]} | ({"shape": list(shape)} if shape else {})
    return described


def leaves(dtype: np.dtype, at: int = 0, path: str = "") -> dict[str, tuple[int, int]]:
    """Where each number or array of a record lies, by its path: first byte and how many."""
    found: dict[str, tuple[int, int]] = {}
    for name in dtype.names or ():
        kind, begin = dtype.fields[name][:2]
        inner = f"{path}{name}"
        if kind.names:
            found |= leaves(kind, at + begin, f"{inner}.")
        else:
            found[inner] = (at + begin, kind.itemsize)
    return found


def bytes_at(world: str, values: Values) -> bytes:
    """The record of a world in which some knobs have values; the others have their first."""
    held = {name: choices[0] for name, choices in KNOBS.items()} | values
    protocol = turned(PROTOCOLS["paper"], **{switch: held[switch] for switch in SWITCHES})
    own = {name: None if held[name] == OWN else held[name] for name in ("selector", "answered", "given")}
    condition = own | {
        "world": world,
        "policy": held["policy"],
        "regime": {"name": "S2"} | {level: held[level] for level in LEVELS},
        "protocol": protocol.name,
        "profile": {"name": "perfect"} | {name: held[name] for name in SWITCHED},
    }
    return params_for(condition, scores_all=held["scores_all"]).tobytes()


def dependencies(world: str, places: dict[str, tuple[int, int]]) -> dict[str, tuple[str, ...]]:
    """The knobs that each number depends on, those that depend on none left out."""
    luck, found = random.Random(SEED), {path: set() for path in places}
    for _ in range(SETTINGS):
        base = {}
        for name, choices in KNOBS.items():
            often = choices[0] == OWN and luck.random() < 0.5
            base[name] = OWN if often else luck.choice(choices)
        before = bytes_at(world, base)
        for name, choices in KNOBS.items():
            for value in choices:
                after = bytes_at(world, base | {name: value})
                if after != before:
                    for path, (at, size) in places.items():
                        if after[at : at + size] != before[at : at + size]:
                            found[path].add(name)
    return {path: tuple(name for name in KNOBS if name in knobs) for path, knobs in found.items() if knobs}


def groups_of(world: str, places: dict[str, tuple[int, int]]) -> list[dict[str, Any]]:
    """The numbers that change: those of the same knobs together, with their bytes at all values.

    Of each group: `by`, the knobs; `spans`, [first byte, count] of each number; `rows`, the bytes of all
    spans in base64, each that occurs once; `of`, which row each combination has, the last knob's values next
    to each other.
    """
    together: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for path, knobs in dependencies(world, places).items():
        together.setdefault(knobs, []).append(places[path])
    groups = []
    for knobs, spans in together.items():
        if prod(len(KNOBS[name]) for name in knobs) > MOST_COMBINATIONS:
            raise ValueError(f"too many knobs change one number of the record: {', '.join(knobs)}")
        rows: dict[bytes, int] = {}
        of = []
        for values in product(*(KNOBS[name] for name in knobs)):
            made = bytes_at(world, dict(zip(knobs, values, strict=True)))
            row = b"".join(made[at : at + size] for at, size in spans)
            of.append(rows.setdefault(row, len(rows)))
        packed = [base64.b64encode(row).decode() for row in rows]
        groups.append({"by": list(knobs), "spans": spans, "rows": packed, "of": of})
    return groups


def numbers_of(dtype: np.dtype) -> dict[str, Any]:
    """Where the numbers of each numeric knob stand: `[first byte, kind]`, written over the groups.

    The kinds: `i8` and `f8` as they are; `level32` and `level16`, what a probability's draws are compared
    with, an unsigned and a signed number of eight bytes. `unless` is a place at which a 1 forbids it.
    """
    at = {path: begin for path, (begin, _) in leaves(dtype).items()}
    numbers: dict[str, Any] = {
        "horizon": [[at["protocol.horizon"], "i8"]],
        "budget": [[at["policy.budget"], "i8"]],
        "threshold": [[at["policy.threshold"], "f8"]],
        "mutation_rate": [[at["world.mutation"], "level32"]],
    }
    for name in WEIGHTS:
        gate, selector = at[f"policy.gate.{name}"], at[f"policy.selector.{name}"]
        numbers[f"weights.{name}"] = [[gate, "f8"], [selector, "f8", {"unless": at["policy.has_selector"]}]]
    for name in NUMBERED:
        kind = "level16" if name in batch.BY_QUARTERS else "level32"
        kind = "f8" if name in batch.STRENGTHS else "i8" if isinstance(HABITS[name], int) else kind
        numbers[name] = [[at[f"habits.{name}"], kind]]
    return numbers


def describe(world: str) -> dict[str, Any]:
    """What a page needs to know of a world beside its module: knobs, and where results lie."""
    base = params_for({"world": world})
    places, at = leaves(base.dtype), {path: begin for path, (begin, _) in leaves(base.dtype).items()}
    return {
        "title": WORLDS[world],
        "base": base64.b64encode(bytes_at(world, {})).decode(),
        "groups": groups_of(world, places),
        "numbers": numbers_of(base.dtype),
        "reads": {name: at[path] for name, path in READ.items()},
        "episode": {"size": batch.episode_dtype(world).itemsize, "parts": layout(batch.episode_dtype(world))},
    }


READ = {
    "fields": "world.fields",
    "horizon": "protocol.horizon",
    "by_slots": "scoring.by_slots",
    "budget": "policy.budget",
}
"""What a page reads out of a record, and where it stands."""


def common() -> dict[str, Any]:
    """What all worlds share: names with what they stand for, ranges, records and numbers."""
    regimes = {
        name: {level: getattr(regime, level) for level in LEVELS}
        | {"horizon": regime.horizon, "title": regime.title}
        for name, regime in REGIMES.items()
    }
    policies = {
        name: {"title": policy.title, "threshold": THRESHOLD if policy.has_threshold else None}
        | {"quarters": {p: int(policy.scaled_threshold(4.0, PROTOCOLS[p])) for p in ("paper", "released")}}
        | {"replays": policy.replays}
        for name, policy in POLICIES.items()
    }
    protocols = {
        name: {switch: getattr(protocol, switch) for switch in SWITCHES}
        for name, protocol in PROTOCOLS.items()
    }
    profiles = {name: {habit: getattr(one, habit) for habit in HABITS} for name, one in PROFILES.items()}
    return {
        "worlds": WORLDS,
        "titles": titles(),
        "knobs": KNOBS,
        "own": OWN,
        "regimes": regimes,
        "levels": LEVELS,
        "policies": policies,
        "protocols": protocols,
        "profiles": profiles,
        "ranges": {name: 100 if isinstance(HABITS[name], int) else 1 for name in NUMBERED},
        "whole": [name for name in NUMBERED if isinstance(HABITS[name], int)],
        "atMost": {"spread": "confidence"},
        "weights": WEIGHTS,
        "budgets": [replace(REGIMES["S2"], horizon=h).budget for h in range(records.LONGEST_HORIZON + 1)],
        "seeds": _seeds(),
        "largestSeed": str(LARGEST_SEED),
        "entry": {"size": records.ENTRY.itemsize, "parts": layout(records.ENTRY)},
        "measures": {"size": records.MEASURES.itemsize, "parts": layout(records.MEASURES)},
        "byField": batch.BY_FIELD,
        "none": records.NONE,
        "wait": records.WAIT,
        "stages": {name: getattr(batch.kernel, stage) for name, stage in STAGES.items()},
    }


STAGES = {
    "begin": "BEGIN",
    "propose": "PROPOSE",
    "record": "RECORD",
    "sense": "SENSE",
    "decide": "DECIDE",
    "advance": "ADVANCE",
    "close": "CLOSE",
    "measure": "MEASURE",
    "toTheEnd": "TO_THE_END",
    "whole": "WHOLE",
}
"""What a page calls the stages of a step."""


def _seeds() -> dict[str, dict[str, list[int]]]:
    """The default seeds of each regime, first and past, by the protocol's switch."""
    found: dict[str, dict[str, list[int]]] = {}
    for name, regime in REGIMES.items():
        for value in switch_values("seeds"):
            protocol = parse_protocol(f"paper:seeds={value}")
            seeds = Condition("tooldag", POLICIES["no-probe"], regime, protocol).default_seeds()
            found.setdefault(name, {})[value] = [int(seeds[0]), int(seeds[-1]) + 1]
    return found
