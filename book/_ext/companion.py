"""Sphinx extension of the companion book.

It says on every page how that page's numbers were made, lists all sections on the provenance
page, serves MathJax from the book itself, and turns an image without a description into a warning
(which the build treats as an error). Pages work from a folder as they do from a server.
"""

import importlib.util
import re
import shlex
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

import envprobe_core
from envprobe_core.reproduce.sections import stored_record

logger = logging.getLogger(__name__)

EXECUTED = "executed/"
SCHEMES = ("", "http", "https", "mailto")
LABELS = {
    "profile": "Agent profile",
    "protocol": "Protocol",
    "seeds": "Seeds",
    "regime": "Regime",
    "resamples": "Bootstrap resamples",
}
"""What every page states, by the parameter that holds it."""
CORRECTIONS = (
    # browsers refuse preloaded fonts to a page opened as a file; the style sheets load the same fonts
    (r'[ \t]*<link rel="preload" as="font"[^>]*>\n?', ""),
    # which draw every icon: the theme's script that draws them a second time is half a megabyte a page
    (r"[ \t]*<script [^>]*/fontawesome/[^>]*></script>\n?", ""),
    # a list whose children are no list items, of docutils
    ('<div role="list" class="citation-list">', '<div class="citation-list">'),
)
"""What the tools write in each page, and what stands there instead."""


class ProvenanceTable(SphinxDirective):
    """``{provenance-table}``: every executed section, what it ran with, and the hash it carries."""

    def run(self) -> list[nodes.Node]:
        """One table with a row for each section of the table of contents."""
        group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in range(3)), cols=3)
        head = [nodes.Text(text) for text in ("Section", "Parameters", "Inputs (SHA-256)")]
        body = nodes.tbody("")
        for docname, record in records(self.env).items():
            self.env.note_dependency(str(self.env.doc2path(docname)))  # the table follows the notebooks
            name = nodes.literal(text=record["section"])
            link = make_refnode(self.env.app.builder, self.env.docname, docname, "", name)
            values = [
                f"{name} = {value}" + ("" if value == record["defaults"][name] else " (changed)")
                for name, value in record["parameters"].items()
            ]
            digest = nodes.literal(text=record["inputs_sha256"][:12])
            body += _row([link, nodes.Text("; ".join(values)), digest])
        group += [nodes.thead("", _row(head)), body]
        return [nodes.table("", group)]


def _row(cells: list[nodes.Node]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", "", cell)) for cell in cells))


def records(env: BuildEnvironment) -> dict[str, dict[str, Any]]:
    """What each executed page of the book says of its own making, by document name."""
    found = {}
    for docname in sorted(name for name in env.found_docs if name.startswith(EXECUTED)):
        record = stored_record(Path(env.doc2path(docname)))
        if record is None:
            logger.warning("not executed by `envprobe reproduce`", location=docname)
        else:
            found[docname] = record
    return found


def provenance(pagename: str, executed: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What the block at the foot of one page states.

    Returns:
        ``rows``: label, value, and the default where another value was used; ``command``: what
        executes this page again, or nothing for a page of text; ``section``: its name.
    """
    record = executed.get(pagename)
    if record is None:
        rows = []
        for name, label in LABELS.items():
            used = {str(one["parameters"][name]) for one in executed.values() if name in one["parameters"]}
            rows.append((label, "; ".join(sorted(used)) or "not used", ""))
        return {"rows": rows, "command": "", "section": "", "engine": envprobe_core.__version__}
    values, defaults = record["parameters"], record["defaults"]
    ordered = [name for name in dict.fromkeys((*LABELS, *values)) if name in values]
    rows = [
        (
            LABELS.get(name, name.replace("_", " ").capitalize()),
            str(values[name]),
            "" if values[name] == defaults[name] else str(defaults[name]),
        )
        for name in ordered
    ]
    given = (f"-p {name}={shlex.quote(str(values[name]))}" for name in ordered)
    return {
        "rows": rows,
        "command": " ".join(["envprobe reproduce", record["section"], *given]),
        "section": record["section"],
        "engine": record["engine_version"],
    }


def add_provenance(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], _: object) -> None:
    """Give the page's template what its foot states (event ``html-page-context``)."""
    context["provenance"] = provenance(pagename, app.companion_records)  # type: ignore[attr-defined]


def collect(app: Sphinx, env: BuildEnvironment) -> None:
    """Read the records once, when every page is known (event ``env-updated``)."""
    app.companion_records = records(env)  # type: ignore[attr-defined]


def require_descriptions(app: Sphinx, doctree: nodes.document) -> None:
    """Warn of every image that a reader who cannot see it would miss (event ``doctree-read``)."""
    for image in doctree.findall(nodes.image):
        if not str(image.get("alt", "")).strip():
            logger.warning("image without alt text: %s", image.get("uri"), location=image)


def refuse_scripts(app: Sphinx, doctree: nodes.document) -> None:
    """Make text again of every link that is no address (event ``doctree-read``): data may hold any."""
    for link in list(doctree.findall(nodes.reference)):
        scheme = urlsplit("".join(link.get("refuri", "").split())).scheme.lower()
        if scheme not in SCHEMES:
            logger.info("link to %s: is made text", scheme, location=link)
            link.replace_self(nodes.inline("", "", *link.children))


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Correct each page, and put MathJax into the book (event ``build-finished``).

    Of the package's 24 MB it takes the 1.8 MB that TeX to CHTML needs.
    """
    if exception is not None or app.builder.format != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for wrong, right in CORRECTIONS:
            text = re.sub(wrong, right, text)
        page.write_text(text, encoding="utf-8")
    package = importlib.util.find_spec("sphinx-mathjax-offline")
    if package is None or package.origin is None:
        raise RuntimeError("the package sphinx-mathjax-offline is not installed")
    source, target = Path(package.origin).parent / "static/mathjax", Path(app.outdir) / "_static/mathjax"
    fonts = "output/chtml/fonts"
    shutil.copytree(source / fonts, target / fonts, dirs_exist_ok=True)
    shutil.copy(source / "tex-chtml-full.js", target)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("provenance-table", ProvenanceTable)
    app.connect("doctree-read", require_descriptions)
    app.connect("doctree-read", refuse_scripts)
    app.connect("env-updated", collect)
    app.connect("html-page-context", add_provenance)
    app.connect("build-finished", finish)
    return {"version": envprobe_core.__version__, "parallel_read_safe": True, "parallel_write_safe": True}
