"""Sphinx extension: *Run it here* at the foot of every executed section, and the page that does it for all.

A section's notebook lists what its engine ran (`envprobe_book.reproduce.reruns`). The page carries the list,
a button and, in any case, what was run in another way and cannot be run again in a page.
"""

import html
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from docutils import nodes
from foot import EXECUTED, records
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import envprobe_core
from envprobe_book.page_engine import HERE
from envprobe_book.pages.markup import script_json
from envprobe_book.reproduce.reruns import RERUN

RUNNER, STYLE = "page-rerun.js", "rerun.css"
BEFORE_THE_ENGINE = 400  # of the event's listeners: the engine's looks for `data-engine` in what stands then
AFTER_THE_ENGINE = 695  # of scripts


def part(rerun: Mapping[str, Any], name: str, digest: str) -> dict[str, Any]:
    """Return what a page's script needs of a section."""
    kept = ("cells", "episodes", "packed", "elsewhere")
    return {"name": name, "inputs_sha256": digest} | {key: rerun[key] for key in kept}


def as_html(sections: list[dict[str, Any]], *, whole: bool = False) -> str:
    """Return the button, bar and result for the lists of some sections, as HTML."""
    cells, episodes = (sum(one[name] for one in sections) for name in ("cells", "episodes"))
    told = [
        f"<li>{html.escape(one['name'] + ': ' if whole else '')}{html.escape(kind)}: {count:,}</li>"
        for one in sections
        for kind, count in one["elsewhere"]
    ]
    content = script_json({"version": envprobe_core.__version__, "sections": sections})
    place = "this book" if whole else "this section"
    also = f"<p>Not run here:</p><ul>{''.join(told)}</ul>" if told else ""
    button = '<button type="button" class="rerun-{0}" hidden{2}>{1}</button>'
    save = button.format("save", "Save the receipt", "") if whole else ""
    title = "" if whole else '<h2 id="run-it-here">Run it here</h2>'
    runs = button.format("start", "Re-execute this book" if whole else "Run it here", " data-run-here")
    return (
        f'<div class="rerun" data-engine role="group" aria-label="Run {place} here">{title}'
        f"<p>This page can run the {cells:,} conditions of {place} again, {episodes:,} episodes, and compare "
        "a digest of each with the book's.</p>"
        f"<p>{runs} {button.format('cancel', 'Cancel', '')} {save}</p>"
        '<progress class="rerun-bar" max="1" value="0" aria-label="Episodes that were run" hidden></progress>'
        '<p class="rerun-result" role="status" aria-live="polite"></p><ul class="rerun-faults"></ul>'
        f'{also}<script type="application/json">{content}</script></div>'
    )


class ReExecute(SphinxDirective):
    """``{re-execute}``: the lists of all executed sections, for the page that runs them all."""

    def run(self) -> list[nodes.Node]:
        """One block of HTML."""
        found = records(self.env)
        for docname in found:
            self.env.note_dependency(str(self.env.doc2path(docname)))
        parts = [
            part(record[RERUN], record["section"], record["inputs_sha256"])
            for record in found.values()
            if RERUN in record
        ]
        return [nodes.raw("", as_html(parts, whole=True), format="html")]


def add_rerun(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], _: object) -> None:
    """Give a section its button, and a page that has one its script and style."""
    record = records(app.env).get(pagename) or {} if pagename.startswith(EXECUTED) else {}
    if app.builder.format == "html" and record.get(RERUN, {}).get("cells"):  # a page may run nothing itself
        own = part(record[RERUN], record["section"], record["inputs_sha256"])
        context["body"] = context.get("body", "") + as_html([own])
    if '<div class="rerun" data-engine' not in context.get("body", ""):
        return
    target = Path(app.outdir) / "_static" / RUNNER
    text = (HERE / "rerun.js").read_text(encoding="utf-8")
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    app.add_js_file(RUNNER, priority=AFTER_THE_ENGINE, loading_method="defer")
    app.add_css_file(STYLE)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("re-execute", ReExecute)
    app.connect("html-page-context", add_rerun, priority=BEFORE_THE_ENGINE)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
