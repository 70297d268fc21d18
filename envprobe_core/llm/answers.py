"""Answers of a language model: their schema, what each part means, how they are checked, and how applied.

A belief update is one JSON object of five keys, short enough that a whole table fits in 512 tokens:

    {"set": "3:1,0,95;12:?,0,0", "fade": 1, "act": "call(4)", "risk": 0, "why": "4:2,1,1"}

* `set`: only the fields whose entry changes, `index:value,staleness,confidence`, in whole steps and percents;
  `?` is an unknown value. From the second prompts on a row gives the step of the evidence, not its age.
* `fade`: by how many percent the confidence of every other field falls (not that of a field just told).
* `act`: the proposed action.
* `risk`: how likely it is to fail, 0 low, 1 medium, 2 high.
* `why`: the fields the action depends on, `index:criticality,used,steps`: criticality 0, 1, 2 (low, medium,
  high), whether the action uses it now, for how many later steps it is required. It is read where the
  protocol takes c and d from the agent's report; a field that is not listed reports nothing.

What fails a check is an `InvalidAnswer`, whatever the text was. An answer is never applied in part.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from envprobe_core.compiled.records import CERTAIN, NONE, STALENESS_LIMIT, UNKNOWN, WAIT
from envprobe_core.llm.calls import written
from envprobe_core.worlds.base import Floats, Ints, World

MOST_REASONS = 8
HIGHEST_CRITICALITY = 2
REQUIRED_STEPS = 3.0  # d = .5 used + .5 min(1, steps / 3)
MOST_STEPS = 999_999  # that are read; beyond REQUIRED_STEPS they make no difference
WAITING, UNKNOWN_SIGN = "wait", "?"
LONGEST_ANSWER = 4096  # characters; the longest update of the largest world has fewer than 800
SHOWN = 60  # characters of an answer that a message repeats
_ROW = re.compile(
    r" *([0-9]{1,3}) *: *(\?|-?[0-9]{1,6}) *, *(-?[0-9]{1,6}) *, *(-?[0-9]{1,6}) *%? *", re.ASCII
)
_HIGHEST = {  # of a row's three numbers; a value's is the field's own
    "set": (("value", None), ("staleness", STALENESS_LIMIT), ("confidence", CERTAIN)),
    "why": (("criticality", HIGHEST_CRITICALITY), ("used", 1), ("steps", MOST_STEPS)),
}

Row = tuple[int, int, int, int]


class InvalidAnswer(ValueError):
    """An answer that cannot be used; the message says why, in words the model can act on."""


class _Answer(BaseModel):
    """One JSON object with exactly these keys and types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class UpdateAnswer(_Answer):
    """A belief update, as it is written; beliefs first, as models write keys in this order."""

    set: str
    fade: Annotated[int, Field(ge=0, le=CERTAIN)]
    act: str
    risk: Literal[0, 1, 2]
    why: str = ""


@dataclass(frozen=True)
class Update:
    """A checked belief update."""

    entries: tuple[Row, ...] = ()  # (field, value, staleness, confidence), each field at most once
    fade: int = 0  # percents by which the confidence of every other field falls
    action: int = WAIT  # the proposed action
    risk: int = 0  # 0, 1 or 2
    reasons: tuple[Row, ...] = ()  # (field, criticality, used, steps), each field at most once


class Verdict(_Answer):
    """A judge's verdict: whether it overrides, and which candidate is probed then (NONE: none)."""

    override: bool
    field: int


NO_UPDATE, STANDS = Update(), Verdict(override=False, field=NONE)
"""What an answer that cannot be used comes to: nothing changes, and the score's decision stands."""

# ---------------------------------------------------------------- schemas

_STEP, _PERCENT = "[1-9]?[0-9]", "(100|[1-9]?[0-9])"
_TEXT, _WHOLE = {"type": "string"}, {"type": "integer"}


def _strict(**properties: dict[str, Any]) -> dict[str, Any]:
    rest = {"required": list(properties), "additionalProperties": False}
    return {"type": "object", "properties": properties} | rest


def update_schema(world: World | None, fields: Sequence[int] | None = None) -> dict[str, Any]:
    """The schema of a world: its actions, and rows in order of index, each within its bounds.

    Args:
        world: None for the first prompts, which ask for the same keys in any world.
        fields: those that have a row, ascending; by default all.
    """
    if world is None:
        return _strict(set=_TEXT, fade=_WHOLE, act=_TEXT, risk={"enum": [0, 1, 2], **_WHOLE}, why=_TEXT)
    domain = world.domain.tolist()
    rows = [
        f"({field}:({'|'.join(map(str, range(values)))}|[?]),{_STEP},{_PERCENT};)?"
        for field, values in enumerate(domain)
        if fields is None or field in fields
    ]
    properties = {
        "set": _TEXT | {"pattern": f"^{''.join(rows)}$"},
        "fade": _WHOLE | {"minimum": 0, "maximum": CERTAIN},
        "act": _TEXT | {"enum": [*world.action_names, WAITING]},
        "risk": _WHOLE | {"enum": [0, 1, 2]},
    }
    if gives_reasons(world):
        reason = f"({'|'.join(map(str, range(len(domain))))}):[012],[01],{_STEP};"
        properties["why"] = _TEXT | {"pattern": f"^({reason}){{0,{MOST_REASONS}}}$"}
    return _strict(**properties)


def verdict_schema(candidates: Sequence[int] | None) -> dict[str, Any]:
    """The schema of a verdict, on some candidates where they are given."""
    field = _WHOLE if candidates is None else _WHOLE | {"enum": [NONE, *candidates]}
    return _strict(override={"type": "boolean"}, field=field)


def gives_reasons(world: World) -> bool:
    """Whether an update says why: c and d are then the agent's own."""
    return world.protocol.structure == "reported"


# ---------------------------------------------------------------- reading


def parse_update(text: str, world: World, step: int | None = None) -> Update:
    """Check a belief update.

    Args:
        step: the present one, where rows name the step of the evidence; None where they give its age. A
            later step counts as the present one.

    Raises:
        InvalidAnswer: with the first fault found.
    """
    said, domain = _read(UpdateAnswer, text), world.domain.tolist()
    action = _actions(world.action_names).get(_plain(said.act))
    if action is None:
        examples = f"{world.action_names[0]}, {WAITING}"
        raise InvalidAnswer(f"act {shown(said.act)} is not an action; examples: {examples}")
    entries = _rows("set", said.set, domain, len(domain), step)
    return Update(entries, said.fade, action, said.risk, _rows("why", said.why, domain, MOST_REASONS))


def parse_verdict(text: str, candidates: Sequence[int]) -> Verdict:
    """Check a judge's verdict; see `parse_update`."""
    said = _read(Verdict, text)
    if said.field not in (NONE, *candidates):
        known = ", ".join(map(str, candidates))
        raise InvalidAnswer(f"field {shown(said.field)} is neither -1 nor a candidate: {known}")
    return said


@lru_cache(maxsize=64)
def _actions(names: tuple[str, ...]) -> dict[str, int]:
    """The actions of a world by their names, as these are compared."""
    return {_plain(name): number for number, name in enumerate(names)} | {WAITING: WAIT}


def _plain(text: str) -> str:
    return text.replace(" ", "").lower()


Kind = TypeVar("Kind", bound=_Answer)


def _read(kind: type[Kind], text: str) -> Kind:
    """Read one JSON object of a kind; pydantic alone would take the last of two equal keys."""
    if not text.strip():
        raise InvalidAnswer("the answer is empty")
    if len(text) > LONGEST_ANSWER:
        raise InvalidAnswer(f"the answer has {len(text)} characters; at most {LONGEST_ANSWER}")
    try:
        return kind.model_validate(READER.decode(text))
    except InvalidAnswer:
        raise
    except RecursionError:
        why = "is nested too deeply; one flat JSON object is wanted"
    except ValidationError as error:
        raise InvalidAnswer(_first_fault(error, kind)) from None
    except ValueError as error:
        why = f"is not one whole JSON object ({shown(str(error))})"
    raise InvalidAnswer(f"the answer {why}")


def _first_fault(error: ValidationError, kind: type[_Answer]) -> str:
    first = error.errors(include_url=False)[0]
    key = shown(".".join(map(str, first["loc"])))
    if first["type"] == "missing":
        return f"the key {key} is missing"
    if first["type"] == "extra_forbidden":
        return f"the key {key} is unknown; accepted: {', '.join(kind.model_fields)}"
    if not first["loc"]:
        return "the answer is not a JSON object"
    return f"{key}: {first['msg']}, not {shown(first['input'])}"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise InvalidAnswer("a key stands twice in the answer")
    return content


READER = json.JSONDecoder(object_pairs_hook=_unique)


def _rows(key: str, text: str, domain: list[int], most: int, step: int | None = None) -> tuple[Row, ...]:
    """Read `index:a,b,c` rows with semicolons between them; a last semicolon and spaces do no harm."""
    rows: dict[int, Row] = {}
    *parts, last = text.split(";")
    for part in [*parts, last] if last.strip() else parts:
        match = _ROW.fullmatch(part)
        if match is None or (key == "why" and match[2] == UNKNOWN_SIGN):
            raise InvalidAnswer(f"{key}: {shown(part)} is not a row index:a,b,c of whole numbers")
        field, second, third = int(match[1]), int(match[3]), int(match[4])
        if field >= len(domain):
            raise InvalidAnswer(f"{key}: there is no field {field}; the last is {len(domain) - 1}")
        if field in rows:
            raise InvalidAnswer(f"{key}: field {field} stands twice")
        if key == "set" and match[2] == str(UNKNOWN):
            why = f"has the value {UNKNOWN}; an unknown value is written {UNKNOWN_SIGN}"
            raise InvalidAnswer(f"{key}: field {field} {why}")
        value = UNKNOWN if match[2] == UNKNOWN_SIGN else int(match[2])
        rows[field] = field, value, second if step is None else max(0, step - second), third
    if len(rows) > most:
        raise InvalidAnswer(f"{key}: {len(rows)} rows; at most {most}")
    for field, *numbers in rows.values():
        if key == "set" and not UNKNOWN <= numbers[0] < domain[field]:
            values = f"has values 0 to {domain[field] - 1} or {UNKNOWN_SIGN}, not {numbers[0]}"
            raise InvalidAnswer(f"{key}: field {field} {values}")
        for (what, highest), number in zip(_HIGHEST[key], numbers, strict=True):
            if highest is not None and not 0 <= number <= highest:
                raise InvalidAnswer(f"{key}: {what} {number} is not a whole number from 0 to {highest}")
    return tuple(rows.values())


def shown(value: object) -> str:
    """Show a piece of an answer: short and in ASCII, so that it can be repeated anywhere."""
    if isinstance(value, dict | list):
        return f"a {type(value).__name__}"
    if isinstance(value, int) and value.bit_length() > 64:
        return "a number of more than 64 bits"
    shown = ascii(value)
    return shown if len(shown) <= SHOWN else shown[:SHOWN] + "..."


# ---------------------------------------------------------------- writing and applying


def write_update(update: Update, world: World, step: int | None = None) -> str:
    """Write a belief update as an answer, with reasons where they are asked for.

    At a `step` rows name the step of the evidence; None is for the first prompts, which want its age, and
    reasons in any world.
    """
    rows = (
        f"{field}:{UNKNOWN_SIGN if v == UNKNOWN else v},{s if step is None else step - s},{c};"
        for field, v, s, c in update.entries
    )
    action = WAITING if update.action == WAIT else world.action_names[update.action]
    said = {"set": "".join(rows), "fade": update.fade, "act": action, "risk": update.risk}
    if step is None or gives_reasons(world):
        said["why"] = "".join(f"{field}:{c},{used},{steps};" for field, c, used, steps in update.reasons)
    return written(said).decode()


def apply_updates(table: Any, rows: Ints, updates: Sequence[Update], told: Ints) -> None:
    """Write checked updates to a block's beliefs.

    Args:
        table: `records.TABLE`, [row].
        rows: [update], whose beliefs they are.
        told: [update], the field a delivered probe has just repaired, or NONE; its confidence does not fade.
    """
    table = np.asarray(table)  # attributes of records take long
    confidence = table["confidence"][rows]
    confidence -= np.minimum(confidence, np.array([update.fade for update in updates])[:, None])
    knowing = np.flatnonzero(told != NONE)
    confidence[knowing, told[knowing]] = table["confidence"][rows[knowing], told[knowing]]
    table["confidence"][rows] = confidence
    entries = [(row, *entry) for row, update in zip(rows, updates, strict=True) for entry in update.entries]
    if entries:
        row, field, *columns = np.array(entries).T
        for name, column in zip(("value", "staleness", "confidence"), columns, strict=True):
            table[name][row, field] = column


def reported_terms(update: Update, known: Sequence[bool]) -> tuple[Floats, Floats]:
    """The agent's own c and d, [field], from an update's reasons; an unknown field reports nothing."""
    c, d = np.zeros(len(known)), np.zeros(len(known))
    for field, criticality, used, steps in update.reasons:
        if known[field]:
            c[field] = criticality / HIGHEST_CRITICALITY
            d[field] = 0.5 * used + 0.5 * min(1.0, steps / REQUIRED_STEPS)
    return c, d
