"""The files that results depend on, hashes of them, and the versions of what they are computed with."""

import hashlib
import platform
from collections.abc import Iterable
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parent
"""The checkout: it holds `notebooks/`, `book/`, `data/` and the lock; else the folder of the package."""
DATA = PACKAGE / "data"
"""The checkout's `data/`, or an installed package's own."""
KINDS = ("*.py", "*.toml", "*.js")


def package_files(package: Path = PACKAGE, *, model: bool = True) -> list[Path]:
    """The source files of a package, sorted; without `model` those of `llm/` are left out."""
    found = {path for kind in KINDS for path in package.rglob(kind)}
    return sorted(path for path in found if model or path.relative_to(package).parts[0] != "llm")


def files_sha256(paths: Iterable[Path], root: Path = ROOT) -> str:
    """Return SHA-256 over names under a root and bytes of files, in the order given."""
    total = hashlib.sha256()
    for path in paths:
        total.update(path.relative_to(root).as_posix().encode() + b"\0")
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def engine_sha256(*, model: bool = False) -> str:
    """Return SHA-256 over the core's source files; a run that asks a language model depends on `llm/` too.

    >>> len(engine_sha256())
    64
    """
    return files_sha256(package_files(model=model))


def package_sha256() -> str:
    """Return SHA-256 over all of the core's files and the data: what two machines must share."""
    data = sorted(path for path in DATA.rglob("*") if path.is_file())
    return files_sha256([*package_files(), *data])


def package_versions() -> dict[str, str]:
    """The versions of what a run's files depend on, beside the engine.

    >>> sorted(package_versions())
    ['numba', 'numpy', 'pandas', 'pyarrow', 'python']
    """
    from importlib.metadata import version

    packages = {name: version(name) for name in ("numpy", "numba", "pandas", "pyarrow")}
    return {"python": platform.python_version()} | packages
