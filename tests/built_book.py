"""A small book, built once for all tests that open its pages; `conftest` makes its fixtures known."""

import functools
import http.server
import subprocess
import sys
import threading

import pytest

from envprobe_core import book

SMALL = {
    "seeds": "0:12",
    "resamples": "200",
    "profiles": "16",
    "seeds_each": "10",
    "pasts": "8",
    "futures": "4",
    "points": "3",
    "held_out": "10000:10012",
    "dry_run": "1",
}


def build_book(out):
    given = [text for name, value in SMALL.items() for text in ("-p", f"{name}={value}")]
    return subprocess.run(
        [sys.executable, "-m", "envprobe_core", "book", *given, "--out", out],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
    )


@pytest.fixture(scope="session")
def small_book(tmp_path_factory):
    """The folder of a book with few seeds."""
    out = tmp_path_factory.mktemp("small") / "book with a space"
    result = build_book(out)
    assert result.returncode == 0, result.stdout + result.stderr
    return out


@pytest.fixture(scope="session")
def html(small_book):
    return book.html_folder(small_book)


def page_names(html):
    return sorted(
        path.relative_to(html).as_posix()
        for path in html.rglob("*.html")
        if "_static" not in path.relative_to(html).parts
    )


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="session")
def server(html):
    handler = functools.partial(QuietHandler, directory=str(html))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()
