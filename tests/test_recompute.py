"""A run in other hands: read as frames, computed again from its logs, repeated from its manifest."""

import functools
import hashlib
import json
import operator
import shutil
from dataclasses import fields

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import Trajectory, simulate_logged
from envprobe_core.errors import InputError
from envprobe_core.protocols import RELEASED
from envprobe_core.runs import folder as folders
from envprobe_core.runs import manifest as manifests
from envprobe_core.runs import read_run, recompute, tables
from envprobe_core.runs.folder import open_run
from envprobe_core.runs.manifest import RunInputs
from processes import contents
from strategies import conditions, seeds

POLICIES = ("simple", "judge", "yoked", "random")
LOG, TABLE, MANIFEST = "logs/tooldag_S2_paper_simple.parquet", "episodes.parquet", "manifest.json"


def make_run(path, seeds="0:12", logs="full", **inputs):
    given = {"worlds": ["tooldag"], "policies": POLICIES} | inputs
    with open_run(path, RunInputs(**given, seeds=seeds, logs=logs)) as folder:
        folder.fill(jobs=1)
        folder.finish()
    return path


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def run(original, tmp_path):
    return shutil.copytree(original, tmp_path / "run")


# --- reading ----------------------------------------------------------------------------------


@settings(max_examples=80)
@given(conditions(), seeds)
@pytest.mark.nightly
def test_a_log_gives_back_the_trajectory_and_contradicts_itself_nowhere(tmp_path_factory, condition, some):
    some, path = np.sort(some), tmp_path_factory.mktemp("log") / "x.parquet"
    written = simulate_logged(condition, some)
    tables.write_table(path, tables.step_table(condition, some, written))
    read, lines = tables.read_steps(path.parent, path.name, condition, some)
    parts = [field.name for field in fields(Trajectory) if field.name != "measures"]
    of_log, of_run = ({one: getattr(made, one) for one in parts} | made.measures for made in (read, written))
    assert list(of_log) == list(of_run)
    for name, values in of_run.items():
        np.testing.assert_array_equal(of_log[name], values, err_msg=name)
        assert of_log[name].dtype == values.dtype, name
    for due in (written, recompute.as_ruled(condition, some, read)):
        assert [*recompute.unlike_lines("x", condition, some, (read, lines), due)] == []
    assert [*recompute.early(condition, some, read)] == []


def test_a_run_is_read_as_frames(tmp_path):
    """A log also alone: its columns are named by field, and its header says what they hold."""
    inputs = {"policies": ["simple", "cd"], "protocols": ["released"]}
    path, some = make_run(tmp_path / "run", "2:4,5,8", "sample:3", **inputs), np.array([2, 3, 5])
    read, made = read_run(path), simulate_logged(make_condition("tooldag", "simple", protocol=RELEASED), some)
    assert (list(read.conditions["policy"]), len(read.episodes)) == (["simple", "cd"], 8)
    np.testing.assert_array_equal(read.episodes["accuracy"][:3], made.measures["accuracy"])
    frame = read.steps(policy="simple")
    due = [(seed, t) for seed, last in zip(some, made.steps, strict=True) for t in range(last + 1)]
    assert list(zip(frame["seed"], frame["t"], strict=True)) == due
    header = json.loads(pq.read_schema(path / read.conditions["log"][0]).metadata[tables.HEADER])
    assert (header["world"], header["writes"], header["horizon"]) == ("tooldag", "number", 30)
    assert (header["fields"][0], header["actions"][8], header["seeds"]) == ("loaded(0)", "call(8)", "2:4,5")
    line, fired = frame[(frame["seed"] == 3) & (frame["t"] == 3)].iloc[0], made.probe[1, 3] >= 0
    for place, name in enumerate(header["fields"]):
        for array in ("belief", "gold", "staleness", "confidence"):
            assert line[f"{array} {name}"] == getattr(made, array)[1, 3, place]
    assert (line["action"], line["score"]) == (made.action[1, 3], made.score[1, 3])
    assert (pd.notna(line["probe"]), pd.notna(line["answer"])) == (fired, fired)
    last = frame.groupby("seed").tail(1)
    assert last["success"].tolist() == made.success.tolist()
    assert (last["action"].isna().all(), frame["success"].count()) == (True, 3)
    with pytest.raises(InputError, match="2 conditions of"):
        read.steps(world="tooldag")
    (path / TABLE).write_bytes((path / TABLE).read_bytes() + b"x")
    with pytest.raises(InputError, match="is not the file that its manifest is of"):
        _ = read_run(path).episodes


# --- recomputing ------------------------------------------------------------------------------


def test_an_honest_run_agrees(tmp_path, told, monkeypatch):
    """Also in several processes, and from files of several row groups."""
    monkeypatch.setattr(folders, "LOGGED_AT_ONCE", 5)
    monkeypatch.setattr(tables, "GROUP_ROWS", 100)
    monkeypatch.setattr(recompute, "PROCESS_PAYS", 10)
    run = make_run(tmp_path / "run")
    assert pq.ParquetFile(run / LOG).num_row_groups == 4
    for cores in (1, 2):
        monkeypatch.setattr(recompute, "cores", lambda cores=cores: cores)
        code, out, err = told("recompute", run)
        assert (code, err) == (0, "")
        assert out.startswith("4 logs, 48 episodes, 1488 rows: every measure agrees")
        assert json.loads((run / MANIFEST).read_text())["result_hash"] in out


def rewritten(name, change):
    """Give a file of the run another table."""

    return lambda run: pq.write_table(change(pq.read_table(run / name)), run / name)


def altered(name, column, row, value):
    """Give a row another value in a column; a function is given the row as it was."""

    def alter(table):
        values = table.column(column).to_pylist()
        values[row] = value(table.slice(row, 1).to_pylist()[0]) if callable(value) else value
        field = table.schema.field(column)
        return table.set_column(table.column_names.index(column), field, pa.array(values, field.type))

    return rewritten(name, alter)


def stated(path, value):
    """Let the manifest state another value."""

    def change(run):
        manifest = json.loads((run / MANIFEST).read_text())
        functools.reduce(operator.getitem, path[:-1], manifest)[path[-1]] = value
        (run / MANIFEST).write_text(json.dumps(manifest))

    return change


def forged(row, **changes):
    """Alter a row of a log, and give the manifest the SHA-256 of what it is now."""

    def change(run):
        for column, value in changes.items():
            column = {"belief": "belief loaded(0)", "gold": "gold loaded(0)"}.get(column, column)
            altered(LOG, column, row, value)(run)
        stated(("sha256", LOG), hashlib.sha256((run / LOG).read_bytes()).hexdigest())(run)

    return change


def without(*rows):
    return lambda table: table.take([row for row in range(len(table)) if row not in rows])


def end_early(run):
    rewritten(LOG, without(*range(20, 30)))(run)
    altered(LOG, "t", 20, 20)(run)


def in_table(name, value):
    told = [f"{TABLE}, tooldag_S2_paper_simple, seed 5, {name} is ", f"manifest.json, sha256 {TABLE} is "]
    return altered(TABLE, name, 5, value), [*told, "2 disagreements"]


DISAGREEMENTS = [
    # numbers that no measure depends on: the run made anew has others, and the manifest the file's SHA-256
    *((forged(40, **{name: lambda row, name=name: row[name] ^ 1}), [f"{LOG}, seed 1, t 9, {name} is "])
      for name in ("staleness loaded(3)", "confidence loaded(3)", "place")),
    (altered(LOG, "staleness loaded(3)", 40, lambda row: row["staleness loaded(3)"] ^ 1),
     [f"manifest.json, sha256 {LOG} is ", "2 disagreements in"]),
    (forged(30, belief=lambda row: 1 - row["belief loaded(0)"]),
     ["seed 0, accuracy is ", "seed 0, digest is ", "conditions 0 result_hash is "]),
    (forged(0, useful=lambda row: not row["useful"]), [f"{LOG}, seed 0, t 0, useful is true, not false"]),
    (forged(0, answer=lambda row: 1 - row["answer"]), ["seed 0, t 0, answer is "]),
    (forged(0, acted=True), ["seed 0, t 0, acted is true, not false"]),
    (forged(0, valid=True), ["seed 0, t 0, valid is true, not false"]),
    (forged(0, score=None), ["seed 0, t 0, score is null, not "]),
    (forged(28, probe=0, answer=lambda row: row["gold loaded(0)"], valid=False, acted=False),
     ["seed 0, t 28, probe is 0, not null"]),  # the budget is spent
    (forged(0, probe=27), ["seed 0, t 0, probe is 27, not 0"]),
    (forged(0, probe=-9), ["seed 0, t 0, probe is -9, not 0"]),
    (forged(2, seed=3), ["seed 0, t 2, seed is 3, not 0"]),
    (forged(2, t=None), ["seed 0, t 2, t is null, not 2"]),
    (forged(2, action=None), ["seed 0, t 2, action is null, not 8"]),
    (forged(30, action=1), ["seed 0, t 30, action is 1, not null"]),
    (forged(2, gold=None), ["seed 0, t 2, gold loaded(0) is null, not "]),
    (rewritten(LOG, without(4)), ["seed 0: ends at t 29, not at t 30"]),
    (end_early, ["seed 0: ends before its time, at t 20", "steps is 30, not 20"]),
    in_table("accuracy", 0.123), in_table("success", lambda row: not row["success"]),
    in_table("probes", 3), in_table("collapse_onset", 1.5), in_table("digest", 1), in_table("policy", "cd"),
    in_table("actions", None), in_table("accuracy", float("nan")), in_table("collapse_onset", float("inf")),
    (stated(["result_hash"], "0" * 64), ["manifest.json, result_hash is "]),
    (stated(["conditions", 2, "result_hash"], "0" * 64), ["manifest.json, conditions 2 result_hash is "]),
    (stated(["conditions", 1, "episodes"], 13), ["manifest.json, conditions 1 episodes is 13, not 12"]),
    (stated(["protocols", "paper", "clock"], "stands"), ['protocols paper clock is "stands", not "runs"']),
    (stated(["profile", "omit"], 0.5), ["manifest.json, profile omit is 0.5, not "]),
]  # fmt: skip


UNREADABLE = [
    (shutil.rmtree, "is not a folder"),
    (lambda run: (run / MANIFEST).unlink(), "holds no run: it has no manifest.json"),
    (lambda run: (run / MANIFEST).write_text("{"), "is no manifest of a run"),
    (stated(["inputs", "x"], float("nan")), "is no manifest of a run"),
    (stated(["result_hash"], "[b]"), "result_hash"),
    (stated(["finished"], False), "is not finished"),
    (lambda run: (run / TABLE).unlink(), "episodes.parquet: cannot be read"),
    (rewritten(TABLE, without(0)), "episodes.parquet: has 47 rows, not 48"),
    (rewritten(TABLE, lambda table: table.drop_columns(["digest"])), "column digest (UInt64) is missing"),
    (rewritten(LOG, lambda table: table.append_column("mood", table["t"])), "column mood (Int16) is "),
    (rewritten(LOG, lambda table: table.set_column(1, "t", table["t"].cast("int64"))), "column t (Int16"),
    (rewritten(LOG, lambda table: table.slice(0, 31)), f"{LOG}: ends before seed 1"),
    (rewritten(LOG, lambda table: table.slice(0, 40)), "is cut short after 1 episodes"),
    (rewritten(LOG, without(30)), "an episode goes on behind the horizon, 30"),
    (rewritten(LOG, lambda table: pa.concat_tables([table, table.slice(0, 31)])), "its last seed, 11"),
    (lambda run: (run / LOG).unlink(), f"{LOG}: cannot be read"),
    (lambda run: (run / LOG).write_bytes((run / LOG).read_bytes()[:-200]), f"{LOG}: cannot be read as"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("due", "change", "named"),
    [(1, *one) for one in DISAGREEMENTS] + [(2, change, [words]) for change, words in UNREADABLE],
)
def test_what_disagrees_contradicts_itself_or_cannot_be_read_is_named(run, told, due, change, named):
    change(run)
    code, out, err = told("recompute", run)
    assert (code, out) == (due, "")
    assert all(words in err for words in named), err
    assert not any("accuracy" in words for words in named) or "seed 1" not in err
    assert due == 1 or err.count("\n") == 1


def test_a_sample_is_checked_as_far_as_it_goes(tmp_path, told, monkeypatch):
    """And no more than 20 disagreements are spelled out."""
    run = make_run(tmp_path / "run", logs="sample:5")
    code, out, err = told("recompute", run)
    assert (code, err) == (0, "")
    assert "4 logs, 20 episodes" in out
    assert "the run made anew, 48 episodes" in out
    altered(TABLE, "actions", 5, 99)(run)  # past the sample, which is made anew
    assert f"{TABLE}, tooldag_S2_paper_simple, seed 5, actions is 99, not " in told("recompute", run)[2]
    monkeypatch.setattr(manifests, "engine_sha256", lambda **how: "another")
    err = told("recompute", run)[2]
    assert f"manifest.json, sha256 {TABLE} is " in err
    assert "the engine is not the one that made this run" in err
    numbers = pa.array([7] * 48, pa.int64())
    rewritten(TABLE, lambda table: table.set_column(18, "actions", numbers))(run)
    code, _, err = told("recompute", run)
    assert (code, err.count("\n")) == (1, 21)
    assert " disagreements in " in err.splitlines()[-1]
    code, out, _ = told("recompute", make_run(tmp_path / "bare", logs="none"))
    assert (code, "0 logs, 0 episodes" in out, "made anew, 48 episodes" in out) == (0, True, True)


# --- repeating --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", MANIFEST])
def test_a_manifest_is_enough_to_repeat_a_run(original, tmp_path, told, name):
    code, _, err = told("run", "--from", original / name, "--out", tmp_path / "again")
    assert (code, err) == (0, "every result is the same as before\n")
    assert contents(tmp_path / "again") == contents(original)


def test_a_repeated_run_is_not_another(original, tmp_path, told):
    again, whole = ["--out", tmp_path / "again"], "--from states the whole run"
    manifest = json.loads((original / MANIFEST).read_text()) | {"result_hash": "0" * 64}
    manifest["versions"]["numpy"] = "1.0"
    for name, text in (("other.json", "{}"), ("bad/manifest.json", "{}"),
                       ("odd/manifest.json", json.dumps(manifest))):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    for source, more, words in (
        (original, ["--seeds=0:2"], whole), (original, ["--profile=perfect"], whole),
        (original, ["--out", original], "is the run itself"),
        (original / MANIFEST, ["--model=m"], "--model is for a language model"),
        (tmp_path / "other.json", [], "neither a run's folder nor its manifest.json"),
        (tmp_path, [], "holds no run"), (tmp_path / "bad", [], "is no manifest of a run"),
    ):  # fmt: skip
        code, out, err = told("run", "--from", source, *again, *more)
        assert (code, out, err.count("\n"), words in err) == (2, "", 1, True)
    assert not (tmp_path / "again").exists()
    code, _, err = told("run", "--from", tmp_path / "odd", *again)
    assert (code, 'was made differently (versions numpy is "1.0", not "' in err) == (1, True)
    assert "the results differ: 0000" in err
