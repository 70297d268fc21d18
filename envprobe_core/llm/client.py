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
import json
import logging
import random
import socket
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from envprobe_core.agents.model import ModelAgent
from envprobe_core.errors import InputError, counted
from envprobe_core.llm import calls
from envprobe_core.llm.calls import Answer, ChatRequest, Fault, Question, Raw, RunStoppedError
from envprobe_core.llm.local import serving
from envprobe_core.llm.replays import Answers
from envprobe_core.llm.secret import Secret
from envprobe_core.llm.store import STARTED

if TYPE_CHECKING:
    import openai

GRACE = 10.0  # seconds that calls under way get to be stored when a run ends early
MARGIN = 30.0  # seconds that a claim outlasts the deadline of its call, for the store's sake
LOOK = 0.2  # seconds between two looks for another's answer, for room under the cap, or for the run's end
BETWEEN_LOOKS = 3  # as failures, while a server loads its model
MOST_REDIRECTS = 3
UNPACKED = (
    "content-encoding",
    "content-length",
    "transfer-encoding",
)  # headers that a body, once read, outlives
REDIRECTS = (301, 302, 303, 307, 308)
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

    concurrency: int = 16  # questions under way at once, those that wait to be tried again among them
    attempts: int = 6  # calls to one question before the run stops
    deadline: float = 120.0  # seconds that one call may take from its start to the last byte
    # seconds of the longest wait after the first failure; it doubles with each further one
    first: float = 0.5
    longest: float = 60.0  # seconds of the longest wait
    start: float = 600.0  # seconds that a server may take to load its model

    def wait(self, failures: int, asked: float | None) -> float:
        """The seconds to wait after some failures, from 1: full jitter, no less than was `asked`."""
        jitter = random.uniform(0.0, min(self.longest, self.first * 2 ** (failures - 1)))
        return min(self.longest, max(jitter, asked or 0.0))


@dataclass(frozen=True)
class Service:
    """Who answers a run."""

    agent: ModelAgent  # which model, and how
    answers: Answers  # where answers are kept; a store that can be written to, where there is a key
    secret: Secret | None = None  # the API key; None to replay only
    # of OpenAI, of a compatible server, or of several servers of one model
    urls: tuple[str, ...] = (calls.OPENAI_URL,)
    limits: Limits = field(default_factory=Limits)
    # what is served on this machine while a run lasts; None where servers run already
    weights: Path | None = None

    @asynccontextmanager
    async def client(self, notice: Notice = lambda counts: None) -> AsyncIterator[Client]:
        """Give a client, its servers begun where there are weights to serve; close it when all is stored."""
        async with AsyncExitStack() as stack:
            urls = self.urls
            if self.weights is not None and self.secret is not None:
                urls = await stack.enter_async_context(serving(self.weights, self.limits.concurrency))
            client = Client(replace(self, urls=urls), notice)
            stack.push_async_callback(client.close)
            yield client


class Client:
    """Answers requests from a store and, unless it only replays, by calling a provider.

    A question has one task, which nobody who waits for it can cancel: what was paid for gets stored. What
    changes the store waits in one line, and is committed together: a commit that outlasts a power cut takes
    a disk some milliseconds, too long for each answer to have its own.
    """

    def __init__(self, service: Service, notice: Notice) -> None:
        """Set up a client of a service; `notice` is called after every call and every answer."""
        self.counts = Counts()
        self._store: Any = service.answers
        self._service, self._limits, self._notice = service, service.limits, notice
        self._lines: asyncio.Queue[Any] = asyncio.Queue()  # servers
        self._servers = [] if service.secret is None else open_connections(service)
        for number in range(service.limits.concurrency if self._servers else 0):  # over all servers alike
            self._lines.put_nowait(self._servers[number % len(self._servers)])
        self._rungs: defaultdict[str, set[str]] = defaultdict(set)  # of requests, by model
        self._flying: dict[bytes, asyncio.Task[Answer]] = {}
        self._stopped: RunStoppedError | None = None
        self._began = time.monotonic()
        self._quiet_until = 0.0  # on the monotonic clock; a server has asked for a pause, of whomever
        self._changes: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []
        self._committing: asyncio.Future[list[Any]] | None = None

    async def ask(self, request: ChatRequest, identity: str, spoilt: str = "") -> Answer:
        """Answer a request; see `calls.Ask`.

        Raises:
            RunStoppedError: if there is no answer and none can be had.
        """
        self.counts.unusable += bool(spoilt)
        asked = calls.question(self._service.agent.provider, request, identity)
        if (found := self._store.find(asked.key)) is not None:
            self.counts.replayed += 1
            self._notice(self.counts)
            return found
        if not self._servers:
            raise RunStoppedError(
                f"{self._store.path} has no answer to {asked.key.hex()[:16]} ({identity}, model "
                f"{asked.model} of {self._service.agent.provider}); {self._store.advice}"
            )
        if (task := self._flying.get(asked.key)) is None:
            task = self._flying[asked.key] = asyncio.create_task(self._obtain(asked, spoilt))
            task.add_done_callback(partial(self._landed, asked.key))
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Let calls under way be stored, then close the connections; the store stays open."""
        self._stopped = self._stopped or RunStoppedError("the run has ended")
        if flying := list(self._flying.values()):
            _, late = await asyncio.wait(flying, timeout=GRACE)
            for task in late:
                task.cancel()
            await asyncio.gather(*flying, return_exceptions=True)
        while self._committing is not None:  # for a task that was cancelled
            await asyncio.wait([self._committing])
        for server in self._servers:
            await server.close()

    def _landed(self, key: bytes, task: asyncio.Task[Answer]) -> None:
        del self._flying[key]
        if not task.cancelled() and isinstance(error := task.exception(), RunStoppedError):
            self._stopped = self._stopped or error  # the first reason is everybody's

    async def _obtain(self, asked: Question, spoilt: str) -> Answer:
        """Call until there is an answer, or until another process has one; keep a line all the while."""
        limits, failures, moves, rungs = self._limits, 0, 0, self._rungs[asked.model]
        claim = partial(self._store.claim, asked, limits.deadline + MARGIN, spoilt)
        line = await self._lines.get()
        try:
            while self._stopped is None:
                if (stored := self._store.find(asked.key)) is not None:
                    return stored
                if (rest := self._quiet_until - time.monotonic()) > 0:
                    await self._wait(rest)
                    continue
                if (call := await self._commit(claim)) is None:
                    await self._wait(LOOK)
                    continue
                taken = frozenset(rungs)
                sent = line.send(calls.adapted(asked.request, taken))
                found = await self._call(sent, call, asked, taken)
                if isinstance(found, Answer):
                    continue  # what was stored is the answer, be it another process's
                if found.name in calls.RUNGS and found.name not in taken | {calls.MOVED}:
                    rungs.add(found.name)
                    continue
                if found.name == calls.MOVED and (moves := moves + 1) <= MOST_REDIRECTS:
                    line.path = found.detail
                    continue
                if found.name == calls.LOADING and time.monotonic() - self._began < limits.start:
                    await self._wait(limits.wait(BETWEEN_LOOKS, found.wait))
                    continue
                failures += 1
                again = "mend this and run" if found.final else "run"
                if (found.wait or 0.0) > limits.longest:
                    detail = f"{found.detail}; it asks to wait {found.wait:.0f} s"
                    found = found._replace(detail=detail, final=True)
                if found.final or failures >= limits.attempts:
                    tries = "" if found.final else f" after {counted(failures, 'attempt')}"
                    raise RunStoppedError(
                        f"{self._service.agent.provider} gave no answer{tries}: {found}; nothing was scored, "
                        f"all answers are kept in {self._store.path}: {again} the command again to continue"
                    )
                self._quiet_until = max(self._quiet_until, time.monotonic() + (found.wait or 0.0))
                await self._wait(limits.wait(failures, found.wait))
        finally:
            self._lines.put_nowait(line)
        raise RunStoppedError(str(self._stopped))  # a new error, as each keeps a traceback of its own

    async def _call(
        self, sent: Awaitable[Raw | Fault], call: int, asked: Question, rungs: frozenset[str]
    ) -> Answer | Fault:
        """Wait for the end of a call and commit it, whatever that is; return what came."""
        came: Raw | Fault = Fault(STARTED)
        try:
            came = await sent
        finally:
            found = await self._commit(partial(self._store.settle, call, came, rungs))
        counts, used = self.counts, found.used or calls.NO_TOKENS
        counts.calls += 1
        counts.cost += calls.total_cost(self._store.prices, {asked.model: found.used or asked.most})
        counts.prompt_tokens += used.prompt
        counts.completion_tokens += used.completion
        counts.faults += isinstance(found, Fault)
        counts.cut += isinstance(found, Answer) and found.finish == "length"
        self._notice(counts)
        return found

    async def _commit(self, change: Callable[[], Any]) -> Any:
        """Change the store; return, or raise, what the change does, when it is committed."""
        done = asyncio.get_running_loop().create_future()
        self._changes.append((change, done))
        if self._committing is None:
            self._commit_all()
        if isinstance(result := await done, Exception):
            raise result
        return result

    def _commit_all(self) -> None:
        """Commit what waits, and then what has come meanwhile.

        No task does so: a second interrupt cancels every task, and each waits here for its last change.
        """
        waiting, self._changes = self._changes, []

        def committed(results: asyncio.Future[list[Any]]) -> None:
            self._committing = None
            if self._changes:
                self._commit_all()
            for (_, done), result in zip(waiting, results.result(), strict=True):
                if not done.done():  # else who waited is cancelled
                    done.set_result(result)

        changes = [change for change, _ in waiting]
        self._committing = asyncio.get_running_loop().run_in_executor(None, self._store.commit, changes)
        self._committing.add_done_callback(committed)

    async def _wait(self, seconds: float) -> None:
        """Wait, unless the run ends."""
        until = time.monotonic() + seconds
        while (rest := until - time.monotonic()) > 0 and self._stopped is None:
            await asyncio.sleep(min(rest, LOOK))


# ---------------------------------------------------------------- one call: bytes in, bytes out


class TooLargeError(ValueError):
    """A response beyond `calls.LARGEST_RESPONSE`."""


@dataclass(eq=False)
class Server:
    """One server that is asked."""

    sdk: openai.AsyncOpenAI
    secret: Secret
    deadline: float  # seconds that a call may take from its start to the last byte
    path: str = "/chat/completions"  # below the base address, or the whole one to which it redirects

    async def send(self, request: ChatRequest) -> Raw | Fault:
        """Send a request, and wait for the whole response until the deadline.

        `chat.completions.create` would walk through the request against its types first, which takes longer
        than all the rest, and would parse the response. The request goes out in its own order: a constrained
        decoder writes the keys of an answer in the order of the schema's properties.

        A redirect is not followed here, as each call is stored by itself: the fault `moved` has the new
        address.
        """
        import httpx2

        content = calls.written(request)
        given: Any = {"cast_to": httpx2.Response, "content": content, "options": _OPTIONS}
        return await _fetched(self.sdk.post(self.path, **given), self.secret, self.deadline)

    async def close(self) -> None:
        """Close the connections."""
        await self.sdk.close()


def open_connections(service: Service) -> list[Any]:
    """Connect to a provider, or to several servers of the same model (see `connect`), or to Inspect's."""
    if service.agent.provider == calls.INSPECT:
        from envprobe_core.llm.inspect_calls import InspectServer, find_model

        models = {name: find_model(name) for name in service.agent.models}
        return [InspectServer(service.secret, service.limits.deadline, models=models)]
    return [connect(url, service.secret, service.limits) for url in service.urls]


def connect(url: str, secret: Secret, limits: Limits) -> Server:
    """Connect to a server.

    Raises:
        InputError: if a proxy, or certificates, that the environment names are of no use.
    """
    import httpx2
    import openai

    most, timeout = limits.concurrency, limits.deadline + SLACK
    logging.getLogger("openai").setLevel(logging.CRITICAL)  # what a server says may hold the key
    pool = httpx2.Limits(max_connections=most, max_keepalive_connections=most)
    given: Any = {"timeout": timeout, "max_retries": 0, "api_key": secret.get_secret_value()}
    by_proxy = calls.provider_label(url) != calls.LOCAL  # none stands before a server of this machine
    more = {"limits": pool, "timeout": timeout, "follow_redirects": False, "trust_env": by_proxy}

    class Bounded(openai.DefaultAioHttpClient):
        """A transport that reads whole responses and no longer ones, however small they were packed."""

        async def send(self, request: httpx2.Request, **given: Any) -> httpx2.Response:
            came = await super().send(request, **given | {"stream": True})
            try:
                pieces, room = [], calls.LARGEST_RESPONSE
                async for piece in came.aiter_bytes():
                    if (room := room - len(piece)) < 0:
                        raise TooLargeError
                    pieces.append(piece)
            finally:
                await came.aclose()
            about = [(name, own) for name, own in came.headers.multi_items() if name not in UNPACKED]
            return httpx2.Response(came.status_code, headers=about, content=b"".join(pieces), request=request)

    try:
        transport = Bounded(**more)
        sdk = openai.AsyncOpenAI(base_url=url, http_client=transport, **given)
        return Server(sdk, secret, limits.deadline)
    except (ValueError, OSError, ImportError, httpx2.InvalidURL) as error:
        raise InputError(f"no connection can be made as this environment says: {error}") from None


async def list_models(url: str, secret: Secret, limits: Limits) -> list[str]:
    """Ask a server for the names of its models.

    Raises:
        InputError: if it does not say.
        RunStoppedError: if nothing answers.
    """
    import httpx2

    server, path, moves = connect(url, secret, limits), "/models", 0
    try:
        while True:
            sent = server.sdk.get(path, cast_to=httpx2.Response)
            came = await _fetched(sent, secret, limits.deadline)
            if not (isinstance(came, Fault) and came.name == calls.MOVED and moves < MOST_REDIRECTS):
                break
            path, moves = came.detail, moves + 1
    finally:
        await server.sdk.close()
    if isinstance(came, Fault):
        raise RunStoppedError(f"{url} gives no list of models: {came}")
    try:
        return [str(one["id"]) for one in json.loads(came.body)["data"]]
    except (ValueError, KeyError, TypeError):
        told = f"HTTP {came.status}" if came.status != 200 else "no list"
        raise InputError(f"{url} does not say which models it serves ({told}); give --model") from None


async def _fetched(response: Awaitable[Any], secret: Secret, deadline: float) -> Raw | Fault:
    """Wait for a response until the deadline; whatever goes wrong is a fault."""
    import aiohttp
    import httpx2
    import openai

    try:
        async with asyncio.timeout(deadline):
            came: httpx2.Response = await response
    except openai.APIStatusError as error:
        came = error.response
    except TimeoutError:
        return Fault("timeout", f"no whole answer within {deadline:g} s")
    except (openai.OpenAIError, OSError, ValueError, RuntimeError) as error:
        cause: BaseException = error  # the transport gives all lost connections the name of a time-out
        while (beneath := cause.__cause__ or cause.__context__) is not None:
            cause = beneath
        if isinstance(cause, TooLargeError):
            return Fault(calls.TOO_LARGE, f"more than {calls.LARGEST_RESPONSE:,} bytes")
        if isinstance(cause, aiohttp.ClientConnectorError | ConnectionRefusedError | socket.gaierror):
            return Fault("no-connection", "nothing answers there", used=calls.NO_TOKENS)
        words = " ".join(secret.hide(f"{type(cause).__name__}: {cause}").split())
        return Fault("cut-off", words[: calls.LONGEST_DETAIL])
    if came.status_code in REDIRECTS and (location := came.headers.get("Location")):
        there = urljoin(str(came.url), location)
        if stays(str(came.url), there):
            return Fault(calls.MOVED, secret.hide(there), used=calls.NO_TOKENS)
        host = secret.hide(urlsplit(there).netloc.rpartition("@")[2])
        words = f"it redirects to {host}, where the key is not sent; give that as --base-url"
        return Fault("redirected", words, final=True, used=calls.NO_TOKENS)
    came_whole = Raw(came.status_code, came.headers.get("content-type", ""), came.content)
    return secret.hide_response(came_whole)._replace(wait=retry_after(came.headers))


def stays(here: str, there: str) -> bool:
    """Say whether a redirect stays with a host, and does not leave encryption: the key may follow it.

    >>> stays("http://a.test/v1", "http://a.test:81/"), stays("https://a.test/", "http://a.test/")
    (False, False)
    >>> stays("http://a.test/v1", "https://a.test/v1/"), stays("http://a.test/v1", "http://a.test/v2")
    (True, True)
    """
    one, other = urlsplit(here), urlsplit(there)
    upgraded = (one.scheme, other.scheme) == ("http", "https") and one.port == other.port is None
    same = (one.scheme, one.netloc) == (other.scheme, other.netloc)
    return same or (upgraded and one.hostname == other.hostname)


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Read Retry-After, in seconds or as a date; None where it is missing or makes no sense.

    A date counts from `now`, or else from what the server's own clock says in Date: clocks may be wrong.
    """
    text = headers.get("Retry-After", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            until = parsedate_to_datetime(text).timestamp()
            seconds = until - (_clock(headers) if now is None else now)
        except (ValueError, OverflowError, TypeError):
            return None
    return max(0.0, seconds) if seconds == seconds else None


def _clock(headers: Mapping[str, str]) -> float:
    """Return the server's time, or ours where it tells none."""
    try:
        return parsedate_to_datetime(headers.get("Date", "")).timestamp()
    except (ValueError, OverflowError, TypeError):
        return time.time()
