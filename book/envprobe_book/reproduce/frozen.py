"""The checkout's text as it is at one moment, which sections are hashed from and executed from.

A kernel reads modules, data and the lock for as long as it runs, and so do processes that it starts. They
read a copy: whoever edits a file meanwhile changes nothing that runs, and a result carries the digests of the
text that made it. Whether it is fresh is asked of the checkout, later.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from envprobe_book.reproduce import STARTED
from envprobe_core.errors import StoppedError
from envprobe_core.files import copy_tree, working_folder
from envprobe_core.sources import ROOT

FOLDERS = ("envprobe_core", "book/envprobe_book", "book/assets", "data", "notebooks")
LOCK = "requirements.txt"
LEFT_OUT = ("__pycache__", ".ipynb_checkpoints")


@contextmanager
def frozen(root: Path = ROOT) -> Iterator[Path]:
    """A copy of what sections are made of, laid out as the checkout; it goes with the block.

    Raises:
        StoppedError: if a module of ours was edited since this process began, for it may have loaded either.
    """
    with tempfile.TemporaryDirectory(dir=working_folder(), ignore_cleanup_errors=True) as folder:
        copy = Path(folder, "checkout")
        for name in FOLDERS:
            if (root / name).exists():
                copy_tree(root / name, copy / name, *LEFT_OUT)
        shutil.copyfile(root / LOCK, copy / LOCK)
        if root == ROOT and (edited := edited_since(copy, STARTED)):
            raise StoppedError(f"{edited} was edited while this command began; give it again")
        yield copy


def edited_since(folder: Path, moment: float) -> Path | None:
    """A module in a folder that was written after a moment, in seconds since 1970; None if there is none."""
    modules = (path.relative_to(folder) for path in folder.rglob("*.py") if path.stat().st_mtime >= moment)
    return next(modules, None)
