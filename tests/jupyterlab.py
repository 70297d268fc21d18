"""A real JupyterLab for tests: started on a free port of this machine, stopped by its process id."""

import contextlib
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from playwright import sync_api as playwright

START, STOP = 240, 60  # seconds allowed
TRIES = 6  # to run all cells, while a loaded machine is not ready
SETTINGS = {
    "notebook-extension/tracker": {"windowingMode": "none"},  # cells out of sight are there too
    "apputils-extension/notification": {"fetchNews": "false"},
}


@contextlib.contextmanager
def jupyter_lab(folder: Path, desk: Path | None = None):
    """Serve a folder's notebooks, and return a function from a notebook's name to its address.

    With a desk it is the lab that `envprobe lab` opens there, as a reader finds it; the folder holds the
    server's own files.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    base = f"http://127.0.0.1:{port}"
    served = [
        *("--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"),
        *(f"--ServerApp.port={port}", f"--IdentityProvider.token={token}"),
    ]
    own = {f"JUPYTER_{name}_DIR": str(folder / f".{name.lower()}") for name in ("CONFIG", "DATA", "RUNTIME")}
    if desk is None:
        command = [sys.executable, "-m", "jupyter", "lab", *served, *_settings(folder)]
    else:
        command = [sys.executable, "-m", "envprobe_core", "lab", "--out", str(desk), "--", *served]
    with (folder / "lab.log").open("wb") as log:
        server = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, **own, "ANYWIDGET_HMR": "0", "PYTHONWARNINGS": "ignore"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            _await(f"{base}/api", server, folder / "lab.log")
            yield lambda name: f"{base}/{f'lab/tree/{name}' if name else ''}?token={token}&reset"
        finally:
            server.send_signal(signal.SIGTERM)  # its kernels end with it
            try:
                server.wait(STOP)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait(STOP)


def _settings(folder: Path) -> list[str]:
    for name, values in SETTINGS.items():
        path = folder / ".settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values), encoding="utf-8")
    return [
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.user_settings_dir={folder / '.settings'}",
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]


def _await(address: str, server: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + START
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=2):
                return
        except urllib.error.HTTPError as answer:  # it is up, and asks for the token
            answer.close()
            return
        except OSError:
            time.sleep(0.3)
    raise RuntimeError(
        f"JupyterLab did not start: {log.read_text(encoding='utf-8', errors='replace')[-2000:]}"
    )


def run_all(page, address: str) -> None:
    """Open a notebook and run all its cells."""
    page.goto(address, wait_until="domcontentloaded")
    page.wait_for_selector(".jp-NotebookPanel .jp-Cell", timeout=240_000)
    page.wait_for_selector(
        ".jp-Notebook-ExecutionIndicator[data-status=idle]", state="attached", timeout=240_000
    )
    # until its kernel is there, JupyterLab asks which one to take
    page.get_by_text("| Idle").first.wait_for(timeout=240_000)
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=240_000)
    asked = page.locator(".jp-Dialog button.jp-mod-accept")  # the session may still be on its way
    begun = page.locator(".jp-Notebook .jp-InputPrompt", has_text=re.compile(r"\[(\*|\d+)\]"))
    for _ in range(TRIES):
        page.wait_for_timeout(1_500)
        if asked.count():
            asked.first.click()
            page.wait_for_timeout(1_500)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_text("Run All Cells", exact=True).first.click()
        with contextlib.suppress(playwright.TimeoutError):
            return begun.first.wait_for(timeout=30_000)
        page.keyboard.press("Escape")
    raise AssertionError(f"no cell of {address} was begun in {TRIES} tries")
