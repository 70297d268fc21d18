"""Sphinx extension: what holds for every page of the companion.

An image without a description is a warning (which the build treats as an error), a link that is no address
is text, and a page has the front ends of the widgets that it holds. MathJax comes from the book itself. The
addresses of pages that were merged lead to the pages that hold them now: ``book/redirects.yml`` has a line
``old: new`` for each. Pages work from a folder as they do from a server.
"""

import posixpath
import re
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from docutils import nodes
from myst_nb.ext.glue.utils import PendingGlueReference
from sphinx.application import Sphinx
from sphinx.util import logging

from envprobe_book.pages.figures import palette
from envprobe_book.pages.markup import script_json
from envprobe_book.reproduce.sections import file_digest
from envprobe_book.widgets.host import FOLDER, module_text, style_sheets
from envprobe_core.files import copy_tree

logger = logging.getLogger(__name__)

PALETTE = "palette.css"
SCHEMES = ("", "http", "https", "mailto")
CORRECTIONS = (
    # browsers refuse preloaded fonts to a page opened as a file; the style sheets load the same fonts
    (r'[ \t]*<link rel="preload" as="font"[^>]*>\n?', ""),
    # which draw every icon: the theme's script that draws them a second time is half a megabyte a page
    (r"[ \t]*<script [^>]*/fontawesome/[^>]*></script>\n?", ""),
    # a list whose children are no list items, of docutils
    ('<div role="list" class="citation-list">', '<div class="citation-list">'),
    # one name for many places: of proofs and exercises, and of a title after its statement
    (r'(<section(?: class="[\w-]+")?) id="(?:proof|exercise|solution)-content"', r"\1"),
    (r'(<p class="admonition-title") id="[^"]*"', r"\1"),
)
"""What the tools write in each page, and what stands there instead."""
MOVED = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>This page has moved</title>
<meta name="robots" content="noindex"><link rel="canonical" href="{new}">
<meta http-equiv="refresh" content="1; url={new}{part}">
<script>location.replace("{new}" + (location.hash || "{part}"));</script></head>
<body><p>This page is now part of <a href="{new}{part}">another one</a>.</p></body></html>
"""
_WIDGET = re.compile(r'<div class="static-widget" id="[^"]*" data-module="([\w-]+)"')


def check(app: Sphinx, doctree: nodes.document) -> None:
    """Warn of images that a reader who cannot see would miss; make text of links that are no address."""
    for image in doctree.findall(nodes.image):
        if not str(image.get("alt", "")).strip():
            logger.warning("image without alt text: %s", image.get("uri"), location=image)
    for link in list(doctree.findall(nodes.reference)):  # data may hold any
        scheme = urlsplit("".join(link.get("refuri", "").split())).scheme.lower()
        if scheme not in SCHEMES:
            logger.info("link to %s: is made text", scheme, location=link)
            link.replace_self(nodes.inline("", "", *link.children))


def follow_glued(app: Sphinx, doctree: nodes.document) -> None:
    """Make a page depend on those that it takes something from (``glue`` with ``:doc:``)."""
    for taken in doctree.findall(PendingGlueReference):
        app.env.note_dependency(str(app.env.doc2path(taken.refdoc)))


def add_widgets(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], _: object) -> None:
    """Give a page the book's colours and the front ends of its widgets (`envprobe_book.widgets.host`)."""
    sheet = Path(app.outdir) / "_static" / PALETTE
    if app.builder.format == "html" and not sheet.exists():
        sheet.write_text(palette(), encoding="utf-8")
    app.add_css_file(PALETTE, priority=600)
    names = sorted(set(_WIDGET.findall(context.get("body", ""))))
    if names:
        modules = script_json({name: module_text(name) for name in names})
        app.add_js_file(None, body=f"window.WIDGET_MODULES = {modules};", priority=700)
        app.add_js_file("static-widgets.js", priority=701, loading_method="defer")
        for sheet in dict.fromkeys(file for name in names for file in style_sheets(name)):
            app.add_css_file(sheet, priority=700)


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Correct each page, write those that redirect, and copy MathJax: the 1.8 MB that TeX to CHTML needs."""
    if exception is not None or app.builder.format != "html":
        return
    out, listed = Path(app.outdir), Path(app.srcdir) / "redirects.yml"
    for page in out.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for wrong, right in CORRECTIONS:
            text = re.sub(wrong, right, text)
        page.write_text(text, encoding="utf-8")
    for old, new in (yaml.safe_load(listed.read_text("utf-8")) if listed.exists() else None or {}).items():
        name, _, part = new.partition("#")
        if name not in app.env.found_docs or old in app.env.found_docs:
            logger.warning("redirects.yml: %s to %s: the first must be gone, the second a page", old, new)
            continue
        address = posixpath.relpath(f"{name}.html", posixpath.dirname(old) or ".")
        (out / old).parent.mkdir(exist_ok=True)
        page = MOVED.format(new=address, part=f"#{part}" if part else "")
        (out / f"{old}.html").write_text(page, encoding="utf-8")
    source, target = Path(str(files("sphinx-mathjax-offline") / "static/mathjax")), out / "_static/mathjax"
    fonts, script = "output/chtml/fonts", "tex-chtml-full.js"
    copy_tree(source / fonts, target / fonts)
    shutil.copyfile(source / script, target / script)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    # a changed front end is a reason to write the pages again
    app.add_config_value("widget_modules", file_digest(FOLDER, ["*.js"]), "html")
    app.connect("doctree-read", check)
    app.connect("doctree-read", follow_glued)
    app.connect("html-page-context", add_widgets)
    app.connect("build-finished", finish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
