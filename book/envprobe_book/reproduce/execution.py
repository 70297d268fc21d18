"""Execution of sections by papermill, each in a kernel of its own, several at a time.

Every result is cleaned of what differs from run to run (times, ids, paths, widget models), so that
the same inputs give the same bytes, and is put in place in one step: a section that fails, or a
run that is killed, leaves what was there before.
"""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
import threading
import time
from collections import deque
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, ClassVar

from jupyter_client.manager import AsyncKernelManager

from envprobe_book.pages import BOOK, EXECUTED
from envprobe_book.reproduce.reruns import RERUN, read_ledger
from envprobe_book.reproduce.sections import (
    METADATA_KEY,
    VOLATILE_METADATA,
    Job,
    as_json,
    cell_source,
    cell_tags,
    json_sha256,
)
from envprobe_core.compiled.compiled_files import cache_folder
from envprobe_core.errors import COMPILING, DAMAGED, LONGEST, in_one_line
from envprobe_core.files import atomic_write, environment, working_folder
from envprobe_core.ledger import ENVIRONMENT as LEDGER

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
KERNEL_ARGUMENTS = [
    "--log-level=CRITICAL",  # its own log; a cell's errors are output
    "-c=import os; from envprobe_core.parallel import follow; follow(os.getppid())",
]
"""A kernel ends when whoever started it does, however that ends."""


class Kernel(AsyncKernelManager):
    """A kernel whose own words, of which one that is killed has many, are read if it does not start.

    What its engine runs is noted in a file of its own (see `envprobe_core.ledger`).
    """

    own: ClassVar = threading.local()

    def start_kernel(self, **options: Any) -> Awaitable[None]:
        """Start it, writing to the file of the thread that waits for it."""
        self.own.words.seek(self.own.words.truncate(0))
        own = {LEDGER: str(self.own.ledger)} | ({} if self.own.job.changed else {BOOK: "1"})
        options["env"] = {**(options.get("env") or os.environ), **own}
        return super().start_kernel(stderr=self.own.words, **options)


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_FRAME = re.compile(r"^\s*Cell In\[(\d+)\], line (\d+)", re.MULTILINE)
_VIEW = "application/vnd.jupyter.widget-view+json"
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@dataclass(frozen=True)
class Outcome:
    """How one section went."""

    name: str  # the section's
    seconds: float  # wall-clock time
    error: str | None = None  # lines that name the cell, show it, and give its error


def run(jobs: Sequence[Job], workers: int, cell_timeout: float | None = None) -> Iterator[Outcome]:
    """Execute sections and report each as it ends; a cell may take `cell_timeout` seconds, or any time.

    A section of which only text has changed keeps its outputs. What waits for a kernel is a thread: importing
    papermill once a worker would take longer than most sections do. Kernels import the packages that lie
    beside the notebooks, a copy (`frozen`).
    """
    first, failed = [job for job in jobs if not job.section.collects], set[str]()
    if 0 < len(first) < len(jobs):  # what is collected is there before who collects it
        for outcome in run(first, workers, cell_timeout):
            failed |= {outcome.name} if outcome.error else set()
            yield outcome
        jobs = [job for job in jobs if job.section.collects]
        for job in jobs:
            if others := sorted(failed.intersection(job.section.collects)):  # of whom there is an old result
                told = f"{job.section.name}: it shows findings of {', '.join(others)}, which failed"
                yield Outcome(job.section.name, 0.0, told)
        jobs = [job for job in jobs if failed.isdisjoint(job.section.collects)]
    yield from (retell(job) for job in jobs if job.computed)
    if not (jobs := [job for job in jobs if not job.computed]):
        return
    import papermill  # noqa: F401 (here, so that threads do not race for it)
    from jupyter_core.utils import ensure_event_loop

    logging.getLogger("papermill").setLevel(logging.CRITICAL)  # outcomes tell it all
    waiting, done = deque(jobs), SimpleQueue[Outcome]()
    with tempfile.TemporaryDirectory(dir=working_folder(), ignore_cleanup_errors=True) as folder:
        root = jobs[0].section.path.parent.parent
        style = str(root / "notebooks" / "matplotlibrc")
        own = dict.fromkeys(("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "TMPDIR"), folder) | {"MATPLOTLIBRC": style}
        own |= {EXECUTED: str(jobs[0].output.parent)} | imports_from(root)
        with environment(**KERNEL_ENVIRONMENT, **own):
            usual, tempfile.tempdir = tempfile.tempdir, folder  # so that a kill leaves no connection files

            def work(words: IO[str]) -> None:
                with words as Kernel.own.words, suppress(IndexError):
                    while True:  # until nothing is left
                        done.put(run_one(waiting.popleft(), cell_timeout))
                ensure_event_loop().close()  # the one that this thread's notebooks ran in

            # made here, where a full disk is told, and not in a thread, for which all would wait in vain
            files = [TemporaryFile("w+", errors="replace") for _ in jobs[:workers]]  # noqa: SIM115
            # daemons: an interrupt ends the command at once, and the kernels with it
            threads = [threading.Thread(target=work, args=[file], daemon=True) for file in files]
            for thread in threads:
                thread.start()
            try:
                for _ in jobs:
                    yield done.get()
            finally:
                waiting.clear()
            for thread in threads:
                thread.join()
            tempfile.tempdir = usual  # and not after a fault, when kernels may still be starting


def imports_from(root: Path) -> dict[str, str | None]:
    """The environment of processes that import the packages of a checkout, if it has them.

    They find its machine code where this process keeps it, and write their modules' beside these.
    """
    if not (root / "envprobe_core" / "__init__.py").exists():
        return {}
    places = filter(None, [str(root), str(root / "book"), os.environ.get("PYTHONPATH")])
    compiled = {} if (folder := cache_folder()) is None else {"NUMBA_CACHE_DIR": str(folder.parent)}
    return {"PYTHONPATH": os.pathsep.join(places), "PYTHONDONTWRITEBYTECODE": None, **compiled}


def run_one(job: Job, cell_timeout: float | None = None, *, again: bool = True) -> Outcome:
    """Execute one section, and put its result in place; a kernel that does not start is started once more."""
    if job.section.fault:
        return Outcome(job.section.name, 0.0, in_one_line(job.section.fault))
    import nbformat
    import papermill

    start, path, begun, error = time.monotonic(), job.section.path, list[Mapping[str, Any]](), None
    Kernel.own.job = job
    ledger = Kernel.own.ledger = Path(tempfile.gettempdir()) / f"ledger-{job.section.name}"
    ledger.unlink(missing_ok=True)  # of a kernel that did not start
    try:
        notebook = papermill.execute_notebook(
            nbformat.read(path, as_version=4),
            None,
            parameters=job.changed,
            kernel_name="python3",
            kernel_manager_class=Kernel,
            language="python",
            progress_bar=False,
            resources={"metadata": {"path": str(path.parent)}},  # the kernel's folder
            extra_arguments=KERNEL_ARGUMENTS,
            start_timeout=600,
            execution_timeout=cell_timeout,
            iopub_timeout=600,
            raise_on_iopub_timeout=True,
            coalesce_streams=True,
            on_cell_start=lambda cell, cell_index: begun.append(cell),
        )
        if notebook.metadata.papermill.exception:  # of an exit, which papermill takes for success
            raise SystemExit("the cells below this one did not run")
        begun.clear()  # from here on no cell is at fault
        keep(job, notebook, read_ledger(ledger))
    except BaseException as fault:
        if not begun and isinstance(fault, RuntimeError):
            if again:  # its port was taken meanwhile, perhaps
                return run_one(job, cell_timeout, again=False)
            Kernel.own.words.seek(0)
            fault = RuntimeError(f"{fault}; {Kernel.own.words.read()[-LONGEST:]}")
        error = describe_failure(job, fault, begun)
    return Outcome(job.section.name, time.monotonic() - start, error)


def retell(job: Job) -> Outcome:
    """Put a section's text as it is now around outputs that stand; the bytes are those of an execution."""
    import nbformat

    start, section = time.monotonic(), nbformat.read(job.section.path, as_version=4)
    stored = nbformat.read(job.output, as_version=4)
    rerun = stored.metadata[METADATA_KEY].get(RERUN)
    made = deque(cell for cell in stored.cells if cell.cell_type == "code")
    stored.cells = []
    for cell in section.cells:
        stored.cells.append(made.popleft() if cell.cell_type == "code" else cell)
        if cell.cell_type == "code" and made and "injected-parameters" in cell_tags(made[0]):
            stored.cells.append(made.popleft())
    keep(job, stored, rerun)
    return Outcome(job.section.name, time.monotonic() - start)


def keep(job: Job, notebook: NotebookNode, rerun: Mapping[str, Any] | None) -> None:
    """Put an executed notebook in place, with the list of what its engine ran (`reruns.read_ledger`)."""
    record = job.record | ({} if rerun is None else {RERUN: dict(rerun)})
    whole = clean(notebook, record, job.section.path.parent.parent)
    job.output.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(job.output) as partial:
        partial.write_text(as_json(whole), encoding="utf-8")


def describe_failure(job: Job, error: BaseException, begun: Sequence[Mapping[str, Any]]) -> str:
    """The lines that a reader sees for a section that failed; `begun` are its cells up to there."""
    from papermill.exceptions import PapermillExecutionError

    kind, text, place, shown = type(error).__name__, str(error), "failed outside its cells", []
    source = cell_source(begun[-1]) if begun else None
    if isinstance(error, PapermillExecutionError):  # else the kernel died, or was too slow
        kind, source = error.ename, error.source
        text = error.evalue or " ".join(str(output.get("text", "")) for output in begun[-1]["outputs"])
        # no frame is the cell's own where a result cannot be shown
        frames = _FRAME.findall(_COLOUR.sub("", "\n".join(error.traceback)))
        lines = [int(line) for at, line in frames if int(at) == error.exec_count]
        shown = [f"  > {at} | {line}" for at in lines[:1] for line in source.splitlines()[at - 1 : at]]
    elif isinstance(error, TimeoutError):
        text = "the cell takes longer than --cell-timeout allows"
    sources = [cell_source(cell) for cell in job.section.cells]
    if source in sources:
        place = f"cell {sources.index(source) + 1} of {len(sources)}"
    told = f"  {kind}: {in_one_line(_COLOUR.sub('', text))}"
    return "\n".join([f"{job.section.name}: {place}", *shown, told])


def without_compiling(output: NotebookNode) -> NotebookNode | None:
    """An output without the lines that say that the engine was compiled first; None where that was all."""
    said = (COMPILING, DAMAGED)
    if output.output_type == "stream" and any(line in output.text for line in said):
        lines = [line for line in output.text.splitlines(keepends=True) if not line.startswith(said)]
        output.text = "".join(lines)
        return output if lines else None
    return output


def clean(notebook: NotebookNode, record: dict[str, Any], root: Path) -> dict[str, Any]:
    """An executed notebook as JSON, without all that differs from run to run.

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
        if "outputs" in cell:
            cell.outputs = list(filter(None, map(without_compiling, cell.outputs)))
    whole = json.loads(_ADDRESS.sub("", nbformat.writes(notebook)).replace(f"{root}{os.sep}", ""))
    whole["metadata"][METADATA_KEY]["contents_sha256"] = json_sha256(whole)
    return whole
