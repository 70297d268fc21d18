"""Debian's Firefox without a window, driven by the protocol that it speaks itself (WebDriver BiDi).

Playwright drives only builds of Firefox of its own, which no package registry has.
"""

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import websocket

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
SECONDS = 600  # for an answer, on a busy machine


class Page:
    """A tab that functions are evaluated in, as Playwright's `Page.evaluate` does."""

    def __init__(self, socket: websocket.WebSocket) -> None:
        self._socket, self._number = socket, 0
        self._ask("session.new", capabilities={})
        self._tab = self._ask("browsingContext.getTree")["contexts"][0]["context"]

    def _ask(self, method: str, **params: Any) -> Any:
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:  # events come in between
            answer = json.loads(self._socket.recv())
            if answer.get("id") == self._number:
                break
        if answer["type"] == "error":
            raise RuntimeError(f"{method}: {answer['error']}: {answer['message']}")
        return answer["result"]

    def goto(self, address: str) -> None:
        """Open an address and wait until it is loaded."""
        self._ask("browsingContext.navigate", context=self._tab, url=address, wait="complete")

    def evaluate(self, function: str, argument: Any = None) -> Any:
        """What a function of the page's language says of an argument; both go as JSON."""
        told = json.dumps(json.dumps(argument))
        found = self._ask(
            "script.evaluate",
            expression=f"Promise.resolve(({function})(JSON.parse({told}))).then(JSON.stringify)",
            target={"context": self._tab},
            awaitPromise=True,
        )
        if found["type"] == "exception":
            raise RuntimeError(found["exceptionDetails"]["text"])
        return json.loads(found["result"]["value"])


@contextmanager
def firefox() -> Iterator[Page]:
    """A tab of a Firefox that ends with the block; its profile is a folder of its own."""
    assert FIREFOX is not None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [FIREFOX, "--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0"]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            told = Path(profile) / "WebDriverBiDiServer.json"  # where it says that it listens
            while not (told.is_file() and told.stat().st_size):
                assert process.poll() is None, "Firefox ended"
                time.sleep(0.05)
            server = json.loads(told.read_text(encoding="utf-8"))
            address = f"ws://{server['ws_host']}:{server['ws_port']}/session"
            with closing(
                websocket.create_connection(address, timeout=SECONDS, suppress_origin=True)
            ) as socket:
                yield Page(socket)
        finally:
            process.terminate()
            process.wait()
