"""Hands for work: this process, fresh ones beside it, a Dask cluster, or any executor that somebody gives.

All are executors of `concurrent.futures`; work is a function of a module, done on items that it is sent.
"""

from __future__ import annotations

import ctypes
import logging
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.queues import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from envprobe_core.errors import InputError, StoppedError
from envprobe_core.files import environment
from envprobe_core.ledger import note_other

if TYPE_CHECKING:
    import distributed

SCHEDULER = "ENVPROBE_SCHEDULER"
"""Names the scheduler that grids are handed to, also by the kernels of notebooks."""
ADDRESS = re.compile(r"((tcp|tls|ws|wss)://)?(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]@]+):\d{1,5}")
CONNECT_SECONDS = 10
LOOK_AGAIN = 1.0  # seconds after which new processes are watched too
PARENT_DEATH_SIGNAL = 1  # of Linux: what prctl(2) calls PR_SET_PDEATHSIG
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""For the linear algebra of processes beside this one: they share the cores."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """How many processors this process may use.

    >>> cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_unordered(
    work: Callable[[Item], Result], items: Iterable[Item], executor: Executor | None = None
) -> Iterator[Result]:
    """Results of the work on all items, as they come; without an executor it is done here.

    Raises:
        StoppedError: if a process of the executor is ended from outside.

    >>> sorted(map_unordered(abs, [-1, 2]))
    [1, 2]
    """
    if executor is None:
        yield from map(work, items)
        return
    left = set()
    try:
        left = {executor.submit(work, item) for item in items}
        for future in as_completed(left):
            left.remove(future)  # and with it the result, once whoever asked has taken it
            yield future.result()
    except BrokenExecutor:
        lost = "a process was ended from outside, perhaps for lack of memory; run the command again"
        raise StoppedError(lost) from None
    finally:
        if not isinstance(executor, _Processes):
            for future in left:
                future.cancel()


@contextmanager
def hands(items: int, jobs: int = 1, executor: Executor | None = None) -> Iterator[Executor | None]:
    """Whoever does the work on some items: the executor given, the cluster in force, or fresh processes.

    None, which is this process, does a single item, and everything where there are no others.

    Args:
        items: how many there are.
        jobs: processes of this machine, where no cluster is in force.
        executor: whom to hand the work to instead.
    """
    if executor is not None and jobs > 1:
        raise InputError(f"jobs {jobs}: an executor has its own workers; give one of the two")
    if items < 2:
        yield None
    elif executor is not None:
        yield executor
    elif address := scheduler_in_force():
        with connected(address) as client:
            yield client.get_executor()
    elif jobs > 1:
        with processes(min(jobs, items)) as beside:
            yield beside
    else:
        yield None


# --- processes of this machine ----------------------------------------------------------------


@contextmanager
def processes(count: int) -> Iterator[Executor]:
    """An executor of fresh processes, which end with the block at once, and with this process.

    They hear no Ctrl-C, which is for this process to obey. If one of them is ended from outside, all are, and
    what they had to do is broken (`BrokenExecutor`).
    """
    birth, over = _Births(), threading.Event()

    def watch() -> None:
        while not over.is_set():
            if wait([child.sentinel for child in birth.children if child.pid], timeout=LOOK_AGAIN):
                birth.end()
                return

    pool = _Processes(count, mp_context=birth, initializer=follow, initargs=(os.getpid(),))
    threading.Thread(target=watch, daemon=True).start()
    try:
        yield pool
    finally:
        over.set()
        birth.end()
        pool.shutdown(cancel_futures=True)
        for child in birth.children:  # one that was begun as an order to end came is not the pool's
            if child.pid:
                child.join()


class _Processes(ProcessPoolExecutor):
    """Processes that end with their block, whatever they still had to do.

    What nobody waits for any more is not cancelled before: a pool whose processes are gone calls all that is
    left broken, and would fail with a traceback at what is cancelled.
    """


class _Births(SpawnContext):
    """What the pool makes its processes and their way back with: a fork would copy threads' locks.

    The pool itself waits for ever for the rest of an answer whose sender was killed, for it holds the writing
    end of that pipe too. So all its processes are ended by whoever sees that one has, and the pipe is closed.
    """

    def __init__(self) -> None:
        self.children: list[_Child] = []
        self._one = threading.Lock()

    def Process(self, *given: Any, **named: Any) -> _Child:
        self.children.append(_Child(*given, **named))
        return self.children[-1]

    def SimpleQueue(self) -> _Answers:
        self.answers = _Answers(ctx=self)
        return self.answers

    def end(self) -> None:
        """End all processes, so that the pool finds their pipe at its end."""
        with self._one:
            for child in self.children:
                if child.pid:
                    with suppress(OSError):
                        child.kill()
            self.answers.hang_up()


class _Answers(SimpleQueue):  # type: ignore[type-arg]
    def hang_up(self) -> None:
        """Close this process's copy of the writing end, which it never uses."""
        self._writer.close()


class _Child(SpawnProcess):
    def start(self) -> None:
        with environment(**_ONE_THREAD), _orders_held_back():
            super().start()


@contextmanager
def _orders_held_back() -> Iterator[None]:
    """Orders to end come when the block is over; a process that is started in it never hears Ctrl-C.

    One that is begun by half would complain, and one that has not got to ignoring the signal too.
    """
    came: list[int] = []
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():  # no other hears them
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) not in (signal.SIG_IGN, None):  # processes inherit what is ignored
                before[number] = signal.signal(number, lambda number, frame: came.append(number))
    deaf = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which they inherit
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, deaf)
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)


def follow(parent: int) -> None:
    """End this process when its parent (an id) does, however that ends: on Linux at once, else within 1 s."""
    if sys.platform == "linux":  # also while compiled code runs, which lets no thread watch
        ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


# --- a cluster --------------------------------------------------------------------------------


def scheduler_in_force() -> str | None:
    """The address of the Dask scheduler that grids are handed to, None for this machine alone."""
    return os.environ.get(SCHEDULER) or None


@contextmanager
def connected(address: str) -> Iterator[distributed.Client]:
    """A client of a Dask cluster that is there already; its `get_executor()` is what work is handed to.

    Workers need this package and no shared folder. The work of one that is lost is done again by another.

    Raises:
        InputError: if no scheduler answers, or a worker has another `envprobe_core`, or none.
        StoppedError: if the scheduler is lost meanwhile, or a task loses one worker after another.
    """
    from distributed import Client, KilledWorker

    from envprobe_core.sources import package_sha256

    if not ADDRESS.fullmatch(address):  # its client would try for long, and complain when it is cleared away
        raise InputError(f"scheduler {address!r} is no address; as in tcp://HOST:8786")
    for name in ("distributed", "distributed.client", "tornado.application"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what it has to say is raised
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        text = str(error).partition("\n")[0]
        raise InputError(
            f"no Dask scheduler answers at {address!r} ({text}); as in tcp://HOST:8786"
        ) from None
    again = "run the command again"
    try:
        for worker, own in client.run(package_sha256, on_error="return").items():
            if own != package_sha256():
                has = f"another envprobe_core ({own[:12]})" if isinstance(own, str) else "no envprobe_core"
                raise InputError(f"worker {worker} has {has}; install the same everywhere")
        note_other("tasks handed to a cluster", 1)
        yield client
    except KilledWorker as error:
        lost = f"{error.allowed_failures + 1} workers of {address} were lost on one task, perhaps for lack"
        raise StoppedError(f"{lost} of memory: {again}, with larger workers") from None
    except CancelledError:
        lost = f"the scheduler at {address} was lost"
        raise StoppedError(f"{lost}: {again} once a scheduler is there") from None
    finally:
        client.close(timeout=1)
