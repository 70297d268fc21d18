"""The commands `run` and `list`, as a user meets them: real processes, folders, kills."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from daily import nightly
from envprobe_core.conditions import make_condition
from envprobe_core.errors import InputError
from envprobe_core.files import OURS
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import SWITCHES, parse_protocol, switch_values
from envprobe_core.regimes import REGIMES
from envprobe_core.runs import read_run
from envprobe_core.runs.folder import open_run
from envprobe_core.runs.manifest import RunInputs, log_name, seed_ranges
from envprobe_core.sources import PACKAGE, package_files
from envprobe_core.worlds import WORLDS
from processes import COMMAND, call, contents, envprobe, going, paused, processes_of, wait_for

SMALL = ["--world", "tooldag", "--policy", "simple", "--policy", "no-probe", "--seeds", "0:6"]
LOGS = ["logs/tooldag_S2_paper_no-probe.parquet", "logs/tooldag_S2_paper_simple.parquet"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    assert call("run", *SMALL, "--out", folder) == 0
    return folder


# --- what a run gives -------------------------------------------------------------------------


def test_a_real_process_prints_one_array_or_one_line(tmp_path):
    """And loads no heavy package on the way."""
    program = (
        "import sys\nfrom envprobe_book.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "heavy = {'scipy.stats', 'matplotlib', 'IPython', 'papermill'}\n"  # Numba takes scipy
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    given = ["run", *SMALL, "--protocol", "paper", "--json", "--out", tmp_path / "run"]
    done = envprobe(*given, command=[sys.executable, "-c", program])
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)
    assert (rows[0]["world"], rows[0]["policy"], rows[0]["n"]) == ("tooldag", "simple", 6)
    assert re.fullmatch(r"[0-9a-f]{64}", rows[0]["result_hash"])
    done = envprobe("run", *SMALL, "--threshold", "nan", "--out", tmp_path / "no")
    told = "envprobe: threshold nan is not a finite number\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", told)


def test_the_folder_holds_table_logs_and_a_manifest_of_what_was_run(tmp_path, told):
    """And nothing of where and when."""
    run = tmp_path / "deep" / "run"
    code, out, _ = told("run", *SMALL, "--budget", "3", "--out", run)
    assert (code, "2 conditions, 12 episodes, S2, profile typical" in out) == (0, True)
    assert sorted(contents(run)) == [".lock", "episodes.parquet", *LOGS, "manifest.json"]
    frame = pd.read_parquet(run / "episodes.parquet")
    assert frame["seed"].tolist() == [*range(6), *range(6)]
    assert frame.loc[frame["policy"] == "no-probe", "threshold"].isna().all()
    assert frame["collapse_onset"].isna().any()
    assert frame["collapse_onset"].dropna().between(0, 30).all()
    manifest = json.loads(text := (run / "manifest.json").read_text())
    given = {"worlds": ["tooldag"], "policies": ["simple", "no-probe"], "budget": 3, "seeds": "0:6"}
    assert given.items() <= manifest["inputs"].items()
    assert (manifest["finished"], manifest["versions"]["numpy"]) == (True, np.__version__)
    assert (manifest["protocols"]["paper"]["clock"], manifest["conditions"][1]["threshold"]) == ("runs", None)
    for word in (str(tmp_path), str(PACKAGE), time.strftime("%Y-")):
        assert word not in text
    assert not re.search(rf"\b{re.escape(os.uname().nodename)}\b", text)  # which may be part of a hash


def test_defaults_are_told_and_taken(tmp_path, told, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")  # whatever the terminal is
    text = " ".join(re.sub("[│╭╮╰╯─]", " ", told("run", "--help")[1]).split())
    for words in ("S2", "(paper)", "(horizon / 4)", "(1.5)", "typical", "full"):
        assert f"[default: {words}]" in text
    assert "at S2 0:220, under released 42:262" in text
    given = ["--world", "tooldag", "--policy", "no-probe", "--logs", "none"]
    told("run", *given, "--protocol", "paper", "--protocol", "released", "--out", tmp_path)
    ends = pd.read_parquet(tmp_path / "episodes.parquet").groupby("protocol")["seed"].agg(["min", "max"])
    assert ends.T.to_dict("list") == {"paper": [0, 219], "released": [42, 261]}


GRID = ["--world", "graphnav", "--world", "tooldag", "--seeds", "0:40", "--regime", "R3"]
GRID += ["--policy", "simple", "--policy", "yoked", "--policy", "random", "--policy", "judge"]
GRID += ["--protocol", "observed", "--protocol", "released:end=horizon"]


def test_the_same_run_gives_the_same_bytes(tmp_path, told):
    """For any number of processes, order of seeds, names given twice, and conditions beside it."""
    twice = ["--world", "graphnav", "--policy", "simple", "--protocol", "observed:clock=runs"]
    made = []
    for how in (["--jobs", "1"], ["--jobs", "2"], ["--seeds", "30:40,29,0:29"], twice):
        assert told("run", *GRID, *how, "--out", tmp_path / str(len(made)))[0] == 0
        made.append(contents(tmp_path / str(len(made))))
    assert made == made[:1] * 4
    alone = ["--world", "tooldag", "--policy", "yoked", "--protocol", "observed", "--regime", "R3"]
    told("run", *alone, "--seeds", "0:40", "--out", tmp_path / "alone")
    name = "logs/tooldag_R3_observed_yoked.parquet"
    assert (tmp_path / "alone" / name).read_bytes() == made[0][name]


def test_logs_do_not_touch_results(tmp_path, told):
    for logs in ("full", "none", "sample:2", "sample:900"):
        assert told("run", *SMALL, "--logs", logs, "--out", tmp_path / logs)[0] == 0
    made = {path.name: contents(path) for path in tmp_path.iterdir()}
    assert len({files["episodes.parquet"] for files in made.values()}) == 1
    assert not set(LOGS) & set(made["none"])
    assert made["sample:900"][LOGS[1]] == made["full"][LOGS[1]]
    whole, sample = (pq.read_table(tmp_path / name / LOGS[1]) for name in ("full", "sample:2"))
    assert sample.equals(whole.slice(0, 2 * 31))


def test_all_stands_for_every_name_and_list_names_them(tmp_path, told):
    given = ["--world", "all", "--policy", "all", "--seeds", "3", "--logs", "none", "--json"]
    rows = json.loads(told("run", *given, "--out", tmp_path / "all")[1])
    found = [(row["world"], row["policy"]) for row in rows]
    assert found == [(world, policy) for world in WORLDS for policy in POLICIES]
    assert rows[0]["accuracy_low"] is None
    kinds = ("worlds", "policies", "protocols", "regimes", "profiles", "sections")
    out = told("list")[1]
    for name in [*WORLDS, *POLICIES, *REGIMES, *SWITCHES, *kinds, "typical", "scripted-true-open"]:
        assert re.search(rf"^{re.escape(name)}\b", out, re.MULTILINE), name
    assert re.search("^oracle .*sees gold", told("list", "policies")[1], re.MULTILINE)
    refused = f"envprobe: unknown list 'planets'; accepted: {', '.join(kinds)}\n"
    assert told("list", "planets") == (2, "", refused)


def test_file_names_are_safe_and_unlike_each_other():
    turned = [f"{switch}={switch_values(switch)[1]}" for switch in SWITCHES]
    names = ["paper", "observed", "released", *(f"paper:{one}" for one in [*turned, ",".join(turned)])]
    logs = [log_name(make_condition("tooldag", "simple", protocol=parse_protocol(name))) for name in names]
    assert (len(set(logs)), logs[0]) == (len(logs), LOGS[1])
    assert all(re.fullmatch(r"logs/[\w+~-]{1,140}\.parquet", log) for log in logs)
    assert seed_ranges(np.array([0, 1, 2, 5, 7, 8])) == "0:3,5,7:9"


def test_the_engine_hash_covers_what_results_depend_on():
    names = {path.relative_to(PACKAGE).as_posix() for path in package_files(model=False)}
    needed = (
        "conditions runs/tables runs/manifest statistics protocols regimes agents/__init__ agents/profiles"
    )
    assert {f"{name}.py" for name in needed.split()} <= names
    for folder in ("agents", "compiled", "engine", "worlds", "policies"):
        assert {f"{folder}/{path.name}" for path in (PACKAGE / folder).glob("*.py")} <= names
    asking = {path.relative_to(PACKAGE).as_posix() for path in package_files()} - names
    assert asking
    assert all(name.startswith("llm/") for name in asking), "only a run that asks a model depends on these"


# --- what is refused --------------------------------------------------------------------------


OTHERS = {  # what is asked for otherwise, or what the manifest states; what is told
    "--seeds 0:7": 'inputs seeds is "0:6", not "0:7"',
    "--policy cd": 'inputs policies is ["simple", "no-probe"], not ["simple", "no-probe", "cd"]',
    "--protocol paper:clock=stands": 'inputs protocols is ["paper"], not ["paper:clock=stands"]',
    "--budget 2": "inputs budget is null, not 2",
    "--logs none": 'inputs logs is "full", not "none"',
    "--agent openai --model m --base-url http://127.0.0.1:9/v1": 'inputs agent provider is null, not "local"',
    "engine sources_sha256": 'engine sources_sha256 is "0", not "',
    "versions numpy": 'versions numpy is "0", not "',
    "profile omit": 'profile omit is "0", not 0.',
}


@pytest.mark.parametrize("other", OTHERS)
def test_a_finished_run_is_recognised_and_a_different_one_refused(finished, tmp_path, told, other):
    run = shutil.copytree(finished, tmp_path / "run")
    code, _, err = told("run", *SMALL, "--jobs", "2", "--out", run)
    assert (code, "finished already; nothing was repeated" in err) == (0, True)
    changed = other.split()
    if not other.startswith("--"):
        manifest = json.loads((run / "manifest.json").read_text())
        manifest[changed[0]][changed.pop()] = "0"
        (run / "manifest.json").write_text(json.dumps(manifest))
        changed.clear()
    before = contents(run)
    code, out, err = told("run", *SMALL, *changed, "--out", run)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"holds a different run ({OTHERS[other]}" in err
    assert contents(run) == before


@pytest.mark.parametrize("name", [LOGS[1], "episodes.parquet"])
def test_a_finished_run_that_lost_something_is_not_passed_off_as_whole(finished, tmp_path, told, name):
    run = shutil.copytree(finished, tmp_path / "run")
    (run / name).unlink()
    assert f"is marked as finished, but {name} is missing" in told("run", *SMALL, "--out", run)[2]
    (run / name).write_bytes(b"PAR1")
    code, out, err = told("run", *SMALL, "--out", run)
    if name == "episodes.parquet":  # what a log holds is for `recompute`
        assert (code, out, err.count("\n"), f"{name} is not the file" in err) == (2, "", 1, True)


@pytest.mark.parametrize("name", ["run/notes.txt", "run/manifest.json", "run/parts/x", "run"])
def test_what_is_not_ours_is_left_alone(finished, tmp_path, told, name):
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("{}")
    code, out, err = told("run", *SMALL, "--out", tmp_path / "run")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert re.search("holds no run|is no manifest|is not a folder", err)
    assert contents(tmp_path) == {name: b"{}"}
    assert "cannot write to" in told("run", *SMALL, "--out", tmp_path / name / "deeper")[2]
    if name == "run/parts/x":  # which a finished run may hold
        shutil.copytree(finished, tmp_path / "run", dirs_exist_ok=True)
        assert told("run", *SMALL, "--out", tmp_path / "run")[0] == 0
        assert (tmp_path / name).read_text() == "{}"


BAD = {  # what cannot be meant, and how it is named
    "--world moon": "unknown world 'moon'; accepted: tooldag (tools or ToolDAGWorld",
    "--seeds 1,1": "a seed stands twice",
    "--budget 31": "budget 31 is not in 0..30",
    "--budget 1_0": "--budget': '1_0' is not a whole number",
    "--threshold 1_0.5": "--threshold': '1_0.5' is not a number",
    "--threshold 1.2": "policy no-probe has no threshold",
    "--jobs 0": "--jobs': 0 is not in 1..256",
    "--from=": "--from': '' names no file or folder",
    "--logs sample:0": "logs 'sample:0'",
}


@pytest.mark.parametrize("given", BAD)
def test_bad_input_is_one_line_and_leaves_no_folder(tmp_path, told, given):
    condition = ["--world", "tooldag", "--policy", "no-probe"]
    code, out, err = told("run", *condition, *given.split(), "--out", tmp_path / "run")
    assert (code, out, err.count("\n"), BAD[given] in err) == (2, "", 1, True)
    assert not (tmp_path / "run").exists()


def test_a_missing_folder_or_a_wrong_number_of_threads_is_one_line(tmp_path):
    (tmp_path / "gone").mkdir()
    program = "import os, sys; os.chdir(sys.argv.pop(1)); os.rmdir(os.getcwd())\n"
    program += "from envprobe_book.cli import main\nmain()"
    gone = envprobe(tmp_path / "gone", "list", "policies", command=[sys.executable, "-P", "-c", program])
    threads = envprobe("run", *SMALL, "--out", tmp_path / "run", NUMBA_NUM_THREADS="0")
    for done, told in (
        (gone, "the working folder is gone; change to one that is there"),
        (threads, "NUMBA_NUM_THREADS=0: accepted is a whole number from 1"),
    ):
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"envprobe: {told}\n")


# --- what ends it -----------------------------------------------------------------------------

GOING = ["--world", "graphnav", "--seeds", "0:510"]
ACTING = ["simple", "random", "oracle", "placebo", "no-probe"]
GOING += [word for name in ACTING for word in ("--policy", name)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The files of a run that nobody killed."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    assert envprobe("run", *GOING, "--jobs", "1", "--out", folder).returncode == 0
    return contents(folder)


LOST = "envprobe: a process was ended from outside, perhaps for lack of memory; run the command again\n"
LOG, TABLE = ".parquet", "episodes.parquet"
ENDS = {  # jobs; before which file, or as workers start; what is ended by what; the exit code; what is told
    "folder": (1, ("manifest.json", 1), signal.SIGKILL, -9, ""),
    "log": (1, (LOG, 1), signal.SIGKILL, -9, ""),
    "logs": (1, (LOG, 3), signal.SIGKILL, -9, ""),
    "table": (1, (TABLE, 1), signal.SIGKILL, -9, ""),
    "manifest": (1, ("manifest.json", 2), signal.SIGKILL, -9, ""),
    "killed": (2, (LOG, 1), signal.SIGKILL, -9, ""),  # where Python's own tracker may warn
    "interrupted": (2, (LOG, 1), signal.SIGINT, 130, "envprobe: interrupted\n"),
    "worker lost": (2, None, None, 1, LOST),  # before it has read its imports, and so with work left to do
    "hung up": (1, (LOG, 2), signal.SIGHUP, 129, "envprobe: hung up\n"),
    "nohup": (1, (LOG, 2), signal.SIGHUP, 0, ""),  # which it goes on after
}


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
@pytest.mark.parametrize("end", nightly(ENDS, "table", "interrupted", "worker lost"))
def test_a_run_that_was_ended_leaves_nobody_and_nothing_that_counts_as_finished(tmp_path, whole, told, end):
    """What stands under a final name is whole, and the same command makes the run."""
    run, note = tmp_path / "run", tmp_path / "note"
    jobs, moment, order, code, words = ENDS[end]
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL if code else signal.SIG_IGN)
    with going(
        "run", *GOING, "--jobs", jobs, "--out", run, command=paused(note, *moment or ("-", 1))
    ) as process:
        signal.signal(signal.SIGHUP, before)
        workers = partial(processes_of, str(run), b"spawn_main")
        wait_for(note.exists if moment else workers, process)
        assert bool(workers()) == (jobs > 1)
        for pid in workers() if order is None else [process.pid]:
            os.kill(pid, order or signal.SIGKILL)
        note.unlink(missing_ok=True)
        out, err = process.communicate(timeout=600)
    assert (process.returncode, out == "", "Traceback" in err, words in err) == (code, code != 0, False, True)
    wait_for(lambda: not processes_of(str(run)))
    left = {name: made for name, made in contents(run).items() if not OURS.fullmatch(Path(name).name)}
    if code:
        manifest = left.pop("manifest.json", None)
        assert manifest is None or not json.loads(manifest)["finished"]
        with pytest.raises(InputError, match="not finished" if manifest else "holds no run"):
            read_run(run)
        assert left.items() <= whole.items()
    assert told("run", *GOING, "--jobs", "1", "--out", run)[0] == 0
    assert contents(run) == whole


def test_a_folder_that_another_run_is_writing_to_is_refused(tmp_path, told, whole):
    run = tmp_path / "run"
    with open_run(run, RunInputs(["graphnav"], ACTING, seeds="0:510")):
        (run / ".x.1.part").write_text("what a kill left behind")
        before = contents(run)
        refused = f"envprobe: another run is writing to {run}\n"
        assert told("run", *GOING, "--out", run) == (2, "", refused)
        assert contents(run) == before
    assert told("run", *GOING, "--jobs", "1", "--out", run)[0] == 0
    assert contents(run) == whole


def copy_core(folder):
    """Copy the core without its machine code, so that whoever finds it first compiles it."""
    left_out = shutil.ignore_patterns("__pycache__", "public", "replays")
    shutil.copytree(PACKAGE, folder / "envprobe_core", ignore=left_out)


@pytest.mark.parametrize(
    ("verb", "order", "how"),
    nightly([("run", 15, "terminated"), ("compile", 2, "interrupted")], ("compile", 2, "interrupted")),
)
def test_an_end_while_the_engine_is_compiled(tmp_path, verb, order, how):
    copy_core(tmp_path)
    more = {"run": [*SMALL, "--out", str(tmp_path / "run")], "compile": []}[verb]
    folder = tmp_path / "envprobe_core" / "compiled" / "__pycache__"
    with subprocess.Popen(
        [*COMMAND, verb, *more], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        wait_for(lambda: any(folder.glob("envprobe-engine-*")), process)
        time.sleep(1)
        process.send_signal(order)
        err = process.communicate(timeout=600)[1]
    announced, _, last = err.rpartition("envprobe: ")
    assert (process.returncode, last) == (128 + order, f"{how}\n")
    assert announced.count("\n") <= 1
    assert not [path for path in folder.rglob("*") if ".tmp." in path.name]


AT_A_CALL_OF_LLVM = """
import signal, sys
from numba.core import codegen
from envprobe_book import cli

known = codegen.CPUCodeLibrary._object_compiled_hook.__func__

def called(kind, module, code):
    if module.name == "run":  # the last one, whose machine code is asked for at once
        signal.raise_signal(signal.SIGTERM)
    return known(kind, module, code)

codegen.CPUCodeLibrary._object_compiled_hook = classmethod(called)
sys.argv[0] = "envprobe"
cli.main()
"""


@pytest.mark.nightly
def test_an_end_while_the_compiler_calls_back_is_not_lost(tmp_path):
    """LLVM drops what is raised in a call of its own: the command went on with a half-made function."""
    copy_core(tmp_path)
    own = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", AT_A_CALL_OF_LLVM, "run", *SMALL, "--out", str(tmp_path / "run")]
    ended = subprocess.run(command, env=own, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (128 + signal.SIGTERM, "envprobe: terminated")
    assert "Traceback" not in ended.stderr
