"""Machine code on disk: it is found again, never mixed up, never out of date, and wanted nowhere."""

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from envprobe_core.cells import make_cell
from envprobe_core.engine import compiling
from envprobe_core.engine.running import record
from envprobe_core.worlds import WORLDS

PACKAGE = compiling.HOME.parent
LINE = "envprobe: compiling the engine for Tiny, once; about 15 seconds\n"
DAY = 24 * 3600
TINY = {
    "__init__.py": "",
    "engine/__init__.py": "",
    "engine/compiling.py": (compiling.HOME / "compiling.py").read_text(),
    "engine/factor.py": """
from envprobe_core.engine.compiling import compiled

@compiled
def times(number):
    return 2 * number
""",
    "engine/tiny.py": """
from envprobe_core.engine.compiling import entry
from envprobe_core.engine.factor import times

@entry
def total(numbers):
    result = 0 * numbers[0]
    for i in range(len(numbers)):
        result += times(numbers[i])
    return result
""",
    "run.py": """
import sys
import numpy as np
from envprobe_core.engine import compiling
from envprobe_core.engine import tiny

with compiling.announced("Tiny"):
    total = tiny.total(np.ones(3, sys.argv[1]))
print(total, "loaded" if tiny.total.stats.cache_hits else "compiled", compiling.cache_folder())
""",
}
LOCKED = """
import runpy
import sys
import tempfile

make = tempfile.TemporaryFile

def refuse(*given, dir, **named):
    if any(str(dir).startswith(locked) for locked in sys.argv[2:]):
        raise PermissionError(dir)
    return make(*given, dir=dir, **named)

tempfile.TemporaryFile = refuse
runpy.run_module("envprobe_core.run", run_name="__main__")
"""


class Outcome(NamedTuple):
    total: str
    how: str
    folder: str
    said: str


Run = Callable[..., Outcome]


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


def start(package, kind="i8", *arguments):
    folder = package.parent.parent
    places = {"XDG_CACHE_HOME": folder / "user", "TMPDIR": folder / "temporary", "PYTHONPATH": package.parent}
    environment = os.environ | {name: str(path) for name, path in places.items()}
    for name in ("NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT", "PYTHONDONTWRITEBYTECODE"):
        environment.pop(name, None)
    how = ["-c", LOCKED] if arguments else ["-m", "envprobe_core.run"]
    return subprocess.Popen(
        [sys.executable, *how, kind, *arguments],
        env=environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    out, said = process.communicate(timeout=600)
    assert process.returncode == 0, said
    return Outcome(*out.split(), said)


def run(package, kind="i8", *locked):
    """Run the package in a process that cannot write to some folders."""
    return finish(start(package, kind, *map(str, locked)))


def loaded(package):
    """Return a package's module that compiles, in this process."""
    spec = importlib.util.spec_from_file_location("copied", package / "engine" / "compiling.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_second_process_compiles_nothing(tiny):
    first, second = run(tiny), run(tiny)
    assert (first.total, first.how, first.said) == ("6", "compiled", LINE)
    assert (second.total, second.how, second.said) == ("6", "loaded", "")
    assert Path(first.folder).parent == tiny / "engine" / "__pycache__"
    assert first.folder == second.folder
    os.utime(first.folder, (time.time() - 9 * DAY,) * 2)
    called = tiny / "engine" / "factor.py"
    assert run(tiny).how == "loaded"
    assert time.time() - Path(first.folder).stat().st_mtime < DAY, "use keeps an edition"
    called.write_text(called.read_text().replace("2 *", "5 *"))
    after = run(tiny)  # an edit of what is called
    assert (after.total, after.how, after.said) == ("15", "compiled", LINE)
    assert after.folder != first.folder
    assert Path(first.folder).is_dir()


def test_the_engine_too_is_found_again():
    some = np.arange(3)
    digests = [record(make_cell(world, "simple"), some).measures["digest"].tolist() for world in WORLDS]
    script = f"""
import numpy as np
from envprobe_core.cells import make_cell
from envprobe_core.engine import loop
from envprobe_core.engine.running import record
for world in {list(WORLDS)}:
    print(record(make_cell(world, "simple"), np.arange(3)).measures["digest"].tolist())
assert len(loop.run.stats.cache_hits) == 3 and not loop.run.stats.cache_misses
"""
    given = {"capture_output": True, "text": True, "timeout": 300, "cwd": PACKAGE.parent}
    done = subprocess.run([sys.executable, "-c", script], **given)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [str(digest) for digest in digests]


def test_codes_of_processes_that_write_at_once_are_not_mixed_up(tiny):
    """One process writes its code late, and another, which does not know of it, has written the index."""
    folder = Path(run(tiny, "i8").folder)
    (late,) = folder.rglob("*.nbc")
    (index,) = folder.rglob("*.nbi")
    code = late.read_bytes()
    late.unlink()
    index.unlink()
    assert run(tiny, "f8").total == "6.0"
    late.write_bytes(code)
    outcome = run(tiny, "f8")
    assert (outcome.total, outcome.how) == ("6.0", "loaded")
    assert run(tiny, "i8").total == "6"


def test_every_engine_file_makes_the_edition(tmp_path):
    package = tmp_path / "envprobe_core"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    assert loaded(package).EDITION == compiling.EDITION
    editions = {compiling.EDITION}
    sources = [compiling.HOME / "compiling.py", *compiling.SOURCES]
    for source in sources:
        path = package / source.relative_to(PACKAGE)
        text = path.read_text()
        path.write_text(text + "\n")
        editions.add(loaded(package).EDITION)
        path.write_text(text)
    assert len(editions) == 1 + len(sources)
    names = {source.relative_to(PACKAGE).as_posix() for source in sources}
    assert {"agents/simulated.py", "engine/loop.py", "worlds/graphnav.py", "policies/rules.py"} <= names


def test_where_folders_cannot_be_written_the_cache_moves_on(tiny):
    """To the user's, as a copy of what lies beside the package; to the temporary ones; to nowhere."""
    folder, beside = tiny.parent.parent, Path(run(tiny).folder)
    user = folder / "user" / "envprobe" / beside.name
    assert run(tiny, "i8", tiny) == ("6", "loaded", str(user), "")
    assert run(tiny, "f8", tiny)[:3] == ("6.0", "compiled", str(user))
    assert len(list(beside.rglob("*.nbc"))) == 1, "nothing was added there"
    for how in ("compiled", "loaded"):
        outcome = run(tiny, "u8", tiny, folder / "user")
        assert (outcome.total, outcome.how) == ("6", how)
        assert (folder / "temporary") in Path(outcome.folder).parents
    assert run(tiny, "f4", tiny, folder) == ("6.0", "compiled", "None", LINE)


def test_editions_that_nobody_used_for_a_day_are_swept(tiny):
    module = loaded(tiny)
    home = tiny / "engine" / "__pycache__"
    ages = {"old": 1.1 * DAY, "older": 9 * DAY, "young": 0.9 * DAY}
    for name, age in ages.items():
        folder = home / f"{module.OURS}{name}"
        (folder / "inside").mkdir(parents=True)
        (folder / "inside" / "code.nbc").write_bytes(b"code")
        os.utime(folder, (time.time() - age,) * 2)
    (home / "factor.cpython-311.pyc").write_bytes(b"not ours")
    os.utime(home / "factor.cpython-311.pyc", (0, 0))
    own = module.cache_folder()
    assert own is not None
    expected = {own.name, f"{module.OURS}young", "factor.cpython-311.pyc"}
    others = {path.name for path in home.glob("compiling.*.pyc")}  # Python's own, where it may write them
    assert {path.name for path in home.iterdir()} - others == expected
