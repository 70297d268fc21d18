"""One call by the `openai` SDK: bytes in, bytes out; and the API key, which nobody else gets to see.

The SDK neither retries nor parses: each of its own retries would be a call that nobody has stored, and what
it cannot parse it throws away. What it raises becomes a plain `Fault` here, so that no request object (its
headers hold the key) and no message of the SDK goes further.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import socket
import time
import traceback
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

from envprobe_core.errors import InputError
from envprobe_core.llm.calls import (
    LOCAL,
    NO_TOKENS,
    Answer,
    ChatRequest,
    Fault,
    Raw,
    provider_label,
    read_response,
    written,
)

VARIABLE = "OPENAI_API_KEY"
PLACEHOLDER = "local-server-without-a-key"
SHORTEST_SECRET = 8  # characters; `none`, `EMPTY` and the like are no secrets and may stand in answers
HIDDEN = "[API key]"
SLACK = 5.0  # seconds by which the transport's own limits exceed the deadline, which ends a call first
# No idempotency key is sent; where none is given the SDK would draw a new one for each call.
_OPTIONS: Any = {"idempotency_key": "none", "headers": {"Content-Type": "application/json"}}


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
        forms = {value, json.dumps(value)[1:-1], value.replace("/", "\\/"), quote(value, safe="")}
        forms.add(base64.b64encode(value.encode()).decode().rstrip("="))
        return sorted(forms, key=len, reverse=True)

    def hide(self, text: str) -> str:
        """Return a text without the key, in whatever usual form it stands there."""
        return self.hide_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

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


class Caller:
    """Open connections to a provider, or to several servers of the same model."""

    def __init__(self, secret: Secret, urls: Sequence[str], concurrency: int, deadline: float) -> None:
        import httpx2
        import openai

        self._secret, self._deadline = secret, deadline
        timeout = deadline + SLACK
        limits = httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)

        def connected(url: str) -> openai.AsyncOpenAI:
            http = openai.DefaultAioHttpClient(
                limits=limits,
                timeout=timeout,
                follow_redirects=False,
                trust_env=provider_label(url) != LOCAL,  # no proxy stands before a server of this machine
            )
            return openai.AsyncOpenAI(
                api_key=secret.reveal(), base_url=url, max_retries=0, timeout=timeout, http_client=http
            )

        try:
            self._sdks = [connected(url) for url in urls]
        except (ValueError, OSError, ImportError, httpx2.InvalidURL) as error:  # of a proxy, or certificates
            raise InputError(f"no connection can be made as this environment says: {error}") from None
        self._under_way = [0] * len(urls)
        guard_logs(secret)

    async def close(self) -> None:
        """Close the connections."""
        for sdk in self._sdks:
            await sdk.close()

    async def send(self, request: ChatRequest) -> tuple[Raw | None, Answer | Fault]:
        """Send a request to the least busy server, and wait for the whole response until the deadline.

        `chat.completions.create` would walk through the request against its types first, which takes
        longer than all the rest, and would parse the response. The request goes out in its own order: a
        constrained decoder writes the keys of an answer in the order of the schema's properties.

        Returns:
            The response, None where none came, and what it says.
        """
        import httpx2
        import openai

        server = self._under_way.index(min(self._under_way))
        self._under_way[server] += 1
        try:
            async with asyncio.timeout(self._deadline):
                response = await self._sdks[server].post(
                    "/chat/completions", cast_to=httpx2.Response, content=written(request), options=_OPTIONS
                )
        except openai.APIStatusError as error:
            response = error.response
        except TimeoutError:
            return None, Fault("timeout", f"no whole answer within {self._deadline:g} s")
        except (openai.OpenAIError, OSError, ValueError, RuntimeError) as error:
            return None, self._lost(first_cause(error))
        finally:
            self._under_way[server] -= 1
        kind = self._secret.hide(response.headers.get("content-type", ""))
        raw = Raw(response.status_code, kind, self._secret.hide_bytes(response.content))
        found = read_response(raw)
        return raw, replace(found, wait=retry_after(response.headers)) if isinstance(found, Fault) else found

    def _lost(self, error: BaseException) -> Fault:
        """Say why there is no whole response; one that never connected cannot have been charged."""
        import aiohttp

        kind = type(error).__name__
        if isinstance(error, aiohttp.ClientConnectorError | ConnectionRefusedError | socket.gaierror):
            return Fault("no-connection", "nothing answers there", used=NO_TOKENS)
        words = " ".join(self._secret.hide(str(error)).split())[:120]
        return Fault("cut-off", f"{kind}: {words}" if words else kind)


def first_cause(error: BaseException) -> BaseException:
    """Return what lies beneath: the transport gives all lost connections the name of a time-out."""
    while (beneath := error.__cause__ or error.__context__) is not None:
        error = beneath
    return error


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Read Retry-After, in seconds or as a date from `now`; None where it is missing or makes no sense."""
    text = headers.get("retry-after", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - (time.time() if now is None else now)
        except (ValueError, OverflowError, TypeError):
            return None
    return max(0.0, seconds) if seconds == seconds else None


def adapted(request: ChatRequest, refused: Collection[str]) -> ChatRequest:
    """Return a request without the parts that its server refuses (`calls.REFUSED_PARTS`).

    The prompt says by itself what form an answer has; models that reason name their limit otherwise and
    have no temperature. The key of an answer is that of the request as the agent makes it.
    """
    sent = dict(request)
    if "no-json-schema" in refused:
        sent.pop("response_format", None)
    if "no-max-tokens" in refused:
        sent["max_completion_tokens"] = sent.pop("max_tokens")
    if "no-temperature" in refused:
        sent.pop("temperature", None)
    return sent
