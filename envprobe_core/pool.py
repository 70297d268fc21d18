"""One pool for all work: this process and fresh ones beside it, or a Dask cluster."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from typing import TypeVar

from envprobe_core.cluster import hand_out

PARENT_DEATH_SIGNAL = 1  # of Linux: what prctl(2) calls PR_SET_PDEATHSIG
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def spread(
    work: Callable[[Item], Result], items: Sequence[Item], jobs: int = 1, scheduler: str | None = None
) -> Iterator[Result]:
    """Do the work on all items; results as they come.

    Args:
        work: a function of a module; a cluster takes others too.
        items: what to do it on; taken from both ends, so large ones should stand in front.
        jobs: processes in all, this one included; changes nothing but speed.
        scheduler: address of a Dask scheduler whose workers do it instead.

    Raises:
        BrokenProcessPool: if one of the processes is ended from outside.
        ClusterLostError: if the cluster is lost.
    """
    if scheduler is not None:
        yield from hand_out(work, items, scheduler)
        return
    if jobs <= 1 or len(items) <= 1:
        yield from map(work, items)
        return
    others = min(jobs, len(items)) - 1
    left = deque(items)
    given: set[Future[Result]] = set()
    with fresh_processes(others) as pool:
        while left or given:
            with _one_thread_a_process():  # the processes start as work is handed in
                while left and len(given) <= others:  # one each, and one that waits
                    given.add(pool.submit(work, left.popleft()))
            if left:
                yield work(left.pop())
            else:
                wait(given, return_when=FIRST_COMPLETED)
            for future in [future for future in given if future.done()]:
                given.remove(future)
                yield future.result()


@contextmanager
def fresh_processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Keep processes that end with this one; an order to end does not wait for what they do."""
    others = set(active_children())
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_follow_parent)
    try:
        yield pool
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        for process in set(active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _follow_parent() -> None:
    """Leave interrupts to the parent, and end when it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None and parent.pid is not None:
        follow(parent.pid)


def follow(parent: int) -> None:
    """End this process when its parent does, however that ends: at once on Linux, elsewhere within a second.

    Args:
        parent: the process's id, which the caller knew before this one could be left alone.
    """
    if sys.platform == "linux":  # also while compiled code runs, which lets no thread watch
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _one_thread_a_process() -> Iterator[None]:
    """Keep the linear algebra of processes that start now to one thread each: they share the cores."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
