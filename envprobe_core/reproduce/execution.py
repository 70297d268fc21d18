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
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from multiprocessing import active_children, current_process, forkserver, get_context, parent_process, util
from pathlib import Path
from queue import SimpleQueue
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
    SERVED: None,  # a section that a notebook of a Jupyter server executes makes a page too
}
"""What kernels find in their environment, so that no result depends on whose machine it is."""
FORKED = "envprobe-forked"  # the provisioner's name
PRELOADED = [
    "ipykernel.kernelapp",
    "matplotlib.figure",  # and not pyplot, whose backend has to find the kernel's shell
    "pandas",
    "envprobe_core.analyses.scoreboard",
    "envprobe_core.grid",
    "envprobe_core.show.figures",
    "envprobe_core.claims.judge",
    __name__,
]

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
    error: str | None = None  # lines that name the cell, show it, and give its error


def run(jobs: Sequence[Job], workers: int, cell_timeout: float | None = None) -> Iterator[Outcome]:
    """Execute sections and report each as it ends; a cell may take `cell_timeout` seconds, or any time.

    A section of which only text has changed keeps its outputs. What waits for a kernel is a thread: importing
    papermill once a worker would take longer than most sections do.
    """
    yield from (retell(job) for job in jobs if job.computed)
    jobs = [job for job in jobs if not job.computed]
    if not jobs:
        return
    # imported here, and not in each thread, so that they do not race for it
    import papermill  # noqa: F401
    from jupyter_core.utils import ensure_event_loop

    logging.getLogger("papermill").setLevel(logging.CRITICAL)  # outcomes tell it all
    waiting, done = deque(jobs), SimpleQueue[Outcome]()
    plain = {} if any(job.changed for job in jobs) else {BOOK: "1"}
    with tempfile.TemporaryDirectory(dir=working_folder(), ignore_cleanup_errors=True) as folder:
        style = str(jobs[0].section.path.parent / "matplotlibrc")
        own = dict.fromkeys(("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "TMPDIR"), folder) | {"MATPLOTLIBRC": style}
        with environment(**KERNEL_ENVIRONMENT, **own, **plain), forked_kernels():

            def work() -> None:
                with contextlib.suppress(IndexError):
                    while True:
                        done.put(run_one(waiting.popleft(), Path(folder), cell_timeout))
                ensure_event_loop().close()  # the one that this thread's notebooks ran in

            # daemons: an interrupt ends the command at once, and the kernels with it
            threads = [threading.Thread(target=work, daemon=True) for _ in range(min(workers, len(jobs)))]
            for thread in threads:
                thread.start()
            try:
                for _ in jobs:
                    yield done.get()
            finally:
                waiting.clear()
            for thread in threads:
                thread.join()


def run_one(job: Job, folder: Path, cell_timeout: float | None = None) -> Outcome:
    """Execute one section, kept in `folder` while it runs, and put its result in place."""
    import nbformat
    import papermill

    start, path = time.monotonic(), job.section.path
    progress, error = folder / path.name, None
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
        keep(job, notebook)
    except BaseException as fault:
        error = describe_failure(job, fault, progress)
    return Outcome(job.section.name, time.monotonic() - start, error)


def retell(job: Job) -> Outcome:
    """Put a section's text as it is now around outputs that stand; the bytes are those of an execution."""
    import nbformat

    start, section = time.monotonic(), nbformat.read(job.section.path, as_version=4)
    stored = nbformat.read(job.output, as_version=4)
    made = deque(cell for cell in stored.cells if cell.cell_type == "code")
    stored.cells = []
    for cell in section.cells:
        stored.cells.append(made.popleft() if cell.cell_type == "code" else cell)
        if cell.cell_type == "code" and made and "injected-parameters" in cell_tags(made[0]):
            stored.cells.append(made.popleft())
    keep(job, stored)
    return Outcome(job.section.name, time.monotonic() - start)


def keep(job: Job, notebook: NotebookNode) -> None:
    """Put an executed notebook in place."""
    whole = clean(notebook, job.record, job.section.path.parent.parent)
    job.output.parent.mkdir(parents=True, exist_ok=True)
    with replacing(job.output) as partial:
        text = json.dumps(whole, ensure_ascii=False, indent=1, sort_keys=True)
        partial.write_text(text + "\n", encoding="utf-8")


def describe_failure(job: Job, error: BaseException, progress: Path) -> str:
    """Return the lines that a reader sees for a section that failed.

    `progress` is the notebook as far as it came; it may be missing, or half written.
    """
    kind, text, trace, last = type(error).__name__, str(error), "", None
    with contextlib.suppress(OSError, ValueError):
        cells = json.loads(progress.read_text(encoding="utf-8"))["cells"]
        last = [cell for cell in cells if cell["metadata"].get("papermill", {}).get("start_time")][-1:]
    for output in (output for cell in last or () for output in cell["outputs"]):
        if output["output_type"] == "error":
            kind, text, trace = output["ename"], output["evalue"], "\n".join(output["traceback"])
    if isinstance(error, TimeoutError):
        text = "the cell takes longer than --cell-timeout allows"
    place, shown = "failed outside its cells", []
    sources = [cell_source(cell) for cell in job.section.cells]
    for cell in last or ():
        source, number = cell_source(cell), cell["execution_count"]
        if source in sources:
            count = f" (In [{number}])" if number else ""
            place = f"cell {sources.index(source) + 1} of {len(sources)}{count}"
            # no frame is the cell's own where a result cannot be shown
            lines = [int(line) for at, line in _FRAME.findall(_COLOUR.sub("", trace)) if int(at) == number]
            shown = [f"  > {at} | {line}" for at in lines[:1] for line in source.splitlines()[at - 1 : at]]
    return "\n".join([f"{job.section.name}: {place}", *shown, f"  {kind}: {_COLOUR.sub('', text)}"])


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
        tags = cell.metadata["tags"] = cell_tags(cell)
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


@contextlib.contextmanager
def forked_kernels() -> Iterator[None]:
    """Let kernels start as forks."""
    _context.set_forkserver_preload(PRELOADED)
    # connection files and the fork server's socket lie where a kill does not leave them for good
    usual_folder, tempfile.tempdir = tempfile.tempdir, str(working_folder())
    util.get_temp_dir()
    factory = KernelProvisionerFactory.instance()
    own = f"{__name__}:{ForkProvisioner.__name__}"
    factory.provisioners[FORKED] = EntryPoint(FORKED, own, factory.GROUP_NAME)
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
