"""A missing extra is one line with its name and exit code 2, before anything is written."""

import sys

import pytest

from envprobe_book.extras import EXTRAS
from processes import envprobe

PROGRAM = (
    "import sys\nfor name in {blocked!r}:\n    sys.modules[name] = None\n"
    "from envprobe_book.__main__ import main\nmain()\n"
)
RUN = ["run", "--world", "tooldag", "--policy", "simple", "--seeds", "0:2", "--out"]
WITHOUT = {  # the extra that is missing, and a command that needs it
    "cli": ["list"],
    "notebooks": ["book", "--out"],
    "book": ["book", "--out"],
    "llm": [*RUN[:-1], "--agent", "openai", "--model", "m", "--out"],
    "local": [*RUN[:-1], "--agent=local", "--out"],
    "dask": [*RUN[:-1], "--scheduler", "tcp://127.0.0.1:9", "--out"],
}


def without(extra, *arguments):
    command = [sys.executable, "-c", PROGRAM.format(blocked=EXTRAS[extra])]
    return envprobe(*arguments, command=command)


@pytest.mark.parametrize("extra", WITHOUT)
def test_a_missing_extra_is_one_line_and_nothing_is_written(tmp_path, extra):
    out = tmp_path / "out"
    done = without(extra, *WITHOUT[extra], *([out] if WITHOUT[extra][-1] == "--out" else []))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.endswith(f"which is not installed: pip install 'envprobe-core[{extra}]'\n")
    assert not out.exists()


@pytest.mark.parametrize("command", ["reproduce", "answers", "lab"])
def test_every_command_on_notebooks_says_so(command):
    done = without("notebooks", command)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"envprobe: {command} needs papermill, which is not installed" in done.stderr


@pytest.mark.parametrize("command", [["estimate"], ["doctor"], ["store", "stats", "x"]])
def test_every_command_on_a_model_says_so(command):
    done = without("llm", *command)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"envprobe: {command[0]} needs openai" in done.stderr


def test_what_needs_no_extra_goes_on_without():
    assert without("notebooks", "list", "policies").returncode == 0
    assert without("llm", "reproduce", "--help").returncode == 0
