"""Sphinx extension: corrects what the tools write that keeps some readers out (found by axe-core)."""

from typing import Any

from sphinx.application import Sphinx

import envprobe_core

CORRECTIONS = {
    # docutils: a list whose children are no list items
    '<div role="list" class="citation-list">': '<div class="citation-list">'
}
"""What is written instead of what."""


def correct(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object) -> None:
    """Mend the text of a page (event ``html-page-context``)."""
    for wrong, right in CORRECTIONS.items():
        if "body" in context:
            context["body"] = context["body"].replace(wrong, right)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("html-page-context", correct)
    return {"version": envprobe_core.__version__, "parallel_read_safe": True, "parallel_write_safe": True}
