"""The sections of the paper: where each notebook is, what it declares, whether it must run again.

A section is one notebook in `notebooks/`; its executed twin lies in `book/executed/` and carries, under the
metadata key `envprobe`, the parameters it ran with and a hash of everything it was made from: its cells,
those of the package's files that its imports reach, the data that it or they read, the lock. A section is run
again when that hash would differ, so that neither a database nor file times are needed, and results with
changed parameters never pass for the book's own: the next plain run has another hash and replaces them.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from envprobe_core import __version__
from envprobe_core.errors import InputError, look_up
from envprobe_core.reproduce.parameters import Parameter, Value, read_parameters, resolve
from envprobe_core.sources import ROOT, Sources, imports_of

SHARED = ("notebooks/matplotlibrc", "requirements.txt", "envprobe_core/reproduce/execution.py")
"""What every section depends on, beside its own cells, parameters, imports and data."""

METADATA_KEY = "envprobe"
VOLATILE_METADATA = ("papermill", "execution", "ExecuteTime")
"""Cell metadata that tools write while a notebook is opened or run."""


@dataclass(frozen=True)
class Section:
    """One notebook, as its author wrote it."""

    name: str  # the file's name without its ending; what ``envprobe reproduce`` takes
    title: str  # its first heading
    path: Path  # the file
    parameters: Mapping[str, Parameter]  # what its ``parameters`` cell declares, by name
    cells: Sequence[Mapping[str, Any]]  # the raw cells of the notebook's JSON


@dataclass(frozen=True)
class Job:
    """One section with the values it is to run with."""

    section: Section
    values: Mapping[str, Value]  # every parameter's value
    digest: str  # SHA-256 of all that the result depends on
    output: Path  # where the executed notebook belongs
    fresh: bool  # whether the notebook there has this digest already

    @property
    def changed(self) -> dict[str, Value]:
        """The values that differ from the section's defaults."""
        declared = self.section.parameters
        return {name: v for name, v in self.values.items() if v != declared[name].default}

    @property
    def record(self) -> dict[str, Any]:
        """What the executed notebook says of its own making."""
        declared = self.section.parameters.values()
        return {
            "section": self.section.name,
            "inputs_sha256": self.digest,
            "parameters": dict(self.values),
            "defaults": {parameter.name: parameter.default for parameter in declared},
            "engine_version": __version__,
        }


class _Metadata(BaseModel):
    tags: list[str] = []


class _Cell(BaseModel):
    cell_type: Literal["code", "markdown", "raw"]
    source: str | list[str]
    metadata: _Metadata


class _Notebook(BaseModel):
    """What of a notebook is read here; all else is left to nbformat."""

    nbformat: Literal[4]
    cells: list[_Cell]
    metadata: dict[str, Any]


class Record(BaseModel):
    """What an executed notebook says of its own making, and SHA-256 of all else in it."""

    section: str
    inputs_sha256: str
    parameters: dict[str, Value]
    defaults: dict[str, Value]
    engine_version: str
    contents_sha256: str


def read_section(path: Path) -> Section:
    """Read one notebook, an ``.ipynb`` file of nbformat 4.

    Raises:
        InputError: if it is no notebook, or its ``parameters`` cell is malformed; it names the cell.
    """
    name = path.stem
    try:
        text = path.read_text(encoding="utf-8")
        _Notebook.model_validate_json(text)
        cells = json.loads(text)["cells"]
    except ValidationError as error:
        fault = error.errors()[0]
        where = [str(part + 1 if isinstance(part, int) else part) for part in fault["loc"]]
        at = f", {' '.join(where).replace('cells ', 'cell ', 1)}" if where else ""
        raise InputError(f"notebook {name}: {path.name} cannot be read{at}: {fault['msg']}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"notebook {name}: {path.name} cannot be read: {error}") from None
    tagged = [cell_source(cell) for cell in cells if "parameters" in cell_tags(cell)]
    if len(tagged) > 1:
        raise InputError(f"notebook {name}: more than one cell is tagged parameters")
    written = "\n".join(cell_source(cell) for cell in cells if cell["cell_type"] == "markdown")
    title = next((line[2:].strip() for line in written.splitlines() if line.startswith("# ")), name)
    return Section(name, title, path, read_parameters("".join(tagged), name), cells)


def find_sections(root: Path = ROOT, faults: dict[str, str] | None = None) -> dict[str, Section]:
    """Every section of the checkout, by name.

    Args:
        faults: takes what is wrong with each malformed notebook, by name; without it, the first is raised.

    Raises:
        InputError: if there is no notebook, or one is malformed.
    """
    paths = sorted((root / "notebooks").glob("*.ipynb"))
    if not paths:
        raise InputError(f"no notebooks in {root / 'notebooks'}: sections are those of a checkout")
    found = {}
    for path in paths:
        try:
            found[path.stem] = read_section(path)
        except InputError as error:
            if faults is None:
                raise
            faults[path.stem] = str(error)
    return found


def plan(
    names: Sequence[str] = (),
    given: Mapping[str, str] | None = None,
    root: Path = ROOT,
    executed: Path | None = None,
    faults: dict[str, str] | None = None,
) -> list[Job]:
    """Check every name and value, and find out what has to run: a job a section, those up to date included.

    Args:
        names: sections; none means all.
        executed: the folder of executed notebooks; by default the book's.
        faults: as in `find_sections`, where all sections are meant.

    Raises:
        InputError: for an unknown or malformed section, a parameter that none of the sections has, or a value
            that is not accepted.
    """
    given = given or {}
    executed = executed or root / "book" / "executed"
    broken: dict[str, str] = {}
    sections = find_sections(root, broken)
    if wrong := [fault for name, fault in broken.items() if name in names or (not names and faults is None)]:
        raise InputError(wrong[0])
    if not names and faults is not None:
        faults.update(broken)
    chosen = [look_up("section", name, sections) for name in dict.fromkeys(names or sections)]
    known = dict.fromkeys(name for section in chosen for name in section.parameters)
    for name in given:
        if name not in known:
            where = chosen[0].name if len(chosen) == 1 else "any of these sections"
            accepted = f"accepted: {', '.join(known)}" if known else "it has none"
            raise InputError(f"unknown parameter {name!r} of {where}; {accepted}")
    shared, sources = file_digest(root, SHARED), Sources(root)
    jobs = []
    for section in chosen:
        values = resolve(section.parameters, given)
        digest = section_digest(section, values, shared, sources)
        output = executed / section.path.name
        stored = stored_record(output)
        fresh = stored is not None and stored["inputs_sha256"] == digest
        jobs.append(Job(section, values, digest, output, fresh))
    return jobs


def file_digest(root: Path, patterns: Iterable[str]) -> str:
    """SHA-256 over names below `root` and bytes of all files that match the globs, compiled modules aside."""
    found = {path for pattern in patterns for path in root.glob(pattern) if path.is_file()}
    return Sources(root).sha256(sorted(path for path in found if path.suffix != ".pyc"))


def section_digest(section: Section, values: Mapping[str, Value], shared: str, sources: Sources) -> str:
    """SHA-256 of all that a section's result depends on, Python's minor version included.

    Outputs, execution counts and cell ids do not enter: a notebook that was only opened and run
    is the same section.
    """
    cells = [
        [
            cell["cell_type"],
            cell_source(cell),
            {key: v for key, v in cell["metadata"].items() if key not in VOLATILE_METADATA},
            cell.get("attachments"),
        ]
        for cell in section.cells
    ]
    python = ".".join(platform.python_version_tuple()[:2])
    package = sources.sha256(reach(section, sources))
    content = json.dumps([section.name, cells, dict(values), shared, package, python], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def reach(section: Section, sources: Sources) -> list[Path]:
    """Return the package's files that a section's imports reach, and the data that it or they read."""
    code = "\n".join(cell_source(cell) for cell in section.cells if cell["cell_type"] == "code")
    modules = sources.reached(imports_of(code))
    return [*modules, *sources.data(code, modules)]


def contents_sha256(notebook: Mapping[str, Any]) -> str:
    """SHA-256 of an executed notebook, the place that holds this hash aside."""
    record = {name: v for name, v in notebook["metadata"][METADATA_KEY].items() if name != "contents_sha256"}
    whole = {**notebook, "metadata": {**notebook["metadata"], METADATA_KEY: record}}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def stored_record(path: Path) -> dict[str, Any] | None:
    """What an executed notebook says of its own making; nothing if it is not there or was altered since."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        record = Record.model_validate(notebook["metadata"][METADATA_KEY])
        altered = contents_sha256(notebook) != record.contents_sha256
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return None if altered else record.model_dump()


def cell_tags(cell: Mapping[str, Any]) -> list[str]:
    """The tags of a notebook's cell."""
    return list(cell["metadata"].get("tags", ()))


def cell_source(cell: Mapping[str, Any]) -> str:
    """A cell's text, which the format allows to be a list of lines."""
    return "".join(cell["source"])
