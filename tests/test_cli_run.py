"""The commands `run` and `list`, as a user meets them: real processes, folders, kills."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from envprobe_core.cells import make_cell
from envprobe_core.cli import main
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import SWITCHES, parse_protocol, switch_values
from envprobe_core.regimes import REGIMES
from envprobe_core.runs import folder as folders
from envprobe_core.runs.folder import open_run
from envprobe_core.runs.inputs import cell_slug, make_inputs, seed_ranges
from envprobe_core.runs.summary import ROW_KEYS
from envprobe_core.runs.tables import HEADER
from envprobe_core.sources import PACKAGE, engine_sources
from envprobe_core.worlds import WORLDS

COMMAND = [sys.executable, "-m", "envprobe_core"]
SMALL = ["--world", "tooldag", "--policy", "simple", "--policy", "no-probe", "--seeds", "0:6"]
KEYS = ("world", "policy", "regime", "protocol", "profile", "budget", "threshold")
MEASURES = ("seed", "n_fields", "horizon", "steps", "accuracy", "accuracy_terminal", "accuracy_slot")
MEASURES += ("success", "probes", "useful", "collapse_onset", "actions", "valid_actions")
MEASURES += ("action_onset", "repeated_probes", "digest")


def envprobe(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    given = [*COMMAND, *map(str, arguments)]
    return subprocess.run(given, capture_output=True, text=True, timeout=120)


Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run the command in this process: exit code, standard output, standard error."""

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(list(map(str, arguments)))
        return end.value.code, *capsys.readouterr()  # type: ignore[return-value]

    return run


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, by its name in it."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_json_is_one_array_and_nothing_else(tmp_path: Path) -> None:
    done = envprobe("run", *SMALL, "--protocol", "paper", "--json", "--out", tmp_path / "run")
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)
    assert [tuple(row) for row in rows] == [ROW_KEYS] * 2
    simple, idle = rows
    assert (simple["world"], simple["policy"], simple["n"]) == ("tooldag", "simple", 6)
    assert (simple["regime"], simple["protocol"], simple["profile"]) == ("S2", "paper", "typical")
    assert idle["useful_probe_rate"] is None
    assert idle["probes"] == 0
    assert re.fullmatch(r"[0-9a-f]{64}", simple["result_hash"])


def test_the_folder_holds_table_logs_and_manifest(tmp_path: Path, call: Call) -> None:
    run = tmp_path / "deep" / "run"
    code, out, _ = call("run", *SMALL, "--out", run)
    assert code == 0
    assert "2 cells, 12 episodes, S2, profile typical" in out
    logs = ["logs/tooldag_S2_paper_no-probe.parquet", "logs/tooldag_S2_paper_simple.parquet"]
    assert sorted(contents(run)) == ["episodes.parquet", *logs, "manifest.json", "ro-crate-metadata.json"]
    frame = pd.read_parquet(run / "episodes.parquet")
    assert tuple(frame.columns) == KEYS + MEASURES
    assert frame["seed"].tolist() == [*range(6), *range(6)]
    idle = frame[frame["policy"] == "no-probe"]
    assert idle["threshold"].isna().all()
    assert (frame["budget"] == 7).all()
    assert frame["success"].dtype == bool
    never = frame["collapse_onset"].isna()
    assert never.any()
    assert (~never).any()
    assert frame.loc[~never, "collapse_onset"].between(0, 30).all()
    assert pq.read_metadata(run / logs[0]).num_rows == 6 * 31


def test_the_manifest_says_what_was_run_and_nothing_of_where_and_when(tmp_path: Path, call: Call) -> None:
    run = tmp_path / "run"
    _, out, _ = call("run", *SMALL, "--budget", "3", "--json", "--out", run)
    text = (run / "manifest.json").read_text()
    manifest = json.loads(text)
    assert manifest["finished"] is True
    assert manifest["inputs"] == {
        "worlds": ["tooldag"],
        "policies": ["simple", "no-probe"],
        "regime": "S2",
        "protocols": ["paper"],
        "profile": "typical",
        "budget": 3,
        "threshold": None,
        "seeds": "0:6",
        "logs": "full",
    }
    assert manifest["versions"]["numpy"] == np.__version__
    assert manifest["protocols"]["paper"]["clock"] == "runs"
    assert manifest["profile"]["omit"] == 0.15
    cells = manifest["cells"]
    assert [cell["result_hash"] for cell in cells] == [row["result_hash"] for row in json.loads(out)]
    assert (cells[0]["threshold"], cells[1]["threshold"]) == (1.5, None)
    for word in (str(tmp_path), str(PACKAGE), os.uname().nodename, time.strftime("%Y-")):
        assert word not in text


def test_every_default_is_in_the_help() -> None:
    text = " ".join(re.sub("[│╭╮╰╯─]", " ", envprobe("run", "--help").stdout).split())
    for words in ("S2", "(paper)", "(horizon / 4)", "(1.5)", "typical", "full", "1500"):
        assert f"[default: {words}]" in text
    assert "at S2 0:220, under released 42:262" in text


def test_each_cell_has_its_own_default_seeds(tmp_path: Path, call: Call) -> None:
    given = ["--world", "tooldag", "--policy", "no-probe", "--logs", "none", "--json"]
    given += ["--protocol", "paper", "--protocol", "released", "--out"]
    assert call("run", *given, tmp_path / "a")[0] == 0
    frame = pd.read_parquet(tmp_path / "a" / "episodes.parquet")
    ends = frame.groupby("protocol")["seed"].agg(["min", "max"]).T.to_dict("list")
    assert ends == {"paper": [0, 219], "released": [42, 261]}
    code, out, _ = call("run", *given, tmp_path / "b", "--regime", "S1")
    assert [row["n"] for row in json.loads(out)] == [30, 30]
    assert code == 0


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a run in one process, in blocks of the usual size."""
    folder = tmp_path_factory.mktemp("reference") / "run"
    assert envprobe("run", *GRID, "--jobs", "1", "--out", folder).returncode == 0
    return contents(folder)


GRID = ["--world", "graphnav", "--world", "tooldag", "--seeds", "0:40", "--regime", "R3"]
GRID += ["--policy", "simple", "--policy", "yoked", "--policy", "random", "--policy", "judge"]
GRID += ["--protocol", "observed", "--protocol", "released:end=horizon"]


@pytest.mark.parametrize(
    "how",
    [
        ["--jobs", "2", "--batch-size", "120"],
        ["--jobs", "2", "--batch-size", "7"],
        ["--jobs", "1", "--batch-size", "2000"],
        ["--seeds", "30:40,29,0:29"],
        ["--world", "graphnav", "--policy", "simple"],
    ],
)
def test_the_same_run_gives_the_same_bytes(
    tmp_path: Path, reference: dict[str, bytes], how: list[str]
) -> None:
    done = envprobe("run", *GRID, *how, "--out", tmp_path / "run")
    assert done.returncode == 0
    assert contents(tmp_path / "run") == reference


def test_a_cell_alone_has_the_log_and_hash_it_has_among_others(
    tmp_path: Path, call: Call, reference: dict[str, bytes]
) -> None:
    given = ["--world", "tooldag", "--policy", "yoked", "--protocol", "observed", "--regime", "R3"]
    _, out, _ = call("run", *given, "--seeds", "0:40", "--json", "--out", tmp_path / "run")
    name = "logs/tooldag_R3_observed_yoked.parquet"
    assert (tmp_path / "run" / name).read_bytes() == reference[name]
    cells = json.loads(reference["manifest.json"])["cells"]
    (same,) = [cell for cell in cells if cell["log"] == name]
    assert json.loads(out)[0]["result_hash"] == same["result_hash"]


def test_logs_do_not_touch_results(tmp_path: Path, call: Call) -> None:
    tables = []
    for logs in ("full", "none", "sample:2", "sample:900"):
        run = tmp_path / logs.replace(":", "")
        assert call("run", *SMALL, "--logs", logs, "--out", run)[0] == 0
        tables.append((run / "episodes.parquet").read_bytes())
    assert len(set(tables)) == 1
    assert not (tmp_path / "none" / "logs").exists()
    log = "logs/tooldag_S2_paper_simple.parquet"
    whole, sample = (pq.read_table(tmp_path / name / log) for name in ("full", "sample2"))
    assert sample.equals(whole.slice(0, 2 * 31))
    assert json.loads(sample.schema.metadata[HEADER])["seeds"] == "0:2"
    assert (tmp_path / "sample900" / log).read_bytes() == (tmp_path / "full" / log).read_bytes()


def test_large_cells_are_stored_in_several_parts(tmp_path: Path, call: Call) -> None:
    given = ["--world", "tooldag", "--policy", "no-probe", "--seeds", "0:1100", "--logs", "sample:700"]
    assert call("run", *given, "--out", tmp_path / "run")[0] == 0
    log = pq.read_metadata(tmp_path / "run/logs/tooldag_S2_paper_no-probe.parquet")
    assert log.num_rows == 700 * 31
    assert call("recompute", tmp_path / "run")[0] == 0


def test_a_finished_run_is_recognised_and_not_repeated(tmp_path: Path, call: Call) -> None:
    run = tmp_path / "run"
    first = call("run", *SMALL, "--json", "--out", run)
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    again = call("run", *SMALL, "--json", "--jobs", "2", "--batch-size", "3", "--out", run)
    assert first[:2] == again[:2]
    assert "finished already; nothing was repeated" in again[2]
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (["--seeds", "0:7"], "seeds: 0:6 there, 0:7 now"),
        (["--policy", "cd"], "policies: simple no-probe there, simple no-probe cd now"),
        (["--world", "graphnav"], "worlds: tooldag there, tooldag graphnav now"),
        (["--regime", "R1"], "regime: S2 there, R1 now"),
        (["--protocol", "observed"], "protocols: paper there, observed now"),
        (["--protocol", "paper:clock=stands"], "protocols: paper there, paper:clock=stands now"),
        (["--budget", "2"], "budget: the default there, 2 now"),
        (["--profile", "perfect"], "profile: typical there, perfect now"),
        (["--logs", "none"], "logs: full there, none now"),
    ],
)
def test_a_different_run_is_refused(
    finished: Path, tmp_path: Path, call: Call, changed: list[str], named: str
) -> None:
    run = shutil.copytree(finished, tmp_path / "run")
    before = contents(run)
    code, out, err = call("run", *SMALL, *changed, "--out", run)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"holds a different run ({named})" in err
    assert contents(run) == before


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    with pytest.raises(SystemExit, match="0"):
        main(["run", *SMALL, "--out", str(folder)])
    return folder


def test_another_engine_or_version_is_another_run(finished: Path, tmp_path: Path, call: Call) -> None:
    for part, name in (("engine", "sources_sha256"), ("versions", "numpy"), ("profile", "omit")):
        run = shutil.copytree(finished, tmp_path / part)
        manifest = json.loads((run / "manifest.json").read_text())
        manifest[part][name] = "0"
        (run / "manifest.json").write_text(json.dumps(manifest))
        code, _, err = call("run", *SMALL, "--out", run)
        assert code == 2
        assert f"holds a different run ({part} {name}: 0 there, " in err


def altered_table(run: Path) -> None:
    frame = pd.read_parquet(run / "episodes.parquet")
    frame.loc[0, "actions"] += 1
    frame.to_parquet(run / "episodes.parquet", index=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda run: (run / "logs/tooldag_S2_paper_simple.parquet").unlink(), "simple.parquet is missing"),
        (lambda run: (run / "episodes.parquet").unlink(), "episodes.parquet: cannot be read"),
        (altered_table, "episodes.parquet is not the file that its SHA-256"),
    ],
)
def test_a_finished_run_that_lost_something_is_not_passed_off_as_whole(
    finished: Path, tmp_path: Path, call: Call, change: Callable[[Path], None], message: str
) -> None:
    run = shutil.copytree(finished, tmp_path / "run")
    change(run)
    code, out, err = call("run", *SMALL, "--out", run)
    assert (code, out) == (2, "")
    assert "is marked as finished, but " in err
    assert message in err


@pytest.mark.parametrize("name", ["notes.txt", "manifest.json", "parts/x"])
def test_a_foreign_folder_is_left_alone(tmp_path: Path, call: Call, name: str) -> None:
    (tmp_path / "run" / name).parent.mkdir(parents=True)
    (tmp_path / "run" / name).write_text("{}")
    before = contents(tmp_path / "run")
    code, out, err = call("run", *SMALL, "--out", tmp_path / "run")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "holds no run" in err or "is no manifest" in err
    assert contents(tmp_path / "run") == before


def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path: Path, call: Call) -> None:
    (tmp_path / "file").write_text("mine")
    for out, message in (
        (tmp_path / "file", "is not a folder"),
        (tmp_path / "file" / "run", "cannot write to"),
        (Path("/proc/run"), "cannot write to /proc/run"),
    ):
        code, _, err = call("run", *SMALL, "--out", out)
        assert (code, err.count("\n")) == (2, 1)
        assert message in err
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--world", "moon"], ["unknown world 'moon'", *WORLDS]),
        (["--policy", "best"], ["unknown policy 'best'", *POLICIES]),
        (["--regime", "S9"], ["unknown regime 'S9'", *REGIMES]),
        (["--protocol", "mine"], ["unknown protocol 'mine'", "paper", "observed", "released"]),
        (["--protocol", "paper:clock=off"], ["clock", "runs or stands", "'off'"]),
        (["--profile", "wise"], ["unknown profile 'wise'", "typical", "perfect", "scripted"]),
        (["--seeds", ""], ["seeds ''"]),
        (["--seeds", "5:5"], ["5:5 is empty"]),
        (["--seeds", "9:3"], ["9:3 is empty"]),
        (["--seeds", "0-9"], ["'0-9' is not FIRST:PAST"]),
        (["--seeds", "-3:2"], ["'-3:2' is not FIRST:PAST"]),
        (["--seeds", "1,1"], ["a seed stands twice"]),
        (["--budget", "-1"], ["budget -1 is not in 0..30"]),
        (["--budget", "31"], ["budget 31 is not in 0..30"]),
        (["--budget", "some"], ["--budget"]),
        (["--policy", "judge", "--threshold", "nan"], ["threshold nan is not a finite number"]),
        (["--policy", "judge", "--threshold", "inf"], ["threshold inf is not a finite number"]),
        (["--threshold", "1.2"], ["policy no-probe has no threshold", "simple", "cd", "judge"]),
        (["--jobs", "0"], ["--jobs"]),
        (["--batch-size", "0"], ["--batch-size"]),
        (["--logs", "some"], ["logs 'some'", "full, none, and sample:N"]),
        (["--logs", "sample:0"], ["logs 'sample:0'"]),
        (["--logs", "sample:-1"], ["logs 'sample:-1'"]),
        (["--colour", "red"], ["--colour"]),
    ],
)
def test_bad_input_is_one_line_and_leaves_no_folder(
    tmp_path: Path, call: Call, given: list[str], words: list[str]
) -> None:
    policy = ["--policy", "simple"] if "judge" in given else ["--policy", "no-probe"]
    code, out, err = call("run", "--world", "tooldag", *policy, *given, "--out", tmp_path / "run")
    assert (code, out, err.count("\n")) == (2, "", 1)
    for word in words:
        assert word in err
    assert not (tmp_path / "run").exists()


def test_bad_input_ends_a_real_process_with_code_2(tmp_path: Path) -> None:
    done = envprobe("run", *SMALL, "--threshold", "nan", "--out", tmp_path / "run")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "envprobe: threshold nan is not a finite number\n"


GOING = ["--world", "graphnav", "--seeds", "0:90", "--batch-size", "5"]
GOING += ["--policy", "simple", "--policy", "random", "--policy", "oracle"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a run that nobody killed."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert envprobe("run", *GOING, "--jobs", "1", "--out", folder).returncode == 0
    return contents(folder)


@contextlib.contextmanager
def going(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A process that is stopped, by its id, whatever happens."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([*COMMAND, *map(str, arguments)], **pipes)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(condition: Callable[[], object], process: subprocess.Popen[str] | None = None) -> None:
    end = time.monotonic() + 30
    while not condition() and time.monotonic() < end:
        if process is not None and process.poll() is not None:
            return
        time.sleep(0.002)


def finished_parts(run: Path) -> list[Path]:
    return [path for path in run.glob("parts/[!.]*.parquet") if not path.name.endswith(".log.parquet")]


MOMENTS: dict[str, Callable[[Path], object]] = {
    "folder": lambda run: run.exists(),
    "manifest": lambda run: (run / "manifest.json").exists(),
    "first log": lambda run: list(run.glob("parts/*.log.parquet")),
    "second part": lambda run: len(finished_parts(run)) >= 2,
    "logs": lambda run: (run / "logs").exists(),
    "table": lambda run: (run / "episodes.parquet").exists(),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_run_is_completed_to_the_same_bytes(
    tmp_path: Path, whole: dict[str, bytes], moment: str, call: Call
) -> None:
    run = tmp_path / "run"
    with going("run", *GOING, "--jobs", "1", "--out", run) as process:
        wait_for(lambda: MOMENTS[moment](run), process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert set(contents(run)) != set(whole) or contents(run) == whole
    assert call("run", *GOING, "--batch-size", "150", "--out", run)[0] == 0
    assert contents(run) == whole
    assert not (run / "parts").exists()


def children_of(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def workers_of(pid: int) -> list[int]:
    return [
        child for child in children_of(pid) if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


LOST = "envprobe: a process was ended from outside, perhaps for lack of memory; give the command again\n"
ENDS: dict[str, tuple[Callable[[int, list[int]], object], int, str | None]] = {
    "killed": (lambda pid, workers: os.kill(pid, signal.SIGKILL), -signal.SIGKILL, None),
    "interrupted": (lambda pid, workers: os.kill(pid, signal.SIGINT), 130, None),
    "worker lost": (lambda pid, workers: [os.kill(one, signal.SIGKILL) for one in workers], 1, LOST),
}


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
@pytest.mark.parametrize("end", ENDS)
def test_two_processes_end_together_and_the_run_goes_on(
    tmp_path: Path, whole: dict[str, bytes], call: Call, end: str
) -> None:
    run = tmp_path / "run"
    how, code, told = ENDS[end]
    with going("run", *GOING, "--jobs", "2", "--out", run) as process:
        wait_for(lambda: finished_parts(run), process)
        workers = workers_of(process.pid)
        assert workers
        how(process.pid, workers)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (code, "")
    assert "Traceback" not in err
    assert told is None or err == told
    wait_for(lambda: not any(map(alive, workers)))
    assert not any(map(alive, workers))
    assert call("run", *GOING, "--batch-size", "150", "--out", run)[0] == 0
    assert contents(run) == whole


FALLS = """
import ctypes, os, sys, time
from envprobe_core import cli

@cli.app.command("fall")
def fall():
    ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), order))()
    time.sleep(300)

order = int(sys.argv.pop())
sys.argv.append("fall")
cli.main()
"""
TOLD = {signal.SIGINT: (130, "envprobe: interrupted\n"), signal.SIGTERM: (143, "envprobe: terminated\n")}


@pytest.mark.parametrize("order", TOLD)
def test_an_order_to_end_that_a_callback_swallows_is_given_again(order: signal.Signals) -> None:
    """As while machine code is made; Python can only print a traceback there, and would go on."""
    done = subprocess.run([sys.executable, "-c", FALLS, str(int(order))], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == TOLD[order]


@pytest.mark.parametrize(("given", "order"), list(zip(["run", "compile"], reversed(TOLD), strict=True)))
def test_an_end_while_the_engine_is_compiled(tmp_path: Path, given: str, order: signal.Signals) -> None:
    left_out = shutil.ignore_patterns("__pycache__", "public", "replays")
    shutil.copytree(PACKAGE, tmp_path / "envprobe_core", ignore=left_out)
    more = {"run": [*SMALL, "--out", str(tmp_path / "run")], "compile": []}[given]
    folder = tmp_path / "envprobe_core" / "engine" / "__pycache__"
    with subprocess.Popen(
        [*COMMAND, given, *more], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        wait_for(lambda: any(folder.glob("envprobe-engine-*")), process)
        time.sleep(3)
        process.send_signal(order)
        err = process.communicate(timeout=600)[1]
    announced, _, last = err.rpartition("envprobe: ")
    assert (process.returncode, f"envprobe: {last}") == TOLD[order]
    assert announced.count("\n") <= 1
    assert not [path for path in folder.rglob("*") if ".tmp." in path.name]


GONE: dict[str, Callable[[Path], object]] = {
    "nothing": lambda parts: None,
    "a log": lambda parts: sorted(parts.glob("*random*.log.parquet"))[0].unlink(),
    "rows": lambda parts: sorted(parts.glob("*random*[0-9].parquet"))[0].write_text("{}"),
    "a whole part": lambda parts: [path.unlink() for path in parts.glob("*random*")],
}


@pytest.mark.parametrize("gone", GONE)
def test_what_is_there_is_not_run_again(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch, whole: dict[str, bytes], gone: str
) -> None:
    run, ran = tmp_path / "run", []
    with open_run(run, make_inputs(["graphnav"], ["simple", "random", "oracle"], seeds="0:90")) as folder:
        folder.fill(jobs=1)
        assert not folder.missing()
        assert len(list((run / "parts").iterdir())) == 6
        GONE[gone](run / "parts")
        (run / "parts" / ".x.1.part").write_text("what a kill left behind")
    compute = folders.compute_parts

    def counted(parts: list[folders.Part]) -> object:
        ran.extend(part.cell.policy.name for part in parts)
        return compute(parts)

    monkeypatch.setattr(folders, "compute_parts", counted)
    assert call("run", *GOING, "--jobs", "1", "--batch-size", "150", "--out", run)[0] == 0
    assert ran == ([] if gone == "nothing" else ["random"])
    assert contents(run) == whole


def test_two_runs_in_one_folder_keep_out_of_each_others_way(tmp_path: Path, call: Call) -> None:
    with open_run(tmp_path / "run", make_inputs(["tooldag"], ["simple"])):
        code, _, err = call("run", "--world", "tooldag", "--policy", "simple", "--out", tmp_path / "run")
    assert code == 2
    assert f"another run is writing to {tmp_path / 'run'}" in err


def test_file_names_are_safe_and_unlike_each_other() -> None:
    turned = [f"paper:{switch}={switch_values(switch)[1]}" for switch in SWITCHES]
    every = ",".join(f"{switch}={switch_values(switch)[1]}" for switch in SWITCHES)
    most = every.replace("encoding=literal,", "")
    names = ["paper", "observed", "released", f"paper:{every}", f"paper:{most}", *turned]
    cells = [make_cell("tooldag", "simple", protocol=parse_protocol(name)) for name in names]
    slugs = [cell_slug(cell) for cell in cells]
    assert len(set(slugs)) == len(slugs)
    for slug in slugs:
        assert re.fullmatch(r"[\w+~-]+", slug)
        assert len(slug) < 140
    assert slugs[0] == "tooldag_S2_paper_simple"
    by_name = dict(zip(names, slugs, strict=True))
    assert by_name["paper:clock=stands"] == "tooldag_S2_paper+clock-stands_simple"


def test_seed_ranges_are_as_short_as_they_can_be() -> None:
    assert seed_ranges(np.array([0, 1, 2, 5, 7, 8])) == "0:3,5,7:9"
    assert seed_ranges(np.array([4])) == "4"


def test_names_given_twice_count_once_and_all_stands_for_every_name(tmp_path: Path, call: Call) -> None:
    twice = ["--policy", "simple", "--protocol", "paper", "--protocol", "paper:clock=runs"]
    _, out, _ = call("run", *SMALL, *twice, "--json", "--out", tmp_path / "run")
    assert [row["policy"] for row in json.loads(out)] == ["simple", "no-probe"]
    given = ["--world", "all", "--policy", "all", "--seeds", "3", "--logs", "none", "--json"]
    _, out, _ = call("run", *given, "--out", tmp_path / "all")
    found = [(row["world"], row["policy"]) for row in json.loads(out)]
    assert found == [(world, policy) for world in WORLDS for policy in POLICIES]
    assert json.loads(out)[0]["accuracy_low"] is None


def test_a_run_loads_no_heavy_package(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from envprobe_core.cli import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "except SystemExit as end:\n    assert end.code == 0\n"
        "heavy = {'pandas', 'scipy.stats', 'matplotlib', 'IPython', 'papermill'}\n"  # Numba takes scipy
        "loaded = heavy & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    given = [sys.executable, "-c", program, "run", *SMALL, "--out", str(tmp_path / "run")]
    done = subprocess.run(given, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_engine_hash_covers_what_results_depend_on() -> None:
    names = {path.relative_to(PACKAGE).as_posix() for path in engine_sources()}
    needed = "cells runs/tables runs/summary statistics protocols regimes agents/simulated agents/profiles"
    assert {f"{name}.py" for name in needed.split()} <= names
    for folder in ("agents", "engine", "worlds", "policies"):
        assert {f"{folder}/{path.name}" for path in (PACKAGE / folder).glob("*.py")} <= names
    assert not {name for name in names if name.startswith(("cli/", "book", "notebooks", "figures"))}


KINDS = ("worlds", "policies", "protocols", "regimes", "profiles", "sections")


def test_list_names_everything(call: Call) -> None:
    code, out, _ = call("list")
    assert code == 0
    for name in [*WORLDS, *POLICIES, *REGIMES, *SWITCHES, "typical", "scripted-true-open"]:
        assert re.search(rf"^{re.escape(name)}\b", out, re.MULTILINE), name
    for kind in KINDS:
        assert re.search(rf"^{kind} *$", out, re.MULTILINE)
        code, one, _ = call("list", kind)
        assert (code, one.count("\n\n")) == (0, 1)
        assert one.startswith(kind)
    refused = f"envprobe: no list of 'planets'; accepted: {', '.join(KINDS)}\n"
    assert call("list", "planets") == (2, "", refused)


def test_list_describes_each_policy(call: Call) -> None:
    lines = {line.split()[0]: line for line in call("list", "policies")[1].splitlines() if line.strip()}
    for name, words in {
        "minus-c": "s+u+d",
        "judge": "1.5",
        "no-probe": "Never probe",
        "random": "uniformly drawn field",
        "voi": "expected to gain",
        "yoked": "repeats the probes of simple; the answer is withheld",
        "oracle": "sees gold",
    }.items():
        assert words in lines[name]
    assert "sees gold" not in lines["simple"]
