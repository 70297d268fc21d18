"""Running what a run folder lacks with a language model: the same parts, scores and logs as ever.

A run that was killed is simply run again: what was answered is replayed from the store. Beside the table,
`calls.jsonl` says of each episode what was asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import orjson

from envprobe_core.engine.recording import Columns
from envprobe_core.llm.agent import Tally, run_model, together
from envprobe_core.llm.asking import Answered, ChatRequest
from envprobe_core.llm.calling import Caller
from envprobe_core.llm.client import Client, Counts, Limits
from envprobe_core.llm.hiding import Secret
from envprobe_core.llm.identity import ModelAgent
from envprobe_core.llm.keys import OPENAI_URL
from envprobe_core.llm.local import serving
from envprobe_core.llm.prices import Price
from envprobe_core.llm.prompts import find_version
from envprobe_core.llm.replay import Answers
from envprobe_core.runs.folder import ASKED, Part, RunFolder, part_files
from envprobe_core.runs.inputs import RunInputs
from envprobe_core.runs.summary import Summary, result_hash, total_hash
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
        urls: of OpenAI, of a compatible server, or of several servers of one model.
        limits: what may be done.
        prices: dollars, by model.
        weights: what is served on this machine while a run lasts; None where servers run already.
    """

    agent: ModelAgent
    answers: Answers
    secret: Secret | None = None
    urls: tuple[str, ...] = (OPENAI_URL,)
    limits: Limits = field(default_factory=Limits)
    prices: Mapping[str, Price] = field(default_factory=dict)
    weights: Path | None = None

    @contextmanager
    def at_work(self) -> Iterator[Service]:
        """Give the service with its servers, where it has weights to serve."""
        if self.weights is None or self.secret is None:
            yield self
            return
        with serving(self.weights, self.limits.concurrency) as urls:
            yield replace(self, urls=urls)

    def client(self, notice: Callable[[Counts], None] = lambda counts: None) -> Client:
        """Open a client; inside a running event loop."""
        limits = self.limits
        caller = None
        if self.secret is not None:
            caller = Caller(self.secret, self.urls, limits.concurrency, limits.patience.deadline)
        return Client(self.answers, self.agent.provider, caller, limits, self.prices, notice)

    @property
    def rows(self) -> int:
        """Return how many episodes go in lockstep: one while answers take time."""
        return REPLAYED_ROWS if self.secret is None else 1

    @property
    def live(self) -> int:
        """Return how many blocks of episodes may be under way."""
        if self.secret is None:
            return 1
        return self.limits.concurrency * (1 if self.weights else LIVE_PER_CALL)


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
    notice: Callable[[int, Counts], None] = lambda done, counts: None,
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
    find_version(service.agent.prompt_version)
    finish_in_loop(_run_parts(folder, missing, service, notice))
    return folder.finish()


async def _run_parts(
    folder: RunFolder, parts: Sequence[Part], service: Service, notice: Callable[[int, Counts], None]
) -> None:
    done = 0
    client = service.client(lambda counts: notice(done, counts))
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
        task, listener, service.agent, live=live, rows=service.rows, reports=part.logged > 0
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


def finish_in_loop(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end, also where a loop runs already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass  # and no error that follows is told to have followed this one
    else:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, work).result()
    return asyncio.run(work)


@dataclass(frozen=True)
class Replay:
    """What came of running a whole run from stored answers.

    Attributes:
        columns: of each cell.
        tallies: of each cell, what was asked for.
        keys: of each cell's answers, in hexadecimal, in order of use; cells may share some.
        result_hash: as in a run's manifest.
    """

    columns: list[Columns]
    tallies: list[Tally]
    keys: list[list[str]]
    result_hash: str


def replay_run(service: Service, inputs: RunInputs) -> Replay:
    """Run every cell of a run from a store or a replay file.

    Args:
        service: who answers; without a key.
        inputs: the run.

    Raises:
        MissingAnswerError: if an answer is not there.
    """
    find_version(service.agent.prompt_version)
    return finish_in_loop(_replay(service, inputs))


async def _replay(service: Service, inputs: RunInputs) -> Replay:
    client = service.client()
    live, columns, tallies, keys = asyncio.Semaphore(1), [], [], []
    try:
        for index, (cell, seeds) in enumerate(zip(inputs.cells, inputs.seeds_of_cells, strict=True)):
            task, listener = Task((Piece(index, cell, seeds),)), Listener(client)
            trajectory, tally = await run_model(task, listener, service.agent, live=live, rows=service.rows)
            keys.append(list(listener.keys))
            columns.append(score_task(task, trajectory))
            tallies.append(tally)
    finally:
        await client.close()
    total = total_hash(inputs.cells, [result_hash(part) for part in columns])
    return Replay(columns, tallies, keys, total)


def total_tally(lines: bytes) -> dict[str, int]:
    """Add up the counts of `calls.jsonl`."""
    total = dict.fromkeys(asdict(Tally.empty(0)), 0)
    for line in lines.splitlines():
        content = orjson.loads(line)
        for name in total:
            total[name] += int(content[name])
    return total
