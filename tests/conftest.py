"""What several test modules share: the system's browser, a small book, and notebooks made on the spot."""

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partialmethod
from pathlib import Path
from typing import Any

import nbformat
import pytest
from built_book import html, server, small_book  # noqa: F401  (fixtures)

CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """One process runs all tests of a module, so that what they share is made once.

    The pages of the book are looked at one by one instead, in all processes, at the end; the modules that
    start a JupyterLab go together.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByModule(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            module = nodeid.partition("::")[0]
            if "test_everyone_can_use_the_page" in nodeid:
                return nodeid
            return "live" if module.endswith("_live.py") else module

    return ByModule(config, log)


class Patient:
    """A browser whose pages have two minutes for what takes half a second on a quiet machine."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser

    def __getattr__(self, name: str) -> Any:
        return getattr(self._browser, name)

    def _waiting(self, kind: str, **how: Any) -> Any:
        made = getattr(self._browser, kind)(**how)
        made.set_default_timeout(120_000)
        return made

    new_page = partialmethod(_waiting, "new_page")
    new_context = partialmethod(_waiting, "new_context")


@pytest.fixture(scope="module")
def chromium() -> Iterator[object]:
    """The system's Chromium, driven by Playwright; skips where there is none.

    It ends with its module: Playwright leaves an event loop running in the thread, where nobody else
    can run one.

    `make test` installs one where it may and sets ENVPROBE_REQUIRE_BROWSER, so that a missing
    browser fails instead.
    """
    path = shutil.which("chromium")
    if path is None:
        reason = "no Chromium on this system (the command `chromium`)"
        if os.environ.get("ENVPROBE_REQUIRE_BROWSER"):
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGUMENTS)
        yield Patient(browser)
        browser.close()


Writer = Callable[..., Path]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder laid out as the project is, with an engine file, data and a lock of its own."""
    for name, text in {
        "envprobe_core/engine.py": "RATE = 1\n",
        "data/numbers.csv": "value\n1\n",
        "requirements.txt": "numpy\n",
        "notebooks/matplotlibrc": "svg.hashsalt: envprobe\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.fixture
def write_notebook(checkout: Path) -> Writer:
    """Write ``notebooks/NAME.ipynb`` from a parameters cell and further code cells."""

    def write(name: str, parameters: str, *cells: str) -> Path:
        notebook = nbformat.v4.new_notebook()
        notebook.cells = [
            nbformat.v4.new_markdown_cell(f"# Section {name}"),
            nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}),
            *(nbformat.v4.new_code_cell(cell) for cell in cells),
        ]
        path = checkout / "notebooks" / f"{name}.ipynb"
        nbformat.write(notebook, path)
        return path

    return write
