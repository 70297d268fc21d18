"""Reading a server's raw answer: a completion, or what is wrong with it.

`read_response` depends on the stored bytes alone, so that an answer reads the same at every replay.
It judges the envelope only; whether the text is a belief update is the agent's to say.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from envprobe_core.llm.asking import NO_TOKENS, Tokens

LONGEST_DETAIL = 160
MOST_TOKENS = 10_000_000  # of one call; a count beyond it is no count
QUOTA = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")
KEY_CODES = ("invalid_api_key", "account_deactivated")
REFUSED_PARTS = {
    "no-json-schema": ("json_schema", "response_format", "structured output"),
    "no-max-tokens": ("max_completion_tokens",),
    "no-temperature": ("temperature",),
}
"""Parts of a request that some servers refuse, by the words that name them; `calling` leaves them out."""


@dataclass(frozen=True)
class Raw:
    """A response as it came, but for the API key, should it stand in it."""

    status: int
    kind: str
    body: bytes


@dataclass(frozen=True)
class Completion:
    """A model's answer.

    Attributes:
        text: the message's content; empty where the model gave none.
        used: its tokens, None where the server did not say.
        fingerprint: the server's own name for what answered, empty where it gave none.
        finish: why it ended, as `stop`, or `length` where it was cut; empty where the server did not say.
    """

    text: str
    used: Tokens | None
    fingerprint: str
    finish: str = ""


@dataclass(frozen=True)
class Fault:
    """Why there is no answer.

    Attributes:
        name: a short word, stored as the call's verdict.
        detail: the server's own words, shortened.
        final: whether asking again is of no use.
        used: its tokens, none where the provider cannot have charged for it; None where that is not known.
    """

    name: str
    detail: str = ""
    final: bool = False
    used: Tokens | None = None

    def __str__(self) -> str:
        return f"{self.name} ({self.detail})" if self.detail else self.name


def read_response(raw: Raw) -> Completion | Fault:
    """Read a response; whatever it is, nothing is raised."""
    try:
        content = json.loads(raw.body)
    except (ValueError, RecursionError):
        content = None
    if raw.status // 100 != 2:
        return _refusal(raw, content)
    if not isinstance(content, dict):
        html = "html" in raw.kind or raw.body.lstrip()[:1] == b"<"
        return Fault("html" if html else "malformed", _words_of(raw.body))
    used = _tokens(content.get("usage"))
    if content.get("error"):
        code, words = _error(content)
        return Fault("error-in-200", words, code in (*QUOTA, *KEY_CODES), used)
    choices = content.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    if not isinstance(message, dict):
        return Fault("malformed", "no message in it", used=used)
    said = message.get("content"), content.get("system_fingerprint"), first.get("finish_reason")
    text, fingerprint, finish = (part if isinstance(part, str) else "" for part in said)
    return Completion(text, used, fingerprint, finish)


def _refusal(raw: Raw, content: Any) -> Fault:
    status = raw.status
    code, words = _error(content)
    words = words or _words_of(raw.body)
    said = words.lower()
    name, final, free = "refused", True, status < 500
    if status == 429 and (code in QUOTA or "exceeded your current quota" in said):
        name = "no-quota"
    elif status in (401, 403) or code in KEY_CODES:
        name = "key-refused"
    elif status == 404:
        name = "not-found"
    elif status in (408, 409, 425, 429) or status >= 500:
        final = False
        name = "rate-limit" if status == 429 else "busy" if status < 500 else "server-error"
    if status in (400, 422, 500, 501):
        for part, named in REFUSED_PARTS.items():
            if any(word in said for word in named):
                name, final = part, False
                break
    used = _tokens(content.get("usage")) if isinstance(content, dict) else None
    detail = f"HTTP {status}{': ' if words else ''}{words}"
    return Fault(name, detail, final, NO_TOKENS if used is None and free else used)


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


def _words_of(body: bytes) -> str:
    return _shortened(body.decode("utf-8", "replace"))


def _shortened(text: str) -> str:
    """Bring a server's words into one printable line."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text[:2000]).split())
    return line if len(line) <= LONGEST_DETAIL else line[: LONGEST_DETAIL - 3] + "..."
