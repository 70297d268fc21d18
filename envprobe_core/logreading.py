"""Reading step logs back into recordings, with every line checked (see `logs` for the format)."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import orjson

from envprobe_core.cells import Cell
from envprobe_core.engine import recording
from envprobe_core.engine.recording import Trajectory
from envprobe_core.engine.records import CERTAIN, STALENESS_LIMIT, UNKNOWN, WAIT
from envprobe_core.engine.setting import setting_of
from envprobe_core.logs import (
    CHECKED,
    DECISION_KEYS,
    FINAL_KEYS,
    LISTS,
    line_checks,
    log_footer,
    log_header,
)
from envprobe_core.worlds import World, make_world

EPISODES_AT_ONCE = 256
LARGEST_PLACE = 127
SHOWN = 60

Ints = npt.NDArray[np.int64]
Line = dict[str, Any]

_DECISION_SET, _FINAL_SET = frozenset(DECISION_KEYS), frozenset(FINAL_KEYS)
_NUMBER, _FLAG, _NUMBER_OR_NULL = (int,), (bool,), (int, type(None))
_DECISION_TYPES: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("place", _NUMBER),
    ("proposal", _NUMBER),
    ("probe", _NUMBER_OR_NULL),
    ("answer", _NUMBER_OR_NULL),
    ("useful", _FLAG),
    ("valid", _FLAG),
    ("acted", _FLAG),
    ("score", (float, type(None))),
)
_FINAL_TYPES = (("place", _NUMBER), ("success", _FLAG))


class DamagedLogError(Exception):
    """A line of a log that is not what a run writes; the message names file, line and field."""


@dataclass(frozen=True)
class LoggedEpisodes:
    """Some episodes of a log.

    Attributes:
        seeds: [row].
        first_line: [row], the number of the line with t = 0, counted from 1.
        trajectory: the recording that the lines give.
    """

    seeds: Ints
    first_line: Ints
    trajectory: Trajectory


def read_log(path: Path, name: str, cell: Cell, seeds: Ints) -> Iterator[LoggedEpisodes]:
    """Read a log from its first line to its last, some episodes at a time.

    Args:
        path: the file.
        name: how messages call it.
        cell: the cell it must be a log of.
        seeds: the episodes it must hold, ascending.

    Raises:
        DamagedLogError: at the first line that is damaged or missing.
    """
    lines = _Lines(path, name)
    _check_values(lines, lines.next("the header"), log_header(cell, seeds))
    world = make_world(cell.world, cell.regime, cell.protocol)
    for start in range(0, len(seeds), EPISODES_AT_ONCE):
        some = seeds[start : start + EPISODES_AT_ONCE]
        first, episodes = [], []
        for seed in some.tolist():
            first.append(lines.number + 1)
            episodes.append(_read_episode(lines, seed, world))
        block = _Block(lines, cell, world, np.array(first), episodes)
        yield LoggedEpisodes(some, block.first, block.trajectory())
    footer = log_footer(lines.number - 1, len(seeds))
    _check_values(lines, lines.next("the closing line"), footer)
    if lines.next_text() is not None:
        lines.damaged("stands after the closing line")


class _Lines:
    """The lines of a compressed file; `number` is the last one's, counted from 1."""

    def __init__(self, path: Path, name: str) -> None:
        self.name = name
        self.number = 0
        self._texts = self._read(path)

    def _read(self, path: Path) -> Iterator[bytes]:
        try:
            with gzip.open(path, "rb") as stream:
                yield from stream
        except EOFError:
            self.number += 1
            self.damaged("cannot be read: the file is truncated here")
        except (gzip.BadGzipFile, zlib.error) as error:
            self.number += 1
            self.damaged(f"cannot be decompressed ({error})")
        except OSError as error:
            raise DamagedLogError(f"{self.name}: cannot be read ({error.strerror})") from None

    def next_text(self) -> bytes | None:
        """Return the next line as it stands, None at the end."""
        text = next(self._texts, None)
        self.number += text is not None
        return text

    def next(self, expected: str) -> Line:
        """Return the next line's object."""
        text = self.next_text()
        if text is None:
            self.number += 1
            self.damaged(f"is missing: the log is truncated before {expected}")
        if not text.endswith(b"\n"):
            self.damaged("is cut short")
        try:
            content = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            self.damaged(f"is no JSON ({error})")
        if type(content) is not dict:
            self.damaged("is no JSON object")
        return content

    def damaged(self, what: str, field: str | None = None, line: int | None = None) -> NoReturn:
        """Stop at a line (by default the last one read) and, where one is at fault, a field of it."""
        where = f"{self.name}, line {self.number if line is None else line}"
        raise DamagedLogError(f"{where} {what}" if field is None else f"{where}, {field}: {what}")


def _check_values(lines: _Lines, content: Line, expected: Line) -> None:
    _check_keys(lines, content, tuple(expected))
    for key, value in expected.items():
        if content[key] != value or type(content[key]) is not type(value):
            lines.damaged(f"{_short(content[key])} is not {_short(value)}", key)


def _check_keys(lines: _Lines, content: Line, expected: tuple[str, ...]) -> None:
    for key in expected:
        if key not in content:
            lines.damaged("is missing", key)
    for key in content:
        if key not in expected:
            lines.damaged("is no key of this line", key)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def _read_episode(lines: _Lines, seed: int, world: World) -> list[Line]:
    """Read the lines of one episode and check their keys, order and types."""
    episode = []
    lengths = [(name, world.fields) for name in LISTS] + [("check", len(CHECKED))]
    for t in range(world.regime.horizon + 1):
        content = lines.next(f"t {t} of seed {seed}")
        final = "success" in content
        if content.keys() != (_FINAL_SET if final else _DECISION_SET):
            at_end = final or t == world.regime.horizon
            _check_keys(lines, content, FINAL_KEYS if at_end else DECISION_KEYS)
        for key, value in (("seed", seed), ("t", t)):
            if content[key] != value or type(content[key]) is not int:
                lines.damaged(f"{_short(content[key])} stands where {value} is due", key)
        for key, length in lengths:
            value = content[key]
            if type(value) is not list or len(value) != length:
                lines.damaged(f"is no list of {length}", key)
            if list(map(type, value)).count(int) != length:
                lines.damaged("holds something else than whole numbers", key)
        for key, types in _FINAL_TYPES if final else _DECISION_TYPES:
            if type(content[key]) not in types:
                lines.damaged(f"{_short(content[key])} is of the wrong type", key)
        episode.append(content)
        if final:
            return episode
        if (content["probe"] is None) != (content["answer"] is None):
            lines.damaged("is null without the probe, or not null with it", "answer")
    lines.damaged("is missing where the horizon is reached", "success")


class _Block:
    """Some episodes' lines, turned into arrays; `first` is the number of each one's first line."""

    def __init__(
        self, lines: _Lines, cell: Cell, world: World, first: Ints, episodes: list[list[Line]]
    ) -> None:
        self.lines, self.cell, self.world, self.first = lines, cell, world, first
        self.steps = np.array([len(episode) - 1 for episode in episodes])
        self.states = [line for episode in episodes for line in episode]
        self.decisions = [line for episode in episodes for line in episode[:-1]]
        self.success = np.array([episode[-1]["success"] for episode in episodes])
        self.row = np.repeat(np.arange(len(episodes)), self.steps + 1)
        self.time = np.concatenate([np.arange(steps + 1) for steps in self.steps])
        self.acting = self.time < self.steps[self.row]

    def trajectory(self) -> Trajectory:
        """Return the recording, every value in range and every check sum right."""
        domain, actions = self.world.domain - 1, self.world.actions
        score = np.full((len(self.first), self.world.regime.horizon), np.nan)
        score[self.row[self.acting], self.time[self.acting]] = [
            np.nan if line["score"] is None else line["score"] for line in self.decisions
        ]
        recorded = dict(
            belief=self._fields("belief", np.int8, UNKNOWN, domain),
            gold=self._fields("gold", np.int8, 0, domain),
            staleness=self._fields("staleness", np.uint8, 0, STALENESS_LIMIT),
            confidence=self._fields("confidence", np.uint8, 0, CERTAIN),
            place=self._states("place", np.int8, 0, LARGEST_PLACE),
            action=self._steps("proposal", np.int16, WAIT, actions - 1, WAIT),
            probe=self._steps("probe", np.int16, UNKNOWN, self.world.fields - 1, UNKNOWN),
            answer=self._steps("answer", np.int8, 0, domain.max()),
            useful=self._steps("useful", np.bool_, 0, 1),
            valid=self._steps("valid", np.bool_, 0, 1),
            acted=self._steps("acted", np.bool_, 0, 1),
            score=score,
            steps=self.steps,
            success=self.success,
        )
        trajectory = recording.score(setting_of(self.cell), recorded)
        stated = np.array([line["check"] for line in self.states], dtype=object)
        wrong = np.argwhere(line_checks(trajectory)[self.row, self.time] != stated)
        if len(wrong):
            line, part = wrong[0]
            self._damaged(self.states[line], "does not fit the line's check sum", CHECKED[part])
        return trajectory

    def _fields(self, key: str, dtype: npt.DTypeLike, low: int, high: Ints | int) -> npt.NDArray[Any]:
        shape = (len(self.first), self.world.regime.horizon + 1, self.world.fields)
        result = np.zeros(shape, dtype=dtype)
        result[self.row, self.time] = self._values(self.states, key, low, high)
        return result

    def _states(self, key: str, dtype: npt.DTypeLike, low: int, high: int) -> npt.NDArray[Any]:
        result = np.zeros((len(self.first), self.world.regime.horizon + 1), dtype=dtype)
        result[self.row, self.time] = self._values(self.states, key, low, high)
        return result

    def _steps(self, key: str, dtype: npt.DTypeLike, low: int, high: int, empty: int = 0) -> npt.NDArray[Any]:
        result = np.full((len(self.first), self.world.regime.horizon), empty, dtype=dtype)
        values = self._values(self.decisions, key, low, high, empty)
        result[self.row[self.acting], self.time[self.acting]] = values
        return result

    def _values(
        self, lines: list[Line], key: str, low: int, high: Ints | int, empty: int = 0
    ) -> npt.NDArray[Any]:
        """Return the key's values of some lines, null as `empty`; refuse what is out of range."""
        given = [empty if line[key] is None else line[key] for line in lines]
        try:
            values = np.array(given, dtype=np.int64)
        except OverflowError:  # some number is larger than 64 bits
            values = np.array(given, dtype=object)
        wrong = np.argwhere((values < low) | (values > high))
        if len(wrong):
            at = tuple(wrong[0])
            field = key if len(at) == 1 else f"{key} of {self.world.field_names[at[1]]}"
            self._damaged(lines[at[0]], f"{values[at]} is out of range", field)
        return values

    def _damaged(self, line: Line, what: str, field: str) -> NoReturn:
        position = next(index for index, other in enumerate(self.states) if other is line)
        number = self.first[self.row[position]] + self.time[position]
        self.lines.damaged(what, field, int(number))
