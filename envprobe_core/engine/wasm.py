"""The engine for a page: the functions that Numba compiles for this machine, as WebAssembly; no linker.

LLVM makes both from one text (`numba_support.Readable`), and llvmlite, which Numba needs anyhow, brings
LLVM's WebAssembly target. LLVM's object file of one function is a module but for its export: data lie at
address 0 on, calls within the module are resolved, and memory, stack pointer and table are imports that the
page gives.
"""

import gzip
import hashlib
import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba import njit, typeof

from envprobe_core.compiled import compiled_files, numba_support, records
from envprobe_core.conditions import make_condition
from envprobe_core.engine import batch, kernel
from envprobe_core.policies.custom import NOBODY
from envprobe_core.worlds import WORLDS

EXPORT = "run"
TRIPLE = "wasm32-unknown-unknown"
FEATURES = "+bulk-memory,+mutable-globals,+sign-ext,+nontrapping-fptoint"  # all browsers have them since 2021
REFERENCES = ("NRT_incref", "NRT_decref")  # Numba's counters of arrays that it made; the engine makes none
MESSAGES = (  # of Python's exceptions: no page can read them, and they name types by a process's own numbers
    (
        r'^(@"?\.const\.(?:missing|pickledata)[^\n]* = internal constant )\[\d+ x i8\] c"[^"]*"',
        r'\1[1 x i8] c"\\00"',
    ),
    (r"^(@\.const\.picklebuf[^\n]*, i32 )\d+(?=, ptr @\.const\.pickledata)", r"\g<1>1"),
)
ABOUT_SECONDS = 4  # to make a module, on a machine of today
MAGIC = b"\0asm\1\0\0\0"
CUSTOM, EXPORTS, START, LINKING = 0, 7, 8, b"linking"  # sections by number; the last by its name
SYMBOLS, FUNCTION, DATA, SECTION, GLOBAL, EVENT, TABLE = 8, 0, 1, 3, 2, 4, 5
UNDEFINED, NAMED = 0x10, 0x40  # flags of a symbol


def module_of(world: str) -> bytes | None:
    r"""The WebAssembly module of a world; None, and one line that says why, where none can be made.

    It is kept beside the machine code, made anew whenever a source of the engine, this file, Numba or
    llvmlite changes. It exports `run`, which takes what `kernel.run` takes as Numba passes it on.

    >>> module_of("tooldag")[:4]
    b'\x00asm'
    """
    return module_for(world, f"pages of {WORLDS[world]}", kernel.run, lambda: signature_of(world))


def module_for(name: str, what: str, function: Any, signature: Callable[[], tuple[Any, ...]]) -> bytes | None:
    """The module of a function that is marked `for_pages`, for arguments of types that are asked for late."""
    folder = compiled_files.folder_of(inspect.unwrap(getattr(function, "py_func", function)))
    name = compiled_files.name_of(name, hashlib.sha256(Path(__file__).read_bytes()).hexdigest(), ".wasm")
    if folder is not None and (module := compiled_files.kept(folder / name)) is not None:
        return module
    if numba_support.INTERPRETED or not numba_support.KNOWN:
        say_none("Numba does not show its text here")
        return None
    try:
        with numba_support.announced(what, ABOUT_SECONDS):
            module = webassembly(*text_for(function, signature()))
    except (RuntimeError, LookupError) as error:  # llvmlite without the target, or with another object file
        say_none(str(error).splitlines()[0])
        return None
    if folder is not None:
        compiled_files.keep(folder / name, module)
    return module


def say_none(why: str) -> None:
    """Say in a line that there are no modules, and why."""
    print(f"envprobe: pages have no engine and keep their still figures: {why}", file=sys.stderr, flush=True)


def signature_of(world: str) -> tuple[Any, ...]:
    """The types of `kernel.run`'s arguments in a world, as Numba knows them."""
    numbers = np.zeros(1, np.int64)
    arguments = (
        kernel.WHOLE,
        batch.kernel_params(make_condition(world, "simple")),
        records.new(batch.episode_dtype(world), 1),
        numbers,
        batch.NO_LOGS,
        batch.NO_SCHEDULE,
        numbers,
        batch.NO_MEASURES,
        NOBODY,
    )
    return tuple(map(typeof, arguments))


def text_for(function: Any, signature: tuple[Any, ...]) -> tuple[str, str]:
    """The LLVM name of a function for arguments of these types, and the text of its module.

    The text was kept when the machine code was made. Where it was not, as beside the code of another process
    that could not write, the function is compiled once more.
    """
    folder = compiled_files.folder_of(function.py_func)
    path = (folder or Path()) / numba_support.text_name(function.py_func.__name__, signature)
    packed = None if folder is None else compiled_files.kept(path)
    if packed is not None:
        whole = gzip.decompress(packed).decode()
    else:
        how = numba_support.UNCHECKED | {"pipeline_class": numba_support.ReadableCompiler}
        again = njit(**how)(function.py_func)
        again.compile(signature)
        (made,) = again.overloads.values()
        whole = numba_support.text_of(made)
        if folder is not None:
            compiled_files.keep(path, gzip.compress(whole.encode(), 1))
    named, text = whole.split("\n", 1)
    return named.removeprefix("; "), text


def webassembly(name: str, text: str) -> bytes:
    """The module that exports one function of an LLVM text as `run`.

    Raises:
        RuntimeError: where this llvmlite has no WebAssembly target.
        LookupError: where LLVM's object file does not name the function.
    """
    for function in REFERENCES:  # they hold instructions of x86
        empty = rf"define linkonce_odr void @{function}(ptr %p) {{\n  ret void\n}}\n"
        whole = rf"^define [^\n]*@{function}\(.*?^}}\n"
        text = re.sub(whole, empty, text, count=1, flags=re.M | re.S)
    for wordy, empty in MESSAGES:
        text = re.sub(wordy, empty, text, flags=re.M)
    text = re.sub(r"^(@.* = )common ", r"\1internal ", text, flags=re.M)  # WebAssembly knows none
    text = re.sub(r'^target (datalayout|triple) = ".*"\n', "", text, flags=re.M)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(TRIPLE)
    machine = target.create_target_machine(opt=3, features=FEATURES, reloc="static", codemodel="default")
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = TRIPLE, str(machine.target_data)
    for function in module.functions:
        if function.name == name:
            function.name = EXPORT
        elif not function.is_declaration:
            function.linkage = "internal"
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return with_export(machine.emit_object(module), EXPORT)


# the binary format: webassembly.github.io/spec/core/binary, and for symbols
# github.com/WebAssembly/tool-conventions/blob/main/Linking.md


def number(value: int) -> bytes:
    r"""A whole number as the format writes it: seven bits a byte, the lowest first (LEB128).

    >>> number(5), number(300)
    (b'\x05', b'\xac\x02')
    """
    out = b""
    while True:
        value, low = value >> 7, value & 127
        out += bytes([low | (128 if value else 0)])
        if not value:
            return out


def read_number(data: bytes, at: int) -> tuple[int, int]:
    r"""The number at a place, and the place after it.

    >>> read_number(b'\xac\x02', 0)
    (300, 2)
    """
    value = shift = 0
    while True:
        byte = data[at]
        value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
        if not byte & 128:
            return value, at


def with_export(data: bytes, name: str) -> bytes:
    """A module that exports the function of a name, without the sections that only a linker reads."""
    at, parts = len(MAGIC), []
    while at < len(data):
        kind = data[at]
        size, start = read_number(data, at + 1)
        parts.append((kind, data[start : start + size]))
        at = start + size
    linking = (content for kind, content in parts if kind == CUSTOM and content[1:8] == LINKING)
    index = function_index(next(linking, b""), name)
    export = number(1) + number(len(name)) + name.encode() + bytes([FUNCTION]) + number(index)
    out, done = data[: len(MAGIC)], False
    for kind, content in parts:
        if kind == CUSTOM:
            continue
        if not done and kind >= START:  # exports come before start, elements, code and data
            out += bytes([EXPORTS]) + number(len(export)) + export
            done = True
        out += bytes([kind]) + number(len(content)) + content
    return out


def function_index(content: bytes, name: str) -> int:
    """The number of the function of a name, from the custom section `linking`.

    Raises:
        LookupError: if it is not there.
    """
    at = len(LINKING) + 2  # the section's name and its length, then the version
    while at < len(content):
        kind = content[at]
        size, at = read_number(content, at + 1)
        if kind == SYMBOLS:
            count, here = read_number(content, at)
            for _ in range(count):
                what, index, label, here = read_symbol(content, here)
                if what == FUNCTION and label == name:
                    return index
        at += size
    raise LookupError(f"LLVM's object file does not name the function {name!r}")


def read_symbol(content: bytes, here: int) -> tuple[int, int, str, int]:
    """A symbol's kind, number and name (empty where it is its import's), and the place after it."""
    what, index, label = content[here], -1, ""
    flags, here = read_number(content, here + 1)
    if what in (FUNCTION, GLOBAL, EVENT, TABLE, SECTION):
        index, here = read_number(content, here)
    if what == DATA or (what != SECTION and (not flags & UNDEFINED or flags & NAMED)):
        length, here = read_number(content, here)
        label = content[here : here + length].decode()
        here += length
    if what == DATA and not flags & UNDEFINED:
        for _ in range(3):  # its segment, offset and size
            _, here = read_number(content, here)
    return what, index, label, here
