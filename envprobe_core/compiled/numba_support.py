"""How the engine's functions are compiled: once a world, kept on disk, chosen by the world where they differ.

With NUMBA_DISABLE_JIT=1 everything below is plain Python: the same bits, and a debugger can step through it.
"""

import contextlib
import gzip
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numba import config, from_dtype, njit, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.serialize import dumps
from numba.extending import overload

from envprobe_core.compiled.compiled_files import (
    EDITION,
    SOURCES,
    cache_folder,
    edition_of,
    folder_of,
    keep,
    kept,
    name_of,
)
from envprobe_core.errors import COMPILING

INTERPRETED = bool(config.DISABLE_JIT)
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


def summing(function: Callable[..., Any]) -> Any:
    """As `inline`, of one that adds up whole numbers: their sum is the same in any order, several at once."""
    order = {"reassoc", "nsz", "contract"}
    return _widened(njit(**INNER, forceinline=True, fastmath=order)(function))


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


class OnDisk:
    """The machine code of a function that Python calls, a file for each kind of arguments.

    It stands for Numba's own cache, which believes what it reads and keeps an index that two processes may
    write at once.
    """

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        """Look for the code of a function in a folder."""
        self._function, self._folder, self._name = function, folder, function.__name__
        self._of = f"{function.__module__} {function.__qualname__} {function.__code__.co_code.hex()}"

    @property
    def cache_path(self) -> str:
        """The folder."""
        return str(self._folder)

    def _file(self, signature: Any, codegen: Any) -> Path:
        made_of = f"{self._of} {signature} {codegen.magic_tuple()}"
        return self._folder / name_of(self._name, made_of, ".nbc")

    def load_overload(self, signature: Any, context: Any) -> Any:
        """What was compiled for arguments of these types; None where it is not there."""
        context.refresh()
        content = kept(self._file(signature, context.codegen()))
        return None if content is None else CompileResult._rebuild(context, *pickle.loads(content))

    def save_overload(self, signature: Any, made: Any) -> None:
        """Keep what was compiled, and of a function that pages run its text, for `engine.wasm`."""
        edited = edition_of(SOURCES) != EDITION or folder_of(self._function) != self._folder
        if edited or made.library.has_dynamic_globals:  # no process but this one can use it
            return
        keep(self._file(signature, made.codegen), dumps(made._reduce()))
        if is_for_pages(self._function):
            keep(self._folder / text_name(self._name, signature), gzip.compress(text_of(made).encode(), 1))


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, when it first does, and keep it on disk."""
    if INTERPRETED:
        return np.errstate(over="ignore")(function)  # a hash runs over on purpose
    readable = {"pipeline_class": ReadableCompiler} if is_for_pages(function) else {}
    made = njit(**UNCHECKED, **readable)(function)
    if (folder := folder_of(function)) is not None:
        made._cache = OnDisk(function, folder)
    return made


def for_pages(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function whose text is kept when it is compiled, so that pages can run it (`engine.wasm`)."""
    function.for_pages = True  # type: ignore[attr-defined]
    return function


def is_for_pages(function: Callable[..., Any]) -> bool:
    """Whether a function is marked so, and this Numba shows its text."""
    return KNOWN and getattr(function, "for_pages", False)


def text_name(function: str, signature: Any) -> str:
    """The name of the file that holds the text of a function for arguments of these types."""
    return name_of(function, tuple(signature), ".ll.gz")


def text_of(made: Any) -> str:
    """The text that a compilation has left: the function's LLVM name as a comment, and the module."""
    text, made.library.text = made.library.text, ""
    return f"; {made.fndesc.llvm_func_name}\n{text}"


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


_announced: set[str] = set()


@contextlib.contextmanager
def announced(what: str, seconds: int = ABOUT_SECONDS) -> Iterator[None]:
    """Say in a line that something is compiled, and about how long it takes, where it was not before."""
    folder = cache_folder()
    notes = [] if folder is None else [folder / f"{what}.compiled"]
    if INTERPRETED or what in _announced or any(kept(note) is not None for note in notes):
        yield
        return
    _announced.add(what)
    line = f"{COMPILING}{what}, once; about {seconds} seconds"
    print(line, file=sys.stderr, flush=True)
    yield
    for note in notes:
        keep(note, b"")
