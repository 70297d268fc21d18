"""The book: its pages around the executed sections, built by Jupyter Book.

Jupyter Book executes nothing here: pages are built from ``book/executed/``. The hash of all
that a build reads is kept beside it, so that a build with nothing changed is not done again.
Everywhere `root` holds ``_config.yml`` and ``book/``.
"""

import gc
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from envprobe_core import __version__
from envprobe_core.errors import InputError
from envprobe_core.pool import follow
from envprobe_core.reproduce.sections import ROOT, file_digest

_BOOK_FILES = ("_config.yml", "_toc.yml", "requirements.txt", "CITATION.cff")
_MADE = ("_build", "executed")
MADE_BY_US = ".envprobe-book"  # marks a folder that `stage` may empty
STAMP = ".inputs-sha256"  # beside the built pages: the digest of what they were made from


def html_folder(root: Path = ROOT) -> Path:
    """Return the folder of built pages."""
    return root / "book" / "_build" / "html"


def claim(out: Path) -> Path:
    """Make a new or empty folder one for a book beside the checkout's, or find one that was made so before.

    An `InputError` says that it holds anything else, or lies inside the book.
    """
    out = Path(os.path.realpath(out))
    if out == ROOT or out.is_relative_to(ROOT / "book"):
        raise InputError(f"--out {out}: choose a folder outside the book's own")
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {out}: a file stands there; give a folder")
    if out.exists() and not (out / MADE_BY_US).exists() and any(out.iterdir()):
        raise InputError(f"--out {out}: holds other files; choose a new or empty folder")
    (out / "book").mkdir(parents=True, exist_ok=True)
    (out / MADE_BY_US).touch()
    return out


def stage(out: Path) -> Path:
    """Copy the book's own pages into a folder that is claimed, laid out as the checkout."""
    root = claim(out)
    for old in (root / "book").iterdir():
        if old.name not in _MADE:
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    ignored = shutil.ignore_patterns(*_MADE, "__pycache__")
    shutil.copytree(ROOT / "book", root / "book", ignore=ignored, dirs_exist_ok=True)
    for name in _BOOK_FILES:
        shutil.copy2(ROOT / name, root / name)
    return root


def book_digest(root: Path = ROOT) -> str:
    """SHA-256 of all that a build reads."""
    patterns = [
        f"book/{path.name}{'/**/*' if path.is_dir() else ''}"
        for path in (root / "book").iterdir()
        if path.name not in ("_build", "print")  # what is printed is printed from built pages
    ]
    content = file_digest(root, [*_BOOK_FILES, *patterns])
    return hashlib.sha256(f"{__version__} {content}".encode()).hexdigest()


def is_fresh(root: Path = ROOT) -> bool:
    """Say whether the built pages are those of the present inputs."""
    html = html_folder(root)
    stamp = html.parent / STAMP
    built = (html / "index.html").exists() and stamp.exists()
    return built and stamp.read_text(encoding="utf-8") == book_digest(root)


def build(root: Path = ROOT) -> tuple[int, str]:
    """Build every page, any warning an error; return Jupyter Book's exit code, and what it printed."""
    digest, stamp = book_digest(root), html_folder(root).parent / STAMP
    stamp.unlink(missing_ok=True)
    program = f"from {__name__} import be_jupyter_book; be_jupyter_book({os.getpid()})"
    options = ["--toc", str(root.resolve() / "_toc.yml"), "--path-output", "book", "--all", "-W"]
    result = subprocess.run(
        [sys.executable, "-P", "-c", program, "build", "book", *options, "--keep-going", "-n"],
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


def be_jupyter_book(parent: int) -> None:
    """Run Jupyter Book's command in this process, which ends with its parent.

    Its trees of pages live until the end: without a search for garbage it takes three fifths of the time.
    """
    follow(parent)
    gc.disable()
    from jupyter_book.cli.main import main

    main()
