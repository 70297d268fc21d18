"""Checking answers, in shape and in meaning, before any of them is used.

What fails is an `InvalidAnswer`, whatever the text was: not JSON, cut, nested, a NaN, a key or field that
does not exist or stands twice, a value outside its domain, a fraction where percents are whole, an action
that there is not. An answer is never applied in part.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from envprobe_core.engine.records import CERTAIN, NONE, STALENESS_LIMIT, UNKNOWN
from envprobe_core.llm.answers import (
    HIGHEST_CRITICALITY,
    MOST_REASONS,
    UPDATE_SCHEMA,
    VERDICT_SCHEMA,
    WAITING,
    Update,
    Verdict,
    Vocabulary,
)

LONGEST_ANSWER = 4096  # characters; the longest update of the largest world has fewer than 800
HIGHEST_RISK = 2
SHOWN = 60  # characters of an answer that a message repeats
_ROW = re.compile(r" *([0-9]{1,3}) *: *(\?|-?[0-9]{1,6}) *, *(-?[0-9]{1,6}) *, *(-?[0-9]{1,6}) *", re.ASCII)
_TYPES = {"string": str, "integer": int, "boolean": bool}

Row = tuple[int, int, int, int]


class InvalidAnswer(ValueError):
    """An answer that cannot be used; the message says why, in words the model can act on."""


def parse_update(text: str, vocabulary: Vocabulary) -> Update:
    """Check a belief update.

    Args:
        text: the raw answer, anything at all.
        vocabulary: of the episode's world.

    Raises:
        InvalidAnswer: with the first fault found.
    """
    content = _read_object(text, UPDATE_SCHEMA)
    act, actions, domain = content["act"], vocabulary.actions, vocabulary.domain
    if act not in actions:
        raise InvalidAnswer(f"act {_shown(act)} is not an action; examples: {vocabulary.names[0]}, {WAITING}")

    def entry(numbers: Row) -> None:
        field, value, staleness, confidence = numbers
        if not (value == UNKNOWN or 0 <= value < domain[field]):
            raise InvalidAnswer(f"set: field {field} has values 0 to {domain[field] - 1} or ?, not {value}")
        _within("set: staleness", staleness, STALENESS_LIMIT)
        _within("set: confidence", confidence, CERTAIN)

    def reason(numbers: Row) -> None:
        _, criticality, used, steps = numbers
        _within("why: criticality", criticality, HIGHEST_CRITICALITY)
        _within("why: used", used, 1)
        _within("why: steps", steps, STALENESS_LIMIT)

    _within("fade", content["fade"], CERTAIN)
    _within("risk", content["risk"], HIGHEST_RISK)
    entries = _read_rows("set", content["set"], len(domain), len(domain), entry)
    reasons = _read_rows("why", content["why"], len(domain), MOST_REASONS, reason)
    return Update(entries, content["fade"], actions[act], content["risk"], reasons)


def parse_verdict(text: str, candidates: Sequence[int]) -> Verdict:
    """Check a judge's verdict; see `parse_update`."""
    content = _read_object(text, VERDICT_SCHEMA)
    field = content["field"]
    if field != NONE and field not in candidates:
        raise InvalidAnswer(
            f"field {_shown(field)} is neither -1 nor a candidate: {', '.join(map(str, candidates))}"
        )
    return Verdict(content["override"], field)


def _read_object(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Read one JSON object with exactly the keys and types of a schema."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidAnswer("the answer is empty")
    if len(text) > LONGEST_ANSWER:
        raise InvalidAnswer(f"the answer has {len(text)} characters; at most {LONGEST_ANSWER}")
    try:
        content = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_no_float
        )
    except InvalidAnswer:
        raise
    except RecursionError:
        raise InvalidAnswer("the answer is nested too deeply; one flat JSON object is wanted") from None
    except ValueError as error:
        raise InvalidAnswer(
            f"the answer is not one whole JSON object ({ascii(str(error))[1 : SHOWN + 1]})"
        ) from None
    if not isinstance(content, dict):
        raise InvalidAnswer("the answer is not a JSON object")
    wanted = schema["properties"]
    for key in wanted:
        if key not in content:
            raise InvalidAnswer(f"the key {key!r} is missing")
    for key, value in content.items():
        if key not in wanted:
            raise InvalidAnswer(f"the key {_shown(key)} is unknown; accepted: {', '.join(wanted)}")
        if type(value) is not _TYPES[wanted[key]["type"]]:
            raise InvalidAnswer(f"{key} must be of type {wanted[key]['type']}, not {_shown(value)}")
    return content


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise InvalidAnswer("a key stands twice in the answer")
    return content


def _no_constant(name: str) -> None:
    raise InvalidAnswer(f"{name} is not a number that can be used")


def _no_float(number: str) -> None:
    raise InvalidAnswer(f"{_shown(number)} is not a whole number; steps and percents are whole")


def _read_rows(key: str, text: str, fields: int, most: int, check: Callable[[Row], None]) -> tuple[Row, ...]:
    """Read `index:a,b,c` rows with semicolons between them; a last semicolon and spaces do no harm."""
    rows: dict[int, Row] = {}
    if not text or text.isspace():
        return ()
    parts = text.split(";")
    if not parts[-1].strip():
        parts.pop()
    for part in parts:
        match = _ROW.fullmatch(part)
        if match is None or (key == "why" and match[2] == "?"):
            raise InvalidAnswer(f"{key}: {_shown(part)} is not a row index:a,b,c of whole numbers")
        field = int(match[1])
        if field >= fields:
            raise InvalidAnswer(f"{key}: there is no field {field}; the last is {fields - 1}")
        if field in rows:
            raise InvalidAnswer(f"{key}: field {field} stands twice")
        if key == "set" and match[2] == str(UNKNOWN):
            raise InvalidAnswer(
                f"{key}: field {field} has the value {UNKNOWN}; an unknown value is written ?"
            )
        value = UNKNOWN if match[2] == "?" else int(match[2])
        row = field, value, int(match[3]), int(match[4])
        check(row)
        rows[field] = row
    if len(rows) > most:
        raise InvalidAnswer(f"{key}: {len(rows)} rows; at most {most}")
    return tuple(rows.values())


def _within(what: str, number: int, highest: int) -> None:
    if not 0 <= number <= highest:
        raise InvalidAnswer(f"{what} {_shown(number)} is not a whole number from 0 to {highest}")


def _shown(value: object) -> str:
    """Show a piece of an answer: short and in ASCII, so that it can be repeated anywhere."""
    if type(value) is int and value.bit_length() > 64:
        return "a number of more than 64 bits"
    shown = (
        ascii(value) if isinstance(value, str | int | bool | float | None) else f"a {type(value).__name__}"
    )
    return shown if len(shown) <= SHOWN else shown[:SHOWN] + "..."
