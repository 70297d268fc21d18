"""The lab that `make lab` opens, in a browser: START, the students' notebook, and a section under sliders."""

import json

import pytest
from jupyterlab import jupyter_lab, run_all

from envprobe_core.lab import desk

SECTION = "sections/main-results.ipynb"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The lab of a reader who has set few seeds in one section, and its folder."""
    pytest.importorskip("jupyterlab_myst")
    folder = tmp_path_factory.mktemp("desk")
    desk.lay_out(folder / "lab")
    path = folder / "lab" / SECTION
    notebook = json.loads(path.read_text(encoding="utf-8"))
    text = "".join(notebook["cells"][1]["source"]).replace("0:220", "0:8").replace("10_000", "100")
    notebook["cells"][1]["source"] = text
    path.write_text(json.dumps(notebook), encoding="utf-8")
    with jupyter_lab(folder, folder / "lab") as address:
        yield address, folder / "lab"


@pytest.fixture
def page(chromium, lab):
    context = chromium.new_context(viewport={"width": 1400, "height": 1000})
    page, faults = context.new_page(), []
    page.on("pageerror", lambda error: faults.append(str(error)))
    yield page
    assert not faults, faults
    context.close()


def open_notebook(page, address, formulas):
    page.goto(address, wait_until="domcontentloaded")
    page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .katex").nth(formulas - 1).wait_for(timeout=120_000)
    return page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")


@pytest.mark.browser
def test_the_lab_opens_start_with_its_formula_and_asks_nothing(page, lab):
    address, folder = lab
    panel = open_notebook(page, address(""), 1)
    panel.locator("h1", has_text="Start here").wait_for()
    page.wait_for_timeout(3_000)  # Jupyter would ask about its news now
    assert page.locator(".jp-toast-button, .Toastify__toast, .jp-Dialog").count() == 0
    listed = page.locator(".jp-DirListing-itemText").all_inner_texts()
    assert [name.strip() for name in listed] == ["pages", "sections", "exercises.ipynb", "START.ipynb"]
    assert (folder / "START.ipynb").is_file()
    panel.get_by_role("link", name="One episode").first.click()  # opens here, and is no download
    page.locator(".lm-TabBar-tabLabel", has_text="one-episode.ipynb").wait_for(timeout=240_000)


@pytest.mark.browser
def test_the_students_notebook_has_formulas_and_no_solution(page, lab):
    address, _ = lab
    panel = open_notebook(page, address("exercises.ipynb"), 1)
    panel.locator("h1", has_text="Exercises").wait_for()
    assert "{math}" not in panel.inner_text()
    assert "{solution" not in panel.inner_text()
    assert panel.get_by_text("# Self-check").count() > 0


@pytest.mark.browser
def test_a_sections_slider_computes_its_figure_anew(page, lab):
    address, _ = lab
    run_all(page, address(SECTION))
    live = page.locator(".envprobe-interact")
    live.locator("svg.envprobe-figure").wait_for(timeout=180_000)
    live.scroll_into_view_if_needed()
    said = live.locator("svg.envprobe-figure").get_attribute("aria-label")
    handle = live.locator(".noUi-handle").first
    box = handle.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(1, 9):  # a drag: many values on the way, and the last one holds
        page.mouse.move(x + 8 * step, y)
    page.mouse.up()
    reading = live.locator(".widget-readout").first
    budget = reading.inner_text()
    assert int(budget) > 7
    live.get_by_text(f"Drawn for budget {budget}, threshold 1.5").wait_for(timeout=240_000)
    assert live.locator("svg.envprobe-figure").get_attribute("aria-label") != said
    assert live.locator("svg.envprobe-figure").count() == 1
    # a reader without a mouse: the handle takes the arrow keys
    handle.focus()
    page.keyboard.press("ArrowLeft")
    live.get_by_text(f"Drawn for budget {int(budget) - 1}, threshold 1.5").wait_for(timeout=240_000)
