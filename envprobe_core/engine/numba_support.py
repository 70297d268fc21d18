"""How the engine's functions are compiled: once a world, kept on disk, chosen by the world where they differ.

With NUMBA_DISABLE_JIT=1 everything below is plain Python: the same bits, and a debugger can step through it.
"""

import contextlib
import fcntl
import gzip
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import llvmlite
import numba
import numpy as np
from numba import config, from_dtype, njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.extending import overload

from envprobe_core.errors import COMPILING

HOME = Path(__file__).parent
MARK = re.compile(rb"^@(helper|inline|kernel)$", re.MULTILINE)
CORE = ("agents", "engine", "policies", "worlds")


def sources(folder: str) -> list[Path]:
    """The files of a folder of the package whose text decides what is compiled."""
    files = sorted((HOME.parent / folder).glob("*.py"))
    return [path for path in files if folder == "worlds" or MARK.search(path.read_bytes())]


def edition_of(paths: list[Path]) -> str:
    """Condense the text of files."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()[:16]


SOURCES = [path for folder in CORE for path in sources(folder)]
EDITION = edition_of([Path(__file__), *SOURCES])
"""Of the engine's text: Numba looks at a function's own file alone, not at those that it calls from."""
OURS = "envprobe-engine-"  # begins the name of every folder that is ours to sweep
INTERPRETED = bool(config.DISABLE_JIT)
DAY = 24 * 3600
ABOUT_SECONDS = 15  # to compile a world, on a machine of today


NOT_PUBLIC = (
    "_optimize_final_module",
    "_finalize_final_module",
    "_finalize_dynamic_globals",
    "_ensure_finalized",
)
"""Of Numba's libraries of code: what the two classes below override or call."""
KNOWN = all(hasattr(JITCodeLibrary, name) for name in NOT_PUBLIC)
"""Whether this Numba has them. Without them each function is compiled by itself too, which takes twice as
long, and pages have no engine; pyproject.toml bounds Numba's release from above."""


class Part(JITCodeLibrary):
    """The code of a function that others call: it is optimised within theirs, and machine code only there.

    Numba would make each of them machine code by itself too, which takes half of the time.
    """

    codegen = property(lambda self: self)  # what is told of an environment, of which there is none

    def _optimize_final_module(self) -> None:
        """Leave it as it is."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """That Python cannot call it."""
        self._ensure_finalized()
        return 0

    def set_env(self, name: str, environment: Any) -> None:
        """Need none: machine code from the disk has none either."""


class PartCompiler(Compiler):
    """Compiles a function to a part of others."""

    def define_pipelines(self) -> Any:
        """Give the pipeline its library before it makes one."""
        self.state.library = Part(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        return super().define_pipelines()


class Readable(JITCodeLibrary):
    """The code of a function that other machines run too.

    Attributes:
        text: the LLVM text of all of it, before it is optimised for this machine.
    """

    text = ""

    def _optimize_final_module(self) -> None:
        self.text = str(self._final_module)
        super()._optimize_final_module()


class ReadableCompiler(Compiler):
    """Compiles a function to machine code and keeps its text."""

    def define_pipelines(self) -> Any:
        """Give the pipeline its library before it makes one."""
        self.state.library = Readable(self.state.targetctx.codegen(), self.state.func_id.func_qualname)
        self.state.library.enable_object_caching()
        return super().define_pipelines()


UNCHECKED = {"error_model": "numpy"}  # no division looks for a zero, which no rule of ours divides by
INNER: dict[str, Any] = UNCHECKED | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
if KNOWN:
    INNER["pipeline_class"] = PartCompiler


def inline(function: Callable[..., Any]) -> Any:
    """Compile a function that only other compiled functions call; it becomes part of them."""
    return _widened(njit(**INNER, forceinline=True)(function))


def helper(function: Callable[..., Any]) -> Any:
    """Compile one that is called seldom; it stays a function of its own, as what grows compiles slowly."""
    return _widened(njit(**INNER)(function))


def _widened(function: Any) -> Any:
    """Let a function take every signed whole number as int64: Numba would compile it for each width."""

    def wide(kind: Any) -> Any:
        kind = types.unliteral(kind)
        return types.int64 if isinstance(kind, types.Integer) and kind.signed else kind

    if not INTERPRETED:
        resolve = function.get_call_template
        function.get_call_template = lambda kinds, named: resolve(tuple(map(wide, kinds)), named)
    return function


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, when it first does, and keep it on disk."""
    if INTERPRETED:
        return np.errstate(over="ignore")(function)  # a hash runs over on purpose
    readable = KNOWN and getattr(function, "for_pages", False)
    how = UNCHECKED | ({"pipeline_class": ReadableCompiler} if readable else {})
    if (folder := folder_of(function)) is None:
        return njit(**how)(function)
    before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        kept = njit(**how, cache=True)(function)
    finally:
        config.CACHE_DIR = before
    file = kept._cache._cache_file
    # Numba would number its files, so that two processes that write at once give two codes one name
    file._data_name = lambda number: f"{function.__name__}-{uuid4().hex}.nbc"
    save = file.save

    def save_alone(signature: Any, code: Any) -> None:
        """Add a code to the index on disk, which another process may be about to do."""
        with (folder / "lock").open("w") as lock:
            with contextlib.suppress(OSError):  # some shared disks know no locks
                fcntl.flock(lock, fcntl.LOCK_EX)
            save(signature, code)

    file.save = save_alone
    if readable:
        save_code = kept._cache.save_overload

        def save_text_too(signature: Any, made: Any) -> None:
            """Keep the text beside the machine code, for `engine.wasm`."""
            save_code(signature, made)
            with contextlib.suppress(OSError):
                keep(folder / text_name(function, signature), gzip.compress(text_of(made).encode(), 1))

        kept._cache.save_overload = save_text_too
    return kept


def folder_of(function: Callable[..., Any]) -> Path | None:
    """The folder of a function's machine code; None where nothing can be written."""
    folder, home = cache_folder(), Path(function.__code__.co_filename).parent
    if folder is not None and home.name not in CORE:  # an edit of it leaves the engine as it is
        folder = folder / edition_of(sources(os.path.relpath(home, HOME.parent)))
        folder.mkdir(exist_ok=True)
    return folder


def for_pages(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function whose text is kept when it is compiled, so that pages can run it (`engine.wasm`)."""
    function.for_pages = True  # type: ignore[attr-defined]
    return function


VERSIONS = f"{numba.__version__} {llvmlite.__version__}"
"""Of those that make the text and read it."""


def text_name(function: Callable[..., Any], signature: Any) -> str:
    """The name of the file that holds the text of a function for arguments of these types."""
    kinds = f"{VERSIONS} {tuple(signature)}"
    return f"{function.__name__}-{hashlib.sha256(kinds.encode()).hexdigest()[:16]}.ll.gz"


def text_of(made: Any) -> str:
    """The text that a compilation has left: the function's LLVM name as a comment, and the module."""
    text, made.library.text = made.library.text, ""
    return f"; {made.fndesc.llvm_func_name}\n{text}"


def keep(path: Path, content: bytes) -> None:
    """Write a file of the cache, at once or not at all: several processes may write it."""
    part = path.with_name(f".{path.name}.{uuid4().hex}")
    part.write_bytes(content)
    part.replace(path)


class ByWorld:
    """A function for each world, joined to one that looks at the type of its first argument, the world.

    Attributes:
        function: what is called, by Python and by compiled functions.
    """

    def __init__(self) -> None:
        """Begin without a world."""
        functions: dict[Any, Callable[..., Any]] = {}
        typed: dict[Any, Callable[..., Any]] = {}
        self._functions, self._typed = functions, typed

        def function(world: Any, *arguments: Any) -> Any:
            return functions[world.dtype](world, *arguments)

        @overload(function, strict=False, jit_options=INNER | {"forceinline": True})
        def choose(world: Any, *arguments: Any) -> Any:
            chosen = typed[world]
            return getattr(chosen, "py_func", chosen)

        self.function = function

    def add(self, kind: np.dtype, function: Callable[..., Any]) -> None:
        """Add the function of a world, by the dtype of its record of rules."""
        self._functions[kind], self._typed[from_dtype(kind)] = function, function


@cache
def cache_folder() -> Path | None:
    """The folder that holds this edition's machine code; None where nothing can be written at all.

    It lies in `NUMBA_CACHE_DIR` where that is set, else beside the engine. Where that cannot be written, it
    lies in the user's cache or among temporary files, and begins as a copy of what lies beside the engine. A
    folder in which another user can put code is passed over: what lies there is run.
    """
    name = f"{OURS}{EDITION}"
    beside = HOME / "__pycache__" / name
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "envprobe" / name
    temporary = Path(tempfile.gettempdir()) / f"envprobe-{os.getuid()}" / name
    asked = [Path(os.environ["NUMBA_CACHE_DIR"]) / name] if os.environ.get("NUMBA_CACHE_DIR") else []
    for folder in (*asked, beside, user, temporary):
        with contextlib.suppress(OSError):
            for part in (folder.parent, folder):
                part.mkdir(mode=0o700 if folder == temporary else 0o755, parents=True, exist_ok=True)
            if not is_ours(folder) or (folder == temporary and not is_ours(folder.parent)):
                continue
            with tempfile.TemporaryFile(dir=folder):
                os.utime(folder)  # it is in use
            if folder != beside and is_ours(beside) and not any(folder.iterdir()):
                with contextlib.suppress(OSError):
                    shutil.copytree(beside, folder, dirs_exist_ok=True)
            for other in folder.parent.glob(f"{OURS}*"):  # unused for a day: before, another may be at work
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


_announced: set[str] = set()


@contextlib.contextmanager
def announced(what: str, seconds: int = ABOUT_SECONDS) -> Iterator[None]:
    """Say in a line that something is compiled, and about how long it takes, where it was not before."""
    folder = cache_folder()
    notes = [] if folder is None else [folder / f"{what}.compiled"]
    if INTERPRETED or what in _announced or any(note.exists() for note in notes):
        yield
        return
    _announced.add(what)
    line = f"{COMPILING}{what}, once; about {seconds} seconds"
    print(line, file=sys.stderr, flush=True)
    yield
    for note in notes:
        with contextlib.suppress(OSError):
            note.touch()
