"""The sections of the paper: where each notebook is, what it declares, whether it must run again.

A section is one notebook in `notebooks/`; its executed twin lies in `book/executed/` and carries, under the
metadata key `envprobe`, the parameters it ran with and a hash of everything it was made from: its cells, the
core, the book's package, the data, the lock. A section is run again when that hash would differ, so that
neither a database nor file times are needed, and results with changed parameters never pass for the book's
own: the next plain run has another hash and replaces them.

A notebook's cell tagged ``parameters`` holds one line a parameter::

    seeds: str = "0:220"  # episodes of each cell; accepts seeds
    resamples: int = 10_000  # bootstrap resamples; accepts 100..100000
    measure: str = "terminal"  # which accuracy; accepts one of mean terminal

What follows ``accepts`` is an interval for numbers, a list of words, ``true or false``, or one of
`VOCABULARIES`; ``seeds outside 0:9`` leaves some out, ``protocols, one with answers as in paper`` needs one.
Papermill's own inspection knows neither types nor bounds.
"""

import hashlib
import json
import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from envprobe_core import __version__
from envprobe_core.errors import InputError, look_up
from envprobe_core.sources import ROOT, files_sha256

Value = bool | int | float | str

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
KINDS: dict[str, tuple[str, str, Callable[[str], Value]]] = {
    "bool": ("true or false", r"True|False", lambda text: {"true": True, "false": False}[text.lower()]),
    "int": ("a whole number", r"-?\d[\d_]*", int),
    "float": ("a number", r"-?[\d_]*\.?\d[\d_]*", float),
    "str": ("text", r'"[^"]*"', str),
}
"""What a value is called, how a default is written, and how what a reader wrote is read."""
_COLLECTED = re.compile(r'\bcollect\(\s*"([\w-]+)"')
TYPES: dict[str, Any] = {"bool": bool, "int": int, "float": int | float, "str": str}
VOCABULARIES = ("seeds", "worlds", "policies", "protocols", "regime", "profile", "replay")
"""Rules for texts that `check_words` knows."""
_LINE = re.compile(
    rf"(?P<name>[a-z_]\w*): (?P<kind>{'|'.join(KINDS)}) = (?P<default>.+?)  # (?P<description>.+?); accepts "
    rf"(?P<accepts>true or false|one of .+|-?[\d_.]*\d\.\.-?[\d_.]*\d|seeds outside \d+:\d+|"
    rf"protocols, one with (?:answers|an optimum) as in paper|{'|'.join(VOCABULARIES)})\s*"
)


# --- parameters -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parameter:
    """One parameter of a section."""

    name: str  # in the notebook and after ``-p``
    kind: str  # one of `KINDS`
    default: Value  # the value the book is built with
    description: str
    accepts: str  # the rule of the values accepted (see the module)
    where: str  # the section's name

    def parse(self, text: str) -> Value:
        """The typed value of what a reader wrote after ``NAME=``; `InputError` if it does not fit."""
        try:
            value = KINDS[self.kind][2](text)
        except (ValueError, KeyError):
            raise self._refused(text) from None
        return self.check(value, text)

    def check(self, value: object, text: str | None = None) -> Value:
        """A value if it is of the parameter's type and its rule accepts it; titles in it as their names.

        Args:
            value: as a notebook's cell has it.
            text: what a reader wrote for it, which a refusal repeats.

        Raises:
            InputError: if it does not fit.
        """
        refused = self._refused(value if text is None else text)
        kind = TYPES[self.kind]  # a truth value is a whole number to Python, and not to a reader
        if isinstance(value, bool) is not (kind is bool) or not isinstance(value, kind):
            raise refused
        if ".." in self.accepts:
            low, high = map(float, self.accepts.split(".."))
            fits = not isinstance(value, str) and low <= value <= high
        elif self.accepts.split()[0].strip(",") in VOCABULARIES:
            try:
                value = check_words(self.accepts, str(value))
            except InputError as error:
                raise InputError(f"parameter {self.name} of {self.where}: {error}") from None
            fits = True
        else:
            fits = isinstance(value, bool) or value in self.accepts.split()[2:]
        if not fits:
            raise refused
        return value  # type: ignore[return-value]

    def _refused(self, given: object) -> InputError:
        accepted = ", ".join(dict.fromkeys((KINDS[self.kind][0], self.accepts)))  # of a truth value alike
        return InputError(f"parameter {self.name} of {self.where}: {given!r} given; accepted: {accepted}")


def read_parameters(source: str, where: str) -> dict[str, Parameter]:
    """The parameters that a ``parameters`` cell declares, by name, in the cell's order.

    Raises:
        InputError: if a line is not of the form the module describes, or its own rule refuses its default.
    """
    found = {}
    for number, line in enumerate(source.splitlines(), 1):
        match, fault = _LINE.fullmatch(line), f"notebook {where}: line {number} of its parameters"
        if match and re.fullmatch(KINDS[match["kind"]][1], match["default"]):
            one = Parameter(**match.groupdict(), where=where)
            try:
                found[one.name] = replace(one, default=one.parse(match["default"].strip('"')))
            except InputError as error:
                raise InputError(f"{fault}: {error}") from None
        elif line.strip():
            raise InputError(
                f"{fault} is not of the form `name: type = default  # description; accepts RULE`, with a "
                f"type of {', '.join(KINDS)} and a RULE as in `0..9`, `one of a b`, `true or false` or one "
                f"of {', '.join(VOCABULARIES)}"
            )
    return found


def parse_assignments(assignments: Iterable[str]) -> dict[str, str]:
    """Split what was given as ``-p NAME=VALUE``; `InputError` if a text is none, or a name comes twice."""
    given: dict[str, str] = {}
    for text in assignments:
        name, equals, value = map(str.strip, text.partition("="))
        if not equals or not name.isidentifier():
            raise InputError(f"-p {text!r}: write it as NAME=VALUE")
        if name in given:
            raise InputError(f"-p {name}: given twice")
        given[name] = value
    return given


def resolve(declared: Mapping[str, Parameter], given: Mapping[str, str]) -> dict[str, Value]:
    """All values of one section: the reader's, else the defaults; `InputError` if one does not fit."""
    return {
        name: parameter.parse(given[name]) if name in given else parameter.default
        for name, parameter in declared.items()
    }


def check_words(rule: str, text: str) -> str:
    """A text that a rule of `VOCABULARIES` accepts, with names where it has titles.

    An `InputError` says what is wrong with it.

    >>> check_words("protocols", "as written, partial start")
    'paper observed'
    """
    from envprobe_book.analyses.small_worlds import can_be_solved
    from envprobe_core import conditions  # which takes a second

    readers = {
        "policies": conditions.find_policies, "protocols": conditions.find_protocols,
        "worlds": conditions.find_worlds,
    }  # fmt: skip
    one_with = {"answers as in paper": lambda one: one.answer == "delivered"}
    one_with["an optimum as in paper"] = can_be_solved
    kind, _, wanted = rule.partition(", one with ")
    if kind in readers:
        found = readers[kind](text)
        if not any(map(one_with.get(wanted, bool), found)):
            raise InputError(f"{text!r} given; accepted: {rule}")
        names = [getattr(one, "name", one) for one in found]
        # what is right already stays as it was written, so that the same values give the same digest
        return text if conditions.split_names(text) == names else " ".join(names)
    elif rule == "replay":
        from envprobe_core.llm.replays import read_replay
        from envprobe_core.llm.running import find_replay

        read_replay(find_replay(text))
    elif rule in ("regime", "profile"):
        {"regime": conditions.find_regime, "profile": conditions.find_profile}[rule](text)
    else:
        seeds, outside = conditions.parse_seeds(text), rule.partition(" outside ")[2]
        if outside and (taken := {*seeds.tolist()} & {*conditions.parse_seeds(outside).tolist()}):
            raise InputError(f"{text!r} has seed {min(taken)}; accepted: seeds outside {outside}")
    return text


# --- notebooks --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Section:
    """One notebook, as its author wrote it."""

    name: str  # the file's name without its ending; what ``envprobe reproduce`` takes
    path: Path
    parameters: Mapping[str, Parameter]  # by name
    notebook: Mapping[str, Any]  # its JSON
    fault: str = ""  # what is wrong with a malformed notebook, which has neither parameters nor cells

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
            found[path.stem] = Section(path.stem, path, {}, {"cells": []}, str(error))
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
        values, output = resolve(section.parameters, given), executed / section.path.name
        digest, code_digest = section_digests(section, values, shared)
        if others := [look_up("section", name, sections) for name in section.collects]:
            own = [section_digests(one, resolve(one.parameters, given), shared)[0] for one in others]
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
