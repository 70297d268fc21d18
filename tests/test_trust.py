"""What a hostile hour does: kills, two commands at once, damaged notebooks, files in the way."""

import contextlib
import functools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envprobe_book.reproduce import build, execution
from envprobe_book.reproduce import sections as notebooks
from envprobe_core import files
from envprobe_core.errors import InputError
from envprobe_core.sources import ROOT
from processes import MARK, call, going, processes_of, wait_for

PATIENCE = 300
COUNT = "n: int = 3  # how many; accepts 1..10"
SLOW = "import time\nfor i in range(n):\n    time.sleep(0.2)\nprint('done', n)"
BUSY = "import tempfile\nfor i in range(9000):\n    tempfile.NamedTemporaryFile(delete=False).close()"
REPRODUCE = (
    "import sys\nfrom pathlib import Path\nfrom envprobe_book.cli import main, reproduce\n"
    "from envprobe_book.reproduce import build\n"
    "reproduce.ROOT = build.ROOT = Path(sys.argv.pop(1))\nmain()\n"
)
BUILD = (
    "import sys\nfrom pathlib import Path\nfrom envprobe_book.reproduce import build\n"
    "print('building', flush=True)\nsys.exit(build.build(Path(sys.argv[1]))[0])\n"
)
needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux's /proc")


def reproducing(checkout, temporary, *given, mark="two"):
    command, marked = [sys.executable, "-c", REPRODUCE, checkout], {MARK: mark, "TMPDIR": str(temporary)}
    return going("reproduce", *given, command=command, **marked)


RIGHTS = "-dac_override,-dac_read_search,-fowner"  # root has them, for whom no file is read-only
AS_USER = ["setpriv", f"--bounding-set={RIGHTS}", f"--inh-caps={RIGHTS}"] if os.getuid() == 0 else []


# --- kills ------------------------------------------------------------------------------------


@pytest.mark.nightly
@needs_proc
def test_nothing_outlives_a_killed_reproduce(checkout, write_notebook, tmp_path_factory):
    for name in ("a", "b", "c"):
        write_notebook(name, COUNT, SLOW, BUSY)  # which fills the folder that the command clears away
    temporary, mark = tmp_path_factory.mktemp("tmp"), str(checkout)
    command = functools.partial(reproducing, checkout, temporary, "--jobs", "2", mark=mark)
    for number, code in ((signal.SIGTERM, 143), (signal.SIGKILL, -9), (signal.SIGINT, 130)):
        left = set(temporary.glob("*/*"))  # and not what Python tries a folder with
        with command() as process:
            wait_for(lambda left=left: set(temporary.glob("*/*")) - left, process)
            time.sleep(random.uniform(0, 1.5))
            assert process.poll() is None
            process.send_signal(number)
            _, told = process.communicate(timeout=PATIENCE)
        assert (process.returncode, "Traceback" in told) == (code, False)
        wait_for(lambda: not processes_of(mark))
    with command() as again:
        printed, told = again.communicate(timeout=PATIENCE)
    assert (again.returncode, told, "0 failed" in printed) == (0, "", True)
    assert not processes_of(mark)
    assert not list(temporary.iterdir())
    made = sorted(path.name for path in (checkout / "book" / "executed").iterdir())
    assert made == ["a.ipynb", "b.ipynb", "c.ipynb"]
    assert not stale(checkout)


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_a_killed_builder(tmp_path, tmp_path_factory, number):
    out = build.stage(tmp_path / "book")
    (out / "book" / "index.md").write_text("# Book\n", encoding="utf-8")
    (out / "_toc.yml").write_text("format: jb-book\nroot: index\n", encoding="utf-8")
    temporary = str(tmp_path_factory.mktemp("t"))
    with going(out, command=[sys.executable, "-c", BUILD], TMPDIR=temporary) as process:
        process.stdout.readline()
        wait_for(lambda: len(processes_of(str(out))) > 1, process)
        assert process.poll() is None
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
    wait_for(lambda: not processes_of(str(out)))
    assert not build.is_fresh(out)


@pytest.mark.parametrize("closed", [">&- 2>told", "2>&-", ">&- 2>&-", "2>told | head -c 1"])
def test_closed_streams_give_no_traceback(tmp_path, closed):
    line = f"{sys.executable} -m envprobe_book list policies {closed}"
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert not [path for path in tmp_path.iterdir() if path.read_text()]


def test_a_second_command_waits_for_the_first(checkout, write_notebook, tmp_path_factory):
    write_notebook("a", COUNT, SLOW)
    command = functools.partial(reproducing, checkout, tmp_path_factory.mktemp("tmp"))
    with command() as first, command() as second:
        printed = [process.communicate(timeout=PATIENCE) for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0]
    assert sorted("1 executed" in out for out, _ in printed) == [False, True]
    waiting = f"waiting: another envprobe works in {checkout / 'book'}\n"
    assert {err for _, err in printed} <= {"", waiting}


def test_a_kernel_that_does_not_start_tells_why(checkout, write_notebook, tmp_path_factory, monkeypatch):
    write_notebook("a", COUNT, SLOW)
    monkeypatch.setenv("PYTHONPATH", str(broken := tmp_path_factory.mktemp("broken")))
    (broken / "ipykernel.py").write_text("raise ImportError('no dice')")
    assert "RuntimeError: Kernel died" in (told := executed(checkout))
    assert told.endswith("ImportError: no dice")


def test_a_full_disk_ends_the_wait_and_is_no_fault_of_a_cell(checkout, write_notebook, monkeypatch):
    write_notebook("a", COUNT)
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr(execution, "TemporaryFile", lambda *given, **how: os.close(-1))
    with pytest.raises(OSError, match="Bad file descriptor"):
        executed(checkout)
    monkeypatch.undo()
    monkeypatch.setattr(execution, "atomic_write", lambda path: os.close(-1))
    assert executed(checkout).startswith("a: failed outside its cells\n  OSError: ")


# --- damaged notebooks ------------------------------------------------------------------------


def stale(checkout):
    return [job for job in notebooks.plan(root=checkout) if not job.fresh]


def executed(checkout, **how):
    (outcome,) = execution.run(stale(checkout), 1, **how)
    return outcome.error


def test_an_altered_result_is_executed_again(checkout, write_notebook):
    write_notebook("a", "n: int = 1  # how many; accepts 1..9", SLOW)
    assert executed(checkout) is None
    path = checkout / "book" / "executed" / "a.ipynb"
    before = path.read_bytes()
    assert not stale(checkout)
    for change in (
        lambda made: made["cells"][-1]["outputs"][0].update(text=["done 4\n"]),
        lambda made: made["metadata"]["envprobe"]["parameters"].update(n=4),
        lambda made: made.update(metadata=[1]),
        lambda made: made.update(cells=[{"metadata": []}]),
    ):
        change(made := json.loads(before))
        path.write_text(json.dumps(made))
        assert [job.section.name for job in stale(checkout)] == ["a"]
    assert executed(checkout) is None
    assert path.read_bytes() == before


def one_cell(kind, source, tags, outputs=[]):  # noqa: B006
    made = {"cell_type": kind, "source": source, "metadata": {"tags": tags}, "outputs": outputs}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [made]}).encode()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "cannot be read: Invalid JSON"),
        (b"\xff\xfe", "cannot be read"),
        (one_cell("raw", "", 1), "cannot be read, cell 1 raw metadata tags"),
        (one_cell("code", "", [], None), "cannot be read, cell 1 code outputs"),
        (one_cell("code", "n: int = (", ["parameters"]), "line 1 of its parameters is not of the form"),
    ],
)
def test_a_malformed_notebook_is_named_and_the_others_go_on(
    own_checkout, write_notebook, capsys, content, words
):
    write_notebook("good", COUNT, "print(n)")
    (own_checkout / "notebooks" / "bad.ipynb").write_bytes(content)
    for names, code, ran, named in (([], 1, 1, 1), (["good"], 0, 0, 0), (["bad"], 2, 0, 1)):
        assert call("reproduce", *names) == code
        printed = capsys.readouterr()
        assert ("ran     good" in printed.out, words in printed.err) == (ran, named)
        assert printed.err.strip().count("\n") == 0
        assert ("1 executed, 0 unchanged, 1 failed" in printed.out) == (code == 1)


def test_a_cell_that_takes_too_long_is_named(checkout, write_notebook):
    write_notebook("endless", "", "import time\ntime.sleep(9000)")  # no other cell has to be quick
    told = executed(checkout, cell_timeout=1)
    assert told.startswith("endless: cell 3 of 3")
    assert "--cell-timeout" in told


# --- files in the way -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["answers.md", "solved.ipynb", "exercises.ipynb"])
def test_no_answer_takes_the_place_of_a_file(tmp_path, capsys, name):
    """A student's or instructor's own file stays, and no work is done before that is known."""
    (tmp_path / name).write_text("mine")
    assert call("answers", "--out", tmp_path) == 2
    assert f"{name}: it is there already" in capsys.readouterr().err
    assert call("answers", "--out", tmp_path / name / "deeper") == 2
    assert call("answers", "--out", ROOT / "notebooks") == 2
    assert call("book", "--out", tmp_path) == 2
    assert call("book", "--out", tmp_path / name) == 2
    assert "a file stands there; give a folder" in capsys.readouterr().err
    with contextlib.suppress(ZeroDivisionError), files.atomic_write(tmp_path / "new") as path:
        path.write_text(f"half{1 / 0}")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(name, "mine")]


def test_a_file_that_came_meanwhile_stays_beside_ours(tmp_path):
    def write():
        with files.atomic_write(tmp_path / "new", new=True) as path:
            path.write_text("ours")
            (tmp_path / "new").write_text("theirs")

    with pytest.raises(InputError, match="a file has come there meanwhile"):
        write()
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {"new": "theirs", f"new.{os.getpid()}": "ours"}


def test_only_our_own_leavings_are_swept_away(tmp_path):
    kept, others = [".mine.part", "a.12.part", ".x.part.1", ".d.1.part/in"], tmp_path / "others"
    for name in (*kept, "others/.a.1.part", ".ours.parquet.123.part"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "link").symlink_to(others)
    files.sweep(tmp_path)
    files.sweep(tmp_path / "link")
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {*kept, "others/.a.1.part"}


# --- folders that cannot be written to ----------------------------------------------------------


@pytest.mark.parametrize(
    "command", [("reproduce", "terms"), ("book",), ("answers",), ("lab", "--files-only")]
)
def test_a_folder_that_nobody_can_make_is_refused_in_one_line(tmp_path, capsys, command):
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for out in (tmp_path.joinpath(*["a"] * 1900), tmp_path / "circle" / "a", tmp_path / ("a" * 300)):
        assert call(*command, "--out", out) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["circle"]


@pytest.mark.nightly
@pytest.mark.skipif(bool(AS_USER) and not shutil.which("setpriv"), reason="root can write everywhere")
def test_a_checkout_that_cannot_be_written_to_gives_its_results_elsewhere(
    checkout, write_notebook, tmp_path_factory
):
    write_notebook("a", COUNT, "print(n)")
    (checkout / "book" / "assets").mkdir(parents=True)
    for name in ("_config.yml", "_toc.yml", "CITATION.cff", "book/index.md", "book/assets/one.css"):
        (checkout / name).write_text("")
    out, temporary = (tmp_path_factory.mktemp(name) for name in ("out", "tmp"))

    def give(*given):
        command = [*AS_USER, sys.executable, "-c", REPRODUCE, checkout, *given, "-p", "n=4"]
        how = {"capture_output": True, "text": True, "env": os.environ | {"TMPDIR": str(temporary)}}
        done = subprocess.run(command, timeout=PATIENCE, check=False, **how)
        return done.returncode, done.stdout, done.stderr

    def let_write(*, anybody):
        for path in [checkout, *checkout.rglob("*")]:
            path.chmod(path.stat().st_mode | 0o200 if anybody else path.stat().st_mode & ~0o222)

    def refused(code, said, told):
        return (code, told.count("\n"), "give --out DIR" in told) == (2, 1, True)

    let_write(anybody=False)
    try:
        assert refused(*give("reproduce"))
        code, said, told = give("reproduce", "--out", out)
        assert (code, told, "1 executed, 0 unchanged" in said) == (0, "", True)
        let_write(anybody=True)
        shutil.copytree(out / "book" / "executed", checkout / "book" / "executed")
        (html := build.html_folder(checkout)).mkdir(parents=True)
        (html / "index.html").write_text("")
        let_write(anybody=False)
        assert refused(*give("book"))  # nothing says what its pages were made from
        let_write(anybody=True)
        (html.parent / build.STAMP).write_text(build.book_digest(checkout))
        let_write(anybody=False)
        code, said, told = give("book")
        assert (code, told, "0 executed, 1 unchanged" in said) == (0, "", True)
        assert str(html / "index.html") in said
        assert not [*temporary.iterdir()]
    finally:
        let_write(anybody=True)
