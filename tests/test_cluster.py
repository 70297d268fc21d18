"""Past one machine: a real scheduler and real workers, some of which are killed."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from envprobe_book.cli.options import address_of, handing_out, read_scheduler_file
from envprobe_book.reproduce import execution
from envprobe_book.reproduce import sections as notebooks
from envprobe_core import parallel
from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import simulate
from envprobe_core.errors import InputError
from envprobe_core.experiment import run_conditions
from envprobe_core.sources import PACKAGE
from processes import contents, envprobe, going, paused, wait_for

RUN = ["run", "--world", "graphnav", "--world", "tooldag", "--policy", "simple", "--policy", "yoked"]
RUN += ["--protocol", "observed", "--seeds", "0:1500", "--logs", "sample:200"]
DASK = "import sys; from dask.__main__ import main; sys.argv[0] = 'dask'; main()"
WITHOUT_PACKAGE = f"import sys; sys.modules['envprobe_core'] = None; {DASK}"
PATIENCE = 300


class Cluster:
    """A scheduler and its workers, each a process of its own, all on this machine."""

    def __init__(self, folder):
        self.folder, self.file = folder, folder / "scheduler.json"
        self.workers = []
        self.processes = []
        self.start()

    def start(self):
        self.file.unlink(missing_ok=True)
        given = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        self.scheduler = self._process([*given, "--scheduler-file", self.file])

    def add_worker(self, program=DASK, **environment):
        given = ["worker", "--scheduler-file", self.file, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
        given += ["--death-timeout", str(PATIENCE), "--local-directory", self.folder]
        self.workers.append(self._process(given, program, environment))
        return self.workers[-1]

    def wait_for(self, workers):
        def joined():
            with contextlib.suppress(InputError), parallel.connected(self.address) as client:
                return len(client.ncores()) == workers
            return False

        wait_for(self.file.exists)
        wait_for(joined)

    def remove(self, worker):
        worker.kill()
        self.workers.remove(worker)
        from distributed import Client

        with Client(self.address, set_as_default=False) as client:  # asks the scheduler alone
            wait_for(lambda: len(client.ncores()) == len(self.workers))

    @property
    def address(self):
        return read_scheduler_file(self.file)

    def stop(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()

    def _process(self, given, program=DASK, environment=None):
        command = [sys.executable, "-c", program, *map(str, given)]
        with (self.folder / f"{len(self.processes)}.txt").open("wb") as told:
            pipes = {"stdout": told, "stderr": told, "cwd": self.folder}
            self.processes.append(subprocess.Popen(command, env=os.environ | (environment or {}), **pipes))
        return self.processes[-1]


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory):
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        started.add_worker()
        started.add_worker()
        started.wait_for(2)
        yield started
    finally:
        started.stop()


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """The files of the run that this machine makes alone."""
    folder = tmp_path_factory.mktemp("local") / "run"
    assert envprobe(*RUN, "--jobs", "1", "--out", folder).returncode == 0
    return contents(folder)


def stored(run):
    return list(run.glob("logs/[!.]*.parquet"))


def marking():
    """Make a function, of no module, that runs a condition and says in which process."""
    return lambda condition, seeds: simulate(condition, seeds) | {"process": np.full(len(seeds), os.getpid())}


@pytest.mark.nightly
def test_a_grid_has_the_same_episodes_on_a_cluster(two_workers, monkeypatch):
    conditions = [make_condition(world, "yoked") for world in ("tooldag", "objectstate")]
    here = run_conditions(conditions, np.arange(90), batch_size=20, work=marking())
    monkeypatch.setenv(parallel.SCHEDULER, two_workers.address)
    there = run_conditions(conditions, np.arange(90), batch_size=20, jobs=2, work=marking())
    one_block = run_conditions(conditions[:1], np.arange(9), work=marking())
    assert set(here.pop("process")) == set(one_block["process"]) == {os.getpid()}
    assert set(there.pop("process")) == {worker.pid for worker in two_workers.workers}
    assert list(here) == list(there)
    for name in here:
        np.testing.assert_array_equal(here[name], there[name])


NOTEBOOK = """\
import os
import numpy as np
from envprobe_core.conditions import make_condition
from envprobe_core.engine.batch import simulate
from envprobe_core.experiment import run_conditions
def where(condition, seeds):
    return simulate(condition, seeds) | {"process": np.full(len(seeds), os.getpid())}
table = run_conditions([make_condition("tooldag", "simple")], np.arange(40), batch_size=5, work=where)
print(*sorted(set(table["process"].tolist())))
"""


@pytest.mark.nightly
def test_the_kernels_of_sections_use_the_cluster(two_workers, checkout, write_notebook):
    write_notebook("demo", "", NOTEBOOK)
    with handing_out(two_workers.address):
        (outcome,) = execution.run(notebooks.plan(root=checkout), 1)
    assert outcome.error is None
    printed = (checkout / "book" / "executed" / "demo.ipynb").read_text()
    processes = sorted(worker.pid for worker in two_workers.workers)
    assert " ".join(map(str, processes)) in printed
    assert parallel.SCHEDULER not in os.environ


@pytest.mark.nightly
def test_a_fault_of_the_work_is_told_as_it_is(two_workers):
    with parallel.connected(two_workers.address) as client:
        executor = client.get_executor()
        with pytest.raises(ZeroDivisionError, match="modulo by zero"):
            list(parallel.map_unordered(lambda number: 1 // number, range(3), executor))
        with pytest.raises(FileNotFoundError, match="absent"):
            list(parallel.map_unordered(lambda name: Path(name).read_text(), ["absent"], executor))


@pytest.mark.nightly
@pytest.mark.parametrize("package", ["none", "another"])
def test_workers_that_would_compute_something_else_are_refused(two_workers, tmp_path, package):
    shutil.copytree(PACKAGE, tmp_path / "envprobe_core", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "envprobe_core" / "protocols.py").open("a") as changed:
        changed.write("OTHER = True\n")
    program, environment, words = {
        "none": (WITHOUT_PACKAGE, {}, "no envprobe_core; install the same everywhere"),
        "another": (DASK, {"PYTHONPATH": str(tmp_path)}, "install the same everywhere"),
    }[package]
    odd = two_workers.add_worker(program, **environment)

    def refusal():
        try:
            with parallel.connected(two_workers.address):
                return None
        except InputError as error:
            return str(error)

    assert words in (refused := wait_for(refusal))
    assert "worker tcp://127.0.0.1:" in refused
    run = tmp_path / "run"
    done = envprobe(*RUN, "--scheduler", two_workers.address, "--out", run)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert words in done.stderr
    assert not stored(run)
    two_workers.remove(odd)


@pytest.mark.nightly
def test_a_killed_worker_loses_nothing(two_workers, tmp_path, local):
    run, note = tmp_path / "run", tmp_path / "note"
    given = [*RUN, "--scheduler", two_workers.address, "--out", run]
    with going(*given, command=paused(note, ".parquet", 1)) as process:
        wait_for(note.exists)
        os.kill(two_workers.workers[0].pid, signal.SIGKILL)
        note.unlink()
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert err == f"work goes to the cluster at {two_workers.address} (workers: 2, threads: 2)\n"
    assert "4 conditions, 6000 episodes" in out
    assert contents(run) == local


@pytest.mark.nightly
def test_a_killed_scheduler_is_told_and_the_same_command_completes(tmp_path, local):
    run, note, lost = tmp_path / "run", tmp_path / "note", Cluster(tmp_path)
    command = [*RUN, "--scheduler-file", lost.file, "--out", run]
    try:
        lost.add_worker()
        lost.wait_for(1)
        with going(*command, command=paused(note, ".parquet", 1)) as process:
            wait_for(note.exists)
            os.kill(lost.scheduler.pid, signal.SIGKILL)
            note.unlink()
            out, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out, err.count("\n")) == (1, "", 2)
        assert "was lost: run the command again once a scheduler is there" in err
        assert not json.loads((run / "manifest.json").read_text())["finished"]
        lost.start()
        lost.add_worker()
        lost.wait_for(1)
        done = envprobe(*command)
        assert done.returncode == 0, done.stderr
        assert contents(run) == local
    finally:
        lost.stop()


@pytest.mark.parametrize(
    ("address", "says"),
    [("tcp://127.0.0.1:9", "no Dask scheduler answers at 'tcp://127.0.0.1:9' ("),
     *((bad, f"scheduler {bad!r} is no address;") for bad in ("nonsense://here", "tcp://[::1", ""))],
)  # fmt: skip
def test_an_address_where_nobody_answers_is_refused(address, says, monkeypatch):
    monkeypatch.setattr(parallel, "CONNECT_SECONDS", 0.5)
    with (
        pytest.raises(InputError, match=rf"^{re.escape(says)}.* as in tcp://HOST:8786$"),
        parallel.connected(address),
    ):
        pass


@pytest.mark.parametrize(
    ("address", "content", "says"),
    [(None, None, "cannot be read"), *((None, bad, "states no address") for bad in ("", "{}", "[]")),
     ("tcp://127.0.0.1:9", "", "cannot stand beside")],
)  # fmt: skip
def test_a_scheduler_file_says_where_the_scheduler_is_and_alone(tmp_path, address, content, says):
    file = tmp_path / "scheduler.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InputError, match=says):
        address_of(address, file)


MODEL = ["run", "--world", "tooldag", "--policy", "simple", "--seeds", "0:2", "--agent", "openai"]
MODEL += ["--model", "gpt-4o-mini", "--replay-only", "--store", "none.sqlite"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([*RUN, "--jobs=2"], "envprobe: --jobs is for processes of this machine; a cluster has its workers"),
        (MODEL, "calls are made here, next to the store and the cap; the cluster is not used"),
    ],
    ids=["processes", "model"],
)
def test_what_a_cluster_does_not_do_is_told_before_it_is_asked(given, told, tmp_path):
    done = envprobe(*given, "--scheduler", "tcp://127.0.0.1:9", "--out", tmp_path / "run")
    assert (done.returncode, done.stdout) == (2, "")
    first, *others = done.stderr.splitlines()
    assert first == told
    assert ["none.sqlite" in line for line in others] == [True] * (given is MODEL)
    assert "Dask" not in done.stderr
