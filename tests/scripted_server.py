"""A scripted, OpenAI-compatible server: deterministic, on loopback, and wrong on demand.

    python tests/scripted_server.py --port 0 --latency .2 --faults mixed --rate .2

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
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from types import SimpleNamespace
from urllib.request import urlopen

from aiohttp import web
from scripted import answer, rough_tokens

from envprobe_core.errors import InputError
from envprobe_core.llm.calls import written
from envprobe_core.llm.prompts import DEMAND
from envprobe_core.llm.running import FINGERPRINT

LARGEST_BODY = 4 * 2**20
DRIP = 0.05  # seconds a byte
LONG = 3600.0  # seconds; longer than anybody waits
MOST_IN_A_ROW = 3  # a request meets no more passing faults than this, so that a run can end
NO_SUCH_FIELD = 999
PAGE = "<!doctype html><html><body><h1>Bad gateway</h1></body></html>"
REFUSALS = {  # of a parameter
    "response_format": (500, "response_format of type json_schema is not supported", "server_error"),
    "max_tokens": (400, "'max_tokens' is not supported: use 'max_completion_tokens'", "unsupported"),
    "temperature": (400, "'temperature' does not support 0 with this model", "unsupported_value"),
}
LIMITED = (429, "Rate limit reached for requests", "rate_limit_exceeded")
ERRORS = {  # faults that are an error: status, message, code, and Retry-After; {key} is the API key
    "rate-limit": LIMITED,
    "rate-limit-seconds": (*LIMITED, "0.2"),
    "rate-limit-date": (*LIMITED, "{date}"),
    "rate-limit-hour": (*LIMITED, "3600"),
    "server-error": (500, "The server had an error", "server_error"),
    "error-in-200": (200, "The engine is overloaded", "overloaded"),
    "paid-error": (500, "The answer was lost", "server_error"),
    "echo": (500, "Worker failed for Authorization: Bearer {key}", "server_error"),
    "key-refused": (401, "Incorrect API key provided: {key}", "invalid_api_key"),
    "forbidden": (403, "Country not supported", "unsupported_country"),
    "not-found": (404, "The model does not exist", "model_not_found"),
    "quota": (429, "You exceeded your current quota", "insufficient_quota"),
}
PAGES = {  # faults that are a whole body of another kind
    "unavailable": {"status": 503, "text": PAGE, "content_type": "text/html"},
    "html": {"text": PAGE, "content_type": "text/html"},
    "half": {"text": '{"id": "half", "choices": [{', "content_type": "application/json"},
}
BROKEN = ("stall", "drip", "cut")  # no answer at all; one that never ends; a body that ends too early
LASTING = ("rate-limit-hour", "key-refused", "forbidden", "not-found", "quota")
PASSING = tuple(name for name in (*ERRORS, *PAGES, *BROKEN) if name not in LASTING)
CONTENT = ("off-schema", "nan", "duplicate", "unknown-field", "prose", "echo-in-answer")
"""Faults that no repetition mends; those that the same request may not meet again; and those of the answer's
text, for which the agent asks again."""
FAULTS = {"mixed": (*PASSING, *CONTENT)} | {name: (name,) for name in (*PASSING, *CONTENT, *LASTING)}


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
        word = hashlib.sha256(digest + attempt.to_bytes(4)).digest()
        if not names or attempt >= self.most or int.from_bytes(word[:8]) >= self.rate * 2**64:
            return None
        return names[int.from_bytes(word[8:16]) % len(names)]


def spoiled_text(text, fault, key):
    """Return an answer's text with a fault of content in it."""
    content = json.loads(text)
    update = "set" in content
    field = {"set": f"{NO_SUCH_FIELD}:1,0,90"} if update else {"field": NO_SUCH_FIELD}
    return {
        "prose": "I believe that tool 3 is loaded now.",
        "off-schema": '{"beliefs":[{"tool":3,"loaded":true}],"confidence":37}',
        "nan": json.dumps(content | {"fade" if update else "field": math.nan}),
        "duplicate": json.dumps(content | {"set": "0:0,0,90;0:1,0,90"})
        if update
        else '{"field":-1,"field":-1,"override":true}',
        "unknown-field": json.dumps(content | field),
        "echo-in-answer": json.dumps(content | ({"act": f"say({key})"} if update else {"field": key})),
    }[fault]


class ScriptedServer:
    """Answers as a model's server would, and counts what it was asked."""

    def __init__(self, latency=0.0, plan=Plan(), refuses=()):
        self._latency, self._plan, self._refuses = latency, plan, refuses
        self.asked = Counter()  # by digest of the request
        self.keys = set()  # that came with requests
        self.last = {}  # with its names in the order in which they came
        self._answered, self._faults = 0, Counter()
        self._under_way, self.most_under_way = 0, 0

    async def counts(self, request):
        """Tell what was asked."""
        told = {"requests": self.asked.total(), "distinct": len(self.asked)}
        return web.json_response(told | {"answered": self._answered, "faults": dict(self._faults)})

    async def complete(self, request):
        """Answer, or make a fault."""
        key = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.keys.add(key)
        try:
            asked = json.loads(await request.read())
            digest = hashlib.sha256(written(asked, in_order_of_names=True)).digest()
            again = asked["messages"][-1]["content"].startswith(DEMAND)
        except (ValueError, KeyError, TypeError):
            return error(400, "the body is no chat completion request", "invalid_request_error")
        fault = self._plan.fault(digest, self.asked[digest], again)
        self.asked[digest] += 1
        self.last = asked
        self._under_way += 1
        self.most_under_way = max(self.most_under_way, self._under_way)
        await asyncio.sleep(self._latency)
        self._under_way -= 1
        for name in self._refuses:
            if name in asked:
                return error(*REFUSALS[name])
        if fault is not None:
            self._faults[fault] += 1
        if fault in PAGES:
            return web.Response(**PAGES[fault])
        if fault in ERRORS:
            status, words, code, *wait = ERRORS[fault]
            date = email.utils.formatdate(math.ceil(time.time()), usegmt=True)
            paid = {"usage": {"prompt_tokens": 1000, "completion_tokens": 100}}  # says what it used
            headers = {"Retry-After": wait[0].format(date=date)} if wait else None
            return error(
                status, words.format(key=key), code, headers, **(paid if fault == "paid-error" else {})
            )
        if fault in BROKEN:
            return await break_off(request, completion(asked, b"", "{}"), fault)
        try:
            text = answer(asked)
        except InputError as refused:
            return error(400, str(refused), "invalid_request_error")
        self._answered += 1
        return web.json_response(completion(asked, digest, spoiled_text(text, fault, key) if fault else text))


async def break_off(request, content, fault):
    """Send nothing, or the beginning of an answer, byte by byte or at once, and never its end."""
    if fault == "stall":
        await asyncio.sleep(LONG)
    body = json.dumps(content).encode()
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.content_length = len(body)
    await response.prepare(request)
    if fault == "drip":
        for place in range(len(body) - 1):
            await response.write(body[place : place + 1])
            await asyncio.sleep(DRIP)
        await asyncio.sleep(LONG)
    await response.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.abort()
    return response


def completion(asked, digest, text):
    """Return a chat completion; it depends on request and text alone."""
    used = rough_tokens(asked, text)
    return {
        "id": f"chatcmpl-{digest.hex()[:24]}",
        "object": "chat.completion",
        "created": 0,
        "model": asked.get("model"),
        "system_fingerprint": FINGERPRINT,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": used.prompt, "completion_tokens": used.completion},
    }


def error(status, message, code, headers=None, **more):
    content = {"error": {"message": message, "type": code, "code": code}} | more
    return web.json_response(content, status=status, headers=headers)


@asynccontextmanager
async def serving(server, port=0):
    """Serve on loopback in the running loop; gives the address."""
    application = web.Application(client_max_size=LARGEST_BODY)
    application.router.add_post("/v1/chat/completions", server.complete)
    application.router.add_get("/counts", server.counts)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.01)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}/v1"
    finally:
        await runner.cleanup()


@contextmanager
def server_process(*arguments):
    """Start the server as a user would, and end it by its process; gives url and counts."""
    command = [sys.executable, __file__, *arguments]

    def counts():
        with urlopen(f"{url.removesuffix('/v1')}/counts", timeout=60) as response:
            return json.load(response)

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = process.stdout.readline().strip()
            yield SimpleNamespace(url=url, counts=counts)
        finally:
            process.terminate()


async def main():
    """Run the server from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--faults", default="", help=f"with commas: {', '.join(FAULTS)}")
    parser.add_argument("--rate", type=float, default=1.0, help="share of requests that meet a fault")
    given = parser.parse_args()
    wanted = [name for name in given.faults.split(",") if name]
    if not {*wanted} <= {*FAULTS}:
        parser.error(f"unknown fault in {given.faults!r}; accepted: {', '.join(FAULTS)}")
    names = tuple(one for name in wanted for one in FAULTS[name])
    most = 2**31 if {*names} <= {*LASTING, *CONTENT} else MOST_IN_A_ROW
    async with serving(ScriptedServer(given.latency, Plan(names, given.rate, most)), given.port) as url:
        print(url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main())
