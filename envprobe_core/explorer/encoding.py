"""The grid as text for a page: whole numbers, predicted from their neighbours, deflated, in base64.

`grid.js` reads what `encode` writes; both follow `Order`. A reading is predicted from that of the budget
before, a pooled one first from the three worlds' sum or mean. What is left is mostly 0, and a column of it
lies together: intervals as distances from their mean, curves as changes from time to time.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from envprobe_core.errors import InputError
from envprobe_core.explorer.grid import POOL, Grid, Rows
from envprobe_core.explorer.readings import CURVE_UNITS, SHARE_UNITS, Ints, Readings
from envprobe_core.worlds import WORLDS

ESCAPE = 255  # a byte that says: the rest of this number stands among the large ones
LARGEST = ESCAPE + 2**16 - 1
SUMMED = ("fires", "useful", "repeated")  # of the pool: the worlds' sum; of the others: near their mean
INTERVALS = ("accuracy", "success", "useful_rate")
COLUMNS = ("accuracy", "success", "curve", "fires", "useful", "useful_rate", "repeated")


@dataclass(frozen=True)
class Order:
    """How readings lean on others: all numbers are positions of readings, -1 for none.

    Attributes:
        before: [reading], the one it is predicted from, which has a smaller number.
        worlds: [reading, world], those that a pooled reading is made of.
    """

    before: Ints
    worlds: Ints

    @classmethod
    def of(cls, rows: Mapping[tuple[str, str, str], Rows], count: int) -> Order:
        """Follow the settings, thresholds outside and budgets inside, to where each reading is first met.

        Args:
            rows: as of a grid.
            count: number of readings.
        """
        before, worlds = np.full(count, -1), np.full((count, len(WORLDS)), -1)
        met = 0
        for (protocol, view, policy), at in rows.items():
            for k, b in np.ndindex(at.T.shape):
                if at[b, k] < met:
                    continue
                before[met] = at[b - 1, k] if b else at[b, k - 1] if k else -1
                if view == POOL:
                    worlds[met] = [rows[protocol, world, policy][b, k] for world in WORLDS]
                met += 1
        return cls(before, worlds)


def encode(grid: Grid) -> dict[str, Any]:
    """Return a grid as a record of names and one text, ready for JSON."""
    order = Order.of(grid.rows, len(grid.readings))
    planes = [_changes(np.concatenate([at.T.ravel() for at in grid.rows.values()])[None, :])]
    for name in COLUMNS:
        planes.append(_residual(name, _columns(name, grid.readings), order).T)
    keys = list(grid.rows)
    return {
        "regime": grid.regime,
        "profile": grid.profile,
        "seeds": grid.seeds,
        "resamples": grid.resamples,
        "simulated": grid.simulated,
        "episodes": int(grid.readings.n[0]),
        "budgets": list(grid.budgets),
        "thresholds": list(grid.thresholds),
        "protocols": list(dict.fromkeys(key[0] for key in keys)),
        "worlds": list(dict.fromkeys(key[1] for key in keys)),
        "policies": {key[2]: grid.rows[key].shape[1] for key in keys},  # name -> thresholds
        "readings": len(grid.readings),
        "widths": {name: len(_columns(name, grid.readings).T) for name in COLUMNS},
        "units": {"share": SHARE_UNITS, "curve": CURVE_UNITS},
        "data": _pack(np.concatenate([plane.ravel() for plane in planes])),
    }


def decode(payload: Mapping[str, Any]) -> Grid:
    """Return the grid that `encode` was given."""
    numbers = _unpack(payload["data"])
    budgets, shapes = payload["budgets"], payload["policies"]
    rows: dict[tuple[str, str, str], Rows] = {}
    settings = len(payload["protocols"]) * len(payload["worlds"]) * len(budgets) * sum(shapes.values())
    listed, at = np.cumsum(numbers[:settings]), 0
    for key, count in _keys(payload):
        part = listed[at : at + count * len(budgets)]
        rows[key] = part.reshape(count, len(budgets)).T.astype(np.int32)
        at += len(part)
    order = Order.of(rows, payload["readings"])
    found: dict[str, Ints] = {}
    for name, width in payload["widths"].items():
        size = width * payload["readings"]
        found[name] = _restored(name, numbers[at : at + size].reshape(width, -1).T, order)
        at += size
    fired = found["fires"].sum(axis=1)
    pooled = order.worlds[:, 0] >= 0
    found["n"] = payload["episodes"] * np.where(pooled, len(WORLDS), 1)
    found["useful"] = np.concatenate([found["useful"], fired[:, None]], axis=1)
    found["repeated"] = found["repeated"][:, 0]
    readings = Readings(**{field.name: found[field.name] for field in fields(Readings)})
    return Grid(
        payload["regime"],
        payload["profile"],
        payload["seeds"],
        payload["resamples"],
        payload["simulated"],
        tuple(budgets),
        tuple(payload["thresholds"]),
        rows,
        readings,
    )


def _keys(payload: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str, str], int]]:
    for protocol in payload["protocols"]:
        for world in payload["worlds"]:
            for policy, count in payload["policies"].items():
                yield (protocol, world, policy), count


def _columns(name: str, readings: Readings) -> Ints:
    """Return the whole numbers of one measure, [reading, column]; what others imply is left out."""
    values = getattr(readings, name).reshape(len(readings), -1)
    return values[:, :1] if name == "useful" else values  # fired probes are the sum of `fires`


def _residual(name: str, values: Ints, order: Order) -> Ints:
    """Take from each reading what its neighbours foretell, [reading, column]."""
    if name in INTERVALS:
        mean, low, high = values.T
        values = np.stack([mean, mean - low, high - mean], axis=1)
    rest = values - _expected(name, values, order.worlds)
    rest = rest - np.where(order.before[:, None] >= 0, rest[order.before], 0)
    return _changes(rest) if name == "curve" else rest


def _restored(name: str, rest: Ints, order: Order) -> Ints:
    """Undo `_residual`."""
    values = np.cumsum(rest, axis=1) if name == "curve" else rest.copy()
    for row, before in enumerate(order.before):
        if before >= 0:
            values[row] += values[before]
    values += _expected(name, values, order.worlds)
    if name in INTERVALS:
        mean, below, above = values.T
        values = np.stack([mean, mean - below, mean + above], axis=1)
    return values


def _expected(name: str, values: Ints, worlds: Ints) -> Ints:
    """Return what the worlds' readings foretell of a pooled one, 0 elsewhere."""
    total = values[worlds].sum(axis=1)
    return np.where(worlds[:, :1] >= 0, total if name in SUMMED else total // len(WORLDS), 0)


def _changes(values: Ints) -> Ints:
    return np.diff(values, axis=1, prepend=0)


def _pack(numbers: Ints) -> str:
    """Return whole numbers as base64 of deflated bytes: a byte each, and two more for the rare large ones."""
    natural = np.where(numbers < 0, -2 * numbers - 1, 2 * numbers)
    if natural.max() > LARGEST:
        raise InputError(f"the grid holds a step of {natural.max() // 2}; at most {LARGEST // 2} is accepted")
    large = natural[natural >= ESCAPE] - ESCAPE
    parts = (
        np.array([len(numbers)], dtype="<u4"),
        np.minimum(natural, ESCAPE).astype(np.uint8),
        large.astype("<u2"),
    )
    return base64.b64encode(zlib.compress(b"".join(part.tobytes() for part in parts), 9)).decode()


def _unpack(text: str) -> Ints:
    """Undo `_pack`."""
    content = zlib.decompress(base64.b64decode(text))
    count = int(np.frombuffer(content, dtype="<u4", count=1)[0])
    natural = np.frombuffer(content, dtype=np.uint8, count=count, offset=4).astype(np.int64)
    natural[natural == ESCAPE] += np.frombuffer(content, dtype="<u2", offset=4 + count)
    return np.where(natural % 2 == 1, -(natural + 1) // 2, natural // 2)
