"""Kernels that start as forks of one process, which has imported what all sections import where that pays.

A section starts a second of processor time earlier this way. The fork server is Python's own; a kernel is
otherwise what `jupyter_client` starts: a process and session of its own, with the same environment. The fork
server ends with this process, however that ends, and the kernels with the fork server.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from multiprocessing import active_children, current_process, forkserver, get_context, parent_process, util
from multiprocessing.context import ForkServerProcess
from typing import Any

from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

from envprobe_core.files import working_folder
from envprobe_core.pool import follow

NAME = "envprobe-warm"
PRELOADED = (
    "ipykernel.kernelapp",
    "matplotlib.figure",  # and not pyplot, whose backend has to find the kernel's shell
    "pandas",
    "envprobe_core.analyses.beside",
    "envprobe_core.grid",
    "envprobe_core.show.figures",
    "envprobe_core.claims.judge",
)
WORTH_WARMING = 3  # kernels; for fewer, each imports by itself what it needs
_context = get_context("forkserver")


class WarmProvisioner(LocalProvisioner):
    """Starts kernels as forks; all else is `LocalProvisioner`'s."""

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        """Start a kernel with the arguments, environment and folder that its command would have."""
        given = cmd[cmd.index("ipykernel_launcher") + 1 :]
        fork = _context.Process(target=_be_kernel, args=(given, dict(kwargs["env"]), str(kwargs["cwd"])))
        fork.daemon = True  # it ends with this process
        fork.start()
        self.process = _Forked(fork)
        self.pid = self.pgid = fork.pid  # it leads a session of its own
        self.cwd = kwargs["cwd"]
        return self.connection_info


class _Forked:
    """A fork with those methods of `subprocess.Popen` that a provisioner calls."""

    stdin = stdout = stderr = None

    def __init__(self, fork: ForkServerProcess) -> None:
        self._fork, self.pid = fork, fork.pid

    def poll(self) -> int | None:
        return self._fork.exitcode

    def wait(self) -> int | None:
        self._fork.join()
        return self._fork.exitcode

    def send_signal(self, number: int) -> None:
        if self._fork.is_alive():
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@contextmanager
def forked_kernels(count: int) -> Iterator[None]:
    """Let kernels without a provisioner of their own start as forks; how many decides what is preloaded."""
    if count >= WORTH_WARMING:
        _context.set_forkserver_preload(list(PRELOADED))
    # connection files and the fork server's socket lie where a kill does not leave them for good
    usual_folder, tempfile.tempdir = tempfile.tempdir, str(working_folder())
    util.get_temp_dir()
    factory = KernelProvisionerFactory.instance()
    factory.provisioners[NAME] = EntryPoint(
        NAME, f"{__name__}:{WarmProvisioner.__name__}", factory.GROUP_NAME
    )
    usual, factory.default_provisioner_name = factory.default_provisioner_name, NAME
    try:
        yield
        tempfile.tempdir = usual_folder  # after a fault kernels may still be starting
    except BaseException:  # the folder that they work in goes next
        for kernel in active_children():
            kernel.kill()
        raise
    finally:
        factory.default_provisioner_name = usual


def _be_kernel(given: list[str], environment: dict[str, str], folder: str) -> None:
    """Be a kernel; in the fork."""
    server = forkserver._forkserver  # type: ignore[attr-defined]
    os.close(server._forkserver_alive_fd)  # which would keep the fork server when its owner is gone
    server._forkserver_alive_fd = None
    follow(os.getppid())
    if not parent_process().is_alive() or not os.path.isdir(environment["TMPDIR"]):  # type: ignore[union-attr]
        return  # whoever asked for it has given up
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    current_process().daemon = False  # sections may use processes

    from ipykernel.kernelapp import IPKernelApp

    IPKernelApp.launch_instance(given)
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # flushed at the end; the kernel's are closed
