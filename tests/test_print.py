"""Any page prints whole: what is folded is there, what only a screen can use is not, and no figure is cut."""

import functools
import http.server
import re
import subprocess
import sys
import threading

import nbformat
import pytest
import yaml

from built_book import Quiet
from envprobe_book.pages.figures import FIGURE_CLASS
from envprobe_core.sources import ROOT

CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["sphinx"]["config"]
EXTENSIONS = ("sphinx_togglebutton", "sphinx_copybutton", "sphinx_design", "myst_nb", "sphinx_book_theme")
FIGURES = 7
SHEET = {"width": "148mm", "height": "210mm"}  # of A5, so that a few figures fill several
FIGURE = (
    f'<svg class="{FIGURE_CLASS}" viewBox="0 0 900 500" style="width: 100%; min-width: 1600px; height: auto">'
    '<rect width="900" height="500" fill="none" stroke="black"/></svg>'
)
TEXT = """# A page

## A part of it

[Out of the book](https://example.org/outside) it leads.

:::{dropdown} A fold
Folded text, with a [link](https://example.org/folded).

::::{dropdown} A fold in it
Text in a fold of a fold.
::::
:::

:::{dropdown} An open fold
:open:
Open text.
:::

:::{note}
:class: toggle
A note that is folded.
:::

::::{tab-set}
:::{tab-item} One
Text of the first tab.
:::
:::{tab-item} Two
Text of the second tab.
:::
::::

```{margin}
A note in the margin.
```

| row |
|---|
""" + "\n".join(f"| row {number} |" for number in range(30))
FRAGMENTS = (
    "Folded text", "Text in a fold of a fold.", "Open text.", "A note that is folded.",
    "Text of the first tab.", "Text of the second tab.", "A note in the margin.", "code_of_a_cell",
    "row 0", "row 29",
)  # fmt: skip
FRAME = (
    ".bd-sidebar-primary", ".bd-sidebar-secondary", ".bd-header-article", ".prev-next-footer",
    "button", "input",
)  # fmt: skip


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Two pages, as Sphinx makes them with the book's styles and scripts."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("out")
    settings = {name: CONFIG[name] for name in ("html_css_files", "html_js_files", "html_context")}
    settings |= {"extensions": EXTENSIONS, "html_theme": "sphinx_book_theme", "nb_execution_mode": "off"}
    settings["html_favicon"] = str(ROOT / "book/assets/favicon.svg")
    settings |= {"html_static_path": [str(ROOT / "book/assets")], "myst_enable_extensions": ["colon_fence"]}
    (source / "conf.py").write_text("\n".join(f"{name} = {value!r}" for name, value in settings.items()))
    book = nbformat.v4.new_notebook()
    figure = nbformat.v4.new_output("display_data", {"text/html": FIGURE})
    book.cells = [nbformat.v4.new_markdown_cell(TEXT)]
    book.cells.append(nbformat.v4.new_code_cell("code_of_a_cell = 1", outputs=[figure]))
    book.cells[-1].metadata["tags"] = ["hide-input"]
    nbformat.write(book, source / "index.ipynb")
    (source / "figures.md").write_text(
        "# Figures\n\n"
        + "\n".join(
            f"A sentence before it.\n\n```{{figure}} one.svg\n:target: https://example.org/figure-{number}\n"
            f":alt: A figure\n\nA caption with a [link](https://example.org/caption-{number}).\n```\n"
            for number in range(FIGURES)
        )
    )
    (source / "one.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="400" height="250"><rect width="9" height="9"/></svg>'
    )
    made = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-b", "html", source, out], capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    handler = functools.partial(Quiet, directory=str(out))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever).start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()


def shown(page, selector):
    """How many elements take part in what is laid out and painted."""
    seen = "one => one.checkVisibility({opacityProperty: true, visibilityProperty: true})"
    return page.locator(selector).evaluate_all(f"all => all.filter({seen}).length")


def missing(page):
    """The fragments of text that nobody would see."""
    return page.evaluate(
        """fragments => {
            const walk = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT);
            let text = "";
            while (walk.nextNode()) {
                const one = walk.currentNode.parentElement;
                const box = one.getBoundingClientRect();
                const seen = one.checkVisibility({opacityProperty: true, visibilityProperty: true});
                if (seen && box.height > 0) text += walk.currentNode.data;
            }
            return fragments.filter((fragment) => !text.includes(fragment));
        }""",
        list(FRAGMENTS),
    )


def state(page):
    return page.evaluate(
        """() => [document.documentElement.dataset.theme,
            ...[...document.querySelectorAll("details")].map((one) => one.open),
            ...[...document.querySelectorAll(".admonition")].map((one) => one.className)]"""
    )


def links(pdf):
    """Addresses that each sheet of a PDF leads to."""
    objects = dict(re.findall(rb"(?:^|\n)(\d+) 0 obj\n(.*?)\nendobj", pdf, re.DOTALL))
    found = []
    for content in objects.values():
        if re.search(rb"/Type /Page\b", content):
            listed = re.search(rb"/Annots \[(.*?)\]", content, re.DOTALL)
            named = re.findall(rb"(\d+) 0 R", listed[1]) if listed else []
            told = b"".join(objects[name] for name in named)
            found.append([one.decode() for one in re.findall(rb"/URI \((.*?)\)", told)])
    return found


@pytest.mark.browser
@pytest.mark.nightly
def test_a_page_prints_what_is_folded_and_none_of_its_frame(browse, pages):
    page = browse(pages, "/index.html")
    hidden = {
        "Folded text",
        "Text in a fold of a fold.",
        "A note that is folded.",
        "code_of_a_cell",
        "row 29",
    }
    assert {*missing(page)} == {*hidden, "Text of the second tab."}
    page.emulate_media(media="print")
    assert missing(page) == []
    for selector in FRAME:
        assert page.locator(selector).count(), selector
        assert shown(page, selector) == 0, selector
    told = page.locator("a.external").first.evaluate("link => getComputedStyle(link, '::after').content")
    assert "https://example.org/outside" in told


@pytest.mark.browser
def test_folds_open_for_a_print_in_any_browser_and_the_page_is_as_before_behind_it(browse, pages):
    page = browse(pages, "/index.html", color_scheme="dark")
    before = state(page)
    assert before[0] == "dark"
    assert {True, False} < {*before}
    page.evaluate("addEventListener('toggle', (event) => { window.last = event.target.open }, true)")
    for _ in "twice":
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        theme, *folds = state(page)
        assert theme == "light"
        assert False not in folds
        assert page.evaluate("window.last") is True
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert state(page) == before


@pytest.mark.nightly
@pytest.mark.browser
def test_no_figure_is_wider_than_the_paper(browse, pages):
    page = browse(pages, "/index.html", viewport={"width": 665, "height": 900})
    figure = page.locator(f".{FIGURE_CLASS}")
    assert figure.bounding_box()["width"] > 665
    page.emulate_media(media="print")
    box = figure.bounding_box()
    assert 0 <= box["x"] <= box["x"] + box["width"] <= 665
    assert page.evaluate("document.documentElement.scrollWidth") <= 665
    clipping = """one => {
        const found = [];
        for (let box = one.parentElement; box; box = box.parentElement)
            found.push(getComputedStyle(box).overflowX);
        return found;
    }"""
    assert {*figure.evaluate(clipping)} == {"visible"}


@pytest.mark.nightly
@pytest.mark.browser
def test_a_pdf_holds_what_is_folded_and_no_figure_is_split(browse, pages):
    page = browse(pages, "/index.html")
    before = state(page)
    found = [address for sheet in links(page.pdf()) for address in sheet]
    assert {"https://example.org/outside", "https://example.org/folded"} <= {*found}
    assert not [address for address in found if "index.html" in address or "figures.html" in address]
    assert state(page) == before
    page.goto(f"{pages}/figures.html")
    sheets = links(page.pdf(**SHEET))
    assert len(sheets) > 2
    for number in range(FIGURES):
        both = [f"https://example.org/{part}-{number}" for part in ("figure", "caption")]
        assert [{*both} <= {*sheet} for sheet in sheets if {*both} & {*sheet}] == [True], number
