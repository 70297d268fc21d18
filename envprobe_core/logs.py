"""Step logs: every belief, gold value and decision of a cell's episodes, a JSON object a line.

A log is one gzip file. Its first line, the *header*, says what the log holds, so that it can be
scored alone. Then come the episodes in order of seed; of each, a line for every t = 0..steps-1
with the state and the decision (keys `DECISION_KEYS`) and a line for t = steps with the state and
whether the goal was reached (keys `FINAL_KEYS`). The last line counts the lines and episodes
before it, so that a log which is cut short is seen.

`check` holds five sums modulo 997: of belief, gold, staleness, confidence, and of everything else
in the line; each number is weighted by its position, so that no single altered or swapped number
keeps its sum.

Chunks of a log are gzip members of their own, with time stamp 0, always cut at the same episodes:
its bytes do not depend on the order, the batch size or the process in which they were made.
"""

from __future__ import annotations

import gzip
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from envprobe_core.cells import Cell
from envprobe_core.engine.recording import Trajectory
from envprobe_core.manifest import seed_ranges
from envprobe_core.worlds import make_world

FORMAT = "envprobe-log/1"
LISTS = ("belief", "gold", "staleness", "confidence")
STATE = ("seed", "t", "place", *LISTS)
DECISION = ("proposal", "probe", "answer", "useful", "valid", "acted", "score")
DECISION_KEYS = (*STATE, *DECISION, "check")
FINAL_KEYS = (*STATE, "success", "check")
CHECKED = (*LISTS, "place, decision or success")
MODULUS = 997
LEVEL = 4  # of compression: 6 saves a seventh of the bytes and doubles the time of a run

Ints = npt.NDArray[np.int64]


def log_header(cell: Cell, seeds: Ints) -> dict[str, Any]:
    """Return the first line of a cell's log.

    Args:
        cell: the cell.
        seeds: the logged episodes, ascending.
    """
    world = make_world(cell.world, cell.regime, cell.protocol)
    return {
        "format": FORMAT,
        **cell.key,
        **cell.profile.identity,
        "threshold_in_force": cell.threshold_in_force if cell.policy.has_threshold else None,
        "writes": cell.profile.writes,
        "keeps_open": cell.profile.keeps_open,
        "horizon": cell.regime.horizon,
        "n_fields": world.fields,
        "fields": list(world.field_names),
        "kinds": list(world.field_kinds),
        "actions": list(world.action_names),
        "episodes": len(seeds),
        "seeds": seed_ranges(seeds),
    }


def log_footer(lines: int, episodes: int) -> dict[str, int]:
    """Return the last line of a log: how many step lines and episodes stand before it."""
    return {"lines": lines, "episodes": episodes}


def encode_line(content: dict[str, Any]) -> bytes:
    """Write one line."""
    return orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE)


def compress(text: bytes) -> bytes:
    """Make one gzip member, the same bytes for the same text."""
    return gzip.compress(text, LEVEL, mtime=0)


def encode_episodes(trajectory: Trajectory, seeds: Ints) -> bytes:
    """Write the lines of some episodes.

    Args:
        trajectory: their recording, with staleness and confidence.
        seeds: [row].
    """
    sums = line_checks(trajectory).tolist()
    state = [
        getattr(trajectory, name).tolist() for name in ("place", "belief", "gold", "staleness", "confidence")
    ]
    decision = [
        trajectory.action.tolist(),
        _null(trajectory.probe, trajectory.probe < 0),
        _null(trajectory.answer, trajectory.probe < 0),
        trajectory.useful.tolist(),
        trajectory.valid.tolist(),
        trajectory.acted.tolist(),
        trajectory.score.tolist(),  # NaN is written as null
    ]
    steps, success = trajectory.steps.tolist(), trajectory.success.tolist()
    lines = []
    for row, seed in enumerate(seeds.tolist()):
        states = zip(*(column[row] for column in state), strict=True)
        decisions = zip(*(column[row] for column in decision), strict=True)
        for t in range(steps[row]):
            values = (seed, t, *next(states), *next(decisions), sums[row][t])
            lines.append(encode_line(dict(zip(DECISION_KEYS, values, strict=True))))
        last = (seed, steps[row], *next(states), success[row], sums[row][steps[row]])
        lines.append(encode_line(dict(zip(FINAL_KEYS, last, strict=True))))
    return b"".join(lines)


def _null(values: npt.NDArray[np.integer], where: npt.NDArray[np.bool_]) -> list[list[int | None]]:
    objects = values.astype(object)
    objects[where] = None
    return objects.tolist()


def line_checks(trajectory: Trajectory) -> Ints:
    """Return the five check sums of every line, [row, time, 5]; lines past an episode's end count too.

    Args:
        trajectory: a recording with staleness and confidence.
    """
    parts = [getattr(trajectory, name).astype(np.int64) for name in LISTS]
    rows, times = trajectory.place.shape
    rest = np.zeros((rows, times, 10), dtype=np.int64)
    rest[:, :, 0] = trajectory.place
    fired = trajectory.probe >= 0
    bits = np.where(np.isnan(trajectory.score), 0.0, trajectory.score).view(np.int64)
    for position, values in enumerate(
        (
            trajectory.action,
            trajectory.probe,
            np.where(fired, trajectory.answer, 0),
            trajectory.useful,
            trajectory.valid,
            trajectory.acted,
            bits >> 32,
            bits & 0xFFFFFFFF,
        ),
        start=1,
    ):
        rest[:, :-1, position] = values
    final = np.arange(times)[None, :] == trajectory.steps[:, None]
    rest[final, 1:] = 0
    rest[final, 9] = trajectory.success
    sums = [(part % MODULUS * np.arange(1, part.shape[2] + 1)).sum(axis=2) for part in (*parts, rest)]
    return np.stack(sums, axis=2) % MODULUS
