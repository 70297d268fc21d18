"""Opening a store's file: what is refused, and that nothing is altered before it is known to be ours."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from envprobe_core.errors import InputError

APPLICATION_ID = 0x45505241
VERSION = 1
PATIENCE = 30.0  # seconds to wait for another process's commit
MAGIC = b"SQLite format 3\0"
_VERSION_AT, _APPLICATION_AT = 60, 68  # in the file's header, 4 bytes each

SCHEMA = """
CREATE TABLE questions (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,        -- SHA-256 of the uncompressed content
    model TEXT NOT NULL,
    content BLOB NOT NULL            -- zlib of the canonical JSON of provider, request, identity
);
CREATE TABLE attempts (
    id INTEGER PRIMARY KEY,
    question INTEGER NOT NULL REFERENCES questions (id),
    form TEXT NOT NULL,              -- how structured output was asked for
    began REAL NOT NULL,             -- seconds since the epoch
    status INTEGER,                  -- HTTP status, null where there was no response
    kind TEXT,                       -- Content-Type
    body BLOB,                       -- zlib of the raw response, null where there was none
    verdict TEXT,                    -- null until the response was read
    prompt_tokens INTEGER,
    completion_tokens INTEGER,
    cached_tokens INTEGER,
    cost INTEGER                     -- picodollars; the most it can have been where it is not known
);
CREATE INDEX attempts_of_a_question ON attempts (question);
CREATE TABLE forms (provider TEXT, model TEXT, form TEXT NOT NULL, PRIMARY KEY (provider, model));
CREATE TABLE spent (picodollars INTEGER NOT NULL);
INSERT INTO spent VALUES (0);
CREATE TRIGGER attempt_added AFTER INSERT ON attempts BEGIN
    UPDATE spent SET picodollars = picodollars + ifnull(new.cost, 0);
END;
CREATE TRIGGER attempt_settled AFTER UPDATE OF cost ON attempts BEGIN
    UPDATE spent SET picodollars = picodollars + ifnull(new.cost, 0) - ifnull(old.cost, 0);
END;
"""


def connect(path: Path, *, writable: bool) -> sqlite3.Connection:
    """Open a store; make it where it may be written and is not there.

    Args:
        path: its file.
        writable: whether answers will be added.

    Raises:
        InputError: if the file is no store, is damaged, newer than this version, missing, or read-only.
    """
    try:
        _look_at_header(path, writable)
        connection = _writable(path) if writable else _readable(path)
    except sqlite3.DatabaseError as error:
        raise InputError(f"store {path} cannot be opened: {explain(error)}; it was left as it is") from None
    except OSError as error:
        raise InputError(f"store {path} cannot be opened ({error.strerror})") from None
    return connection


def _look_at_header(path: Path, writable: bool) -> None:
    """Refuse a file that is none of ours by its first bytes, before SQLite touches it."""
    if path.is_dir():
        raise InputError(f"store {path} is a folder; give a file")
    if not path.exists():
        if not writable:
            raise InputError(f"store {path} does not exist")
        if not path.parent.is_dir():
            raise InputError(f"store {path}: there is no folder {path.parent}")
        return
    with path.open("rb") as file:
        header = file.read(100)
    if not header and writable:
        return  # left by a process that was ended while it made the store
    if len(header) < 100 or not header.startswith(MAGIC):
        raise InputError(f"{path} is no store of answers (not an SQLite file); it was left as it is")
    application = int.from_bytes(header[_APPLICATION_AT : _APPLICATION_AT + 4])
    version = int.from_bytes(header[_VERSION_AT : _VERSION_AT + 4])
    if application != APPLICATION_ID:
        raise InputError(f"{path} belongs to another program; it was left as it is")
    if version > VERSION:
        raise InputError(
            f"store {path} was made by a newer version (schema {version}; this one reads {VERSION}); "
            "it was left as it is"
        )
    if writable and not os.access(path, os.W_OK):
        raise InputError(f"store {path} is read-only; copy it, or give --replay-only")


def _writable(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
        _create(connection)
    if connection.execute("PRAGMA journal_mode=WAL").fetchone()[0] != "wal":
        raise InputError(f"store {path}: this file system takes no write-ahead log; put it on another")
    connection.execute("PRAGMA synchronous=FULL")
    _check(connection, path)
    return connection


def _create(connection: sqlite3.Connection) -> None:
    """Make the tables in one transaction; of two processes that try, the second finds them made."""
    connection.execute("BEGIN EXCLUSIVE")
    if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
        for statement in _statements(SCHEMA):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={VERSION}")
    connection.execute("COMMIT")


def _statements(script: str) -> list[str]:
    statements, pending = [], ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending)
            pending = ""
    return statements


def _readable(path: Path) -> sqlite3.Connection:
    address, log = path.resolve().as_uri(), path.with_name(path.name + "-wal")
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        address += "?mode=rw"  # so that the last to leave takes the write-ahead log away
    elif log.exists() and log.stat().st_size:
        address += "?mode=ro"
    else:
        address += "?immutable=1"  # nobody writes here, and SQLite would want a file of its own
    connection = sqlite3.connect(
        address, uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA query_only=ON")
    _check(connection, path)
    return connection


def _check(connection: sqlite3.Connection, path: Path) -> None:
    found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if found != "ok":
        raise InputError(
            f"store {path} is damaged ({' '.join(found.split())}); it was left as it is: keep a copy, and "
            "recover what can be read with `sqlite3 FILE .recover`"
        )


def explain(error: sqlite3.Error) -> str:
    """Put an error of SQLite into words that say what to do."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name == "SQLITE_FULL" or name.startswith("SQLITE_IOERR"):
        return f"its disk is full or fails ({error}); make room and give the command again"
    if name.startswith("SQLITE_READONLY"):
        return "it is read-only; copy it to a place that can be written to"
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return "another process keeps it locked; give the command again"
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return f"it is damaged ({error}); keep a copy, and recover it with `sqlite3 FILE .recover`"
    return str(error)
