"""Recomputation from raw logs: it agrees with honest runs and names whatever was altered."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from envprobe_core import manifest as manifests
from envprobe_core import recompute as recomputing
from envprobe_core.cli import main
from envprobe_core.logreading import read_log
from envprobe_core.logs import line_checks
from envprobe_core.manifest import make_inputs
from envprobe_core.protocols import SWITCHES, switch_values
from envprobe_core.running import run_missing
from envprobe_core.runstore import open_run

POLICIES = ("simple", "judge", "yoked", "random")
LOG = "logs/tooldag_S2_paper_simple.jsonl.gz"


def make_run(path: Path, seeds: str = "0:12", logs: str = "full", **inputs: object) -> Path:
    given = {"worlds": ["tooldag"], "policies": POLICIES} | inputs
    with open_run(path, make_inputs(**given, seeds=seeds, logs=logs)) as folder:
        run_missing(folder, folder.missing(), jobs=1)
    return path


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def run(original: Path, tmp_path: Path) -> Path:
    return shutil.copytree(original, tmp_path / "run")


Recompute = Callable[[Path], tuple[int, str, str]]


@pytest.fixture
def recompute(capsys: pytest.CaptureFixture[str]) -> Recompute:
    """Run the command and return its exit code, standard output and standard error."""

    def call(path: Path) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(["recompute", str(path)])
        return end.value.code, *capsys.readouterr()  # type: ignore[return-value]

    return call


def alter(log: Path, line: int, change: Callable[[dict], None]) -> None:
    lines = [json.loads(text) for text in gzip.decompress(log.read_bytes()).splitlines()]
    change(lines[line - 1])
    log.write_bytes(gzip.compress("".join(json.dumps(one) + "\n" for one in lines).encode()))


def test_an_honest_run_agrees(run: Path, recompute: Recompute) -> None:
    code, out, err = recompute(run)
    assert (code, err) == (0, "")
    stated = json.loads((run / "manifest.json").read_text())["result_hash"]
    assert out.startswith("4 logs, 48 episodes, 1488 lines: every measure agrees")
    assert stated in out


@pytest.mark.parametrize("world", ["tooldag", "objectstate", "graphnav"])
def test_every_policy_regime_and_switch_agrees(world: str, tmp_path: Path, recompute: Recompute) -> None:
    turned = ",".join(f"{switch}={switch_values(switch)[1]}" for switch in SWITCHES if switch != "end")
    protocols = ["paper", "observed", "released", f"paper:{turned}"]
    run = make_run(
        tmp_path / "run", "3,5:8", worlds=[world], policies=["oracle", *POLICIES], protocols=protocols
    )
    assert recompute(run)[::2] == (0, "")
    for regime, profile in (("S1", "scripted"), ("S3", "perfect"), ("R6", "scripted-true-open")):
        path = tmp_path / regime
        make_run(path, "0:3", worlds=[world], regime=regime, profile=profile, protocols=["released"])
        assert recompute(path)[::2] == (0, "")


def test_logs_are_checked_in_several_processes(
    run: Path, recompute: Recompute, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recomputing, "PROCESS_PAYS", 10)
    monkeypatch.setattr(recomputing, "cores", lambda: 2)
    assert recompute(run)[::2] == (0, "")
    alter(run / LOG, 9, lambda line: line.update(place=True))
    code, _, err = recompute(run)
    assert (code, err) == (2, f"envprobe: {LOG}, line 9, place: True is of the wrong type\n")


def test_an_altered_belief_is_damage(run: Path, recompute: Recompute) -> None:
    alter(run / LOG, 40, lambda line: line["belief"].__setitem__(3, 1 - line["belief"][3]))
    code, out, err = recompute(run)
    assert (code, out) == (2, "")
    assert err == f"envprobe: {LOG}, line 40, belief: does not fit the line's check sum\n"


def test_several_damaged_logs_give_one_line(run: Path, recompute: Recompute) -> None:
    for policy in ("simple", "random", "yoked"):
        path = run / "logs" / f"tooldag_S2_paper_{policy}.jsonl.gz"
        path.write_bytes(path.read_bytes()[:-200])
    code, out, err = recompute(run)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert LOG in err
    assert "truncated" in err
    assert "2 more logs are damaged" in err


def test_a_missing_log_is_damage(run: Path, recompute: Recompute) -> None:
    (run / LOG).unlink()
    code, _, err = recompute(run)
    assert code == 2
    assert f"{LOG}: cannot be read" in err


def forge(run: Path, line: int, change: Callable[[dict], None]) -> None:
    """Alter a line and give it the check sum of what it now says."""
    cell = make_inputs(["tooldag"], ["simple"]).cells[0]

    def change_and_sign(content: dict) -> None:
        change(content)
        content["check"] = None

    alter(run / LOG, line, change_and_sign)
    lines = [json.loads(text) for text in gzip.decompress((run / LOG).read_bytes()).splitlines()]
    sums = {}
    for key in ("belief", "gold", "staleness", "confidence"):
        sums[key] = sum(v * w for w, v in enumerate(lines[line - 1][key], start=1)) % 997
    content = lines[line - 1]
    bits = int(np.float64(content.get("score") or 0.0).view(np.int64))
    if "success" in content:
        rest = [content["place"], 0, 0, 0, 0, 0, 0, 0, 0, content["success"]]
    else:
        probe = -1 if content["probe"] is None else content["probe"]
        rest = [content["place"], content["proposal"], probe, content["answer"] or 0]
        rest += [content["useful"], content["valid"], content["acted"], bits >> 32, bits & 0xFFFFFFFF, 0]
    content["check"] = [*sums.values(), sum(v * w for w, v in enumerate(rest, start=1)) % 997]
    (run / LOG).write_bytes(gzip.compress("".join(json.dumps(one) + "\n" for one in lines).encode()))
    (block,) = read_log(run / LOG, LOG, cell, np.arange(12))
    assert line_checks(block.trajectory).shape[2] == 5


def test_a_forged_belief_disagrees_with_the_table(run: Path, recompute: Recompute) -> None:
    forge(run, 32, lambda line: line["belief"].__setitem__(0, 1 - line["belief"][0]))  # t = 30 of seed 0
    code, out, err = recompute(run)
    assert (code, out) == (1, "")
    table = pq.read_table(run / "episodes.parquet").to_pylist()
    row = next(row for row in table if row["policy"] == "simple" and row["seed"] == 0)
    assert f"envprobe: {LOG}, lines 2-32 (seed 0), accuracy: the log gives " in err
    assert f"episodes.parquet says {row['accuracy']}" in err
    assert "(seed 0), digest: " in err
    assert "manifest.json, cells 0, result_hash: " in err
    assert "seed 1" not in err


@pytest.mark.parametrize(
    ("line", "change", "named"),
    [
        (2, lambda line: line.update(useful=not line["useful"]), "line 2 (seed 0, t 0), useful: "),
        (2, lambda line: line.update(answer=1 - line["answer"]), "line 2 (seed 0, t 0), answer: "),
        (2, lambda line: line.update(acted=True), "line 2 (seed 0, t 0), acted: "),
        (2, lambda line: line.update(valid=True), "line 2 (seed 0, t 0), valid: "),
        (2, lambda line: line.update(score=None), "line 2 (seed 0, t 0), score: "),
        (
            30,
            lambda line: line.update(probe=0, answer=line["gold"][0], valid=False, acted=False),
            "line 30 (seed 0, t 28), probe: exceeds the budget",
        ),
    ],
)
def test_a_decision_that_contradicts_the_log_is_named(
    run: Path, recompute: Recompute, line: int, change: Callable[[dict], None], named: str
) -> None:
    forge(run, line, change)
    code, _, err = recompute(run)
    assert code == 1
    assert f"envprobe: {LOG}, {named}" in err


def test_an_episode_that_ends_early_is_named(run: Path, recompute: Recompute) -> None:
    lines = [json.loads(text) for text in gzip.decompress((run / LOG).read_bytes()).splitlines()]
    del lines[21:31]  # t = 20..29 of seed 0
    lines[21]["t"] = 20
    lines[-1]["lines"] -= 10
    (run / LOG).write_bytes(gzip.compress("".join(json.dumps(one) + "\n" for one in lines).encode()))
    code, _, err = recompute(run)
    assert code == 1
    assert f"{LOG}, line 22 (seed 0, t 20), t: the episode ends before its time" in err
    assert "(seed 0), steps: the log gives 20, episodes.parquet says 30" in err


def altered_table(run: Path, name: str, row: int, value: object) -> None:
    table = pq.read_table(run / "episodes.parquet")
    column = table[name].to_pylist()
    column[row] = value
    position = table.column_names.index(name)
    table = table.set_column(position, name, pa.array(column, type=table.schema.field(name).type))
    pq.write_table(table, run / "episodes.parquet")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("accuracy", 0.123),
        ("accuracy_slot", 0.5),
        ("success", None),
        ("probes", 3),
        ("collapse_onset", 1.5),
        ("action_onset", 29.5),
        ("repeated_probes", 6),
        ("digest", 1),
    ],
)
def test_an_altered_measure_is_named(run: Path, recompute: Recompute, name: str, value: object) -> None:
    if name == "success":
        value = not pq.read_table(run / "episodes.parquet")["success"][5].as_py()
    altered_table(run, name, 5, value)
    code, _, err = recompute(run)
    assert code == 1
    assert f"{LOG}, lines {2 + 5 * 31}-{1 + 6 * 31} (seed 5), {name}: the log gives " in err
    assert f"episodes.parquet says {value}\n" in err
    assert err.count("\n") == 2


def test_long_lists_of_disagreements_are_cut(run: Path, recompute: Recompute) -> None:
    table = pq.read_table(run / "episodes.parquet")
    column = pa.array([7] * table.num_rows, type=pa.int64())
    table = table.set_column(table.column_names.index("actions"), "actions", column)
    pq.write_table(table, run / "episodes.parquet")
    code, _, err = recompute(run)
    assert code == 1
    assert err.count("\n") == 21
    assert " disagreements in " in err.splitlines()[-1]


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("result_hash",), "0" * 64, "manifest.json, result_hash: "),
        (("cells", 2, "result_hash"), "0" * 64, "manifest.json, cells 2, result_hash: "),
        (("cells", 1, "episodes"), 13, "manifest.json, cells 1, episodes: 13 is stated, 12 is found"),
        (("protocols", "paper", "clock"), "stands", "manifest.json, protocols, paper, clock: "),
        (("profile", "omit"), 0.5, "manifest.json, profile, omit: "),
    ],
)
def test_an_altered_manifest_is_named(
    run: Path, recompute: Recompute, path: tuple, value: object, named: str
) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    part = manifest
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    (run / "manifest.json").write_text(json.dumps(manifest))
    code, _, err = recompute(run)
    assert code == 1
    assert f"envprobe: {named}" in err


def test_another_engine_is_mentioned_where_results_differ(
    run: Path, recompute: Recompute, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests, "engine_sha256", lambda: "another")
    assert recompute(run)[0] == 0
    altered_table(run, "actions", 0, 99)
    assert "the engine is not the one that made this run" in recompute(run)[2]


def damaged_table(run: Path) -> None:
    path = run / "episodes.parquet"
    path.write_bytes(path.read_bytes()[:-8])


def shorter_table(run: Path) -> None:
    path = run / "episodes.parquet"
    pq.write_table(pq.read_table(path).slice(1), path)


def table_without_column(run: Path) -> None:
    path = run / "episodes.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["digest"]), path)


def table_of_floats(run: Path) -> None:
    table = pq.read_table(run / "episodes.parquet")
    position = table.column_names.index("probes")
    table = table.set_column(position, "probes", table["probes"].cast(pa.float64()))
    pq.write_table(table, run / "episodes.parquet")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda run: shutil.rmtree(run), "is not a folder"),
        (lambda run: (run / "manifest.json").unlink(), "holds no run: it has no manifest.json"),
        (lambda run: (run / "manifest.json").write_text("{"), "manifest.json cannot be read"),
        (lambda run: (run / "manifest.json").write_text("[]"), "is no manifest of a run"),
        (
            lambda run: (run / "manifest.json").write_text(
                '{"format": "envprobe-run/1", "finished": true, "inputs": {"worlds": 3}}'
            ),
            "its inputs cannot be read",
        ),
        (lambda run: (run / "episodes.parquet").unlink(), "episodes.parquet: cannot be read"),
        (damaged_table, "episodes.parquet: cannot be read"),
        (shorter_table, "episodes.parquet: has 47 rows, not 48"),
        (table_without_column, "episodes.parquet: has no column digest"),
        (table_of_floats, "episodes.parquet: column probes is double, not int64"),
        (lambda run: altered_table(run, "policy", 0, "judge"), "column policy does not name"),
        (lambda run: altered_table(run, "actions", 0, None), "column actions holds nulls"),
    ],
)
def test_what_cannot_be_checked_is_refused_in_one_line(
    run: Path, recompute: Recompute, change: Callable[[Path], None], message: str
) -> None:
    change(run)
    code, out, err = recompute(run)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_a_sample_is_checked_as_far_as_it_goes(tmp_path: Path, recompute: Recompute) -> None:
    run = make_run(tmp_path / "run", logs="sample:5")
    code, out, err = recompute(run)
    assert (code, err) == (0, "")
    assert "4 logs, 20 episodes" in out
    assert "the other 28 episodes have no log and were not checked" in out
    altered_table(run, "actions", 4, 99)
    assert "(seed 4), actions: " in recompute(run)[2]
    altered_table(run, "actions", 5, 99)  # past the sample: the hash still tells
    assert "manifest.json, cells 0, result_hash: " in recompute(run)[2]


def test_a_run_without_logs_cannot_be_checked(tmp_path: Path, recompute: Recompute) -> None:
    code, _, err = recompute(make_run(tmp_path / "run", logs="none"))
    assert code == 2
    assert "was run with --logs none: there are no logs to compute from" in err


def test_an_unfinished_run_cannot_be_checked(tmp_path: Path, recompute: Recompute) -> None:
    with open_run(tmp_path / "run", make_inputs(["tooldag"], ["simple"])):
        pass
    code, _, err = recompute(tmp_path / "run")
    assert code == 2
    assert "is not finished" in err
