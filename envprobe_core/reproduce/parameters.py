"""The parameters of a section: read from its notebook, checked before anything runs.

A notebook's cell tagged ``parameters`` holds one line a parameter::

    seeds: str = "0:220"  # episodes of each cell; accepts seeds
    resamples: int = 10_000  # bootstrap resamples; accepts 100..100000
    measure: str = "terminal"  # which accuracy; accepts one of mean terminal

What follows ``accepts`` is an interval for numbers, a list of words, ``true or false``, or a name of
`VOCABULARIES`. Papermill's own inspection knows neither types nor bounds.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from envprobe_core.errors import InputError, look_up

Value = bool | int | float | str

TYPES: dict[str, type] = {"bool": bool, "int": int, "float": float, "str": str}
VOCABULARIES = ("seeds", "worlds", "policies", "protocols", "regime", "profile", "replay")
"""Rules for texts that `check_words` knows."""
_ARTICLE = {"bool": "true or false", "int": "a whole number", "float": "a number", "str": "text"}
_LINE = re.compile(
    r"(?P<name>[a-z_]\w*): (?P<kind>\w+) = (?P<default>.+?)  # (?P<description>.+?); accepts (?P<accepts>.+)"
)
_RULE = re.compile(rf"true or false|one of .+|-?[\d_.]*\d\.\.-?[\d_.]*\d|{'|'.join(VOCABULARIES)}")


@dataclass(frozen=True)
class Parameter:
    """One parameter of a section."""

    name: str  # its name in the notebook and after ``-p``
    kind: str  # ``bool``, ``int``, ``float`` or ``str``
    default: Value  # the value the book is built with
    description: str  # what it does, in words
    accepts: str  # the rule of the values accepted (see the module)

    def parse(self, text: str) -> Value:
        """The typed value that a reader wrote as text after ``NAME=``.

        Raises:
            InputError: if it is of the wrong type or out of bounds.
        """
        try:
            if self.kind == "bool":
                value: Value = {"true": True, "false": False}[text.lower()]
            else:
                value = TYPES[self.kind](text)
        except (ValueError, KeyError):
            raise InputError(
                f"parameter {self.name}: {text!r} is not {_ARTICLE[self.kind]}; accepted: {self.accepts}"
            ) from None
        self.check(value)
        return value

    def check(self, value: Value) -> None:
        """Compare a typed value with the rule.

        Raises:
            InputError: if the rule does not accept it.
        """
        if self.accepts in VOCABULARIES:
            try:
                check_words(self.accepts, str(value))
            except ValueError as error:
                raise InputError(f"parameter {self.name}: {error}") from None
            return
        if self.accepts == _ARTICLE["bool"]:
            accepted = isinstance(value, bool)
        elif self.accepts.startswith("one of "):
            accepted = str(value) in self.accepts.split()[2:]
        else:
            low, high = map(float, self.accepts.split(".."))
            accepted = not isinstance(value, str) and low <= value <= high
        if not accepted:
            raise InputError(f"parameter {self.name}: {value!r} given; accepted: {self.accepts}")


def read_parameters(source: str, where: str) -> dict[str, Parameter]:
    """The parameters that the source of a ``parameters`` cell declares, by name, in the cell's order.

    Raises:
        InputError: if a line is not of the form the module describes, or its default is not
            accepted by its own rule.
    """
    found = {}
    for number, line in enumerate(source.splitlines(), 1):
        if not line.strip():
            continue
        match, fault = _LINE.fullmatch(line.rstrip()), f"notebook {where}: line {number} of its parameters"
        if match is None or match["kind"] not in TYPES:
            raise InputError(
                f"{fault} is not of the form `name: type = default  # description; accepts RULE` with a type "
                f"of {', '.join(TYPES)}"
            )
        name, kind, written, description, accepts = match.groups()
        if not _RULE.fullmatch(accepts):
            raise InputError(f"{fault} ({name}): no rule {accepts!r}")
        try:
            default = ast.literal_eval(written)
        except (ValueError, SyntaxError):
            default = None
        if type(default) is not TYPES[kind]:
            raise InputError(f"{fault} ({name}): the default {written} is not {_ARTICLE[kind]}")
        found[name] = Parameter(name, kind, default, description, accepts)
        try:
            found[name].check(default)
        except InputError as error:
            raise InputError(f"{fault}: {error}") from None
    return found


def parse_assignments(assignments: list[str]) -> dict[str, str]:
    """Split what was given as ``-p NAME=VALUE``.

    Raises:
        InputError: if a text has no ``=`` or a name comes twice.
    """
    given: dict[str, str] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise InputError(f"-p {text!r}: write it as NAME=VALUE")
        if name in given:
            raise InputError(f"-p {name}: given twice")
        given[name] = value.strip()
    return given


def resolve(declared: Mapping[str, Parameter], given: Mapping[str, str]) -> dict[str, Value]:
    """All values of one section: the reader's texts, else the defaults; names of no parameter are left out.

    Raises:
        InputError: if a value is not accepted.
    """
    return {
        name: parameter.parse(given[name]) if name in given else parameter.default
        for name, parameter in declared.items()
    }


def check_words(rule: str, text: str) -> None:
    """Check a text by one of `VOCABULARIES`.

    Raises:
        ValueError: saying what was wrong with it.
    """
    from envprobe_core import cells  # which takes a second

    if rule == "seeds":
        cells.parse_seeds(text)
    elif rule == "replay":
        from envprobe_core.llm.recorded import find_replay
        from envprobe_core.llm.store import read_replay

        read_replay(find_replay(text))
    elif rule in ("regime", "profile"):
        look_up(rule, text, cells.REGIMES if rule == "regime" else cells.PROFILES)
    else:
        one, known = ("world", cells.WORLDS) if rule == "worlds" else ("policy", cells.POLICIES)
        found = []
        for name in cells.names(text):
            if rule == "protocols":
                name = cells.parse_protocol(name).name
            else:
                look_up(one, name, known)  # type: ignore[arg-type]
            found.append(name)
        if not found or len(set(found)) < len(found):
            raise ValueError(f"{text!r} names {'one twice' if found else 'none'}")
