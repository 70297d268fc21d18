"""The frozen cells: how a row of `cells.csv` is read, and the one form in which recordings are compared.

Canonical form: episode by episode in the order of the row's seeds, part by part in the order below, each part
as C-order little-endian bytes at full width: [time, field] (belief to confidence), [time] (place), t = 0..H;
[step] (action to score), t = 0..H-1; one number for what an episode has one of. Whole numbers and truth
values are int64, all else is float64 with one NaN and one zero (which of two zeros `np.maximum` takes in
VoI's score is up to the processor). Where a protocol ends episodes at success, states of t > `steps` and
decisions of t >= `steps` are 0, `action` and `probe` -1, `score` NaN.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core.conditions import AgentProfile, Condition, find_profile, find_regime, parse_seeds
from envprobe_core.engine.batch import simulate
from envprobe_core.policies import find_policy
from envprobe_core.protocols import FAULTS, parse_protocol, switch_values, turned

CELLS = Path(__file__).with_name("cells.csv")
EPISODES = Path(__file__).with_name("trajectories.json.gz")
COMMENT = "#"
INT, FLOAT, WORD = "<i8", "<f8", "<u8"

# a Trajectory with reports: `score` goes on when the budget is spent; `answer` is there even if withheld
STATES = ("belief", "gold", "staleness", "confidence", "place")
DECISIONS = ("action", "probe", "answer", "useful", "valid", "acted")
RECORDED = dict.fromkeys(STATES + DECISIONS, INT) | {"score": FLOAT, "steps": INT, "success": INT}
# the columns of `score_task` but `cell`
COUNTS = ("seed", "n_fields", "horizon", "steps", "success")
COUNTS += ("probes", "useful", "actions", "valid_actions", "repeated_probes")
RATES = ("accuracy", "accuracy_terminal", "accuracy_slot", "collapse_onset", "action_onset")
MEASURED = dict.fromkeys(COUNTS, INT) | dict.fromkeys(RATES, FLOAT) | {"digest": WORD}


def canonical(values: npt.ArrayLike, dtype: str) -> npt.NDArray[Any]:
    """Return a copy in C order, of one type, with one NaN and one zero; refuses a type that loses bits."""
    array = np.asarray(values).astype(dtype, order="C", casting="safe")
    return np.where(np.isnan(array), np.nan, array + 0.0) if dtype == FLOAT else array


def digest(parts: Mapping[str, npt.ArrayLike], types: Mapping[str, str]) -> str:
    """Condense the parts of `types`, each [episode, ...], to 32 hexadecimal digits (BLAKE2b of 16 bytes)."""
    condensed = hashlib.blake2b(digest_size=16)
    arrays = [canonical(parts[name], dtype) for name, dtype in types.items()]
    for episode in zip(*(array.reshape(len(array), -1) for array in arrays), strict=True):
        for part in episode:
            condensed.update(part.tobytes())
    return condensed.hexdigest()


def read_profile(text: str) -> AgentProfile:
    """Read a registered profile's name, or JSON of the parameters that are not AgentProfile's defaults."""
    return AgentProfile("drawn", **json.loads(text)) if text.startswith("{") else find_profile(text)


def read_cell(row: Mapping[str, str]) -> tuple[Condition, npt.NDArray[np.int64]]:
    """Return the cell of a row and its seeds; an empty budget or threshold is the default."""
    cell = Condition(
        row["world"],
        find_policy(row["policy"]),
        find_regime(row["regime"]),
        parse_protocol(row["protocol"]),
        read_profile(row["profile"]),
        int(row["budget"]) if row["budget"] else None,
        float(row["threshold"]) if row["threshold"] else None,
    )
    return cell, parse_seeds(row["seeds"])


def faults_of(row: Mapping[str, str]) -> tuple[str, ...]:
    """Return the faults that a row's protocol turns on."""
    protocol = parse_protocol(row["protocol"])
    return tuple(fault for fault in FAULTS if getattr(protocol, fault) != switch_values(fault)[0])


def faulty_key(row: Mapping[str, str]) -> tuple[str, str, tuple[str, ...]]:
    """Return a row's world, the named protocol in which switches are turned, and its faults."""
    return row["world"], row["protocol"].partition(":")[0], faults_of(row)


def faults_matter(row: Mapping[str, str]) -> bool:
    """Return whether an episode of a row would be another one without its faults."""
    cell, seeds = read_cell(row)
    sound = turned(cell.protocol, **{fault: switch_values(fault)[0] for fault in faults_of(row)})
    found = (simulate(one, seeds)["digest"].tolist() for one in (cell, replace(cell, protocol=sound)))
    return next(found) != next(found)


def fault_sets() -> list[tuple[str, ...]]:
    """Return the faults that are frozen together: each alone, and all."""
    return [*((fault,) for fault in FAULTS), FAULTS]


def read_rows() -> list[dict[str, str]]:
    """Return the frozen rows: what makes the cell, `seeds`, and the digests `recorded` and `measured`."""
    with CELLS.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(line for line in lines if not line.startswith(COMMENT)))


def read_episodes() -> list[dict[str, Any]]:
    """Return some first episodes whole: the `row` of each, and its `parts` (null is NaN)."""
    return json.loads(gzip.decompress(EPISODES.read_bytes()))["episodes"]
