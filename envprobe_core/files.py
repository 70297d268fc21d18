"""Files that are whole or not there, never written over somebody's own, in folders that one process holds.

What others wrote is read up to a limit: a pipe or a device has no end, and a packed file can hold anything.
"""

import errno
import gzip
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from functools import cache
from multiprocessing import util
from pathlib import Path
from typing import Any
from uuid import uuid4

from envprobe_core.errors import InputError

TEMPORARY = ".part"
OURS = re.compile(rf"\..+\.\d+{re.escape(TEMPORARY)}")  # what `atomic_write` calls what is not whole yet
WORK = "envprobe-work-"
LOCK = ".lock"
LARGEST = 2**28  # bytes of a file that is read at once, unpacked


def check_plain(path: Path) -> None:
    """Refuse with an OSError what cannot be read to its end: a folder, a pipe or a device."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no plain file", str(path))


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_whole(path: Path, *, packed: bool = False, most: int = LARGEST) -> bytes:
    """Read a file, with gzip where it is packed; an OSError refuses more bytes than `most`, unpacked."""
    check_plain(path)
    with gzip.open(path) if packed else path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EFBIG, f"it holds more than {most:,} bytes", str(path))
    return content


@contextmanager
def atomic_write(path: Path, *, new: bool = False) -> Iterator[Path]:
    """Give a name to write to, and put what was written in place at once when it is whole.

    Where another file has come meanwhile in place of a `new` one, both are kept, and an InputError says so.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    try:
        yield temporary
        if new and os.path.lexists(path):
            kept = path.with_name(f"{path.name}.{os.getpid()}")
            temporary.replace(kept)
            raise InputError(f"{path}: a file has come there meanwhile; it was left, and ours is {kept.name}")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Remove what writers that were killed left in a folder that this process holds."""
    if folder.is_symlink():
        return
    for stray in folder.glob(f".*{TEMPORARY}"):
        if OURS.fullmatch(stray.name) and not stray.is_dir():
            stray.unlink(missing_ok=True)


def refuse_existing(option: str, *paths: Path) -> None:
    """Refuse to write a file where there is one, or where there is no folder for it."""
    for path in paths:
        try:
            there = os.path.lexists(path)
            fault = (
                "it is there already; give another name, or remove it" if there else unwritable(path.parent)
            )
        except (OSError, ValueError) as error:  # a name that no file can have
            fault = str(error)
        if fault:
            raise InputError(f"{option} {path}: {fault}")


def unwritable(folder: Path) -> str:
    """Why no file can be made in a folder, which is made if need be; nothing where one can."""
    there = next(one for one in (folder, *folder.parents) if one.exists() or one.is_symlink())
    fits = there.is_dir() and os.access(there, os.W_OK)
    return "" if fits else f"{there} is not a folder that can be written to"


def copy_tree(source: Path, target: Path, *left_out: str) -> None:
    """Copy what is in a folder into another, links as links, files with their times.

    Permissions stay behind: a copy of a folder that cannot be written to can.

    Args:
        source: the folder.
        target: where its files go; made if it is not there.
        left_out: patterns of names that are left out, at every depth.
    """
    target.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        place, own = target / path.name, path.lstat()
        if any(fnmatch(path.name, pattern) for pattern in left_out):
            continue
        if path.is_symlink():
            place.symlink_to(path.readlink())
        elif path.is_dir():
            copy_tree(path, place, *left_out)
        else:
            shutil.copyfile(path, place)
            os.utime(place, ns=(own.st_atime_ns, own.st_mtime_ns))


def write_new(option: str, texts: Mapping[Path, str]) -> None:
    """Write texts to files that are not there yet, each in one step; else refuse as `refuse_existing`."""
    refuse_existing(option, *texts)
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path, new=True) as temporary:
                temporary.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{option} {error.filename}: {error.strerror}") from None


@contextmanager
def folder_lock(folder: Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold a folder, as one process can at a time; it lets go however it ends, and an empty `LOCK` stays.

    Where another process holds it, `waiting` is called before the wait; without it BlockingIOError is raised.
    """
    from filelock import FileLock, Timeout  # a tenth of a second, which most commands can do without

    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        if waiting is None:
            raise BlockingIOError(errno.EWOULDBLOCK, "another process holds it", str(folder)) from None
        waiting()
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def environment(**values: str | None) -> Iterator[None]:
    """Set variables of this process's environment for a while; None takes one away."""
    before = {name: os.environ.pop(name, None) for name in values}
    os.environ.update({name: value for name, value in values.items() if value is not None})
    try:
        yield
    finally:
        for name in before:
            os.environ.pop(name, None)
        os.environ.update({name: value for name, value in before.items() if value is not None})


@cache
def working_folder() -> Path:
    """Return this process's temporary folder, which goes when it ends; those of killed ones go now.

    The lock lies beside the folder, and is held before there is one.
    """
    from filelock import FileLock

    temporary = Path(tempfile.gettempdir())
    for left in temporary.glob(f"{WORK}*{LOCK}"):
        with suppress(OSError), FileLock(left, blocking=False):
            _clear(left)
    lock = FileLock(temporary / f"{WORK}{uuid4().hex}{LOCK}")
    lock.acquire()
    _held.append(lock)
    folder = Path(lock.lock_file).with_suffix("")
    folder.mkdir(mode=0o700)
    # after multiprocessing's own folder, which is inside
    util.Finalize(None, _clear, (Path(lock.lock_file),), exitpriority=-1000)
    return folder


def _clear(lock: Path) -> None:
    """Remove a temporary folder, and then its lock."""
    shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
    lock.unlink(missing_ok=True)


_held: list[Any] = []  # until this process ends
