"""The one thread on which a store is written to, so that no commit holds up the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


class Writer:
    """The one thread on which a store is written to."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")

    async def do(self, work: Callable[..., Result], *arguments: object) -> Result:
        """Do something on the thread and wait for it."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(*arguments))

    def close(self) -> None:
        """Let the thread finish what it was given."""
        self._thread.shutdown()
