"""What a store holds: asked, answered, wasted and paid; and whether all of it is still what was stored."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import orjson

from envprobe_core.llm.asking import NO_TOKENS, Tokens
from envprobe_core.llm.keys import key_of
from envprobe_core.llm.prices import Price, find_price, most_tokens, total_cost
from envprobe_core.llm.reading import Completion, Raw, read_response
from envprobe_core.llm.store import ANSWER, DUPLICATE, GOOD, UNUSABLE, connect, explain, inflated, used_by


@dataclass(frozen=True)
class StoreStats:
    """What a store holds, and what it cost.

    Attributes:
        questions: distinct questions asked.
        answered: of them, those with an answer.
        attempts: calls, by verdict.
        prompt_tokens, completion_tokens: of all calls that said so.
        wasted_attempts: calls that gave no answer anybody uses.
        paid_usd: dollars; what is not known counts as its most.
        wasted_usd: of them, for calls that gave no answer or one that could not be used.
        uncertain_usd: of them, for calls whose usage is not known.
        unpriced: calls to models without a price.
        models: how many questions each model was asked.
        finished: why answers ended, as the server says: `stop`, or `length` where one was cut.
    """

    questions: int
    answered: int
    attempts: dict[str, int]
    prompt_tokens: int
    completion_tokens: int
    wasted_attempts: int
    paid_usd: float
    wasted_usd: float
    uncertain_usd: float
    unpriced: int
    models: dict[str, int]
    finished: dict[str, int]


def read_stats(path: Path, prices: Mapping[str, Price]) -> StoreStats:
    """Count what a store holds.

    Args:
        path: its file.
        prices: dollars, by model.

    Raises:
        InputError: if it is no store or cannot be read.
    """
    connection = connect(path, writable=False)
    try:
        connection.execute("BEGIN")  # all that follows is read as of one moment, whoever writes
        models = "SELECT model, count(DISTINCT key) FROM calls GROUP BY 1 ORDER BY 1"
        asked = dict(connection.execute(models).fetchall())
        groups = connection.execute(
            "SELECT model, verdict, certain, count(*), sum(prompt), sum(completion), sum(cached) FROM calls "
            "GROUP BY 1, 2, 3 ORDER BY 4 DESC, 2"
        ).fetchall()
        answers = connection.execute(f"SELECT status, kind, response FROM calls WHERE {GOOD}")
        finished = Counter(_finish(*row) for row in answers)
    finally:
        connection.close()
    attempts: dict[str, int] = {}
    known, paid, wasted, uncertain, unpriced = NO_TOKENS, 0.0, 0.0, 0.0, 0
    for model, verdict, certain, count, *counts in groups:
        tokens, price = Tokens(*counts), find_price(prices, model)
        cost = 0.0 if price is None else price.cost(tokens)
        attempts[verdict] = attempts.get(verdict, 0) + count
        known += tokens if certain else NO_TOKENS
        paid += cost
        wasted += cost * (verdict != ANSWER)
        uncertain += cost * (not certain)
        unpriced += count * (price is None)
    return StoreStats(
        questions=sum(asked.values()),
        answered=attempts.get(ANSWER, 0) + attempts.get(UNUSABLE, 0),
        attempts=attempts,
        prompt_tokens=known.prompt,
        completion_tokens=known.completion,
        wasted_attempts=sum(attempts.values()) - attempts.get(ANSWER, 0),
        paid_usd=paid,
        wasted_usd=wasted,
        uncertain_usd=uncertain,
        unpriced=unpriced,
        models=asked,
        finished=dict(finished.most_common()),
    )


def cost_of_cells(
    path: Path, keys: Sequence[Sequence[str]], prices: Mapping[str, Price]
) -> list[dict[str, float]]:
    """Say what the answers of a run's cells cost, with every attempt to get them.

    Args:
        path: the store's file.
        keys: of the answers that each cell used, in hexadecimal.
        prices: dollars, by model.

    Returns:
        Of each cell: its `questions`, their cost `usd`, and of it `shared_usd` for those that other cells
        ask too, which are paid once.
    """
    connection = connect(path, writable=False)
    try:
        rows = connection.execute("SELECT key, model, prompt, completion, cached FROM calls").fetchall()
    finally:
        connection.close()
    costs: Counter[str] = Counter()
    for key, model, *counts in rows:
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


def _finish(status: int, kind: str, response: bytes) -> str:
    found = read_response(Raw(status, kind, inflated(response) or b""))
    return found.finish or "not said" if isinstance(found, Completion) else "damaged"


def check_store(path: Path) -> Iterator[str]:
    """Go through a store and yield what is wrong with it, a text each; nothing where all is well.

    Raises:
        InputError: if it is no store or cannot be opened.
    """
    connection = connect(path, writable=False)
    try:
        connection.execute("BEGIN")  # all that follows is read as of one moment, whoever writes
        for (line,) in connection.execute("PRAGMA integrity_check(20)"):
            if line != "ok":
                yield f"file: {line}"
        sums: dict[str, Tokens] = {}
        rows = connection.execute(
            "SELECT id, key, model, question, verdict, status, kind, response, certain, prompt, completion, "
            "cached FROM calls"
        )
        for call, key, model, question, verdict, status, kind, response, certain, *counts in rows:
            sums[model] = sums.get(model, NO_TOKENS) + Tokens(*counts)
            asked = inflated(question)
            if asked is None or key_of(asked) != key:
                yield f"call {call}: its question does not give its key {bytes(key).hex()[:16]}"
                continue
            fault = _fault(asked, verdict, (status, kind, response), Tokens(*counts), bool(certain))
            if fault is not None:
                yield f"call {call}: {fault}"
        if sums != used_by(connection):
            yield f"tokens: the calls add up to {sums}, the totals say {used_by(connection)}"
    except sqlite3.Error as error:
        yield f"file: {explain(error)}"
    finally:
        connection.close()


def _fault(
    question: bytes, verdict: str, came: tuple[int, str, bytes | None], tokens: Tokens, certain: bool
) -> str | None:
    """Say what is wrong with a call, None where verdict and tokens are what its response gives."""
    status, kind, response = came
    if response is None:
        return "it is said to be answered and has no response" if verdict in (ANSWER, UNUSABLE) else None
    body = inflated(response)
    if body is None:
        return "its response cannot be read"
    found = read_response(Raw(status, kind, body))
    said = ANSWER if verdict in (UNUSABLE, DUPLICATE) else verdict
    reads = ANSWER if isinstance(found, Completion) else found.name
    if said != reads:
        return f"its verdict is {verdict}, its response reads as {reads}"
    gives = found.used or most_tokens(orjson.loads(question)["request"])
    if gives != tokens or certain != (found.used is not None):
        return f"its tokens are {tokens}, its response says {gives}"
    return None
