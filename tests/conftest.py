"""What several test modules share: the system's browser, a small book, and notebooks made on the spot."""

import functools
import os
import shutil
import signal

import pytest
import typer.main
from hypothesis import HealthCheck, settings

from built_book import html, server, small_book  # noqa: F401  (fixtures, and nbformat loads faster after it)
from processes import call
from watching import watch

CHROMIUM_ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
PATIENCE = 120_000  # milliseconds for what takes half a second on a quiet machine

# a shell's background jobs ignore it, and tests interrupt what they start
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

OUT = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]  # a loaded machine has its time
settings.register_profile("suite", deadline=None, derandomize=True, database=None, suppress_health_check=OUT)
settings.load_profile("suite")

typer.main.get_command = functools.cache(typer.main.get_command)  # it rebuilds all commands at each call

EACH_PAGE = ("test_everyone_can_use_the_page", "test_every_page_is_for_everyone")
EACH_ALONE = (*EACH_PAGE, "test_every_conclusion_can_be_false")
"""Tests of which each runs wherever there is room: they share nothing that takes time to make."""
TURNS = (  # the first builds the book; the others take long, or wait and so take little from it
    "test_golden_book", "test_llm_run", "test_conclusions", "test_trust", "test_cluster", "test_cli_run",
    "test_wasm", "test_llm_answers", "test_engine", "test_compiling", "test_llm_local", "test_llm_doctor",
)  # fmt: skip


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """One process runs all tests of a module, so that what they share is made once."""
    from xdist.scheduler import LoadScopeScheduling

    class ByModule(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            alone = any(name in nodeid for name in EACH_ALONE)
            return nodeid if alone else nodeid.partition("::")[0]

    config.option.loadscopereorder = False  # it would begin with the modules that have the most tests
    return ByModule(config, log)


def pytest_collection_modifyitems(items):
    """The small book is built at once, what takes longest begins early, and what needs the book comes last.

    The pages of the book are looked at one by one, in all processes, at the very end.
    """
    readers = {item.module for item in items if "small_book" in item.fixturenames}

    def turn(item):
        if any(name in item.nodeid for name in EACH_PAGE):
            return len(TURNS) + 2
        name = item.module.__name__
        return TURNS.index(name) if name in TURNS else len(TURNS) + (item.module in readers)

    items.sort(key=turn)


def patient(make):
    """Let the pages that a browser makes have their time."""

    def made(**how):
        tab = make(**how)
        tab.set_default_timeout(PATIENCE)
        return tab

    return made


@pytest.fixture(scope="module")
def chromium(request):
    """The system's Chromium, driven by Playwright; skips where there is none.

    By day it is the one without windows, if that is there: the same pages for half of the time. It ends with
    its module: Playwright leaves an event loop running in the thread, where nobody else can run one.
    `make test` installs one where it may and sets ENVPROBE_REQUIRE_BROWSER, so that a missing browser fails
    instead.
    """
    names = ["chromium-headless-shell", "chromium"]
    if request.config.option.markexpr == "nightly":
        names.reverse()
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        told = pytest.fail if os.environ.get("ENVPROBE_REQUIRE_BROWSER") else pytest.skip
        told("no Chromium on this system (the command `chromium`)")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGUMENTS)
        browser.new_page, browser.new_context = patient(browser.new_page), patient(browser.new_context)
        yield browser
        browser.close()


@pytest.fixture
def browse(chromium):
    """Open an address below a base in a tab of its own; whatever goes wrong there fails the test."""
    contexts, faults = [], []

    def open_page(base, address="", **options):
        contexts.append(chromium.new_context(**options))
        page = contexts[-1].new_page()
        faults.append(watch(page, base))
        page.goto(f"{base}{address}", wait_until="load")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not any(faults), faults


@pytest.fixture
def told(capsys):
    """Run a command in this process: exit code, standard output and standard error."""
    return lambda *arguments: (call(*arguments), *capsys.readouterr())


@pytest.fixture
def checkout(tmp_path):
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
def own_checkout(checkout, monkeypatch):
    """A checkout that the commands on sections take for their own."""
    monkeypatch.setattr("envprobe_book.cli.reproduce.ROOT", checkout)
    return checkout


@pytest.fixture
def write_notebook(checkout):
    """Write ``notebooks/NAME.ipynb`` from a parameters cell and further code cells."""

    def write(name, parameters, *cells):
        import nbformat

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
