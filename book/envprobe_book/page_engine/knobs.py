"""What each knob does to the engine's record: data, by which a page makes the record of any condition.

A number of the record that one knob decides has that knob's name; `READS` says which knobs decide the others.
Every combination of a number's knobs is made once by Python, and its bytes are kept, so no rule of
`kernel_params` is written again; `tests/test_page_engine.py` compares random conditions.
"""

import base64
from dataclasses import replace
from itertools import compress, product
from typing import Any

import numpy as np

from envprobe_book.page_engine.settings import HABITS, LEVELS, WEIGHTS, params_for
from envprobe_core.agents.profiles import PROFILES
from envprobe_core.conditions import LARGEST_SEED, Condition, titles
from envprobe_core.constant import VALUES
from envprobe_core.engine import batch, records
from envprobe_core.policies import POLICIES, THRESHOLD
from envprobe_core.protocols import PROTOCOLS, SWITCHES, parse_protocol, switch_values, turned
from envprobe_core.regimes import REGIMES
from envprobe_core.worlds import WORLDS
from envprobe_core.zero import REFERENCE

Values = dict[str, Any]
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

READS: dict[str, tuple[str, ...]] = {
    "world": (*LEVELS, "rates", "instances", "sight", "structure"),
    "protocol.distracts": ("noise",),
    "policy.gate": ("policy",),
    "policy.selector": ("policy", "selector"),
    "policy.has_selector": ("policy", "selector"),
    "policy.remembers": ("policy", "selector"),
    "policy.answered": ("policy", "answered"),
    "policy.arm": ("policy", "own_noise"),
    "policy.told_rate": ("policy", "given", "mutation", "rates"),
    "scoring.values_match": ("encoding", "writes"),
    "scoring.keeps_open": ("keeps_open", "copies_gold"),
    "scoring.bare": ("scribe", "copies_gold"),
}
"""The knobs that decide the numbers of a part, where it is not one knob of the number's own name."""


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


def decides(path: str) -> tuple[str, ...]:
    """The knobs that may decide a number of the record: those of its part, else the one that has its name.

    >>> decides("protocol.end"), decides("scoring.bare"), decides("world.fields") == READS["world"]
    (('end',), ('scribe', 'copies_gold'), True)
    """
    part, _, name = path.rpartition(".")
    while part and part not in READS:
        part = part.rpartition(".")[0]
    return READS.get(path) or READS.get(part) or tuple(knob for knob in KNOBS if knob == name)


def groups_of(world: str, places: dict[str, tuple[int, int]]) -> list[dict[str, Any]]:
    """The numbers that knobs decide: those of the same knobs together, with their bytes at all values.

    Of each group: `by`, the knobs; `spans`, [first byte, count] of each number; `rows`, the bytes of all
    spans in base64, each that occurs once; `of`, which row each combination has, the last knob's values next
    to each other.
    """
    made: dict[tuple[str, ...], Any] = {}  # bytes, [value of each knob ..., byte]
    together: dict[tuple[str, ...], list[tuple[tuple[int, int], Any]]] = {}
    for path, (at, size) in places.items():
        knobs = decides(path)
        if knobs not in made:
            choices = [KNOBS[name] for name in knobs]
            each = [bytes_at(world, dict(zip(knobs, values, strict=True))) for values in product(*choices)]
            made[knobs] = np.frombuffer(b"".join(each), np.uint8).reshape(*map(len, choices), -1)
        own = made[knobs][..., at : at + size]
        moves = [bool((own != own.take([0], axis)).any()) for axis in range(len(knobs))]
        moved = own[tuple(slice(None) if one else 0 for one in moves)].reshape(-1, size)
        together.setdefault(tuple(compress(knobs, moves)), []).append(((at, size), moved))
    together.pop((), None)
    groups = []
    for by, found in together.items():
        rows: dict[bytes, int] = {}
        table = np.concatenate([moved for _, moved in found], axis=1)
        of = [rows.setdefault(row.tobytes(), len(rows)) for row in table]
        packed = [base64.b64encode(row).decode() for row in rows]
        groups.append({"by": list(by), "spans": [span for span, _ in found], "rows": packed, "of": of})
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
    "by_slots": "scoring.accuracy",
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
        "constant": {
            "reference": [int(REFERENCE[0]), int(REFERENCE[-1]) + 1],
            "fields": records.FIELDS,
            "values": VALUES,
        },
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
