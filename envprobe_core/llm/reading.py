"""Reading a server's raw answer: a completion, or what is wrong with it.

`read_response` depends on the stored bytes alone, so that an answer reads the same at every replay.
It judges the envelope only; whether the text is a belief update is the agent's to say.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

LONGEST_DETAIL = 160
MOST_TOKENS = 10_000_000  # of one call; a count beyond it is no count
QUOTA = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")
KEY_CODES = ("invalid_api_key", "account_deactivated")
SCHEMA_WORDS = ("json_schema", "response_format", "structured output")


@dataclass(frozen=True)
class Tokens:
    """What a server says that a call used."""

    prompt: int
    completion: int
    cached: int = 0


@dataclass(frozen=True)
class Completion:
    """A model's answer.

    Attributes:
        text: the message's content; empty where the model gave none.
        tokens: what it used, None where the server did not say.
        fingerprint: the server's own name for what answered, empty where it gave none.
    """

    text: str
    tokens: Tokens | None
    fingerprint: str


@dataclass(frozen=True)
class Fault:
    """Why there is no answer.

    Attributes:
        name: a short word, stored as the attempt's verdict.
        detail: the server's own words, shortened.
        final: whether asking again is of no use.
        free: whether the provider cannot have charged for it.
        tokens: what it used, where the server said so.
    """

    name: str
    detail: str = ""
    final: bool = False
    free: bool = False
    tokens: Tokens | None = None

    def __str__(self) -> str:
        return f"{self.name} ({self.detail})" if self.detail else self.name


NO_SCHEMA = "no-json-schema"


def read_response(status: int, kind: str, body: bytes) -> Completion | Fault:
    """Read a response.

    Args:
        status: HTTP status.
        kind: the Content-Type header.
        body: the whole body.
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    if status // 100 != 2:
        return _refusal(status, content, body)
    if not isinstance(content, dict):
        name = "html" if "html" in kind or body.lstrip()[:1] == b"<" else "malformed"
        return Fault(name, _shortened(body.decode("utf-8", "replace")))
    tokens = _tokens(content.get("usage"))
    if content.get("error"):
        code, words = _error(content)
        final = code in QUOTA or code in KEY_CODES
        return Fault("error-in-200", words, final=final, tokens=tokens)
    choices = content.get("choices")
    message = choices[0].get("message") if _is_list_of_dicts(choices) else None
    if not isinstance(message, dict):
        return Fault("malformed", "no message in it", tokens=tokens)
    text = message.get("content")
    fingerprint = content.get("system_fingerprint")
    return Completion(
        text if isinstance(text, str) else "",
        tokens,
        fingerprint if isinstance(fingerprint, str) else "",
    )


def _refusal(status: int, content: Any, body: bytes) -> Fault:
    code, words = _error(content)
    words = words or _shortened(body.decode("utf-8", "replace"))
    tokens = _tokens(content.get("usage")) if isinstance(content, dict) else None
    detail = f"HTTP {status}{': ' if words else ''}{words}"
    said = words.lower()
    if status == 429 and (code in QUOTA or "exceeded your current quota" in said):
        return Fault("no-quota", detail, final=True, free=True, tokens=tokens)
    if status in (401, 403) or code in KEY_CODES:
        return Fault("key-refused", detail, final=True, free=True, tokens=tokens)
    if status in (400, 422, 500, 501) and any(word in said for word in SCHEMA_WORDS):
        return Fault(NO_SCHEMA, detail, free=status < 500, tokens=tokens)
    if status == 404:
        return Fault("not-found", detail, final=True, free=True, tokens=tokens)
    if status == 429:
        return Fault("rate-limit", detail, free=True, tokens=tokens)
    if status in (408, 409, 425):
        return Fault("busy", detail, free=True, tokens=tokens)
    if status >= 500:
        return Fault("server-error", detail, tokens=tokens)
    return Fault("refused", detail, final=True, free=True, tokens=tokens)


def _error(content: Any) -> tuple[str, str]:
    """Return an error's code and its words."""
    error = content.get("error") if isinstance(content, dict) else None
    if isinstance(error, str):
        return "", _shortened(error)
    if not isinstance(error, dict):
        return "", ""
    codes = [error[name] for name in ("code", "type") if isinstance(error.get(name), str)]
    known = [code for code in codes if code in (*QUOTA, *KEY_CODES)]
    words = error.get("message")
    return (known or codes or [""])[0], _shortened(words) if isinstance(words, str) else ""


def _tokens(usage: Any) -> Tokens | None:
    """Read a usage record; None where it is missing or cannot be true."""
    if not isinstance(usage, dict):
        return None
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if not (_is_count(prompt) and _is_count(completion)):
        return None
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    return Tokens(prompt, completion, cached if _is_count(cached) and cached <= prompt else 0)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS


def _is_list_of_dicts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _shortened(text: str) -> str:
    """Bring a server's words into one printable line."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text[:2000]).split())
    return line if len(line) <= LONGEST_DETAIL else line[: LONGEST_DETAIL - 3] + "..."
