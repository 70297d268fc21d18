"""A Dask cluster that exists already, as the hands for all work.

Its workers need this package and no shared folder: tasks travel to them, results travel back and are
stored by whoever asked. Work that a lost worker held is done again by another. The scheduler needs neither
package nor data: it passes on bytes. A worker with another engine, other data or other versions of what
results depend on is refused, also one that joins later. The address of the scheduler stands in
`ENVPROBE_SCHEDULER`, in the environment, so that the kernels of notebooks use it as well.
"""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from envprobe_core.errors import InputError, StoppedError
from envprobe_core.files import read_whole

if TYPE_CHECKING:
    import distributed

ENVIRONMENT = "ENVPROBE_SCHEDULER"
ADDRESS = re.compile(r"((tcp|tls|ws|wss)://)?(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]@]+):\d{1,5}")
CONNECT_SECONDS = 10
ALIVE_SECONDS = 5  # without a result, after which the scheduler is asked whether it is there
LEAST_UNDER_WAY = 64  # tasks; a cluster that grows with its queue needs one to see
UNDER_WAY = 4  # tasks a thread

Item = TypeVar("Item")
Result = TypeVar("Result")


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
            from envprobe_core.cluster import answer
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
