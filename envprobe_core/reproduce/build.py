"""The book: its pages around the executed sections, built by Jupyter Book.

Jupyter Book executes nothing here: pages are built from ``book/executed/``. The hash of all
that a build reads is kept beside it, so that a build with nothing changed is not done again.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from envprobe_core import __version__
from envprobe_core.errors import InputError
from envprobe_core.reproduce.sections import ROOT, file_digest

_BOOK_FILES = ("_config.yml", "requirements.txt", "CITATION.cff")
_MADE = ("_build", "executed")


def html_folder(root: Path = ROOT) -> Path:
    """The folder of built pages.

    Args:
        root: the folder that holds ``_config.yml`` and ``book/``.
    """
    return root / "book" / "_build" / "html"


def stage(out: Path, root: Path = ROOT) -> Path:
    """Copy the book's own pages elsewhere, so that a second book can be built beside the first.

    Args:
        out: a new or empty folder, or one that this function made before.
        root: the checkout.

    Returns:
        The folder, laid out as the checkout is: ``_config.yml`` and ``book/``.

    Raises:
        InputError: if it holds anything else, lies inside the book, or cannot be written.
    """
    out = out.resolve()
    source = root / "book"
    if out == root or out.is_relative_to(source):
        raise InputError(f"--out {out}: choose a folder outside the book's own")
    ours = out / "book" / "_toc.yml"
    try:
        if out.exists() and any(out.iterdir()) and not ours.exists():
            raise InputError(f"--out {out}: holds other files; choose a new or empty folder")
        target = out / "book"
        if target.exists():
            for old in target.iterdir():
                if old.name not in _MADE:
                    shutil.rmtree(old) if old.is_dir() else old.unlink()
        ignored = shutil.ignore_patterns(*_MADE, "__pycache__")
        shutil.copytree(source, target, ignore=ignored, dirs_exist_ok=True)
        for name in _BOOK_FILES:
            shutil.copy2(root / name, out / name)
    except OSError as error:
        raise InputError(f"--out {out}: {error.strerror}") from None
    return out


def book_digest(root: Path = ROOT) -> str:
    """SHA-256 of all that a build reads.

    Args:
        root: the folder that holds ``_config.yml`` and ``book/``.
    """
    source = root / "book"
    patterns = [
        f"{path.relative_to(root).as_posix()}{'/**/*' if path.is_dir() else ''}"
        for path in source.iterdir()
        if path.name != "_build"
    ]
    content = file_digest(root, [*_BOOK_FILES, *patterns])
    return hashlib.sha256(f"{__version__} {content}".encode()).hexdigest()


def is_fresh(root: Path = ROOT) -> bool:
    """Whether the built pages are those of the present inputs.

    Args:
        root: the folder that holds ``_config.yml`` and ``book/``.
    """
    stamp = _stamp(root)
    built = (html_folder(root) / "index.html").exists() and stamp.exists()
    return built and stamp.read_text(encoding="utf-8") == book_digest(root)


def build(root: Path = ROOT) -> tuple[int, str]:
    """Build every page; any warning is an error.

    Args:
        root: the folder that holds ``_config.yml`` and ``book/``.

    Returns:
        Jupyter Book's exit code, and what it printed.
    """
    digest = book_digest(root)
    stamp = _stamp(root)
    stamp.unlink(missing_ok=True)
    command = [sys.executable, "-P", "-m", "envprobe_core.reproduce.jupyterbook", "build", "book"]
    result = subprocess.run(
        [*command, "--path-output", "book", "--all", "-W", "--keep-going", "-n"],
        cwd=root,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if result.returncode == 0:
        stamp.write_text(digest, encoding="utf-8")
    return result.returncode, result.stdout


def _stamp(root: Path) -> Path:
    """The file that holds the digest of what the built pages were made from."""
    return html_folder(root).parent / ".inputs-sha256"
