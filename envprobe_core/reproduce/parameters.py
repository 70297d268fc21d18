"""The parameters of a section: read from its notebook, checked before anything runs.

A notebook's cell tagged ``parameters`` holds one line a parameter::

    seeds: str = "0:220"  # episodes of each cell; accepts seeds
    resamples: int = 10_000  # bootstrap resamples; accepts 100..100000
    measure: str = "terminal"  # which accuracy; accepts one of mean terminal

What follows ``accepts`` is an interval for numbers, a list of words, or a name of `VOCABULARIES`.
Papermill's own inspection is neither strict about types nor does it know bounds, and importing it
takes longer than everything here, so that the cell is read with `ast` instead.
"""

import ast
import io
import re
import tokenize
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from envprobe_core.errors import InputError, look_up

Value = bool | int | float | str

TYPES: dict[str, type] = {"bool": bool, "int": int, "float": float, "str": str}


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
        if self.kind == "bool":
            return
        if self.accepts in VOCABULARIES:
            try:
                VOCABULARIES[self.accepts](str(value))
            except ValueError as error:
                raise InputError(f"parameter {self.name}: {error}") from None
        elif self.accepts.startswith("one of "):
            accepted = str(value) in self.accepts.split()[2:]
        else:
            low, high = (float(bound) for bound in self.accepts.split(".."))
            accepted = low <= value <= high  # type: ignore[operator]  # no number is text
        if self.accepts not in VOCABULARIES and not accepted:
            raise InputError(f"parameter {self.name}: {value!r} given; accepted: {self.accepts}")


_ARTICLE = {"bool": "true or false", "int": "a whole number", "float": "a number", "str": "text"}
_COMMENT = re.compile(r"#\s*(?P<description>.+?)\s*;\s*accepts\s+(?P<accepts>.+?)\s*$")
_INTERVAL = re.compile(r"-?[\d_.]*\d\.\.-?[\d_.]*\d$")


def read_parameters(source: str, where: str) -> dict[str, Parameter]:
    """The parameters that the source of a ``parameters`` cell declares, by name, in the cell's order.

    Raises:
        InputError: if a line is not of the form the module describes, or its default is not
            accepted by its own rule.
    """
    try:
        tree = ast.parse(source)
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (SyntaxError, ValueError, tokenize.TokenError, RecursionError, MemoryError) as error:
        raise InputError(f"notebook {where}: its parameters cell is no Python ({error})") from None
    comments = {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}
    read = (_read_line(node, comments.get(node.end_lineno or 0, ""), where) for node in tree.body)
    return {parameter.name: parameter for parameter in read}


def _read_line(node: ast.stmt, comment: str, where: str) -> Parameter:
    """One parameter from one statement and the comment behind it."""
    form = "`name: type = default  # description; accepts RULE`"
    fault = f"notebook {where}: line {node.lineno} of its parameters cell"
    match node:
        case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id=kind), value=ast.expr() as given):
            pass
        case _:
            raise InputError(f"{fault} is not of the form {form}")
    match = _COMMENT.match(comment)
    if kind not in TYPES or match is None:
        raise InputError(f"{fault} ({name}) is not of the form {form} with a type of {list(TYPES)}")
    accepts = match["accepts"]
    known = accepts in VOCABULARIES or accepts.startswith("one of ") or _INTERVAL.match(accepts)
    if not (known or (kind == "bool" and accepts == "true or false")):
        raise InputError(f"{fault} ({name}): no rule {accepts!r}")
    try:
        default = ast.literal_eval(given)
    except ValueError:
        default = ast.unparse(given)
    if type(default) is not TYPES[kind]:
        raise InputError(f"{fault} ({name}): the default {default!r} is not {_ARTICLE[kind]}")
    parameter = Parameter(name, kind, default, match["description"], accepts)
    try:
        parameter.check(default)
    except InputError as error:
        raise InputError(f"notebook {where}: {error}") from None
    return parameter


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


# what the rules look names up in takes a second to import


def _seeds(text: str) -> None:
    from envprobe_core.cells import parse_seeds

    parse_seeds(text)


def _one(kind: str, name: str) -> None:
    from envprobe_core.cells import POLICIES, PROFILES, REGIMES, WORLDS

    known = {"world": WORLDS, "policy": POLICIES, "regime": REGIMES, "profile": PROFILES}
    look_up(kind, name, known[kind])


def _each(kind: str, text: str) -> None:
    """Check names between blanks and commas."""
    names = text.replace(",", " ").split()
    if not names:
        raise ValueError("no name given")
    if len(set(names)) < len(names):
        raise ValueError(f"{text!r} names one twice")
    for name in names:
        _one(kind, name)


def _protocols(text: str) -> None:
    from envprobe_core.protocols import parse_protocol

    # a protocol with switches turned, as `paper:clock=stands,end=success`, has commas of its own
    names = text.split() if ":" in text else text.replace(",", " ").split()
    found = [parse_protocol(name).name for name in names]
    if len(set(found)) < len(found) or not found:
        raise ValueError(f"{text!r} names {'one twice' if found else 'none'}")


def _replay(text: str) -> None:
    from envprobe_core.llm.recorded import find_replay
    from envprobe_core.llm.store import read_replay

    read_replay(find_replay(text))


VOCABULARIES: dict[str, Callable[[str], None]] = {
    "seeds": _seeds,
    "worlds": partial(_each, "world"),
    "policies": partial(_each, "policy"),
    "protocols": _protocols,
    "regime": partial(_one, "regime"),
    "profile": partial(_one, "profile"),
    "replay": _replay,
}
"""Named rules: each takes the text and raises ``ValueError`` saying what was wrong with it."""
