"""Handing work to a Dask cluster that exists already.

Workers need this package and no shared folder: what to do travels to them, what came of it travels back and
is stored by whoever asked. Work that a lost worker held is done again by another. The scheduler needs
neither package nor data: it passes on bytes. A worker with another engine, other data or other versions
of what results depend on is refused, also one that joins later.

The address of the scheduler stands in the environment variable `ENVPROBE_SCHEDULER`, so that the kernels of
notebooks use it as well.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from envprobe_core.errors import InputError
from envprobe_core.files import read_whole

if TYPE_CHECKING:
    from distributed import Client, Future

ENVIRONMENT = "ENVPROBE_SCHEDULER"
CONNECT_SECONDS = 10
ALIVE_SECONDS = 5  # without a result, after which the scheduler is asked whether it is there
LONGEST_FILE = 1_000_000  # bytes of a scheduler file
LEAST_UNDER_WAY = 64  # tasks; a cluster that grows with its queue needs one to see
UNDER_WAY = 4  # tasks a thread

Item = TypeVar("Item")
Result = TypeVar("Result")


class ClusterLostError(Exception):
    """The cluster was lost while it worked; what had come back is kept."""


class _SchedulerFile(BaseModel):
    address: str


def scheduler_in_force() -> str | None:
    """Return the address of the scheduler that grids are handed to, None for this machine alone."""
    return os.environ.get(ENVIRONMENT) or None


def read_scheduler_file(path: Path) -> str:
    """Return the address in a file that `dask scheduler --scheduler-file` wrote.

    Raises:
        InputError: if there is none.
    """
    try:
        return _SchedulerFile.model_validate_json(read_whole(path, most=LONGEST_FILE)).address
    except OSError as error:
        raise InputError(f"scheduler file {path} cannot be read ({error.strerror})") from None
    except ValidationError:
        raise InputError(f"scheduler file {path} states no address; `dask scheduler` writes one") from None


def check_cluster(address: str) -> tuple[int, int]:
    """Check that a scheduler answers and that its workers can do this work.

    Args:
        address: of the scheduler.

    Returns:
        How many workers there are, and how many threads they have.

    Raises:
        InputError: if no scheduler answers, or a worker is refused.
    """
    with _connected(address) as client:
        threads = client.ncores().values()
        return len(threads), sum(threads)


def hand_out(work: Callable[[Item], Result], items: Iterable[Item], address: str) -> Iterator[Result]:
    """Do the work on all items on a cluster; results come as they finish.

    No more tasks are under way than keep the cluster busy, so that memory does not grow with the items.

    Args:
        work: a function; it need not be of a module.
        items: what to do it on.
        address: of the scheduler.

    Raises:
        InputError: if no scheduler answers, or a worker is refused.
        ClusterLostError: if the scheduler is lost, or a task loses one worker after another.
    """
    from cloudpickle import dumps
    from distributed import KilledWorker

    items, given = iter(items), set()
    with _connected(address) as client:
        run, expected = _courier(), identity()
        try:
            while True:
                room = max(LEAST_UNDER_WAY, UNDER_WAY * sum(client.ncores().values())) - len(given)
                for item in islice(items, max(room, 0)):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # a task may be large
                        given.add(client.submit(run, expected, dumps((work, item)), pure=False))
                if not given:
                    return
                for future in _finished(client, given):
                    given.remove(future)
                    yield _result(future)
        except KilledWorker as error:
            lost = error.allowed_failures + 1
            raise ClusterLostError(
                f"{lost} workers of {address} were lost on one task, perhaps for lack of memory; what is "
                "finished is kept: give the command again, with larger workers or a smaller --batch-size"
            ) from None
        except (OSError, CancelledError, RuntimeError) as error:
            if isinstance(error, CancelledError) or not _alive(client):
                raise ClusterLostError(
                    f"the scheduler at {address} was lost; what is finished is kept: "
                    "give the command again once a scheduler is there"
                ) from None
            raise


@cache
def identity() -> dict[str, str]:
    """Say what computes here: engine and data, and the versions of what results depend on."""
    from envprobe_core import __version__
    from envprobe_core.sources import package_sha256, package_versions

    return {"envprobe_core": f"{__version__} ({package_sha256()[:12]})", **package_versions()}


def answer(expected: dict[str, str], payload: bytes) -> Any:
    """Do a task that was handed out; on a worker.

    Args:
        expected: the `identity` of the one who asks.
        payload: the pickled work and what to do it on.

    Raises:
        InputError: if something else computes here.
    """
    from cloudpickle import loads

    difference = _difference(identity(), expected)
    if difference:
        raise InputError(f"a worker of the cluster has {difference}")
    work, item = loads(payload)
    return work(item)


def _difference(there: dict[str, str] | None, here: dict[str, str]) -> str | None:
    """Say what a worker lacks, in words."""
    if there is None:
        return "no envprobe_core; install the version that is here"
    for name, version in here.items():
        if there.get(name) != version:
            return f"{name} {there.get(name)}, here it is {version}; install the same everywhere"
    return None


# What travels to workers are functions inside of functions: they are sent whole, and so can be read where
# this package is not installed.


def _courier() -> Callable[[dict[str, str], bytes], Any]:
    def run(expected: dict[str, str], payload: bytes) -> Any:
        try:
            from envprobe_core.cluster import answer
        except ImportError:
            return None
        return (answer(expected, payload),)

    return run


def _reporter() -> Callable[[], dict[str, str] | None]:
    def report() -> dict[str, str] | None:
        try:
            from envprobe_core.cluster import identity
        except ImportError:
            return None
        return identity()

    return report


def _result(future: Future) -> Any:
    found = future.result()
    future.release()
    if found is None:
        raise InputError(f"a worker of the cluster has {_difference(None, {})}")
    return found[0]


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    """Connect to a scheduler and check its workers."""
    from distributed import Client

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
        for worker, there in client.run(_reporter(), on_error="return").items():
            difference = None if isinstance(there, BaseException) else _difference(there, identity())
            if difference:
                raise InputError(f"worker {worker} has {difference}")
        yield client
    finally:
        client.close(timeout=1)


def _finished(client: Client, given: set[Future]) -> list[Future]:
    """Wait until some futures are done.

    Raises:
        OSError: if the scheduler does not answer any more.
    """
    from distributed import wait

    while True:
        try:
            with client.as_current():
                return list(wait(given, timeout=ALIVE_SECONDS, return_when="FIRST_COMPLETED").done)
        except TimeoutError:
            if not _alive(client):
                raise OSError("the scheduler does not answer") from None


def _alive(client: Client) -> bool:
    """Say whether the scheduler answers."""
    try:
        client.ncores()
    except (OSError, CancelledError, RuntimeError):
        return False
    return client.status == "running"
