"""Machine code on disk: found again, never mixed up, never out of date; all of it made by set-up."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest
from numba.core.dispatcher import Dispatcher

from envprobe_book.compilation import compile_world
from envprobe_book.reproduce.sections import SHARED
from envprobe_core.conditions import make_condition
from envprobe_core.engine import kernel, numba_support
from envprobe_core.engine.batch import simulate_logged
from envprobe_core.sources import PACKAGE, ROOT, package_files
from envprobe_core.worlds import WORLDS

LINE = "envprobe: compiling the engine for Tiny, once; about 15 seconds\n"
DAY = 24 * 3600
TINY = {
    "__init__.py": "",
    "engine/__init__.py": "",
    "engine/numba_support.py": (numba_support.HOME / "numba_support.py").read_text(),
    "engine/factor.py": """
from envprobe_core.engine.numba_support import inline

@inline
def times(number):
    return 2 * number
""",
    "engine/tiny.py": """
from envprobe_core.engine.numba_support import kernel
from envprobe_core.engine.factor import times

@kernel
def total(numbers):
    result = 0 * numbers[0]
    for i in range(len(numbers)):
        result += times(numbers[i])
    return result
""",
    "run.py": """
import sys, tempfile
import numpy as np

make = tempfile.TemporaryFile

def refuse(*given, dir, **named):
    if any(str(dir).startswith(locked) for locked in sys.argv[2:]):
        raise PermissionError(dir)
    return make(*given, dir=dir, **named)

tempfile.TemporaryFile = refuse
from envprobe_core.engine import numba_support, tiny

with numba_support.announced("Tiny"):
    total = tiny.total(np.ones(3, sys.argv[1]))
print(total, "loaded" if tiny.total.stats.cache_hits else "compiled", numba_support.cache_folder())
""",
}


class Outcome(NamedTuple):
    total: str
    how: str
    folder: str
    said: str


@pytest.fixture
def tiny(tmp_path):
    """A package of one compiled function beside a copy of the module that compiles."""
    package = tmp_path / "site" / "envprobe_core"
    for name, text in TINY.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "temporary").mkdir()
    return package


def run(package, kind="i8", *locked, told=None):
    """Run the package in a process that cannot write to some folders, and has Numba's told."""
    folder = package.parent.parent
    places = {"XDG_CACHE_HOME": folder / "user", "TMPDIR": folder / "temporary", "PYTHONPATH": package.parent}
    odd = {"NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", "PYTHONDONTWRITEBYTECODE"}
    environment = {name: str(value) for name, value in (os.environ | places).items() if name not in odd}
    environment |= {"NUMBA_CACHE_DIR": str(told)} if told else {}
    command = [sys.executable, "-m", "envprobe_core.run", kind, *map(str, locked)]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return Outcome(*done.stdout.split(), done.stderr)


def loaded(package):
    """Return a package's module that compiles, in this process."""
    spec = importlib.util.spec_from_file_location("copied", package / "engine" / "numba_support.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_second_process_compiles_nothing(tiny):
    first, second = run(tiny), run(tiny)
    assert first == ("6", "compiled", first.folder, LINE)
    assert second == ("6", "loaded", first.folder, "")
    assert Path(first.folder).parent == tiny / "engine" / "__pycache__"
    os.utime(first.folder, (time.time() - 9 * DAY,) * 2)
    assert run(tiny).how == "loaded"
    assert time.time() - Path(first.folder).stat().st_mtime < DAY, "use keeps an edition"
    called = tiny / "engine" / "factor.py"
    called.write_text(called.read_text().replace("2 *", "5 *"))
    after = run(tiny)  # an edit of what is called
    assert after == ("15", "compiled", after.folder, LINE)
    assert after.folder != first.folder
    assert Path(first.folder).is_dir()


def test_the_engine_too_is_found_again():
    digests = [
        simulate_logged(make_condition(world, "simple"), range(3)).measures["digest"].tolist()
        for world in WORLDS
    ]
    script = f"""
from envprobe_core.conditions import make_condition
from envprobe_core.engine import kernel
from envprobe_core.engine.batch import simulate
made = [make_condition(world, "simple") for world in {list(WORLDS)}]
print([simulate(condition, range(3))["digest"].tolist() for condition in made])
assert len(kernel.run.stats.cache_hits) == 3 and not kernel.run.stats.cache_misses
"""
    given = {"capture_output": True, "text": True, "timeout": 300, "cwd": PACKAGE.parent}
    done = subprocess.run([sys.executable, "-c", script], **given)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", f"{digests}\n")


def test_codes_of_processes_that_write_at_once_are_not_mixed_up(tiny):
    """One process writes its code late, and another, which does not know of it, has written the index."""
    folder = Path(run(tiny, "i8").folder)
    (late,), (index,) = folder.rglob("*.nbc"), folder.rglob("*.nbi")
    code = late.read_bytes()
    late.unlink()
    index.unlink()
    assert run(tiny, "f8").total == "6.0"
    late.write_bytes(code)
    assert run(tiny, "f8")[:2] == ("6.0", "loaded")
    assert run(tiny, "i8").total == "6"


def test_every_engine_file_makes_the_edition(tmp_path):
    package = tmp_path / "envprobe_core"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    editions = {numba_support.EDITION, loaded(package).EDITION}
    sources = {path.relative_to(PACKAGE).as_posix() for path in numba_support.SOURCES} | {
        "engine/numba_support.py"
    }
    for source in sources:
        path = package / source
        text = path.read_text()
        path.write_text(text + "\n")
        editions.add(loaded(package).EDITION)
        path.write_text(text)
    assert len(editions) == 1 + len(sources)
    assert {"agents/__init__.py", "engine/kernel.py", "worlds/graphnav.py", "policies/rules.py"} <= sources


def test_where_folders_cannot_be_written_the_cache_moves_on(tiny):
    """To the user's, as a copy of what lies beside the package; to the temporary ones; to nowhere."""
    folder, beside = tiny.parent.parent, Path(run(tiny).folder)
    user = folder / "user" / "envprobe" / beside.name
    assert run(tiny, "i8", tiny) == ("6", "loaded", str(user), "")
    assert run(tiny, "f8", tiny)[:3] == ("6.0", "compiled", str(user))
    assert len(list(beside.rglob("*.nbc"))) == 1, "nothing was added there"
    for how in ("compiled", "loaded"):
        outcome = run(tiny, "u8", tiny, folder / "user")
        assert outcome[:2] == ("6", how)
        assert (folder / "temporary") in Path(outcome.folder).parents
    assert run(tiny, "f4", tiny, folder) == ("6.0", "compiled", "None", LINE)


def test_code_is_never_read_from_a_folder_that_others_can_write(tiny):
    """Nor from one that a link leads to: what lies there is run."""
    folder, beside = tiny.parent.parent, Path(run(tiny).folder)
    beside.chmod(0o777)
    outcome = run(tiny)
    assert Path(outcome.folder) == folder / "user" / "envprobe" / beside.name
    assert outcome.how == "compiled", "nor is it copied from there"
    beside.chmod(0o755)
    assert run(tiny).folder == str(beside)
    elsewhere = folder / "elsewhere"
    beside.rename(elsewhere)
    beside.symlink_to(elsewhere)
    assert run(tiny).folder != str(beside)
    temporary = folder / "temporary" / f"envprobe-{os.getuid()}"
    temporary.mkdir(mode=0o777)
    temporary.chmod(0o777)
    assert run(tiny, "i8", tiny, folder / "user").folder == "None", "another could have made it first"


def test_the_folder_that_numba_is_told_of_comes_first(tiny):
    place = tiny.parent.parent / "told"
    assert run(tiny, told=place).folder.startswith(str(place))
    assert run(tiny, told=place).how == "loaded"


def test_editions_that_nobody_used_for_a_day_are_swept(tiny):
    module, home = loaded(tiny), tiny / "engine" / "__pycache__"
    for name, age in {"old": 1.1 * DAY, "older": 9 * DAY, "young": 0.9 * DAY}.items():
        code = home / f"{module.OURS}{name}" / "inside" / "code.nbc"
        code.parent.mkdir(parents=True)
        code.write_bytes(b"code")
        os.utime(home / f"{module.OURS}{name}", (time.time() - age,) * 2)
    (home / "factor.cpython-311.pyc").write_bytes(b"not ours")
    os.utime(home / "factor.cpython-311.pyc", (0, 0))
    own = module.cache_folder()
    others = {path.name for path in home.glob("numba_support.*.pyc")}  # Python's own, where it may write them
    left = {path.name for path in home.iterdir()} - others
    assert left == {own.name, f"{module.OURS}young", "factor.cpython-311.pyc"}


OF_FEWER_WORLDS = dict.fromkeys(("act", "lose", "follow", "_draw", "counts", "means", "told", "ratios"), 1)


def entries():
    """Return every function that is compiled for Python to call."""
    for path in (*PACKAGE.rglob("*.py"), *(ROOT / "book" / "envprobe_book").rglob("*.py")):
        if re.search(r"^@kernel$", path.read_text("utf-8"), re.MULTILINE):
            root = PACKAGE.parent if path.is_relative_to(PACKAGE) else ROOT / "book"
            name = path.relative_to(root).with_suffix("").as_posix().replace("/", ".")
            for one in vars(import_module(name)).values():
                if isinstance(one, Dispatcher) and one.__module__ == name and one.stats.cache_path:
                    yield one


def test_set_up_compiles_every_entry_for_every_world_where_no_hash_looks():
    for world in WORLDS:
        compile_world(world)
    found = list(entries())
    assert len(found) >= 10
    for function in found:
        at = 1 if function is kernel.run else 0
        worlds = {signature[at] for signature in function.signatures}
        expected = OF_FEWER_WORLDS.get(function.__name__, len(WORLDS))
        assert len(worlds) >= expected, f"{function.__module__}.{function.__name__}"
    folder = numba_support.cache_folder()
    assert any(folder.rglob("*.nbc"))
    read = {*package_files()} | {path for pattern in SHARED for path in ROOT.glob(pattern)}
    read = {path for path in read if path.is_file() and path.suffix != ".pyc"}  # as sections hash them
    assert not [path for path in read if path.is_relative_to(folder)]
