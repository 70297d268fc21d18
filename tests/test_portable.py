"""Notebooks outside the book: what a plain Markdown reader shows, and what pages make of it."""

import doctest
import json
import re
import sys

import pytest

from envprobe_core.sources import ROOT

# which JupyterLab and pages show as such, and others as text
BLOCKS = ["exercise", "solution-start", "solution-end", "dropdown", "eval-rst"]
MYST = {  # what readers of plain Markdown show as raw text, or not at all
    "directive": re.compile(
        rf"^\s*(?:`{{3,}}|~{{3,}}|:{{3,}})\{{(?!(?:{'|'.join(BLOCKS)})\}})[\w:-]+\}}", re.MULTILINE
    ),
    "role": re.compile(r"\{[\w:-]+\}`"),
    "label": re.compile(r"^\([\w:-]+\)=\s*$", re.MULTILINE),
    "link without words": re.compile(r"\[\]\("),
}
DISPLAY = re.compile(r"^\$\$\n(.*?)\n\$\$$", re.DOTALL | re.MULTILINE)
TARGET = re.compile(r"\]\((?!https?:)([^)#?]+)")
NOTEBOOKS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture
def to_myst(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "book" / "_ext"))
    from portable import to_myst

    return to_myst


def markdown(name):
    cells = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_section_is_plain_markdown_whose_links_lead_to_files(name):
    text = markdown(name)
    assert [kind for kind, form in MYST.items() if form.search(text)] == []
    unaligned = [one for one in DISPLAY.findall(text) if "&" in one and "\\begin" not in one]
    assert unaligned == []  # Sphinx alone mends it
    targets = TARGET.findall(text)
    assert [one for one in targets if not (ROOT / "notebooks" / one).is_file()] == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_page_has_every_labelled_formula_and_its_links(name, to_myst):
    text, made = markdown(name), to_myst(markdown(name))
    labels = re.findall(r"^% label: (\S+)$", text, re.MULTILINE)
    assert re.findall(r"^```\{math\}\n:label: (\S+)$", made, re.MULTILINE) == labels
    assert re.findall(r"% label|<!--|\(\.\./book/", made) == []
    assert len(made.splitlines()) == len(text.splitlines())  # a warning names the line


def test_the_example_in_the_extension_gives_what_it_says(to_myst):
    failed, tried = doctest.testmod(sys.modules[to_myst.__module__])
    assert failed == 0 < tried


def test_what_is_no_labelled_formula_stays(to_myst):
    text = "$$\nx\n$$\n\ncosts $5\n\n$$\n% a comment\ny\n$$\n[a](b.ipynb) [c](https://d.test/../book/e.md)"
    assert to_myst(text) == text
