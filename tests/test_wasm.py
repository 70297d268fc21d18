"""WebAssembly modules: made of the text that Numba compiled, kept beside its code; or one line why not."""

import os
import subprocess
import sys

import pytest

from envprobe_core.compiled import compiled_files, numba_support
from envprobe_core.engine import kernel, wasm
from envprobe_core.sources import PACKAGE
from envprobe_core.worlds import WORLDS


def run(script, **variables):
    """Run a script in a process of its own; return exit code, output and errors."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env=os.environ | variables,
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        timeout=600,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 2**32 - 1])
def test_numbers_are_read_as_they_were_written(value):
    written = wasm.number(value)
    assert wasm.read_number(b"\x80" + written, 1) == (value, 1 + len(written))


@pytest.mark.parametrize("world", WORLDS)
def test_a_module_has_one_export_and_three_imports(world):
    module = wasm.module_of(world)
    assert module.startswith(wasm.MAGIC)
    assert b"\x01\x03run\x00" in module
    imports = (b"__linear_memory", b"__stack_pointer")
    assert all(name in module for name in imports)
    assert b"NRT" not in module
    assert b"linking" not in module


def test_a_module_is_kept_and_made_of_kept_text(monkeypatch):
    """Neither compiles anything again; what is damaged is made anew, to the same bytes."""
    world, folder = "tooldag", compiled_files.cache_folder()
    module = wasm.module_of(world)
    monkeypatch.setattr(wasm, "text_for", lambda *of: pytest.fail("it was made again"))
    assert wasm.module_of(world) == module
    monkeypatch.undo()
    files = [path for path in folder.glob(f"{world}-*.wasm") if path.read_bytes().endswith(module)]
    kept = max(files, key=lambda path: path.stat().st_mtime_ns)
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) // 2])
    monkeypatch.setattr(wasm, "njit", lambda **how: pytest.fail("Numba compiled it again"))
    assert wasm.module_of(world) == module
    assert kept.read_bytes() == whole


@pytest.mark.nightly
def test_a_text_that_is_missing_is_made_by_compiling_once(monkeypatch):
    world, folder = "tooldag", compiled_files.cache_folder()
    text = folder / numba_support.text_name("run", wasm.signature_of(world))
    kept = wasm.text_for(kernel.run, wasm.signature_of(world))
    text.unlink()
    name, made = wasm.text_for(kernel.run, wasm.signature_of(world))
    assert text.exists()
    assert wasm.webassembly(name, made) == wasm.webassembly(*kept) == wasm.module_of(world)


def test_an_edit_of_what_makes_modules_makes_them_anew(monkeypatch, tmp_path):
    """The name says by what: a source of the engine makes the folder's, Numba and this file the module's."""
    monkeypatch.setattr(compiled_files, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(wasm, "text_for", lambda *of: ("name", "text"))
    monkeypatch.setattr(wasm, "webassembly", lambda name, text: wasm.MAGIC)
    for versions in ("0.68.1 0.50.0", "0.68.2 0.50.0"):
        monkeypatch.setattr(compiled_files, "VERSIONS", versions)
        assert wasm.module_of("tooldag") == wasm.MAGIC
    assert len(list(tmp_path.glob("*.wasm"))) == 2


def test_where_none_can_be_made_one_line_says_why(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(compiled_files, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(wasm, "text_for", lambda *of: ("run", ""))
    monkeypatch.setattr(wasm, "TRIPLE", "pdp11-unknown-unknown")
    monkeypatch.setattr(numba_support, "_announced", {f"pages of {WORLDS['tooldag']}"})
    assert wasm.module_of("tooldag") is None
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("envprobe: pages have no engine and keep their still figures: ")
    assert not list(tmp_path.glob("*.wasm"))


def test_without_numba_kept_modules_are_read_and_none_are_made():
    script = "from envprobe_core.engine import wasm; print(wasm.module_of('tooldag') is None)"
    code, out, error = run(script, NUMBA_DISABLE_JIT="1")
    assert (code, out) == (0, "False\n"), error
    script = (
        "from envprobe_core.compiled import compiled_files; from envprobe_core.engine import wasm;"
        "compiled_files.cache_folder = lambda: None;" + script
    )
    code, out, error = run(script, NUMBA_DISABLE_JIT="1")
    assert (code, out) == (0, "True\n")
    assert error.count("\n") == 1
