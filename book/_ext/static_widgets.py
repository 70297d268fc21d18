"""Sphinx extension: puts the front ends of widgets into the pages that hold them, and into no others.

The state of a widget is in the page already: see `envprobe_core.widgets.host`.
"""

import json
import re
from typing import Any

from sphinx.application import Sphinx

import envprobe_core
from envprobe_core.reproduce.sections import file_digest
from envprobe_core.widgets.host import FOLDER, module_text, style_sheets

_WIDGET = re.compile(r'<div class="static-widget" id="[^"]*" data-module="([\w-]+)">')


def add_modules(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], _: object) -> None:
    """Give a page the modules that its widgets need (event ``html-page-context``)."""
    names = sorted(set(_WIDGET.findall(context.get("body", ""))))
    if names:
        modules = json.dumps({name: module_text(name) for name in names}).replace("<", "\\u003c")
        app.add_js_file(None, body=f"window.WIDGET_MODULES = {modules};", priority=700)
        app.add_js_file("static-widgets.js", priority=701, loading_method="defer")
        for sheet in dict.fromkeys(file for name in names for file in style_sheets(name)):
            app.add_css_file(sheet, priority=700)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    # a changed front end is a reason to write the pages again
    app.add_config_value("widget_modules", file_digest(FOLDER, ["*.js"]), "html")
    app.connect("html-page-context", add_modules)
    return {"version": envprobe_core.__version__, "parallel_read_safe": True, "parallel_write_safe": True}
