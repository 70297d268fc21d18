"""What a run is: its inputs, the engine and the packages it runs with, and names for its files.

The manifest holds no times, paths or machine names, so that the same run twice gives the same bytes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from envprobe_core import __version__
from envprobe_core.cells import Cell, make_cell, parse_seeds
from envprobe_core.errors import InputError
from envprobe_core.llm.identity import ModelAgent
from envprobe_core.protocols import parse_protocol
from envprobe_core.sources import ROOTS, engine_sha256, package_versions

FORMAT = "envprobe-run/1"
LONGEST_SLUG = 80
MODEL_ROOTS = (*ROOTS, "llm/running.py")

Seeds = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RunInputs:
    """What the user asked for, checked.

    Attributes:
        worlds, policies, protocols: names, in the order asked for.
        regime, profile: names.
        budget: the probe budget, or None for the regime's.
        threshold: the gate's threshold, or None for the paper's.
        seeds: ranges in ascending order, or None for each cell's own.
        logs: `full`, `none` or `sample:N`.
        agent: the language model, None for the simulated agent.
    """

    worlds: tuple[str, ...]
    policies: tuple[str, ...]
    regime: str
    protocols: tuple[str, ...]
    profile: str
    budget: int | None
    threshold: float | None
    seeds: str | None
    logs: str
    agent: ModelAgent | None = None

    @cached_property
    def cells(self) -> list[Cell]:
        """Return the cells: for each protocol and world, every policy."""
        cells = [
            make_cell(
                world,
                policy,
                self.regime,
                parse_protocol(protocol),
                self.profile,
                self.budget,
                self.threshold,
            )
            for protocol in self.protocols
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
    """Check what a run is asked for and bring it into one form.

    Args:
        worlds: names; one named twice counts once, here and below.
        policies: names.
        regime: its name.
        protocols: names; each may carry switches.
        profile: its name.
        budget: the probe budget, None for the regime's.
        threshold: the gate's threshold, None for the paper's.
        seeds: as `cells.parse_seeds` reads them, None for each cell's own.
        logs: `full`, `none` or `sample:N`.
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


def log_name(cell: Cell) -> str:
    """Name a cell's step log, relative to the run's folder."""
    return f"logs/{cell_slug(cell)}.jsonl.gz"


def new_manifest(inputs: RunInputs) -> dict[str, object]:
    """Make the manifest of a run that has not begun.

    Args:
        inputs: what is asked for.
    """
    return {
        "format": FORMAT,
        "finished": False,
        "inputs": stated_inputs(inputs),
        "engine": {
            "version": __version__,
            "sources_sha256": engine_sha256(MODEL_ROOTS) if inputs.agent else engine_sha256(),
        },
        "versions": package_versions(),
        "profile": inputs.cells[0].profile.as_dict(),
        "protocols": {
            cell.protocol.name: {
                switch: value for switch, value in asdict(cell.protocol).items() if switch != "name"
            }
            for cell in inputs.cells
        },
    }


def finished_manifest(
    inputs: RunInputs, started: Mapping[str, object], hashes: Sequence[str], total: str
) -> dict[str, object]:
    """Add a run's results to its manifest.

    Args:
        inputs: what was asked for.
        started: the manifest the run began with.
        hashes: each cell's result hash.
        total: the run's.
    """
    cells = []
    for index, (cell, own) in enumerate(zip(inputs.cells, hashes, strict=True)):
        logged = inputs.logged(index)
        entry = dict(cell.key)
        entry["threshold_in_force"] = cell.threshold_in_force if cell.policy.has_threshold else None
        entry["seeds"] = seed_ranges(inputs.seeds_of_cells[index])
        entry["episodes"] = len(inputs.seeds_of_cells[index])
        entry["log"] = log_name(cell) if len(logged) else None
        entry["logged_episodes"] = len(logged)
        entry["result_hash"] = own
        cells.append(entry)
    return {**started, "finished": True, "cells": cells, "result_hash": total}


def inputs_of(manifest: Mapping[str, object]) -> RunInputs:
    """Return the inputs that a manifest states.

    Raises:
        InputError: if it states none that can be run.
    """
    stated = manifest.get("inputs")
    if not isinstance(stated, dict):
        raise InputError("manifest.json states no inputs")
    try:
        return make_inputs(**stated)
    except TypeError as error:
        raise InputError(f"manifest.json: its inputs cannot be read ({error})") from None


def first_difference(old: Mapping[str, object], new: Mapping[str, object]) -> str | None:
    """Say where two runs differ: in inputs and what they stand for, engine, or packages.

    Args:
        old: the manifest in the folder.
        new: the manifest of the run asked for.

    Returns:
        The first difference in words, None where there is none.
    """
    for part in ("inputs", "profile", "protocols", "engine", "versions"):
        was, wanted = old.get(part), new[part]
        if not isinstance(was, dict) or not isinstance(wanted, dict):
            return f"{part}: missing from its manifest"
        for name in dict.fromkeys([*wanted, *was]):
            if was.get(name) != wanted.get(name):
                label = name if part == "inputs" else f"{part} {name}"
                return _difference(label, was.get(name), wanted.get(name))
    return None


def _difference(label: str, was: object, wanted: object) -> str:
    """Say where two values differ; of an agent, in its first entry that does."""
    if isinstance(was, dict) and isinstance(wanted, dict):
        for name in dict.fromkeys([*wanted, *was]):
            if was.get(name) != wanted.get(name):
                return _difference(f"{label} {name}", was.get(name), wanted.get(name))
    return f"{label}: {_words(was)} there, {_words(wanted)} now"


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


def _words(value: object) -> str:
    if isinstance(value, dict):
        return str(value.get("model", "another kind"))
    if isinstance(value, list):
        return " ".join(str(item) for item in value)
    return "the default" if value is None else str(value)
