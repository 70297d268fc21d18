"""What results depend on: the engine's own sources, with one hash over them, and the packages beneath."""

from __future__ import annotations

import hashlib
import platform
import re
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

PACKAGE = Path(__file__).resolve().parent
ROOTS = ("running.py", "summary.py")
"""The modules whose imports, followed to the end, are the engine that a run depends on."""

_IMPORT = re.compile(
    r"^\s*(?:from|import) envprobe_core([\w.]*)(?: import (?:\(([^)]*)\)|([\w, ]+)))?", re.MULTILINE
)


def engine_sources(roots: Sequence[str] = ROOTS) -> list[Path]:
    """Return the modules that results depend on, by following imports from some: by default a run's."""
    found: dict[Path, None] = {}
    waiting = [PACKAGE / name for name in roots]
    while waiting:
        path = waiting.pop()
        if path in found or not path.is_file():
            continue
        found[path] = None
        for match in _IMPORT.finditer(path.read_text(encoding="utf-8")):
            base = PACKAGE.joinpath(*filter(None, match[1].split(".")))
            listed = (match[2] or match[3] or "").split(",")
            names = [name.split()[0] for name in listed if name.split()]
            for module in (base, *(base / name for name in names)):
                waiting += [module.with_suffix(".py"), module / "__init__.py"]
    return sorted(found)


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
        content = hashlib.sha256(path.read_bytes()).digest()
        total.update(path.relative_to(root).as_posix().encode() + b"\0" + content)
    return total.hexdigest()


def package_versions() -> dict[str, str]:
    """Return the versions of what a run's files depend on, beside the engine."""
    import numba
    import orjson
    import pyarrow

    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "pyarrow": pyarrow.__version__,
        "orjson": orjson.__version__,
        "zlib": zlib.ZLIB_RUNTIME_VERSION,
    }
