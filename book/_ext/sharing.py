"""Sphinx extension: what leaves a page: tables as CSV, figures as SVG, and the preview of a shared link.

The files are written by the build, from what the page shows, to ``_downloads/``, and linked beside it: they
work from a folder as they do from a server. The preview has a picture of the book's first figure, where there
is a Chromium to take it.
"""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import tempfile
from functools import cache
from html import escape, unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from envprobe_book.pages.figures import FIGURE_CLASS
from envprobe_book.pages.markup import FIXED, MINUS, UNBROKEN
from envprobe_book.reproduce.build import DOWNLOADS
from envprobe_core.files import working_folder

logger = logging.getLogger(__name__)

TABLES, FIGURES = "tables", "figures"
LONGEST_PREVIEW = 200  # characters
HERO = "executed/what-we-found", "fig-hero"  # what a shared link shows: a page, and the name of its figure
PICTURE, WIDTH, HEIGHT = "_static/preview.png", "1200", "630"  # pixels, what those who show links ask for
_PICTURE_PAGE = """<!DOCTYPE html><html data-theme="light"><meta charset="utf-8"><style>
body {{ display: flex; gap: 40px; align-items: center; margin: 0; padding: 40px; width: 1120px; height: 550px;
  font-family: "Liberation Sans", Arial, sans-serif; color: #111; background: #fff; }}
h1 {{ font-size: 60px; line-height: 1.15; margin: 0 0 30px; }}
p {{ font-size: 28px; line-height: 1.35; margin: 0; }}
.live-link {{ display: none; }} svg {{ height: 550px !important; min-width: 590px !important; }}
</style><div><h1>{title}</h1><p>{caption}</p></div><div>{figure}</div></html>"""
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")  # its names, by system
LONGEST_PICTURE = 120.0  # seconds that taking it may last
_OPTIONS = (
    "--headless", "--disable-gpu", "--no-first-run", "--hide-scrollbars", "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # nobody is asked for anything
    f"--window-size={WIDTH},{HEIGHT}",
)  # fmt: skip
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
    page, count = docname.replace("/", "-").removeprefix("executed-"), dict.fromkeys((TABLES, FIGURES), 0)
    for kind, node, content in found:
        count[kind] += 1
        names = node.get("names") or [f"{page}-{kind.rstrip('s')}-{count[kind]}"]  # as text refers to it
        path = Path(DOWNLOADS, kind, names[0] + {TABLES: ".csv", FIGURES: ".svg"}[kind])
        (app.outdir / path).parent.mkdir(parents=True, exist_ok=True)
        (app.outdir / path).write_text(content, encoding="utf-8")
        address = "../" * docname.count("/") + path.as_posix()
        link = f'Download <a href="{escape(address)}" download>{escape(path.name)}</a>'
        raw = nodes.raw("", f'<p class="take-along">{link}</p>', format="html")
        node.parent.insert(node.parent.index(node) + 1, raw)


@cache
def picture(app: Sphinx) -> str:
    """Take the picture that shared links show, in light colours; return what it shows, or nothing."""
    page, name = HERO
    if app.builder.format != "html" or page not in app.env.found_docs:
        return ""
    cells = json.loads(Path(app.env.doc2path(page)).read_text(encoding="utf-8"))["cells"]
    found = ((cell, cell["metadata"].get("mystnb", {}).get("figure", {})) for cell in cells)
    cell, figure = next((cell, figure) for cell, figure in found if figure.get("name") == name)
    shown = next(out["data"] for out in cell["outputs"] if "text/html" in out["data"])
    title, caption = escape(app.config.html_title), escape(figure["caption"])
    text = _PICTURE_PAGE.format(title=title, caption=caption, figure="".join(shown["text/html"]))
    path = Path(app.outdir) / PICTURE
    path.parent.mkdir(parents=True, exist_ok=True)
    if fault := take_picture(text, path):
        logger.info("no picture for shared links: %s", fault)
        return ""
    return "".join(shown["text/plain"])


def take_picture(page: str, out: Path) -> str:
    """Write what Chromium shows of a page of HTML as PNG; return why there is no picture, or nothing."""
    browser = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if browser is None:
        return "this system has no Chromium"
    as_root = ["--no-sandbox"] if os.getuid() == 0 else []
    with tempfile.TemporaryDirectory(dir=working_folder(), ignore_cleanup_errors=True) as folder:
        source, made = Path(folder, "page.html"), Path(folder, "made.png")
        source.write_text(page, encoding="utf-8")
        given = [f"--user-data-dir={folder}/profile", f"--screenshot={made}", source.as_uri()]
        try:
            done = subprocess.run(
                [browser, *_OPTIONS, *as_root, *given],
                env={**os.environ, "HOME": folder, "TMPDIR": folder},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=LONGEST_PICTURE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"{browser} took none within {LONGEST_PICTURE:.0f} s"
        if done.returncode or not made.exists():
            return f"{browser} took none (exit code {done.returncode})"
        shutil.copyfile(made, out)
    return ""


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
