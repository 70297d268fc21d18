"""What set-up compiles: all that Python calls, so that the book finds it on the disk, where no hash looks."""

from __future__ import annotations

import re
from importlib import import_module

from numba.core.dispatcher import Dispatcher

from envprobe_core.compilation import compile_world
from envprobe_core.engine import compiling, loop
from envprobe_core.reproduce.sections import plan, reach
from envprobe_core.sources import PACKAGE, Sources, engine_sources
from envprobe_core.worlds import WORLDS

OF_FEWER_WORLDS = {
    "act": 1,
    "lose": 1,
    "follow": 1,
    "_draw": 1,
    "tools_within_reach": 1,
    "goal_within_reach": 2,
}


def entries():
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


def test_set_up_compiles_every_entry_for_every_world():
    for world in WORLDS:
        compile_world(world)
    assert len(entries()) >= 10
    for function in entries():
        at = 1 if function is loop.run else 0
        worlds = {signature[at] for signature in function.signatures}
        expected = OF_FEWER_WORLDS.get(function.__name__, len(WORLDS))
        assert len(worlds) >= expected, f"{function.__module__}.{function.__name__}"


def test_machine_code_enters_no_hash():
    compile_world("tooldag")
    folder = compiling.cache_folder()
    assert folder is not None
    assert any(folder.rglob("*.nbc"))
    read = {path for job in plan() for path in reach(job.section, Sources())} | set(engine_sources())
    assert not [path for path in read if path.is_relative_to(folder)]
