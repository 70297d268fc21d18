"""The manifest: what a run is, with which engine and packages it was made, and hashes of what it came to.

It holds no times, paths or machine names, so that the same run twice gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import BaseModel, Field, StrictBool, ValidationError, model_validator

from envprobe_core import __version__
from envprobe_core.cells import Cell
from envprobe_core.errors import InputError, first_fault
from envprobe_core.files import read_whole, replacing
from envprobe_core.runs.inputs import (
    RunInputs,
    StatedInputs,
    cell_slug,
    inputs_of,
    seed_ranges,
    stated_inputs,
)
from envprobe_core.runs.summary import total_hash
from envprobe_core.sources import ROOTS, engine_sha256, package_versions

FORMAT = "envprobe-run/2"
MANIFEST = "manifest.json"
MODEL_ROOTS = (*ROOTS, "llm/running.py")


class Manifest(BaseModel, extra="allow"):
    """A manifest as it stands in a file: `book/provenance.md` describes it."""

    format: Literal["envprobe-run/2"]
    finished: StrictBool
    inputs: StatedInputs
    engine: dict[str, str]
    versions: dict[str, str]
    profile: dict[str, Any]
    protocols: dict[str, dict[str, str]]
    cells: list[dict[str, Any]] = []
    sha256: dict[str, str] = {}
    result_hash: str | None = Field(default=None, max_length=64, pattern="^[0-9a-f]*$")

    @model_validator(mode="after")
    def _whole(self) -> Manifest:
        if self.finished and not (self.cells and self.sha256 and self.result_hash):
            raise ValueError("it says finished and states no results")
        return self


def log_name(cell: Cell) -> str:
    """Name a cell's step log, relative to the run's folder."""
    return f"logs/{cell_slug(cell)}.parquet"


def new_manifest(inputs: RunInputs) -> dict[str, object]:
    """Make the manifest of a run that has not begun."""
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
    inputs: RunInputs, started: Mapping[str, object], hashes: Sequence[str], files: Mapping[str, str]
) -> dict[str, object]:
    """Add a run's results to its manifest: each cell's result hash, and each file's SHA-256 by its name."""
    cells: list[dict[str, object]] = []
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
    total = total_hash(inputs.cells, hashes)
    return {**started, "finished": True, "cells": cells, "sha256": dict(files), "result_hash": total}


def first_difference(old: Mapping[str, object], new: Mapping[str, object]) -> str | None:
    """Say where two runs first differ, if they do: in inputs and what they stand for, engine, or packages."""
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


def _words(value: object) -> str:
    if isinstance(value, dict):
        return str(value.get("model", "another kind"))
    if isinstance(value, list):
        return " ".join(str(item) for item in value)
    return "the default" if value is None else str(value)


def read_manifest(path: Path) -> dict[str, Any]:
    """Read the manifest of a run's folder.

    Raises:
        InputError: if there is none, or it is none of ours.
    """
    if not path.is_dir():
        raise InputError(f"{path} is not a folder")
    try:
        content = read_whole(path / MANIFEST)
        Manifest.model_validate_json(content)
        manifest = orjson.loads(content)
    except FileNotFoundError:
        raise InputError(f"{path} holds no run: it has no {MANIFEST}") from None
    except OSError as error:
        raise InputError(f"{path / MANIFEST} cannot be read ({error.strerror})") from None
    except ValidationError as error:
        raise InputError(f"{path / MANIFEST} is no manifest of a run: {first_fault(error)}") from None
    except orjson.JSONDecodeError as error:  # numbers that JSON does not know, as NaN
        raise InputError(f"{path / MANIFEST} is no manifest of a run: {error}") from None
    try:
        inputs_of(manifest)
    except InputError as error:
        raise InputError(f"{path / MANIFEST}: {error}") from None
    return manifest


def read_finished(path: Path) -> dict[str, Any]:
    """Read the manifest of a run that is finished; any other is refused."""
    manifest = read_manifest(path)
    if not manifest["finished"]:
        raise InputError(f"{path} holds a run that is not finished; the command that began it completes it")
    return manifest


def write_manifest(path: Path, manifest: Mapping[str, object]) -> None:
    """Write a run's manifest in one step."""
    with replacing(path / MANIFEST) as temporary:
        temporary.write_bytes(orjson.dumps(manifest, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
