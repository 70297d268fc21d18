"""A scripted, OpenAI-compatible server: deterministic, on loopback, and wrong on demand.

    python tests/scripted_server.py --port 0 --profile typical --latency .2 --faults mixed --rate .2

It prints its address, answers POST /v1/chat/completions, and tells at GET /counts what it was asked. It is no
language model: it reads a prompt back into a situation and lets the simulated agent of the request's seed
answer it. Which fault meets which request depends on the request and its attempt alone.
"""

from __future__ import annotations

import argparse
import asyncio
import email.utils
import hashlib
import json
import math
import subprocess
import sys
import time
from collections import Counter
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from urllib.request import urlopen

from aiohttp import web
from scripted import answer, rough_tokens

from envprobe_core.agents.profiles import TYPICAL
from envprobe_core.cells import find_profile
from envprobe_core.errors import InputError
from envprobe_core.llm.calls import written
from envprobe_core.llm.prompts import DEMAND
from envprobe_core.llm.recorded import FINGERPRINT

LARGEST_BODY = 4 * 2**20
DRIP = 0.05  # seconds a byte
LONG = 3600.0  # seconds; longer than anybody waits
RETRY_SECONDS = 0.2
REFUSALS = {
    "response_format": (500, "response_format of type json_schema is not supported", "server_error"),
    "max_tokens": (
        400,
        "'max_tokens' is not supported: use 'max_completion_tokens'",
        "unsupported_parameter",
    ),
    "temperature": (400, "'temperature' does not support 0 with this model", "unsupported_value"),
}
PAGE = "<!doctype html><html><body><h1>Bad gateway</h1></body></html>"

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
    "rate-limit-hour": "429 with a Retry-After of an hour",
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
    """Which faults a server makes."""

    names: tuple[str, ...] = ()  # the faults to choose from
    rate: float = 0.0  # the share of requests that meet one
    most: int = MOST_IN_A_ROW  # how many attempts of one request may meet one

    def fault(self, digest, attempt, repeated_question):
        """Return the fault that an attempt at a request meets, None where it meets none.

        A question that is asked again, because an answer could not be used, meets no fault of content, so
        that an update does not become invalid by the plan.
        """
        names = [name for name in self.names if not (repeated_question and name in CONTENT)]
        if not names or attempt >= self.most:
            return None
        word = hashlib.sha256(digest + attempt.to_bytes(4)).digest()
        if int.from_bytes(word[:8]) >= self.rate * 2**64:
            return None
        return names[int.from_bytes(word[8:16]) % len(names)]


def parse_plan(names, rate, most):
    """Read the faults of a command line: names with commas between them, or `mixed`, or nothing."""
    listed = tuple(name for name in names.split(",") if name)
    if listed == (MIXED,):
        return Plan((*PASSING, *CONTENT), rate, MOST_IN_A_ROW if most is None else most)
    if not set(listed) <= set(FAULTS):
        raise InputError(f"unknown fault in {names!r}; accepted: {MIXED}, {', '.join(FAULTS)}")
    return Plan(listed, rate, 2**31 if most is None else most)


def spoiled_text(text, fault, key):
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


class ScriptedServer:
    """Answers as a model's server would, and counts what it was asked."""

    def __init__(self, profile, latency, plan, refuses=()):
        self._profile, self._latency, self._plan, self._refuses = profile, latency, plan, refuses
        self.asked = Counter()  # by digest of the request
        self.keys = set()  # that came with requests
        self.last = {}  # with its names in the order in which they came
        self._answered = Counter()
        self._faults = Counter()
        self._under_way, self.most_under_way = 0, 0

    def application(self):
        """Return the routes."""
        application = web.Application(client_max_size=LARGEST_BODY)
        application.router.add_post("/v1/chat/completions", self.complete)
        application.router.add_get("/counts", self.counts)
        return application

    async def counts(self, request):
        """Tell what was asked."""
        asked, answered = self.asked, self._answered
        return web.json_response(
            {
                "requests": asked.total(),
                "distinct": len(asked),
                "answered": answered.total(),
                "faults": dict(self._faults),
            }
        )

    async def complete(self, request):
        self._under_way += 1
        self.most_under_way = max(self.most_under_way, self._under_way)
        try:
            return await self._complete(request)
        finally:
            self._under_way -= 1

    async def _complete(self, request):
        key = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.keys.add(key)
        try:
            asked = json.loads(await request.read())
            digest = hashlib.sha256(written(asked, in_order_of_names=True)).digest()
            attempt, messages = self.asked[digest], asked["messages"]
            again = messages[-1]["content"].startswith(DEMAND)
        except (ValueError, KeyError, TypeError):
            return _error(400, "the body is no chat completion request", "invalid_request_error")
        self.asked[digest] += 1
        self.last = asked
        fault = self._plan.fault(digest, attempt, again)
        await asyncio.sleep(self._latency)
        for name in self._refuses:
            if name in asked:
                return _error(*REFUSALS[name])
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

    async def _fail(self, request, fault, asked, key):
        """Make a fault of the line."""
        if fault.startswith("rate-limit"):
            wait = {
                "rate-limit-seconds": str(RETRY_SECONDS),
                "rate-limit-hour": "3600",
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

    async def _break_off(self, request, asked, *, slowly):
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


def _completion(asked, digest, text):
    """Return a chat completion; it depends on request and text alone."""
    usage = rough_tokens(asked, text)
    return {
        "id": f"chatcmpl-{digest.hex()[:24]}",
        "object": "chat.completion",
        "created": 0,
        "model": asked.get("model"),
        "system_fingerprint": FINGERPRINT,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": usage.prompt,
            "completion_tokens": usage.completion,
            "total_tokens": usage.prompt + usage.completion,
        },
    }


def _error(status, message, code, headers=None, more=None):
    content = {"error": {"message": message, "type": code, "code": code}} | (more or {})
    return web.json_response(content, status=status, headers=headers)


@asynccontextmanager
async def serving(server, port=0):
    """Serve on loopback in the running loop; gives the address."""
    runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=0.01)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}/v1"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def served(plan=None, latency=0.0, refuses=()):
    """Serve in the running loop; gives the address and the server."""
    server = ScriptedServer(TYPICAL, latency, plan or Plan(), refuses)
    async with serving(server) as url:
        yield url, server


@dataclass(frozen=True)
class Served:
    """A server in a process of its own."""

    url: str

    def counts(self):
        """What it was asked so far."""
        with urlopen(f"{self.url.removesuffix('/v1')}/counts", timeout=60) as response:
            return json.load(response)


@contextmanager
def server_process(*arguments):
    """Start the server as a user would, and end it by its process."""
    with subprocess.Popen(
        [sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield Served(process.stdout.readline().strip())
        finally:
            process.terminate()


async def _serve(server, port):
    async with serving(server, port) as url:
        print(url, flush=True)
        await asyncio.Event().wait()


def main():
    """Run the server from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--profile", default="typical", help="of the simulated agent")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--faults", default="", help=f"mixed, or some of: {', '.join(FAULTS)}")
    parser.add_argument("--rate", type=float, default=1.0, help="share of requests that meet a fault")
    parser.add_argument("--most", type=int, help="attempts of one request that may meet one")
    given = parser.parse_args()
    try:
        plan = parse_plan(given.faults, given.rate, given.most)
        server = ScriptedServer(find_profile(given.profile), given.latency, plan)
    except InputError as error:
        sys.exit(f"{parser.prog}: {error}")
    try:
        asyncio.run(_serve(server, given.port))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
