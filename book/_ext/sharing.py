"""Sphinx extension: what leaves a page: tables as CSV, figures as SVG, and the preview of a shared link.

The files are written by the build, from what the page shows, to ``_downloads/``, and linked beside it. Behind
each stands a script that hands over its text: from a folder a browser saves nothing else (``reader.js``).
The preview has a picture, drawn from the numbers of one figure.
"""

import csv
import io
import json
import re
from collections import Counter
from functools import cache
from html import escape, unescape
from pathlib import Path
from textwrap import fill
from typing import Any
from urllib.parse import urljoin

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from envprobe_book.pages.figures import FIGURE_CLASS
from envprobe_book.pages.markup import FIXED, MINUS, UNBROKEN
from envprobe_book.reproduce.build import DOWNLOADS

logger = logging.getLogger(__name__)

TABLES, FIGURES = "tables", "figures"
LONGEST_PREVIEW = 200  # characters
HERO = "executed/what-we-found", "fig-hero"  # what a shared link shows: a page, and the name of its figure
PICTURE, WIDTH, HEIGHT = "_static/preview.png", "1200", "630"  # pixels, what those who show links ask for
HANDED = "document.currentScript.dispatchEvent(new CustomEvent('file', {{detail: {}}}));\n"
DATA = re.compile(r'<script type="application/json">(.*?)</script>', re.DOTALL)
_SVG = re.compile(rf'<svg class="{FIGURE_CLASS}".*?</svg>', re.DOTALL)
_STYLE = re.compile(r' style="[^"]*"', re.DOTALL)
_INK = re.compile(r"var\(--ink-([0-9a-f]{6})(?:, #\1)?\)")
_PLAIN = str.maketrans({MINUS: "-", FIXED: " ", UNBROKEN: "-"})


def as_csv(table: nodes.table) -> str:
    """Return a table's cells as CSV, with plain minus signs and spaces, without the caption."""
    buffer = io.StringIO()
    for row in table.findall(nodes.row):
        cells = (" ".join(entry.astext().translate(_PLAIN).split()) for entry in row.children)
        csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue()


def as_file(svg: str) -> str:
    """Return a figure of a page as a file of its own: dark on white, whatever the page's colours."""
    head, rest = svg.split(">", 1)
    head = _STYLE.sub(' font-family="sans-serif" style="background: #fff"', head, count=1)
    text = f"{head}>{rest}".replace("currentColor", "#000000")
    return _INK.sub(r"#\1", text.replace("var(--pst-color-background, #fff)", "#ffffff"))


def offer(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Write the files of one page and link them behind table and figure (event ``doctree-resolved``)."""
    if app.builder.format != "html":
        return
    found = []
    if docname.startswith("executed/"):
        found = [(TABLES, table, as_csv(table)) for table in doctree.findall(nodes.table)]
    for raw in doctree.findall(nodes.raw):
        for svg in _SVG.findall(raw.astext()) if raw.get("format") == "html" else ():
            figure = raw
            while figure is not None and not isinstance(figure, nodes.figure):
                figure = figure.parent
            found.append((FIGURES, raw if figure is None else figure, as_file(svg)))
    taken: Counter[str] = Counter()  # a figure may hold several drawings
    page, count = docname.replace("/", "-").removeprefix("executed-"), dict.fromkeys((TABLES, FIGURES), 0)
    for kind, node, content in found:
        count[kind] += 1
        names = node.get("names") or [f"{page}-{kind.rstrip('s')}-{count[kind]}"]  # as text refers to it
        taken[names[0]] += 1
        name = names[0] if taken[names[0]] == 1 else f"{names[0]}-{taken[names[0]]}"
        path = Path(DOWNLOADS, kind, name + {TABLES: ".csv", FIGURES: ".svg"}[kind])
        (app.outdir / path).parent.mkdir(parents=True, exist_ok=True)
        (app.outdir / path).write_text(content, encoding="utf-8")
        (app.outdir / f"{path}.js").write_text(HANDED.format(json.dumps(content)), encoding="utf-8")
        address = "../" * docname.count("/") + path.as_posix()
        link = f'Download <a href="{escape(address)}" download>{escape(path.name)}</a>'
        raw = nodes.raw("", f'<p class="take-along">{link}</p>', format="html")
        node.parent.insert(node.parent.index(node) + taken[names[0]], raw)


@cache
def picture(app: Sphinx) -> str:
    """Draw the picture that shared links show; return what it shows, or nothing."""
    page, name = HERO
    if app.builder.format != "html" or page not in app.env.found_docs:
        return ""
    cells = json.loads(Path(app.env.doc2path(page)).read_text(encoding="utf-8"))["cells"]
    found = ((cell, cell["metadata"].get("mystnb", {}).get("figure", {})) for cell in cells)
    cell, figure = next((cell, figure) for cell, figure in found if figure.get("name") == name)
    shown = next(out["data"] for out in cell["outputs"] if "text/html" in out["data"])
    data = json.loads(DATA.search("".join(shown["text/html"]))[1])
    path = Path(app.outdir) / PICTURE
    path.parent.mkdir(parents=True, exist_ok=True)
    draw(data, app.config.html_title, figure["caption"], path)
    return "".join(shown["text/plain"])


def draw(data: dict[str, Any], title: str, caption: str, out: Path) -> None:
    """Write a live figure of rows with intervals as PNG, beside a title and a sentence, in light colours.

    Args:
        data: as the page holds it: `rows` with panel, name, estimate and what the paper prints.
        title: of the book.
        caption: of the figure.
        out: the file.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(int(WIDTH) / 100, int(HEIGHT) / 100), dpi=100, facecolor="white")
    figure.text(0.035, 0.92, fill(title, 19), size=36, weight="bold", va="top", linespacing=1.2)
    figure.text(0.035, 0.54, fill(caption, 38), size=17, va="top", linespacing=1.35)
    axes, place, left = figure.add_axes((0.62, 0.13, 0.35, 0.83)), 0.0, None
    beside = {"transform": axes.get_yaxis_transform(), "ha": "right", "va": "center", "size": 14}
    panels = list(dict.fromkeys(row["panel"] for row in data["rows"]))
    for row in sorted(data["rows"], key=lambda row: panels.index(row["panel"])):
        if row["panel"] != left:
            left, place = row["panel"], place + 1.3
            axes.text(-0.03, place, left, weight="bold", **beside)
        place += 1
        axes.text(-0.03, place, row["name"], **beside)
        value = row["found"]["value"]
        axes.plot([value["low"], value["high"]], [place, place], color="#111", linewidth=2.5)
        axes.plot(value["value"], place, "o", color="#111", markersize=9)
        if row["printed_value"] is not None:
            axes.plot(row["printed_value"], place, "D", color="white", mec="#111", markersize=8)
    axes.axvline(data["line"], color="#666", linewidth=1)
    axes.set(ylim=(place + 0.7, 0.6), yticks=[])
    axes.set_xlabel(data["label"], size=14)
    axes.tick_params(labelsize=14)
    axes.spines[["left", "right", "top"]].set_visible(False)
    FigureCanvasAgg(figure).print_png(out, metadata={"Software": None})


def describe(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Give a page what a shared link shows (event ``html-page-context``)."""
    first = next(doctree.findall(nodes.paragraph), None) if doctree is not None else None
    text = " ".join(first.astext().split()) if first is not None else ""
    if len(text) > LONGEST_PREVIEW:
        text = text[:LONGEST_PREVIEW].rpartition(" ")[0] + " ..."
    title = unescape(re.sub(r"<[^>]*>", "", context.get("title", "")))
    named = {"description": text}
    properties = {"description": text, "type": "article", "title": title, "site_name": app.config.html_title}
    if alt := picture(app):
        # those who show links want a whole address; without `html: baseurl:` in _config.yml none is known
        base = app.config.html_baseurl
        address = urljoin(base.rstrip("/") + "/", PICTURE) if base else context["pathto"](PICTURE, 1)
        properties |= {"image": address, "image:alt": alt, "image:width": WIDTH, "image:height": HEIGHT}
        named["twitter:card"] = "summary_large_image"
    tags = [f'<meta name="{name}" content="{escape(value)}">' for name, value in named.items() if value]
    tags += [f'<meta property="og:{name}" content="{escape(v)}">' for name, v in properties.items() if v]
    context["metatags"] = context.get("metatags", "") + "\n".join(tags)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("doctree-resolved", offer, priority=900)
    app.connect("html-page-context", describe)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
