"""What set-up compiles: all that Python calls, so that the book finds it on the disk, where no hash looks."""

from __future__ import annotations

import re
from importlib import import_module

from numba.core.dispatcher import Dispatcher

from envprobe_core.compilation import single_steps, whole_runs
from envprobe_core.engine import compiling
from envprobe_core.notebooks import ENGINE_FILES
from envprobe_core.sources import PACKAGE, engine_sources
from envprobe_core.worlds import WORLDS

OF_FEWER_WORLDS = {
    "act": 1,
    "lose": 1,
    "follow": 1,
    "_draw": 1,
    "tools_within_reach": 1,
    "goal_within_reach": 2,
}


def entries() -> list[Dispatcher]:
    """Return every function that is compiled for Python to call."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        if re.search(r"^@entry$", path.read_text("utf-8"), re.MULTILINE):
            name = path.relative_to(PACKAGE.parent).with_suffix("").as_posix().replace("/", ".")
            functions = [
                value for value in vars(import_module(name)).values() if isinstance(value, Dispatcher)
            ]
            found += [one for one in functions if one.__module__ == name and one.stats.cache_path is not None]
    return found


def test_set_up_compiles_every_entry_for_every_world() -> None:
    whole_runs()
    single_steps()
    assert len(entries()) >= 25
    for function in entries():
        worlds = {signature[0] for signature in function.signatures}
        expected = OF_FEWER_WORLDS.get(function.__name__, len(WORLDS))
        assert len(worlds) >= expected, f"{function.__module__}.{function.__name__}"


def test_every_compiled_file_tells_engines_apart() -> None:
    assert set(compiling.SOURCES) <= set(engine_sources())
    assert compiling.HOME / "compiling.py" in engine_sources()


def test_machine_code_enters_no_hash() -> None:
    whole_runs(["tooldag"])
    folder = compiling.cache_folder()
    assert folder is not None
    assert any(folder.rglob("*.nbc"))
    read = {path for pattern in ENGINE_FILES for path in PACKAGE.parent.glob(pattern)} | set(engine_sources())
    assert not [path for path in read if path.is_relative_to(folder)]
