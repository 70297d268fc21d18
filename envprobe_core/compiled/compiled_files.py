"""The folder of what was compiled: machine code, its text, WebAssembly, each a file that proves itself.

A file begins with the SHA-256 of its name and of what follows. One that was cut, emptied, altered or put
there under another's name does not fit its own, and is removed: what it held is made again, in every case.
"""

import contextlib
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import llvmlite
import numba

from envprobe_core.errors import DAMAGED

HOME = Path(__file__).parent
MARK = re.compile(rb"^@(helper|inline|kernel|summing)$", re.MULTILINE)
CORE = ("agents", "compiled", "engine", "policies", "worlds")
OURS = "envprobe-engine-"  # begins the name of every folder that is ours to sweep
DAY = 24 * 3600
PROOF = hashlib.sha256().digest_size  # bytes at the beginning of a file
VERSIONS = f"{numba.__version__} {llvmlite.__version__} {sys.implementation.cache_tag}"
"""Of those that write what is kept and read it; they enter the names of files."""


def sources(folder: str) -> list[Path]:
    """The files of a folder of the package whose text decides what is compiled."""
    files = sorted((HOME.parent / folder).glob("*.py"))
    return [path for path in files if folder == "worlds" or MARK.search(path.read_bytes())]


def edition_of(paths: list[Path]) -> str:
    """Condense the text of files."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()[:16]


SOURCES = [HOME / "numba_support.py", *HOME.parent.glob("released.py")]  # other packages have none
SOURCES += [path for folder in CORE for path in sources(folder)]
EDITION = edition_of(SOURCES)
"""Of the engine's text: Numba looks at a function's own file alone, not at those that it calls from."""


@cache
def cache_folder() -> Path | None:
    """The folder that holds what this edition compiles; None where nothing can be written.

    It lies in `NUMBA_CACHE_DIR` where that is set, else beside the engine, else in the user's cache. A folder
    in which another user can put code is passed over: what lies there is run.
    """
    name = f"{OURS}{EDITION}"
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "envprobe"
    told = [Path(given)] if (given := os.environ.get("NUMBA_CACHE_DIR")) else []
    for parent in (*told, HOME / "__pycache__", user):
        folder = parent / name
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            if not is_ours(folder):
                continue
            with tempfile.TemporaryFile(dir=folder):
                os.utime(folder)  # it is in use
            for other in parent.glob(f"{OURS}*"):  # unused for a day: before, another may be at work
                with contextlib.suppress(OSError):
                    if other != folder and time.time() - other.stat().st_mtime > DAY:
                        shutil.rmtree(other, ignore_errors=True)
            return folder
    return None


def is_ours(folder: Path) -> bool:
    """Whether no other user can put code into a folder: this user or the engine's owner alone writes there.

    >>> is_ours(HOME / "no such folder")
    False
    """
    try:
        found = folder.lstat()
    except OSError:
        return False
    owners = {os.getuid(), HOME.stat().st_uid}
    writable = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(found.st_mode) and found.st_uid in owners and not writable


def folder_of(function: Callable[..., Any]) -> Path | None:
    """The folder of what a function is compiled to; None where nothing can be written."""
    folder, home = cache_folder(), Path(function.__code__.co_filename).parent
    if folder is not None and home.name not in CORE:  # an edit of it leaves the engine as it is
        folder = folder / edition_of(sources(os.path.relpath(home, HOME.parent)))
        folder.mkdir(exist_ok=True)
    return folder


def name_of(what: str, made_of: object, ending: str) -> str:
    """A file's name, which says of what it was made: anything else has another.

    >>> name_of("run", "int64", ".nbc") == name_of("run", "float64", ".nbc")
    False
    """
    return f"{what}-{hashlib.sha256(f'{VERSIONS} {made_of}'.encode()).hexdigest()[:24]}{ending}"


def proof_of(path: Path, content: bytes) -> bytes:
    """What a file of this name and content begins with."""
    return hashlib.sha256(path.name.encode() + b"\0" + content).digest()


def keep(path: Path, content: bytes) -> None:
    """Write a file with its proof, at once or not at all, since several processes may write it."""
    part = path.with_name(f".{path.name}.{uuid4().hex}")
    with contextlib.suppress(OSError):  # a full disk, or a folder that is gone: it is made again next time
        part.write_bytes(proof_of(path, content) + content)
        part.replace(path)


def kept(path: Path) -> bytes | None:
    """The content of a file that proves itself; None where there is none. One that does not is removed."""
    try:
        whole = path.read_bytes()
    except OSError:
        return None
    content = whole[PROOF:]
    if whole[:PROOF] == proof_of(path, content):
        return content
    with contextlib.suppress(OSError):
        path.unlink()
    _say_once()
    return None


@cache
def _say_once() -> None:
    print(f"{DAMAGED}such files are removed and made again", file=sys.stderr, flush=True)


def remove_damaged(folder: Path) -> int:
    """How many files of a folder did not prove themselves, and were removed."""
    files = [path for path in folder.rglob("[!.]*") if path.is_file()]  # others are being written
    return sum(kept(path) is None for path in files)
