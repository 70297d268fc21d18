"""The scripted server for tests: in the test's own event loop, or in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.request import urlopen

from aiohttp import web

from envprobe_core.agents.profiles import TYPICAL
from envprobe_core.llm.faults import Plan
from envprobe_core.llm.server import ScriptedServer


@asynccontextmanager
async def scripted(
    plan: Plan | None = None, latency: float = 0.0, schemas: bool = True
) -> AsyncIterator[tuple[str, ScriptedServer]]:
    """Serve in the running loop; gives the address and the server."""
    server = ScriptedServer(TYPICAL, latency, plan or Plan(), schemas)
    runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=0.01)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}/v1", server
    finally:
        await runner.cleanup()


@dataclass(frozen=True)
class Served:
    """A server in a process of its own."""

    url: str

    def counts(self) -> dict[str, Any]:
        """What it was asked so far."""
        with urlopen(f"{self.url.removesuffix('/v1')}/counts", timeout=20) as response:
            return json.load(response)


@contextmanager
def server_process(*arguments: str) -> Iterator[Served]:
    """Start the server as a user would, and end it by its process."""
    command = [sys.executable, "-m", "envprobe_core.llm.server", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Served(process.stdout.readline().strip())
        finally:
            process.terminate()
