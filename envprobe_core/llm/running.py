"""Running what a run folder lacks with a language model: the same parts, scores and logs as ever.

A run that was killed is simply run again: what was answered is replayed from the store. Beside the table,
`calls.jsonl` says of each episode what was asked for.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import orjson

from envprobe_core.engine.recording import Columns
from envprobe_core.errors import InputError
from envprobe_core.llm.agent import Tally, together
from envprobe_core.llm.asking import Answered, ChatRequest
from envprobe_core.llm.calling import Caller
from envprobe_core.llm.client import Client, Counts, Limits
from envprobe_core.llm.driver import run_model
from envprobe_core.llm.hiding import Secret
from envprobe_core.llm.identity import ModelAgent
from envprobe_core.llm.prices import Price
from envprobe_core.llm.prompts import PROMPT_VERSION
from envprobe_core.llm.replay import Answers
from envprobe_core.runs.folder import ASKED, Part, RunFolder, part_files
from envprobe_core.runs.summary import Summary
from envprobe_core.sweep import Piece, Task, score_task

REPLAYED_ROWS = 250  # episodes in lockstep where every answer is at hand
LIVE_PER_CALL = 2  # episodes under way for each call that may be

Result = TypeVar("Result")


@dataclass(frozen=True)
class Service:
    """Who answers a run.

    Attributes:
        agent: which model, and how.
        answers: where answers are kept.
        secret: the API key; None to replay only.
        base_url: of a compatible server, None for OpenAI's.
        limits: what may be done.
        prices: picodollars a token, by model.
    """

    agent: ModelAgent
    answers: Answers
    secret: Secret | None = None
    base_url: str | None = None
    limits: Limits = field(default_factory=Limits)
    prices: Mapping[str, Price] = field(default_factory=dict)

    def client(self, notice: Callable[[Counts], None] | None = None) -> Client:
        """Open a client; inside a running event loop."""
        limits = self.limits
        caller = None
        if self.secret is not None:
            caller = Caller(self.secret, self.base_url, limits.concurrency, limits.patience.deadline)
        return Client(self.answers, self.agent.provider, caller, limits, self.prices, notice)

    @property
    def rows(self) -> int:
        """Return how many episodes go in lockstep: one while answers take time."""
        return REPLAYED_ROWS if self.secret is None else 1

    @property
    def live(self) -> int:
        """Return how many blocks of episodes may be under way."""
        return 1 if self.secret is None else LIVE_PER_CALL * self.limits.concurrency


class Listener:
    """Passes requests on and notes which servers answered, by fingerprint, and which answers were used."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.fingerprints: set[str] = set()
        self.keys: dict[str, None] = {}

    async def ask(self, request: ChatRequest, identity: str) -> Answered:
        """Answer a request."""
        answered = await self._client.ask(request, identity)
        self.keys[answered.key] = None
        if answered.fingerprint:
            self.fingerprints.add(answered.fingerprint)
        return answered


def run_missing(
    folder: RunFolder,
    missing: Sequence[Part],
    service: Service,
    notice: Callable[[int, Counts], None] | None = None,
) -> list[Summary]:
    """Run the parts that a folder lacks and finish it.

    Args:
        folder: an open run folder.
        missing: its missing parts.
        service: who answers.
        notice: told of the number of episodes done and of every call.

    Returns:
        The summary of each cell.

    Raises:
        RunStoppedError: if an answer cannot be had; what is finished is kept.
    """
    check_version(service.agent)
    finish_in_loop(_run_parts(folder, missing, service, notice))
    return folder.finish()


def check_version(agent: ModelAgent) -> None:
    """Refuse to ask, or replay, with other prompts than this version's.

    Raises:
        InputError: naming both.
    """
    if agent.prompt_version != PROMPT_VERSION:
        raise InputError(
            f"prompts of version {agent.prompt_version} are asked for; this version of the companion asks "
            f"with {PROMPT_VERSION}"
        )


async def _run_parts(
    folder: RunFolder, parts: Sequence[Part], service: Service, notice: Callable[[int, Counts], None] | None
) -> None:
    done = 0
    client = service.client(None if notice is None else lambda counts: notice(done, counts))
    live = asyncio.Semaphore(service.live)

    async def run(part: Part) -> None:
        nonlocal done
        await _run_part(folder, part, client, service, live)
        done += len(part.seeds)

    try:
        await together([run(part) for part in parts])
    finally:
        await client.close()


async def _run_part(
    folder: RunFolder, part: Part, client: Client, service: Service, live: asyncio.Semaphore
) -> None:
    task = Task((Piece(0, part.cell, part.seeds),))
    listener = Listener(client)
    trajectory, tally = await run_model(
        task, listener, service.agent.settings, live=live, rows=service.rows, reports=part.logged > 0
    )
    files = part_files(part, score_task(task, trajectory), trajectory.rows(slice(part.logged)))
    folder.store(part, {ASKED: _call_lines(part, tally, listener.fingerprints)} | files)


def _call_lines(part: Part, tally: Tally, fingerprints: set[str]) -> bytes:
    """Write what was asked for, a line an episode; fingerprints are those of the whole part."""
    columns = {name: column.tolist() for name, column in asdict(tally).items()}
    names = sorted(fingerprints)
    key = {name: part.cell.key[name] for name in ("world", "policy", "protocol")}
    lines = []
    for row, seed in enumerate(part.seeds.tolist()):
        counts = {name: column[row] for name, column in columns.items()}
        line = key | {"seed": seed} | counts | {"fingerprints": names}
        lines.append(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
    return b"".join(lines)


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def finish_in_loop(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end, also where a loop runs already, as in a notebook."""
    if not _in_a_loop():
        return asyncio.run(work)
    outcome: list[Result] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(asyncio.run(work))
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]


def replay_cells(service: Service, cells: Sequence[Piece]) -> tuple[list[Columns], list[Tally], list[str]]:
    """Replay pieces from a store or a replay file.

    Args:
        service: who answers; without a key.
        cells: cells and their seeds.

    Returns:
        Columns and tally of each piece, and the keys of all answers used, in order of use.

    Raises:
        MissingAnswerError: if one is not there.
    """
    check_version(service.agent)
    return finish_in_loop(_replay(service, cells))


async def _replay(service: Service, pieces: Sequence[Piece]) -> tuple[list[Columns], list[Tally], list[str]]:
    client = service.client()
    listener, live = Listener(client), asyncio.Semaphore(1)
    columns, tallies = [], []
    try:
        for piece in pieces:
            task = Task((piece,))
            trajectory, tally = await run_model(
                task, listener, service.agent.settings, live=live, rows=service.rows
            )
            columns.append(score_task(task, trajectory))
            tallies.append(tally)
    finally:
        await client.close()
    return columns, tallies, list(listener.keys)


def total_tally(lines: bytes) -> dict[str, int]:
    """Add up the counts of `calls.jsonl`."""
    total = dict.fromkeys(asdict(Tally.empty(0)), 0)
    for line in lines.splitlines():
        content = orjson.loads(line)
        for name in total:
            total[name] += int(content[name])
    return total
