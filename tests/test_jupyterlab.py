"""The lab that `make lab` opens: START, exercises, and under live sliders a section, explorer and player."""

import contextlib
import json
import re
import secrets
import socket
import subprocess

import nbformat
import pytest
from playwright import sync_api as playwright

from envprobe_book.classroom import workspace
from envprobe_book.reproduce.sections import ROOT
from envprobe_book.widgets.player import record_pair
from processes import COMMAND, keyless, wait_for
from test_explorer import assert_alike, shown_at_rest
from test_player import choose, value_text
from watching import tell

pytestmark = pytest.mark.browser

TRIES = 6  # to run all cells, while a loaded machine is not ready
SECTION, EXPLORER, PLAYER = (f"sections/{name}.ipynb" for name in ("main-results", "explorer", "watch"))
SHOWN = {"windowingMode": "none"}  # cells out of sight are there too
WATCH = """from envprobe_core.policies import custom_policy
from envprobe_book.widgets.player import Player, record_pair

mine = custom_policy("mine", lambda view: 2.0 * view.d, "<b>Mine</b>")
pairs = [record_pair("objectstate", seed=n) for n in (3, 4)]
pairs.append(record_pair("objectstate", ("mine", "simple"), 5, own=[mine]))
Player([pair | {"group": "rooms", "label": str(pair["seed"])} for pair in pairs])"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """From a notebook's name to its address, in the lab of a reader who has changed some and has one more."""
    pytest.importorskip("jupyterlab_myst")
    folder = tmp_path_factory.mktemp("desk")
    workspace.lay_out(folder / "lab")
    section = nbformat.read(folder / "lab" / SECTION, as_version=4)
    few = section.cells[1].source.replace("0:220", "0:8").replace("10_000", "100")
    section.cells[1].source = few
    watch = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(WATCH)], metadata=section.metadata)
    for name, notebook in ((SECTION, section), (PLAYER, watch)):
        nbformat.write(notebook, folder / "lab" / name)
    settings = folder / "settings" / "@jupyterlab/notebook-extension/tracker.jupyterlab-settings"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps(SHOWN), encoding="utf-8")
    with jupyter_lab(folder) as address:
        yield address


@contextlib.contextmanager
def jupyter_lab(folder):
    """Serve the desk in `lab` on a free port, as a reader finds it; its process is stopped by its id."""
    token = secrets.token_hex(16)
    port = secrets.choice(range(10_000, 30_000))  # below those that the system gives to whoever asks for any
    served = [
        *("--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", f"--IdentityProvider.token={token}"),
        *(f"--ServerApp.port={port}", f"--LabApp.user_settings_dir={folder / 'settings'}"),
    ]
    own = {f"JUPYTER_{name}_DIR": str(folder / f".{name.lower()}") for name in ("CONFIG", "DATA", "RUNTIME")}
    environment = keyless(**own, ANYWIDGET_HMR="0", PYTHONWARNINGS="ignore")
    command = [*COMMAND, "lab", "--out", str(folder / "lab"), "--", *served]

    def listening():
        """Return the port that it has taken, which is another one where ours was taken."""
        with contextlib.suppress(OSError, ValueError, StopIteration):
            told = json.loads(next((folder / ".runtime").glob("jpserver-*.json")).read_text())
            socket.create_connection(("127.0.0.1", told["port"]), timeout=2).close()
            return told["port"]

    with (folder / "lab.log").open("wb") as log:
        how = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": subprocess.STDOUT}
        server = subprocess.Popen(command, cwd=folder, env=environment, **how)
        try:
            port = wait_for(listening, server)
            assert port, (folder / "lab.log").read_text()
            base = f"http://127.0.0.1:{port}"
            yield lambda name: f"{base}/{f'lab/tree/{name}' if name else ''}?token={token}&reset"
        finally:
            server.terminate()  # its kernels end with it
            server.wait(600)


def run_all(page, address):
    """Open a notebook and run all its cells."""
    page.goto(address, wait_until="domcontentloaded")
    # until its kernel is there, JupyterLab asks which one to take
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=240_000)
    asked = page.locator(".jp-Dialog button.jp-mod-accept")  # the session may still be on its way
    begun = page.locator(".jp-Notebook .jp-InputPrompt", has_text=re.compile(r"\[(\*|\d+)\]"))
    for _ in range(TRIES):
        page.wait_for_timeout(1_500)
        if asked.count():
            asked.first.click()
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_text("Run All Cells", exact=True).first.click()
        with contextlib.suppress(playwright.TimeoutError):
            return begun.first.wait_for(timeout=30_000)
        page.keyboard.press("Escape")
    raise AssertionError(f"no cell of {address} was begun in {TRIES} tries")


@pytest.fixture
def page(chromium, lab):
    context = chromium.new_context(viewport={"width": 1400, "height": 1000})
    page, faults = context.new_page(), []
    page.on("pageerror", lambda error: faults.append(str(error)))
    yield page
    assert not faults, faults
    context.close()


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["", "exercises.ipynb"])
def test_the_lab_opens_with_its_formulas_and_asks_nothing(page, lab, name):
    """START shows what there is, and its links open here; the students' notebook has no solution."""
    page.goto(lab(name), wait_until="domcontentloaded")
    panel = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    panel.locator(".katex").first.wait_for(timeout=120_000)
    panel.locator("h1", has_text="Exercises" if name else "Start here").wait_for()
    if name:
        assert not {"{math}", "{solution"} & set(re.findall(r"\{\w+\}?", panel.inner_text()))
        assert panel.get_by_text("# Self-check").count() > 0
        return
    page.wait_for_timeout(3_000)  # Jupyter would ask about its news now
    assert page.locator(".jp-toast-button, .Toastify__toast, .jp-Dialog").count() == 0
    listed = ["pages", "sections", "exercises.ipynb", "START.ipynb"]
    playwright.expect(page.locator(".jp-DirListing-itemText")).to_have_text(listed)
    panel.get_by_role("link", name="One episode").first.click()  # opens here, and is no download
    page.locator(".lm-TabBar-tabLabel", has_text="one-episode.ipynb").wait_for(timeout=240_000)


@pytest.mark.nightly
def test_a_sections_figure_answers_its_sliders_without_the_kernel(page, lab):
    run_all(page, lab(SECTION))
    live = page.locator(".live-figure").first
    budget = live.locator("input[data-knob=budget]")
    budget.wait_for(timeout=240_000)
    budget.scroll_into_view_if_needed()
    numbers = live.locator(".lp-numbers")
    said = numbers.text_content()
    sentence = page.locator(".live-told:not(.live-handle)", has_text=re.compile(r"\d\.\d")).first
    told = sentence.text_content()
    closing = page.locator("blockquote", has_text="Take away").locator(".live-told").first
    closed = closing.text_content()
    budget.focus()
    for _ in range(3):  # JupyterLab leaves the arrow keys to the slider
        page.keyboard.press("ArrowRight")
    assert live.locator("output").first.text_content() == "10"
    live.locator(".live-note", has_text="Run in this page").wait_for(timeout=60_000)
    assert numbers.text_content() != said
    playwright.expect(sentence).not_to_have_text(told)
    playwright.expect(closing).not_to_have_text(closed)
    other = page.locator(".live-figure").nth(1)
    assert other.locator("input[data-knob=budget]").input_value() == "10", "one setting for all figures"
    live.get_by_role("button", name="Back to this page").click()
    playwright.expect(numbers).to_have_text(said)
    playwright.expect(sentence).to_have_text(told)
    assert page.locator("a[href^='live:']").count() == 0, (
        "marks are for pages: MyST writes out their addresses"
    )


@pytest.mark.nightly
def test_a_copy_is_folded_as_the_book_is_and_a_guess_comes_before_its_answer(page, lab):
    """What the book hides is a bar; the same form asks, and tells only who has chosen."""
    run_all(page, lab(SECTION))
    form = page.locator("form.guess").first
    form.wait_for(timeout=240_000)
    panel = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    cells = json.loads((ROOT / "notebooks" / "main-results.ipynb").read_text(encoding="utf-8"))["cells"]
    code = [set(cell["metadata"].get("tags", ())) for cell in cells if cell["cell_type"] == "code"]
    open_cells = [
        tags for tags in code if "parameters" in tags or not tags & workspace.FOLDED["source_hidden"]
    ]
    assert len(open_cells) < len(code)
    shown = panel.locator(".jp-CodeCell .jp-InputArea-editor:visible")
    playwright.expect(shown).to_have_count(len(open_cells))
    answer = form.locator("details")
    assert not answer.is_visible()
    because = answer.locator("p").text_content()
    assert because not in panel.inner_text()
    form.locator("input").first.check()
    answer.wait_for()
    told = "Right." if form.get_attribute("data-right") == "0" else "Not so."
    playwright.expect(form.get_by_role("status")).to_have_text(told)
    assert because in panel.inner_text()


@pytest.mark.nightly
def test_start_runs_with_one_unit_and_the_books_slider_names(page, lab):
    run_all(page, lab("START.ipynb"))
    panel = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    for name in ("Budget", "Threshold"):
        panel.get_by_role("slider", name=name).first.wait_for(timeout=240_000)
    board = panel.locator("table.dataframe").last
    playwright.expect(board.locator("th", has_text="what matters next")).to_have_count(1, timeout=240_000)
    heads = [head.inner_text() for head in board.locator("thead tr").first.locator("th").all()]
    assert heads[1:] == ["accuracy", "completed", "useful", "ahead", "from", "to"]
    assert "EnvProbe-Simple" in board.inner_text()


@pytest.mark.nightly
def test_the_explorer_runs_in_the_notebook(page, lab):
    """The same front end as in the book: no question to the kernel, and the same numbers."""
    run_all(page, lab(EXPLORER))
    page.locator(".live-explorer[data-ready=yes]").wait_for(timeout=400_000)
    page.get_by_role("slider", name="Budget").first.fill("11")
    found = shown_at_rest(page, "levels")
    assert found["setting"]["budget"] == 11
    assert_alike(found)


@pytest.mark.nightly
def test_the_player_plays_any_episode_in_the_lab(page, lab):
    """The engine has come along with the widget; the kernel is not asked, and the lab's address stays."""
    run_all(page, lab(PLAYER))
    form, address = page.locator(".player-form"), page.url
    page.locator(".player-choose").wait_for(timeout=240_000)
    choose(page, World="graphnav", Regime="S1", Protocol="observed", Seed="1003", Threshold="0.5")
    asked = tell(page, record_pair("graphnav", seed=1003, regime="S1", protocol="observed", threshold=0.5))
    page.get_by_text(asked["about"], exact=True).wait_for()
    page.get_by_text(value_text(asked, 0), exact=True).wait_for()
    page.get_by_role("slider", name="Step", exact=True).focus()
    page.keyboard.press("ArrowRight")
    page.get_by_text(value_text(asked, 1), exact=True).wait_for()
    choose(page, Budget="99")
    page.locator(".player-message").get_by_text("The budget 99 is not in 0..20.").wait_for()
    assert page.locator(".player-about").inner_text() == asked["about"]
    menu = page.locator(".player").get_by_label("Episode", exact=True)
    menu.select_option("2")
    page.locator(".player-name", has_text="<b>Mine</b>").wait_for()
    menu.select_option("1")
    page.get_by_text(tell(page, record_pair("objectstate", seed=4))["about"], exact=True).wait_for()
    assert page.locator(".player-message").inner_text() == ""
    assert form.get_by_label("Seed", exact=True).input_value() == "4"
    page.get_by_role("button", name="Typical seed").click()
    page.get_by_text(re.compile("^Seed .* the median difference over 220 seeds")).wait_for()
    assert page.url == address
