"""The command line as tests call it, and the processes that a test starts, with all that these start."""

import contextlib
import os
import subprocess
import sys
import time
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from envprobe_book.cli import main
from envprobe_core.sources import ROOT

COMMAND = [sys.executable, "-m", "envprobe_book"]
MARK = "ENVPROBE_TEST_MARK"  # in the environment of what a test starts, which all its children inherit


def script(path):
    """A script of the checkout as a module."""
    found = spec_from_file_location(Path(path).stem, ROOT / path)
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


def call(*arguments):
    """Run the command in this process; return its exit code."""
    with pytest.raises(SystemExit) as end:
        main(list(map(str, arguments)))
    return int(end.value.code or 0)


def keyless(**more):
    """This process's environment without what the model's SDK reads, and with more."""
    return {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")} | more


def envprobe(*arguments, command=COMMAND, **environment):
    """Run the command in a process of its own."""
    return subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, stdin=subprocess.DEVNULL, text=True,
        timeout=6000, env=keyless(**environment), check=False,
    )  # fmt: skip


@contextlib.contextmanager
def going(*arguments, command=COMMAND, **environment):
    """A process that is stopped, by its id, whatever happens; the last argument marks all that it starts."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    pipes["env"] = keyless(**{MARK: str(arguments[-1])} | environment)
    process = subprocess.Popen([*command, *map(str, arguments)], **pipes)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


PAUSED = """\
import os, sys, time
note, ending, left, replace = sys.argv.pop(1), sys.argv.pop(1), list(range(int(sys.argv.pop(1)))), os.replace
def later(old, new, **how):
    if str(new).endswith(ending) and left and not left.pop():
        open(note, "w").close()
        while os.path.exists(note):
            time.sleep(0.01)
    replace(old, new, **how)
os.replace = later
from envprobe_book.cli import main
from envprobe_core.sources import ROOT
main()
"""


def paused(note, ending, number=1):
    """A command that waits before it puts a file of this kind in place, until its note is taken away."""
    return [sys.executable, "-c", PAUSED, str(note), ending, str(number)]


def contents(folder):
    """The bytes of all files under a folder, by their names below it."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def processes_of(mark, what=b""):
    """Ids of processes that carry a mark in their environment, as all that a command starts, and run this."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (
                mark.encode() in (folder / "environ").read_bytes()
                and what in (folder / "cmdline").read_bytes()
            ):
                found.append(int(folder.name))
    return found


def wait_for(condition, process=None):
    """Wait for what a condition gives, or until the process, which is to bring it about, has ended."""
    end = time.monotonic() + 600
    while not (found := condition()) and (process is None or process.poll() is None):
        assert time.monotonic() < end
        time.sleep(0.002)
    return found
