"""Step logs: what is written can be read back, and every value that no run writes is named by its place."""

import re
from dataclasses import fields

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from strategies import cells, seeds

from envprobe_core.cells import make_cell
from envprobe_core.engine.recording import Trajectory
from envprobe_core.engine.running import record
from envprobe_core.errors import InputError
from envprobe_core.protocols import RELEASED
from envprobe_core.runs import tables
from envprobe_core.runs.tables import HEADER, log_header, read_steps, step_table, write_tables
from envprobe_core.worlds import make_world

SEEDS = np.array([2, 3, 5, 8])
CELL = make_cell("tooldag", "simple", protocol=RELEASED)


def write_log(path, cell, some, pieces=1):
    trajectory = record(cell, some)
    cut = np.array_split(np.arange(len(some)), pieces)
    rows = [step_table(cell, some[own], trajectory.rows(own)) for own in cut]
    write_tables(path, rows, log_header(cell, some))
    return trajectory


def read_log(path, cell=CELL, some=SEEDS):
    return list(read_steps(path.parent, path.name, cell, some))


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "the.parquet"
    write_log(path, CELL, SEEDS)
    return path


@settings(max_examples=40, deadline=None)
@given(cells(), seeds)
def test_a_log_gives_back_the_trajectory(tmp_path_factory, cell, some):
    some = np.sort(some)
    path = tmp_path_factory.mktemp("log") / "the.parquet"
    written = write_log(path, cell, some)
    ((own, read),) = read_log(path, cell, some)
    assert own.tolist() == some.tolist()
    parts = [field.name for field in fields(Trajectory) if field.name != "measures"]
    of_log, of_run = (
        {name: getattr(made, name) for name in parts} | made.measures for made in (read, written)
    )
    assert list(of_log) == list(of_run)
    for name, values in of_run.items():
        np.testing.assert_array_equal(of_log[name], values, err_msg=name)
        assert of_log[name].dtype == values.dtype, name


def test_a_log_of_many_episodes_comes_in_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "GROUP_ROWS", 2000)
    some, cell = np.arange(150), make_cell("tooldag", "simple")
    written = write_log(tmp_path / "the.parquet", cell, some, pieces=3)
    groups = read_log(tmp_path / "the.parquet", cell, some)
    assert [len(own) for own, _ in groups] == [100, 50]
    np.testing.assert_array_equal(np.concatenate([made.belief for _, made in groups]), written.belief)


def test_a_log_can_be_read_alone(log):
    """With pandas: a row a step, columns by the name of the field, and a header that says what it is."""
    header = orjson.loads(pq.read_schema(log).metadata[HEADER])
    assert (header["world"], header["writes"], header["horizon"]) == ("tooldag", "number", 30)
    assert (header["fields"][0], header["actions"][8], header["seeds"]) == ("loaded(0)", "call(8)", "2:4,5,8")
    frame, made = pd.read_parquet(log), record(CELL, SEEDS)
    expected = [(seed, t) for seed, last in zip(SEEDS, made.steps, strict=True) for t in range(last + 1)]
    assert list(zip(frame["seed"], frame["t"], strict=True)) == expected
    row, t = 1, 3
    line = frame[(frame["seed"] == SEEDS[row]) & (frame["t"] == t)].iloc[0]
    for place, name in enumerate(header["fields"]):
        assert line[f"belief {name}"] == made.belief[row, t, place]
        assert line[f"confidence {name}"] == made.confidence[row, t, place]
    assert (line["action"], line["score"]) == (made.action[row, t], made.score[row, t])
    fired = made.probe[row, t] >= 0
    assert (pd.notna(line["probe"]), pd.notna(line["answer"])) == (fired, fired)
    last = frame.groupby("seed").tail(1)
    assert last["success"].tolist() == made.success.tolist()
    assert last["action"].isna().all()
    assert frame["success"].notna().sum() == len(SEEDS)


def altered(column, value, row=2):
    def change(table):
        values = table.column(column).to_pylist()
        values[row] = value
        field = table.schema.field(column)
        return table.set_column(table.schema.get_field_index(column), field, pa.array(values, field.type))

    return change


def without(*rows):
    return lambda table: table.take([row for row in range(len(table)) if row not in rows])


def past_the_horizon(table):
    last = int(np.flatnonzero(table["t"].to_numpy() == 0)[1]) - 1
    longer = table.take([*range(last), *[last - 1] * (31 - last), *range(last, len(table))])
    for row in range(last, 32):
        longer = altered("t", row, row)(longer)
    return longer


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without(4), "seed 2, t 5, t: 5 stands where 4 is due"),
        (altered("seed", 3), "seed 3, t 2, seed: 3 stands where 2 is due"),
        (altered("t", None), "t: "),
        (altered("action", 99), "seed 2, t 2, action: 99 is out of place; accepted: -1..8"),
        (altered("probe", 27), "seed 2, t 2, probe: 27 is out of place; accepted: 0..26"),
        (altered("answer", None, 0), "answer: null is out of place"),
        (altered("place", -1), "place: -1 is out of place"),
        (altered("belief loaded(0)", 2), "seed 2, t 2, belief loaded(0): 2 is out of place; accepted: -1..1"),
        (altered("gold loaded(0)", -1), "gold loaded(0): -1 is out of place; accepted: 0..1"),
        (altered("confidence loaded(0)", 101), "confidence loaded(0): 101 is out of place"),
        (altered("success", None, -1), "success: is missing"),
        (lambda table: table.slice(0, len(table) - 40),
         r"success: is missing: the log is cut short|ends before"),
        (past_the_horizon, "success: is missing where the horizon"),
        (lambda table: pa.concat_tables([table, table.slice(0, 31)]), "goes on after its last seed"),
        (lambda table: table.drop_columns(["useful"]), "the.parquet: has no column useful of type bool"),
        (lambda table: table.append_column("mood", table["t"]), "column mood is none of a run"),
        (lambda table: table.set_column(1, "t", table["t"].cast(pa.int64())),
         "the.parquet: has no column t of type int16"),
        (lambda table: table.replace_schema_metadata({HEADER: b"{"}), "the.parquet: cannot be read"),
        (lambda table: b"hello", "the.parquet: cannot be read as Parquet"),
    ],
)  # fmt: skip
def test_what_no_run_writes_is_named(log, change, message):
    found = change(pq.read_table(log))
    log.write_bytes(found) if isinstance(found, bytes) else pq.write_table(found, log)
    with pytest.raises(InputError, match=message.replace("(", r"\(").replace(")", r"\)")):
        read_log(log)


def test_gold_is_unknown_where_the_instance_has_no_such_field_and_nowhere_else(tmp_path):
    cell, path = make_cell("graphnav", "simple", protocol=RELEASED), tmp_path / "the.parquet"
    fewer = np.flatnonzero(record(cell, np.arange(20)).gold[:, 0, -1] == -1)[
        :3
    ]  # seeds without the last edge
    made = write_log(path, cell, fewer)
    names = make_world("graphnav", cell.regime, RELEASED).field_names
    there, absent = names[(made.gold[0, 0] == -1).argmax() - 1], names[-1]
    whole = pq.read_table(path)
    ((_, again),) = read_log(path, cell, fewer)
    np.testing.assert_array_equal(again.gold, made.gold)
    for field, value, accepted in ((there, -1, "0..1"), (absent, 0, "-1..-1")):
        pq.write_table(altered(f"gold {field}", value)(whole), path)
        told = f"seed {fewer[0]}, t 2, gold {field}: {value} is out of place; accepted: {accepted}"
        with pytest.raises(InputError, match=re.escape(told)):
            read_log(path, cell, fewer)
