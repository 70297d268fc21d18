"""The store: every attempt at every question, in one SQLite file, committed before anybody reads it.

A question is a request with its provider and identity; its key is the SHA-256 of their canonical JSON. An
attempt is one call: what came back, raw, with a verdict, usage and cost. Attempts are never deleted and
never expire. The first good attempt is the answer to its question, for every process and for ever.

Methods that write are called on one thread only (`writing.Writer` has it); `find` may be called on another.
"""

from __future__ import annotations

import sqlite3
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from envprobe_core.llm.asking import ChatRequest
from envprobe_core.llm.keys import key_of
from envprobe_core.llm.opening import connect, explain
from envprobe_core.llm.reading import Completion, Fault, Tokens, read_response
from envprobe_core.llm.stopping import RunStoppedError

ANSWER = "answer"
UNUSABLE = "unusable"  # an answer from which no belief update could be read; the agent asks again
STARTED = "started"  # a call whose end was never seen
GOOD = (ANSWER, UNUSABLE)
LEVEL = 6  # of compression


@dataclass(frozen=True)
class Raw:
    """A response as it came, but for the API key, should it stand in it."""

    status: int
    kind: str
    body: bytes


@dataclass(frozen=True)
class Judgement:
    """What was read in an attempt's response."""

    attempt: int
    verdict: str
    tokens: Tokens | None
    cost: int | None


class AnswerStore:
    """An open store."""

    def __init__(self, path: Path, *, writable: bool = True) -> None:
        """Open or make a store; see `opening.connect` for what is refused."""
        self.path = path
        self.writable = writable
        self._reading = connect(path, writable=writable)
        self._writing = connect(path, writable=True) if writable else None
        self._judged: deque[Judgement] = deque()
        self._spoiled: deque[bytes] = deque()

    def close(self) -> None:
        """Write what was judged last, and close."""
        try:
            if self._writing is not None and (self._judged or self._spoiled):
                self.settle()
        finally:
            for connection in (self._reading, self._writing):
                if connection is not None:
                    connection.close()

    def find(self, key: bytes) -> Completion | None:
        """Return the answer to a question, None where there is none yet.

        Raises:
            RunStoppedError: if the file is damaged where it stands.
        """
        with self._explained():
            rows = self._reading.execute(
                "SELECT a.id, a.status, a.kind, a.body FROM questions q JOIN attempts a ON a.question = q.id "
                "WHERE q.key = ? AND a.body IS NOT NULL AND (a.verdict IN (?, ?) OR a.verdict IS NULL) "
                "ORDER BY a.id",
                (key, *GOOD),
            )
            for attempt, status, kind, body in rows:
                found = read_response(status, kind, self._inflated(attempt, body))
                if isinstance(found, Completion):
                    return found
        return None

    def lacks(self, what: str) -> str:
        """Say that an answer is not here, and how to get it."""
        return (
            f"store {self.path} has no answer to {what}; give the command without --replay-only to ask for "
            "it, or with the --base-url of the run that is replayed"
        )

    def forms(self) -> dict[tuple[str, str], str]:
        """Return how structured output must be asked for, by provider and model, where that is known."""
        with self._explained():
            rows = self._reading.execute("SELECT provider, model, form FROM forms").fetchall()
        return {(provider, model): form for provider, model, form in rows}

    def spent(self) -> int:
        """Return what all stored attempts cost together, in picodollars."""
        with self._explained():
            return int(self._reading.execute("SELECT picodollars FROM spent").fetchone()[0])

    def count(self) -> int:
        """Return how many questions have an answer."""
        with self._explained():
            row = self._reading.execute(
                "SELECT count(DISTINCT question) FROM attempts WHERE verdict IN (?, ?)", GOOD
            ).fetchone()
        return int(row[0])

    def price(self, cost: Callable[[str, ChatRequest, Tokens | None], int]) -> None:
        """Price the attempts that have no cost yet.

        Args:
            cost: from a model, a request and its tokens (None where they are not known) to picodollars.
        """
        with self._commit() as connection:
            rows = connection.execute(
                "SELECT a.id, q.model, q.content, a.prompt_tokens, a.completion_tokens, a.cached_tokens "
                "FROM attempts a JOIN questions q ON q.id = a.question WHERE a.cost IS NULL"
            ).fetchall()
            for attempt, model, content, *counts in rows:
                tokens = None if None in counts else Tokens(*counts)
                request = orjson.loads(zlib.decompress(content))["request"]
                settled = (cost(model, request, tokens), attempt)
                connection.execute("UPDATE attempts SET cost = ? WHERE id = ?", settled)

    def reserve(self, content: bytes, form: str, worst: int, limit: int) -> int | None:
        """Note that a call begins, at its worst cost, if that still fits under a cap.

        Returns:
            The attempt, or None where it does not fit.
        """
        with self._commit() as connection:
            spent = connection.execute("SELECT picodollars FROM spent").fetchone()[0]
            if spent + worst > limit:
                return None
            return self._insert(connection, content, form, None, STARTED, worst)

    def add(
        self,
        content: bytes,
        form: str,
        raw: Raw | None,
        verdict: str | None,
        cost: int | None,
        began: int | None,
    ) -> int:
        """Commit what came back from a call, before anybody reads it.

        Args:
            content: the question.
            form: how structured output was asked for.
            raw: the response, None where there was none.
            verdict: why there is none; None where the response has yet to be read.
            cost: its worst cost, None where the price is not known.
            began: the attempt, if it was reserved.

        Returns:
            The attempt.
        """
        with self._commit() as connection:
            if began is None:
                return self._insert(connection, content, form, raw, verdict, cost)
            fields = (raw.status, raw.kind, zlib.compress(raw.body, LEVEL)) if raw else (None, None, None)
            connection.execute(
                "UPDATE attempts SET status = ?, kind = ?, body = ?, verdict = ?, cost = ? WHERE id = ?",
                (*fields, verdict, cost, began),
            )
            return began

    def unread(self) -> list[tuple[int, str, int | None, Raw]]:
        """Return the responses that were stored and not read: their process was ended in between.

        Returns:
            Attempt, model, worst cost and response of each.
        """
        with self._explained():
            rows = self._reading.execute(
                "SELECT a.id, q.model, a.cost, a.status, a.kind, a.body FROM attempts a "
                "JOIN questions q ON q.id = a.question WHERE a.verdict IS NULL"
            ).fetchall()
        return [
            (attempt, model, cost, Raw(status, kind, self._inflated(attempt, body)))
            for attempt, model, cost, status, kind, body in rows
        ]

    def judge(self, judgement: Judgement) -> None:
        """Note what was read; it is written with the next commit, and read again should it be lost."""
        self._judged.append(judgement)

    def settle(self) -> None:
        """Write what was judged so far."""
        with self._commit():
            pass

    def remember_form(self, provider: str, model: str, form: str) -> None:
        """Keep how structured output must be asked for."""
        with self._commit() as connection:
            connection.execute("INSERT OR REPLACE INTO forms VALUES (?, ?, ?)", (provider, model, form))

    def spoil(self, key: bytes) -> None:
        """Note that no belief update could be read from an answer; written with the next commit."""
        self._spoiled.append(key)

    @contextmanager
    def _commit(self) -> Iterator[sqlite3.Connection]:
        """Make one transaction of what is done inside and of the judgements that wait."""
        connection = self._writing
        if connection is None:
            raise RuntimeError("this store was opened for reading")
        with self._explained():
            waiting = [self._judged.popleft() for _ in range(len(self._judged))]
            spoiled = [self._spoiled.popleft() for _ in range(len(self._spoiled))]
            try:
                connection.execute("BEGIN IMMEDIATE")
                for one in waiting:
                    tokens = one.tokens
                    counts = (tokens.prompt, tokens.completion, tokens.cached) if tokens else (None,) * 3
                    connection.execute(
                        "UPDATE attempts SET verdict = ?, prompt_tokens = ?, completion_tokens = ?, "
                        "cached_tokens = ?, cost = ? WHERE id = ?",
                        (one.verdict, *counts, one.cost, one.attempt),
                    )
                for key in spoiled:
                    connection.execute(
                        "UPDATE attempts SET verdict = ? WHERE verdict = ? "
                        "AND question = (SELECT id FROM questions WHERE key = ?)",
                        (UNUSABLE, ANSWER, key),
                    )
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                self._judged.extendleft(reversed(waiting))
                self._spoiled.extendleft(reversed(spoiled))
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @staticmethod
    def _insert(
        connection: sqlite3.Connection,
        content: bytes,
        form: str,
        raw: Raw | None,
        verdict: str | None,
        cost: int | None,
    ) -> int:
        key = key_of(content)
        row = connection.execute("SELECT id FROM questions WHERE key = ?", (key,)).fetchone()
        if row is None:
            model = str(orjson.loads(content)["request"].get("model", ""))
            row = connection.execute(
                "INSERT INTO questions (key, model, content) VALUES (?, ?, ?) RETURNING id",
                (key, model, zlib.compress(content, LEVEL)),
            ).fetchone()
        fields = (raw.status, raw.kind, zlib.compress(raw.body, LEVEL)) if raw else (None, None, None)
        return connection.execute(
            "INSERT INTO attempts (question, form, began, status, kind, body, verdict, cost) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
            (row[0], form, round(time.time(), 3), *fields, verdict, cost),
        ).fetchone()[0]

    def _inflated(self, attempt: int, body: bytes) -> bytes:
        try:
            return zlib.decompress(body)
        except zlib.error:
            raise RunStoppedError(
                f"store {self.path} is damaged: attempt {attempt} cannot be read; `envprobe store verify` "
                "lists what is; nothing was changed"
            ) from None

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say in one line what SQLite has against the file."""
        try:
            yield
        except sqlite3.Error as error:
            raise RunStoppedError(
                f"store {self.path} cannot be used: {explain(error)}; what was stored is still there"
            ) from None


def verdict_of(found: Completion | Fault) -> str:
    """Name what was read."""
    return ANSWER if isinstance(found, Completion) else found.name
