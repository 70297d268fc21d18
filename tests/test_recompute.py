"""A run in other hands: read as frames, computed again from its logs, repeated from its manifest."""

import functools
import hashlib
import json
import operator
import shutil
from dataclasses import fields

import numpy as np
import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from processes import call, contents
from strategies import cells, seeds

from envprobe_core.cells import make_cell
from envprobe_core.engine.running import Trajectory, record
from envprobe_core.errors import InputError
from envprobe_core.policies import POLICIES as EVERY
from envprobe_core.protocols import RELEASED, SWITCHES, switch_values
from envprobe_core.runs import folder as folders
from envprobe_core.runs import manifest as manifests
from envprobe_core.runs import read_run, tables
from envprobe_core.runs.folder import open_run
from envprobe_core.runs.manifest import CRATE, RunInputs

POLICIES = ("simple", "judge", "yoked", "random")
LOG, TABLE = "logs/tooldag_S2_paper_simple.parquet", "episodes.parquet"
SOME, CELL = np.array([2, 3, 5, 8]), make_cell("tooldag", "simple", protocol=RELEASED)


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


@pytest.fixture
def told(capsys):
    """Run a command here: exit code, standard output and standard error."""
    return lambda *arguments: (call(*arguments), *capsys.readouterr())


def write_log(path, cell, some):
    made = record(cell, some)
    tables.write_tables(path, [tables.step_table(cell, some, made)], tables.log_header(cell, some))
    return made


# --- logs -------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(cells(), seeds)
def test_a_log_gives_back_the_trajectory(tmp_path_factory, cell, some):
    some, path = np.sort(some), tmp_path_factory.mktemp("log") / "x.parquet"
    written = write_log(path, cell, some)
    ((own, read),) = tables.read_steps(path.parent, path.name, cell, some)
    assert own.tolist() == some.tolist()
    parts = [field.name for field in fields(Trajectory) if field.name != "measures"]
    of_log, of_run = ({one: getattr(made, one) for one in parts} | made.measures for made in (read, written))
    assert list(of_log) == list(of_run)
    for name, values in of_run.items():
        np.testing.assert_array_equal(of_log[name], values, err_msg=name)
        assert of_log[name].dtype == values.dtype, name


def test_a_run_is_read_as_frames(tmp_path):
    """A log also alone: its columns are named by field, and its header says what they hold."""
    path = make_run(
        tmp_path / "run", "2:4,5,8", "sample:3", policies=["simple", "cd"], protocols=["released"]
    )
    read, made = read_run(path), record(CELL, SOME[:3])
    assert (list(read.cells["policy"]), len(read.episodes)) == (["simple", "cd"], 8)
    np.testing.assert_array_equal(read.episodes["accuracy"][:3], made.measures["accuracy"])
    frame = read.steps(policy="simple")
    due = [(seed, t) for seed, last in zip(SOME, made.steps, strict=False) for t in range(last + 1)]
    assert list(zip(frame["seed"], frame["t"], strict=True)) == due
    header = orjson.loads(pq.read_schema(path / read.cells["log"][0]).metadata[tables.HEADER])
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
    with pytest.raises(InputError, match="2 cells of"):
        read.steps(world="tooldag")
    (path / TABLE).write_bytes((path / TABLE).read_bytes() + b"x")
    with pytest.raises(InputError, match="is not the file that its manifest is of"):
        _ = read_run(path).episodes


def altered(column, value, row=2):
    """Give a row another value in a column; a function is given the row as it was."""

    def change(table):
        values = table.column(column).to_pylist()
        values[row] = value(table.slice(row, 1).to_pylist()[0]) if callable(value) else value
        field = table.schema.field(column)
        return table.set_column(table.column_names.index(column), field, pa.array(values, field.type))

    return change


def past_the_horizon(table):
    last = int(np.flatnonzero(table["t"].to_numpy() == 0)[1]) - 1
    longer = table.take([*range(last), *[last - 1] * (31 - last), *range(last, len(table))])
    return functools.reduce(lambda made, row: altered("t", row, row)(made), range(last, 32), longer)


DAMAGE = [
    (lambda table: table.take([row for row in range(len(table)) if row != 4]),
     "seed 2, t 5, t: 5 stands where 4 is due"),
    (altered("seed", 3), "seed 3, t 2, seed: 3 stands where 2 is due"),
    (altered("t", None), "t: "),
    (altered("action", 99), "seed 2, t 2, action: 99 is out of place; accepted: -1..8"),
    (altered("action", None), "seed 2, t 2, action: null is out of place"),
    (altered("action", 1, -1), "action: 1 is out of place; accepted: -1..8, null without a decision"),
    (altered("probe", 27), "seed 2, t 2, probe: 27 is out of place; accepted: 0..26"),
    (altered("belief loaded(0)", 2), "seed 2, t 2, belief loaded(0): 2 is out of place; accepted: -1..1"),
    (altered("gold loaded(0)", -2), "gold loaded(0): -2 is out of place; accepted: -1..1"),
    (altered("success", None, -1), "success: is missing: the log is cut short"),
    (lambda table: table.slice(0, table["t"].to_pylist().index(0, 1)), "ends before seed 3"),
    (past_the_horizon, "success: is missing where the horizon"),
    (lambda table: pa.concat_tables([table, table.slice(0, 31)]), "goes on after its last seed"),
    (lambda table: table.drop_columns(["useful"]), "x.parquet: column useful (bool) is missing"),
    (lambda table: table.append_column("mood", table["t"]), "column mood (int16) is missing, or none"),
    (lambda table: table.set_column(1, "t", table["t"].cast(pa.int64())), "column t (int16) is missing"),
    (lambda table: b"hello", "x.parquet: cannot be read as Parquet"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "words"), DAMAGE)
def test_what_no_run_writes_is_named(tmp_path, change, words):
    path = tmp_path / "x.parquet"
    write_log(path, CELL, SOME)
    found = change(pq.read_table(path))
    path.write_bytes(found) if isinstance(found, bytes) else pq.write_table(found, path)
    with pytest.raises(InputError) as refused:
        list(tables.read_steps(tmp_path, path.name, CELL, SOME))
    assert words in str(refused.value)


# --- recomputing ------------------------------------------------------------------------------


def test_an_honest_run_agrees(tmp_path, told, monkeypatch):
    """Also in several processes, and from files of several row groups."""
    monkeypatch.setattr(folders, "PART_EPISODES", 5)
    monkeypatch.setattr(tables, "GROUP_ROWS", 100)
    monkeypatch.setattr(folders, "PROCESS_PAYS", 10)
    run = make_run(tmp_path / "run")
    assert pq.ParquetFile(run / LOG).num_row_groups == 3
    for cores in (1, 2):
        monkeypatch.setattr(folders, "cores", lambda cores=cores: cores)
        code, out, err = told("recompute", run)
        assert (code, err) == (0, "")
        assert out.startswith("4 logs, 48 episodes, 1488 rows: every measure agrees")
        assert json.loads((run / "manifest.json").read_text())["result_hash"] in out


@pytest.mark.parametrize("world", ["tooldag", "objectstate", "graphnav"])
def test_every_policy_regime_and_switch_agrees(world, tmp_path, told):
    turned = ",".join(f"{switch}={switch_values(switch)[1]}" for switch in SWITCHES if switch != "end")
    protocols = ["paper", "observed", "released", f"paper:{turned}"]
    make_run(tmp_path / "all", "3,5:8", worlds=[world], policies=list(EVERY), protocols=protocols)
    for regime, profile in (("S1", "scripted"), ("R2", "scribe")):
        path = tmp_path / regime
        make_run(path, "0:3", worlds=[world], regime=regime, profile=profile, protocols=["released"])
    for name in ("all", "S1", "R2"):
        assert told("recompute", tmp_path / name)[::2] == (0, "")


def alter(name, column, row, value):
    """Give a row of a file of the run another value."""

    def change(run):
        pq.write_table(altered(column, value, row)(pq.read_table(run / name)), run / name)

    return change


def stated(path, value):
    """Let the manifest state another value."""

    def change(run):
        manifest = json.loads((run / "manifest.json").read_text())
        functools.reduce(operator.getitem, path[:-1], manifest)[path[-1]] = value
        (run / "manifest.json").write_text(json.dumps(manifest))

    return change


def forged(row, **changes):
    """Alter a row of a log, and give the manifest the SHA-256 of what it is now."""

    def change(run):
        for column, value in changes.items():
            alter(LOG, column.replace("belief", "belief loaded(0)"), row, value)(run)
        stated(("sha256", LOG), hashlib.sha256((run / LOG).read_bytes()).hexdigest())(run)

    return change


def end_early(run):
    table = pq.read_table(run / LOG)
    pq.write_table(table.take([row for row in range(len(table)) if not 20 <= row < 30]), run / LOG)
    alter(LOG, "t", 20, 20)(run)


def in_table(name, value):
    told = [f"{LOG}, seed 5, {name}: the log gives ", f"manifest.json, sha256, {TABLE}: ", "2 disagreements"]
    return alter(TABLE, name, 5, value), told


DISAGREEMENTS = [
    # a number that no measure depends on: the manifest has the SHA-256 of every file
    (alter(LOG, "staleness loaded(3)", 40, lambda row: row["staleness loaded(3)"] ^ 1),
     [f"manifest.json, sha256, {LOG}: "]),
    (forged(30, belief=lambda row: 1 - row["belief loaded(0)"]),
     [f"{LOG}, seed 0, accuracy: the log gives ", "seed 0, digest: ", "cells 0, result_hash: "]),
    (forged(0, useful=lambda row: not row["useful"]), ["seed 0, t 0, useful: does not fit"]),
    (forged(0, answer=lambda row: 1 - row["answer"]), ["seed 0, t 0, answer: is not the probed"]),
    (forged(0, acted=True), ["seed 0, t 0, acted: does not fit"]),
    (forged(0, valid=True), ["seed 0, t 0, valid: is true where nothing"]),
    (forged(0, score=None), ["seed 0, t 0, score: does not fit the policy"]),
    (forged(28, probe=0, answer=lambda row: row["gold loaded(0)"], valid=False, acted=False),
     ["seed 0, t 28, probe: exceeds the budget"]),
    (end_early,
     ["t 20, t: the episode ends before its time", f"steps: the log gives 20, {TABLE} says 30"]),
    in_table("accuracy", 0.123), in_table("success", lambda row: not row["success"]),
    in_table("probes", 3), in_table("collapse_onset", 1.5), in_table("digest", 1),
    (stated(["result_hash"], "0" * 64), ["manifest.json, result_hash: "]),
    (stated(["cells", 2, "result_hash"], "0" * 64), ["manifest.json, cells 2, result_hash: "]),
    (stated(["cells", 1, "episodes"], 13), ["manifest.json, cells 1, episodes: "]),
    (stated(["protocols", "paper", "clock"], "stands"), ["manifest.json, protocols, paper, clock: "]),
    (stated(["profile", "omit"], 0.5), ["manifest.json, profile, omit: "]),
]  # fmt: skip


@pytest.mark.parametrize(("change", "named"), DISAGREEMENTS)
def test_what_disagrees_or_contradicts_itself_is_named(run, told, change, named):
    change(run)
    code, out, err = told("recompute", run)
    assert (code, out) == (1, "")
    assert all(words in err for words in named), err
    assert not any("accuracy" in words for words in named) or "seed 1" not in err


def rewritten(change):
    return lambda run: pq.write_table(change(pq.read_table(run / TABLE)), run / TABLE)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (shutil.rmtree, "is not a folder"),
        (lambda run: (run / "manifest.json").unlink(), "holds no run: it has no manifest.json"),
        (lambda run: (run / "manifest.json").write_text("{"), "is no manifest of a run"),
        (stated(["inputs", "x"], float("nan")), "is no manifest of a run"),
        (stated(["result_hash"], "[b]"), "result_hash"),
        (stated(["finished"], False), "is not finished"),
        (lambda run: (run / TABLE).unlink(), "episodes.parquet: cannot be read"),
        (rewritten(lambda table: table.slice(1)), "does not name the run's cells"),
        (rewritten(lambda table: table.slice(0, 47)), "episodes.parquet: has 47 rows, not 48"),
        (rewritten(lambda table: table.drop_columns(["digest"])), "column digest (uint64) is missing"),
        (alter(TABLE, "policy", 0, "judge"), "column policy does not name"),
        (alter(TABLE, "actions", 0, None), "column actions holds nulls"),
        (alter(TABLE, "accuracy", 0, float("nan")), "column accuracy holds nan"),
        (alter(TABLE, "collapse_onset", 0, float("inf")), "column collapse_onset holds inf"),
        (lambda run: (run / LOG).unlink(), f"{LOG}: cannot be read"),
        (lambda run: (run / LOG).write_bytes((run / LOG).read_bytes()[:-200]), f"{LOG}: cannot be read as"),
    ],
)
def test_what_cannot_be_checked_is_refused_in_one_line(run, told, change, words):
    change(run)
    code, out, err = told("recompute", run)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert words in err


def test_a_sample_is_checked_as_far_as_it_goes(tmp_path, told, monkeypatch):
    run = make_run(tmp_path / "run", logs="sample:5")
    code, out, err = told("recompute", run)
    assert (code, err) == (0, "")
    assert "4 logs, 20 episodes" in out
    assert "the other 28 episodes have no log and were not checked" in out
    alter(TABLE, "actions", 4, 99)(run)
    assert "seed 4, actions: " in told("recompute", run)[2]
    alter(TABLE, "actions", 5, 99)(run)  # past the sample: the hashes still tell
    monkeypatch.setattr(manifests, "engine_sha256", lambda roots: "another")
    err = told("recompute", run)[2]
    assert "manifest.json, cells 0, result_hash: " in err
    assert "the engine is not the one that made this run" in err
    none = "was run with --logs none: there are no logs to compute from"
    assert none in told("recompute", make_run(tmp_path / "bare", logs="none"))[2]


def test_long_lists_of_disagreements_are_cut(run, told):
    rewritten(lambda table: table.set_column(18, "actions", pa.array([7] * 48, pa.int64())))(run)
    code, _, err = told("recompute", run)
    assert (code, err.count("\n")) == (1, 21)
    assert " disagreements in " in err.splitlines()[-1]


# --- repeating --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "manifest.json"])
def test_a_manifest_is_enough_to_repeat_a_run(original, tmp_path, told, name):
    code, _, err = told("run", "--from", original / name, "--out", tmp_path / "again")
    assert (code, err) == (0, "every result is the same as before\n")
    assert contents(tmp_path / "again") == contents(original)


def test_a_repeated_run_is_not_another(original, tmp_path, told):
    again, whole = ["--out", tmp_path / "again"], "--from states the whole run"
    manifest = json.loads((original / "manifest.json").read_text()) | {"result_hash": "0" * 64}
    manifest["versions"]["numpy"] = "1.0"
    for name, text in (("other.json", "{}"), ("manifest-old.json", "{}"), ("bad/manifest.json", "{}"),
                       ("odd/manifest.json", json.dumps(manifest))):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    for source, more, words in (
        (original, ["--seeds=0:2"], whole), (original, ["--world=tooldag"], whole),
        (original, ["--profile=perfect"], whole), (original, ["--out", original], "is the run itself"),
        (original / "manifest.json", ["--model=m"], "--model is for a language model"),
        (tmp_path / "other.json", [], "neither a run's folder nor its manifest.json"),
        (tmp_path / "manifest-old.json", [], "neither a run's folder nor its manifest.json"),
        (tmp_path, [], "holds no run"), (tmp_path / "bad", [], "is no manifest of a run"),
    ):  # fmt: skip
        code, out, err = told("run", "--from", source, *again, *more)
        assert (code, out, err.count("\n"), words in err) == (2, "", 1, True)
    assert not (tmp_path / "again").exists()
    code, _, err = told("run", "--from", tmp_path / "odd", *again)
    assert (code, "was made differently (versions numpy: 1.0 there" in err) == (1, True)
    assert "the results differ: 0000" in err


def test_a_run_is_described_for_archives(original):
    graph = {entry["@id"]: entry for entry in json.loads((original / CRATE).read_text())["@graph"]}
    manifest = json.loads((original / "manifest.json").read_text())
    assert graph[CRATE]["conformsTo"]["@id"] == "https://w3id.org/ro/crate/1.1"
    assert {"name", "description", "datePublished", "license", "hasPart"} <= set(graph["./"])
    assert {part["@id"] for part in graph["./"]["hasPart"]} == {"manifest.json", *manifest["sha256"]}
    assert {name: graph[name]["sha256"] for name in manifest["sha256"]} == manifest["sha256"]
    assert graph["#engine"]["version"] == manifest["engine"]["version"]
