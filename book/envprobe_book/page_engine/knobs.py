"""What a page needs to make the engine's record of any condition: data that Python writes for `engine.js`.

A number of the record that one knob decides stands at one place, and the page writes it there (`NUMBERS`).
What several knobs decide together, as the sizes of a world, is made once at every combination (`READS`), and
its bytes are kept: no rule of `kernel_params` is written again. `tests/test_page_engine.py` compares
random conditions.
"""

import base64
from dataclasses import replace
from itertools import compress, product
from math import prod
from typing import Any

import numpy as np

from envprobe_book.page_engine.settings import HABITS, LEVELS, WEIGHTS, params_for
from envprobe_core.agents.profiles import PROFILES, WRITES
from envprobe_core.compiled import records
from envprobe_core.conditions import LARGEST_SEED, Condition, titles
from envprobe_core.constant import VALUES
from envprobe_core.engine import batch
from envprobe_core.policies import POLICIES, THRESHOLD
from envprobe_core.protocols import PROTOCOLS, SWITCHES, parse_protocol, switch_values, turned
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import WORLDS, base
from envprobe_core.zero import REFERENCE

Values = dict[str, Any]
OWN = "the policy's own"  # where a condition says nothing
PERCENTS = tuple(name for name, habit in HABITS.items() if type(habit) is int)
RATES = tuple(name for name, habit in HABITS.items() if type(habit) is float)

KNOBS: dict[str, list[Any]] = (
    {level: [0, 1, 2] for level in LEVELS}
    | {switch: list(switch_values(switch)) for switch in SWITCHES}
    | {"policy": list(POLICIES), "selector": [OWN, *POLICIES]}
    | {"answered": [OWN, False, True], "given": [OWN, False, True], "writes": list(WRITES)}
    | {name: [False, True] for name, habit in HABITS.items() if type(habit) is bool}
    | {"scores_all": [False, True]}
)
"""What has few values, each with all of them."""

READS: dict[str, tuple[str, ...]] = {
    "world": (*LEVELS, "rates"),
    "policy.gate": ("policy",),
    "policy.selector": ("policy", "selector"),
    "policy.answered": ("policy", "answered"),
    "policy.given": ("policy", "given"),
    "policy.arm": ("policy", "own_noise"),
}
"""The parts of the record that several knobs, or a name, decide."""

NUMBERS: dict[str, tuple[str, str]] = (
    {"horizon": ("protocol.horizon", "i8"), "scores_all": ("protocol.scores_all", "index")}
    | {"budget": ("policy.budget", "i8"), "policy.threshold": ("policy.threshold", "f8")}
    | {"mutation_rate": ("world.mutation", "level32")}
    | {f"weights.{name}": (f"policy.gate.{name}", "f8") for name in WEIGHTS}
    | {
        switch: (
            f"{'world' if switch in base.SWITCHES else 'protocol'}.{switch}",
            "i8" if all(map(str.isdigit, switch_values(switch))) else "index",
        )
        for switch in SWITCHES
    }
    | {name: (f"habits.{name}", "i8" if name in PERCENTS else "index") for name in HABITS}
    | {name: (f"habits.{name}", "level16" if name in batch.BY_QUARTERS else "level32") for name in RATES}
    | {name: (f"habits.{name}", "f8") for name in batch.STRENGTHS}
)
"""Of each knob the number that it alone decides, and how it is written: as a whole number, a float, the
place of its value, or what a probability's draws are compared with. It is written over `READS`."""


def layout(dtype: np.dtype, at: int = 0, path: str = "") -> dict[str, dict[str, Any]]:
    """Where each number or array of a record lies, by its path; its type, and of an array its shape.

    >>> layout(records.RECENT)["valid"]
    {'at': 20, 'type': 'i4', 'shape': [5]}
    """
    described: dict[str, dict[str, Any]] = {}
    for name in dtype.names or ():
        kind, begin = dtype.fields[name][:2]
        one, shape = kind.subdtype or (kind, ())
        if one.names:
            described |= layout(one, at + begin, f"{path}{name}.")
        else:
            number = {"at": at + begin, "type": one.str[1:]}
            described[f"{path}{name}"] = number | ({"shape": list(shape)} if shape else {})
    return described


def bytes_at(world: str, values: Values) -> bytes:
    """The record of a world in which some knobs have values; the others have their first."""
    held = {name: choices[0] for name, choices in KNOBS.items()} | values
    protocol = turned(PROTOCOLS["paper"], **{switch: held[switch] for switch in SWITCHES})
    asked = {name: None if held[name] == OWN else held[name] for name in ("selector", "answered", "given")}
    habits = {name: held[name] for name in HABITS if name in KNOBS}
    condition = asked | {
        "world": world,
        "policy": held["policy"],
        "regime": {"name": "S2"} | {level: held[level] for level in LEVELS},
        "protocol": protocol.name,
        "profile": {"name": "perfect"} | habits,
    }
    return params_for(condition, scores_all=held["scores_all"]).tobytes()


def groups_of(world: str, places: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts of `READS`: numbers that the same knobs move together, with their bytes at all values.

    Of each group: `by`, the knobs; `spans`, [first byte, count] of each number; `rows`, the bytes of all
    spans in base64, each that occurs once; `of`, which row each combination has, the last knob's values next
    to each other.
    """
    together: dict[tuple[str, ...], list[tuple[list[int], Any]]] = {}
    for part, knobs in READS.items():
        choices = [KNOBS[name] for name in knobs]
        each = [bytes_at(world, dict(zip(knobs, values, strict=True))) for values in product(*choices)]
        made = np.frombuffer(b"".join(each), np.uint8).reshape(*map(len, choices), -1)
        for path, number in places.items():
            if path != part and not path.startswith(f"{part}."):
                continue
            at, size = number["at"], np.dtype(number["type"]).itemsize * prod(number.get("shape", [1]))
            bytes_of = made[..., at : at + size]
            moves = [bool((bytes_of != bytes_of.take([0], axis)).any()) for axis in range(len(knobs))]
            moved = bytes_of[tuple(slice(None) if one else 0 for one in moves)].reshape(-1, size)
            if any(moves):
                together.setdefault(tuple(compress(knobs, moves)), []).append(([at, size], moved))
    groups = []
    for by, numbers in together.items():
        rows: dict[bytes, int] = {}
        table = np.concatenate([moved for _, moved in numbers], axis=1)
        of = [rows.setdefault(row.tobytes(), len(rows)) for row in table]
        packed = [base64.b64encode(row).decode() for row in rows]
        groups.append({"by": list(by), "spans": [span for span, _ in numbers], "rows": packed, "of": of})
    return groups


def describe(world: str) -> dict[str, Any]:
    """What a page needs to know of a world beside its module: knobs, and where results lie."""
    places, episode = layout(params_for({"world": world}).dtype), batch.episode_dtype(world)
    return {
        "title": WORLDS[world],
        "base": base64.b64encode(bytes_at(world, {})).decode(),
        "groups": groups_of(world, places),
        "numbers": {knob: [places[path]["at"], how] for knob, (path, how) in NUMBERS.items()},
        "reads": {name: places[path]["at"] for name, path in READ.items()},
        "episode": {"size": episode.itemsize, "parts": layout(episode)},
    }


READ = {
    "fields": "world.fields",
    "horizon": "protocol.horizon",
    "by_slots": "protocol.accuracy",
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
        "ranges": dict.fromkeys(PERCENTS, 100) | dict.fromkeys(RATES, 1),
        "whole": PERCENTS,
        "atMost": {"spread": "confidence"},
        "weights": WEIGHTS,
        "budgets": [replace(REGIMES["S2"], horizon=h).budget for h in range(records.LONGEST_HORIZON + 1)],
        "seeds": _seeds(),
        "constant": {
            "reference": [int(REFERENCE[0]), int(REFERENCE[-1]) + 1],
            "fields": records.FIELDS,
            "values": VALUES,
        },
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
