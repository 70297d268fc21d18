"""Machine code on disk: found again, never mixed up, out of date or damaged; all of it made by set-up."""

import importlib.util
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import typeof
from numba.core.dispatcher import Dispatcher

from envprobe_book.compilation import compile_world
from envprobe_book.reproduce.sections import PARTS
from envprobe_core.compiled import compiled_files, numba_support
from envprobe_core.conditions import make_condition
from envprobe_core.engine import kernel, wasm
from envprobe_core.engine.batch import simulate_logged
from envprobe_core.errors import DAMAGED
from envprobe_core.sources import PACKAGE, ROOT, package_files
from envprobe_core.worlds import WORLDS

LINE = "envprobe: compiling the engine for Tiny, once; about 15 seconds\n"
DAY = 24 * 3600
TINY = {
    "__init__.py": "",
    "compiled/__init__.py": "",
    "engine/__init__.py": "",
    **{
        name: (PACKAGE / name).read_text()
        for name in ("errors.py", "compiled/numba_support.py", "compiled/compiled_files.py")
    },
    "engine/factor.py": """
from envprobe_core.compiled.numba_support import inline

@inline
def times(number):
    return 2 * number
""",
    "engine/tiny.py": """
from envprobe_core.compiled.numba_support import kernel
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
from envprobe_core.compiled import compiled_files, numba_support
from envprobe_core.engine import tiny

with numba_support.announced("Tiny"):
    total = tiny.total(np.ones(3, sys.argv[1]))
print(total, "loaded" if tiny.total.stats.cache_hits else "compiled", compiled_files.cache_folder())
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
    spec = importlib.util.spec_from_file_location("copied", package / "compiled" / "compiled_files.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_second_process_compiles_nothing(tiny):
    first, second = run(tiny), run(tiny)
    assert first == ("6", "compiled", first.folder, LINE)
    assert second == ("6", "loaded", first.folder, "")
    assert Path(first.folder).parent == tiny / "compiled" / "__pycache__"
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


def test_every_engine_file_makes_the_edition(tmp_path):
    package = tmp_path / "envprobe_core"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    editions = {compiled_files.EDITION, loaded(package).EDITION}
    sources = {path.relative_to(PACKAGE).as_posix() for path in compiled_files.SOURCES}
    for source in sources:
        path = package / source
        text = path.read_text()
        path.write_text(text + "\n")
        editions.add(loaded(package).EDITION)
        path.write_text(text)
    assert len(editions) == 1 + len(sources)
    assert {"agents/simulated.py", "released.py", "engine/kernel.py", "policies/rules.py"} <= sources


@pytest.mark.nightly
def test_where_folders_cannot_be_written_the_cache_moves_on(tiny):
    """To the user's; to nowhere."""
    folder, beside = tiny.parent.parent, Path(run(tiny).folder)
    user = folder / "user" / "envprobe" / beside.name
    for how in ("compiled", "loaded"):
        assert run(tiny, "i8", tiny)[:3] == ("6", how, str(user))
    assert len(list(beside.rglob("*.nbc"))) == 1, "nothing was added there"
    assert run(tiny, "i8", tiny, folder / "user") == ("6", "compiled", "None", LINE)


@pytest.mark.nightly
def test_code_is_never_read_from_a_folder_that_others_can_write(tiny):
    """Nor from one that a link leads to: what lies there is run."""
    folder, beside = tiny.parent.parent, Path(run(tiny).folder)
    beside.chmod(0o777)
    outcome = run(tiny)
    assert Path(outcome.folder) == folder / "user" / "envprobe" / beside.name
    assert outcome.how == "compiled"
    beside.chmod(0o755)
    assert run(tiny).folder == str(beside)
    elsewhere = folder / "elsewhere"
    beside.rename(elsewhere)
    beside.symlink_to(elsewhere)
    assert run(tiny).folder != str(beside)


def test_the_folder_that_numba_is_told_of_comes_first(tiny):
    place = tiny.parent.parent / "told"
    assert run(tiny, told=place).folder.startswith(str(place))
    assert run(tiny, told=place).how == "loaded"


def test_editions_that_nobody_used_for_a_day_are_swept(tiny):
    module, home = loaded(tiny), tiny / "compiled" / "__pycache__"
    for name, age in {"old": 1.1 * DAY, "older": 9 * DAY, "young": 0.9 * DAY}.items():
        code = home / f"{module.OURS}{name}" / "inside" / "code.nbc"
        code.parent.mkdir(parents=True)
        code.write_bytes(b"code")
        os.utime(home / f"{module.OURS}{name}", (time.time() - age,) * 2)
    (home / "factor.cpython-311.pyc").write_bytes(b"not ours")
    os.utime(home / "factor.cpython-311.pyc", (0, 0))
    own = module.cache_folder()
    others = {
        path.name for path in home.glob("compiled_files.*.pyc")
    }  # Python's own, where it may write them
    left = {path.name for path in home.iterdir()} - others
    assert left == {own.name, f"{module.OURS}young", "factor.cpython-311.pyc"}


# --- a file that proves itself ----------------------------------------------------------------


@given(st.binary(max_size=99), st.data())
def test_only_what_was_written_under_a_name_is_read_under_it(tmp_path, content, data):
    path = tmp_path / "run-1.nbc"
    compiled_files.keep(path, content)
    assert compiled_files.kept(path) == content
    whole = path.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    cut, other = whole[:place], bytes([whole[place] ^ 1 << data.draw(st.integers(0, 7))])
    compiled_files.keep(foreign := tmp_path / "run-2.nbc", content)
    for damaged in (cut, cut + other + whole[place + 1 :], whole + b"\0", foreign.read_bytes()):
        path.write_bytes(damaged)
        assert compiled_files.kept(path) is None
        assert not path.exists()


def flip(path, number=6):
    """Turn some bits of a file."""
    draw, content = random.Random(path.name), bytearray(path.read_bytes())
    for _ in range(number):
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


DAMAGES = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "emptied": lambda path: path.write_bytes(b""),
    "flipped": flip,
    "foreign": lambda path: path.write_bytes(next(path.parent.rglob("*.ll.gz")).read_bytes()[:-1]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_machine_code_and_text_are_made_again(tmp_path, monkeypatch, capsys, damage):
    """In place of what is damaged: a process that comes later finds it whole."""

    @numba_support.for_pages
    def total(numbers):
        result = 0.0
        for number in numbers:
            result += number
        return result

    monkeypatch.setattr(numba_support, "folder_of", lambda function: tmp_path)
    monkeypatch.setattr(compiled_files, "folder_of", lambda function: tmp_path)
    numbers, made = np.arange(4.0), []
    for _ in range(3):
        one = numba_support.kernel(total)
        assert one(numbers) == 6
        name, text = wasm.text_for(one, (typeof(numbers),))
        made.append((bool(one.stats.cache_hits), f"define i32 @{name}" in text))
        if len(made) == 1:
            assert {path.suffix for path in tmp_path.iterdir()} == {".nbc", ".gz"}
            for path in tmp_path.iterdir():
                DAMAGES[damage](path)
    assert made == [(False, True), (False, True), (True, True)]


HASHES = f"""
import json, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import corridor
from envprobe_core import run
from envprobe_core.worlds import register
register(corridor)
frame = run("corridor", "simple periodic", protocols="paper observed", seeds="0:6")
print(json.dumps([frame.to_csv(), len(sys.argv)]))
"""


@pytest.mark.nightly
def test_a_world_whose_files_are_all_damaged_gives_the_same_episodes_and_says_one_line(tmp_path):
    def episodes():
        given = {"capture_output": True, "text": True, "timeout": 600, "cwd": PACKAGE.parent}
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", HASHES], env=environment, **given)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), [line for line in done.stderr.splitlines() if DAMAGED in line]

    first, said = episodes()
    assert not said
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".nbc", ".gz", ".compiled"}
    for path, damage in zip(files, list(DAMAGES.values()) * len(files), strict=False):
        damage(path)
    again, said = episodes()
    assert (again, len(said)) == (first, 1)
    (folder,) = tmp_path.iterdir()
    assert episodes() == (first, [])
    assert compiled_files.remove_damaged(folder) == 0


OF_FEWER_WORLDS = dict.fromkeys(
    ("act", "lose", "follow", "_draw", "counts", "means", "summed_up", "told", "ratios"), 1
)


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
    folder = compiled_files.cache_folder()
    assert any(folder.rglob("*.nbc"))
    read = {*package_files()} | {
        path for patterns in PARTS.values() for pattern in patterns for path in ROOT.glob(pattern)
    }
    read = {path for path in read if path.is_file() and path.suffix != ".pyc"}  # as sections hash them
    assert not [path for path in read if path.is_relative_to(folder)]
