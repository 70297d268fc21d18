"""Sphinx extension: the addresses of pages that were merged lead to the pages that hold them now.

``book/redirects.yml`` has a line ``old: new`` for each, as they stand in the contents, the new one with
its part behind ``#`` where it is one; what stands after ``#`` in the address is kept.
"""

import posixpath
from pathlib import Path
from typing import Any

import yaml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>This page has moved</title>
<meta name="robots" content="noindex"><link rel="canonical" href="{new}">
<meta http-equiv="refresh" content="1; url={new}{part}">
<script>location.replace("{new}" + (location.hash || "{part}"));</script></head>
<body><p>This page is now part of <a href="{new}{part}">another one</a>.</p></body></html>
"""


def write(app: Sphinx, exception: Exception | None) -> None:
    """Write a page at each old address."""
    listed = Path(app.srcdir) / "redirects.yml"
    if exception is not None or app.builder.format != "html" or not listed.exists():
        return
    for old, new in (yaml.safe_load(listed.read_text("utf-8")) or {}).items():
        known = app.env.found_docs
        name, _, part = new.partition("#")
        if name not in known or old in known:
            logger.warning("redirects.yml: %s to %s: the first must be gone, the second a page", old, new)
            continue
        address = posixpath.relpath(f"{name}.html", posixpath.dirname(old) or ".")
        page = PAGE.format(new=address, part=f"#{part}" if part else "")
        place = Path(app.outdir) / f"{old}.html"
        place.parent.mkdir(exist_ok=True)
        place.write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages when all others are there."""
    app.connect("build-finished", write)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
