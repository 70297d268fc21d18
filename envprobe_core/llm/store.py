"""The store: every call to a model, a row each, in one SQLite file; cache, record and replay source at once.

Before a call begins its row claims the question, at the most tokens that the call can use. When the call has
ended, its row is settled: what came back, raw, what it was, and what it used. A question has one answer, the
first, for every process and for ever, and one claim at a time: another process that wants it waits, unless
the claimant is gone or its time is over. No row is ever deleted.

The file is opened by SQLite alone. Were a process that uses a store to open and close the file itself, POSIX
would drop all its locks on it, and the next process to leave would take the write-ahead log from under it.

A replay file holds the answers of one run, small enough to hand on: a gzip file of JSON lines. The first says
which model answered, what was run and which result hash came out; then a line an answer, `[key, text, prompt
tokens, completion tokens, fingerprint]`, in order of key; the last counts them. It holds no requests: the
run makes them again, and finds its answers by their keys.
"""

from __future__ import annotations

import enum
import gzip
import hashlib
import io
import os
import platform
import secrets
import sqlite3
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import orjson
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from envprobe_core.errors import InputError, first_fault
from envprobe_core.files import LARGEST, read_whole, replacing
from envprobe_core.llm import ModelAgent
from envprobe_core.llm.calls import (
    MOST_TOKENS,
    NO_TOKENS,
    Answer,
    Fault,
    Prices,
    Question,
    Raw,
    RunStoppedError,
    Tokens,
    find_price,
    read_response,
    total_cost,
)
from envprobe_core.runs.manifest import RunInputs

APPLICATION_ID, VERSION = 0x45505241, 2
SMALLEST_FILE = 512  # bytes of the smallest SQLite database; a shorter file would pass for an empty one
PATIENCE = 30.0  # seconds to wait for another process's commit
LEVEL = 6  # of compression in a store
SMALLEST = 9  # of compression in a replay file

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
    ("SQLITE_FULL", "SQLITE_IOERR"): "its disk is full or fails ({}); make room and run the command again",
    ("SQLITE_READONLY",): "it is read-only; copy it to a place that can be written to",
    ("SQLITE_BUSY", "SQLITE_LOCKED"): "another process keeps it locked; run the command again",
    ("SQLITE_CORRUPT", "SQLITE_NOTADB"): "it is damaged ({}); keep a copy, and recover it with "
    "`sqlite3 FILE .recover`",
}
"""What SQLite's errors come to, by how their names begin."""


class Refusal(enum.Enum):
    """Why a question could not be claimed: another process has it, or the cap leaves no room for it."""

    TAKEN = enum.auto()
    OVER_CAP = enum.auto()


class AnswerStore:
    """An open store. What changes it is called on one thread at a time; `find` may be called on another."""

    def __init__(self, path: Path, *, writable: bool = True) -> None:
        """Open a store; make it where it may be written and is not there.

        Raises:
            InputError: if the file is no store, damaged, of another version, missing, or read-only.
        """
        self.path = path
        self._reading = _connect(path, writable=writable)
        self._writing = _connect(path, writable=True) if writable else self._reading

    def close(self) -> None:
        """Close the file."""
        self._reading.close()
        self._writing.close()

    def find(self, key: bytes) -> Answer | None:
        """Return the answer to a question, None where there is none yet.

        Raises:
            RunStoppedError: if the file is damaged where it stands.
        """
        query = f"SELECT id, status, kind, response FROM calls WHERE key = ? AND {GOOD}"
        try:
            row = self._reading.execute(query, (key,)).fetchone()
        except sqlite3.Error as error:
            raise self._unusable(error) from None
        if row is None:
            return None
        call, status, kind, response = row
        body = _inflated(response)
        found = None if body is None else read_response(Raw(status, kind, body))
        if not isinstance(found, Answer):
            raise RunStoppedError(
                f"store {self.path} is damaged: call {call} cannot be read; `envprobe store verify` lists "
                "what is; nothing was changed"
            )
        return found._replace(key=key.hex())

    def lacks(self, what: str) -> str:
        """Say that an answer is not here, and how to get it."""
        return (
            f"store {self.path} has no answer to {what}; give the command without --replay-only to ask for "
            "it, or with the --base-url of the run that is replayed"
        )

    def used(self) -> dict[str, Tokens]:
        """Return the tokens of all stored calls together, by model; what is not known counts as its most."""
        try:
            return _used(self._reading)
        except sqlite3.Error as error:
            raise self._unusable(error) from None

    def claim(
        self,
        asked: Question,
        seconds: float,
        fits: Callable[[Mapping[str, Tokens]], bool] | None = None,
        spoilt: str = "",
    ) -> int | Refusal:
        """Note that a call begins, at the most it can use; nobody else begins one to the same question.

        Args:
            asked: the question.
            seconds: after which the claim holds no longer.
            fits: whether a cap leaves room for the tokens, by model, that would be used; None for no cap.
            spoilt: the key of the answer that could not be used, if that is why this is asked.

        Returns:
            The call, for `settle`; or why it may not begin.
        """
        key, model, most, now = asked.key, asked.model, asked.most, time.time()
        with self._transaction(durable=fits is not None) as connection:
            if spoilt:
                change = "UPDATE calls SET verdict = ? WHERE key = ? AND verdict = ?"
                connection.execute(change, (UNUSABLE, bytes.fromhex(spoilt), ANSWER))
            query = "SELECT id, holder, until FROM calls WHERE key = ? AND holder IS NOT NULL"
            for call, holder, until in connection.execute(query, (key,)).fetchall():
                if now < until and not _is_gone(holder):
                    return Refusal.TAKEN
                connection.execute("UPDATE calls SET holder = NULL WHERE id = ?", (call,))
            if connection.execute(f"SELECT 1 FROM calls WHERE key = ? AND {GOOD}", (key,)).fetchone():
                return Refusal.TAKEN
            if fits is not None:
                used = _used(connection)
                if not fits(used | {model: used.get(model, NO_TOKENS).plus(most)}):
                    return Refusal.OVER_CAP
            _use(connection, model, most)
            call = connection.execute(
                "INSERT INTO calls (key, model, question, verdict, holder, until, prompt, completion, "
                "cached, certain) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
                (key, model, zlib.compress(asked.content, LEVEL), STARTED, HOLDER, now + seconds, *most),
            )
            return int(call.lastrowid or 0)

    def settle(self, call: int, raw: Raw | None, found: Answer | Fault) -> None:
        """Commit what came back from a call, raw and as it reads, and free its question.

        Where it is not known what the call used, the most stays counted.
        """
        verdict, tokens = ANSWER if isinstance(found, Answer) else found.name, found.used
        with self._transaction() as connection:
            key, model, *counts = connection.execute(
                "SELECT key, model, prompt, completion, cached FROM calls WHERE id = ?", (call,)
            ).fetchone()
            most = Tokens(*counts)
            late = f"SELECT 1 FROM calls WHERE key = ? AND {GOOD}"
            if verdict == ANSWER and connection.execute(late, (key,)).fetchone():
                verdict = DUPLICATE
            if tokens is not None:
                _use(connection, model, tokens.plus(most, -1))
            response = (raw.status, raw.kind, zlib.compress(raw.body, LEVEL)) if raw else (None, None, None)
            connection.execute(
                "UPDATE calls SET verdict = ?, holder = NULL, until = NULL, status = ?, kind = ?, "
                "response = ?, prompt = ?, completion = ?, cached = ?, certain = ? WHERE id = ?",
                (verdict, *response, *(tokens or most), tokens is not None, call),
            )

    def together(self, changes: Sequence[Callable[[], Any]], *, durable: bool) -> list[Any]:
        """Make several changes in one transaction, all or none; return what each returns."""
        with self._transaction(durable=durable):
            return [change() for change in changes]

    @contextmanager
    def _transaction(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Commit what is done inside, all of it or nothing; durable ones outlast a power cut, all a kill."""
        if self._writing.in_transaction:
            yield self._writing
            return
        try:
            self._writing.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._writing.execute("BEGIN IMMEDIATE")
            yield self._writing
            self._writing.execute("COMMIT")
        except sqlite3.Error as error:
            raise self._unusable(error) from None
        finally:
            if self._writing.in_transaction:
                self._writing.execute("ROLLBACK")

    def _unusable(self, error: sqlite3.Error) -> RunStoppedError:
        """Say in one line what SQLite has against the file."""
        return RunStoppedError(
            f"store {self.path} cannot be used: {_explain(error)}; what was stored is still there"
        )


def _used(connection: sqlite3.Connection) -> dict[str, Tokens]:
    rows = connection.execute("SELECT model, prompt, completion, cached FROM used")
    return {model: Tokens(*counts) for model, *counts in rows}


def _use(connection: sqlite3.Connection, model: str, tokens: Tokens) -> None:
    connection.execute(
        "INSERT INTO used VALUES (?, ?, ?, ?) ON CONFLICT (model) DO UPDATE SET prompt = prompt + "
        "excluded.prompt, completion = completion + excluded.completion, cached = cached + excluded.cached",
        (model, *tokens),
    )


def _inflated(content: bytes) -> bytes | None:
    """Return what was compressed, None where it is damaged, or more than can be."""
    try:
        unpacking = zlib.decompressobj()
        unpacked = unpacking.decompress(content, LARGEST)
        return unpacked if unpacking.eof else None
    except (zlib.error, TypeError):
        return None


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


def _connect(path: Path, *, writable: bool) -> sqlite3.Connection:
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
        raise InputError(f"store {path} cannot be opened: {_explain(error)}; it was left as it is") from None
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
    """Refuse a database that is not ours before changing anything in it; set up an empty one."""
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


def _explain(error: sqlite3.Error) -> str:
    """Put an error of SQLite into words that say what to do."""
    name = getattr(error, "sqlite_errorname", "") or ""
    return next((words for starts, words in EXPLAINED.items() if name.startswith(starts)), "{}").format(error)


# ---------------------------------------------------------------- what it holds, and whether it still does


@contextmanager
def _at_one_moment(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a store for reading; all that is read is of one moment, whoever writes."""
    with closing(_connect(path, writable=False)) as connection:
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
    with _at_one_moment(path) as connection:
        models = "SELECT model, count(DISTINCT key) FROM calls GROUP BY 1 ORDER BY 1"
        asked = dict(connection.execute(models).fetchall())
        groups = connection.execute(
            "SELECT model, verdict, certain, count(*), sum(prompt), sum(completion), sum(cached) FROM calls "
            "GROUP BY 1, 2, 3 ORDER BY 4 DESC, 2"
        ).fetchall()
        answers = connection.execute(f"SELECT status, kind, response FROM calls WHERE {GOOD}")
        finished = Counter(_finish(*row) for row in answers)
    attempts: Counter[str] = Counter()
    known, paid, wasted, uncertain, unpriced = NO_TOKENS, 0.0, 0.0, 0.0, 0
    for model, verdict, certain, count, *counts in groups:
        cost = total_cost(prices, {model: Tokens(*counts)})
        attempts[verdict] += count
        known = known.plus(Tokens(*counts), certain)
        paid += cost
        wasted += cost * (verdict != ANSWER)
        uncertain += cost * (not certain)
        unpriced += count * (find_price(prices, model) is None)
    return {
        "questions": sum(asked.values()),
        "answered": attempts[ANSWER] + attempts[UNUSABLE],
        "attempts": {verdict: count for verdict, count in attempts.items() if count},
        "prompt_tokens": known.prompt,
        "completion_tokens": known.completion,
        "wasted_attempts": attempts.total() - attempts[ANSWER],
        "paid_usd": paid,
        "wasted_usd": wasted,
        "uncertain_usd": uncertain,
        "unpriced": unpriced,
        "models": asked,
        "finished": dict(finished.most_common()),
    }


def _finish(status: int, kind: str, response: bytes) -> str:
    found = read_response(Raw(status, kind, _inflated(response) or b""))
    return found.finish or "not said" if isinstance(found, Answer) else "damaged"


def cost_of_cells(path: Path, keys: Sequence[Iterable[str]], prices: Prices) -> list[dict[str, float]]:
    """Say what the answers to each cell's keys, in hexadecimal, cost, with every attempt to get them.

    Returns:
        Of each cell: its `questions`, their cost `usd`, and of it `shared_usd` for those that other cells
        ask too, which are paid once.
    """
    costs: Counter[str] = Counter()
    with _at_one_moment(path) as connection:
        for key, model, *counts in connection.execute(
            "SELECT key, model, prompt, completion, cached FROM calls"
        ):
            costs[key.hex()] += total_cost(prices, {model: Tokens(*counts)})
    asked = Counter(chain.from_iterable(keys))
    return [
        {
            "questions": len(list(own)),
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
    with _at_one_moment(path) as connection:
        try:
            for (line,) in connection.execute("PRAGMA integrity_check(20)"):
                if line != "ok":
                    yield f"file: {line}"
            sums: dict[str, Tokens] = {}
            rows = connection.execute(
                "SELECT id, model, key, question, verdict, status, kind, response, certain, prompt, "
                "completion, cached FROM calls"
            )
            for call, model, *row, certain, prompt, completion, cached in rows:
                used = Tokens(prompt, completion, cached)
                sums[model] = used.plus(sums.get(model, NO_TOKENS))
                if fault := _fault(*row, used, bool(certain)):
                    yield f"call {call}: {fault}"
            if sums != _used(connection):
                yield f"tokens: the calls add up to {sums}, the totals say {_used(connection)}"
        except sqlite3.Error as error:
            yield f"file: {_explain(error)}"


def _fault(
    key: bytes, packed: bytes, verdict: str, status: int, kind: str, response: bytes | None,
    tokens: Tokens, certain: bool,
) -> str | None:  # fmt: skip
    """Say what is wrong with a call, None where key, verdict and tokens are what its texts give."""
    content = _inflated(packed)
    if content is None or hashlib.sha256(content).digest() != key:
        return f"its question does not give its key {bytes(key).hex()[:16]}"
    if response is None:
        return "it is said to be answered and has no response" if verdict in (ANSWER, UNUSABLE) else None
    if (body := _inflated(response)) is None:
        return "its response cannot be read"
    found = read_response(Raw(status, kind, body))
    said = ANSWER if verdict in (UNUSABLE, DUPLICATE) else verdict
    reads = ANSWER if isinstance(found, Answer) else found.name
    if said != reads:
        return f"its verdict is {verdict}, its response reads as {reads}"
    gives = found.used or Question(orjson.loads(content)["request"], content, key).most
    if gives != tokens or certain != (found.used is not None):
        return f"its tokens are {tokens}, its response says {gives}"
    return None


# ---------------------------------------------------------------- replay files


class Header(BaseModel):
    """The first line of a replay file."""

    format: Literal["envprobe-replay/1"] = "envprobe-replay/1"
    note: str = ""
    inputs: dict[str, Any]
    result_hash: str


Count = Annotated[int, Field(ge=0, le=MOST_TOKENS)] | None
LINE = TypeAdapter(tuple[str, str, Count, Count, str])
Head = TypeVar("Head", bound=BaseModel)


@dataclass(frozen=True)
class ReplayFile:
    """A replay file that was read; it answers as a store does and takes nothing."""

    path: Path
    header: Header  # what it says of itself
    inputs: RunInputs  # the run whose answers it holds
    agent: ModelAgent  # which model answered, and how it was asked
    answers: Mapping[bytes, Answer]  # by key

    @property
    def fingerprints(self) -> frozenset[str]:
        """Return the names that the servers gave to what answered."""
        return frozenset(answer.fingerprint for answer in self.answers.values())

    def find(self, key: bytes) -> Answer | None:
        """Return the answer to a question, None where the file has none."""
        return self.answers.get(key)

    def lacks(self, what: str) -> str:
        """Say that an answer is not here, and what is."""
        inputs = self.inputs
        held = f"{' '.join(inputs.worlds)}; {' '.join(inputs.policies)}; {' '.join(inputs.protocols)}"
        seeds = inputs.seeds or "the default ones"
        return (
            f"replay {self.path} has no answer to {what}; it holds {held}; {inputs.regime}, seeds {seeds}, "
            "and replays as it was run or not at all"
        )

    def close(self) -> None:
        """Do nothing: the file was read at once."""


Answers = AnswerStore | ReplayFile


def write_replay(
    path: Path, inputs: RunInputs, result_hash: str, note: str, store: AnswerStore, keys: Iterable[str]
) -> int:
    """Write the answers of a run on a model to a file; return how many there are.

    The `note` tells readers where they come from; `keys` are the questions, in hexadecimal.
    """
    stated = {name: value for name, value in inputs.as_dict().items() if name != "logs"}
    return write_answers(path, Header(note=note, inputs=stated, result_hash=result_hash), store, keys)


def write_answers(path: Path, header: BaseModel, store: Answers, keys: Iterable[str]) -> int:
    """Write a header and the answers to some questions, in hexadecimal; return how many there are."""
    lines = [orjson.dumps(header.model_dump())]
    for key in sorted(set(keys)):
        found = store.find(bytes.fromhex(key))
        if found is None:
            raise RuntimeError(f"answer {key} was used and is not in the store")
        counts = (found.used.prompt, found.used.completion) if found.used else (None, None)
        # a lone surrogate, which no file can hold, is replaced: no usable answer has one
        text = found.text.encode("utf-8", "backslashreplace").decode()
        lines.append(orjson.dumps([key, text, *counts, found.fingerprint]))
    lines.append(orjson.dumps({"answers": len(lines) - 1}))
    with replacing(path, new=True) as temporary:
        temporary.write_bytes(gzip.compress(b"\n".join(lines) + b"\n", SMALLEST, mtime=0))
    return len(lines) - 2


def read_replay(path: Path) -> ReplayFile:
    """Read a replay file.

    Raises:
        InputError: if it is none, or damaged, or cut short.
    """
    header, answers = read_answers(path, Header)
    try:
        inputs = RunInputs.from_dict(header.inputs)
        if inputs.agent is None:
            raise InputError("it names no model")
    except InputError as error:
        raise InputError(f"replay {path}: {error}") from None
    return ReplayFile(path, header, inputs, inputs.agent, answers)


def read_answers(path: Path, kind: type[Head]) -> tuple[Head, dict[bytes, Answer]]:
    """Read a header of some kind, and the answers by key.

    Raises:
        InputError: if the file is none, or damaged, or cut short.
    """
    try:
        head, _, rest = read_whole(path, packed=True).partition(b"\n")
        found = kind.model_validate_json(head)
        lines, _, foot = rest.rstrip(b"\n").rpartition(b"\n")
        count = {"answers": lines.count(b"\n") + bool(lines)}
        answers = {}
        for line in io.BytesIO(lines):
            key, text, prompt, completion, fingerprint = LINE.validate_json(line)
            used = None if prompt is None or completion is None else Tokens(prompt, completion)
            answers[bytes.fromhex(key)] = Answer(text, used, fingerprint, key=key)
        if not orjson.loads(foot) == count == {"answers": len(answers)}:
            raise ValueError("it does not count its own lines")
        return found, answers
    except OSError as error:
        raise InputError(f"replay {path} cannot be read ({error.strerror or error})") from None
    except (ValueError, EOFError, zlib.error) as error:
        why = first_fault(error) if isinstance(error, ValidationError) else error
        raise InputError(f"{path} is no replay file, or a damaged one ({why})") from None
