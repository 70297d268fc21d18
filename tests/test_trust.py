"""What a hostile hour does: kills, two commands at once, damaged notebooks, files in the way."""

import contextlib
import functools
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import COMMAND, MARK, call, processes_of

from envprobe_core import files
from envprobe_core.cli import reproduce
from envprobe_core.errors import InputError
from envprobe_core.reproduce import build, execution
from envprobe_core.reproduce import sections as notebooks
from envprobe_core.sources import ROOT

PATIENCE = 300
COUNT = "n: int = 3  # how many; accepts 1..10"
SLOW = "import time\nfor i in range(n):\n    time.sleep(0.2)\nprint('done', n)"
BUSY = "import tempfile\nfor i in range(9000):\n    tempfile.NamedTemporaryFile(delete=False).close()"
REPRODUCE = (
    "import functools, sys\nfrom pathlib import Path\n"
    "from envprobe_core.cli import main, reproduce\nfrom envprobe_core.reproduce import sections\n"
    "root = Path(sys.argv.pop(1))\nreproduce.ROOT = root\n"
    "reproduce.plan = functools.partial(sections.plan, root=root)\nmain()\n"
)
BUILD = (
    "import sys\nfrom pathlib import Path\nfrom envprobe_core.reproduce import build\n"
    "print('building', flush=True)\nsys.exit(build.build(Path(sys.argv[1]))[0])\n"
)


def wait_for(condition, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def start(mark, temporary, program, *given):
    environment = os.environ | {MARK: mark, "TMPDIR": str(temporary)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", program, *map(str, given)], env=environment, **pipes)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux's /proc")
def test_nothing_outlives_a_killed_reproduce(checkout, write_notebook, tmp_path_factory):
    for name in ("a", "b", "c"):
        write_notebook(name, COUNT, SLOW, BUSY)  # which fills the folder that the command clears away
    temporary, mark = tmp_path_factory.mktemp("tmp"), f"killed-{checkout.name}"
    ran = checkout / "book" / "executed"
    for number, code in ((signal.SIGTERM, 143), (signal.SIGKILL, -9), (signal.SIGINT, 130)):
        left = set(temporary.iterdir())
        process = start(mark, temporary, REPRODUCE, checkout, "reproduce", "--jobs", "2")
        try:
            wait_for(
                lambda left=left, process=process: (
                    set(temporary.iterdir()) - left or process.poll() is not None
                )
            )
            time.sleep(random.uniform(0, 1.5))
            assert process.poll() is None
            process.send_signal(number)
            _, told = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
        assert (process.returncode, "Traceback" in told) == (code, False)
        wait_for(lambda: not processes_of(mark))
    again = start(mark, temporary, REPRODUCE, checkout, "reproduce", "--jobs", "2")
    printed, told = again.communicate(timeout=PATIENCE)
    assert (again.returncode, told) == (0, "")
    assert "0 failed" in printed
    assert not processes_of(mark)
    assert not list(temporary.iterdir())
    assert sorted(path.name for path in ran.iterdir()) == [f"{name}.ipynb" for name in "abc"]
    assert all(job.fresh for job in notebooks.plan(root=checkout))


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_a_killed_builder(tmp_path, tmp_path_factory, number):
    out, mark = build.stage(tmp_path / "book"), f"builder-{tmp_path.name}-{number}"
    page = "# Book\n"
    (out / "book" / "index.md").write_text(page, encoding="utf-8")
    (out / "_toc.yml").write_text("format: jb-book\nroot: index\n", encoding="utf-8")
    process = start(mark, tmp_path_factory.mktemp("tmp"), BUILD, out)
    try:
        process.stdout.readline()
        wait_for(lambda: len(processes_of(mark)) > 1 or process.poll() is not None)
        assert process.poll() is None
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    wait_for(lambda: not processes_of(mark))
    assert not build.is_fresh(out)


def test_a_second_command_waits_for_the_first(checkout, write_notebook, tmp_path_factory):
    write_notebook("a", COUNT, SLOW)
    temporary = tmp_path_factory.mktemp("tmp")
    first, second = (start("two", temporary, REPRODUCE, checkout, "reproduce") for _ in range(2))
    printed = [process.communicate(timeout=PATIENCE) for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0]
    assert sorted("1 executed" in out for out, _ in printed) == [False, True]
    told = [err for _, err in printed if err]
    assert all(err == f"waiting: another envprobe works in {checkout / 'book'}\n" for err in told)


def executed(checkout):
    return {outcome.name: outcome for outcome in execution.run(stale(checkout), 2)}


def stale(checkout):
    return [job for job in notebooks.plan(root=checkout) if not job.fresh]


def alter_output(notebook):
    notebook["cells"][-1]["outputs"][0]["text"] = ["done 4\n"]


def alter_record(notebook):
    notebook["metadata"]["envprobe"]["parameters"]["n"] = 4


@pytest.fixture
def one_executed(checkout, write_notebook):
    write_notebook("a", "n: int = 1  # how many; accepts 1..9", SLOW)
    assert executed(checkout)["a"].error is None
    return checkout / "book" / "executed" / "a.ipynb"


@pytest.mark.parametrize("change", [alter_output, alter_record])
def test_an_altered_result_is_executed_again(checkout, one_executed, change):
    before = one_executed.read_bytes()
    assert not stale(checkout)
    notebook = json.loads(before)
    change(notebook)
    one_executed.write_text(json.dumps(notebook))
    assert executed(checkout)["a"].error is None
    assert one_executed.read_bytes() == before
    for part, odd in (("metadata", [1]), ("cells", [{"metadata": []}])):
        one_executed.write_text(json.dumps(notebook | {part: odd}))
        assert [job.section.name for job in stale(checkout)] == ["a"]


DAMAGE = {
    "no JSON": ("{", r"cannot be read: Invalid JSON"),
    "odd tags": (
        '{"nbformat": 4, "metadata": {}, "cells": [{"cell_type": "raw", "source": "", "metadata": '
        '{"tags": 1}}]}',
        "cannot be read, cell 1 metadata tags",
    ),
    "no text": (b"\xff\xfe", "cannot be read"),
    "no Python": (
        '{"nbformat": 4, "metadata": {}, "cells": [{"cell_type": "code", "source": "n: int = (", '
        '"metadata": {"tags": ["parameters"]}}]}',
        "line 1 of its parameters is not of the form",
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_malformed_notebook_is_named_and_the_others_go_on(
    checkout, write_notebook, monkeypatch, capsys, damage
):
    monkeypatch.setattr(reproduce, "plan", functools.partial(notebooks.plan, root=checkout))
    monkeypatch.setattr(reproduce, "ROOT", checkout)
    write_notebook("good", COUNT, "print(n)")
    content, words = DAMAGE[damage]
    content = content if isinstance(content, bytes) else content.encode()
    (checkout / "notebooks" / "bad.ipynb").write_bytes(content)
    assert call("reproduce") == 1
    printed = capsys.readouterr()
    assert "ran     good" in printed.out
    assert "1 executed, 0 unchanged, 1 failed" in printed.out
    assert printed.err.startswith("envprobe: notebook bad: ")
    assert words in printed.err
    assert printed.err.count("\n") == 1
    assert call("reproduce", "good") == 0
    capsys.readouterr()
    assert call("reproduce", "bad") == 2
    assert words in capsys.readouterr().err


def test_a_cell_that_takes_too_long_is_named(checkout, write_notebook):
    write_notebook("endless", COUNT, "print(n)", "import time\nwhile True:\n    time.sleep(1)")
    (outcome,) = execution.run(stale(checkout), 1, cell_timeout=12)  # under load the others take their time
    assert outcome.error.startswith("endless: cell 4 of 4")
    assert "--cell-timeout" in outcome.error


@pytest.mark.parametrize("name", ["answers.md", "solved.ipynb", "exercises.ipynb"])
def test_no_answer_takes_the_place_of_a_file(tmp_path, capsys, name):
    """A student's or instructor's own file stays, and no work is done before that is known."""
    (tmp_path / name).write_text("mine")
    assert call("answers", "--out", tmp_path) == 2
    assert f"{name}: it is there already" in capsys.readouterr().err
    assert call("answers", "--out", tmp_path / name / "deeper") == 2
    assert call("calibrate", "--out", tmp_path / name) == 2
    assert call("answers", "--out", ROOT / "notebooks") == 2
    assert call("book", "--out", tmp_path) == 2
    with contextlib.suppress(ZeroDivisionError), files.replacing(tmp_path / "new") as path:
        path.write_text(f"half{1 / 0}")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "mine")]


def test_a_file_that_came_meanwhile_stays_beside_ours(tmp_path):
    def write():
        with files.replacing(tmp_path / "new", new=True) as path:
            path.write_text("ours")
            (tmp_path / "new").write_text("theirs")

    with pytest.raises(InputError, match="a file has come there meanwhile"):
        write()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "new": "theirs",
        f"new.{os.getpid()}": "ours",
    }


def test_only_our_own_leavings_are_swept_away(tmp_path):
    kept, others = [".mine.part", "a.12.part", ".x.part.1", ".d.1.part/in"], tmp_path / "others"
    for name in (*kept, "others/.a.1.part", ".ours.parquet.123.part"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    link = tmp_path / "link"
    link.symlink_to(others)
    files.sweep(tmp_path)
    files.sweep(link)
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {*kept, "others/.a.1.part"}


RUN = ("run", "--world", "tooldag", "--policy", "simple", "--seeds")


def test_a_run_goes_by_the_file_that_is_given_and_keeps_what_is_not_its_own(tmp_path, capsys):
    run, other = tmp_path / "run", tmp_path / "other.json"
    assert call(*RUN, "0:3", "--out", run) == 0
    (run / "parts").mkdir()
    (run / "parts" / "notes.txt").write_text("mine")
    assert call(*RUN, "0:3", "--out", run) == 0
    assert (run / "parts" / "notes.txt").read_text() == "mine"
    other.write_text("{}")
    (run / "manifest-old.json").write_text("{}")
    for given, words in (
        (other, "neither a run's folder nor its manifest.json"),
        (run / "manifest-old.json", "neither a run's folder nor its manifest.json"),
    ):
        capsys.readouterr()
        assert call("run", "--from", given, "--out", tmp_path / "new") == 2
        assert words in capsys.readouterr().err
    assert call("run", "--from", run / "manifest.json", "--model", "m", "--out", tmp_path / "new") == 2
    assert "--model is for a language model" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("ignored", [False, True], ids=["hung up", "nohup"])
def test_a_lost_terminal_ends_a_run_unless_it_is_to_go_on(tmp_path, ignored):
    seeds = "0:12000" if ignored else "0:60000"  # a run that goes on does so to its end
    given = [*COMMAND, *RUN, seeds, "--logs", "full", "--out", str(tmp_path / "run")]
    shell = ("sh", "-c", "trap '' HUP; exec \"$@\"", "sh") if ignored else ()
    with subprocess.Popen([*shell, *given], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as ran:
        try:
            wait_for(lambda: list((tmp_path / "run").glob("parts/*")) or ran.poll() is not None)
            ran.send_signal(signal.SIGHUP)
            _, told = ran.communicate(timeout=2 * PATIENCE)
        finally:
            ran.kill()
    assert ran.returncode == (0 if ignored else 128 + signal.SIGHUP), told
    assert "Traceback" not in told


@pytest.mark.parametrize("closed", [">&- 2>told", "2>&-", ">&- 2>&-", "2>told | head -c 1"])
def test_closed_streams_give_no_traceback(tmp_path, closed):
    line = f"{sys.executable} -m envprobe_core list policies {closed}"
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert not [path for path in tmp_path.iterdir() if path.read_text()]
