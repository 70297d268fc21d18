"""The client: answers from the store, else by a call: claimed before it is made, stored before it is used.

A question in flight is asked once, whoever else wants it, in this process or in another on the same store. A
fault that may pass is tried again with the same request; one that will not, or not soon, ends the run.
It never becomes an answer.

Calls go through the `openai` SDK, bytes in, bytes out. It neither retries nor parses: each of its own retries
would be a call that nobody has stored, and what it cannot parse it throws away. What it raises becomes a
plain `Fault`, so that no request object (its headers hold the key) goes further.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import random
import socket
import time
import traceback
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from envprobe_core.errors import InputError
from envprobe_core.llm import ModelAgent
from envprobe_core.llm.calls import (
    LOCAL,
    NO_TOKENS,
    OPENAI_URL,
    REFUSED_PARTS,
    Answer,
    ChatRequest,
    Fault,
    MissingAnswerError,
    Prices,
    Question,
    Raw,
    RunStoppedError,
    dollars,
    provider_label,
    question,
    read_response,
    total_cost,
    written,
)
from envprobe_core.llm.local import serving
from envprobe_core.llm.store import STARTED, Answers, Refusal

GRACE = 10.0  # seconds that calls under way get to be stored when a run ends early
MARGIN = 30.0  # seconds that a claim outlasts the deadline of its call, for the store's sake
LOOK = 0.2  # seconds between two looks for another's answer, for room under the cap, or for the run's end
VARIABLE = "OPENAI_API_KEY"
PLACEHOLDER = "local-server-without-a-key"
SHORTEST_SECRET = 8  # characters; `none`, `EMPTY` and the like are no secrets and may stand in answers
HIDDEN = "[API key]"
SLACK = 5.0  # seconds by which the transport's own limits exceed the deadline, which ends a call first
# No idempotency key is sent; where none is given the SDK would draw a new one for each call.
_OPTIONS: Any = {"idempotency_key": "none", "headers": {"Content-Type": "application/json"}}


@dataclass
class Counts:
    """What a client has done so far, for the live line."""

    calls: int = 0  # calls made
    replayed: int = 0  # answers taken from the store
    faults: int = 0  # calls that brought no answer
    unusable: int = 0  # answers that the agent could not use
    cut: int = 0  # answers of this client's calls that reached the limit of tokens
    prompt_tokens: int = 0  # of this client's calls
    completion_tokens: int = 0
    cost: float = 0.0  # of this client's calls, in dollars; what is not known counts as its most


Notice = Callable[[Counts], object]


@dataclass(frozen=True)
class Limits:
    """What a client may do, and its patience with one question."""

    concurrency: int = 16  # calls under way at once
    cap: float | None = None  # dollars that all calls of the store may cost together, None for no cap
    attempts: int = 6  # calls to one question before the run stops
    deadline: float = 120.0  # seconds that one call may take from its start to the last byte
    # seconds of the longest wait after the first failure; it doubles with each further one
    first: float = 0.5
    longest: float = 60.0  # seconds of the longest wait

    def wait(self, failures: int, asked: float | None, dice: random.Random) -> float:
        """Return the seconds to wait after some failures, from 1: full jitter, no less than was `asked`."""
        jitter = dice.uniform(0.0, min(self.longest, self.first * 2 ** (failures - 1)))
        return min(self.longest, max(jitter, asked or 0.0))


@dataclass(frozen=True)
class Service:
    """Who answers a run."""

    agent: ModelAgent  # which model, and how
    answers: Answers  # where answers are kept; a store that can be written to, where there is a key
    secret: Secret | None = None  # the API key; None to replay only
    # of OpenAI, of a compatible server, or of several servers of one model
    urls: tuple[str, ...] = (OPENAI_URL,)
    limits: Limits = field(default_factory=Limits)  # what may be done
    prices: Prices = field(default_factory=dict)  # dollars, by model
    # what is served on this machine while a run lasts; None where servers run already
    weights: Path | None = None

    @contextmanager
    def at_work(self) -> Iterator[Service]:
        """Give the service with its servers, where it has weights to serve; close it in the end."""
        with closing(self.answers):
            if self.weights is None or self.secret is None:
                yield self
                return
            with serving(self.weights, self.limits.concurrency) as urls:
                yield replace(self, urls=urls)

    @asynccontextmanager
    async def client(self, notice: Notice = lambda counts: None) -> AsyncIterator[Client]:
        """Give a client, and close it when what is under way is stored."""
        client = Client(self, notice)
        try:
            yield client
        finally:
            await client.close()


class Client:
    """Answers requests from a store and, unless it only replays, by calling a provider."""

    def __init__(self, service: Service, notice: Notice) -> None:
        """Set up a client of a service; `notice` is called after every call and every answer."""
        self.counts = Counts()
        self._store: Any = service.answers
        self._provider, self._prices, self._limits = service.agent.provider, service.prices, service.limits
        self._caller = None if service.secret is None else Caller(service.secret, service.urls, self._limits)
        self._notice = notice
        self._refused: dict[str, set[str]] = {}  # parts of requests, by model
        self._flying: dict[bytes, asyncio.Task[Answer]] = {}
        self._room = asyncio.Semaphore(self._limits.concurrency)
        self._quiet_until = 0.0
        self._under_way = 0
        self._stopped: RunStoppedError | None = None
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._changes: list[tuple[bool, Callable[[], Any], asyncio.Future[Any]]] = []
        self._committing: asyncio.Task[None] | None = None
        self._dice = random.Random()

    async def ask(self, request: ChatRequest, identity: str, spoilt: str = "") -> Answer:
        """Answer a request; see `calls.Ask`.

        Raises:
            RunStoppedError: if there is no answer and none can be had.
        """
        self.counts.unusable += bool(spoilt)
        asked = question(self._provider, request, identity)
        if (found := self._store.find(asked.key)) is not None:
            self.counts.replayed += 1
            self._notice(self.counts)
            return found
        if self._caller is None:
            sample = f"{asked.key.hex()[:16]} ({identity}, model {asked.model} of {self._provider})"
            raise MissingAnswerError(self._store.lacks(sample))
        if (task := self._flying.get(asked.key)) is None:
            task = self._flying[asked.key] = asyncio.create_task(self._obtain(asked, spoilt))
            task.add_done_callback(partial(self._landed, asked.key))
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Let calls under way be stored, then close the connection; the store stays open."""
        self._stopped = self._stopped or RunStoppedError("the run has ended")
        if flying := list(self._flying.values()):
            _, late = await asyncio.wait(flying, timeout=GRACE)
            for task in late:
                task.cancel()
            await asyncio.gather(*flying, return_exceptions=True)
        if self._committing is not None:
            await self._committing
        if self._caller is not None:
            await self._caller.close()
        self._writer.shutdown()

    def _landed(self, key: bytes, task: asyncio.Task[Answer]) -> None:
        del self._flying[key]
        if not task.cancelled():
            task.exception()  # seen by those who waited; nobody may have

    async def _obtain(self, asked: Question, spoilt: str) -> Answer:
        """Call until there is an answer, or until another process has one."""
        failures, refused = 0, self._refused.setdefault(asked.model, set())
        while True:
            async with self._room:
                await self._wait(self._quiet_until)
                without = frozenset(refused)
                call = await self._claim(asked, spoilt)
                found = None if call is None else await self._call(call, asked, without)
            if isinstance(found, Answer) or found is None:
                # another process may have been faster
                if (stored := self._store.find(asked.key) or found) is not None:
                    return stored
                await asyncio.sleep(LOOK)
            elif found.name in REFUSED_PARTS and found.name not in without:
                refused.add(found.name)
            else:
                failures += 1
                await self._wait(self._patient(found, failures))

    def _patient(self, fault: Fault, failures: int) -> float:
        """Return the time of the loop until which to wait after a fault.

        Raises:
            RunStoppedError: if nothing more is tried.
        """
        limits, asked = self._limits, fault.wait
        if asked is not None and asked > limits.longest:
            fault = replace(fault, detail=f"{fault.detail}; it asks to wait {asked:.0f} s", final=True)
        if fault.final or failures >= limits.attempts or self._stopped is not None:
            tries = "" if fault.final else f" after {failures} attempt{'s' * (failures > 1)}"
            raise self._stop(
                f"{self._provider} gave no answer{tries}: {fault}; nothing was scored, all answers are kept "
                f"in {self._store.path}: run the command again to continue"
            )
        now = asyncio.get_running_loop().time()
        if asked is not None:
            self._quiet_until = max(self._quiet_until, now + asked)
        return now + limits.wait(failures, asked, self._dice)

    async def _claim(self, asked: Question, spoilt: str) -> int | None:
        """Claim a question, None if another process has it; wait while calls under way may free money."""
        limits, cap = self._limits, self._limits.cap
        fits = None if cap is None else lambda used: total_cost(self._prices, used) <= cap
        claim = partial(self._store.claim, asked, limits.deadline + MARGIN, fits, spoilt)
        while self._stopped is None:
            busy = self._under_way > 0
            call = await self._commit(claim, durable=fits is not None)
            if call is Refusal.TAKEN:
                return None
            if call is not Refusal.OVER_CAP:
                self._under_way += 1
                return int(call)
            if not busy and not self._under_way:
                spent = dollars(total_cost(self._prices, self._store.used()))
                worst = dollars(total_cost(self._prices, {asked.model: asked.most}))
                raise self._stop(
                    f"the cap of {dollars(cap or 0.0)} is reached: {spent} are spent, and the next call can "
                    f"cost up to {worst}; all answers are kept in {self._store.path}: raise --max-cost and "
                    "run the command again to continue"
                )
            await asyncio.sleep(LOOK)
        raise RunStoppedError(str(self._stopped))  # a new error, as each keeps a traceback of its own

    async def _call(self, call: int, asked: Question, without: frozenset[str]) -> Answer | Fault:
        """Make a call and commit its outcome, whatever that is."""
        assert self._caller is not None
        raw: Raw | None = None
        found: Answer | Fault = Fault(STARTED)
        try:
            raw, found = await self._caller.send(adapted(asked.request, without))
        finally:
            try:
                await self._commit(partial(self._store.settle, call, raw, found), durable=True)
            finally:
                self._under_way -= 1
        counts, used = self.counts, found.used
        counts.calls += 1
        counts.cost += total_cost(self._prices, {asked.model: asked.most if used is None else used})
        if used is not None:
            counts.prompt_tokens += used.prompt
            counts.completion_tokens += used.completion
        if isinstance(found, Answer):
            counts.cut += found.finish == "length"
            found = found._replace(key=asked.key.hex())
        else:
            counts.faults += 1
        self._notice(counts)
        return found

    async def _commit(self, change: Callable[[], Any], *, durable: bool) -> Any:
        """Change the store, with all else that waits to be committed when the last commit is done.

        A commit that outlasts a power cut takes the disk some milliseconds: one for each answer would set
        the pace of a run. It is made on a thread, and holds up no other call.
        """
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        self._changes.append((durable, change, done))
        if self._committing is None:
            self._committing = loop.create_task(self._commit_all())
        return await done

    async def _commit_all(self) -> None:
        while changes := self._changes:
            self._changes = []
            durable, works, waiting = zip(*changes, strict=True)
            together = partial(self._store.together, works, durable=any(durable))
            try:
                results = await asyncio.get_running_loop().run_in_executor(self._writer, together)
            except Exception as error:  # of the disk, or a fault of ours: nobody may wait for ever
                results = [error] * len(waiting)
            for one, result in zip(waiting, results, strict=True):
                if not one.done():  # who waited may have been cancelled
                    set_it = one.set_exception if isinstance(result, Exception) else one.set_result
                    set_it(result)
        self._committing = None

    async def _wait(self, until: float) -> None:
        """Wait until a time of the loop, or until the run ends."""
        loop = asyncio.get_running_loop()
        while (rest := until - loop.time()) > 0 and self._stopped is None:
            await asyncio.sleep(min(rest, LOOK))

    def _stop(self, why: str) -> RunStoppedError:
        """End the run; the first reason is everybody's."""
        self._stopped = self._stopped or RunStoppedError(why)
        return self._stopped


# ---------------------------------------------------------------- the API key, which nobody else gets to see


@dataclass(frozen=True)
class Secret:
    """The API key; it shows itself to nobody who does not ask for `reveal()`."""

    _value: str

    def __repr__(self) -> str:
        return f"Secret({HIDDEN})"

    def reveal(self) -> str:
        """Return the key itself."""
        return self._value

    def hide(self, text: str) -> str:
        """Return a text without the key, in whatever usual form it stands there."""
        return self.hide_bytes(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def hide_bytes(self, body: bytes) -> bytes:
        """Return a server's answer without the key."""
        for form in self._forms:
            body = body.replace(form, HIDDEN.encode())
        return body

    @cached_property
    def _forms(self) -> list[bytes]:
        value = self._value
        if len(value) < SHORTEST_SECRET or value == PLACEHOLDER:
            return []
        forms = {value, json.dumps(value)[1:-1], value.replace("/", "\\/"), quote(value, safe="")}
        forms.add(base64.b64encode(value.encode()).decode().rstrip("="))
        return [form.encode() for form in sorted(forms, key=len, reverse=True)]


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


# ---------------------------------------------------------------- one call: bytes in, bytes out


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

    def __init__(self, secret: Secret, urls: Sequence[str], limits: Limits) -> None:
        import httpx2
        import openai

        self._secret, self._deadline = secret, limits.deadline
        timeout, most = limits.deadline + SLACK, limits.concurrency
        pool = httpx2.Limits(max_connections=most, max_keepalive_connections=most)

        def connected(url: str) -> openai.AsyncOpenAI:
            http = openai.DefaultAioHttpClient(
                limits=pool,
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
    text = headers.get("Retry-After", "").strip()
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
