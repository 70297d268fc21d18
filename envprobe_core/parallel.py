"""One pool for all work: this process and fresh ones beside it, or the cluster in force (`cluster`).

The pools of `concurrent.futures` and joblib read all answers from one pipe, whose writing end they hold
themselves: a process that is ended while it writes an answer leaves them waiting for the rest for ever, the
command that wanted to end among them. Here each process has a pipe of its own, which ends with it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import Pipe, get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import ForkingPickler
from queue import SimpleQueue
from typing import Any, TypeVar

from envprobe_core.cluster import hand_out, scheduler_in_force
from envprobe_core.errors import StoppedError
from envprobe_core.files import environment

_SPAWN = get_context("spawn")  # a fork would copy threads' locks, and not the threads
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
    work: Callable[[Item], Result],
    items: Iterable[Item],
    jobs: int = 1,
    *,
    local: bool = False,
    here: bool = True,
) -> Iterator[Result]:
    """Do the work on all items here, in fresh processes, or on the cluster in force; results as they come.

    Args:
        work: a function of a module; a cluster takes others too.
        items: what to do it on; taken from both ends, so large ones should stand in front.
        jobs: processes in all; changes nothing but speed.
        local: whether to leave the cluster aside, as it is for a single item.
        here: whether this process is one of those that work.

    Raises:
        StoppedError: if one of the processes is ended from outside, or the cluster is lost.
    """
    left = deque(items)
    scheduler = None if local or len(left) <= 1 else scheduler_in_force()
    if scheduler is not None:
        yield from hand_out(work, left, scheduler)
        return
    others = min(jobs, len(left)) - here
    if others < 1:
        yield from map(work, left)
        return
    with _fresh_processes(work, others) as pipes:
        given = dict.fromkeys(pipes, 0)  # items that each has and has not answered
        while left or any(given.values()):
            for ahead in range(1 + here):  # one that waits, for this process may be long in coming
                for pipe in pipes:
                    if len(left) > ahead and given[pipe] <= ahead:
                        with suppress(OSError):  # of a lost process, whose answer is waited for below
                            pipe.send(left.popleft())
                        given[pipe] += 1
            works = here and bool(left)
            if works:
                yield work(left.pop())
            for pipe in wait([pipe for pipe in pipes if given[pipe]], timeout=0 if works else None):
                given[pipe] -= 1
                yield _answer_from(pipe)


@contextmanager
def _fresh_processes(work: Callable[[Any], Any], count: int) -> Iterator[list[Connection]]:
    """Pipes to processes that do the work on what they are sent, and that end with this block at once."""
    processes, pipes = [], []
    try:
        with environment(**_ONE_THREAD):
            for _ in range(count):
                ours, theirs = Pipe()
                pipes.append(ours)
                process = _SPAWN.Process(target=_serve, args=(theirs, work), daemon=True)
                with _orders_held_back():  # a process that is begun by half complains
                    process.start()
                    processes.append(process)
                theirs.close()  # so that it ends with the process, however that ends
        yield pipes
    finally:
        for process in processes:
            process.terminate()
        for pipe in pipes:
            pipe.close()
        for process in processes:
            process.join()


@contextmanager
def _orders_held_back() -> Iterator[None]:
    """Signals that would end or interrupt this process come when the block is over."""
    came: list[int] = []
    before = {}
    if threading.current_thread() is threading.main_thread():  # no other hears them
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) not in (signal.SIG_IGN, None):  # processes inherit what is ignored
                before[number] = signal.signal(number, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)


def _serve(pipe: Connection, work: Callable[[Any], Any]) -> None:
    """Do the work on what comes through a pipe; answer with whether it went well, and the result or error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # left to the parent
    parent = parent_process()
    if parent is not None and parent.pid is not None:
        follow(parent.pid)
    items = SimpleQueue[Any]()

    def take() -> None:  # at any time, or both sides could wait for the other to take what it sends
        with suppress(EOFError, OSError):
            while True:
                items.put(pipe.recv())

    threading.Thread(target=take, daemon=True).start()
    while True:
        item = items.get()
        try:
            answer = ForkingPickler.dumps((True, work(item)))
        except Exception as error:
            error.add_note(f"In a process beside this one:\n{traceback.format_exc()}")
            answer = ForkingPickler.dumps((False, error))
        pipe.send_bytes(answer)


def _answer_from(pipe: Connection) -> Any:
    """The result that a process sends, or its error, raised."""
    try:
        went_well, found = pipe.recv()
    except (EOFError, OSError):
        lost = "a process was ended from outside, perhaps for lack of memory; run the command again"
        raise StoppedError(lost) from None
    if not went_well:
        raise found
    return found


def follow(parent: int) -> None:
    """End this process when its parent (an id) does, however that ends: on Linux at once, else within 1 s."""
    if sys.platform == "linux":  # also while compiled code runs, which lets no thread watch
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
