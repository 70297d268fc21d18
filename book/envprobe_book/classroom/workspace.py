"""The folder in which JupyterLab opens: START, the exercises, copies of the notebooks and of some pages.

What a reader has changed there is never written over.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from envprobe_book.classroom.exercises import EXERCISES, linked, student_copy
from envprobe_book.reproduce.sections import as_json, cell_source, cell_tags, read_section
from envprobe_core.errors import InputError
from envprobe_core.files import atomic_write, read_whole, unwritable
from envprobe_core.sources import ROOT

START, SECTIONS, PAGES = "START.ipynb", "sections", "pages"
READ = ("how-to-read", "definitions")  # pages of the book that JupyterLab can show
FOLDED = {  # what JupyterLab calls a fold -> the tags by which the book folds
    "source_hidden": {"hide-input", "hide-cell", "remove-input", "remove-cell"},
    "outputs_hidden": {"hide-output", "hide-cell", "remove-output", "remove-cell"},
}
CONFIG = ".jupyter"  # on JUPYTER_CONFIG_PATH while the lab runs
RECORD = ".laid-out.json"  # file -> SHA-256 of what was put there
SETTINGS = {  # defaults of JupyterLab; a reader's own settings go before them
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/docmanager-extension:plugin": {"defaultViewers": {"markdown": "Markdown Preview"}},
}


def lay_out(folder: Path) -> list[str]:
    """Put START, exercises without solutions, notebooks and pages into a folder, made if it is not there.

    Returns:
        The files that were left as their reader has changed them.

    Raises:
        InputError: if the folder is a file or holds other things, or a notebook is malformed.
    """
    record = folder / RECORD
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out {folder}: a file stands there; give a folder")
    if folder.is_dir() and any(folder.iterdir()) and not record.is_file():
        raise InputError(f"--out {folder}: the folder holds other files; give a new one")
    if fault := unwritable(folder):
        raise InputError(f"--out {folder}: {fault}; give another")
    known: dict[str, str] = {}
    with suppress(ValueError, TypeError, RecursionError):  # a damaged record tells nothing
        known = dict(json.loads(_read(record)))
    kept = []
    for name, text in list(_files()):  # read before any is written
        path, digest = folder / name, _digest(text)
        if os.path.lexists(path) and _digest(_read(path)) not in (known.get(name), digest):
            kept.append(name)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as whole:
            whole.write_text(text, encoding="utf-8")
        known[name] = digest
    with atomic_write(record) as whole:
        whole.write_text(json.dumps(known, indent=1, sort_keys=True), encoding="utf-8")
    return kept


def _read(path: Path) -> str:
    """A file's text; nothing where it is no text that can be read."""
    with suppress(OSError, ValueError):
        return read_whole(path).decode()
    return ""


def _digest(text: str) -> str:
    """The hash of a file, of a notebook without what JupyterLab adds when it is opened and saved."""
    with suppress(ValueError, KeyError, TypeError, RecursionError):  # no notebook: all of it counts
        cells = json.loads(text)["cells"]
        text = json.dumps([(one["cell_type"], cell_source(one), one.get("outputs")) for one in cells])
    return hashlib.sha256(text.encode()).hexdigest()


def fold(cell: dict[str, Any]) -> None:
    """Let JupyterLab fold of a cell what the book folds or leaves out, but for parameters.

    These stand at the foot of a page; a notebook has no foot, and they are there to be changed.

    >>> cell = {"cell_type": "code", "metadata": {"tags": ["hide-input"]}}
    >>> fold(cell)
    >>> cell["metadata"]["jupyter"]
    {'source_hidden': True}
    """
    tags = set(cell_tags(cell))
    if cell["cell_type"] != "code" or "parameters" in tags:
        return
    hidden = {name: True for name, folding in FOLDED.items() if tags & folding}
    if hidden:
        cell["metadata"]["jupyter"] = cell["metadata"].get("jupyter", {}) | hidden


def _files() -> Iterator[tuple[str, str]]:
    """Yield every file of the folder with its text; links lead to where the folder has their targets."""
    paths = [*sorted((ROOT / "notebooks").glob("*.ipynb")), ROOT / "notebooks" / "workspace" / START]
    books = {path.stem: read_section(path).notebook for path in paths}
    books[EXERCISES] = student_copy()
    places = {name: f"{SECTIONS}/{name}.ipynb" for name in books}
    places |= {name: f"{name}.ipynb" for name in (EXERCISES, Path(START).stem)}
    places |= {name: f"{PAGES}/{name}.md" for name in READ}

    for name, book in books.items():
        for cell in book["cells"]:
            fold(cell)
            if cell["cell_type"] == "markdown":
                cell["source"] = linked(cell_source(cell), places[name], places)
        yield places[name], as_json(book)
    for name in READ:
        text = (ROOT / "book" / f"{name}.md").read_text(encoding="utf-8")
        yield places[name], linked(text, places[name], places)
    yield f"{CONFIG}/labconfig/default_setting_overrides.json", json.dumps(SETTINGS, indent=1) + "\n"
