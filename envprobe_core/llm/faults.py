"""What a server can do wrong, on demand: which fault meets which request, by its hash and attempt alone."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass

from envprobe_core.errors import InputError

PASSING = {
    "rate-limit": "429 without Retry-After",
    "rate-limit-seconds": "429 with Retry-After in seconds",
    "rate-limit-date": "429 with Retry-After as a date",
    "server-error": "500",
    "unavailable": "503 in HTML",
    "stall": "no answer at all",
    "drip": "an answer that comes byte by byte, too slowly ever to end",
    "cut": "a body that ends too early",
    "half": "a body that is half a JSON text, with the length to match",
    "html": "a page in HTML with status 200",
    "error-in-200": "an error with status 200",
    "paid-error": "500 that says what it used",
    "echo": "500 that repeats the API key",
}
"""Faults of the line: the same request may be answered the next time."""

CONTENT = {
    "off-schema": "JSON of another shape",
    "nan": "NaN where a number is wanted",
    "duplicate": "the same field twice",
    "unknown-field": "a field that does not exist",
    "prose": "no JSON",
    "echo-in-answer": "the API key within the text",
}
"""Faults of the answer's text: the agent asks again."""

LASTING = {
    "key-refused": "401 that repeats the API key",
    "forbidden": "403",
    "not-found": "404",
    "quota": "429 insufficient_quota",
}
"""Faults that no repetition mends."""

FAULTS = PASSING | CONTENT | LASTING
MIXED = "mixed"  # everything that passes or is asked again
MOST_IN_A_ROW = 3  # a request meets no more passing faults than this, so that a run can end
NO_SUCH_FIELD = 999


@dataclass(frozen=True)
class Plan:
    """Which faults a server makes.

    Attributes:
        names: the faults to choose from.
        rate: the share of requests that meet one.
        most: how many attempts of one request may meet one.
    """

    names: tuple[str, ...] = ()
    rate: float = 0.0
    most: int = MOST_IN_A_ROW

    def fault(self, digest: bytes, attempt: int, repeated_question: bool) -> str | None:
        """Return the fault that an attempt meets, None where it meets none.

        Args:
            digest: of the request.
            attempt: how often this request came before.
            repeated_question: whether it is asked again because an answer could not be used; such a request
                meets no fault of content, so that an update does not become invalid by the plan.
        """
        names = [name for name in self.names if not (repeated_question and name in CONTENT)]
        if not names or attempt >= self.most:
            return None
        word = hashlib.sha256(digest + attempt.to_bytes(4)).digest()
        if int.from_bytes(word[:8]) >= self.rate * 2**64:
            return None
        return names[int.from_bytes(word[8:16]) % len(names)]


def parse_plan(names: str, rate: float | None, most: int | None) -> Plan:
    """Read the faults of a command line.

    Args:
        names: with commas between them, or `mixed`, or nothing.
        rate: the share of requests, None for all.
        most: attempts of one request, None for a few with `mixed` and no bound else.

    Raises:
        InputError: for a fault that is unknown or a rate that is none.
    """
    listed = tuple(name for name in names.split(",") if name)
    mixed = MIXED in listed
    if mixed:
        listed = (*PASSING, *CONTENT)
    for name in listed:
        if name not in FAULTS:
            raise InputError(f"unknown fault {name!r}; accepted: {MIXED}, {', '.join(FAULTS)}")
    if rate is not None and not 0 <= rate <= 1:
        raise InputError(f"fault rate {rate} is not in 0..1")
    if most is None:
        most = MOST_IN_A_ROW if mixed else 2**31
    return Plan(listed, 1.0 if rate is None else rate, most)


def spoiled_text(text: str, fault: str, key: str) -> str:
    """Return an answer's text with a fault of content in it."""
    if fault == "prose":
        return "I believe that tool 3 is loaded now."
    if fault == "off-schema":
        return '{"beliefs":[{"tool":3,"loaded":true}],"confidence":37}'
    content = json.loads(text)
    update = "set" in content
    if fault == "nan":
        return json.dumps(content | {"fade" if update else "field": math.nan})
    if fault == "duplicate" and not update:
        return '{"field":-1,"field":-1,"override":true}'
    changes = {
        "duplicate": {"set": "0:0,0,90;0:1,0,90"},
        "unknown-field": {"set": f"{NO_SUCH_FIELD}:1,0,90"} if update else {"field": NO_SUCH_FIELD},
        "echo-in-answer": {"act": f"say({key})"} if update else {"field": key},
    }
    return json.dumps(content | changes[fault])
