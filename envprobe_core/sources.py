"""What results depend on: the package's files that some imports reach, hashes of files, and versions.

An edit of a file changes the hash of what imports it, at any depth, and of nothing else. From a package's own
`__init__.py` it goes on only to where a name that is asked for comes from.
"""

import hashlib
import platform
import re
from collections.abc import Iterable, Sequence
from functools import cache, partial
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parent
"""The checkout: it holds `notebooks/`, `book/`, `data/` and the lock; else the folder of the package."""
DATA = PACKAGE / "data"
"""The checkout's `data/`, or an installed package's own."""
ROOTS = ("runs/folder.py",)
"""The modules whose imports, followed to the end, are the engine that a run depends on."""

_IMPORT = re.compile(
    r"^[ \t]*(?:import (?P<whole>envprobe_core[\w.]*)"
    r"|from (?P<module>envprobe_core[\w.]*) import (?:\((?P<many>[^)]*)\)|(?P<names>[^\n#]+)))",
    re.MULTILINE,
)
_NAMED = re.compile(r'\bDATA / "([\w.]+)"')
_COMMENT = re.compile(r"#[^\n]*")

Import = tuple[str, str]  # a module and a name in it, "" for all of it


@cache
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


class Sources:
    """The package's files as they stand, each read once."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        found, scripts, texts = ((root / PACKAGE.name).rglob(f"*.{kind}") for kind in ("py", "js", "toml"))
        self._files = {".".join(path.relative_to(root).with_suffix("").parts): path for path in found}
        self._packages = {name.rpartition(".")[0] for name in self._files}
        self._scripts, self._worded = set(scripts), set(texts)
        self._text = cache(partial(Path.read_text, encoding="utf-8"))
        self._digest = cache(lambda path: hashlib.sha256(path.read_bytes()).digest())

    def reached(self, wanted: Iterable[Import]) -> list[Path]:
        """Return the files that imports reach, at any depth, with scripts and texts that lie beside them."""
        found: set[Path] = set()
        seen: set[Import] = set()
        waiting = list(wanted)
        while waiting:
            module, name = waiting.pop()
            if module not in self._packages:
                name = ""  # all of a plain module is read
            if (module, name) in seen:
                continue
            seen.add((module, name))
            parent, _, last = module.rpartition(".")
            if parent:  # which runs before
                waiting.append((parent, last))
            path = self._files.get(f"{module}.__init__" if module in self._packages else module)
            if path is not None:
                found.add(path)
            inner = f"{module}.{name}"
            if module in self._packages and (inner in self._files or inner in self._packages):
                waiting.append((inner, ""))
            elif path is not None and not name.startswith("__"):  # a package's version depends on nothing
                bound = imports_of(self._text(path))
                chosen = [of for of, given in bound.items() if given == name]
                waiting += chosen if chosen and module in self._packages else bound
        folders = {path.parent for path in found}
        texts = self._worded & {path.with_suffix(".toml") for path in found}  # of a module of the same name
        return sorted(found | texts | {script for script in self._scripts if script.parent in folders})

    def data(self, code: str, modules: Sequence[Path]) -> list[Path]:
        """Return the files of the data that some code and modules read, as in `DATA / "paper"`."""
        texts = [code, *map(self._text, modules)]
        places = [self.root / "data" / name for text in texts for name in set(_NAMED.findall(text))]
        return sorted({path for place in places for path in (place, *place.rglob("*")) if path.is_file()})

    def sha256(self, paths: Sequence[Path]) -> str:
        """Return SHA-256 over the names and contents of files under the root, in the order given."""
        total = hashlib.sha256()
        for path in paths:
            total.update(path.relative_to(self.root).as_posix().encode() + b"\0" + self._digest(path))
        return total.hexdigest()


def engine_sources(roots: Sequence[str] = ROOTS) -> list[Path]:
    """Return the files that results depend on, by following imports from some: by default a run's."""
    names = (f"{PACKAGE.name}.{root.removesuffix('.py').replace('/', '.')}" for root in roots)
    return Sources().reached((name, "") for name in names)


def engine_sha256(roots: Sequence[str] = ROOTS) -> str:
    """Return SHA-256 over the names and contents of the engine's sources."""
    return Sources().sha256(engine_sources(roots))


def package_sha256() -> str:
    """Return SHA-256 over all of the package's modules and its data: what two machines must share."""
    found = (*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.toml"), *DATA.rglob("*"))
    return Sources().sha256(sorted({path for path in found if path.is_file()}))


def package_versions() -> dict[str, str]:
    """Return the versions of what a run's files depend on, beside the engine."""
    from importlib.metadata import version

    packages = {name: version(name) for name in ("numpy", "numba", "pyarrow")}
    return {"python": platform.python_version()} | packages
