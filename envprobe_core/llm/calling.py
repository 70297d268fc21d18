"""One call by the `openai` SDK: bytes in, bytes out; and how long to wait before the next.

The SDK neither retries nor parses: each of its own retries would be a call that nobody has stored, and what
it cannot parse it throws away. What it raises becomes a plain `Sent` here, so that no request object
(its headers hold the key) and no message of the SDK goes further.
"""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from envprobe_core.llm.asking import NO_TOKENS, ChatRequest
from envprobe_core.llm.hiding import Secret, guard_logs
from envprobe_core.llm.keys import written
from envprobe_core.llm.reading import Completion, Fault, Raw, read_response

# The key is never sent; without it the SDK would draw a new one for each call.
_OPTIONS: Any = {"idempotency_key": "none", "headers": {"Content-Type": "application/json"}}
SLACK = 5.0  # seconds by which the transport's own limits exceed the deadline, which ends a call first


@dataclass(frozen=True)
class Sent:
    """What became of a call.

    Attributes:
        raw: the response; None where none came.
        found: what it says.
        wait: the seconds that Retry-After asks for, None where it says nothing.
    """

    raw: Raw | None
    found: Completion | Fault
    wait: float | None = None


@dataclass(frozen=True)
class Patience:
    """Bounds on one question; they change nothing but time and whether a run stops.

    Attributes:
        attempts: calls to one question before the run stops.
        deadline: seconds that one call may take from its start to the last byte.
        first: seconds of the longest wait after the first failure; it doubles with each further one.
        longest: seconds of the longest wait.
    """

    attempts: int = 6
    deadline: float = 120.0
    first: float = 0.5
    longest: float = 60.0

    def wait(self, failures: int, asked: float | None, dice: random.Random) -> float:
        """Return the seconds to wait: full jitter, and no less than the server asked for.

        Args:
            failures: how often the call has failed so far, from 1.
            asked: what Retry-After says, None where it says nothing.
            dice: the source of the jitter.
        """
        jitter = dice.uniform(0.0, min(self.longest, self.first * 2 ** (failures - 1)))
        return min(self.longest, max(jitter, asked or 0.0))


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Read Retry-After, in seconds or as a date; None where it is missing or makes no sense.

    Args:
        headers: of the response.
        now: seconds since the epoch; by default the clock's.
    """
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - (time.time() if now is None else now)
        except (ValueError, OverflowError, TypeError):
            return None
    return max(0.0, seconds) if seconds == seconds else None


def adapted(request: ChatRequest, refused: Collection[str]) -> ChatRequest:
    """Return a request without the parts that its server refuses (`reading.REFUSED_PARTS`).

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


class Caller:
    """Open connections to a provider, or to several servers of the same model."""

    def __init__(self, secret: Secret, urls: Sequence[str], concurrency: int, deadline: float) -> None:
        import httpx2
        import openai

        self._secret, self._deadline = secret, deadline
        limits = httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
        self._sdks = [
            openai.AsyncOpenAI(
                api_key=secret.reveal(),
                base_url=url,
                max_retries=0,
                timeout=deadline + SLACK,
                http_client=openai.DefaultAioHttpClient(
                    limits=limits, timeout=deadline + SLACK, follow_redirects=False
                ),
            )
            for url in urls
        ]
        self._under_way = [0] * len(urls)
        guard_logs(secret)

    async def close(self) -> None:
        """Close the connections."""
        for sdk in self._sdks:
            await sdk.close()

    async def send(self, request: ChatRequest) -> Sent:
        """Send a request to the least busy server, and wait for the whole response until the deadline.

        `chat.completions.create` would walk through the request against its types first, which takes
        longer than all the rest, and would parse the response. The request goes out in its own order: a
        constrained decoder writes the keys of an answer in the order of the schema's properties.
        """
        import httpx2
        import openai

        server = self._under_way.index(min(self._under_way))
        self._under_way[server] += 1
        try:
            async with asyncio.timeout(self._deadline):
                reply = await self._sdks[server].post(
                    "/chat/completions",
                    cast_to=httpx2.Response,
                    content=written(request),
                    options=_OPTIONS,
                )
            return self._came(reply)
        except openai.APIStatusError as error:
            return self._came(error.response)
        except TimeoutError:
            return Sent(None, Fault("timeout", f"no whole answer within {self._deadline:g} s"))
        except (openai.OpenAIError, OSError, ValueError, RuntimeError) as error:
            return Sent(None, self._lost(first_cause(error)))
        finally:
            self._under_way[server] -= 1

    def _came(self, response: Any) -> Sent:
        kind = self._secret.hide(response.headers.get("content-type", ""))
        raw = Raw(response.status_code, kind, self._secret.hide_bytes(response.content))
        return Sent(raw, read_response(raw), retry_after(response.headers))

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
