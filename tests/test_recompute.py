"""Recomputation from step logs: it agrees with honest runs and names whatever was altered."""

import functools
import hashlib
import json
import operator
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from processes import call

from envprobe_core.policies import POLICIES as EVERY
from envprobe_core.protocols import SWITCHES, switch_values
from envprobe_core.runs import folder as recomputing
from envprobe_core.runs import manifest as manifests
from envprobe_core.runs.folder import open_run
from envprobe_core.runs.manifest import RunInputs

POLICIES = ("simple", "judge", "yoked", "random")
LOG = "logs/tooldag_S2_paper_simple.parquet"
TABLE = "episodes.parquet"


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
def recompute(capsys):
    """Run the command and return its exit code, standard output and standard error."""
    return lambda path: (call("recompute", path), *capsys.readouterr())


def alter(path, column, row, value):
    """Give a row of a Parquet file another value; a function is given the row as it was."""
    table = pq.read_table(path)
    values = table[column].to_pylist()
    values[row] = value(table.slice(row, 1).to_pylist()[0]) if callable(value) else value
    field = table.schema.field(column)
    table = table.set_column(table.schema.get_field_index(column), field, pa.array(values, field.type))
    pq.write_table(table, path)


def forged(row, **changes):
    """Alter a row of a log, and give the manifest the SHA-256 of what it is now."""

    def change(run):
        for column, value in changes.items():
            alter(run / LOG, "belief loaded(0)" if column == "belief" else column, row, value)
        stated(run, ("sha256", LOG), hashlib.sha256((run / LOG).read_bytes()).hexdigest())

    return change


def stated(run, path, value):
    """Let the manifest state another value."""
    manifest = json.loads((run / "manifest.json").read_text())
    functools.reduce(operator.getitem, path[:-1], manifest)[path[-1]] = value
    (run / "manifest.json").write_text(json.dumps(manifest))


def test_an_honest_run_agrees(run, recompute, monkeypatch):
    for cores in (1, 2):
        monkeypatch.setattr(recomputing, "PROCESS_PAYS", 10)
        monkeypatch.setattr(recomputing, "cores", lambda cores=cores: cores)
        code, out, err = recompute(run)
        assert (code, err) == (0, "")
        assert out.startswith("4 logs, 48 episodes, 1488 rows: every measure agrees")
        assert json.loads((run / "manifest.json").read_text())["result_hash"] in out
    alter(run / LOG, "action", 9, None)
    told = f"envprobe: {LOG}, seed 0, t 9, action: null is out of place; accepted: -1..8\n"
    assert recompute(run)[::2] == (2, told)


@pytest.mark.parametrize("world", ["tooldag", "objectstate", "graphnav"])
def test_every_policy_regime_and_switch_agrees(world, tmp_path, recompute):
    turned = ",".join(f"{switch}={switch_values(switch)[1]}" for switch in SWITCHES if switch != "end")
    protocols = ["paper", "observed", "released", f"paper:{turned}"]
    run = make_run(tmp_path / "run", "3,5:8", worlds=[world], policies=list(EVERY), protocols=protocols)
    assert recompute(run)[::2] == (0, "")
    for regime, profile in (("S1", "scripted"), ("R2", "scribe")):
        path = tmp_path / regime
        make_run(path, "0:3", worlds=[world], regime=regime, profile=profile, protocols=["released"])
        assert recompute(path)[::2] == (0, "")


def end_early(run):
    table = pq.read_table(run / LOG)
    pq.write_table(table.take([row for row in range(len(table)) if not 20 <= row < 30]), run / LOG)
    alter(run / LOG, "t", 20, 20)


DISAGREEMENTS = {
    # a number that no measure depends on: the manifest has the SHA-256 of every file
    "staleness": (
        lambda run: alter(run / LOG, "staleness loaded(3)", 40, lambda row: row["staleness loaded(3)"] ^ 1),
        [f"manifest.json, sha256, {LOG}: "],
    ),
    "belief": (
        forged(30, belief=lambda row: 1 - row["belief loaded(0)"]),
        [f"{LOG}, seed 0, accuracy: the log gives ", "seed 0, digest: ", "cells 0, result_hash: "],
    ),
    "useful": (forged(0, useful=lambda row: not row["useful"]), ["seed 0, t 0, useful: does not fit"]),
    "answer": (forged(0, answer=lambda row: 1 - row["answer"]), ["seed 0, t 0, answer: is not the probed"]),
    "acted": (forged(0, acted=True), ["seed 0, t 0, acted: does not fit"]),
    "valid": (forged(0, valid=True), ["seed 0, t 0, valid: is true where nothing"]),
    "score": (forged(0, score=None), ["seed 0, t 0, score: does not fit the policy"]),
    "budget": (
        forged(28, probe=0, answer=lambda row: row["gold loaded(0)"], valid=False, acted=False),
        ["seed 0, t 28, probe: exceeds the budget"],
    ),
    "end": (
        end_early,
        ["t 20, t: the episode ends before its time", f"steps: the log gives 20, {TABLE} says 30"],
    ),
    **{
        name: (lambda run, name=name, value=value: alter(run / TABLE, name, 5, value),
               [f"{LOG}, seed 5, {name}: the log gives ", f"manifest.json, sha256, {TABLE}: ",
                "2 disagreements in "])
        for name, value in (
            ("accuracy", 0.123), ("success", lambda row: not row["success"]), ("probes", 3),
            ("collapse_onset", 1.5), ("digest", 1),
        )
    },
    **{
        words: (lambda run, path=path, value=value: stated(run, path, value), [f"manifest.json, {words}: "])
        for path, value, words in (
            (("result_hash",), "0" * 64, "result_hash"),
            (("cells", 2, "result_hash"), "0" * 64, "cells 2, result_hash"),
            (("cells", 1, "episodes"), 13, "cells 1, episodes"),
            (("protocols", "paper", "clock"), "stands", "protocols, paper, clock"),
            (("profile", "omit"), 0.5, "profile, omit"),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("what", DISAGREEMENTS)
def test_what_disagrees_or_contradicts_itself_is_named(run, recompute, what):
    change, named = DISAGREEMENTS[what]
    change(run)
    code, out, err = recompute(run)
    assert (code, out) == (1, "")
    assert all(words in err for words in named), err
    if what == "belief":
        assert "seed 1" not in err
        assert "sha256" not in err


def rewritten(change):
    return lambda run: pq.write_table(change(pq.read_table(run / TABLE)), run / TABLE)


def manifest_of(before, after):
    def change(run):
        text = (run / "manifest.json").read_text()
        assert before in text
        (run / "manifest.json").write_text(text.replace(before, after))

    return change


def cut_logs(run):
    for policy in ("simple", "random", "yoked"):
        path = run / "logs" / f"tooldag_S2_paper_{policy}.parquet"
        path.write_bytes(path.read_bytes()[:-200])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (shutil.rmtree, "is not a folder"),
        (lambda run: (run / "manifest.json").unlink(), "holds no run: it has no manifest.json"),
        (lambda run: (run / "manifest.json").write_text("{"), "is no manifest of a run"),
        (manifest_of('"worlds"', '"x": NaN, "worlds"'), "is no manifest of a run"),
        (manifest_of('"result_hash": "', '"result_hash": "[b]'), "result_hash"),
        (manifest_of('"finished": true', '"finished": false'), "is not finished"),
        (lambda run: (run / TABLE).unlink(), "episodes.parquet: cannot be read"),
        (rewritten(lambda table: table.slice(1)), "does not name the run's cells"),
        (rewritten(lambda table: table.slice(0, 47)), "episodes.parquet: has 47 rows, not 48"),
        (rewritten(lambda table: table.drop_columns(["digest"])), "episodes.parquet: has no column digest"),
        (lambda run: alter(run / TABLE, "policy", 0, "judge"), "column policy does not name"),
        (lambda run: alter(run / TABLE, "actions", 0, None), "column actions holds nulls"),
        (lambda run: (run / LOG).unlink(), f"{LOG}: cannot be read"),
        (cut_logs, f"{LOG}: cannot be read as Parquet"),
    ],
)
def test_what_cannot_be_checked_is_refused_in_one_line(run, recompute, change, message):
    change(run)
    code, out, err = recompute(run)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_a_sample_is_checked_as_far_as_it_goes(tmp_path, recompute, monkeypatch):
    run = make_run(tmp_path / "run", logs="sample:5")
    code, out, err = recompute(run)
    assert (code, err) == (0, "")
    assert "4 logs, 20 episodes" in out
    assert "the other 28 episodes have no log and were not checked" in out
    alter(run / TABLE, "actions", 4, 99)
    assert "seed 4, actions: " in recompute(run)[2]
    alter(run / TABLE, "actions", 5, 99)  # past the sample: the hashes still tell
    monkeypatch.setattr(manifests, "engine_sha256", lambda roots: "another")
    err = recompute(run)[2]
    assert "manifest.json, cells 0, result_hash: " in err
    assert "the engine is not the one that made this run" in err
    told = "was run with --logs none: there are no logs to compute from"
    assert told in recompute(make_run(tmp_path / "bare", logs="none"))[2]


def test_long_lists_of_disagreements_are_cut(run, recompute):
    table = pq.read_table(run / TABLE)
    column = pa.array([7] * table.num_rows, type=pa.int64())
    pq.write_table(table.set_column(table.column_names.index("actions"), "actions", column), run / TABLE)
    code, _, err = recompute(run)
    assert (code, err.count("\n")) == (1, 21)
    assert " disagreements in " in err.splitlines()[-1]
