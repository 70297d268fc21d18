"""What a store holds: asked, answered, wasted and paid; and whether all of it is still what was stored."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envprobe_core.llm.keys import key_of
from envprobe_core.llm.opening import connect, explain
from envprobe_core.llm.reading import Completion, read_response
from envprobe_core.llm.store import ANSWER, GOOD, UNUSABLE, verdict_of


@dataclass(frozen=True)
class StoreStats:
    """What a store holds, and what it cost.

    Attributes:
        questions: distinct questions asked.
        answered: of them, those with an answer.
        attempts: by verdict.
        prompt_tokens, completion_tokens: of all attempts that said so.
        wasted_attempts: attempts that gave no answer anybody uses.
        paid: picodollars; what is not known counts as its most.
        wasted: of them, for attempts that gave no answer or one that could not be used.
        uncertain: of them, for attempts whose usage is not known.
        unpriced: attempts of models without a price.
        models: how many questions each model was asked.
    """

    questions: int
    answered: int
    attempts: dict[str, int]
    prompt_tokens: int
    completion_tokens: int
    wasted_attempts: int
    paid: int
    wasted: int
    uncertain: int
    unpriced: int
    models: dict[str, int]


def read_stats(path: Path) -> StoreStats:
    """Count what a store holds.

    Raises:
        InputError: if it is no store or cannot be read.
    """
    connection = connect(path, writable=False)
    try:

        def one(query: str, *values: object) -> tuple[Any, ...]:
            return connection.execute(query, values).fetchone()

        good = f"verdict IN ('{ANSWER}', '{UNUSABLE}')"
        first = f"id IN (SELECT min(id) FROM attempts WHERE {good} GROUP BY question)"
        used = f"(verdict = '{ANSWER}' AND {first})"
        verdicts = "SELECT ifnull(verdict, 'unread'), count(*) FROM attempts GROUP BY 1 ORDER BY 2 DESC, 1"
        models = "SELECT model, count(*) FROM questions GROUP BY 1 ORDER BY 1"
        total = one(
            "SELECT total(prompt_tokens), total(completion_tokens), total(cost), count(*) - count(cost), "
            f"sum(NOT ifnull({used}, 0)), total(CASE WHEN ifnull({used}, 0) THEN 0 ELSE cost END), "
            "total(CASE WHEN prompt_tokens IS NULL THEN cost END) FROM attempts"
        )
        return StoreStats(
            one("SELECT count(*) FROM questions")[0],
            one(f"SELECT count(DISTINCT question) FROM attempts WHERE {good}")[0],
            dict(connection.execute(verdicts).fetchall()),
            int(total[0]),
            int(total[1]),
            int(total[4] or 0),
            int(total[2]),
            int(total[5]),
            int(total[6]),
            int(total[3]),
            dict(connection.execute(models).fetchall()),
        )
    finally:
        connection.close()


def check_store(path: Path) -> Iterator[str]:
    """Go through a store and yield what is wrong with it, a text each; nothing where all is well.

    Raises:
        InputError: if it is no store or cannot be opened.
    """
    connection = connect(path, writable=False)
    try:
        for (line,) in connection.execute("PRAGMA integrity_check(20)"):
            if line != "ok":
                yield f"file: {line}"
        for number, key, content in connection.execute("SELECT id, key, content FROM questions"):
            inflated = _inflated(content)
            if inflated is None or key_of(inflated) != key:
                yield f"question {number}: its content does not give its key {bytes(key).hex()[:16]}"
        rows = connection.execute(
            "SELECT id, status, kind, body, verdict, prompt_tokens, completion_tokens FROM attempts"
        )
        for number, status, kind, body, verdict, prompt, completion in rows:
            fault = _fault(status, kind, body, verdict, (prompt, completion))
            if fault is not None:
                yield f"attempt {number}: {fault}"
        spent = connection.execute("SELECT picodollars FROM spent").fetchone()[0]
        summed = connection.execute("SELECT ifnull(sum(cost), 0) FROM attempts").fetchone()[0]
        if spent != summed:
            yield f"costs: the attempts add up to {summed}, the total says {spent}"
    except sqlite3.Error as error:
        yield f"file: {explain(error)}"
    finally:
        connection.close()


def _fault(
    status: int | None, kind: str, body: bytes | None, verdict: str | None, tokens: tuple[Any, Any]
) -> str | None:
    """Say what is wrong with an attempt, None where its verdict is what its response gives."""
    if body is None:
        lost = verdict is not None and verdict not in GOOD
        return None if lost else "it is said to be answered and has no response"
    inflated = _inflated(body)
    if inflated is None or status is None:
        return "its response cannot be read"
    found = read_response(status, kind, inflated)
    if verdict is None:
        return None  # the process was ended before it was read; it is read whenever it is wanted
    said = ANSWER if verdict == UNUSABLE else verdict
    if said != verdict_of(found):
        return f"its verdict is {verdict}, its response reads as {verdict_of(found)}"
    usage = (found.tokens.prompt, found.tokens.completion) if found.tokens else (None, None)
    if isinstance(found, Completion) and usage != tokens:
        return f"its tokens are {tokens}, its response says {usage}"
    return None


def _inflated(content: bytes) -> bytes | None:
    try:
        return zlib.decompress(content)
    except zlib.error:
        return None
