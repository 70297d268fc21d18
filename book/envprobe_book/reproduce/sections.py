"""The sections of the paper: where each notebook is, what it declares, whether it must run again.

A section is one notebook in `notebooks/`; its executed twin lies in `book/executed/` and carries, under the
metadata key `envprobe`, the parameters it ran with and a hash of everything it was made from: its cells, the
core, the book's package, the data, the lock. A section is run again when that hash would differ, so that
neither a database nor file times are needed, and results with changed parameters never pass for the book's
own: the next plain run has another hash and replaces them.
"""

import hashlib
import json
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError
from pydantic.fields import FieldInfo

from envprobe_book.reproduce.parameters import Parameters, Value, read_parameters, resolve
from envprobe_core import __version__
from envprobe_core.errors import InputError, look_up
from envprobe_core.sources import ROOT, files_sha256

PARTS = {
    "core": ("envprobe_core/**/*.py", "envprobe_core/**/*.toml"),
    "book": ("book/envprobe_book/**/*.py", "book/envprobe_book/**/*.json", "notebooks/matplotlibrc"),
    "data": ("data/**/*",),
    "lock": ("requirements.txt",),
}
"""What every section depends on, beside its own cells and parameters; its result carries a digest of each."""
METADATA_KEY = "envprobe"
VOLATILE_METADATA = ("papermill", "execution", "ExecuteTime")
"""Cell metadata that tools write while a notebook is opened or run."""
HEADING = re.compile(r"^# +(.*\S)", re.MULTILINE)
_COLLECTED = re.compile(r'\bcollect\(\s*"([\w-]+)"')


# --- notebooks --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Section:
    """One notebook, as its author wrote it."""

    name: str  # the file's name without its ending; what ``envprobe reproduce`` takes
    path: Path
    model: type[Parameters]  # of its parameters
    notebook: Mapping[str, Any]  # its JSON
    fault: str = ""  # what is wrong with a malformed notebook, which has neither parameters nor cells

    @property
    def parameters(self) -> Mapping[str, FieldInfo]:
        """What the model declares, by name."""
        return self.model.model_fields

    @property
    def cells(self) -> Sequence[Mapping[str, Any]]:
        """The notebook's."""
        return self.notebook["cells"]

    @property
    def collects(self) -> list[str]:
        """The sections whose findings it shows (`collect`), which are executed before it."""
        code = "\n".join(cell_source(cell) for cell in self.cells if cell["cell_type"] == "code")
        return list(dict.fromkeys(_COLLECTED.findall(code)))

    @property
    def title(self) -> str:
        """Its first heading, or its fault."""
        texts = (cell_source(cell) for cell in self.cells if cell["cell_type"] == "markdown")
        return next((found[1] for text in texts if (found := HEADING.search(text))), self.fault or self.name)


class _Metadata(BaseModel):
    tags: list[str] = []


class _Cell(BaseModel):
    cell_type: Literal["markdown", "raw"]
    source: str | list[str]
    metadata: _Metadata


class _Code(_Cell):
    cell_type: Literal["code"]  # type: ignore[assignment]
    outputs: list[dict[str, Any]]


class _Notebook(BaseModel):
    """What of a notebook is read here; all else is left to nbformat."""

    nbformat: Literal[4]
    nbformat_minor: int
    cells: list[Annotated[_Code | _Cell, Field(discriminator="cell_type")]]
    metadata: dict[str, Any]


def cell_tags(cell: Mapping[str, Any]) -> list[str]:
    """The tags of a notebook's cell."""
    return list(cell["metadata"].get("tags", ()))


def cell_source(cell: Mapping[str, Any]) -> str:
    """A cell's text, which the format allows to be a list of lines."""
    return "".join(cell["source"])


def as_json(notebook: Mapping[str, Any]) -> str:
    """A notebook as the text of its file."""
    return json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def read_section(path: Path) -> Section:
    """Read one notebook, an ``.ipynb`` file of nbformat 4; an `InputError` names the cell at fault."""
    name = path.stem
    try:
        text = path.read_text(encoding="utf-8")
        _Notebook.model_validate_json(text)
    except (OSError, ValueError) as error:
        fault = f": {error}"
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            place = " ".join(str(part + 1 if isinstance(part, int) else part) for part in first["loc"])
            fault = f", {place.replace('cells', 'cell')}: {first['msg']}" if place else f": {first['msg']}"
        raise InputError(f"notebook {name}: {path.name} cannot be read{fault}") from None
    notebook = json.loads(text)
    tagged = [cell_source(cell) for cell in notebook["cells"] if "parameters" in cell_tags(cell)]
    if len(tagged) > 1:
        raise InputError(f"notebook {name}: more than one cell is tagged parameters")
    return Section(name, path, read_parameters("".join(tagged), name), notebook)


def find_sections(root: Path = ROOT) -> dict[str, Section]:
    """Every section of the checkout, by name, those of malformed notebooks with their fault."""
    if not (paths := sorted((root / "notebooks").glob("*.ipynb"))):
        raise InputError(f"no notebooks in {root / 'notebooks'}: sections are those of a checkout")
    found = {}
    for path in paths:
        try:
            found[path.stem] = read_section(path)
        except InputError as error:
            found[path.stem] = Section(path.stem, path, Parameters, {"cells": []}, str(error))
    return found


# --- what has to run --------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """One section with the values it is to run with."""

    section: Section
    values: Mapping[str, Value]  # every parameter's
    digest: str  # SHA-256 of all that the executed notebook depends on
    code_digest: str  # and of all that its outputs do: text aside
    made_of: Mapping[str, str]  # SHA-256 of each of `PARTS`
    output: Path  # where the executed notebook belongs
    fresh: bool  # whether the notebook there has this digest already
    computed: bool  # whether its outputs are those of this code already

    @property
    def changed(self) -> dict[str, Value]:
        """The values that differ from the section's defaults."""
        declared = self.section.parameters
        return {name: value for name, value in self.values.items() if value != declared[name].default}

    @property
    def record(self) -> dict[str, Any]:
        """What the executed notebook says of its own making."""
        return {
            "section": self.section.name,
            "inputs_sha256": self.digest,
            "code_sha256": self.code_digest,
            "made_of_sha256": dict(self.made_of),
            "parameters": dict(self.values),
            "defaults": {name: parameter.default for name, parameter in self.section.parameters.items()},
            "engine_version": __version__,
        }


def plan(
    names: Sequence[str] = (),
    given: Mapping[str, str] | None = None,
    root: Path = ROOT,
    executed: Path | None = None,
) -> list[Job]:
    """Check every name and value, and find out what has to run: a job a section, those up to date included.

    Args:
        names: sections; all of them if empty.
        given: texts from the reader, applied to every chosen section that has the parameter.
        root: the checkout, or the copy of it that sections are executed from (`frozen`).
        executed: where results belong; by default ``book/executed/`` of the checkout.

    Raises:
        InputError: for an unknown section, a malformed one that is asked for by name, a parameter that no
            chosen section has, or a value not accepted.
    """
    given, executed, sections = given or {}, executed or root / "book" / "executed", find_sections(root)
    chosen = [look_up("section", name, sections) for name in dict.fromkeys(names or sections)]
    collected = [look_up("section", name, sections) for one in chosen for name in one.collects]
    chosen = [*(one for one in collected if one not in chosen), *chosen]
    if names and (faults := [section.fault for section in chosen if section.fault]):
        raise InputError(faults[0])
    known = dict.fromkeys(name for section in chosen for name in section.parameters)
    for name in given:
        if name not in known:
            where = chosen[0].name if len(chosen) == 1 else "any of these sections"
            accepted = f"accepted: {', '.join(known)}" if known else "it has none"
            raise InputError(f"unknown parameter {name!r} of {where}; {accepted}")
    shared, jobs = {part: file_digest(root, patterns) for part, patterns in PARTS.items()}, []
    for section in chosen:
        values, output = resolve(section.model, given), executed / section.path.name
        digest, code_digest = section_digests(section, values, shared)
        if others := [look_up("section", name, sections) for name in section.collects]:
            own = [section_digests(one, resolve(one.model, given), shared)[0] for one in others]
            digest, code_digest = json_sha256([digest, own]), json_sha256([code_digest, own])
        stored = stored_record(output) or {}
        fresh, computed = stored.get("inputs_sha256") == digest, stored.get("code_sha256") == code_digest
        jobs.append(Job(section, values, digest, code_digest, shared, output, fresh, computed))
    return jobs


def file_digest(root: Path, patterns: Iterable[str]) -> str:
    """SHA-256 over names below `root` and bytes of all files that match the globs, compiled modules aside."""
    found = {path for pattern in patterns for path in root.glob(pattern) if path.is_file()}
    return files_sha256(sorted(path for path in found if path.suffix != ".pyc"), root)


def section_digests(
    section: Section, values: Mapping[str, Value], shared: Mapping[str, str]
) -> tuple[str, str]:
    """SHA-256 of all that a section's result depends on, Python's minor version included; and without text.

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
    python = platform.python_version_tuple()[:2]
    code = [cell for cell in cells if cell[0] == "code"]
    code_digest = json_sha256([section.name, code, dict(values), shared, python])
    return json_sha256([code_digest, cells]), code_digest


def json_sha256(content: Any) -> str:
    """SHA-256 of what JSON can hold."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def stored_record(path: Path) -> dict[str, Any] | None:
    """What an executed notebook says of its own making; None if it is absent or was altered since."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        record = notebook["metadata"][METADATA_KEY]
        intact = record.pop("contents_sha256") == json_sha256(notebook)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return record if intact else None
