"""Seconds of the book's builds, and of the plain way to the same pages: papermill's command, one notebook
after another, then Jupyter Book.

`python benchmarks/building.py` takes a quarter of an hour; the engine is compiled before the clocks start.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CHANGED = "ordering"  # the notebook that is changed between two builds
_RAN = re.compile(r"^\s*ran\s+(\S+)\s+([\d.]+) s$", re.MULTILINE)
_LEFT_OUT = (".git", ".venv", "_build", "executed", "__pycache__", ".hypothesis", "runs")


def builds() -> dict[str, Any]:
    """Build the book in a copy of the checkout: from nothing, unchanged, one notebook changed; then plainly.

    Returns:
        Wall seconds of each, the ratio of the first to the plain way, and of each section from nothing.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = _copy(Path(folder) / "book")
        first, printed = _timed(copy, "envprobe", "book")
        again, _ = _timed(copy, "envprobe", "book")
        notebook = copy / "notebooks" / f"{CHANGED}.ipynb"
        notebook.write_text(notebook.read_text(encoding="utf-8").replace("# ", "#  ", 1), encoding="utf-8")
        changed, _ = _timed(copy, "envprobe", "book")
        plain = plainly(_copy(Path(folder) / "plain"))
    return {
        "from_nothing": first,
        "again": again,
        "one_notebook_changed": changed,
        "plainly": plain,
        "share_of_plainly": first / plain,
        "sections": {name: float(seconds) for name, seconds in _RAN.findall(printed)},
    }


def plainly(copy: Path) -> float:
    """Make the same pages in the way that papermill's and Jupyter Book's own pages teach."""
    executed = copy / "book" / "executed"
    executed.mkdir()
    seconds = 0.0
    for notebook in sorted((copy / "notebooks").glob("*.ipynb")):
        output = executed / notebook.name
        arguments = ["--cwd", "notebooks", "-k", "python3", "--no-progress-bar", notebook, output]
        seconds += _timed(copy, "papermill", *arguments)[0]
    return seconds + _timed(copy, "jupyter-book", "build", "book", "--path-output", "book", "--all")[0]


def _copy(target: Path) -> Path:
    shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    _timed(target, "envprobe", "compile")
    return target


def _timed(copy: Path, program: str, *arguments: object) -> tuple[float, str]:
    """Run a program of this environment in a copy of the checkout, which it imports the engine from."""
    given = [str(argument) for argument in arguments]
    command = [sys.executable, "-m", "envprobe_book", *given]
    if program != "envprobe":
        command = [str(Path(sysconfig.get_path("scripts")) / program), *given]
    begin = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=copy,
        env=os.environ | {"PYTHONPATH": os.pathsep.join((str(copy), str(copy / "book")))},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}")
    return time.perf_counter() - begin, done.stdout


def main() -> None:
    """Measure and print."""
    book = builds()
    print(
        f"book from nothing {book['from_nothing']:.0f} s, again {book['again']:.1f} s, one notebook "
        f"changed {book['one_notebook_changed']:.0f} s; plainly {book['plainly']:.0f} s: "
        f"{book['share_of_plainly']:.0%}"
    )
    for name, seconds in sorted(book["sections"].items(), key=lambda row: -row[1]):
        print(f"  {name:18s} {seconds:6.1f} s")


if __name__ == "__main__":
    main()
