"""What results depend on: the package's files that some imports reach, hashes of files, and versions.

An edit of a file changes the hash of what imports it, at any depth, and of nothing else. From a package's own
`__init__.py` it goes on only to where a name that is asked for comes from.
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
ROOTS = ("runs/folder.py",)
"""The modules whose imports, followed to the end, are the engine that a run depends on."""

_IMPORT = re.compile(
    r"^[ \t]*(?:import (?P<whole>envprobe_core[\w.]*)"
    r"|from (?P<module>envprobe_core[\w.]*) import (?:\((?P<many>[^)]*)\)|(?P<names>[^\n#]+)))",
    re.MULTILINE,
)
_COMMENT = re.compile(r"#[^\n]*")

Import = tuple[str, str]  # a module and a name in it, "" for all of it


def imports_of(text: str) -> dict[Import, str]:
    """Return what a text of Python imports from this package, each with the name that it is given there."""
    found = {}
    for match in _IMPORT.finditer(text):
        if match["whole"]:
            found[match["whole"], ""] = ""
        for item in _COMMENT.sub("", match["many"] or match["names"] or "").split(","):
            words = item.split()
            if words:
                found[match["module"], words[0].strip("*")] = words[-1]
    return found


def files_reached(wanted: Iterable[Import], root: Path = PACKAGE.parent) -> list[Path]:
    """Return the package's files that imports reach, at any depth, with the scripts that lie beside them.

    Args:
        wanted: the imports to begin with.
        root: the checkout.
    """
    found: set[Path] = set()
    seen: set[Import] = set()
    waiting = list(wanted)
    while waiting:
        module, name = one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        path = root.joinpath(*module.split("."))
        parent, _, last = module.rpartition(".")
        if parent:  # which runs before
            waiting.append((parent, last))
        if not path.is_dir():
            path = path.with_suffix(".py")
            if path.is_file():
                found.add(path)
                waiting += _imports_of_file(path)
            continue
        path /= "__init__.py"
        found.add(path)
        if name and ((path.parent / name).is_dir() or (path.parent / f"{name}.py").is_file()):
            waiting.append((f"{module}.{name}", ""))
        elif path.is_file():
            bound = _imports_of_file(path)
            waiting += [of for of, given in bound.items() if given == name] or bound
    scripts = {script for path in found for script in path.parent.glob("*.js")}
    return sorted(path for path in found | scripts if path.is_file())


def _imports_of_file(path: Path) -> dict[Import, str]:
    return _read(path, path.stat().st_mtime_ns)


@cache
def _read(path: Path, _changed: int) -> dict[Import, str]:
    return imports_of(path.read_text(encoding="utf-8"))


def engine_sources(roots: Sequence[str] = ROOTS) -> list[Path]:
    """Return the files that results depend on, by following imports from some: by default a run's."""
    package = PACKAGE.name
    return files_reached((f"{package}.{root.removesuffix('.py').replace('/', '.')}", "") for root in roots)


def engine_sha256(roots: Sequence[str] = ROOTS) -> str:
    """Return SHA-256 over the names and contents of the engine's sources, as `engine_sources` finds them."""
    return files_sha256(PACKAGE, engine_sources(roots))


def package_sha256() -> str:
    """Return SHA-256 over all of the package's modules and its data: what two machines must share."""
    root = PACKAGE.parent
    paths = [path for path in (*PACKAGE.rglob("*.py"), *(root / "data").rglob("*")) if path.is_file()]
    return files_sha256(root, sorted(paths))


def files_sha256(root: Path, paths: Sequence[Path]) -> str:
    """Return SHA-256 over the names and contents of files.

    Args:
        root: the folder; names enter the hash relative to it.
        paths: the files, in the order in which they enter.
    """
    total = hashlib.sha256()
    for path in paths:
        total.update(path.relative_to(root).as_posix().encode() + b"\0" + _content_sha256(path))
    return total.hexdigest()


def _content_sha256(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


def package_versions() -> dict[str, str]:
    """Return the versions of what a run's files depend on, beside the engine."""
    packages = {name: version(name) for name in ("numpy", "numba", "pyarrow")}
    return {"python": platform.python_version()} | packages
