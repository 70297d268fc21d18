"""The desk: a folder of one's own in which JupyterLab opens, with copies of the notebooks and of the pages.

What a reader has changed there is never written over.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from envprobe_core.errors import InputError
from envprobe_core.files import read_whole, replacing
from envprobe_core.lab.exercises import LINK, NAME, page_titles, student_copy
from envprobe_core.reproduce.sections import cell_source
from envprobe_core.sources import ROOT

START, SECTIONS, PAGES = "START.ipynb", "sections", "pages"
READ = ("how-to-read", "definitions")  # pages of the book that JupyterLab can show
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
        InputError: if the folder is a file, or holds other things than a desk.
    """
    record = folder / RECORD
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--out {folder}: a file stands there; give a folder")
    if folder.is_dir() and any(folder.iterdir()) and not record.is_file():
        raise InputError(f"--out {folder}: the folder holds other files; give a new one")
    folder.mkdir(parents=True, exist_ok=True)
    known: dict[str, str] = {}
    with suppress(ValueError, TypeError, RecursionError):  # a damaged record tells nothing
        known = dict(json.loads(_read(record) or "{}"))
    kept = []
    for name, text in _files():
        path, digest = folder / name, _digest(text)
        if os.path.lexists(path) and _digest(_read(path)) not in (known.get(name), digest):
            kept.append(name)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial_file:
            partial_file.write_text(text, encoding="utf-8")
        known[name] = digest
    with replacing(record) as partial_file:
        partial_file.write_text(json.dumps(known, indent=1, sort_keys=True), encoding="utf-8")
    return kept


def _read(path: Path) -> str:
    """Return a file's text; nothing where it is no text that can be read."""
    with suppress(OSError, ValueError):
        return read_whole(path).decode()
    return ""


def _digest(text: str) -> str:
    """Return the hash of a file, of a notebook without what JupyterLab adds when it is opened and saved."""
    with suppress(ValueError, KeyError, TypeError, RecursionError):  # no notebook: all of it counts
        cells = json.loads(text)["cells"]
        text = json.dumps([(one["cell_type"], cell_source(one), one.get("outputs")) for one in cells])
    return hashlib.sha256(text.encode()).hexdigest()


def _files() -> Iterator[tuple[str, str]]:
    """Yield every file of the desk with its text; links lead to where the desk has their targets."""
    paths = [*sorted((ROOT / "notebooks").glob("*.ipynb")), ROOT / "notebooks" / "desk" / START]
    books = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    books[NAME], titles = student_copy(books[NAME]), page_titles()
    places = {name: f"{SECTIONS}/{name}.ipynb" for name in books}
    places |= {name: f"{name}.ipynb" for name in (NAME, Path(START).stem)}
    places |= {name: f"{PAGES}/{name}.md" for name in READ}

    def linked(text: str, place: str) -> str:
        def link(match: re.Match[str]) -> str:
            words, target = match[1] or titles[match[2]], places.get(match[2])
            return f"[{words}]({os.path.relpath(target, os.path.dirname(place))})" if target else words

        return LINK.sub(link, text)

    for name, book in books.items():
        for cell in book["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = linked(cell_source(cell), places[name])
        yield places[name], json.dumps(book, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
    for name in READ:
        text = (ROOT / "book" / f"{name}.md").read_text(encoding="utf-8")
        yield places[name], linked(text, places[name])
    yield f"{CONFIG}/labconfig/default_setting_overrides.json", json.dumps(SETTINGS, indent=1) + "\n"
