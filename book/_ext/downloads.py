"""Sphinx extension: each computed table as CSV and each drawn figure as SVG, linked beside it.

The files are written by the build, from what the page shows, to ``_downloads/``: they work from a folder as
they do from a server.
"""

import csv
import html
import io
import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

import envprobe_core
from envprobe_core.show.figures import FIGURE_CLASS
from envprobe_core.show.markup import FIXED, MINUS, UNBROKEN

FOLDER = "_downloads"
TABLES, FIGURES = "tables", "figures"
_SVG = re.compile(rf'<svg class="{FIGURE_CLASS}".*?</svg>', re.DOTALL)
_STYLE = re.compile(r' style="[^"]*"', re.DOTALL)
_INK = re.compile(r"var\(--ink-([0-9a-f]{6})(?:, #\1)?\)")
_PLAIN = str.maketrans({MINUS: "-", FIXED: " ", UNBROKEN: "-"})


def as_csv(table: nodes.table) -> str:
    """Return a table's cells as CSV, with plain minus signs and spaces, without the caption."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for row in table.findall(nodes.row):
        cells = (entry.astext().translate(_PLAIN) for entry in row.children)
        writer.writerow(" ".join(text.split()) for text in cells)
    return buffer.getvalue()


def as_file(svg: str) -> str:
    """Return a figure of a page as a file of its own: dark on white, whatever the page's colours."""
    head, rest = svg.split(">", 1)
    head = _STYLE.sub(' font-family="sans-serif" style="background: #fff"', head, count=1)
    text = f"{head}>{rest}".replace("currentColor", "#000000")
    text = text.replace("var(--pst-color-background, #fff)", "#ffffff")
    return _INK.sub(r"#\1", text)


def clear(app: Sphinx) -> None:
    """Take away the files of an earlier build (event ``builder-inited``)."""
    for kind in (TABLES, FIGURES):
        shutil.rmtree(Path(app.outdir) / FOLDER / kind, ignore_errors=True)


def offer(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Write the files of one page and link them behind table and figure (``doctree-resolved``)."""
    if app.builder.format != "html":
        return
    page = docname.replace("/", "-").removeprefix("executed-")
    if docname.startswith("executed/"):
        for number, table in enumerate(list(doctree.findall(nodes.table)), start=1):
            _place(app, docname, table, TABLES, f"{page}-table-{number}", ".csv", as_csv(table))
    number = 0
    for raw in list(doctree.findall(nodes.raw)):
        for svg in _SVG.findall(raw.astext()) if raw.get("format") == "html" else ():
            number, figure = number + 1, raw
            while figure is not None and not isinstance(figure, nodes.figure):
                figure = figure.parent
            around = raw if figure is None else figure
            _place(app, docname, around, FIGURES, f"{page}-figure-{number}", ".svg", as_file(svg))


def _place(
    app: Sphinx, docname: str, node: nodes.Element, kind: str, otherwise: str, ending: str, content: str
) -> None:
    """Write a file, named after the label that text refers to the node by, and link it behind the node."""
    name = (node["names"][0] if node.get("names") else otherwise) + ending
    path = Path(app.outdir) / FOLDER / kind / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    address = "../" * docname.count("/") + f"{FOLDER}/{kind}/{name}"
    link = f'<a href="{html.escape(address)}" download>{html.escape(name)}</a>'
    raw = nodes.raw("", f'<p class="take-along">Download {link}</p>', format="html")
    node.parent.insert(node.parent.index(node) + 1, raw)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", clear)
    app.connect("doctree-resolved", offer, priority=900)
    return {"version": envprobe_core.__version__, "parallel_read_safe": True, "parallel_write_safe": True}
