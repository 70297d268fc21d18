"""The store: every call to a model, a row each, in one SQLite file; cache, record and replay source at once.

Before a call begins its row claims the question, at the most tokens that the call can use. When the call has
ended, its row is settled: what came back, raw, what it was, and what it used. A question has one answer, the
first, for every process and for ever, and one claim at a time: another process that wants it waits, unless
the claimant is gone or its time is over. No row is ever deleted.

The file is opened by SQLite alone. Were a process that uses a store to open and close the file itself, POSIX
would drop all its locks on it, and the next process to leave would take the write-ahead log from under it.
"""

import errno
import hashlib
import os
import platform
import sqlite3
import time
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import orjson

from envprobe_core.errors import InputError
from envprobe_core.files import check_plain
from envprobe_core.llm import calls
from envprobe_core.llm.calls import Answer, Fault, Prices, Question, Raw, RunStoppedError, Tokens

APPLICATION_ID, VERSION = 0x45505241, 2
PATIENCE = 30.0  # seconds to wait for another process's commit

ANSWER = "answer"
UNUSABLE = "unusable"  # an answer from which no belief update could be read; the agent asks again
STARTED = "started"  # a call whose end was never seen
DUPLICATE = "duplicate"  # an answer that came after another process's to the same question
DAMAGED = "damaged"  # an answer that can be read no more; its question was asked again
SAID = {UNUSABLE: ANSWER, DUPLICATE: ANSWER, calls.NO_OBJECT: calls.NO_SCHEMA}
"""What a response says by itself, where its verdict rests on more than its bytes."""
GOOD = f"verdict IN ('{ANSWER}', '{UNUSABLE}')"

SCHEMA = f"""
PRAGMA journal_mode = WAL;
BEGIN EXCLUSIVE;
CREATE TABLE IF NOT EXISTS calls (
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
CREATE UNIQUE INDEX IF NOT EXISTS answers ON calls (key) WHERE {GOOD};
CREATE UNIQUE INDEX IF NOT EXISTS claims ON calls (key) WHERE holder IS NOT NULL;
CREATE TABLE IF NOT EXISTS used (  -- the sums of all calls, so that a cap is checked at once
    model TEXT PRIMARY KEY, prompt INTEGER NOT NULL, completion INTEGER NOT NULL, cached INTEGER NOT NULL
);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
COMMIT;
"""
ABOUT = (
    "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master) "
    "FROM pragma_application_id, pragma_user_version"
)
ANSWERED = f"SELECT id, status, kind, response FROM calls WHERE key = ? AND {GOOD}"
CLAIMED = "SELECT holder, until FROM calls WHERE holder IS NOT NULL"
TAKEN = f"""
SELECT model, verdict FROM calls UNION
SELECT model, '{calls.STREAMED}' FROM calls WHERE {GOOD} AND kind LIKE 'text/event-stream%' ORDER BY 1, 2
"""
SUMS = "SELECT model, sum(prompt), sum(completion), sum(cached) FROM calls GROUP BY 1"
PAID = "(SELECT *, usd(model, prompt, completion, cached) AS usd FROM calls)"
STATS = f"""
SELECT count(DISTINCT key) AS questions,
    count(*) FILTER (WHERE {GOOD}) AS answered,
    coalesce(sum(prompt) FILTER (WHERE certain), 0) AS prompt_tokens,
    coalesce(sum(completion) FILTER (WHERE certain), 0) AS completion_tokens,
    count(*) FILTER (WHERE verdict != '{ANSWER}') AS wasted_attempts,
    total(usd) AS paid_usd,
    total(usd) FILTER (WHERE verdict != '{ANSWER}') AS wasted_usd,
    total(usd) FILTER (WHERE NOT certain) AS uncertain_usd,
    count(*) FILTER (WHERE usd IS NULL) AS unpriced
FROM {PAID}
"""
COUNTS = {
    "attempts": "SELECT verdict, count(*) FROM calls GROUP BY 1 ORDER BY 2 DESC, 1",
    "models": "SELECT model, count(DISTINCT key) FROM calls GROUP BY 1 ORDER BY 1",
}
PROCESSES = "/proc/self/ns/pid"  # names what process numbers are unique in: the machine, or a container on it
MACHINE = f"{platform.node()}/{os.readlink(PROCESSES) if os.path.lexists(PROCESSES) else ''}"
HOLDER = f"{os.getpid()} {os.urandom(4).hex()} {MACHINE}"
"""This process, as its claims name it."""


class AnswerStore:
    """An open store. What changes it is done on one thread at a time; `find` may be called on another."""

    # where an answer is not here
    advice = "give the command without --replay-only to ask for it, or with the --base-url that was asked"

    def __init__(
        self, path: Path, *, writable: bool = True, prices: Prices | None = None, cap: float | None = None
    ) -> None:
        """Open a store; make it where it may be written and is not there.

        Args:
            path: of its file.
            writable: whether calls can be stored.
            prices: dollars, by model.
            cap: dollars that all its calls together may cost; None for no cap.

        Raises:
            InputError: if the file is no store, damaged, of another version, missing, or read-only.
        """
        self.path, self.prices, self.cap = path, prices or {}, cap
        self.set_aside: list[int] = []  # calls whose answers could not be read, and are asked for again
        self._writable = writable
        self._writing = _open(path, writable=writable)
        self._reading = _connect(path, "rw") if writable else self._writing

    def close(self) -> None:
        """Close the file."""
        self._reading.close()
        self._writing.close()

    def find(self, key: bytes) -> Answer | None:
        """The answer to a question, None where there is none, or none that can be read while it can be asked.

        Raises:
            RunStoppedError: if the file is damaged where it stands, and cannot be asked for.
        """
        try:
            row = self._reading.execute(ANSWERED, (key,)).fetchone()
        except sqlite3.Error as error:
            raise self._unusable(error) from None
        if row is None:
            return None
        found = calls.read_response(_stored(*row[1:]))
        if isinstance(found, Answer):
            return found._replace(key=key.hex())
        if self._writable:
            return None  # `claim` sets it aside
        raise RunStoppedError(
            f"store {self.path} is damaged: call {row[0]} cannot be read; `envprobe store verify` lists "
            "what is; nothing was changed"
        )

    def used(self) -> dict[str, Tokens]:
        """The tokens of all stored calls together, by model; what is not known counts as its most."""
        return _by_model(self._writing, "SELECT * FROM used")

    def rungs(self) -> dict[str, list[str]]:
        """The rungs of the ladder that requests took, by model: names of `calls.RUNGS`."""
        found: dict[str, list[str]] = {}
        for model, rung in self._reading.execute(TAKEN):
            if rung in calls.RUNGS:
                found.setdefault(model, []).append(rung)
        return found

    def commit(self, changes: Sequence[Callable[[], Any]]) -> list[Any]:
        """Make changes, each a `claim` or a `settle`, and commit them together: a disk takes its time.

        They outlast a kill and a power cut. One that is refused undoes no other.

        Returns:
            What each returned, or the error that it ended with.
        """
        try:
            with self._writing:
                self._writing.execute("BEGIN IMMEDIATE")
                return [_returned_or_raised(change) for change in changes]
        except Exception as error:  # a fault of ours too: nobody may wait for ever
            return [self._unusable(error) if isinstance(error, sqlite3.Error) else error] * len(changes)

    def claim(self, asked: Question, seconds: float, spoilt: str = "") -> int | None:
        """Note in a commit that a call begins, at the most it can use, for this process alone.

        Args:
            asked: the question.
            seconds: after which the claim holds no longer.
            spoilt: the key of the answer that could not be used, if that is why this is asked.

        Returns:
            The call, for `settle`. None if it may not begin now: another has the question, or its answer is
            there, or calls that are under way may yet leave room under the cap.

        Raises:
            RunStoppedError: if the cap is reached.
        """
        key, model, most, now, change = asked.key, asked.model, asked.most, time.time(), self._writing.execute

        def holds(claims: Iterable[tuple[str, float]]) -> bool:
            return any(now < until and not _is_gone(holder) for holder, until in claims)

        if spoilt:
            marked = "UPDATE calls SET verdict = ? WHERE key = ? AND verdict = ?"
            change(marked, (UNUSABLE, bytes.fromhex(spoilt), ANSWER))
        if holds(change(f"{CLAIMED} AND key = ?", (key,))):
            return None
        if there := change(ANSWERED, (key,)).fetchone():
            if isinstance(calls.read_response(_stored(*there[1:])), Answer):
                return None
            change("UPDATE calls SET verdict = ? WHERE id = ?", (DAMAGED, there[0]))
            self.set_aside.append(there[0])
        if self.cap is not None:
            spent, worst = (calls.total_cost(self.prices, used) for used in (self.used(), {model: most}))
            if spent + worst > self.cap:
                if holds(change(CLAIMED)):
                    return None
                most_usd, spent_usd, worst_usd = map(calls.dollars, (self.cap, spent, worst))
                raise RunStoppedError(
                    f"the cap of {most_usd} is reached: {spent_usd} are spent, and the next call can cost up "
                    f"to {worst_usd}; all answers are kept in {self.path}: raise --max-cost and run the "
                    "command again to continue"
                )
        change("UPDATE calls SET holder = NULL WHERE key = ? AND holder IS NOT NULL", (key,))
        self._use(model, most)
        call = change(
            "INSERT INTO calls (key, model, question, verdict, holder, until, prompt, completion, cached, "
            "certain) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
            (key, model, zlib.compress(asked.content), STARTED, HOLDER, now + seconds, *most),
        )
        return call.lastrowid

    def settle(self, call: int, came: Raw | Fault, rungs: Collection[str] = ()) -> Answer | Fault:
        """Note in a commit what came back from a call, or why nothing did, and free its question.

        Where it is not known what the call used, the most stays counted. Returns what the response says to a
        request that had taken some `rungs` of the ladder.
        """
        change = self._writing.execute
        query = "SELECT key, model, prompt, completion, cached FROM calls WHERE id = ?"
        key, model, *most = change(query, (call,)).fetchone()
        if isinstance(came, Raw) and len(came.body) > calls.LARGEST_RESPONSE:
            came = Fault(calls.TOO_LARGE, f"more than {calls.LARGEST_RESPONSE:,} bytes")
        found, response = came, (None, None, None)
        if isinstance(came, Raw):
            found, response = calls.read_response(came), (came.status, came.kind, zlib.compress(came.body))
        if isinstance(found, Fault):
            found = calls.next_rung(found, rungs)
        verdict, tokens, certain = _entry(found, Tokens(*most))
        if verdict == ANSWER and change(ANSWERED, (key,)).fetchone():
            verdict = DUPLICATE
        self._use(model, [used - counted for used, counted in zip(tokens, most, strict=True)])
        change(
            "UPDATE calls SET verdict = ?, holder = NULL, until = NULL, status = ?, kind = ?, response = ?, "
            "prompt = ?, completion = ?, cached = ?, certain = ? WHERE id = ?",
            (verdict, *response, *tokens, certain, call),
        )
        return found

    def _use(self, model: str, tokens: Iterable[int]) -> None:
        self._writing.execute(
            "INSERT INTO used VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET prompt = prompt + "
            "excluded.prompt, completion = completion + excluded.completion, cached = cached + "
            "excluded.cached",
            (model, *tokens),
        )

    def _unusable(self, error: sqlite3.Error) -> RunStoppedError:
        return RunStoppedError(
            f"store {self.path} cannot be used ({error}); what was stored is still there: mend this, and "
            "run the command again to continue"
        )


def _returned_or_raised(change: Callable[[], Any]) -> Any:
    try:
        return change()
    except RunStoppedError as error:
        return error


def _entry(found: Answer | Fault, most: Tokens) -> tuple[str, Tokens, bool]:
    """A call's verdict, its tokens, and whether these are certain, as its row states them."""
    verdict = ANSWER if isinstance(found, Answer) else found.name
    return verdict, found.used or most, found.used is not None


def _by_model(connection: sqlite3.Connection, query: str) -> dict[str, Tokens]:
    return {model: Tokens(*counts) for model, *counts in connection.execute(query)}


def _is_gone(holder: str) -> bool:
    """Whether a claimant is a process of this machine that has ended."""
    number, _, machine = holder.split(" ", 2)
    if machine != MACHINE or holder == HOLDER:
        return False
    try:
        os.kill(int(number), 0)  # sends nothing
    except OSError as error:
        return error.errno == errno.ESRCH
    return int(number) == os.getpid()  # our own number, given a second time


def _stored(status: int | None, kind: str | None, packed: bytes | None) -> Raw:
    return Raw(status or 0, kind or "", _inflated(packed or b""))


def _inflated(packed: bytes) -> bytes:
    """What was compressed, nothing where it is damaged, or more than is read of a response."""
    try:
        unpacking = zlib.decompressobj()
        unpacked = unpacking.decompress(packed, calls.LARGEST_RESPONSE)
        return unpacked if unpacking.eof else b""
    except (zlib.error, TypeError):
        return b""


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    where = f"{path.resolve().as_uri()}?mode={mode}"
    return sqlite3.connect(where, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False)


def _open(path: Path, *, writable: bool) -> sqlite3.Connection:
    """Open a store's file, or make it; one that is no store is left as it is.

    Raises:
        InputError: if it is no store, damaged, of another version, missing, or read-only.
    """
    mode = "rwc" if writable else "rw"  # a reader too: the last to leave takes the log away
    try:
        check_plain(path)
        if not (needed := path.parent if writable else path).exists():
            raise FileNotFoundError(errno.ENOENT, f"{needed} does not exist")
        with ExitStack() as stack:
            connection = stack.enter_context(closing(_connect(path, mode)))
            if writable and not any(connection.execute(ABOUT).fetchone()):
                connection.executescript(SCHEMA)
            if fault := _fault(connection, writable=writable):
                raise sqlite3.DatabaseError(fault)
            connection.execute(f"PRAGMA {'synchronous = FULL' if writable else 'query_only = ON'}")
            stack.pop_all()
            return connection
    except (OSError, RuntimeError, sqlite3.Error) as error:  # links in a circle are the second, in 3.11
        why = getattr(error, "strerror", None) or error
        raise InputError(f"store {path} cannot be opened ({why}); nothing was changed") from None


def _fault(connection: sqlite3.Connection, *, writable: bool) -> str:
    """Why a file cannot be used as a store, nothing where it can."""
    application, version, _ = connection.execute(ABOUT).fetchone()
    if application != APPLICATION_ID:
        return "it belongs to another program"
    if version != VERSION:
        age = "a newer" if version > VERSION else "an earlier"
        return f"{age} version made it (schema {version}, not {VERSION}); it can export its runs"
    if (found := connection.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
        return f"it is damaged: {' '.join(found.split())}; recover it with `sqlite3 FILE .recover`"
    if writable and connection.execute("PRAGMA journal_mode = WAL").fetchone()[0] != "wal":
        return "this file system takes no write-ahead log; put it on another"
    return ""


# ---------------------------------------------------------------- what it holds, and whether it still does


@contextmanager
def _at_one_moment(path: Path, prices: Prices | None = None) -> Iterator[sqlite3.Connection]:
    """Open a store for reading; all that is read is of one moment, whoever writes."""

    def usd(model: str, *counts: int) -> float | None:
        price = calls.find_price(prices or {}, model)
        return None if price is None else price.cost(Tokens(*counts))

    with closing(_open(path, writable=False)) as connection:
        connection.create_function("usd", 4, usd)
        connection.execute("BEGIN")
        yield connection


def read_stats(path: Path, prices: Prices) -> dict[str, Any]:
    """Count what a store holds, and what it cost.

    Returns:
        `questions`, the distinct ones, and of them the `answered`; `prompt_tokens` and `completion_tokens` of
        all calls that said so; `wasted_attempts`, calls that gave no answer anybody uses; in dollars
        `paid_usd`, where what is not known counts as its most, and of it `wasted_usd`, and `uncertain_usd`
        where usage is not known; `unpriced`, calls to models without a price; `attempts`, calls by verdict;
        `models`, the questions to each; and why answers `finished`, as the server says.

    Raises:
        InputError: if it is no store or cannot be read.
    """
    with _at_one_moment(path, prices) as connection:
        sums = connection.execute(STATS)
        names = [column for column, *_ in sums.description]
        stats: dict[str, Any] = dict(zip(names, sums.fetchone(), strict=True))
        stats |= {name: dict(connection.execute(query).fetchall()) for name, query in COUNTS.items()}
        rows = connection.execute(f"SELECT status, kind, response FROM calls WHERE {GOOD}")
        found = (calls.read_response(_stored(*row)) for row in rows)
        ends = ((one.finish or "not said") if isinstance(one, Answer) else "damaged" for one in found)
        return stats | {"finished": dict(Counter(ends).most_common())}


def cost_of_conditions(path: Path, keys: Sequence[Iterable[str]], prices: Prices) -> list[dict[str, float]]:
    """What the answers to each condition's keys, in hexadecimal, cost, with every attempt to get them.

    Returns:
        Of each condition: its `questions`, their cost `usd`, and of it `shared_usd` for those that others ask
        too, which are paid once.
    """
    with _at_one_moment(path, prices) as connection:
        costs = dict(connection.execute(f"SELECT lower(hex(key)), total(usd) FROM {PAID} GROUP BY 1"))
    asked, conditions = Counter(chain.from_iterable(keys)), []
    for own in map(list, keys):
        usd, shared = (sum(costs[key] for key in own if asked[key] > times) for times in (0, 1))
        conditions.append({"questions": len(own), "usd": usd, "shared_usd": shared})
    return conditions


def check_store(path: Path) -> Iterator[str]:
    """Recompute every key, verdict and total of a store; yield what is wrong, a text each.

    Raises:
        InputError: if it is no store or cannot be opened.
    """
    with _at_one_moment(path) as connection:
        try:
            for (line,) in connection.execute("PRAGMA integrity_check(20)"):
                if line != "ok":
                    yield f"file: {line}"
            rows = connection.execute(
                "SELECT id, key, question, status, kind, response, verdict, certain, prompt, completion, "
                "cached FROM calls"
            )
            for call, key, question, status, kind, response, verdict, certain, *counts in rows:
                content = _inflated(question)
                if hashlib.sha256(content).digest() != key:
                    yield f"call {call}: its question does not give its key {bytes(key).hex()[:16]}"
                elif verdict != DAMAGED and (response is not None or verdict in (ANSWER, UNUSABLE)):
                    most = Question(orjson.loads(content)["request"], content, key).most
                    reads = _entry(calls.read_response(_stored(status, kind, response)), most)
                    said = SAID.get(verdict, verdict)
                    if (stated := (said, Tokens(*counts), bool(certain))) != reads:
                        yield f"call {call}: it says {stated}; its response {reads}"
            sums, totals = (_by_model(connection, query) for query in (SUMS, "SELECT * FROM used"))
            if sums != totals:
                yield f"tokens: the calls add up to {sums}, the totals say {totals}"
        except sqlite3.Error as error:
            yield f"file: {error}"
