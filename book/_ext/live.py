"""Sphinx extension: the engine for the pages that ask for it, and for no other.

A page asks by an element with the attribute ``data-engine``. It loads ``_static/page-engine.js``, one file
for the whole book; a world's module lies beside it and is loaded when the page first runs that world. Where
this machine can make no engine, pages keep what is printed.
"""

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from envprobe_book.page_engine import HERE, SCRIPT, write_page_engine
from envprobe_book.reproduce.sections import file_digest
from envprobe_core.engine.numba_support import EDITION

FIRST = 690  # before the scripts that use it
_ASKS = re.compile(r"<[^>]*\sdata-engine\b")


def add_engine(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], _: object) -> None:
    """Give a page that asks for it the engine's script, which is written with the first."""
    if app.builder.format != "html" or not _ASKS.search(context.get("body", "")):
        return
    written = app.env.temp_data.get(SCRIPT)
    if written is None:
        written = app.env.temp_data[SCRIPT] = bool(write_page_engine(Path(app.outdir) / "_static"))
    if written:
        app.add_js_file(SCRIPT, priority=FIRST, loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    # a changed engine is a reason to write the pages again
    app.add_config_value("page_engine", f"{EDITION} {file_digest(HERE, ['*.js', '*.py'])}", "html")
    app.connect("html-page-context", add_engine)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
