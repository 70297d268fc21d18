"""Who may know whom: imports run one way, from the book to the core, and from the engine's parts outwards."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HOMES = {"envprobe_core": ROOT / "envprobe_core", "envprobe_book": ROOT / "book" / "envprobe_book"}
MODULES = {
    ".".join((package, *path.relative_to(home).with_suffix("").parts)).removesuffix(".__init__"): path
    for package, home in HOMES.items()
    for path in home.rglob("*.py")
}


def imports_of(name: str) -> Iterator[str]:
    """Yield the modules of ours that a module imports, wherever in its text."""
    for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            named = [f"{node.module}.{alias.name}" for alias in node.names]
            named = [one if one in MODULES else node.module for one in named]
        yield from (one for one in named if one.partition(".")[0] in HOMES)


def within(name: str, place: str) -> bool:
    return name == place or name.startswith(f"{place}.")


def arrows(place: str, *targets: str) -> list[str]:
    """Return each import from a place to another, as a text."""
    return [
        f"{name} imports {found}"
        for name in MODULES
        if within(name, place)
        for found in imports_of(name)
        if any(within(found, target) for target in targets)
    ]


CORE = "envprobe_core"
ENGINE = f"{CORE}.engine"
PARTS = [f"{CORE}.{name}" for name in ("worlds", "agents", "policies", "released")]
KNOWS_NOTHING_OF = {
    CORE: ["envprobe_book"],
    f"{CORE}.compiled": [*PARTS, ENGINE, f"{CORE}.protocols"],
    f"{CORE}.worlds": [f"{CORE}.policies", f"{CORE}.agents", f"{CORE}.released", ENGINE],
    f"{CORE}.agents": [f"{CORE}.policies", ENGINE],
    f"{CORE}.policies": [ENGINE, f"{CORE}.runs"],
    ENGINE: [f"{CORE}.runs", f"{CORE}.experiment", f"{CORE}.comparing"],
    f"{CORE}.statistics": [*PARTS, ENGINE, f"{CORE}.runs"],
}


def test_every_place_that_a_rule_names_is_there():
    named = {place for pair in KNOWS_NOTHING_OF.items() for place in (pair[0], *pair[1])}
    assert [place for place in named if place not in MODULES] == []


@pytest.mark.parametrize("place", KNOWS_NOTHING_OF)
def test_a_place_knows_nothing_of_what_is_built_on_it(place):
    assert arrows(place, *KNOWS_NOTHING_OF[place]) == []


def test_nothing_in_the_core_knows_the_language_model_but_itself():
    outside = [name for name in MODULES if within(name, CORE) and not within(name, f"{CORE}.llm")]
    assert [arrow for name in outside for arrow in arrows(name, f"{CORE}.llm") if name != CORE] == []


def test_the_packages_of_the_core_form_no_circle():
    """Compiled functions are joined in `engine.kernel`: below it lie worlds, agents and policies."""
    from graphlib import TopologicalSorter

    graph = {
        name: {found for found in imports_of(name) if within(found, CORE) and found != name}
        for name in MODULES
    }
    TopologicalSorter(graph).prepare()  # a circle is an error
