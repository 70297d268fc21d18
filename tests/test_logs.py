"""Step logs: what is written can be read back, and every kind of damage is named by its place."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from strategies import cells, seeds

from envprobe_core.cells import Cell, make_cell
from envprobe_core.engine.recording import Trajectory
from envprobe_core.engine.running import record
from envprobe_core.logreading import DamagedLogError, LoggedEpisodes, read_log
from envprobe_core.logs import (
    DECISION_KEYS,
    FINAL_KEYS,
    compress,
    encode_episodes,
    encode_line,
    log_footer,
    log_header,
)
from envprobe_core.protocols import RELEASED

SEEDS = np.array([2, 3, 5, 8])
CELL = make_cell("tooldag", "simple", protocol=RELEASED)
FIRST = 2  # the number of the line with t = 0 of the first seed


def write_log(path: Path, cell: Cell, some: np.ndarray) -> Trajectory:
    trajectory = record(cell, some)
    text = encode_episodes(trajectory, some)
    parts = [
        encode_line(log_header(cell, some)),
        text,
        encode_line(log_footer(text.count(b"\n"), len(some))),
    ]
    path.write_bytes(b"".join(map(compress, parts)))
    return trajectory


def read_all(path: Path, cell: Cell, some: np.ndarray) -> list[LoggedEpisodes]:
    return list(read_log(path, "the.log", cell, some))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "x.jsonl.gz"
    write_log(path, CELL, SEEDS)
    return path


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "x.jsonl.gz"
    write_log(path, CELL, SEEDS)
    return path


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def put(path: Path, lines: list[dict]) -> None:
    path.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))


@settings(max_examples=40, deadline=None)
@given(cells(), seeds)
def test_a_log_gives_back_the_trajectory(
    tmp_path_factory: pytest.TempPathFactory, cell: Cell, some: np.ndarray
) -> None:
    some = np.sort(some)
    path = tmp_path_factory.mktemp("log") / "x.jsonl.gz"
    written = write_log(path, cell, some)
    (read,) = read_all(path, cell, some)
    assert read.seeds.tolist() == some.tolist()
    parts = [field.name for field in fields(Trajectory) if field.name != "measures"]
    of_log, of_run = (
        {name: getattr(made, name) for name in parts} | made.measures for made in (read.trajectory, written)
    )
    assert list(of_log) == list(of_run)
    for name, values in of_run.items():
        np.testing.assert_array_equal(of_log[name], values, err_msg=name)
        assert of_log[name].dtype == values.dtype, name


def test_a_log_of_many_episodes_comes_in_blocks(tmp_path: Path) -> None:
    some = np.arange(300)
    written = write_log(tmp_path / "x.jsonl.gz", CELL, some)
    blocks = read_all(tmp_path / "x.jsonl.gz", CELL, some)
    assert [len(block.seeds) for block in blocks] == [256, 44]
    np.testing.assert_array_equal(
        np.concatenate([block.trajectory.belief for block in blocks]), written.belief
    )
    lines = lines_of(tmp_path / "x.jsonl.gz")
    for block in blocks:
        for seed, first in zip(block.seeds, block.first_line, strict=True):
            assert (lines[first - 1]["seed"], lines[first - 1]["t"]) == (seed, 0)


def test_lines_state_what_happened(log: Path) -> None:
    header, *steps, footer = lines_of(log)
    trajectory = record(CELL, SEEDS)
    assert header["world"] == "tooldag"
    assert header["fields"][0] == "loaded(0)"
    assert header["actions"][8] == "call(8)"
    assert (header["n_fields"], header["horizon"], header["writes"]) == (27, 30, "number")
    assert (header["episodes"], header["seeds"]) == (4, "2:4,5,8")
    assert footer == {"lines": len(steps), "episodes": 4}
    expected = [(row, t) for row, last in enumerate(trajectory.steps) for t in range(last + 1)]
    assert [(line["seed"], line["t"]) for line in steps] == [(SEEDS[row], t) for row, t in expected]
    for line, (row, t) in zip(steps, expected, strict=True):
        assert line["belief"] == trajectory.belief[row, t].tolist()
        assert line["confidence"] == trajectory.confidence[row, t].tolist()
        if t == trajectory.steps[row]:
            assert tuple(line) == FINAL_KEYS
            assert line["success"] is bool(trajectory.success[row])
            continue
        assert tuple(line) == DECISION_KEYS
        assert line["proposal"] == trajectory.action[row, t]
        if trajectory.probe[row, t] < 0:
            assert line["probe"] is None
            assert line["answer"] is None
            assert line["useful"] is False
        else:
            assert line["probe"] == trajectory.probe[row, t]
            assert line["answer"] == line["gold"][line["probe"]]
            assert line["useful"] is (line["answer"] != line["belief"][line["probe"]])
        assert line["score"] == trajectory.score[row, t]


def test_a_policy_without_a_score_logs_null() -> None:
    cell = make_cell("graphnav", "random")
    first = encode_episodes(record(cell, SEEDS), SEEDS).splitlines()[0]
    assert json.loads(first)["score"] is None


def test_check_sums_are_those_of_the_definition(log: Path) -> None:
    for line in lines_of(log)[1:-1]:
        weighted = [
            sum(value * weight for weight, value in enumerate(line[key], start=1)) % 997
            for key in ("belief", "gold", "staleness", "confidence")
        ]
        assert line["check"][:4] == weighted


def test_the_bytes_do_not_depend_on_how_episodes_are_joined() -> None:
    trajectory = record(CELL, SEEDS)
    halves = [encode_episodes(trajectory.rows(part), SEEDS[part]) for part in (slice(0, 1), slice(1, 4))]
    assert b"".join(halves) == encode_episodes(trajectory, SEEDS)
    assert compress(halves[0]) == compress(halves[0])
    assert compress(b"x")[4:8] == bytes(4)  # the gzip time stamp


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["belief", "gold", "staleness", "confidence"]),
    st.integers(0, 60),
    st.integers(0, 26),
    st.integers(1, 40),
)
def test_any_altered_number_is_found(
    untouched: Path, key: str, line: int, position: int, change: int
) -> None:
    path = untouched.with_name("altered.jsonl.gz")
    lines = lines_of(untouched)
    line = FIRST + line % (len(lines) - 2)
    values = lines[line - 1][key]
    limit = 2 if key in ("belief", "gold") else 100
    values[position] = (values[position] + change) % limit
    put(path, lines)
    if values == lines_of(untouched)[line - 1][key]:
        read_all(path, CELL, SEEDS)
        return
    with pytest.raises(DamagedLogError, match=rf"^the\.log, line {line}, {key}: .*check sum"):
        read_all(path, CELL, SEEDS)


def alter(**values: object) -> Callable[[list[dict]], None]:
    def change(lines: list[dict]) -> None:
        lines[FIRST + 1].update(values)  # the line with t = 2

    return change


def without(key: str) -> Callable[[list[dict]], None]:
    return lambda lines: lines[FIRST + 1].pop(key)


def longer(key: str) -> Callable[[list[dict]], None]:
    return lambda lines: lines[FIRST + 1][key].append(0)


def first_value(key: str, value: object) -> Callable[[list[dict]], None]:
    return lambda lines: lines[FIRST + 1][key].__setitem__(0, value)


@pytest.mark.parametrize(
    ("change", "line", "field"),
    [
        (lambda lines: lines.pop(4), 5, "t"),
        (lambda lines: lines.insert(4, lines[4]), 6, "t"),
        (lambda lines: lines.__setitem__(slice(3, 5), lines[4:2:-1]), 4, "t"),
        (alter(seed=3), 4, "seed"),
        (alter(t=True), 4, "t"),
        (without("gold"), 4, "gold"),
        (without("useful"), 4, "useful"),
        (without("check"), 4, "check"),
        (alter(mood="good"), 4, "mood"),
        (alter(proposal="call(1)"), 4, "proposal"),
        (alter(proposal=99), 4, "proposal"),
        (alter(proposal=-2), 4, "proposal"),
        (alter(useful=0), 4, "useful"),
        (alter(valid=None), 4, "valid"),
        (alter(score=2), 4, "score"),
        (alter(score=0.25), 4, "place, decision or success"),
        (alter(place=1), 4, "place, decision or success"),
        (alter(place=-1), 4, "place"),
        (alter(place=1.0), 4, "place"),
        (alter(probe=27, answer=0), 4, "probe"),
        (alter(probe=0, answer=None), 4, "answer"),
        (alter(belief=[]), 4, "belief"),
        (alter(belief={}), 4, "belief"),
        (longer("staleness"), 4, "staleness"),
        (longer("check"), 4, "check"),
        (first_value("belief", 1.5), 4, "belief"),
        (first_value("belief", True), 4, "belief"),
        (first_value("belief", None), 4, "belief"),
        (first_value("belief", 2), 4, "belief of loaded(0)"),
        (first_value("gold", -1), 4, "gold of loaded(0)"),
        (first_value("confidence", 101), 4, "confidence of loaded(0)"),
        (first_value("staleness", 2**63), 4, "staleness of loaded(0)"),
        (lambda lines: lines[0].update(budget=8), 1, "budget"),
        (lambda lines: lines[0].update(keeps_open=1), 1, "keeps_open"),
        (lambda lines: lines[0].pop("fields"), 1, "fields"),
        (lambda lines: lines[0].update(seeds="2:5,8"), 1, "seeds"),
    ],
)
def test_damage_is_named_by_line_and_field(
    log: Path, change: Callable[[list[dict]], None], line: int, field: str
) -> None:
    lines = lines_of(log)
    change(lines)
    put(log, lines)
    with pytest.raises(DamagedLogError) as error:
        read_all(log, CELL, SEEDS)
    assert str(error.value).startswith(f"the.log, line {line}, {field}: ")


@pytest.mark.parametrize("key", ["success", "lines"])
def test_damage_to_closing_lines_is_named(log: Path, key: str) -> None:
    lines = lines_of(log)
    number = max(index for index, line in enumerate(lines) if key in line)
    lines[number][key] = not lines[number][key] if key == "success" else 7
    put(log, lines)
    field = "place, decision or success" if key == "success" else key
    with pytest.raises(DamagedLogError, match=f"line {number + 1}, {field}: "):
        read_all(log, CELL, SEEDS)


def test_an_episode_that_never_ends_is_named(tmp_path: Path) -> None:
    cell, path = make_cell("tooldag", "simple"), tmp_path / "x.jsonl.gz"
    write_log(path, cell, SEEDS)
    lines = lines_of(path)
    lines[31] = {**lines[30], "t": 30}
    put(path, lines)
    with pytest.raises(DamagedLogError, match="line 32, success: is missing"):
        read_all(path, cell, SEEDS)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (b"{not json}\n", "line 5 is no JSON"),
        (b"[1, 2]\n", "line 5 is no JSON object"),
        (b"\n", "line 5 is no JSON"),
        (b'{"seed": NaN}\n', "line 5 is no JSON"),
        (b"\xff\xfe\n", "line 5 is no JSON"),
    ],
)
def test_a_line_that_is_no_object_is_named(log: Path, text: bytes, what: str) -> None:
    lines = gzip.decompress(log.read_bytes()).splitlines(keepends=True)
    lines[4] = text
    log.write_bytes(gzip.compress(b"".join(lines)))
    with pytest.raises(DamagedLogError, match=what):
        read_all(log, CELL, SEEDS)


def test_truncation_is_named_wherever_it_happens(log: Path) -> None:
    whole, count = log.read_bytes(), len(lines_of(log))
    for size in [*range(0, len(whole) - 1, len(whole) // 40), len(whole) - 1]:
        log.write_bytes(whole[:size])
        with pytest.raises(DamagedLogError, match=r"truncated|is cut short") as error:
            read_all(log, CELL, SEEDS)
        named = re.match(r"the\.log, line (\d+) ", str(error.value))
        assert named
        assert abs(int(named[1]) - count * size / len(whole)) < count / 2


def test_truncated_text_in_whole_gzip_is_named(log: Path) -> None:
    text = gzip.decompress(log.read_bytes())
    lines = text.splitlines(keepends=True)
    log.write_bytes(gzip.compress(b"".join(lines[:-1])))
    with pytest.raises(DamagedLogError, match=f"line {len(lines)} is missing.*closing line"):
        read_all(log, CELL, SEEDS)
    log.write_bytes(gzip.compress(b"".join(lines[:10])))
    with pytest.raises(DamagedLogError, match=r"line 11 is missing: .*before t 9 of seed 2"):
        read_all(log, CELL, SEEDS)
    log.write_bytes(gzip.compress(text[:-1]))
    with pytest.raises(DamagedLogError, match=f"line {len(lines)} is cut short"):
        read_all(log, CELL, SEEDS)


def test_text_after_the_end_is_named(log: Path) -> None:
    whole, count = log.read_bytes(), len(lines_of(log))
    log.write_bytes(whole + gzip.compress(b"{}\n"))
    with pytest.raises(DamagedLogError, match=f"line {count + 1} stands after the closing line"):
        read_all(log, CELL, SEEDS)
    log.write_bytes(whole + b"garbage")
    with pytest.raises(DamagedLogError, match=f"line {count + 1} cannot be decompressed"):
        read_all(log, CELL, SEEDS)


def test_a_flipped_bit_is_found(log: Path) -> None:
    whole = log.read_bytes()
    found = 0
    for position in range(0, len(whole), len(whole) // 40):
        damaged = bytearray(whole)
        damaged[position] ^= 0x10
        log.write_bytes(damaged)
        try:
            if gzip.decompress(damaged) == gzip.decompress(whole):
                continue  # bits of gzip's header that carry nothing
        except (OSError, EOFError, zlib.error):
            pass
        with pytest.raises(DamagedLogError, match=r"^the\.log, line \d+"):
            read_all(log, CELL, SEEDS)
        found += 1
    assert found > 35


def test_a_missing_or_foreign_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DamagedLogError, match=r"the\.log: cannot be read \(No such file"):
        read_all(tmp_path / "none.gz", CELL, SEEDS)
    (tmp_path / "text.gz").write_text("hello")
    with pytest.raises(DamagedLogError, match="line 1 cannot be decompressed"):
        read_all(tmp_path / "text.gz", CELL, SEEDS)
    (tmp_path / "empty.gz").write_bytes(b"")
    with pytest.raises(DamagedLogError, match=r"line 1 is missing: .*before the header"):
        read_all(tmp_path / "empty.gz", CELL, SEEDS)
