"""Ways to ask for structured output, from the strictest to what every server takes.

A provider that refuses one is asked in the next; which one it takes is remembered in the store. The key of an
answer is that of the request as the agent makes it, whatever the form it was sent in.
"""

from __future__ import annotations

from envprobe_core.llm.asking import ChatRequest
from envprobe_core.llm.keys import canonical

FORMS = ("json_schema", "json_object", "text")
_INSTRUCTION = "\n\nAnswer with one JSON object that satisfies this JSON schema, and with nothing else: "


def in_form(request: ChatRequest, form: str) -> ChatRequest:
    """Return the request as it is sent: the schema as a parameter, or in the system message."""
    asked = request.get("response_format")
    if form == FORMS[0] or not asked:
        return request
    schema = canonical(asked["json_schema"]["schema"]).decode()
    first, *others = request["messages"]
    sent = request | {"messages": [first | {"content": first["content"] + _INSTRUCTION + schema}, *others]}
    if form == "json_object":
        return sent | {"response_format": {"type": form}}
    del sent["response_format"]
    return sent


def next_form(form: str) -> str | None:
    """Return what to try where a form is not supported; None after the last."""
    place = FORMS.index(form) + 1
    return FORMS[place] if place < len(FORMS) else None
