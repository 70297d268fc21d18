"""Answers as servers give them: the one object that means something is found in what stands round it.

An answer is first read as it is asked for. What fails that may still hold exactly one object that can be
used: in a code fence, behind thoughts, among words, in content parts, as a tool's arguments, in a text of
JSON, with numbers as text, an unknown key more, or a list in place of rows. It is then taken, and counted as
loosely read. So are several that say the same; where two things could be meant, none is.

How an answer is read depends on its text alone, so that a replay reads, and counts, the same.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from envprobe_core.llm.answers import READER, UNKNOWN_SIGN, InvalidAnswer, shown
from envprobe_core.llm.calls import FILTERED, Answer, written

LONGEST = 100_000  # characters that are looked through; thoughts can be long
DEEPEST = 6  # objects within objects, and texts within these
WHOLE, ROWS, WORDS, FLAG = ("fade", "risk", "field"), ("set", "why"), ("act",), ("override",)
_NUMBER = re.compile(r"\s*(-?[0-9]{1,6})(\.0*)?\s*%?\s*", re.ASCII)
_THOUGHTS = re.compile(r"<(think|thinking|thought)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_OPEN, _CLOSED = "<think>", "</think>"
Result = TypeVar("Result")


def read_served(read: Callable[[str], Result], text: str) -> tuple[Result, bool]:
    """Return what an answer says, and whether it was read loosely.

    Args:
        read: the strict reader of an update or a verdict.
        text: the answer.

    Raises:
        InvalidAnswer: with the strict reader's fault, or a plainer word for it, where nothing can be used.

    >>> from envprobe_core.llm.answers import parse_verdict
    >>> read_served(lambda text: parse_verdict(text, [3]), 'So: {"override": true, "field": "3"}')
    (Verdict(override=True, field=3), True)
    """
    try:
        return read(text), False
    except InvalidAnswer as fault:
        found: list[Result] = []
        if len(text) <= LONGEST:
            for one in _meant(without_thoughts(text), read):
                found += [] if one in found else [one]
        if len(found) == 1:
            return found[0], True
        raise InvalidAnswer(_named(text, len(found)) or str(fault)) from None


def fault_in_words(fault: InvalidAnswer, answer: Answer) -> str:
    """Why an answer cannot be used, for people: also whether it was cut."""
    return f"{fault} (it was cut at the limit of tokens)" if answer.finish == "length" else str(fault)


def without_thoughts(text: str) -> str:
    """Return an answer without its thoughts, also where their beginning or their end is not there.

    >>> [*map(without_thoughts, ("<think>a {} </think>b", "a</think> b", "<think>a"))]
    ['b', ' b', '']
    """
    text = _THOUGHTS.sub("", text)
    return text.rpartition(_CLOSED)[2].partition(_OPEN)[0]


def _named(text: str, count: int) -> str:
    """Say plainly why an answer cannot be used, where that is known."""
    if count > 1:
        return f"the answer holds {count} objects that could be meant; one is wanted"
    for said in objects_in(text):
        if isinstance(refusal := said.get("refusal"), str) and refusal.strip():
            return f"the model refuses: {shown(refusal)}"
        if said.get("finish_reason") == FILTERED:
            return "the server's content filter kept the answer back"
        break
    if text.strip() and not without_thoughts(text).strip():
        return "nothing follows the thoughts in the answer"
    return ""


def _meant(value: Any, read: Callable[[str], Result], depth: int = 0) -> Iterator[Result]:
    """Yield what the objects in a value mean, outermost first: within one that is understood none is read."""
    parts: Any = ()
    if isinstance(value, dict):
        try:
            yield read(written(mended(value)).decode())
        except InvalidAnswer:
            parts = value.values()
    elif isinstance(value, list):
        parts = value
    elif isinstance(value, str):
        quoted = value_of(value) if value.lstrip().startswith('"') else None
        parts = objects_in(value) if quoted is None else [quoted]
    if depth < DEEPEST:
        for part in parts:
            yield from _meant(part, read, depth + 1)


def value_of(text: str) -> Any:
    r"""Return the value that a text of JSON is; None where it is none.

    >>> value_of('"{\\"act\\": \\"wait\\"}"')
    '{"act": "wait"}'
    """
    try:
        return READER.decode(text)
    except (ValueError, RecursionError):
        return None


def objects_in(text: str) -> Iterator[dict[str, Any]]:
    r"""Yield the JSON objects that stand in a text, outermost ones; one in which a key stands twice is none.

    >>> list(objects_in('Sure! ```json\n{"act": "wait"}\n``` {not this}'))
    [{'act': 'wait'}]
    """
    place = text.find("{")
    while place >= 0:
        try:
            found, end = READER.raw_decode(text, place)
            yield found
        except RecursionError:
            return
        except ValueError:
            end = place + 1
        place = text.find("{", end)


def mended(said: dict[str, Any]) -> dict[str, Any]:
    r"""Return the known keys of an object, their values in the form that is asked for where they mean it.

    >>> mended({"set": [[3, 1, 0, 95], "4:?,0,0"], "fade": "2", "act": " wait\n", "risk": 1.0, "note": "x"})
    {'set': '3:1,0,95;4:?,0,0', 'fade': 2, 'act': 'wait', 'risk': 1}
    """
    made: dict[str, Any] = {}
    for key, value in said.items():
        if key in WHOLE:
            made[key] = _whole(value)
        elif key in ROWS:
            rows = [] if value is None else value if isinstance(value, list) else [value]
            made[key] = ";".join(text for text in map(_row, rows) if text)
        elif key in WORDS:
            made[key] = " ".join(value.split()) if isinstance(value, str) else value
        elif key in FLAG:
            made[key] = {"true": True, "false": False}.get(str(value).strip().lower(), value)
    return made


def _whole(value: Any) -> Any:
    """Return a whole number that stands as text or as a float; anything else as it is."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 10**6:
        return int(value)
    if isinstance(value, str) and (match := _NUMBER.fullmatch(value)):
        return int(match[1])
    return value


def _row(value: Any) -> str:
    """Write a row `index:a,b,c` that is text, or a list of four numbers."""
    if isinstance(value, list):
        first, *rest = [UNKNOWN_SIGN if one is None else str(_whole(one)) for one in value] or [""]
        return f"{first}:{','.join(rest)}"
    text = " ".join(str(value).split())
    return text.strip("; ") if text.count(":") == 1 else text
