"""Execution of sections by papermill, each in a kernel of its own, several at a time.

Every result is cleaned of what differs from run to run (times, ids, paths, widget models), so that
the same inputs give the same bytes, and is put in place in one step: a section that fails, or a
run that is killed, leaves what was there before.

Kernels are forks of one process, which has imported what all sections import: each starts two seconds of
processor time earlier. The fork server is Python's own; it ends with this process, however that ends, and the
kernels with the fork server.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from multiprocessing import active_children, current_process, forkserver, get_context, parent_process, util
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

from envprobe_core.files import environment, replacing, working_folder
from envprobe_core.pool import follow
from envprobe_core.reproduce.sections import (
    METADATA_KEY,
    VOLATILE_METADATA,
    Job,
    cell_source,
    cell_tags,
    contents_sha256,
)
from envprobe_core.show import BOOK, SERVED

if TYPE_CHECKING:
    from nbformat import NotebookNode

KERNEL_ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "SOURCE_DATE_EPOCH": "0",
    "TZ": "UTC",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "JUPYTER_PREFER_ENV_PATH": "1",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
}
"""What kernels find in their environment, so that no result depends on whose machine it is."""
FORKED = "envprobe-forked"  # the provisioner's name
PRELOADED = (
    "ipykernel.kernelapp",
    "matplotlib.figure",  # and not pyplot, whose backend has to find the kernel's shell
    "pandas",
    "envprobe_core.analyses.scoreboard",
    "envprobe_core.grid",
    "envprobe_core.show.figures",
    "envprobe_core.claims.judge",
    __name__,
)

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_FRAME = re.compile(r"^\s*Cell In\[(\d+)\], line (\d+)", re.MULTILINE)
_VIEW = "application/vnd.jupyter.widget-view+json"
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_context = get_context("forkserver")


@dataclass(frozen=True)
class Outcome:
    """How one section went."""

    name: str  # the section's
    seconds: float  # wall-clock time
    error: str | None = None  # a block of lines that names the cell, shows it, and gives its error


def run(jobs: Sequence[Job], workers: int, cell_timeout: float | None = None) -> Iterator[Outcome]:
    """Execute sections and report each as it ends; a cell may take `cell_timeout` seconds, or any time.

    Each section has a kernel, a process of its own; what waits for it is a thread, because
    importing papermill once a worker would take longer than most sections do.
    """
    if not jobs:
        return
    waiting: SimpleQueue[Job] = SimpleQueue()
    done: SimpleQueue[Outcome] = SimpleQueue()
    for job in jobs:
        waiting.put(job)

    # imported here, and not in each thread, so that they do not race for it
    import papermill  # noqa: F401
    from jupyter_core.utils import ensure_event_loop

    logging.getLogger("papermill").setLevel(logging.CRITICAL)  # outcomes tell it all
    own = {} if any(job.changed for job in jobs) else {BOOK: "1"}
    style = jobs[0].section.path.parent / "matplotlibrc"
    with (
        tempfile.TemporaryDirectory(dir=working_folder(), ignore_cleanup_errors=True) as folder,
        environment(**_kernel_environment(folder, style, own)),
        forked_kernels(),
    ):

        def work() -> None:
            with contextlib.suppress(Empty):
                while True:
                    job = waiting.get_nowait()
                    try:
                        done.put(run_one(job, Path(folder), cell_timeout))
                    except Exception as error:  # of the telling itself; whoever waits must not wait for ever
                        done.put(Outcome(job.section.name, 0.0, f"{job.section.name}: {error!r}"))
            ensure_event_loop().close()  # the one that this thread's notebooks ran in

        # daemons: an interrupt ends the command at once, and the kernels with it
        threads = [threading.Thread(target=work, daemon=True) for _ in range(min(workers, len(jobs)))]
        for thread in threads:
            thread.start()
        try:
            for _ in jobs:
                yield done.get()
        finally:
            with contextlib.suppress(Empty):
                while True:
                    waiting.get_nowait()
        for thread in threads:
            thread.join()


def run_one(job: Job, folder: Path, cell_timeout: float | None = None) -> Outcome:
    """Execute one section, kept in `folder` while it runs, and put its result in place."""
    import nbformat
    import papermill

    start = time.monotonic()
    name, path = job.section.name, job.section.path
    progress = folder / f"{uuid.uuid4()}.ipynb"
    try:
        notebook = papermill.execute_notebook(
            nbformat.read(path, as_version=4),
            progress,
            parameters=job.changed,
            kernel_name="python3",
            language="python",
            progress_bar=False,
            resources={"metadata": {"path": str(path.parent)}},  # the kernel's folder
            extra_arguments=["--log-level=CRITICAL"],  # its own log; a cell's errors are output
            start_timeout=600,
            execution_timeout=cell_timeout,
            iopub_timeout=600,
            raise_on_iopub_timeout=True,
            coalesce_streams=True,
        )
        whole = clean(notebook, job.record, path.parent.parent)
        job.output.parent.mkdir(parents=True, exist_ok=True)
        with replacing(job.output) as partial:
            text = json.dumps(whole, ensure_ascii=False, indent=1, sort_keys=True)
            partial.write_text(text + "\n", encoding="utf-8")
    except BaseException as error:
        return Outcome(name, time.monotonic() - start, describe_failure(job, error, progress))
    return Outcome(name, time.monotonic() - start)


def describe_failure(job: Job, error: BaseException, progress: Path) -> str:
    """The lines that a reader sees for a section that failed; `progress`, how far it came, may be missing."""
    kind, text, trace, last = type(error).__name__, str(error), "", None
    if progress.exists():
        for cell in json.loads(progress.read_text(encoding="utf-8"))["cells"]:
            last = cell if cell["metadata"].get("papermill", {}).get("start_time") else last
    for output in last["outputs"] if last else ():
        if output["output_type"] == "error":
            kind, text, trace = output["ename"], output["evalue"], "\n".join(output["traceback"])
    if isinstance(error, TimeoutError):
        text = "the cell takes longer than --cell-timeout allows"
    sources = [cell_source(cell) for cell in job.section.cells]
    told = [f"{job.section.name}: failed outside its cells", f"  {kind}: {_COLOUR.sub('', text)}"]
    if last and cell_source(last) in sources:
        source, number = cell_source(last), last["execution_count"]
        count = f" (In [{number}])" if number else ""
        told[0] = f"{job.section.name}: cell {sources.index(source) + 1} of {len(sources)}{count}"
        frames = _FRAME.findall(_COLOUR.sub("", trace))  # none is its own where a result cannot be shown
        if line := next((int(line) for cell, line in frames if int(cell) == number), 0):
            told.insert(1, f"  > {line} | {source.splitlines()[line - 1]}")
    return "\n".join(told)


def clean(notebook: NotebookNode, record: dict[str, Any], root: Path) -> dict[str, Any]:
    """Return an executed notebook as JSON, without all that differs from run to run.

    Args:
        notebook: as papermill leaves it.
        record: what the notebook is to say of its own making.
        root: the checkout, whose path is taken out of every text.
    """
    import nbformat

    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python", "pygments_lexer": "ipython3", "file_extension": ".py"},
        METADATA_KEY: record,
    }
    notebook.nbformat_minor = 5
    hidden: list[str] = []
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        for key in VOLATILE_METADATA:
            cell.metadata.pop(key, None)
        tags = cell_tags(cell)
        if "parameters" in tags:
            hidden = [tag for tag in tags if tag.startswith(("hide-", "remove-"))]
        if "injected-parameters" in tags:
            cell.metadata["tags"] = [*tags, *hidden]
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            for kind in [kind for kind in data if kind.endswith(_VIEW)]:  # what is glued has a prefix
                del data[kind]  # a widget's random id; pages show its other forms
    whole = json.loads(_ADDRESS.sub("", nbformat.writes(notebook)).replace(f"{root}{os.sep}", ""))
    whole["metadata"][METADATA_KEY]["contents_sha256"] = contents_sha256(whole)
    return whole


# --- kernels ----------------------------------------------------------------------------------


def _kernel_environment(profile: str, style: Path, more: dict[str, str]) -> dict[str, str | None]:
    """Return what kernels are started with, so that they inherit nothing that changes results."""
    places = dict.fromkeys(("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "TMPDIR"), profile)
    # a section that a notebook of a Jupyter server executes makes a page too
    return KERNEL_ENVIRONMENT | places | more | {"MATPLOTLIBRC": str(style), SERVED: None}


@contextlib.contextmanager
def forked_kernels() -> Iterator[None]:
    """Let kernels start as forks."""
    _context.set_forkserver_preload(list(PRELOADED))
    # connection files and the fork server's socket lie where a kill does not leave them for good
    usual_folder, tempfile.tempdir = tempfile.tempdir, str(working_folder())
    util.get_temp_dir()
    factory = KernelProvisionerFactory.instance()
    factory.provisioners[FORKED] = EntryPoint(
        FORKED, f"{__name__}:{ForkProvisioner.__name__}", factory.GROUP_NAME
    )
    usual, factory.default_provisioner_name = factory.default_provisioner_name, FORKED
    try:
        yield
        tempfile.tempdir = usual_folder  # after a fault kernels may still be starting
    except BaseException:  # the folder that they work in goes next
        for kernel in active_children():
            kernel.kill()
        raise
    finally:
        factory.default_provisioner_name = usual


class ForkProvisioner(LocalProvisioner):
    """Starts kernels as forks; all else is `LocalProvisioner`'s."""

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        """Start a kernel with the arguments, environment and folder that its command would have."""
        given = cmd[cmd.index("ipykernel_launcher") + 1 :]
        self.process = ForkedKernel(args=(given, dict(kwargs["env"]), str(kwargs["cwd"])), daemon=True)
        self.process.start()
        self.pid = self.pgid = self.process.pid  # it leads a session of its own
        self.cwd = kwargs["cwd"]
        return self.connection_info


class ForkedKernel(_context.Process):  # type: ignore[name-defined,misc]
    """A kernel that is a fork, with those methods of `subprocess.Popen` that a provisioner calls."""

    stdin = stdout = stderr = None

    def poll(self) -> int | None:
        """Return the exit code, None while it runs."""
        return self.exitcode

    def wait(self) -> int | None:
        """Return the exit code when it has ended."""
        self.join()
        return self.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal to what runs."""
        if self.is_alive():
            os.kill(self.pid, number)

    def run(self) -> None:
        """Be a kernel; in the fork."""
        given, variables, folder = self._args
        server = forkserver._forkserver  # type: ignore[attr-defined]
        os.close(server._forkserver_alive_fd)  # which would keep the fork server when its owner is gone
        server._forkserver_alive_fd = None
        follow(os.getppid())
        if not parent_process().is_alive() or not os.path.isdir(variables["TMPDIR"]):  # type: ignore[union-attr]
            return  # whoever asked for it has given up
        os.setsid()
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(variables)
        time.tzset()
        current_process().daemon = False  # sections may use processes

        from ipykernel.kernelapp import IPKernelApp

        IPKernelApp.launch_instance(given)
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # flushed at the end; the kernel's are closed
