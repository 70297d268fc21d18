"""A scripted, OpenAI-compatible server for tests: deterministic, on loopback, driven by the simulated agent.

    python -m envprobe_core.llm.server --port 0 --profile typical --latency .2 --faults mixed --rate .2

It prints its address, answers POST /v1/chat/completions and GET /v1/models, and tells at GET /counts what
it was asked. It is no language model: it reads a prompt back into a situation and lets the simulated agent
of the request's seed answer it.
"""

from __future__ import annotations

import argparse
import asyncio
import email.utils
import hashlib
import json
import math
import sys
import time
from collections import Counter

from aiohttp import web

from envprobe_core.agents.profiles import AgentProfile
from envprobe_core.cells import find_profile
from envprobe_core.errors import InputError
from envprobe_core.llm.asking import ChatRequest
from envprobe_core.llm.faults import CONTENT, FAULTS, Plan, parse_plan, spoiled_text
from envprobe_core.llm.keys import canonical
from envprobe_core.llm.scripted import FINGERPRINT, answer, rough_usage

LARGEST_BODY = 4 * 2**20
DRIP = 0.05  # seconds a byte
LONG = 3600.0  # seconds; longer than anybody waits
RETRY_SECONDS = 0.2
PAGE = "<!doctype html><html><body><h1>Bad gateway</h1></body></html>"


class ScriptedServer:
    """Answers as a model's server would, and counts what it was asked."""

    def __init__(self, profile: AgentProfile, latency: float, plan: Plan, schemas: bool) -> None:
        """Set up.

        Args:
            profile: the simulated agent's errors.
            latency: seconds before each answer.
            plan: the faults to make.
            schemas: whether `json_schema` is supported.
        """
        self._profile, self._latency, self._plan, self._schemas = profile, latency, plan, schemas
        self.asked: Counter[bytes] = Counter()  # by digest of the request
        self.last: ChatRequest = {}  # with its names in the order in which they came
        self._answered: Counter[bytes] = Counter()
        self._faults: Counter[str] = Counter()
        self._under_way, self.most_under_way = 0, 0

    def application(self) -> web.Application:
        """Return the routes."""
        application = web.Application(client_max_size=LARGEST_BODY)
        application.router.add_post("/v1/chat/completions", self.complete)
        application.router.add_get("/v1/models", self.models)
        application.router.add_get("/counts", self.counts)
        return application

    async def models(self, request: web.Request) -> web.Response:
        """List the one model there is."""
        return web.json_response({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    async def counts(self, request: web.Request) -> web.Response:
        """Tell what was asked."""
        asked, answered = self.asked, self._answered
        return web.json_response(
            {
                "requests": asked.total(),
                "distinct": len(asked),
                "answered": answered.total(),
                "answered_again": answered.total() - len(answered),
                "faults": dict(self._faults),
                "most_under_way": self.most_under_way,
            }
        )

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """Answer a chat completion, or make the fault that the plan has for it."""
        self._under_way += 1
        self.most_under_way = max(self.most_under_way, self._under_way)
        try:
            return await self._complete(request)
        finally:
            self._under_way -= 1

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        key = request.headers.get("Authorization", "").removeprefix("Bearer ")
        try:
            asked: ChatRequest = json.loads(await request.read())
            digest = hashlib.sha256(canonical(asked)).digest()
            attempt, messages = self.asked[digest], asked["messages"]
            again = any(message["role"] == "assistant" for message in messages)
        except (ValueError, KeyError, TypeError):
            return _error(400, "the body is no chat completion request", "invalid_request_error")
        self.asked[digest] += 1
        self.last = asked
        fault = self._plan.fault(digest, attempt, again)
        await asyncio.sleep(self._latency)
        if not self._schemas and asked.get("response_format", {}).get("type") == "json_schema":
            return _error(500, "response_format of type json_schema is not supported", "server_error")
        if fault is not None:
            self._faults[fault] += 1
        if fault is not None and fault not in CONTENT:
            return await self._fail(request, fault, asked, key)
        try:
            text = answer(asked, self._profile)
        except InputError as error:
            return _error(400, str(error), "invalid_request_error")
        if fault is not None:
            text = spoiled_text(text, fault, key)
        self._answered[digest] += 1
        return web.json_response(_completion(asked, digest, text))

    async def _fail(
        self, request: web.Request, fault: str, asked: ChatRequest, key: str
    ) -> web.StreamResponse:
        """Make a fault of the line."""
        if fault.startswith("rate-limit"):
            wait = {
                "rate-limit-seconds": str(RETRY_SECONDS),
                "rate-limit-date": email.utils.formatdate(math.ceil(time.time()), usegmt=True),
            }
            headers = {"Retry-After": wait[fault]} if fault in wait else None
            return _error(429, "Rate limit reached for requests", "rate_limit_exceeded", headers)
        if fault == "stall":
            await asyncio.sleep(LONG)
        if fault in ("drip", "cut"):
            return await self._break_off(request, asked, slowly=fault == "drip")
        usage = {"usage": {"prompt_tokens": 1000, "completion_tokens": 100}}
        simple = {
            "server-error": lambda: _error(500, "The server had an error", "server_error"),
            "unavailable": lambda: web.Response(status=503, text=PAGE, content_type="text/html"),
            "half": lambda: web.Response(
                text='{"id": "half", "choices": [{', content_type="application/json"
            ),
            "html": lambda: web.Response(text=PAGE, content_type="text/html"),
            "error-in-200": lambda: _error(200, "The engine is overloaded", "overloaded"),
            "paid-error": lambda: _error(500, "The answer was lost", "server_error", more=usage),
            "echo": lambda: _error(500, f"Worker failed for Authorization: Bearer {key}", "server_error"),
            "key-refused": lambda: _error(401, f"Incorrect API key provided: {key}", "invalid_api_key"),
            "forbidden": lambda: _error(403, "Country not supported", "unsupported_country"),
            "not-found": lambda: _error(404, "The model does not exist", "model_not_found"),
            "quota": lambda: _error(429, "You exceeded your current quota", "insufficient_quota"),
        }
        return simple[fault]()

    async def _break_off(
        self, request: web.Request, asked: ChatRequest, *, slowly: bool
    ) -> web.StreamResponse:
        """Send the beginning of an answer, byte by byte or at once, and never its end."""
        body = json.dumps(_completion(asked, b"", "{}")).encode()
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.content_length = len(body)
        await response.prepare(request)
        if slowly:
            while True:
                for place in range(len(body) - 1):
                    await response.write(body[place : place + 1])
                    await asyncio.sleep(DRIP)
                await asyncio.sleep(LONG)
        await response.write(body[: len(body) // 2])
        if request.transport is not None:
            request.transport.abort()
        return response


def _completion(asked: ChatRequest, digest: bytes, text: str) -> dict[str, object]:
    """Return a chat completion; it depends on request and text alone."""
    usage = rough_usage(asked, text)
    return {
        "id": f"chatcmpl-{digest.hex()[:24]}",
        "object": "chat.completion",
        "created": 0,
        "model": asked.get("model"),
        "system_fingerprint": FINGERPRINT,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        },
    }


def _error(
    status: int,
    message: str,
    code: str,
    headers: dict[str, str] | None = None,
    more: dict[str, object] | None = None,
) -> web.Response:
    content = {"error": {"message": message, "type": code, "code": code}} | (more or {})
    return web.json_response(content, status=status, headers=headers)


async def serve(server: ScriptedServer, port: int) -> None:
    """Serve on loopback until the process is ended; print the address first."""
    runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port)
    await site.start()
    where = runner.addresses[0]
    print(f"http://{where[0]}:{where[1]}/v1", flush=True)
    await asyncio.Event().wait()


def main(arguments: list[str] | None = None) -> None:
    """Run the server from the command line."""
    parser = argparse.ArgumentParser(prog="python -m envprobe_core.llm.server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--profile", default="typical", help="of the simulated agent")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--faults", default="", help=f"mixed, or some of: {', '.join(FAULTS)}")
    parser.add_argument("--rate", type=float, help="share of requests that meet a fault; default: all")
    parser.add_argument("--most", type=int, help="attempts of one request that may meet one")
    parser.add_argument("--no-json-schema", action="store_true", help="refuse response_format json_schema")
    given = parser.parse_args(arguments)
    try:
        plan = parse_plan(given.faults, given.rate, given.most)
        server = ScriptedServer(find_profile(given.profile), given.latency, plan, not given.no_json_schema)
    except InputError as error:
        sys.exit(f"{parser.prog}: {error}")
    try:
        asyncio.run(serve(server, given.port))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
