"""The client: answers from the store, else by a call: claimed before it is made, stored before it is used.

A question in flight is asked once, whoever else wants it, in this process or in another on the same store. A
fault that may pass is tried again with the same request; one that will not, or not soon, ends the run.
It never becomes an answer.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from envprobe_core.llm.asking import (
    DEMAND,
    Answered,
    ChatRequest,
    MissingAnswerError,
    RunStoppedError,
    Tokens,
)
from envprobe_core.llm.calling import Caller, Patience, Sent, adapted
from envprobe_core.llm.keys import key_of, question
from envprobe_core.llm.prices import Price, dollars, most_tokens, total_cost
from envprobe_core.llm.reading import REFUSED_PARTS, Completion, Fault
from envprobe_core.llm.replay import Answers
from envprobe_core.llm.store import ANSWER, STARTED, AnswerStore, Refusal

GRACE = 10.0  # seconds that calls under way get to be stored when a run ends early
MARGIN = 30.0  # seconds that a claim outlasts the deadline of its call, for the store's sake
LOOK = 0.2  # seconds between two looks for another process's answer, or for the end of a wait


@dataclass
class Counts:
    """What a client has done so far, for the live line.

    Attributes:
        calls: calls made.
        replayed: answers taken from the store.
        faults: calls that brought no answer.
        unusable: answers that the agent could not use.
        cut: answers of this client's calls that reached the limit of tokens.
        prompt_tokens, completion_tokens: of this client's calls.
        cost: of this client's calls, in dollars; what is not known counts as its most.
    """

    calls: int = 0
    replayed: int = 0
    faults: int = 0
    unusable: int = 0
    cut: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True)
class Limits:
    """What a client may do.

    Attributes:
        concurrency: calls under way at once.
        cap: dollars that all calls of the store may cost together, None for no cap.
        patience: with one question.
    """

    concurrency: int = 16
    cap: float | None = None
    patience: Patience = field(default_factory=Patience)


@dataclass(frozen=True)
class _Asked:
    """A request to be answered: its question, key and most tokens, and the spoilt answer before it."""

    request: ChatRequest
    question: bytes
    key: bytes
    most: Tokens
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
        prices: Mapping[str, Price],
        notice: Callable[[Counts], None] = lambda counts: None,
    ) -> None:
        """Set up a client.

        Args:
            store: the store.
            provider: its label in keys.
            caller: who calls; None to replay only.
            limits: what it may do.
            prices: dollars, by model.
            notice: told of every call and every answer.
        """
        self.counts = Counts()
        self._store, self._provider, self._caller = store, provider, caller
        self._limits, self._prices, self._notice = limits, prices, notice
        self._refused: dict[str, set[str]] = {}  # by model
        self._flying: dict[bytes, asyncio.Task[Answered]] = {}
        self._room = asyncio.Semaphore(limits.concurrency)
        self._quiet_until = 0.0
        self._under_way = 0
        self._ended = asyncio.Condition()
        self._stopped: RunStoppedError | None = None
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._dice = random.Random()

    async def ask(self, request: ChatRequest, identity: str) -> Answered:
        """Answer a request; see `asking.Asker`.

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
            return _answered(key, found)
        if self._caller is None:
            sample = f"{key.hex()[:16]} ({identity}, model {request.get('model')} of {self._provider})"
            raise MissingAnswerError(self._store.lacks(sample))
        if (task := self._flying.get(key)) is None:
            before = question(self._provider, request | {"messages": messages[:-2]}, identity)
            spoilt = key_of(before) if again else None
            waiting = self._obtain(self._caller, _Asked(request, asked, key, most_tokens(request), spoilt))
            task = self._flying[key] = asyncio.create_task(waiting)
            task.add_done_callback(lambda done: self._landed(key, done))
        return await asyncio.shield(task)

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

    def _landed(self, key: bytes, task: asyncio.Task[Answered]) -> None:
        del self._flying[key]
        if not task.cancelled():
            task.exception()  # seen by those who waited; nobody may have

    async def _obtain(self, caller: Caller, asked: _Asked) -> Answered:
        """Call until there is an answer, or wait for another process's."""
        while True:
            async with self._room:
                found = await self._call(caller, asked)
            found = self._store.find(asked.key) or found  # another process may have been faster
            if found is not None:
                return _answered(asked.key, found)
            await asyncio.sleep(LOOK)

    async def _call(self, caller: Caller, asked: _Asked) -> Completion | None:
        """Call until there is an answer; None where another process has claimed the question."""
        patience, failures = self._limits.patience, 0
        while True:
            await self._wait(self._quiet_until)
            if (call := await self._claim(asked)) is None:
                return None
            without = frozenset(self._refused.setdefault(asked.model, set()))
            sent = await self._send(caller, adapted(asked.request, without), call)
            found = sent.found
            self._count(asked, found)
            if isinstance(found, Completion):
                return found
            if found.name in REFUSED_PARTS and found.name not in without:
                self._refused[asked.model].add(found.name)
                continue
            failures += 1
            if sent.wait is not None and sent.wait > patience.longest:
                asks = f"{found.detail}; it asks to wait {sent.wait:.0f} s"
                found = replace(found, detail=asks, final=True)
            if found.final or failures >= patience.attempts or self._stopped is not None:
                raise self._stop(found, failures)
            now = asyncio.get_running_loop().time()
            if sent.wait is not None:
                self._quiet_until = max(self._quiet_until, now + sent.wait)
            await self._wait(now + patience.wait(failures, sent.wait, self._dice))

    async def _claim(self, asked: _Asked) -> int | None:
        """Claim a question; wait for room under the cap while calls under way may free some."""
        cap = self._limits.cap

        def fits(used: Mapping[str, Tokens]) -> bool:
            return total_cost(self._prices, used) <= (cap or 0.0)

        seconds = self._limits.patience.deadline + MARGIN
        async with self._ended:
            while True:
                if self._stopped is not None:  # a new error, as each keeps a traceback of its own
                    raise RunStoppedError(str(self._stopped))
                claim = self._writable.claim
                bound = None if cap is None else fits
                call = await self._do(claim, asked.question, asked.most, seconds, bound, asked.spoilt)
                if call is Refusal.TAKEN:
                    return None
                if call is not Refusal.OVER_CAP:
                    self._under_way += 1
                    return int(call)
                if not self._under_way:
                    raise self._over_cap(cap or 0.0, asked)
                await self._ended.wait()

    async def _send(self, caller: Caller, request: ChatRequest, call: int) -> Sent:
        """Make a call and commit what came of it, whatever that is."""
        sent = Sent(None, Fault(STARTED))
        try:
            sent = await caller.send(request)
        finally:
            found = sent.found
            verdict = ANSWER if isinstance(found, Completion) else found.name
            try:
                await self._do(self._writable.settle, call, sent.raw, verdict, found.used)
            finally:
                async with self._ended:
                    self._under_way -= 1
                    self._ended.notify_all()
        return sent

    @property
    def _writable(self) -> AnswerStore:
        assert isinstance(self._store, AnswerStore)  # who has a caller has a store
        return self._store

    async def _do(self, work: Callable[..., Any], *arguments: object) -> Any:
        """Do something on the one thread that writes, so that no commit holds up the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._writer, work, *arguments)

    async def _wait(self, until: float) -> None:
        """Wait until a time of the loop, or until the run ends."""
        loop = asyncio.get_running_loop()
        while (rest := until - loop.time()) > 0 and self._stopped is None:
            await asyncio.sleep(min(rest, LOOK))

    def _over_cap(self, cap: float, asked: _Asked) -> RunStoppedError:
        spent = total_cost(self._prices, self._writable.used())
        worst = total_cost(self._prices, {asked.model: asked.most})
        self._stopped = RunStoppedError(
            f"the cap of {dollars(cap)} is reached: {dollars(spent)} are spent, and the next call can "
            f"cost up to {dollars(worst)}; all answers are kept in {self._store.path}: raise --max-cost and "
            "give the command again to go on"
        )
        return self._stopped

    def _stop(self, fault: Fault, failures: int) -> RunStoppedError:
        if self._stopped is None:
            tries = "" if fault.final else f" after {failures} attempts"
            self._stopped = RunStoppedError(
                f"{self._provider} gave no answer{tries}: {fault}; nothing was scored, all answers are kept "
                f"in {self._store.path}: give the command again to go on"
            )
        return self._stopped

    def _count(self, asked: _Asked, found: Completion | Fault) -> None:
        counts, used = self.counts, found.used
        counts.calls += 1
        counts.faults += isinstance(found, Fault)
        counts.cut += isinstance(found, Completion) and found.finish == "length"
        counts.cost += total_cost(self._prices, {asked.model: asked.most if used is None else used})
        if used is not None:
            counts.prompt_tokens += used.prompt
            counts.completion_tokens += used.completion
        self._notice(counts)


def _answered(key: bytes, found: Completion) -> Answered:
    return Answered(found.text, key.hex(), found.used, found.fingerprint)
