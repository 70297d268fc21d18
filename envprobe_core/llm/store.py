"""The store: every call to a model, a row each, in one SQLite file; cache, record and replay source at once.

A question is a request with its provider and identity; its key is the SHA-256 of their canonical JSON. Before
a call begins its row claims the question, at the most tokens that the call can use. When the call has ended,
one transaction settles the row: what came back, raw, what it was, and what it used. A question has one
answer, the first, for every process and for ever, and one claim at a time: another process that wants it
waits, unless the claimant is gone or its time is over. No row is ever deleted.

The file is opened by SQLite alone. Were a process that uses a store to open and close the file itself, POSIX
would drop all its locks on it, and the next process to leave would take the write-ahead log from under it.

Methods that write are called on one thread only (`client` has it); `find` may be called on another.
"""

from __future__ import annotations

import enum
import operator
import os
import platform
import secrets
import sqlite3
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import orjson

from envprobe_core.errors import InputError
from envprobe_core.files import LARGEST
from envprobe_core.llm.calls import (
    NO_TOKENS,
    Answer,
    Prices,
    Raw,
    RunStoppedError,
    Tokens,
    find_price,
    key_of,
    most_tokens,
    read_response,
    total_cost,
)

APPLICATION_ID, VERSION = 0x45505241, 2
SMALLEST_FILE = 512  # bytes of the smallest SQLite database; a shorter file would pass for an empty one
PATIENCE = 30.0  # seconds to wait for another process's commit
LEVEL = 6  # of compression

ANSWER = "answer"
UNUSABLE = "unusable"  # an answer from which no belief update could be read; the agent asks again
STARTED = "started"  # a call whose end was never seen
DUPLICATE = "duplicate"  # an answer that came after another process's to the same question
GOOD = f"verdict IN ('{ANSWER}', '{UNUSABLE}')"

SCHEMA = f"""
CREATE TABLE calls (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL,             -- SHA-256 of the uncompressed question
    model TEXT NOT NULL,
    question BLOB NOT NULL,        -- zlib of the canonical JSON of provider, request, identity
    verdict TEXT NOT NULL,
    holder TEXT,                   -- who is calling, null once the call has ended
    until REAL,                    -- seconds since the epoch after which nobody waits for the holder
    status INTEGER,                -- HTTP status, null where there was no response
    kind TEXT,                     -- Content-Type
    response BLOB,                 -- zlib of the raw body
    prompt INTEGER NOT NULL,       -- tokens; the most there can have been where they are not certain
    completion INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    certain INTEGER NOT NULL
);
CREATE UNIQUE INDEX answers ON calls (key) WHERE {GOOD};
CREATE UNIQUE INDEX claims ON calls (key) WHERE holder IS NOT NULL;
CREATE TABLE used (                -- the sums of all calls, so that a cap is checked at once
    model TEXT PRIMARY KEY,
    prompt INTEGER NOT NULL,
    completion INTEGER NOT NULL,
    cached INTEGER NOT NULL
);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
"""
EXPLAINED = {
    ("SQLITE_FULL", "SQLITE_IOERR"): "its disk is full or fails ({}); make room and give the command again",
    ("SQLITE_READONLY",): "it is read-only; copy it to a place that can be written to",
    ("SQLITE_BUSY", "SQLITE_LOCKED"): "another process keeps it locked; give the command again",
    ("SQLITE_CORRUPT", "SQLITE_NOTADB"): "it is damaged ({}); keep a copy, and recover it with "
    "`sqlite3 FILE .recover`",
}
"""What SQLite's errors come to, by how their names begin."""


class Refusal(enum.Enum):
    """Why a question could not be claimed: another process has it, or the cap leaves no room for it."""

    TAKEN = enum.auto()
    OVER_CAP = enum.auto()


class AnswerStore:
    """An open store."""

    def __init__(self, path: Path, *, writable: bool = True) -> None:
        """Open a store; make it where it may be written and is not there.

        Raises:
            InputError: if the file is no store, damaged, of another version, missing, or read-only.
        """
        self.path = path
        self._reading = connect(path, writable=writable)
        self._writing = connect(path, writable=True) if writable else None

    def close(self) -> None:
        """Close the file."""
        self._reading.close()
        if self._writing is not None:
            self._writing.close()

    def find(self, key: bytes) -> Answer | None:
        """Return the answer to a question, None where there is none yet.

        Raises:
            RunStoppedError: if the file is damaged where it stands.
        """
        with self._explained():
            query = f"SELECT id, status, kind, response FROM calls WHERE key = ? AND {GOOD}"
            row = self._reading.execute(query, (key,)).fetchone()
        if row is None:
            return None
        call, status, kind, response = row
        body = inflated(response)
        found = None if body is None else read_response(Raw(status, kind, body))
        if not isinstance(found, Answer):
            raise RunStoppedError(
                f"store {self.path} is damaged: call {call} cannot be read; `envprobe store verify` lists "
                "what is; nothing was changed"
            )
        return found

    def lacks(self, what: str) -> str:
        """Say that an answer is not here, and how to get it."""
        return (
            f"store {self.path} has no answer to {what}; give the command without --replay-only to ask for "
            "it, or with the --base-url of the run that is replayed"
        )

    def used(self) -> dict[str, Tokens]:
        """Return the tokens of all stored calls together, by model; what is not known counts as its most."""
        with self._explained():
            return used_by(self._reading)

    def claim(
        self,
        question: bytes,
        most: Tokens,
        seconds: float,
        fits: Callable[[Mapping[str, Tokens]], bool] | None = None,
        spoilt: bytes | None = None,
    ) -> int | Refusal:
        """Note that a call begins, at the most it can use; nobody else begins one to the same question.

        Args:
            question: canonical, from `calls.question`.
            seconds: after which the claim holds no longer.
            fits: whether a cap leaves room for the tokens, by model, that would be used; None for no cap.
            spoilt: the key of the answer that could not be used, if that is why this is asked.

        Returns:
            The call, for `settle`; or why it may not begin.
        """
        key, now = key_of(question), time.time()
        with self._transaction(durable=fits is not None) as connection:
            if spoilt is not None:
                connection.execute(
                    "UPDATE calls SET verdict = ? WHERE key = ? AND verdict = ?", (UNUSABLE, spoilt, ANSWER)
                )
            query = "SELECT id, holder, until FROM calls WHERE key = ? AND holder IS NOT NULL"
            for call, holder, until in connection.execute(query, (key,)).fetchall():
                if now < until and not _is_gone(holder):
                    return Refusal.TAKEN
                connection.execute("UPDATE calls SET holder = NULL WHERE id = ?", (call,))
            if connection.execute(f"SELECT 1 FROM calls WHERE key = ? AND {GOOD}", (key,)).fetchone():
                return Refusal.TAKEN
            model = str(orjson.loads(question)["request"].get("model", ""))
            if fits is not None:
                used = used_by(connection)
                if not fits(used | {model: used.get(model, NO_TOKENS).plus(most)}):
                    return Refusal.OVER_CAP
            _use(connection, model, most)
            call = connection.execute(
                "INSERT INTO calls (key, model, question, verdict, holder, until, prompt, completion, "
                "cached, certain) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
                (key, model, zlib.compress(question, LEVEL), STARTED, HOLDER, now + seconds, *most),
            )
            return int(call.lastrowid or 0)

    def settle(self, call: int, raw: Raw | None, verdict: str, tokens: Tokens | None) -> None:
        """Commit what came back from a call and its verdict, and free its question.

        Where it is not known what the call used, the most stays counted.
        """
        with self._transaction() as connection:
            key, model, *most = connection.execute(
                "SELECT key, model, prompt, completion, cached FROM calls WHERE id = ?", (call,)
            ).fetchone()
            late = f"SELECT 1 FROM calls WHERE key = ? AND {GOOD}"
            if verdict == ANSWER and connection.execute(late, (key,)).fetchone():
                verdict = DUPLICATE
            ends = most if tokens is None else tokens
            _use(connection, model, Tokens(*map(operator.sub, ends, most)))
            response = (raw.status, raw.kind, zlib.compress(raw.body, LEVEL)) if raw else (None, None, None)
            connection.execute(
                "UPDATE calls SET verdict = ?, holder = NULL, until = NULL, status = ?, kind = ?, "
                "response = ?, prompt = ?, completion = ?, cached = ?, certain = ? WHERE id = ?",
                (verdict, *response, *ends, tokens is not None, call),
            )

    @contextmanager
    def _transaction(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Commit what is done inside, all of it or nothing; durable ones outlast a power cut, all a kill."""
        assert self._writing is not None, "this store was opened for reading"
        with self._explained():
            self._writing.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._writing.execute("BEGIN IMMEDIATE")
            try:
                yield self._writing
                self._writing.execute("COMMIT")
            except BaseException:
                if self._writing.in_transaction:
                    self._writing.execute("ROLLBACK")
                raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say in one line what SQLite has against the file."""
        try:
            yield
        except sqlite3.Error as error:
            raise RunStoppedError(
                f"store {self.path} cannot be used: {explain(error)}; what was stored is still there"
            ) from None


def used_by(connection: sqlite3.Connection) -> dict[str, Tokens]:
    """Return the stored totals."""
    rows = connection.execute("SELECT model, prompt, completion, cached FROM used")
    return {model: Tokens(*counts) for model, *counts in rows}


def _use(connection: sqlite3.Connection, model: str, tokens: Tokens) -> None:
    connection.execute(
        "INSERT INTO used VALUES (?, ?, ?, ?) ON CONFLICT (model) DO UPDATE SET prompt = prompt + "
        "excluded.prompt, completion = completion + excluded.completion, cached = cached + excluded.cached",
        (model, *tokens),
    )


def inflated(content: bytes) -> bytes | None:
    """Return what was compressed, None where it is damaged, or more than can be."""
    try:
        unpacking = zlib.decompressobj()
        unpacked = unpacking.decompress(content, LARGEST)
        return unpacked if unpacking.eof else None
    except (zlib.error, TypeError):
        return None


# ---------------------------------------------------------------- who holds a claim


def _machine() -> str:
    """Name what process numbers are unique in: the machine, or the container on it."""
    try:
        return f"{platform.node()}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return platform.node()


MACHINE = _machine()
HOLDER = f"{os.getpid()} {secrets.token_hex(4)} {MACHINE}"
"""This process, as its claims name it."""


def _is_gone(holder: str) -> bool:
    """Say whether a claimant is a process of this machine that has ended."""
    number, _, machine = holder.split(" ", 2)
    if machine != MACHINE or holder == HOLDER:
        return False
    try:
        os.kill(int(number), 0)  # sends nothing
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return int(number) == os.getpid()  # our own number, given a second time


# ---------------------------------------------------------------- opening the file


def connect(path: Path, *, writable: bool) -> sqlite3.Connection:
    """Open a store's file, or make it; one that is no store is left as it is.

    Raises:
        InputError: if it is no store, damaged, of another version, missing, or read-only.
    """
    try:
        address = f"{path.resolve().as_uri()}?{_mode(path, writable)}"
        connection = sqlite3.connect(
            address, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False
        )
        try:
            _recognise(connection, path, writable)
        except BaseException:
            connection.close()
            raise
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorname", "") == "SQLITE_NOTADB":
            raise _no_store(path) from None
        raise InputError(f"store {path} cannot be opened: {explain(error)}; it was left as it is") from None
    except (OSError, RuntimeError) as error:  # Python 3.11's word for links that lead in a circle
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"store {path} cannot be opened ({reason})") from None
    return connection


def _mode(path: Path, writable: bool) -> str:
    """Return how SQLite is to open a file; refuse what the file system tells without opening anything."""
    if path.is_dir():
        raise InputError(f"store {path} is a folder; give a file")
    if not path.exists():
        if not writable:
            raise InputError(f"store {path} does not exist")
        if not path.parent.is_dir():
            raise InputError(f"store {path}: there is no folder {path.parent}")
        return "mode=rwc"
    size = path.stat().st_size
    if size < SMALLEST_FILE and not (writable and size == 0):  # empty: its maker was ended at its first step
        raise _no_store(path)
    if writable and not os.access(path, os.W_OK):
        raise InputError(f"store {path} is read-only; copy it, or give --replay-only")
    if writable or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        return "mode=rw"  # for a reader too, so that the last to leave takes the write-ahead log away
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        return "mode=ro"
    return "immutable=1"  # nobody writes here, and SQLite would want a file of its own


def _recognise(connection: sqlite3.Connection, path: Path, writable: bool) -> None:
    """Refuse a database that is none of ours before anything of it is changed; set up an empty one."""
    application, version, tables = connection.execute(
        "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) "
        "FROM pragma_application_id, pragma_user_version"
    ).fetchone()
    if writable and not (application or version or tables):
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("BEGIN EXCLUSIVE")
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            for statement in SCHEMA.split(";\n"):
                connection.execute(statement)
        connection.execute("COMMIT")
        application, version = APPLICATION_ID, VERSION
    if application != APPLICATION_ID:
        raise InputError(f"{path} belongs to another program; it was left as it is")
    if version != VERSION:
        age = "a newer" if version > VERSION else "an earlier"
        raise InputError(
            f"store {path} was made by {age} version (schema {version}; this one reads {VERSION}), whose "
            "`envprobe store export` writes what every version replays; it was left as it is"
        )
    if (found := connection.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
        raise InputError(
            f"store {path} is damaged ({' '.join(found.split())}); it was left as it is: keep a copy, and "
            "recover what can be read with `sqlite3 FILE .recover`"
        )
    if not writable:
        connection.execute("PRAGMA query_only=ON")
    elif connection.execute("PRAGMA journal_mode=WAL").fetchone()[0] != "wal":
        raise InputError(f"store {path}: this file system takes no write-ahead log; put it on another")


def _no_store(path: Path) -> InputError:
    return InputError(f"{path} is no store of answers (not an SQLite file); it was left as it is")


def explain(error: sqlite3.Error) -> str:
    """Put an error of SQLite into words that say what to do."""
    name = getattr(error, "sqlite_errorname", "") or ""
    return next((words for starts, words in EXPLAINED.items() if name.startswith(starts)), "{}").format(error)


# ---------------------------------------------------------------- what it holds, and whether it still does


@contextmanager
def at_one_moment(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a store for reading; all that is read is of one moment, whoever writes.

    Raises:
        InputError: if it is no store or cannot be read.
    """
    with closing(connect(path, writable=False)) as connection:
        connection.execute("BEGIN")
        yield connection


def read_stats(path: Path, prices: Prices) -> dict[str, Any]:
    """Count what a store holds, and what it cost.

    Returns:
        `questions`, the distinct ones, and of them the `answered`; `attempts`, the calls by verdict;
        `prompt_tokens` and `completion_tokens` of all calls that said so; `wasted_attempts`, calls that gave
        no answer anybody uses; in dollars `paid_usd`, where what is not known counts as its most, and of it
        `wasted_usd`, and `uncertain_usd` for calls whose usage is not known; `unpriced`, calls to models
        without a price; `models`, the questions to each; and why answers `finished`, as the server says.

    Raises:
        InputError: if it is no store or cannot be read.
    """
    with at_one_moment(path) as connection:
        models = "SELECT model, count(DISTINCT key) FROM calls GROUP BY 1 ORDER BY 1"
        asked = dict(connection.execute(models).fetchall())
        groups = connection.execute(
            "SELECT model, verdict, certain, count(*), sum(prompt), sum(completion), sum(cached) FROM calls "
            "GROUP BY 1, 2, 3 ORDER BY 4 DESC, 2"
        ).fetchall()
        answers = connection.execute(f"SELECT status, kind, response FROM calls WHERE {GOOD}")
        finished = Counter(_finish(*row) for row in answers)
    attempts: dict[str, int] = {}
    known, paid, wasted, uncertain, unpriced = NO_TOKENS, 0.0, 0.0, 0.0, 0
    for model, verdict, certain, count, *counts in groups:
        cost = total_cost(prices, {model: Tokens(*counts)})
        attempts[verdict] = attempts.get(verdict, 0) + count
        known = known.plus(Tokens(*counts)) if certain else known
        paid += cost
        wasted += cost * (verdict != ANSWER)
        uncertain += cost * (not certain)
        unpriced += count * (find_price(prices, model) is None)
    return {
        "questions": sum(asked.values()),
        "answered": attempts.get(ANSWER, 0) + attempts.get(UNUSABLE, 0),
        "attempts": attempts,
        "prompt_tokens": known.prompt,
        "completion_tokens": known.completion,
        "wasted_attempts": sum(attempts.values()) - attempts.get(ANSWER, 0),
        "paid_usd": paid,
        "wasted_usd": wasted,
        "uncertain_usd": uncertain,
        "unpriced": unpriced,
        "models": asked,
        "finished": dict(finished.most_common()),
    }


def _finish(status: int, kind: str, response: bytes) -> str:
    found = read_response(Raw(status, kind, inflated(response) or b""))
    return found.finish or "not said" if isinstance(found, Answer) else "damaged"


def cost_of_cells(path: Path, keys: Sequence[Sequence[str]], prices: Prices) -> list[dict[str, float]]:
    """Say what the answers to each cell's keys, in hexadecimal, cost, with every attempt to get them.

    Returns:
        Of each cell: its `questions`, their cost `usd`, and of it `shared_usd` for those that other cells
        ask too, which are paid once.
    """
    costs: Counter[str] = Counter()
    with at_one_moment(path) as connection:
        for key, model, *counts in connection.execute(
            "SELECT key, model, prompt, completion, cached FROM calls"
        ):
            costs[key.hex()] += total_cost(prices, {model: Tokens(*counts)})
    asked = Counter(chain.from_iterable(keys))
    return [
        {
            "questions": len(own),
            "usd": sum(costs[key] for key in own),
            "shared_usd": sum(costs[key] for key in own if asked[key] > 1),
        }
        for own in keys
    ]


def check_store(path: Path) -> Iterator[str]:
    """Go through a store and yield what is wrong with it, a text each; nothing where all is well.

    Raises:
        InputError: if it is no store or cannot be opened.
    """
    with at_one_moment(path) as connection:
        try:
            for (line,) in connection.execute("PRAGMA integrity_check(20)"):
                if line != "ok":
                    yield f"file: {line}"
            sums: dict[str, Tokens] = {}
            rows = connection.execute(
                "SELECT id, key, model, question, verdict, status, kind, response, certain, prompt, "
                "completion, cached FROM calls"
            )
            for call, key, model, question, verdict, status, kind, response, certain, *counts in rows:
                used, asked = Tokens(*counts), inflated(question)
                sums[model] = used.plus(sums.get(model, NO_TOKENS))
                if asked is None or key_of(asked) != key:
                    yield f"call {call}: its question does not give its key {bytes(key).hex()[:16]}"
                elif fault := _fault(asked, verdict, (status, kind, response), used, bool(certain)):
                    yield f"call {call}: {fault}"
            if sums != used_by(connection):
                yield f"tokens: the calls add up to {sums}, the totals say {used_by(connection)}"
        except sqlite3.Error as error:
            yield f"file: {explain(error)}"


def _fault(
    question: bytes, verdict: str, came: tuple[int, str, bytes | None], tokens: Tokens, certain: bool
) -> str | None:
    """Say what is wrong with a call, None where verdict and tokens are what its response gives."""
    status, kind, response = came
    if response is None:
        return "it is said to be answered and has no response" if verdict in (ANSWER, UNUSABLE) else None
    if (body := inflated(response)) is None:
        return "its response cannot be read"
    found = read_response(Raw(status, kind, body))
    said = ANSWER if verdict in (UNUSABLE, DUPLICATE) else verdict
    reads = ANSWER if isinstance(found, Answer) else found.name
    if said != reads:
        return f"its verdict is {verdict}, its response reads as {reads}"
    gives = found.used or most_tokens(orjson.loads(question)["request"])
    if gives != tokens or certain != (found.used is not None):
        return f"its tokens are {tokens}, its response says {gives}"
    return None
