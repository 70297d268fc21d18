"""Recomputation: every measure of a run again from its step logs alone, compared with what it states.

Three things can be wrong. A log is *damaged*: a line is missing, is no JSON, lacks a key, holds a
value that cannot be, or does not fit its own check sum. A log *contradicts itself*: a probe is
called useful whose answer equals the belief. Or log and run *disagree*: the lines give another
measure than episodes.parquet, or another hash than manifest.json.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core.cells import Cell
from envprobe_core.episodes import MEASURES, DamagedTableError, read_episodes
from envprobe_core.errors import InputError
from envprobe_core.logreading import DamagedLogError, LoggedEpisodes, read_log
from envprobe_core.manifest import engine_sha256, finished_manifest, inputs_of, log_name, new_manifest
from envprobe_core.running import cores, spread
from envprobe_core.runstore import EPISODES, MANIFEST, read_manifest
from envprobe_core.scoring import Columns, score_episodes
from envprobe_core.summary import result_hash, total_hash
from envprobe_core.worlds import World, make_world
from envprobe_core.worlds.base import WAIT

LISTED = 20  # disagreements that are spelled out
PROCESS_PAYS = 3000  # episodes that outweigh starting a process
COMPARED = ("profile", "protocols", "cells", "result_hash")

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Report:
    """What a recomputation found.

    Attributes:
        disagreements: a text each, with file, line and field; the last one may count the rest.
        text: what was checked, in words.
    """

    disagreements: list[str]
    text: str


@dataclass(frozen=True)
class _Log:
    """One log to be checked against its episodes' stated measures."""

    folder: Path
    cell: Cell
    seeds: Ints
    stated: Columns


@dataclass(frozen=True)
class _Outcome:
    """What one log gave: its own result hash, or its damage."""

    lines: int
    disagreements: list[str]
    result_hash: str = ""
    damage: str | None = None


def check_run(path: Path, progress: Callable[[int, int], None] | None = None) -> Report:
    """Compute a run's measures again from its logs and compare.

    Args:
        path: the folder of a finished run.
        progress: called with the number of logs done and to do.

    Raises:
        InputError: if there is no finished run with logs, or one of its files is damaged.
    """
    manifest = read_manifest(path)
    inputs = inputs_of(manifest)
    if not manifest["finished"]:
        raise InputError(f"{path} holds a run that is not finished; the command that began it completes it")
    if inputs.most_logged == 0:
        raise InputError(f"{path} was run with --logs none: there are no logs to compute from")
    sizes = [len(seeds) for seeds in inputs.seeds_of_cells]
    try:
        table = read_episodes(path / EPISODES, inputs.cells, sizes)
    except DamagedTableError as error:
        raise InputError(str(error)) from None
    logs = [
        _Log(path, cell, seeds, {name: column[: len(seeds)] for name, column in stated.items()})
        for index, (cell, stated) in enumerate(zip(inputs.cells, table, strict=True))
        for seeds in [inputs.logged(index)]
    ]
    episodes = sum(len(log.seeds) for log in logs)
    outcomes: dict[int, _Outcome] = {}
    for index, outcome in spread(_check_numbered, list(enumerate(logs)), 1 + min(episodes // PROCESS_PAYS, cores() - 1)):
        outcomes[index] = outcome
        if progress is not None:
            progress(len(outcomes), len(logs))
    found = [outcomes[index] for index in range(len(logs))]
    _stop_at_damage(found)
    hashes = [result_hash(columns) for columns in table]
    if episodes == sum(sizes):
        hashes = [outcome.result_hash for outcome in found]
    fresh = {**manifest, **new_manifest(inputs)}
    fresh = finished_manifest(inputs, fresh, hashes, total_hash(inputs.cells, hashes))
    disagreements = [text for outcome in found for text in outcome.disagreements]
    for key in COMPARED:
        disagreements += _differences(f"{MANIFEST}, {key}", manifest.get(key), fresh[key])
    same_engine = manifest.get("engine") == fresh["engine"]
    return Report(
        _shortened(disagreements, same_engine),
        _text(found, episodes, sum(sizes), fresh["result_hash"], same_engine),
    )
