"""The front end of live figures: the scripts that a page loads, and the same as one widget for JupyterLab."""

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any

import anywidget
import traitlets
from markdown_it import MarkdownIt

from envprobe_book.page_engine import HERE as ENGINE_FOLDER
from envprobe_book.page_engine import inline_page_engine
from envprobe_book.pages.figures import palette
from envprobe_book.pages.markup import LIVE, span_of
from envprobe_book.reproduce.sections import ROOT
from envprobe_book.widgets.host import page_tools

HERE = Path(__file__).parent
SCRIPT, STYLES = "page-live.js", ("live.css", "bar.css", "explorer.css")
"""What a page with a live figure loads, after the engine."""


def front_end() -> str:
    """The scripts of live figures as one text, in the order in which they use each other."""
    ours = (
        "estimates", "draw", "telling", "bar", "answering", "live", "front", "plane", "looks", "walking",
        "explorer", "shown",
    )  # fmt: skip
    files = [ENGINE_FOLDER / "statistics.js", *(HERE / f"{name}.js" for name in ours)]
    return "\n".join([page_tools(), *(file.read_text(encoding="utf-8") for file in files)])


@cache
def _module() -> str:
    """The front end as anywidget takes it; what is loaded once serves all figures of a notebook."""
    scripts = f"{inline_page_engine()}\n{front_end()}"
    edition = hashlib.sha256(scripts.encode()).hexdigest()[:16]
    return (
        f"function load() {{\n{scripts}\n}}\n"
        "export default {\n"
        "  render({ model, el }) {\n"
        f'    if (globalThis.EnvProbe?.edition !== "{edition}") {{\n'
        "      load();\n"
        f'      globalThis.EnvProbe.edition = "{edition}";\n'
        "    }\n"
        '    return globalThis.EnvProbe[model.get("front")].show(el, model.get("state"));\n'
        "  },\n"
        "};\n"
    )


class LabFigure(anywidget.AnyWidget):
    """A live figure in JupyterLab: the same front end as in the book, with no question to the kernel."""

    front = traitlets.Unicode("live").tag(sync=True)
    state = traitlets.Dict().tag(sync=True)


class LabSentence(anywidget.AnyWidget):
    """A sentence in JupyterLab: any figure of the notebook says it anew, or what it belongs to."""

    _esm = """export default {
  render({ model, el }) {
    el.innerHTML = model.get("html");
    globalThis.EnvProbe?.live?.follow();
  },
};
"""
    html = traitlets.Unicode().tag(sync=True)


_BOX = re.compile(r":::\{admonition\} (?P<title>.*)\n:class: .*\n\n(?P<body>(?s:.*))\n:::")


def lab_html(markdown: str) -> str:
    r"""Sentences in Markdown as HTML, with what their marks say: a notebook's own Markdown knows no marks.

    A formula between dollars stands in italics, which does for the symbols that sentences have. A box is a
    quotation.

    >>> lab_html("Without $c$ it is **ahead**.")
    '<p>Without <em>c</em> it is <strong>ahead</strong>.</p>\n'
    >>> lab_html(":::{admonition} Take away\n:class: tip\n\nIt pays.\n:::")
    '<blockquote>\n<p><strong>Take away</strong></p>\n<p>It pays.</p>\n</blockquote>\n'
    """
    if box := _BOX.fullmatch(markdown):
        lines = f"**{box['title']}**\n\n{box['body']}".splitlines()
        markdown = "\n".join(f"> {line}" for line in lines)
    rendered = re.sub(r"\$([^$]+)\$", r"<em>\1</em>", MarkdownIt().render(markdown))
    return re.sub(rf'<a href="{LIVE}:([^"]*)"></a>', lambda mark: span_of(mark[1]), rendered)


def lab_sentence(markdown: str, **keywords: Any) -> dict[str, Any]:
    """What JupyterLab shows of sentences with marks: a widget, by the kinds of output it has."""
    data, _ = LabSentence(html=lab_html(markdown))._repr_mimebundle_(**keywords) or ({}, {})
    return dict(data)


def lab_widget(state: dict[str, Any], front: str = "live") -> LabFigure:
    """The widget of what `as_data` describes: a figure, or with the front `explorer` the explorer."""
    if "_esm" not in LabFigure.__dict__:
        LabFigure._esm = _module()
        sheets = (ROOT / "book" / "assets" / name for name in STYLES)
        LabFigure._css = "\n".join([palette(), *(sheet.read_text(encoding="utf-8") for sheet in sheets)])
    return LabFigure(state=state, front=front)
