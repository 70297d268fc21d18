"""A scripted, OpenAI-compatible server: deterministic, on loopback, and wrong on demand.

    python tests/scripted_server.py 0.2 mixed 0.2 8900  (latency, faults with commas, share of requests, port)

It prints its address, answers POST /v1/chat/completions, and tells at GET /counts what it was asked. It is no
language model: it reads a prompt back into a situation and lets the simulated agent of the request's seed
answer it. Which fault meets which request depends on the request and its attempt alone.
"""

from __future__ import annotations

import asyncio
import email.utils
import gzip
import hashlib
import json
import math
import subprocess
import sys
import time
from collections import Counter
from contextlib import asynccontextmanager, contextmanager, suppress
from types import SimpleNamespace
from urllib.request import urlopen

from aiohttp import web

from envprobe_core.errors import InputError
from envprobe_core.llm.calls import LARGEST_RESPONSE, written
from envprobe_core.llm.prompts import DEMAND
from envprobe_core.llm.running import FINGERPRINT
from scripted import answer, rough_tokens
from server_habits import HABITS, Habit

LARGEST_BODY = 4 * 2**20
DRIP = 0.05  # seconds a byte
PIECE = 7  # characters of an event in a stream
WRONG_BY = 5 * 3600  # seconds that a wrong clock is ahead
LONG = 3600.0  # seconds; longer than anybody waits
MOST_IN_A_ROW = 3  # a request meets no more passing faults than this, so that a run can end
PAGE = {"text": "<!doctype html><html><body><h1>Bad gateway</h1></body></html>", "content_type": "text/html"}
REFUSALS = {  # of a parameter, in the words of servers
    "seed": (422, "Extra inputs are not permitted: seed", "invalid_request_error"),
    "system": (400, "System role not supported", "invalid_request_error"),
    "response_format": (500, "response_format is not supported", "server_error"),
    "json_schema": (500, "response_format of type json_schema is not supported", "server_error"),
    "pattern": (400, "Invalid schema: In context=('properties', 'set'), 'pattern' is not permitted", "400"),
    "grammar": (400, "Failed to initialize samplers: failed to parse grammar", "invalid_request_error"),
    "json_object": (400, "'response_format.type' must be 'json_schema' or 'text'", "invalid_request_error"),
    "whole": (400, "This model only support stream mode, please enable the stream parameter", "invalid"),
    "max_tokens": (400, "'max_tokens' is not supported: use 'max_completion_tokens'", "unsupported"),
    "temperature": (400, "'temperature' does not support 0 with this model", "unsupported_value"),
}
OF_SCHEMAS = ("json_schema", "pattern", "grammar")  # refusals of which an object without a schema is none
LIMITED = (429, "Rate limit reached for requests", "rate_limit_exceeded")
ERRORS = {  # faults that are an error: status, message, code, and Retry-After; {key} is the API key
    "rate-limit": LIMITED,
    "rate-limit-seconds": (*LIMITED, "0.2"),
    "rate-limit-date": (*LIMITED, "{date}"),
    "rate-limit-wrong-clock": (*LIMITED, "{date}"),
    "rate-limit-hour": (*LIMITED, "3600"),
    "error-in-200": (200, "The engine is overloaded", "overloaded"),
    "paid-error": (500, "The answer was lost", "server_error"),
    "echo": (500, "Worker failed for Authorization: Bearer {key}", "server_error"),
    "key-refused": (401, "Incorrect API key provided: {key}", "invalid_api_key"),
    "forbidden": (403, "Country not supported", "unsupported_country"),
    "not-found": (404, "The model does not exist", "model_not_found"),
    "quota": (429, "You exceeded your current quota", "insufficient_quota"),
}
PAGES = {  # faults that are a whole body of another kind
    "unavailable": PAGE | {"status": 503},
    "loading": {
        "text": '{"error":{"message":"Loading model","type":"unavailable_error","code":503}}',
        "content_type": "application/json",
        "status": 503,
    },
    "moved": {"status": 308, "headers": {"Location": "?moved"}},
    "redirect": {"status": 308, "headers": {"Location": "http://elsewhere.test/v1/chat/completions"}},
    "html": PAGE,
    "packed": {"body": gzip.compress(bytes(LARGEST_RESPONSE + 1)), "headers": {"Content-Encoding": "gzip"}},
    "error-in-choice": {
        "text": '{"choices":[{"message":{"content":"{\\"set\\":"},"finish_reason":"error",'
        '"error":{"code":502,"message":"The provider went away"}}]}',
        "content_type": "application/json",
    },
    "429-in-200": {
        "text": '{"error":{"code":429,"message":"Slow down"},"choices":[]}',
        "content_type": "application/json",
    },
    "401-in-200": {
        "text": '{"error":{"code":"401","message":"No such user"}}',
        "content_type": "application/json",
    },
    "half": {"text": '{"id": "half", "choices": [{', "content_type": "application/json"},
}
BROKEN = ("stall", "drip", "cut")  # no answer at all; one that never ends; a body that ends too early
HUGE = ("packed", "endless")  # more than is read of a response
# faults that no repetition mends, and those that the same request may not meet again
LASTING = ("401-in-200", "redirect", "rate-limit-hour", "key-refused", "forbidden", "not-found", "quota")
PASSING = tuple(name for name in (*ERRORS, *PAGES, *BROKEN) if name not in (*LASTING, *HUGE, "moved"))
CONTENT = {  # faults of an answer's text, for which the agent asks again
    "prose": "I believe that tool 3 is loaded now.",
    "off-schema": '{"beliefs":[{"tool":3,"loaded":true}],"confidence":37}',
    "echo-in-answer": '{"act":"say({key})"}',
}
FAULTS = {"mixed": (*PASSING, *CONTENT)} | {name: (name,) for name in (*PASSING, *CONTENT, *LASTING, *HUGE)}


class ScriptedServer:
    """Answers as a model's server would, and counts what it was asked."""

    def __init__(self, latency=0.0, faults=(), rate=1.0, most=MOST_IN_A_ROW, refuses=()):
        """Take the faults to choose from, the share of requests that meet one, and how many of a row do."""
        self._latency, self._faults, self._rate, self._most = latency, faults, rate, most
        self._refuses = refuses
        self.asked = Counter()  # by digest of the request
        self.keys = set()  # that came with requests
        self.whole = {}  # by model: the first request, should a part of later ones be refused
        self.of_model = Counter()  # requests that were not refused
        self.last = {}  # with its names in the order in which they came
        self.answered, self.met = 0, Counter()  # faults, by name
        self._under_way, self.most_under_way = 0, 0

    async def models(self, request):
        """List the models: one, or as many as the path asks for."""
        count = int(request.match_info.get("count", 1))
        return web.json_response({"data": [{"id": f"scripted-{one}"} for one in range(count)]})

    async def counts(self, request):
        """Tell what was asked."""
        told = {"requests": self.asked.total(), "distinct": len(self.asked), "answered": self.answered}
        return web.json_response(told | {"faults": self.met})

    def _fault(self, digest, again):
        """Return the fault that a request meets this time, None where it meets none.

        A question that is asked again, because an answer could not be used, meets no fault of content, so
        that an update does not become invalid by the plan.
        """
        names = [name for name in self._faults if not (again and name in CONTENT)]
        word = hashlib.sha256(digest + self.asked[digest].to_bytes(4)).digest()
        if self.asked[digest] >= self._most or int.from_bytes(word[:8]) >= self._rate * 2**64:
            return None
        return names[int.from_bytes(word[8:16]) % len(names)] if names else None

    def _read(self, asked):
        """Put back what it refuses and its agent goes by, of requests that are all of one episode."""
        whole = self.whole[asked["model"]]
        if "seed" in asked and asked["messages"][0]["role"] == "system":
            return asked
        return whole | {"messages": [*whole["messages"][:-1], asked["messages"][-1]]}

    async def complete(self, request):
        """Answer, or make a fault."""
        key = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.keys.add(key)
        self.last = asked = json.loads(await request.read())
        habit = HABITS.get(asked["model"], Habit())
        self.whole.setdefault(asked["model"], asked)
        digest = hashlib.sha256(written(asked, in_order_of_names=True)).digest()
        fault = self._fault(digest, asked["messages"][-1]["content"].startswith(DEMAND))
        self.asked[digest] += 1
        self._under_way += 1
        self.most_under_way = max(self.most_under_way, self._under_way)
        await asyncio.sleep(self._latency)
        self._under_way -= 1
        for name in (*self._refuses, *habit.refuses):
            if is_refused(name, asked):
                return error(*REFUSALS[name])
        number = self.of_model[asked["model"]]
        self.of_model[asked["model"]] += 1
        if number < len(habit.first) or {*habit.first} & {*LASTING, *HUGE, "drip"}:
            fault = habit.first[min(number, len(habit.first) - 1)]
        if habit.first == ("moved",):
            fault = None if request.query_string == "moved" else "moved"
        self.met.update([fault] if fault else ())
        if fault in PAGES:
            return web.Response(**PAGES[fault])
        if fault in ERRORS:
            status, words, code, *wait = ERRORS[fault]
            here = time.time() + (WRONG_BY if fault == "rate-limit-wrong-clock" else 0)
            date = email.utils.formatdate(math.ceil(here), usegmt=True)
            headers = {"Retry-After": wait[0].format(date=date)} if wait else {}
            headers |= {"Date": email.utils.formatdate(here, usegmt=True)}
            usage = {"prompt_tokens": 1000, "completion_tokens": 100} if fault == "paid-error" else None
            return error(status, words.format(key=key), code, headers, usage)
        if fault in BROKEN or fault == "endless":
            return await break_off(request, completion(asked, "{}"), fault)
        try:
            text = CONTENT[fault].replace("{key}", key) if fault else answer(self._read(asked))
        except InputError as why:  # as of prompts that have no table
            return error(400, f"the scripted agent cannot answer: {why}", "invalid_request_error")
        self.answered += 1
        if number >= habit.after and (not habit.every or (number + 1) % habit.every == 0):
            return sent(completion(asked, text, habit.message(text), dict(habit.more)), habit.streams)
        return web.json_response(completion(asked, text))


async def break_off(request, content, fault):
    """Send nothing, or the beginning of an answer, byte by byte or at once, and never its end."""
    if fault == "stall":
        await asyncio.sleep(LONG)
    if fault == "endless":
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        with suppress(ConnectionError):  # until the client has had enough
            while True:
                await response.write(b" " * 2**18)
        return response
    body = json.dumps(content).encode()
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.content_length = len(body)
    await response.prepare(request)
    for byte in body[:-1] if fault == "drip" else body[: len(body) // 2]:
        await response.write(bytes([byte]))
        await asyncio.sleep(DRIP if fault == "drip" else 0)
    if request.transport is not None:
        request.transport.abort()
    return response


def is_refused(name, asked):
    """Say whether a request has what a server refuses under this name."""
    form = asked.get("response_format", {}).get("type")
    if name in OF_SCHEMAS:
        return form == "json_schema"
    if name == "json_object":
        return form == name
    if name == "whole":
        return not asked.get("stream")
    return name in asked or (name == "system" and asked["messages"][0]["role"] == name)


def completion(asked, text, message=None, more=None):
    """Return a chat completion; it depends on request and text alone, but for a habit's parts."""
    used, more = rough_tokens(asked, text), dict(more or {})
    finish = more.pop("finish_reason", "stop")
    message = message or {"role": "assistant", "content": text}
    return {
        "model": asked["model"],
        "system_fingerprint": FINGERPRINT,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": used.prompt, "completion_tokens": used.completion},
    } | more


def sent(whole, streams):
    """Return a completion as one body, or as the events of a stream."""
    if not streams:
        return web.json_response(whole)
    text = whole["choices"][0]["message"]["content"]
    pieces = [
        {"choices": [{"delta": {"content": text[at : at + PIECE]}}]} for at in range(0, len(text), PIECE)
    ]
    end = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    rest = {name: whole[name] for name in ("model", "system_fingerprint", "usage")} | {"choices": []}
    events = [f"data: {json.dumps(one)}\n\n" for one in (*pieces, end, rest)]
    return web.Response(text="".join([*events, "data: [DONE]\n\n"]), content_type="text/event-stream")


def error(status, message, code, headers=None, usage=None):
    content = {"error": {"message": message, "type": code, "code": code}, "usage": usage}
    return web.json_response(content, status=status, headers=headers)


@asynccontextmanager
async def serving(server, port=0):
    """Serve on loopback in the running loop; gives the address."""
    application = web.Application(client_max_size=LARGEST_BODY)
    application.router.add_post("/v1/chat/completions", server.complete)
    application.router.add_get("/v1/models", server.models)
    application.router.add_get("/{count}/v1/models", server.models)
    application.router.add_get("/counts", server.counts)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.01)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


@contextmanager
def server_process(latency=0.0, faults="", rate=1.0):
    """Start the server in a process of its own, and end it; gives url and counts."""
    command = [sys.executable, __file__, str(latency), faults, str(rate)]

    def counts():
        with urlopen(f"{url.removesuffix('/v1')}/counts", timeout=60) as response:
            return json.load(response)

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            url = process.stdout.readline().strip()
            yield SimpleNamespace(url=url, counts=counts)
        finally:
            process.terminate()


async def main(latency="0", faults="", rate="1", port="0"):
    """Run the server until it is ended."""
    names = tuple(one for name in faults.split(",") if name for one in FAULTS[name])
    most = sys.maxsize if {*names} <= {*LASTING, *CONTENT} else MOST_IN_A_ROW
    async with serving(ScriptedServer(float(latency), names, float(rate), most), int(port)) as url:
        print(url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(main(*sys.argv[1:]))
