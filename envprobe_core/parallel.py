"""One pool for all work: this process and fresh ones beside it, or a Dask cluster that exists already.

Workers of a cluster need this package and no shared folder: tasks travel to them, results travel back and are
stored by whoever asked. Work that a lost worker held is done again by another. The scheduler needs neither
package nor data: it passes on bytes. A worker with another engine, other data or other versions of what
results depend on is refused, also one that joins later. The address of the scheduler stands in
`ENVPROBE_SCHEDULER`, in the environment, so that the kernels of notebooks use it as well.
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
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import cache
from itertools import islice
from multiprocessing import active_children, get_context, parent_process
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from envprobe_core.errors import InputError, StoppedError
from envprobe_core.files import environment, read_whole

if TYPE_CHECKING:
    import distributed

PARENT_DEATH_SIGNAL = 1  # of Linux: what prctl(2) calls PR_SET_PDEATHSIG
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""For the linear algebra of processes beside this one: they share the cores."""
ENVIRONMENT = "ENVPROBE_SCHEDULER"
ADDRESS = re.compile(r"((tcp|tls|ws|wss)://)?(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]@]+):\d{1,5}")
CONNECT_SECONDS = 10
ALIVE_SECONDS = 5  # without a result, after which the scheduler is asked whether it is there
LEAST_UNDER_WAY = 64  # tasks; a cluster that grows with its queue needs one to see
UNDER_WAY = 4  # tasks a thread

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


# --- a cluster --------------------------------------------------------------------------------


def scheduler_in_force() -> str | None:
    """The address of the scheduler that grids are handed to, None for this machine alone."""
    return os.environ.get(ENVIRONMENT) or None


def read_scheduler_file(path: Path) -> str:
    """The address in a file that `dask scheduler --scheduler-file` wrote; refuse one without it."""
    import orjson

    try:
        stated = orjson.loads(read_whole(path))
        if isinstance(address := stated["address"], str):
            return address
    except OSError as error:
        raise InputError(f"scheduler file {path} cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError):
        pass
    raise InputError(f"scheduler file {path} states no address; `dask scheduler` writes one")


def check_cluster(address: str) -> tuple[int, int]:
    """Count a cluster's workers and threads; one that does not answer or cannot do this work is refused."""
    with _connected(address) as client:
        threads = client.ncores().values()
        return len(threads), sum(threads)


def hand_out(work: Callable[[Item], Result], items: Iterable[Item], address: str) -> Iterator[Result]:
    """Do the work on all items on a cluster; results come as they finish.

    No more tasks are under way than keep the cluster busy, so that memory does not grow with the items.

    Raises:
        InputError: if no scheduler answers, or a worker is refused.
        StoppedError: if the scheduler is lost, or a task loses one worker after another.
    """
    from cloudpickle import dumps
    from distributed import KilledWorker

    from envprobe_core.ledger import note_other

    note_other("tasks handed to a cluster", 1)

    items, given = iter(items), set()
    with _connected(address) as client:
        try:
            while True:
                room = max(LEAST_UNDER_WAY, UNDER_WAY * sum(client.ncores().values())) - len(given)
                for item in islice(items, max(room, 0)):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # a task may be large
                        given.add(client.submit(_traveller(), identity(), dumps((work, item)), pure=False))
                if not given:
                    return
                for future in _finished(client, given):
                    given.remove(future)
                    lacks, found = future.result()
                    future.release()
                    if lacks:
                        raise InputError(f"a worker of the cluster has {lacks}")
                    yield found
        except KilledWorker as error:
            lost = (
                f"{error.allowed_failures + 1} workers of {address} were lost on one task, perhaps for lack"
            )
            again = "run the command again, with larger workers"
            raise StoppedError(f"{lost} of memory: {again}") from None
        except (OSError, CancelledError, RuntimeError) as error:
            if isinstance(error, CancelledError) or not _alive(client):
                lost = f"the scheduler at {address} was lost"
                raise StoppedError(f"{lost}: run the command again once a scheduler is there") from None
            raise


@cache
def identity() -> dict[str, str]:
    """What computes here: engine and data, and the versions of what results depend on."""
    from envprobe_core import __version__
    from envprobe_core.sources import package_sha256, package_versions

    return {"envprobe_core": f"{__version__} ({package_sha256()[:12]})", **package_versions()}


def answer(expected: dict[str, str], payload: bytes) -> tuple[str | None, Any]:
    """Do a task on a worker; return what it lacks, in words, or None, and the result of the task.

    Args:
        expected: the `identity` of the one who asks, which must be that of the worker.
        payload: what to do, and on what.
    """
    from cloudpickle import loads

    for name, version in expected.items():
        if identity().get(name) != version:
            there = f"{name} {identity().get(name)}, here it is {version}"
            return f"{there}; install the same everywhere", None
    work, item = loads(payload)
    return None, work(item)


def _traveller() -> Callable[..., tuple[str | None, Any]]:
    """Make a function that calls `answer` on a worker, also where the package is not installed.

    A function inside a function is sent whole, and so can be read where this package is missing.
    """

    def call(*given: Any) -> tuple[str | None, Any]:
        try:
            from envprobe_core.parallel import answer
        except ImportError:
            return "no envprobe_core; install the version that is here", None
        return answer(*given)

    return call


@contextmanager
def _connected(address: str) -> Iterator[distributed.Client]:
    """Connect to a scheduler and check its workers."""
    from cloudpickle import dumps
    from distributed import Client

    if not ADDRESS.fullmatch(address):  # its client would try for long, and complain when it is cleared away
        raise InputError(f"scheduler {address!r} is no address; as in tcp://HOST:8786")
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what it has to say is raised
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # versions that matter are compared below
        try:
            client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            text = str(error).partition("\n")[0]
            raise InputError(
                f"no Dask scheduler answers at {address!r} ({text}); as in tcp://HOST:8786"
            ) from None
    try:
        for worker, told in client.run(_traveller(), identity(), dumps((bool, 0)), on_error="return").items():
            if isinstance(told, tuple) and told[0]:
                raise InputError(f"worker {worker} has {told[0]}")
        yield client
    finally:
        client.close(timeout=1)


def _finished(client: distributed.Client, given: set[distributed.Future]) -> list[distributed.Future]:
    """Wait until some futures are done; an OSError says that the scheduler does not answer any more."""
    from distributed import wait

    while True:
        try:
            with client.as_current():
                return list(wait(given, timeout=ALIVE_SECONDS, return_when="FIRST_COMPLETED").done)
        except TimeoutError:
            if not _alive(client):
                raise OSError("the scheduler does not answer") from None


def _alive(client: distributed.Client) -> bool:
    """Whether the scheduler answers."""
    try:
        client.ncores()
    except (OSError, CancelledError, RuntimeError):
        return False
    return client.status == "running"
