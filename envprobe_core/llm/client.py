"""The client: answers from the store, else by a call: claimed before it is made, stored before it is used.

A question in flight is asked once, whoever else wants it, in this process or in another on the same store. A
fault that may pass is tried again with the same request; one that will not, or not soon, ends the run.
It never becomes an answer.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from envprobe_core.llm.calls import (
    DEMAND,
    REFUSED_PARTS,
    Answer,
    ChatRequest,
    Fault,
    MissingAnswerError,
    Prices,
    RunStoppedError,
    dollars,
    key_of,
    most_tokens,
    question,
    total_cost,
)
from envprobe_core.llm.provider import Caller, adapted
from envprobe_core.llm.replay import Answers
from envprobe_core.llm.store import ANSWER, STARTED, Refusal

GRACE = 10.0  # seconds that calls under way get to be stored when a run ends early
MARGIN = 30.0  # seconds that a claim outlasts the deadline of its call, for the store's sake
LOOK = 0.2  # seconds between two looks for another's answer, for room under the cap, or for the run's end


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
class _Asked:
    """A request to be answered: what is stored of it, and the key of the spoilt answer before it."""

    request: ChatRequest
    question: bytes
    key: bytes
    spoilt: bytes | None

    @property
    def model(self) -> str:
        return str(self.request.get("model", ""))


class Client:
    """Answers requests from a store and, unless it only replays, by calling a provider."""

    def __init__(
        self,
        store: Answers,
        provider: str,
        caller: Caller | None,
        limits: Limits,
        prices: Prices,
        notice: Callable[[Counts], None] = lambda counts: None,
    ) -> None:
        """Set up a client.

        Args:
            store: where answers are; one that can be written to, where there is a caller.
            provider: its label in keys.
            caller: who calls; None to replay only.
            prices: dollars, by model.
            notice: told of every call and every answer.
        """
        self.counts = Counts()
        self._store: Any = store
        self._provider, self._caller, self._limits = provider, caller, limits
        self._prices, self._notice = prices, notice
        self._refused: dict[str, set[str]] = {}  # parts of requests, by model
        self._flying: dict[bytes, asyncio.Task[Answer]] = {}
        self._room = asyncio.Semaphore(limits.concurrency)
        self._quiet_until = 0.0
        self._under_way = 0
        self._stopped: RunStoppedError | None = None
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._dice = random.Random()

    async def ask(self, request: ChatRequest, identity: str) -> Answer:
        """Answer a request; see `calls.Asker`.

        Raises:
            RunStoppedError: if there is no answer and none can be had.
        """
        messages = request["messages"]
        again = messages[-1]["content"].startswith(DEMAND)
        self.counts.unusable += again
        asked = question(self._provider, request, identity)
        key = key_of(asked)
        if (found := self._store.find(key)) is not None:
            self.counts.replayed += 1
            self._notice(self.counts)
            return replace(found, key=key.hex())
        if self._caller is None:
            sample = f"{key.hex()[:16]} ({identity}, model {request.get('model')} of {self._provider})"
            raise MissingAnswerError(self._store.lacks(sample))
        if (task := self._flying.get(key)) is None:
            before = question(self._provider, request | {"messages": messages[:-2]}, identity)
            spoilt = key_of(before) if again else None
            task = asyncio.create_task(self._obtain(_Asked(request, asked, key, spoilt)))
            self._flying[key] = task
            task.add_done_callback(lambda done: self._landed(key, done))
        return replace(await asyncio.shield(task), key=key.hex())

    async def close(self) -> None:
        """Let calls under way be stored, then close the connection; the store stays open."""
        self._stopped = self._stopped or RunStoppedError("the run has ended")
        if flying := list(self._flying.values()):
            _, late = await asyncio.wait(flying, timeout=GRACE)
            for task in late:
                task.cancel()
            await asyncio.gather(*flying, return_exceptions=True)
        if self._caller is not None:
            await self._caller.close()
        self._writer.shutdown()

    def _landed(self, key: bytes, task: asyncio.Task[Answer]) -> None:
        del self._flying[key]
        if not task.cancelled():
            task.exception()  # seen by those who waited; nobody may have

    async def _obtain(self, asked: _Asked) -> Answer:
        """Call until there is an answer, or until another process has one."""
        failures, refused = 0, self._refused.setdefault(asked.model, set())
        while True:
            async with self._room:
                await self._wait(self._quiet_until)
                without = frozenset(refused)
                call = await self._claim(asked)
                found = None if call is None else await self._call(call, asked, without)
            if found is None or isinstance(found, Answer):
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
            tries = "" if fault.final else f" after {failures} attempts"
            raise self._stop(
                f"{self._provider} gave no answer{tries}: {fault}; nothing was scored, all answers are kept "
                f"in {self._store.path}: give the command again to go on"
            )
        now = asyncio.get_running_loop().time()
        if asked is not None:
            self._quiet_until = max(self._quiet_until, now + asked)
        return now + limits.wait(failures, asked, self._dice)

    async def _claim(self, asked: _Asked) -> int | None:
        """Claim a question, None if another process has it; wait while calls under way may free money."""
        limits, most = self._limits, most_tokens(asked.request)
        cap = limits.cap
        fits = None if cap is None else lambda used: total_cost(self._prices, used) <= cap
        while self._stopped is None:
            busy = self._under_way > 0
            seconds = limits.deadline + MARGIN
            call = await self._do(self._store.claim, asked.question, most, seconds, fits, asked.spoilt)
            if call is Refusal.TAKEN:
                return None
            if call is not Refusal.OVER_CAP:
                self._under_way += 1
                return int(call)
            if not busy and not self._under_way:
                spent = dollars(total_cost(self._prices, self._store.used()))
                worst = dollars(total_cost(self._prices, {asked.model: most}))
                raise self._stop(
                    f"the cap of {dollars(cap or 0.0)} is reached: {spent} are spent, and the next call can "
                    f"cost up to {worst}; all answers are kept in {self._store.path}: raise --max-cost and "
                    "give the command again to go on"
                )
            await asyncio.sleep(LOOK)
        raise RunStoppedError(str(self._stopped))  # a new error, as each keeps a traceback of its own

    async def _call(self, call: int, asked: _Asked, without: frozenset[str]) -> Answer | Fault:
        """Make a call and commit what came of it, whatever that is."""
        assert self._caller is not None
        raw, found = None, Fault(STARTED)
        try:
            raw, found = await self._caller.send(adapted(asked.request, without))
        finally:
            verdict = ANSWER if isinstance(found, Answer) else found.name
            try:
                await self._do(self._store.settle, call, raw, verdict, found.used)
            finally:
                self._under_way -= 1
        self._count(asked, found)
        return found

    async def _do(self, work: Callable[..., Any], *arguments: object) -> Any:
        """Do something on the one thread that writes, so that no commit holds up the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._writer, work, *arguments)

    async def _wait(self, until: float) -> None:
        """Wait until a time of the loop, or until the run ends."""
        loop = asyncio.get_running_loop()
        while (rest := until - loop.time()) > 0 and self._stopped is None:
            await asyncio.sleep(min(rest, LOOK))

    def _stop(self, why: str) -> RunStoppedError:
        """End the run; the first reason is everybody's."""
        self._stopped = self._stopped or RunStoppedError(why)
        return self._stopped

    def _count(self, asked: _Asked, found: Answer | Fault) -> None:
        counts, used = self.counts, found.used
        counts.calls += 1
        counts.faults += isinstance(found, Fault)
        counts.cut += isinstance(found, Answer) and found.finish == "length"
        counts.cost += total_cost(
            self._prices, {asked.model: most_tokens(asked.request) if used is None else used}
        )
        if used is not None:
            counts.prompt_tokens += used.prompt
            counts.completion_tokens += used.completion
        self._notice(counts)
