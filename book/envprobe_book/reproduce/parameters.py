"""A section's parameters: one pydantic model, which `reproduce`, papermill and JupyterLab go through.

The model is made of the notebook's cell tagged ``parameters``, a line a parameter::

    seeds: str = "0:220"  # episodes of each cell; accepts seeds
    resamples: int = 10_000  # bootstrap resamples; accepts 100..100000
    measure: str = "terminal"  # which accuracy; accepts one of mean terminal

What follows ``accepts`` is an interval for numbers, a list of words, ``true or false``, or one of
`VOCABULARIES`; ``seeds outside 0:9`` leaves some out, ``protocols, one with answers`` needs one.
Papermill's own inspection knows neither types nor bounds.
"""

import ast
import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo

from envprobe_core.errors import InputError

Value = bool | int | float | str
KINDS = {"bool": "true or false", "int": "a whole number", "float": "a number", "str": "text"}
VOCABULARIES = ("seeds", "worlds", "policies", "protocols", "regime", "profile", "replay")
"""Rules for texts that `check_words` knows."""
_INTERVAL = r"-?[\d_.]*\d\.\.-?[\d_.]*\d"
_WORDS = r"one of .+|seeds outside \d+:\d+|protocols, one with (?:answers|an optimum)"
RULES = {
    "bool": "true or false", "int": _INTERVAL, "float": _INTERVAL, "str": "|".join((_WORDS, *VOCABULARIES)),
}  # fmt: skip
_LINE = re.compile(
    rf"(?P<name>[a-z]\w*): (?P<kind>{'|'.join(KINDS)}) = (?P<default>.+?)  # (?P<about>.+?); "
    r"accepts (?P<rule>.+?)\s*"
)


class Parameters(BaseModel):
    """The values of a section's parameters: of their types as they are, and of no other name."""

    model_config = ConfigDict(strict=True, extra="forbid", validate_default=True)


def accepted(field: FieldInfo) -> str:
    """The rule of the values that a parameter accepts, as the notebook writes it."""
    return str((field.json_schema_extra or {})["accepts"])  # type: ignore[index]


def read_parameters(source: str, where: str) -> type[Parameters]:
    """The model of what a ``parameters`` cell declares, in the cell's order; its name is the section's.

    Raises:
        InputError: if a line is not of the form the module describes, or its own rule refuses its default.
    """
    found: dict[str, Any] = {}
    for number, line in enumerate(source.splitlines(), 1):
        if not line.strip():
            continue
        place, field = f"notebook {where}: line {number} of its parameters", _field(line)
        if field is None:
            raise InputError(
                f"{place} is not of the form `name: type = default  # description; accepts RULE`, with a "
                f"type of {', '.join(KINDS)} and a RULE as in `0..9`, `one of a b`, `true or false` or one "
                f"of {', '.join(VOCABULARIES)}"
            )
        try:
            defaults = check(create_model(where, __base__=Parameters, **field), {})
        except InputError as error:
            raise InputError(f"{place}: {error}") from None
        found |= {name: (annotation, defaults[name]) for name, (annotation, _) in field.items()}
    return create_model(where, __base__=Parameters, **found)


def _field(line: str) -> dict[str, Any] | None:
    """The name that a line declares, with its type and default; None if it is not of the form."""
    match = _LINE.fullmatch(line)
    if match is None or not re.fullmatch(RULES[match["kind"]], match["rule"]):
        return None
    try:
        default = ast.literal_eval(match["default"])
    except (ValueError, SyntaxError):
        return None
    return {match["name"]: (_annotation(match["kind"], match["rule"], match["about"]), default)}


def _annotation(kind: str, rule: str, about: str) -> Any:
    """The type of a field whose values a rule accepts."""
    named: dict[str, Any] = {"description": about, "json_schema_extra": {"accepts": rule}}
    if rule.startswith("one of "):
        return Annotated[Literal[tuple(rule.split()[2:])], Field(**named)]
    own = {"bool": bool, "int": int, "float": float, "str": str}[kind]
    if ".." in rule:
        low, high = map(float, rule.split(".."))
        return Annotated[own, Field(ge=low, le=high, **named)]
    if rule.split()[0].strip(",") in VOCABULARIES:
        return Annotated[own, AfterValidator(partial(check_words, rule)), Field(**named)]
    return Annotated[own, Field(**named)]


def check(model: type[Parameters], values: Mapping[str, object]) -> dict[str, Value]:
    """All values of a section: those that are given, titles in them as their names, else the defaults.

    Raises:
        InputError: for a name that is not declared, or a value that is not of its type or not accepted.

    >>> check(read_parameters("n: int = 3  # how many; accepts 1..10", "demo"), {"n": 11})
    Traceback (most recent call last):
    envprobe_core.errors.InputError: parameter n of demo: 11 given; accepted: a whole number, 1..10
    """
    try:
        return model.model_validate(values).model_dump()
    except ValidationError as error:
        fault = error.errors()[0]
    name = str(fault["loc"][0])
    if (field := model.model_fields.get(name)) is None:
        known = ", ".join(model.model_fields)
        raise InputError(f"unknown parameter {name!r} of {model.__name__}; accepted: {known}")
    if isinstance(own := fault.get("ctx", {}).get("error"), InputError):
        raise InputError(f"parameter {name} of {model.__name__}: {own}")
    rule = ", ".join(dict.fromkeys((KINDS[kind_of(field)], accepted(field))))  # of a truth value alike
    raise InputError(f"parameter {name} of {model.__name__}: {fault['input']!r} given; accepted: {rule}")


def kind_of(field: FieldInfo) -> str:
    """The name of a parameter's type."""
    return getattr(field.annotation, "__name__", "") if field.annotation in (bool, int, float) else "str"


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


def resolve(model: type[Parameters], given: Mapping[str, str]) -> dict[str, Value]:
    """All values of one section, from what a reader wrote; what it does not declare is another section's."""
    own = {name: field for name, field in model.model_fields.items() if name in given}
    return check(model, {name: _read(field, given[name]) for name, field in own.items()})


def _read(field: FieldInfo, text: str) -> object:
    """What a reader's text stands for; the text itself, which is refused, where it is of another type."""
    try:
        if field.annotation is bool:
            return {"true": True, "false": False}[text.lower()]
        return field.annotation(text) if field.annotation in (int, float) else text
    except (ValueError, KeyError):
        return text


def check_words(rule: str, text: str) -> str:
    """A text that a rule of `VOCABULARIES` accepts; worlds and protocols as pages call them.

    So the same values give the same digest, whichever of its names each was given by. An `InputError` says
    what is wrong with it.

    >>> check_words("protocols", "paper observed"), check_words("worlds", "tooldag graphs")
    ('as written, partial start', 'tools, graphs')
    """
    from envprobe_book.analyses.small_worlds import can_be_solved
    from envprobe_core import conditions  # which takes a second
    from envprobe_core.protocols import TITLES
    from envprobe_core.worlds import WORLDS

    one_with = {"": bool, "answers": lambda one: one.answer == "delivered", "an optimum": can_be_solved}
    kind, _, wanted = rule.partition(", one with ")
    if kind == "policies":
        written = " ".join(one.name for one in conditions.find_policies(text))
    elif kind == "worlds":
        written = ", ".join(WORLDS.get(name, name) for name in conditions.find_worlds(text))
    elif kind == "protocols":
        found = conditions.find_protocols(text)
        if not any(map(one_with[wanted], found)):
            raise InputError(f"{text!r} given; accepted: {rule}")
        parted = [one.name.partition(":") for one in found]
        between = " " if any(colon for _, colon, _ in parted) else ", "  # switches have commas of their own
        written = between.join(f"{TITLES[base]}{colon}{switches}" for base, colon, switches in parted)
    if kind in ("policies", "worlds", "protocols"):
        if not written:
            raise InputError(f"{text!r} given; accepted: {rule}")
        return written
    if rule == "replay":
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
