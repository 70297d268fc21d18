"""Running what a run folder lacks: here, in several processes, or on a cluster."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from itertools import groupby
from multiprocessing import connection, get_context, parent_process
from pathlib import Path
from typing import TypeVar

import numpy as np

from envprobe_core.cluster import hand_out
from envprobe_core.engine.recording import Columns
from envprobe_core.logs import encode_episodes
from envprobe_core.parts import Finished, Part, finish_part, store_part
from envprobe_core.runstore import RunFolder
from envprobe_core.summary import RunningSummary
from envprobe_core.sweep import BATCH_SIZE, named, plan_tasks, simulate

PROCESS_PAYS = 6000  # episodes (a logged one counts threefold) that outweigh starting a process
LOGGED_COST = 3

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Group:
    """Parts that share world, regime and protocol and are run together.

    Attributes:
        folder: the run's folder.
        parts: the parts.
        batch_size: rows a block.
    """

    folder: Path
    parts: tuple[Part, ...]
    batch_size: int


def run_missing(
    folder: RunFolder,
    missing: Sequence[Part],
    *,
    jobs: int | None = None,
    batch_size: int = BATCH_SIZE,
    progress: Callable[[int, int], None] | None = None,
    scheduler: str | None = None,
) -> list[RunningSummary]:
    """Run the parts that a folder lacks and finish it.

    Args:
        folder: an open run folder.
        missing: its missing parts.
        jobs: processes; None means every core, where that is faster.
        batch_size: rows a block; changes nothing but speed and memory.
        progress: called with the number of episodes done and to do.
        scheduler: address of a Dask scheduler whose workers compute; what they send back is stored here.

    Returns:
        The summary of each cell.

    Raises:
        ClusterLostError: if the cluster is lost; what is finished is kept.
    """
    groups = plan_groups(folder.path, missing, batch_size)
    if scheduler is None:
        sizes = spread(run_group, groups, worthwhile_jobs(missing) if jobs is None else jobs)
    else:
        sizes = (_store(folder.path, own) for own in hand_out(compute_group, groups, scheduler))
    done, total = 0, sum(len(part.seeds) for part in missing)
    for stored in sizes:
        done += stored
        if progress is not None:
            progress(done, total)
    return folder.finish()


def _store(folder: Path, parts: Sequence[Finished]) -> int:
    """Store what came back; return the number of episodes."""
    for finished in parts:
        store_part(folder, finished)
    return sum(len(finished.part.seeds) for finished in parts)


def worthwhile_jobs(parts: Sequence[Part]) -> int:
    """Return how many processes are faster than one: at most a core each, none for little work."""
    work = sum(len(part.seeds) + (LOGGED_COST - 1) * part.logged for part in parts)
    return min(1 + work // PROCESS_PAYS, cores())


def cores() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def plan_groups(folder: Path, parts: Sequence[Part], batch_size: int) -> list[Group]:
    """Join parts of one world, regime and protocol to about a block; a larger part stays whole."""

    def shape(part: Part) -> tuple[str, str, str]:
        return part.cell.world, part.cell.regime.name, part.cell.protocol.name

    groups = []
    for _, same in groupby(sorted(parts, key=shape), key=shape):
        joined: list[Part] = []
        for part in same:
            if joined and sum(len(one.seeds) for one in (*joined, part)) > batch_size:
                groups.append(Group(folder, tuple(joined), batch_size))
                joined = []
            joined.append(part)
        groups.append(Group(folder, tuple(joined), batch_size))
    return groups


def run_group(group: Group) -> int:
    """Simulate, score and store the parts of a group; return the number of episodes."""
    done = 0
    for finished in compute_parts(group.parts, group.batch_size):
        store_part(group.folder, finished)
        done += len(finished.part.seeds)
    return done


def compute_group(group: Group) -> list[Finished]:
    """Simulate and score the parts of a group where its folder is out of reach."""
    return list(compute_parts(group.parts, group.batch_size))


def compute_parts(parts: Sequence[Part], batch_size: int) -> Iterator[Finished]:
    """Simulate and score parts that share world, regime and protocol; each as soon as it is whole."""
    columns: list[list[Columns]] = [[] for _ in parts]
    texts: list[list[bytes]] = [[] for _ in parts]
    done = [0] * len(parts)
    cells, seeds = [part.cell for part in parts], [part.seeds for part in parts]
    for task in plan_tasks(cells, seeds, batch_size):
        trajectory = simulate(task, reports=any(part.logged for part in parts))
        scores = named(task, trajectory.measures)
        start = 0
        for piece in task.pieces:
            index, stop = piece.index, start + len(piece.seeds)
            columns[index].append({name: column[start:stop] for name, column in scores.items()})
            to_log = min(len(piece.seeds), parts[index].logged - done[index])
            if to_log > 0:
                rows = slice(start, start + to_log)
                texts[index].append(encode_episodes(trajectory.rows(rows), piece.seeds[:to_log]))
            done[index] += len(piece.seeds)
            start = stop
            if done[index] == len(parts[index].seeds):
                whole = {k: np.concatenate([c[k] for c in columns[index]]) for k in scores}
                yield finish_part(parts[index], whole, b"".join(texts[index]))
                columns[index], texts[index] = [], []


def spread(work: Callable[[Item], Result], items: Sequence[Item], jobs: int) -> Iterator[Result]:
    """Do the work on all items, in this process and in `jobs` - 1 fresh ones; results as they come.

    Args:
        work: a function of a module.
        items: what to do it on; taken from both ends, so large ones should stand in front.
        jobs: processes in all.

    Raises:
        BrokenProcessPool: if one of the processes is ended from outside.
    """
    if jobs <= 1 or len(items) <= 1:
        yield from map(work, items)
        return
    others = min(jobs, len(items)) - 1
    left = deque(items)
    given: set[Future[Result]] = set()
    pool = ProcessPoolExecutor(others, mp_context=get_context("spawn"), initializer=_follow_parent)
    try:
        while left or given:
            while left and len(given) <= others:  # one each, and one that waits
                given.add(pool.submit(work, left.popleft()))
            if left:
                yield work(left.pop())
            else:
                wait(given, return_when=FIRST_COMPLETED)
            for future in [future for future in given if future.done()]:
                given.remove(future)
                yield future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _follow_parent() -> None:
    """Leave interrupts to the parent, and end when it ends, however it does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is None:
        return

    def end_with_it() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=end_with_it, daemon=True).start()
