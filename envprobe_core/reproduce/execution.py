"""Execution of sections by papermill, each in a kernel of its own, several at a time.

Every result is cleaned of what differs from run to run (times, ids, paths, widget models), so that
the same inputs give the same bytes, and is put in place in one step: a section that fails, or a
run that is killed, leaves what was there before.
"""

import contextlib
import json
import logging
import os
import re
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from envprobe_core.files import environment, replacing, working_folder
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

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_ARROW = re.compile(r"^-+> (\d+) ", re.MULTILINE)
_VIEW = "application/vnd.jupyter.widget-view+json"
_EXCERPT = 2


@dataclass(frozen=True)
class Outcome:
    """How one section went."""

    name: str  # the section's
    seconds: float  # wall-clock time
    error: str | None = None  # a block of lines that names the cell, shows it, and gives its error


def run(jobs: Sequence[Job], workers: int, cell_timeout: float | None = None) -> Iterator[Outcome]:
    """Execute sections, and tell of each as it ends; a cell may take `cell_timeout` seconds, or any time.

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

    from envprobe_core.reproduce.warm import forked_kernels

    logging.getLogger("papermill").setLevel(logging.CRITICAL)  # outcomes tell it all
    own = {} if any(job.changed for job in jobs) else {BOOK: "1"}
    style = jobs[0].section.path.parent / "matplotlibrc"
    with (
        tempfile.TemporaryDirectory(dir=working_folder(), ignore_cleanup_errors=True) as name,
        environment(**_kernel_environment(name, style, own)),
        forked_kernels(len(jobs)),
    ):
        folder = Path(name)

        def work() -> None:
            with contextlib.suppress(Empty):
                while True:
                    done.put(run_one(waiting.get_nowait(), folder, cell_timeout))
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
        clean(notebook, job.record, path.parent.parent)
        written = json.loads(nbformat.writes(notebook))
        notebook.metadata[METADATA_KEY]["contents_sha256"] = contents_sha256(written)
        job.output.parent.mkdir(parents=True, exist_ok=True)
        with replacing(job.output) as partial:
            partial.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    except BaseException as error:
        return Outcome(name, time.monotonic() - start, describe_failure(job, error, progress))
    return Outcome(name, time.monotonic() - start)


def describe_failure(job: Job, error: BaseException, progress: Path) -> str:
    """The lines that a reader sees for a section that failed; `progress`, how far it came, may be missing."""
    from papermill.exceptions import PapermillExecutionError

    kind, text = type(error).__name__, str(error)
    source, count, trace = None, None, ""
    if isinstance(error, PapermillExecutionError):
        kind, text = error.ename, error.evalue
        source, count, trace = error.source, error.exec_count, "\n".join(error.traceback)
    elif progress.exists():  # a kernel that dies leaves no error in its cell
        for cell in json.loads(progress.read_text(encoding="utf-8"))["cells"]:
            if cell["metadata"].get("papermill", {}).get("start_time"):
                source = cell_source(cell)
        if isinstance(error, TimeoutError):
            text = "the cell takes longer than --cell-timeout allows"
    fault = f"  {kind}: {_COLOUR.sub('', text)}"
    sources = [cell_source(cell) for cell in job.section.cells]
    if source not in sources:
        return f"{job.section.name}: failed outside its cells\n{fault}"
    where = f"cell {sources.index(source) + 1} of {len(sources)}"
    arrow = _ARROW.search(_COLOUR.sub("", trace))
    lines = source.splitlines()
    at = min(int(arrow[1]), len(lines)) if arrow else 0
    first = max(at - 1 - _EXCERPT, 0)
    shown = range(first, min(first + 2 * _EXCERPT + 1, len(lines)))
    return "\n".join(
        [
            f"{job.section.name}: {where}" + (f" (In [{count}])" if count else ""),
            *(f"  {'>' if i + 1 == at else ' '} {i + 1:3d} | {lines[i]}" for i in shown),
            fault,
        ]
    )


def clean(notebook: "NotebookNode", record: dict[str, Any], root: Path) -> None:
    """Take from an executed notebook, in place, all that differs from run to run.

    Args:
        notebook: as papermill leaves it.
        record: what the notebook is to say of its own making.
        root: the checkout, whose path is taken out of every text.
    """
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
            _clean_output(output, f"{root}{os.sep}")


def _clean_output(output: "NotebookNode", prefix: str) -> None:
    """Take widget models, addresses and the checkout's path out of one output."""
    data = output.get("data", {})
    data.pop(_VIEW, None)  # a model's random id; static pages show the output's other forms
    if "text/plain" in data:
        data["text/plain"] = re.sub(r" at 0x[0-9a-fA-F]+", "", data["text/plain"])
    for kind, text in data.items():
        if isinstance(text, str) and kind.startswith("text/"):
            data[kind] = text.replace(prefix, "")
    if "text" in output:
        output["text"] = output["text"].replace(prefix, "")


def _kernel_environment(profile: str, style: Path, more: dict[str, str]) -> dict[str, str | None]:
    """Return what kernels are started with, so that they inherit nothing that changes results."""
    places = dict.fromkeys(("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "TMPDIR"), profile)
    # a section that a notebook of a Jupyter server executes makes a page too
    return KERNEL_ENVIRONMENT | places | more | {"MATPLOTLIBRC": str(style), SERVED: None}
