"""A small book, built once for all tests that open its pages, in whichever process they run; `conftest`
makes its fixtures known."""

import contextlib
import functools
import http.server
import os
import threading

import pytest
import yaml
from filelock import FileLock

from envprobe_book.page_engine import SCRIPT, write_page_engine
from envprobe_book.reproduce import build as book
from envprobe_core.sources import ROOT
from processes import envprobe

SMALL = {
    "seeds": "0:12", "more_seeds": "0:24", "training": "10000:10006", "resamples": "200",
    "setting_resamples": "200", "profiles": "16", "seeds_each": "10", "wide_profiles": "8", "pasts": "8",
    "futures": "4", "points": "3", "held_out": "10000:10012", "dry_run": "1", "logs": "0:12",
    "rounds": "3", "at_once": "16", "atlas_resamples": "100", "jobs": "1",
}  # fmt: skip


def build_book(out):
    given = [text for name, value in SMALL.items() for text in ("-p", f"{name}={value}")]
    return envprobe("book", *given, "--out", out)


@pytest.fixture(scope="session")
def small_book(tmp_path_factory):
    """The folder of a book with few seeds; the first test process that wants it builds it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    out, built = shared / "book with a space", shared / "book.built"
    with FileLock(shared / "book.lock"):
        if not built.exists():
            result = build_book(out)
            built.write_text(result.stdout + result.stderr if result.returncode else "")
    assert not built.read_text(), built.read_text()
    return out


@pytest.fixture(scope="session")
def html(small_book):
    return book.html_folder(small_book)


def page_names(html):
    """Every page of the book; addresses of old that only lead to a page are none."""
    redirects = yaml.safe_load((ROOT / "book/redirects.yml").read_text(encoding="utf-8"))
    moved = {html / f"{old}.html" for old in redirects}
    found = (path.relative_to(html) for path in {*html.rglob("*.html")} - moved)
    return sorted(path.as_posix() for path in found if "_static" not in path.parts)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


def engine_page(folder, script=None, text="", body="", head=""):
    """The file of a page, written into the folder beside the page's engine, that loads a script after it."""
    write_page_engine(folder)
    if script:
        (folder / script).write_text(text, encoding="utf-8")
    scripts = [SCRIPT, script] if script else [SCRIPT]
    loaded = "".join(f"<script src={one}></script>" for one in scripts)
    page = folder / "page.html"
    page.write_text(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>Page</title><link rel=icon href=data:,>{head}<body>{body}{loaded}",
        encoding="utf-8",
    )
    return page


@contextlib.contextmanager
def serving(folder):
    """The address of a server of a folder on the loopback, which ends with the block."""
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def server(html):
    with serving(html) as address:
        yield address
