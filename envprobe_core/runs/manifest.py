"""What a run is: what is asked for, and the manifest that states it with its results.

A manifest holds no times, paths or machine names, so that the same run twice gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
import pydantic
from pydantic import BaseModel, Field, StrictBool, StrictInt, ValidationError

from envprobe_core import __version__
from envprobe_core.agents.model import ModelAgent
from envprobe_core.conditions import Condition, Seeds, make_condition, parse_seeds
from envprobe_core.errors import InputError, first_fault, in_one_line
from envprobe_core.files import atomic_write, read_whole
from envprobe_core.policies import find_policy
from envprobe_core.protocols import parse_protocol
from envprobe_core.sources import engine_sha256, package_versions
from envprobe_core.worlds import find_world

MANIFEST, EPISODES = "manifest.json", "episodes.parquet"
FORMAT = "envprobe-run/3"
ASKED = ("inputs", "profile", "protocols", "engine", "versions")  # of a manifest: stated before a run begins
LONGEST_NAME = 80  # of a protocol, in the name of a file


@dataclass(frozen=True)
class RunInputs:
    """What a run is asked for, checked and in one form: a name that comes twice counts once."""

    __pydantic_config__ = pydantic.ConfigDict(extra="forbid")

    worlds: list[str]  # names, in the order asked for, here and below
    policies: list[str]
    regime: str = "S2"
    protocols: list[str] = field(default_factory=lambda: ["paper"])
    profile: str = "typical"
    budget: StrictInt | None = None  # probes an episode may spend, or None for the regime's
    threshold: float | None = None  # the gate's, or None for the paper's
    seeds: str | None = None  # as `conditions.parse_seeds` reads them, or None for each condition's own
    logs: str = "full"  # `full`, `none` or `sample:N`
    agent: ModelAgent | None = None  # None for the simulated one

    def __post_init__(self) -> None:
        """Bring names, numbers and seeds into their form."""
        form = {
            "worlds": list(dict.fromkeys(map(find_world, self.worlds))),
            "policies": list(dict.fromkeys(find_policy(name).name for name in self.policies)),
            "protocols": list(dict.fromkeys(parse_protocol(text).name for text in self.protocols)),
            "threshold": None if self.threshold is None else float(self.threshold),
            "seeds": None if self.seeds is None else seed_ranges(np.sort(parse_seeds(self.seeds))),
        }
        for name, value in form.items():
            object.__setattr__(self, name, value)
        if not re.fullmatch(r"full|none|sample:[1-9]\d{0,17}", self.logs, re.ASCII):
            raise InputError(f"logs {self.logs!r}: accepted are full, none, and sample:N with N from 1")
        if not self.conditions:
            raise InputError("a run needs at least one world, one policy and one protocol")

    @pydantic.model_serializer
    def as_dict(self) -> dict[str, Any]:
        """What a manifest states; the simulated agent goes without saying."""
        stated = {one.name: getattr(self, one.name) for one in fields(self)}
        if self.agent is None:
            del stated["agent"]
        else:
            stated["agent"] = self.agent.as_dict()
            del stated["profile"]  # a language model has none
        return stated

    @cached_property
    def conditions(self) -> list[Condition]:
        """The conditions: for each protocol and world, every policy."""
        numbers = (self.budget, self.threshold)
        conditions = [
            make_condition(world, policy, self.regime, protocol, self.profile, *numbers)
            for protocol in map(parse_protocol, self.protocols)
            for world in self.worlds
            for policy in self.policies
        ]
        return (
            [replace(condition, profile=self.agent.profile) for condition in conditions]
            if self.agent
            else conditions
        )

    @cached_property
    def seeds_of_conditions(self) -> list[Seeds]:
        """Each condition's seeds, ascending."""
        if self.seeds is None:
            return [np.sort(condition.default_seeds()) for condition in self.conditions]
        return [parse_seeds(self.seeds)] * len(self.conditions)

    @cached_property
    def logged_seeds(self) -> list[Seeds]:
        """The seeds of each condition whose episodes are logged, its first ones."""
        most = None if self.logs == "full" else int(self.logs.partition(":")[2] or 0)
        return [seeds[:most] for seeds in self.seeds_of_conditions]


def seed_ranges(seeds: Seeds) -> str:
    """Write ascending seeds as `parse_seeds` reads them, in as few ranges as there can be."""
    breaks = np.flatnonzero(np.diff(seeds) != 1) + 1
    runs = ((int(run[0]), int(run[-1])) for run in np.split(seeds, breaks))
    return ",".join(f"{first}:{last + 1}" if last > first else str(first) for first, last in runs)


def log_name(condition: Condition) -> str:
    """The name of a condition's step log in the run's folder: a safe file name, unlike any other's."""
    protocol = condition.protocol.name.replace(":", "+").replace(",", "+").replace("=", "-")
    if len(protocol) > LONGEST_NAME:
        protocol = f"{protocol[:LONGEST_NAME]}~{hashlib.sha256(protocol.encode()).hexdigest()[:12]}"
    return f"logs/{condition.world}_{condition.regime.name}_{protocol}_{condition.policy.name}.parquet"


class Answered(BaseModel, extra="forbid"):
    """Who answered a condition of a run on a model, as its manifest states it (`llm.agent.who_answered`)."""

    world: str
    policy: str
    protocol: str
    answered_by: dict[str, int]  # answers by the model that gave them, as its server calls it
    judged_by: dict[str, int] = {}  # verdicts likewise
    fingerprints: list[str]
    unread: int  # episodes of which no belief update could be read


class Manifest(BaseModel, extra="forbid"):
    """A manifest as it stands in a file: `book/provenance.md` describes it."""

    format: Literal["envprobe-run/3"]
    finished: StrictBool
    inputs: RunInputs
    engine: dict[str, str]
    versions: dict[str, str]
    profile: dict[str, Any]
    protocols: dict[str, dict[str, str]]
    conditions: list[dict[str, Any]] | None = None
    sha256: dict[str, str] | None = None
    requests: dict[str, list[str]] | None = None
    answered: list[Answered] | None = None
    result_hash: str | None = Field(default=None, max_length=64, pattern="^[0-9a-f]*$")

    @pydantic.model_validator(mode="after")
    def _whole(self) -> Manifest:
        if self.finished and not (self.conditions and self.sha256 and self.result_hash):
            raise ValueError("it says finished and states no results")
        if self.answered is not None and len(self.answered) != len(self.conditions or ()):
            raise ValueError("it states who answered of more conditions, or of fewer")
        return self

    def as_dict(self) -> dict[str, Any]:
        """Return it as it stands in its file."""
        return self.model_dump(exclude_unset=True)


def begun(inputs: RunInputs) -> Manifest:
    """Make the manifest of a run that has not begun."""
    protocols = {condition.protocol.name: asdict(condition.protocol) for condition in inputs.conditions}
    sources = engine_sha256(model=inputs.agent is not None)
    return Manifest(
        format=FORMAT,
        finished=False,
        inputs=inputs,
        engine={"version": __version__, "sources_sha256": sources},
        versions=package_versions(),
        profile=inputs.conditions[0].profile.as_dict(),
        protocols={name: {key: own[key] for key in own if key != "name"} for name, own in protocols.items()},
    )


def finished(
    started: Manifest,
    hashes: list[str],
    files: Mapping[str, str],
    readings: Sequence[Mapping[str, Any]],
    requests: dict[str, list[str]] | None = None,
    answered: list[dict[str, Any]] | None = None,
) -> Manifest:
    """A manifest with a run's results.

    Args:
        hashes: [condition], result hashes.
        files: SHA-256 of each file by its name.
        readings: [condition], shares of belief updates, invalid and loosely read; empty without a model.
        requests: by model, the rungs of the ladder that they took; None where none was needed.
        answered: [condition], which models answered, and how often; None where none was asked.
    """
    inputs = started.inputs
    rows = (inputs.conditions, inputs.seeds_of_conditions, inputs.logged_seeds, hashes, readings)
    of_conditions = zip(*rows, strict=True)
    conditions = [
        condition.key
        | {
            "threshold_in_force": condition.threshold_in_force if condition.policy.has_threshold else None,
            "seeds": seed_ranges(seeds),
            "episodes": len(seeds),
            "log": log_name(condition) if len(logged) else None,
            "logged_episodes": len(logged),
            "result_hash": own,
            **read,
        }
        for condition, seeds, logged, own, read in of_conditions
    ]
    whole = total_hash(inputs.conditions, hashes)
    results: dict[str, Any] = {"conditions": conditions, "sha256": dict(files), "result_hash": whole}
    results |= {"requests": requests} if requests else {}
    results |= {"answered": [Answered(**one) for one in answered]} if answered is not None else {}
    return started.model_copy(update={"finished": True} | results)


def total_hash(conditions: list[Condition], hashes: list[str]) -> str:
    """Condense the hashes of a run's conditions, with the conditions' names, into one."""
    names = (map(str, (condition.key | condition.profile.identity).values()) for condition in conditions)
    lines = (" ".join([*name, own]) + "\n" for name, own in zip(names, hashes, strict=True))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def differences(stated: Manifest, due: Manifest, parts: Sequence[str] = ASKED) -> Iterator[str]:
    """Wherever some parts of two manifests are not the same, by default what was asked and of what."""
    there, here = (dict(_values({name: own.as_dict().get(name) for name in parts})) for own in (stated, due))
    for path in dict.fromkeys([*here, *there]):
        if there.get(path) != here.get(path) and path[-1] != "kind":  # every model's; who answers says more
            yield unlike(" ".join(map(str, path)), there.get(path), here.get(path))


def unlike(place: str, stated: object, due: object) -> str:
    """That something is stated where something else is due, each as JSON writes it."""
    stated, due = (json.dumps(one, default=lambda number: number.item()) for one in (stated, due))
    return f"{place} is {stated}, not {due}"


def _values(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield every value of a document with its path; a list of anything but tables is a value."""
    if node and isinstance(node, list) and all(isinstance(row, dict) for row in node):
        node = dict(enumerate(node))
    if not (node and isinstance(node, dict)):
        yield path, node
        return
    for key, value in node.items():
        yield from _values(value, (*path, key))


def read_manifest(folder: Path, *, whole: bool = False) -> Manifest:
    """Read the manifest of a run's folder; where it must be `whole`, only that of a finished run."""
    path = folder / MANIFEST
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder")
    try:
        content = read_whole(path)
        manifest = Manifest.model_validate_json(content)
    except FileNotFoundError:
        raise InputError(f"{folder} holds no run: it has no {MANIFEST}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from None
    except ValidationError as error:
        raise InputError(f"{path} is no manifest of a run: {first_fault(error)}") from None
    if not whole:
        return manifest
    if not manifest.finished:
        raise InputError(f"{folder} holds a run that is not finished; the command that began it completes it")
    form = orjson.loads(manifest.model_dump_json())["inputs"]
    for name, stated in orjson.loads(content)["inputs"].items():
        if stated != form[name]:  # a title stands for a name where people write; a run writes names
            own = in_one_line(f"{name} {stated!r}")
            raise InputError(f"{path} is no manifest of a run: inputs: {own} is written {form[name]!r} there")
    return manifest


def write_json(path: Path, content: object) -> None:
    """Write a document for people to read, in one step."""
    with atomic_write(path) as temporary:
        temporary.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
