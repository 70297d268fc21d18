"""The options that hand work to a Dask cluster, shared by `run`, `reproduce` and `book`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from envprobe_core.errors import InputError

PANEL = "Past one machine"

Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Hand the work to the Dask cluster of this scheduler, as in tcp://HOST:8786. Also taken from "
        "ENVPROBE_SCHEDULER.",
        show_default="local processes",
        rich_help_panel=PANEL,
    ),
]
SchedulerFile = Annotated[
    Path | None,
    typer.Option(
        "--scheduler-file",
        metavar="FILE",
        help="The same, with the file that `dask scheduler --scheduler-file` wrote.",
        rich_help_panel=PANEL,
    ),
]


def chosen_scheduler(address: str | None, file: Path | None) -> str | None:
    """Return the address of the cluster to use, None for this machine alone.

    Raises:
        InputError: if both are given, or the file states no address.
    """
    from envprobe_core.cluster import read_scheduler_file, scheduler_in_force

    if address is not None and file is not None:
        raise InputError("--scheduler cannot stand beside --scheduler-file; one names the cluster")
    if file is not None:
        return read_scheduler_file(file)
    return address or scheduler_in_force()


def announce(address: str) -> None:
    """Check a cluster and say in one line who will work.

    Raises:
        InputError: if no scheduler answers, or a worker is refused.
    """
    from envprobe_core.cluster import check_cluster

    workers, threads = check_cluster(address)
    who = f"workers: {workers}, threads: {threads}" if workers else "no worker yet: waiting for the first"
    typer.echo(f"work goes to the cluster at {address} ({who})", err=True)


@contextmanager
def handing_out(address: str | None) -> Iterator[None]:
    """Hand every grid that is run inside, also by kernels, to a cluster.

    Raises:
        InputError: if no scheduler answers, or a worker is refused.
    """
    from envprobe_core.cluster import ENVIRONMENT

    before = os.environ.get(ENVIRONMENT)
    if address is not None:
        announce(address)
        os.environ[ENVIRONMENT] = address
    try:
        yield
    finally:
        os.environ.pop(ENVIRONMENT, None)
        if before is not None:
            os.environ[ENVIRONMENT] = before


@contextmanager
def lost_clusters() -> Iterator[None]:
    """Say in one line that a cluster was lost, and end with exit code 1."""
    from envprobe_core.cluster import ClusterLostError

    try:
        yield
    except ClusterLostError as error:
        typer.echo(f"envprobe: {error}", err=True)
        raise typer.Exit(1) from None
