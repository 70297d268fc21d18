"""Runs on a model: what a run folder lacks, and whole runs from stored answers.

A run that was killed is simply run again: what was answered is replayed from the store. Beside the table,
`calls.jsonl` says of each episode what was asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import orjson

from envprobe_core.engine.recording import Columns, Trajectory
from envprobe_core.errors import InputError
from envprobe_core.llm.agent import COUNTS, Tally, finish_in_loop, run_model, together
from envprobe_core.llm.calls import OPENAI_URL, Answer, ChatRequest, Prices
from envprobe_core.llm.client import Client, Counts, Limits
from envprobe_core.llm.identity import ModelAgent, find_version
from envprobe_core.llm.local import serving
from envprobe_core.llm.provider import Caller, Secret
from envprobe_core.llm.replay import Answers
from envprobe_core.runs.folder import ASKED, Part, RunFolder, part_files
from envprobe_core.runs.manifest import RunInputs, total_hash
from envprobe_core.runs.summary import Summary, result_hash
from envprobe_core.sweep import Piece, named

REPLAYED_ROWS = 250  # episodes in lockstep where every answer is at hand
LIVE_PER_CALL = 2  # episodes under way for each call that may be


@dataclass(frozen=True)
class Service:
    """Who answers a run."""

    agent: ModelAgent  # which model, and how
    answers: Answers  # where answers are kept
    secret: Secret | None = None  # the API key; None to replay only
    # of OpenAI, of a compatible server, or of several servers of one model
    urls: tuple[str, ...] = (OPENAI_URL,)
    limits: Limits = field(default_factory=Limits)  # what may be done
    prices: Prices = field(default_factory=dict)  # dollars, by model
    # what is served on this machine while a run lasts; None where servers run already
    weights: Path | None = None

    @contextmanager
    def at_work(self) -> Iterator[Service]:
        """Give the service with its servers, where it has weights to serve; close it in the end."""
        with closing(self.answers):
            if self.weights is None or self.secret is None:
                yield self
                return
            with serving(self.weights, self.limits.concurrency) as urls:
                yield replace(self, urls=urls)

    @asynccontextmanager
    async def client(self, notice: Callable[[Counts], None] = lambda counts: None) -> AsyncIterator[Client]:
        """Give a client, and close it when what is under way is stored."""
        limits, caller = self.limits, None
        if self.secret is not None:
            caller = Caller(self.secret, self.urls, limits.concurrency, limits.deadline)
        client = Client(self.answers, self.agent.provider, caller, limits, self.prices, notice)
        try:
            yield client
        finally:
            await client.close()

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

    async def ask(self, request: ChatRequest, identity: str) -> Answer:
        """Answer a request."""
        answer = await self._client.ask(request, identity)
        self.keys[answer.key] = None
        if answer.fingerprint:
            self.fingerprints.add(answer.fingerprint)
        return answer


@dataclass(frozen=True)
class Asked:
    """What came of running a cell's rows on a model: who answered, and a row an episode of all else."""

    listener: Listener
    trajectory: Trajectory
    tally: Tally
    columns: Columns


async def _ask(
    client: Client, service: Service, piece: Piece, live: asyncio.Semaphore, *, reports: bool = False
) -> Asked:
    """Run a cell's rows; see `agent.run_model`."""
    listener = Listener(client)
    trajectory, tally = await run_model(
        piece.cell, piece.seeds, listener, service.agent, live=live, rows=service.rows, reports=reports
    )
    return Asked(listener, trajectory, tally, named([piece], trajectory.measures))


def run_missing(
    folder: RunFolder,
    missing: Sequence[Part],
    service: Service,
    notice: Callable[[int, Counts], None] = lambda done, counts: None,
) -> list[Summary]:
    """Run the missing parts of an open run folder and finish it; return the summary of each cell.

    `notice` is told of the number of episodes done and of every call.

    Raises:
        RunStoppedError: if an answer cannot be had; what is finished is kept.
    """
    find_version(service.agent.prompt_version)
    finish_in_loop(_run_parts(folder, missing, service, notice))
    return folder.finish()


async def _run_parts(
    folder: RunFolder, parts: Sequence[Part], service: Service, notice: Callable[[int, Counts], None]
) -> None:
    done, live = 0, asyncio.Semaphore(service.live)

    async def run(client: Client, part: Part) -> None:
        nonlocal done
        piece = Piece(0, part.cell, part.seeds)
        asked = await _ask(client, service, piece, live, reports=part.logged > 0)
        files = part_files(part, asked.columns, asked.trajectory.rows(slice(part.logged)))
        folder.store(part, {ASKED: _call_lines(part, asked)} | files)
        done += len(part.seeds)

    async with service.client(lambda counts: notice(done, counts)) as client:
        await together([run(client, part) for part in parts])


def _call_lines(part: Part, asked: Asked) -> bytes:
    """Write what was asked for, a line an episode; fingerprints are those of the whole part."""
    names = {"fingerprints": sorted(asked.listener.fingerprints)}
    key = {name: part.cell.key[name] for name in ("world", "policy", "protocol")}
    rows = zip(part.seeds.tolist(), asked.tally.tolist(), strict=True)
    lines = (key | {"seed": seed} | dict(zip(COUNTS, counts, strict=True)) | names for seed, counts in rows)
    return b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines)


def total_tally(lines: bytes) -> dict[str, int]:
    """Add up the counts of `calls.jsonl`; a file that is none is refused."""
    try:
        rows = [orjson.loads(line) for line in lines.splitlines()]
        return {name: sum(int(row[name]) for row in rows) for name in COUNTS}
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"calls.jsonl is damaged: {error}") from None


# ---------------------------------------------------------------- a whole run from stored answers


@dataclass(frozen=True)
class Replay:
    """What came of running a whole run from stored answers."""

    cells: list[Asked]  # what came of each cell; a listener's keys are those of its answers, in order of use
    result_hash: str  # as in a run's manifest

    @property
    def keys(self) -> list[list[str]]:
        """Return the keys of each cell's answers, in hexadecimal; cells may share some."""
        return [list(cell.listener.keys) for cell in self.cells]


def replay_run(service: Service, inputs: RunInputs) -> Replay:
    """Run every cell of a run from a store or a replay file.

    Raises:
        MissingAnswerError: if an answer is not there.
    """
    find_version(service.agent.prompt_version)

    async def replay() -> list[Asked]:
        pieces = map(Piece, range(len(inputs.cells)), inputs.cells, inputs.seeds_of_cells)
        live = asyncio.Semaphore(1)
        async with service.client() as client:
            return [await _ask(client, service, piece, live) for piece in pieces]

    cells = finish_in_loop(replay())
    return Replay(cells, total_hash(inputs.cells, [result_hash(cell.columns) for cell in cells]))
