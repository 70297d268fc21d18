"""Habits of model servers, as their users report them; the scripted server has the one that a model names.

A habit is what becomes of an answer that would be as asked for, what is refused, or what is sent a few times
before there is an answer; and what a run on such a server comes to.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

STRICT, LOOSE, UNREADABLE, STOPPED = "strictly", "loosely", "no update is readable", "no answer"


def message(text, **more):
    """A message whose content is a text."""
    return {"role": "assistant", "content": text} | more


def changed(change):
    """An answer whose object is changed."""
    return lambda text: message(json.dumps(change(json.loads(text))))


def beside(**parts):
    """A message without content; parts of it hold `{text}`, or the text as a string of JSON, `{quoted}`."""

    def made(text):
        filled = json.dumps(parts).replace('"{text}"', json.dumps(text))
        return message(None) | json.loads(filled)

    return made


def rows(said, made):
    """The rows of an update in another form."""
    return said | {"set": made([one for one in said["set"].split(";") if one])}


def as_lists(own):
    """Rows as lists of their numbers, an unknown value as null."""
    numbers = (row.replace(":", ",").split(",") for row in own)
    return [[None if one == "?" else int(one) for one in row] for row in numbers]


@dataclass(frozen=True)
class Habit:
    """What a server does, and what a run on it comes to."""

    read: str = STRICT  # how its answers are read, or why there is no run
    rungs: tuple[str, ...] = ()  # of the ladder, as the manifest states them, in order of name
    says: str = ""  # in the line of a run that stops
    message: Callable[[str], dict[str, Any]] = message  # of an answer, from its text
    refuses: tuple[str, ...] = ()  # what it refuses: names of `scripted_server.REFUSALS`
    first: tuple[str, ...] = ()  # faults that come before the first answer: names of `scripted_server.FAULTS`
    more: tuple[tuple[str, Any], ...] = ()  # parts of the completion that are other ones
    streams: bool = False  # whether it sends streams though none are asked for
    every: int = 0  # only each so manyth answer is bad; 0 for all
    after: int = 0  # so many answers are as asked for, and those behind are bad


FENCE = "```json\n{}\n```"
CALL = {"function": {"name": "update", "arguments": "{text}"}, "type": "function", "id": "1"}
PARTS = [{"type": "text", "text": "{text}"}]
HABITS = {
    # answers in which exactly one object means an update
    "fence": Habit(LOOSE, message=lambda text: message(FENCE.format(text))),
    "fence-without-language": Habit(LOOSE, message=lambda text: message(f"```\n{text}\n```\n")),
    "words-before": Habit(LOOSE, message=lambda text: message(f"Here is the update:\n\n{text}")),
    "words-behind": Habit(LOOSE, message=lambda text: message(f"{text}\n\nI hope that {{this}} helps.")),
    "thoughts": Habit(LOOSE, message=lambda text: message(f"<think>Is {text} right? Yes.</think>\n{text}")),
    "thoughts-begun-in-prompt": Habit(LOOSE, message=lambda text: message(f"It is {text}.</think>{text}")),
    "content-parts": Habit(LOOSE, message=beside(content=PARTS)),
    "tool-calls": Habit(LOOSE, message=beside(tool_calls=[CALL])),
    "function-call": Habit(LOOSE, message=beside(function_call=CALL["function"])),
    "reasoning-content": Habit(LOOSE, message=beside(reasoning_content="{text}")),
    "reasoning": Habit(LOOSE, message=beside(reasoning="{text}")),
    "numbers-as-text": Habit(
        LOOSE, message=changed(lambda said: said | {"fade": str(said["fade"]), "risk": str(said["risk"])})
    ),
    "numbers-as-floats": Habit(
        LOOSE, message=changed(lambda said: said | {"fade": float(said["fade"]), "risk": float(said["risk"])})
    ),
    "extra-key": Habit(LOOSE, message=changed(lambda said: said | {"note": "checked"})),
    "list-of-rows": Habit(LOOSE, message=changed(lambda said: rows(said, list))),
    "rows-as-lists": Habit(LOOSE, message=changed(lambda said: rows(said, as_lists))),
    "white-space": Habit(
        LOOSE, message=changed(lambda said: rows(said, "\n;\t ".join) | {"act": f"{said['act']}\n"})
    ),
    "object-within": Habit(LOOSE, message=changed(lambda said: {"update": said})),
    "a-text-of-json": Habit(LOOSE, message=lambda text: message(json.dumps(text))),
    "the-same-twice": Habit(LOOSE, message=lambda text: message(f"{text}\n\nThat is:\n{text}")),
    "byte-order-mark": Habit(LOOSE, message=lambda text: message(f"\ufeff{text}")),
    # answers as they are asked for, in unusual dress
    "blank-behind-action": Habit(message=changed(lambda said: said | {"act": f"{said['act']} "})),
    "blanks-round-rows": Habit(message=changed(lambda said: rows(said, lambda own: " ; ".join([*own, ""])))),
    "many-steps": Habit(message=changed(lambda said: said | {"why": "0:2,1,150;"})),
    "no-usage": Habit(more=(("usage", None),)),
    "streams-unasked": Habit(rungs=("streamed",), streams=True),
    # requests that are not taken as they are
    "refuses-seed": Habit(rungs=("no-seed",), refuses=("seed",)),
    "refuses-schema": Habit(rungs=("no-json-schema",), refuses=("json_schema",)),
    "refuses-pattern": Habit(rungs=("no-json-schema",), refuses=("pattern",)),
    "refuses-grammar": Habit(rungs=("no-json-schema",), refuses=("grammar",)),
    "refuses-any-form": Habit(rungs=("no-json-object", "no-json-schema"), refuses=("response_format",)),
    "refuses-object-too": Habit(
        rungs=("no-json-object", "no-json-schema"), refuses=("grammar", "json_object")
    ),
    "refuses-system": Habit(rungs=("no-system",), refuses=("system",)),
    "reasons": Habit(rungs=("no-max-tokens", "no-temperature"), refuses=("max_tokens", "temperature")),
    "only-streams": Habit(rungs=("only-streams", "streamed"), refuses=("whole",), streams=True),
    "fence-without-form": Habit(
        LOOSE, ("no-json-object", "no-json-schema"), refuses=("response_format",),
        message=lambda text: message(FENCE.format(text)),
    ),
    "moved": Habit(rungs=("moved",), first=("moved",)),
    # what passes
    "loads": Habit(first=("loading", "loading", "loading")),
    "wrong-clock": Habit(first=("rate-limit-wrong-clock",)),
    "error-in-200": Habit(first=("error-in-200",)),
    "error-in-choice": Habit(first=("error-in-choice", "error-in-choice")),
    "error-with-code-in-200": Habit(first=("429-in-200",)),
    "page-in-200": Habit(first=("html",)),
    "half-a-body": Habit(first=("half",)),
    "cut-off": Habit(first=("cut",)),
    # answers that mean nothing, or two things: the first episode stops the run
    "prose": Habit(UNREADABLE, says="is not one whole JSON object", message=lambda text: message("It is 3.")),
    "another-schema": Habit(
        UNREADABLE, says="the key 'set' is missing", message=lambda text: message('{"beliefs":[],"sure":37}')
    ),
    "refusal": Habit(
        UNREADABLE, says="the model refuses: 'I cannot help.'", message=beside(refusal="I cannot help.")
    ),
    "filter": Habit(
        UNREADABLE, says="the server's content filter kept the answer back",
        message=lambda text: message(None), more=(("finish_reason", "content_filter"),),
    ),
    "nothing": Habit(UNREADABLE, says="the answer is empty", message=lambda text: message("")),
    "two-answers": Habit(
        UNREADABLE, says="holds 2 objects that could be meant",
        message=lambda text: message(f"{text} or {json.dumps(json.loads(text) | {'fade': 77})}"),
    ),
    "cut-answer": Habit(
        UNREADABLE, says="(it was cut at the limit of tokens)", message=lambda text: message(text[:9]),
        more=(("finish_reason", "length"),),
    ),
    "thoughts-alone": Habit(
        UNREADABLE, says="nothing follows the thoughts", message=lambda text: message(f"<think>{text}")
    ),
    "not-a-number": Habit(
        UNREADABLE, says="not nan", message=changed(lambda said: said | {"fade": float("nan")})
    ),
    "field-twice": Habit(
        UNREADABLE, says="field 0 stands twice",
        message=changed(lambda said: said | {"set": "0:1,0,9;0:1,0,9;"}),
    ),
    "no-such-field": Habit(
        UNREADABLE, says="there is no field 999", message=changed(lambda said: said | {"set": "999:1,0,9;"})
    ),
    "too-sure": Habit(
        UNREADABLE, says="confidence 101", message=changed(lambda said: said | {"set": "0:1,0,101;"})
    ),
    # no answer at all
    "redirects-elsewhere": Habit(STOPPED, says="where the key is not sent", first=("redirect",)),
    "refuses-key": Habit(STOPPED, says="key-refused (HTTP 401", first=("key-refused",)),
    "no-quota": Habit(STOPPED, says="no-quota (HTTP 429", first=("quota",)),
    "no-such-model": Habit(STOPPED, says="--model names nothing there", first=("not-found",)),
    "asks-for-an-hour": Habit(STOPPED, says="it asks to wait 3600 s", first=("rate-limit-hour",)),
    "endless": Habit(STOPPED, says="too-large (more than 16,777,216 bytes)", first=("endless",)),
    "packed": Habit(STOPPED, says="too-large (more than 16,777,216 bytes)", first=("packed",)),
    "error-with-lasting-code": Habit(
        STOPPED, says="key-refused (HTTP 200 with error 401", first=("401-in-200",)
    ),
    "drips": Habit(STOPPED, says="timeout (no whole answer within", first=("drip",)),
    # now and then
    "refuses-now-and-then": Habit(UNREADABLE, message=beside(refusal="I cannot help."), every=5),
    "turns-to-prose": Habit(UNREADABLE, message=lambda text: message("It is 3."), after=21),
    "falls-back": Habit(UNREADABLE, more=(("model", "llama-3-8b"),), after=14),
}  # fmt: skip
