"""The client: answers from the store, else by a call that is stored before it is read.

A question in flight is asked once, whoever else wants it. A fault that may pass is tried again with the same
request; one that will not, or not soon, ends the run. It never becomes an answer.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from envprobe_core.llm.asking import Answered, ChatRequest, Usage
from envprobe_core.llm.calling import Caller, Sent
from envprobe_core.llm.forms import FORMS, in_form, next_form
from envprobe_core.llm.keys import key_of, question
from envprobe_core.llm.prices import Price, dollars, find_price
from envprobe_core.llm.reading import NO_SCHEMA, Completion, Fault, Tokens, read_response
from envprobe_core.llm.replay import Answers
from envprobe_core.llm.retries import Patience
from envprobe_core.llm.stopping import MissingAnswerError, RunStoppedError
from envprobe_core.llm.store import AnswerStore, Judgement, verdict_of
from envprobe_core.llm.writing import Writer

GRACE = 10.0  # seconds that calls under way get to be stored when a run ends early


@dataclass
class Counts:
    """What a client has done so far, for the live line.

    Attributes:
        calls: attempts sent.
        replayed: answers taken from the store.
        faults: attempts that brought no answer.
        unusable: answers that the agent could not use.
        prompt_tokens, completion_tokens: of this client's calls.
        cost: of this client's calls, in picodollars; what is not known counts as its most.
    """

    calls: int = 0
    replayed: int = 0
    faults: int = 0
    unusable: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: int = 0


@dataclass(frozen=True)
class Limits:
    """What a client may do.

    Attributes:
        concurrency: calls under way at once.
        cap: picodollars that all attempts of the store may cost together, None for no cap.
        patience: with one call.
    """

    concurrency: int = 16
    cap: int | None = None
    patience: Patience = field(default_factory=Patience)


class Client:
    """Answers requests from a store and, unless it only replays, by calling a provider."""

    def __init__(
        self,
        store: Answers,
        provider: str,
        caller: Caller | None,
        limits: Limits,
        prices: Mapping[str, Price],
        notice: Callable[[Counts], None] | None = None,
    ) -> None:
        """Set up a client.

        Args:
            store: the store.
            provider: its label in keys.
            caller: who calls; None to replay only.
            limits: what it may do.
            prices: picodollars a token, by model.
            notice: told of every call and every answer.
        """
        self.counts = Counts()
        self._store, self._provider, self._caller = store, provider, caller
        self._limits, self._prices = limits, prices
        self._notice = notice or (lambda counts: None)
        self._forms = store.forms()
        self._flying: dict[bytes, asyncio.Task[Answered]] = {}
        self._room = asyncio.Semaphore(limits.concurrency)
        self._quiet_until = 0.0
        self._calling = self._ended = 0
        self._settled = asyncio.Condition()
        self._stopped: RunStoppedError | None = None
        self._writer = Writer()
        self._dice = random.Random()

    async def ask(self, request: ChatRequest, identity: str) -> Answered:
        """Answer a request; see `asking.Asker`.

        Raises:
            RunStoppedError: if there is no answer and none can be had.
        """
        self._note_unusable(request, identity)
        content = question(self._provider, request, identity)
        key = key_of(content)
        if (found := self._store.find(key)) is not None:
            self.counts.replayed += 1
            self._notice(self.counts)
            return _answered(key, found)
        if self._caller is None:
            raise MissingAnswerError(
                self._store.lacks(
                    f"{key.hex()[:16]} ({identity}, model {request.get('model')} of {self._provider})"
                )
            )
        task = self._flying.get(key)
        if task is None:
            task = asyncio.create_task(self._obtain(self._caller, request, content, key))
            self._flying[key] = task
            task.add_done_callback(lambda done: self._landed(key, done))
        return await asyncio.shield(task)

    def _note_unusable(self, request: ChatRequest, identity: str) -> None:
        """Note that an answer could not be used: the agent asks again, with it and its fault at the end."""
        messages = request["messages"]
        if not any(message["role"] == "assistant" for message in messages):
            return
        self.counts.unusable += 1
        if isinstance(self._store, AnswerStore) and self._store.writable:
            before = question(self._provider, request | {"messages": messages[:-2]}, identity)
            self._store.spoil(key_of(before))

    async def close(self) -> None:
        """Let calls under way be stored, then close the connection; the store stays open."""
        self._stopped = self._stopped or RunStoppedError("the run has ended")
        flying = list(self._flying.values())
        if flying:
            _, late = await asyncio.wait(flying, timeout=GRACE)
            for task in late:
                task.cancel()
            await asyncio.gather(*flying, return_exceptions=True)
        if self._caller is not None:
            await self._caller.close()
        self._writer.close()

    def _go_on(self) -> None:
        """Raise what ended the run, if anything did; a new error, as each keeps a traceback of its own."""
        if self._stopped is not None:
            raise RunStoppedError(str(self._stopped))

    def _landed(self, key: bytes, task: asyncio.Task[Answered]) -> None:
        del self._flying[key]
        if not task.cancelled():
            task.exception()  # seen by those who waited; nobody may have

    async def _obtain(self, caller: Caller, request: ChatRequest, content: bytes, key: bytes) -> Answered:
        """Call until there is an answer."""
        patience, failures = self._limits.patience, 0
        async with self._room:
            while True:
                await self._quiet()
                self._go_on()
                form = self._form(request)
                sent, found = await self._attempt(caller, request, content, form)
                if isinstance(found, Completion):
                    first = self._store.find(key)  # another process may have been faster
                    return _answered(key, first or found)
                if found.name == NO_SCHEMA and form != FORMS[-1]:
                    await self._lower(request, form)
                    continue
                failures += 1
                if found.final or failures >= patience.attempts or self._stopped is not None:
                    raise self._stop(found, failures)
                await self._pause(failures, sent.wait)

    async def _attempt(
        self, caller: Caller, request: ChatRequest, content: bytes, form: str
    ) -> tuple[Sent, Completion | Fault]:
        """Make one call: reserve, send, commit what came, and only then read it."""
        sending = in_form(request, form)
        price = find_price(self._prices, str(request.get("model")))
        worst = None if price is None else price.worst(sending)
        began = await self._reserve(content, form, worst)
        try:
            sent = await caller.send(sending)
            known = 0 if sent.fault is not None and sent.fault.free else worst
            verdict = sent.fault.name if sent.fault is not None else None
            attempt = await self._writer.do(self._store.add, content, form, sent.raw, verdict, known, began)
            if sent.raw is not None:
                found = read_response(sent.raw.status, sent.raw.kind, sent.raw.body)
                known = cost_of(found, price, worst)
                self._store.judge(Judgement(attempt, verdict_of(found), found.tokens, known))
            else:
                found = sent.fault or Fault("lost")
        finally:
            async with self._settled:
                self._calling -= 1
                self._ended += 1
                self._settled.notify_all()
        self._count(found, known)
        return sent, found

    async def _reserve(self, content: bytes, form: str, worst: int | None) -> int | None:
        """Take a call's worst cost from what the cap leaves; wait while calls under way may free some."""
        cap = self._limits.cap
        while True:
            self._go_on()
            self._calling += 1
            if cap is None or worst is None:
                return None
            ended = self._ended
            began = await self._writer.do(self._store.reserve, content, form, worst, cap)
            if began is not None:
                return began
            async with self._settled:
                self._calling -= 1
                if self._ended != ended:
                    continue  # what a call did not cost was freed since
                if self._calling == 0:
                    self._settled.notify_all()
                    raise self._over_cap(cap, worst)
                await self._settled.wait()

    def _over_cap(self, cap: int, worst: int) -> RunStoppedError:
        self._stopped = RunStoppedError(
            f"the cap of {dollars(cap)} is reached: {dollars(self._store.spent())} are spent, and the next "
            f"call can cost up to {dollars(worst)}; all answers are kept in {self._store.path}: raise "
            "--max-cost and give the command again to go on"
        )
        return self._stopped

    async def _quiet(self) -> None:
        """Wait as long as the provider asked all calls to."""
        loop = asyncio.get_running_loop()
        while (rest := self._quiet_until - loop.time()) > 0 and self._stopped is None:
            await asyncio.sleep(min(rest, 0.5))

    async def _pause(self, failures: int, asked: float | None) -> None:
        loop, patience = asyncio.get_running_loop(), self._limits.patience
        pause = patience.wait(failures, asked, self._dice)
        if asked is not None:
            self._quiet_until = max(self._quiet_until, loop.time() + min(asked, patience.longest))
        until = loop.time() + pause
        while (rest := until - loop.time()) > 0 and self._stopped is None:
            await asyncio.sleep(min(rest, 0.5))

    def _form(self, request: ChatRequest) -> str:
        return self._forms.get((self._provider, str(request.get("model"))), FORMS[0])

    async def _lower(self, request: ChatRequest, refused: str) -> None:
        """Ask this model in the next form from now on."""
        model, lower = str(request.get("model")), next_form(refused)
        if lower is not None and self._form(request) == refused:
            self._forms[self._provider, model] = lower
            await self._writer.do(self._store.remember_form, self._provider, model, lower)

    def _stop(self, fault: Fault, failures: int) -> RunStoppedError:
        if self._stopped is None:
            tries = "" if fault.final else f" after {failures} attempts"
            self._stopped = RunStoppedError(
                f"{self._provider} gave no answer{tries}: {fault}; nothing was scored, all answers are kept "
                f"in {self._store.path}: give the command again to go on"
            )
        return self._stopped

    def _count(self, found: Completion | Fault, cost: int | None) -> None:
        counts = self.counts
        counts.calls += 1
        counts.faults += isinstance(found, Fault)
        counts.cost += cost or 0
        if found.tokens is not None:
            counts.prompt_tokens += found.tokens.prompt
            counts.completion_tokens += found.tokens.completion
        self._notice(counts)


def judge_unread(store: AnswerStore, prices: Mapping[str, Price]) -> None:
    """Read what a process that was ended had stored and not read; its cost becomes what it was."""
    for attempt, model, worst, raw in store.unread():
        found = read_response(raw.status, raw.kind, raw.body)
        cost = cost_of(found, find_price(prices, model), worst)
        store.judge(Judgement(attempt, verdict_of(found), found.tokens, cost))


def cost_of(found: Completion | Fault, price: Price | None, worst: int | None) -> int | None:
    """Return what an attempt cost: by its usage; nothing where the call was refused; else its most."""
    if found.tokens is not None and price is not None:
        return price.cost(found.tokens)
    return 0 if isinstance(found, Fault) and found.free else worst


def _answered(key: bytes, found: Completion) -> Answered:
    tokens: Tokens | None = found.tokens
    usage = None if tokens is None else Usage(tokens.prompt, tokens.completion)
    return Answered(found.text, key.hex(), usage, found.fingerprint)
