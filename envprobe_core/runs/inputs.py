"""What a run is asked for: names, seeds, budget and threshold, checked and brought into one form."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import BaseModel, StrictInt, ValidationError

from envprobe_core.cells import Cell, Seeds, make_cell, parse_seeds
from envprobe_core.errors import InputError, first_fault
from envprobe_core.llm.identity import ModelAgent
from envprobe_core.protocols import parse_protocol

LONGEST_SLUG = 80


@dataclass(frozen=True)
class RunInputs:
    """What the user asked for, checked."""

    worlds: tuple[str, ...]  # names, in the order asked for, here and below
    policies: tuple[str, ...]
    regime: str
    protocols: tuple[str, ...]
    profile: str
    budget: int | None  # the probe budget, or None for the regime's
    threshold: float | None  # the gate's threshold, or None for the paper's
    seeds: str | None  # ranges in ascending order, or None for each cell's own
    logs: str  # `full`, `none` or `sample:N`
    agent: ModelAgent | None = None  # the language model, None for the simulated agent

    @cached_property
    def cells(self) -> list[Cell]:
        """Return the cells: for each protocol and world, every policy."""
        cells = [
            make_cell(world, policy, self.regime, protocol, self.profile, self.budget, self.threshold)
            for protocol in map(parse_protocol, self.protocols)
            for world in self.worlds
            for policy in self.policies
        ]
        if self.agent is None:
            return cells
        return [replace(cell, profile=self.agent.profile) for cell in cells]

    @cached_property
    def seeds_of_cells(self) -> list[Seeds]:
        """Return each cell's seeds, ascending."""
        if self.seeds is None:
            return [np.sort(cell.default_seeds()) for cell in self.cells]
        return [parse_seeds(self.seeds)] * len(self.cells)

    @cached_property
    def most_logged(self) -> int | None:
        """Return how many episodes of each cell are logged, None for all."""
        return parse_logs(self.logs)

    def logged(self, cell: int) -> Seeds:
        """Return the seeds of a cell whose episodes are logged: the first ones."""
        return self.seeds_of_cells[cell][: self.most_logged]


def make_inputs(
    worlds: Iterable[str],
    policies: Iterable[str],
    regime: str = "S2",
    protocols: Iterable[str] = ("paper",),
    profile: str = "typical",
    budget: int | None = None,
    threshold: float | None = None,
    seeds: str | None = None,
    logs: str = "full",
    agent: ModelAgent | Mapping[str, object] | None = None,
) -> RunInputs:
    """Check what a run is asked for and bring it into one form; a name that comes twice counts once.

    Args:
        seeds: as `cells.parse_seeds` reads them, None for each cell's own.
        agent: the language model, also as a manifest states it; None for the simulated agent.

    Raises:
        InputError: for anything that is not accepted.
    """
    inputs = RunInputs(
        tuple(dict.fromkeys(worlds)),
        tuple(dict.fromkeys(policies)),
        regime,
        tuple(dict.fromkeys(parse_protocol(text).name for text in protocols)),
        profile,
        budget,
        None if threshold is None else float(threshold),
        None if seeds is None else seed_ranges(np.sort(parse_seeds(seeds))),
        logs,
        ModelAgent.from_dict(agent) if isinstance(agent, Mapping) else agent,
    )
    parse_logs(logs)
    if not inputs.cells:
        raise InputError("a run needs at least one world, one policy and one protocol")
    return inputs


def parse_logs(text: str) -> int | None:
    """Read which episodes are logged: how many of each cell, None for all.

    Raises:
        InputError: if it is none of `full`, `none`, `sample:N`.
    """
    match = re.fullmatch(r"full|none|sample:([1-9]\d{0,17})", text)
    if not match:
        raise InputError(f"logs {text!r}: accepted are full, none, and sample:N with N from 1")
    return None if text == "full" else int(match[1] or 0)


def seed_ranges(seeds: Seeds) -> str:
    """Write ascending seeds as `parse_seeds` reads them, in as few ranges as there can be."""
    breaks = np.flatnonzero(np.diff(seeds) != 1) + 1
    runs = ((int(run[0]), int(run[-1])) for run in np.split(seeds, breaks))
    return ",".join(f"{first}:{last + 1}" if last > first else str(first) for first, last in runs)


def cell_slug(cell: Cell) -> str:
    """Name a cell in a way that is safe as a file name and unlike any other cell's of the run."""
    protocol = cell.protocol.name.replace(":", "+").replace(",", "+").replace("=", "-")
    if len(protocol) > LONGEST_SLUG:
        rest = hashlib.sha256(protocol.encode()).hexdigest()[:12]
        protocol = f"{protocol[:LONGEST_SLUG]}~{rest}"
    return f"{cell.world}_{cell.regime.name}_{protocol}_{cell.policy.name}"


class StatedInputs(BaseModel, extra="forbid"):
    """The inputs of a run as its manifest states them: what can be told of them before they are looked up."""

    worlds: list[str]
    policies: list[str]
    regime: str = "S2"
    protocols: list[str] = ["paper"]
    profile: str = "typical"
    budget: StrictInt | None = None
    threshold: float | None = None
    seeds: str | None = None
    logs: str = "full"
    agent: dict[str, Any] | None = None


def inputs_of(manifest: Mapping[str, object]) -> RunInputs:
    """Return the inputs that a manifest states.

    Raises:
        InputError: if it states none that can be run.
    """
    try:
        stated = StatedInputs.model_validate(manifest.get("inputs"))
    except ValidationError as error:
        raise InputError(f"its inputs, {first_fault(error)}") from None
    return make_inputs(**stated.model_dump(exclude_unset=True))


def stated_inputs(inputs: RunInputs) -> dict[str, object]:
    """Return the inputs as a manifest states them; the simulated agent goes without saying."""
    stated = {field.name: _plain(getattr(inputs, field.name)) for field in fields(inputs)}
    if inputs.agent is None:
        del stated["agent"]
    else:
        stated["agent"] = inputs.agent.as_dict()
        del stated["profile"]  # a language model has none
    return stated


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
