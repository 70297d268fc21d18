"""One call by the `openai` SDK: bytes in, bytes out; the SDK neither retries nor parses.

What it raises is turned into a plain `Sent` here, so that no request object (its headers hold the key) and
no message of the SDK goes further.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from typing import Any

from envprobe_core.llm.asking import ChatRequest
from envprobe_core.llm.hiding import Secret, guard_logs
from envprobe_core.llm.keys import OPENAI_URL, written
from envprobe_core.llm.reading import Fault
from envprobe_core.llm.retries import retry_after
from envprobe_core.llm.store import Raw

# The key is never sent; without it the SDK would draw a new one for each call.
_OPTIONS: Any = {"idempotency_key": "none", "headers": {"Content-Type": "application/json"}}
SLACK = 5.0  # seconds by which the transport's own limits exceed the deadline, which ends a call first


@dataclass(frozen=True)
class Sent:
    """What became of a call: a response, or a fault where none came; and what Retry-After asks for."""

    raw: Raw | None
    fault: Fault | None = None
    wait: float | None = None


class Caller:
    """An open connection to a provider."""

    def __init__(self, secret: Secret, base_url: str | None, concurrency: int, deadline: float) -> None:
        import openai

        self._secret, self._deadline = secret, deadline
        limit = deadline + SLACK
        self._http = openai.DefaultAioHttpClient(
            limits=_limits(concurrency), timeout=limit, follow_redirects=False
        )
        self._sdk = openai.AsyncOpenAI(
            api_key=secret.reveal(),
            base_url=base_url or OPENAI_URL,
            max_retries=0,
            timeout=limit,
            http_client=self._http,
        )
        guard_logs(secret)

    async def close(self) -> None:
        """Close the connection."""
        await self._sdk.close()

    async def send(self, request: ChatRequest) -> Sent:
        """Send a request and wait for the whole response, but no longer than the deadline.

        `chat.completions.create` would walk through the request against its types first, which takes
        longer than all the rest, and would parse the response. The request goes out in its own order: a
        constrained decoder writes the keys of an answer in the order of the schema's properties.
        """
        import httpx2
        import openai

        try:
            async with asyncio.timeout(self._deadline):
                reply = await self._sdk.post(
                    "/chat/completions",
                    cast_to=httpx2.Response,
                    content=written(request),
                    options=_OPTIONS,
                )
            return self._response(reply)
        except openai.APIStatusError as error:
            return self._response(error.response)
        except TimeoutError:
            return Sent(None, Fault("timeout", f"no whole answer within {self._deadline:g} s"))
        except openai.APIConnectionError as error:
            return Sent(None, self._lost(first_cause(error)))
        except (openai.OpenAIError, OSError, ValueError, RuntimeError) as error:
            return Sent(None, self._lost(error))

    def _response(self, response: Any) -> Sent:
        kind = response.headers.get("content-type", "")
        body = self._secret.hide_bytes(response.content)
        return Sent(
            Raw(response.status_code, self._secret.hide(kind), body), wait=retry_after(response.headers)
        )

    def _lost(self, error: BaseException) -> Fault:
        """Say why there is no whole response; one that never connected cannot have been charged."""
        import aiohttp

        kind = type(error).__name__
        if isinstance(error, aiohttp.ClientConnectorError | ConnectionRefusedError | socket.gaierror):
            return Fault("no-connection", "nothing answers there", free=True)
        words = " ".join(self._secret.hide(str(error)).split())[:120]
        return Fault("cut-off", f"{kind}: {words}" if words else kind)


def first_cause(error: BaseException) -> BaseException:
    """Return what lies beneath: the transport gives all lost connections the name of a time-out."""
    while (beneath := error.__cause__ or error.__context__) is not None:
        error = beneath
    return error


def _limits(concurrency: int) -> Any:
    import httpx2

    return httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
