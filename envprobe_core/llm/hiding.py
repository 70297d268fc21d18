"""Keeping the API key out of everything that is shown or stored."""

from __future__ import annotations

import base64
import json
import logging
import os
import traceback
from dataclasses import dataclass
from urllib.parse import quote

from envprobe_core.errors import InputError
from envprobe_core.llm.keys import LOCAL

VARIABLE = "OPENAI_API_KEY"
PLACEHOLDER = "local-server-without-a-key"
SHORTEST_SECRET = 8  # characters; `none`, `EMPTY` and the like are no secrets and may stand in answers
HIDDEN = "[API key]"


@dataclass(frozen=True)
class Secret:
    """The API key; it shows itself to nobody who does not ask for `reveal()`."""

    _value: str

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    def reveal(self) -> str:
        """Return the key itself."""
        return self._value

    @property
    def _forms(self) -> list[str]:
        value = self._value
        if len(value) < SHORTEST_SECRET or value == PLACEHOLDER:
            return []
        forms = [value, json.dumps(value)[1:-1], value.replace("/", "\\/"), quote(value, safe="")]
        forms.append(base64.b64encode(value.encode()).decode().rstrip("="))
        return sorted(set(forms), key=len, reverse=True)

    def hide(self, text: str) -> str:
        """Return a text without the key, in whatever usual form it stands there."""
        for form in self._forms:
            text = text.replace(form, HIDDEN)
        return text

    def hide_bytes(self, body: bytes) -> bytes:
        """Return a server's answer without the key."""
        for form in self._forms:
            body = body.replace(form.encode(), HIDDEN.encode())
        return body


def secret_from_environment(provider: str) -> Secret:
    """Read the key from OPENAI_API_KEY; a server on this machine needs none.

    Raises:
        InputError: if there is none, or it cannot stand in a header; the message does not show it.
    """
    value = os.environ.get(VARIABLE, "").strip()
    if not value and provider == LOCAL:
        return Secret(PLACEHOLDER)
    if not value:
        raise InputError(
            f"{VARIABLE} is not set; it holds the key for {provider} (a server on this machine needs none, "
            "and --replay-only opens no connection)"
        )
    if not all("!" <= letter <= "~" for letter in value):
        raise InputError(f"{VARIABLE} holds spaces or letters that no key has")
    return Secret(value)


class HidingFilter(logging.Filter):
    """Take the key out of a log record, its traceback included, before a handler writes it."""

    def __init__(self, secret: Secret) -> None:
        super().__init__()
        self._secret = secret

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record; always let it pass."""
        record.msg, record.args = self._secret.hide(record.getMessage()), None
        if record.exc_info:
            record.exc_text = self._secret.hide("".join(traceback.format_exception(*record.exc_info)))
            record.exc_info = None
        return True


def guard_logs(secret: Secret) -> None:
    """Take the key out of all logs of this process, those of OPENAI_LOG=debug included."""
    own = [logging.getLogger(name) for name in ("openai", "httpx2", "httpcore", "aiohttp", "asyncio")]
    for holder in [*own, *(handler for logger in (logging.root, *own) for handler in logger.handlers)]:
        holder.filters = [old for old in holder.filters if not isinstance(old, HidingFilter)]
        holder.addFilter(HidingFilter(secret))
