"""The system's Chromium as a printer: a page becomes a PDF or a picture, without the network.

What a print needs lies in the temporary folder of this process, and the browser ends when this process does.
"""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from envprobe_core.errors import InputError
from envprobe_core.files import working_folder
from envprobe_core.pool import PARENT_DEATH_SIGNAL

NAMES = ("chromium", "chromium-browser", "google-chrome")
LONGEST = 600.0  # seconds that a print may take
_ALONE = (
    "--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-quic",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # nobody is asked for anything
    "--allow-file-access-from-files", "--hide-scrollbars",
    "--virtual-time-budget=20000",  # what a page does with its formulas is waited for
)  # fmt: skip
_END_WITH_PARENT = (
    functools.partial(ctypes.CDLL(None).prctl, PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if sys.platform == "linux"
    else None
)


def find() -> str | None:
    """Return where Chromium is, None if this system has none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def needed() -> str:
    """Return where Chromium is; an `InputError` says that this system has none."""
    browser = find()
    if browser is None:
        raise InputError("printing needs Chromium, the command `chromium`, and this system has none")
    return browser


def print_pdf(page: str, out: Path) -> None:
    """Print a page of HTML, its addresses absolute, with its headings as the PDF's outline.

    Raises:
        InputError: if there is no Chromium, or it prints nothing.
    """
    _run(page, out, "--print-to-pdf", "--no-pdf-header-footer", "--generate-pdf-document-outline")


def picture(page: str, out: Path, width: int, height: int) -> None:
    """Take a picture of a page as PNG, in pixels; else as `print_pdf`."""
    _run(page, out, "--screenshot", f"--window-size={width},{height}")


def _run(page: str, out: Path, what: str, *options: str) -> None:
    browser = needed()
    with tempfile.TemporaryDirectory(dir=working_folder(), ignore_cleanup_errors=True) as folder:
        source, made = Path(folder, "page.html"), Path(folder, f"made{out.suffix}")
        source.write_text(page, encoding="utf-8")
        options = (f"{what}={made}", *options)
        as_root = ["--no-sandbox"] if os.getuid() == 0 else []
        process = subprocess.Popen(
            [browser, *_ALONE, *as_root, f"--user-data-dir={folder}/profile", *options, source.as_uri()],
            env={**os.environ, "HOME": folder, "TMPDIR": folder},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=_END_WITH_PARENT,
        )
        try:
            said, _ = process.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            raise InputError(f"{browser} did not print within {LONGEST:.0f} s") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if process.returncode or not made.exists():
            last = (said.strip().splitlines() or ["it says nothing"])[-1]
            raise InputError(f"{browser} printed nothing (exit code {process.returncode}): {last}")
        shutil.copyfile(made, out)
