"""Sphinx extension: the engine for the pages that ask for it, live figures, and the reader's own policy.

A page asks by an element with the attribute ``data-engine``. It loads ``_static/page-engine.js``, one file
for the whole book; a world's module lies beside it and is loaded when the page first runs that world. A page
with a figure of `envprobe_book.live_figures` loads that package's scripts too. Where this machine can make no
engine, pages keep what is printed.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxRole

from envprobe_book.classroom import policy_page
from envprobe_book.live_figures import scripts as live_figures
from envprobe_book.page_engine import HERE, SCRIPT, write_page_engine
from envprobe_book.pages import other_seeds
from envprobe_book.pages.markup import LIVE, MARK, span_of
from envprobe_book.reproduce.sections import file_digest
from envprobe_core.compiled.compiled_files import EDITION

BEFORE_THE_CHECK = 400  # of links: the marks are no addresses
FIRST = 690  # before the scripts that use it
AFTER_THE_ENGINE = 695
_ASKS = re.compile(r"<[^>]*\sdata-engine\b")
_OWN = re.compile(r'<[^>]*\sclass="own-policy"')
_SEEDS = re.compile(r'<[^>]*\sclass="other-seeds"')
_LIVE = re.compile(r'<[^>]*\sclass="[^"]*\blive-(?:figure|plane|looks|worths|walk|explorer)\b')


def mark_sentences(app: Sphinx, doctree: nodes.document) -> None:
    """Make of the marks around a sentence (`pages.markup`, `telling`) what the page's script looks for."""
    for link in list(doctree.findall(nodes.reference)):
        scheme, _, told = str(link.get("refuri", "")).partition(":")
        if scheme != LIVE:
            continue
        link.replace_self(nodes.raw("", span_of(told), format="html"))


def take_marks_away(app: Sphinx, error: Exception | None) -> None:
    """Leave no marks in the notebooks that pages offer: other hosts write out their addresses."""
    if error or app.builder.format != "html":
        return
    for path in (Path(app.outdir) / "_sources" / "executed").glob("*.ipynb"):
        text = path.read_text(encoding="utf-8")
        if (plain := MARK.sub("", text)) != text:
            path.write_text(plain, encoding="utf-8")


class AtSetting(SphinxRole):
    """``{at}`words <PAGE?SETTING#PLACE>` ``: a link to a page of the book at a reader's setting.

    PAGE is a document's name from the book's root; a page that does not exist is a warning.
    """

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """The link, as a browser takes it."""
        words, _, target = self.text.rpartition(" <")
        target = target.removesuffix(">")
        page = re.split("[?#]", target, maxsplit=1)[0]
        if not words or page not in self.env.found_docs:
            said = f"at: {self.text!r} is not `words <PAGE?SETTING>` with a page of the book"
            return [], [self.inliner.reporter.warning(said, line=self.lineno)]
        home = posixpath.dirname(self.env.docname)
        address = f"{posixpath.relpath(page, home or '.')}.html{target.removeprefix(page)}"
        return [nodes.reference("", words, refuri=address, classes=["at-setting"])], []


def add_engine(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], _: object) -> None:
    """Give a page that asks for it the engine's script, which is written with the first."""
    if app.builder.format != "html" or not _ASKS.search(context.get("body", "")):
        return
    written = app.env.temp_data.get(SCRIPT)
    if written is None:
        written = app.env.temp_data[SCRIPT] = bool(write_page_engine(Path(app.outdir) / "_static"))
    if not written:
        return
    app.add_js_file(SCRIPT, priority=FIRST, loading_method="defer")
    asks_seeds = _SEEDS.search(context["body"])
    if asks_seeds or _LIVE.search(context["body"]):
        add_front_end(app, live_figures.SCRIPT, live_figures.front_end(), *live_figures.STYLES)
    if asks_seeds:
        add_front_end(app, other_seeds.SCRIPT, other_seeds.script(), *other_seeds.STYLES)
    if _OWN.search(context["body"]):
        add_front_end(app, policy_page.SCRIPT, policy_page.policy_script(), policy_page.STYLE)


def add_front_end(app: Sphinx, name: str, text: str, *sheets: str) -> None:
    """Give a page a script that runs on the engine, which is written with the first, and its style sheets."""
    target = Path(app.outdir) / "_static" / name
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        target.write_text(text, encoding="utf-8")
    app.add_js_file(name, priority=AFTER_THE_ENGINE, loading_method="defer")
    for sheet in sheets:
        app.add_css_file(sheet)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    # a changed engine is a reason to write the pages again
    ours = (HERE, live_figures.HERE, policy_page.HERE, other_seeds.HERE)
    digests = [file_digest(folder, ["*.js", "*.py"]) for folder in ours]
    app.add_config_value("page_engine", " ".join([EDITION, *digests]), "html")
    app.add_role("at", AtSetting())
    app.connect("doctree-read", mark_sentences, priority=BEFORE_THE_CHECK)
    app.connect("html-page-context", add_engine)
    app.connect("build-finished", take_marks_away)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
