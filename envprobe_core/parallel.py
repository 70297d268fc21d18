"""One pool for all work: this process and fresh ones beside it, or the cluster in force (`cluster`)."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from typing import TypeVar

from envprobe_core.cluster import hand_out, scheduler_in_force
from envprobe_core.errors import StoppedError
from envprobe_core.files import environment

PARENT_DEATH_SIGNAL = 1  # of Linux: what prctl(2) calls PR_SET_PDEATHSIG
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""For the linear algebra of processes beside this one: they share the cores."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_unordered(
    work: Callable[[Item], Result], items: Iterable[Item], jobs: int = 1, *, local: bool = False
) -> Iterator[Result]:
    """Do the work on all items here, in fresh processes, or on the cluster in force; results as they come.

    Args:
        work: a function of a module; a cluster takes others too.
        items: what to do it on; taken from both ends, so large ones should stand in front.
        jobs: processes in all, this one included; changes nothing but speed.
        local: whether to leave the cluster aside, as it is for a single item.

    Raises:
        StoppedError: if one of the processes is ended from outside, or the cluster is lost.
    """
    left = deque(items)
    scheduler = None if local or len(left) <= 1 else scheduler_in_force()
    if scheduler is not None:
        yield from hand_out(work, left, scheduler)
        return
    others = min(jobs, len(left)) - 1
    if others < 1:
        yield from map(work, left)
        return
    given: set[Future[Result]] = set()
    with fresh_processes(others) as pool:
        while left or given:
            with environment(**_ONE_THREAD):  # the processes start as work is handed in
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
    """Keep processes that end with this one; an interrupt does not wait for their work."""
    others = set(active_children())
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_follow_parent)
    try:
        yield pool
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        for process in set(active_children()) - others:
            process.terminate()
        raise
    except BrokenProcessPool:
        lost = "a process was ended from outside, perhaps for lack of memory; run the command again"
        raise StoppedError(lost) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _follow_parent() -> None:
    """Leave interrupts to the parent, and end when it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None and parent.pid is not None:
        follow(parent.pid)


def follow(parent: int) -> None:
    """End this process when its parent (an id) does, however that ends: on Linux at once, else within 1 s."""
    if sys.platform == "linux":  # also while compiled code runs, which lets no thread watch
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
