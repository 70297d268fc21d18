"""The house keeps its size and its shape: lines a folder, what the core may import, no sentence by code.

A ceiling is today's size rounded up. It falls with the code until the plan's number is reached, and rises
only in a commit that brings a capability and says so.
"""

import ast
import re
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[1] / "envprobe_core"
CORE = ("agents", "engine", "facts", "grid", "measures", "policies", "statistics", "worlds")
BUDGETS = {  # folders and modules, how many lines of Python they may have, and how many the plan gives them
    "core": (CORE, 5_430, 4_300),
    "engine": (("agents", "engine", "policies", "worlds"), 4_120, 3_000),
    "facts": (("facts",), 500, 330),
    "claims": (("claims",), 595, 680),
    "analyses": (("analyses",), 1_730, 2_970),
    "show": (("show",), 1_450, 1_060),
    "widgets": (("widgets",), 930, 1_180),
    "lab": (("lab",), 645, 330),
    "language model": (("llm",), 2_806, 1_300),
    "runs": (("runs",), 1_100, 340),
    "reproduce": (("reproduce",), 990, 510),
    "cli": (("cli",), 1_425, 400),
}
WHOLE = (18_850, 13_500)
FILES = (85, 85)
TESTS = (11_660, 9_000)
PAGES = ("analyses", "cli", "lab", "reproduce", "show", "widgets")


def modules():
    """Every module of the package by its name, below the package: `worlds.graphnav`."""
    files = {path.relative_to(HOME).with_suffix("").parts: path for path in HOME.rglob("*.py")}
    return {".".join(parts).removesuffix("__init__").rstrip("."): path for parts, path in files.items()}


MODULES = modules()


def folder_of(name):
    return name.partition(".")[0]


def lines(path):
    return len(path.read_text(encoding="utf-8").splitlines())


def imported(name):
    """The package's modules that a module imports, wherever in its text."""
    for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == HOME.name:
            module = node.module.partition(".")[2]
            for one in node.names:
                inner = f"{module}.{one.name}".lstrip(".")
                yield inner if inner in MODULES else module


@pytest.mark.parametrize("place", BUDGETS)
def test_a_folder_keeps_to_its_lines(place):
    names, ceiling, plan = BUDGETS[place]
    count = sum(lines(MODULES[name]) for name in MODULES if folder_of(name) in names)
    assert 0 < count <= ceiling, f"{place} has {count} lines, and {plan} in the plan"


def test_the_whole_keeps_to_its_lines_and_files():
    tests = sum(map(lines, Path(__file__).parent.glob("*.py")))
    counts = {"lines": sum(map(lines, MODULES.values())), "files": len(MODULES), "lines of tests": tests}
    for (what, count), (ceiling, plan) in zip(counts.items(), (WHOLE, FILES, TESTS), strict=True):
        assert count <= ceiling, f"{count} {what}, and {plan} in the plan"


def test_the_core_knows_nothing_of_pages():
    """Neither directly nor through what it imports."""
    via = {name: name for name in MODULES if folder_of(name) in CORE}
    left = list(via)
    while left:
        for found in imported(name := left.pop()):
            if found and found not in via:
                via[found] = name
                left.append(found)
    assert {name: by for name, by in via.items() if folder_of(name) in PAGES} == {}


def test_no_sentence_is_made_by_a_function():
    """Conclusions are written by hand, in `conclude`."""
    told = [name for name, path in MODULES.items() if "def tell_" in path.read_text(encoding="utf-8")]
    assert [name for name in told if folder_of(name) != "llm"] == []


def test_data_are_read_where_a_sections_hash_sees_it():
    """As in `DATA / "paper"`, which `sources` looks for."""
    otherwise = re.compile(r'ROOT\b.*\bdata\b|\bDATA\b(?! / \\?")[^\n]*/')
    paths = [*HOME.parent.glob("notebooks/*.ipynb"), *(set(MODULES.values()) - {HOME / "sources.py"})]
    assert [path.name for path in paths if otherwise.search(path.read_text(encoding="utf-8"))] == []
