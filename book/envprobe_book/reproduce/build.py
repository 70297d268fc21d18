"""The book: its pages around the executed sections, built by Jupyter Book.

Jupyter Book executes nothing here: pages are built from ``book/executed/``. The hash of all
that a build reads is kept beside it, so that a build with nothing changed is not done again; and the hash of
its frame, all but the words of paragraphs. Where the frame stands, only pages that have changed are built.
Everywhere `root` holds ``_config.yml`` and ``book/``.
"""

import gc
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from envprobe_book.reproduce.sections import ROOT, cell_source, stored_record
from envprobe_core import __version__
from envprobe_core.compiled.compiled_files import EDITION
from envprobe_core.errors import InputError
from envprobe_core.files import copy_tree, unwritable
from envprobe_core.parallel import follow
from envprobe_core.sources import files_sha256

_BOOK_FILES = ("_config.yml", "_toc.yml", "requirements.txt", "CITATION.cff")
_MADE = ("_build", "executed")
MADE_BY_US = ".envprobe-book"  # marks a folder that `stage` may empty
STAMP = ".inputs-sha256"  # beside the built pages: the digests of what they were made from, and of its frame
DOWNLOADS = "_downloads"  # tables and figures of all pages
GLUED = re.compile(r"^:doc: +executed/([\w-]+)", re.MULTILINE)  # what a page takes from a section
FRAME = re.compile(  # headings, terms, tables, directives, labels, what is indented or underlined, roles
    r"^(?:[#:|{%>~+=\t ]|--|```|\([^)]*\)=).*|^.*(?=\n(?:[:=]|--))|\{[^{}`]+\}`[^`]*`", re.MULTILINE
)


def html_folder(root: Path = ROOT) -> Path:
    """The folder of built pages."""
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
    if fault := unwritable(out / "book"):
        raise InputError(f"--out {out}: {fault}")
    (out / "book").mkdir(parents=True, exist_ok=True)
    (out / MADE_BY_US).touch()
    return out


def unwritable_part(root: Path) -> str:
    """Why no result, or no page, can be written into a book; nothing where they can."""
    return next(filter(None, (unwritable(root / "book" / name) for name in _MADE)), "")


def stage(out: Path) -> Path:
    """Copy the book's own pages into a folder that is claimed, laid out as the checkout."""
    root = claim(out)
    for old in (root / "book").iterdir():
        if old.name not in _MADE:
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
    copy_tree(ROOT / "book", root / "book", *_MADE, "__pycache__")
    for name in _BOOK_FILES:
        shutil.copyfile(ROOT / name, root / name)
    return root


def inputs(root: Path = ROOT) -> tuple[list[Path], list[Path]]:
    """What a build reads: pages and executed sections; and all other files."""
    found = [path for path in (root / "book").iterdir() if path.name not in _MADE]
    pages = {path for path in found if path.suffix == ".md"} | {*root.glob("book/executed/*.ipynb")}
    others = [root / name for name in _BOOK_FILES]
    for path in {*found} - pages:
        others += path.rglob("*") if path.is_dir() else [path]
    return sorted(pages), sorted(path for path in others if path.is_file() and path.suffix != ".pyc")


def book_digest(root: Path = ROOT, *, frame: bool = False) -> str:
    """SHA-256 of all that a build reads, or of its frame: of pages all that another page may depend on."""
    pages, others = inputs(root)
    rest = files_sha256(others, root)
    names = [page.relative_to(root).as_posix() for page in pages]
    told = json.dumps([(n, frame_of(root / n)) for n in names]) if frame else files_sha256(pages, root)
    engine = EDITION  # pages hold it as WebAssembly
    return hashlib.sha256(f"{__version__} {engine} {rest} {told}".encode()).hexdigest()


def frame_of(page: Path) -> list[str]:
    """A page without the words of its paragraphs: headings, labels, terms, directives, roles, code."""
    text, made = page.read_text(encoding="utf-8"), ""
    if page.suffix == ".ipynb":
        if not (made := (stored_record(page) or {}).get("code_sha256", "")):
            return [text]  # altered, or of a release that did not note it
        cells = json.loads(text)["cells"]
        text = "\n\n".join(cell_source(cell) for cell in cells if cell["cell_type"] == "markdown")
    return [made, *FRAME.findall(text)]


def is_fresh(root: Path = ROOT) -> bool:
    """Whether the built pages are those of the present inputs."""
    return stamped(root)[:1] == [book_digest(root)]


def stamped(root: Path) -> list[str]:
    """The digests of what the built pages were made from; none where there are no pages."""
    index, stamp = html_folder(root) / "index.html", html_folder(root).parent / STAMP
    return stamp.read_text(encoding="utf-8").split() if index.exists() and stamp.exists() else []


def build(root: Path = ROOT) -> tuple[int, str]:
    """Build the pages, any warning an error; return Jupyter Book's exit code, and what it printed.

    Where a file was written meanwhile, pages may be made of either text: the next build makes them again.
    """
    begun = time.time()
    digests, html = (book_digest(root), book_digest(root, frame=True)), html_folder(root)
    options = ["-W", "--keep-going", "-n"]
    if stamped(root)[1:] != [digests[1]]:
        options.append("--all")
        shutil.rmtree(html / DOWNLOADS, ignore_errors=True)  # of tables and figures that may be gone
    (stamp := html.parent / STAMP).unlink(missing_ok=True)
    result = _run_jupyter_book(root, root / "_toc.yml", *options)
    edited = any(path.stat().st_mtime >= begun for paths in inputs(root) for path in paths)
    if result.returncode == 0 and not edited and book_digest(root) == digests[0]:
        stamp.write_text("\n".join(digests), encoding="utf-8")
    return result.returncode, result.stdout


def front(root: Path = ROOT) -> list[str]:
    """The sections of which the front page shows something."""
    return GLUED.findall((root / "book" / "index.md").read_text(encoding="utf-8"))


def build_front(root: Path = ROOT) -> bool:
    """Whether the front page could be built alone, with the sections that it shows: to be read meanwhile.

    Its links to other pages are text until the book is built.
    """
    toc = html_folder(root).parent / "_toc.yml"
    toc.parent.mkdir(exist_ok=True)
    chapters = "".join(f"  - file: executed/{name}\n" for name in dict.fromkeys(front(root)))
    toc.write_text(f"format: jb-book\nroot: index\n{chapters and 'chapters:'}\n{chapters}", encoding="utf-8")
    return _run_jupyter_book(root, toc, "--all").returncode == 0


def _run_jupyter_book(root: Path, toc: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Build the pages of a table of contents, in a process that ends with this one."""
    program = f"from {__name__} import be_jupyter_book; be_jupyter_book({os.getpid()})"
    command = ["build", "book", "--toc", str(toc.resolve()), "--path-output", "book", *options]
    return subprocess.run(
        [sys.executable, "-P", "-c", program, *command],
        cwd=root,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def withdraw(sections: Iterable[str], root: Path = ROOT) -> None:
    """Remove the pages of sections that failed, and those that show something of them.

    What stood there was of other inputs. The next build writes them again.
    """
    (html_folder(root).parent / STAMP).unlink(missing_ok=True)
    for name in sections:
        pages = [page for page in inputs(root)[0] if name in GLUED.findall(page.read_text(encoding="utf-8"))]
        for page in (root / "book" / "executed" / name, *pages):
            built = html_folder(root) / page.relative_to(root / "book")
            built.with_suffix(".html").unlink(missing_ok=True)


def be_jupyter_book(parent: int) -> None:
    """Run Jupyter Book's command in this process, which ends with its parent.

    Its trees of pages live until the end: without a search for garbage it takes three fifths of the time.
    """
    follow(parent)
    gc.disable()
    from jupyter_book.cli.main import main

    main()
