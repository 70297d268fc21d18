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
_ICON_SCRIPT = re.compile(r"[ \t]*<script [^>]*/fontawesome/[^>]*></script>\n?")
_FONT_PRELOAD = re.compile(r'[ \t]*<link rel="preload" as="font"[^>]*>\n?')
SCHEMES = ("", "http", "https", "mailto")
LABELS = {
    "profile": "Agent profile",
    "protocol": "Protocol",
    "seeds": "Seeds",
    "regime": "Regime",
    "resamples": "Bootstrap resamples",
}
"""What every page states, by the parameter that holds it."""


class ProvenanceTable(SphinxDirective):
    """``{provenance-table}``: every executed section, what it ran with, and the hash it carries."""

    def run(self) -> list[nodes.Node]:
        """One table with a row for each section of the table of contents."""
        head = ("Section", "Parameters", "Inputs (SHA-256)")
        rows = []
        for docname, record in records(self.env).items():
            link = make_refnode(
                self.env.app.builder, self.env.docname, docname, "", nodes.literal(text=record["section"])
            )
            values = [
                f"{name} = {value}" + ("" if value == record["defaults"][name] else " (changed)")
                for name, value in record["parameters"].items()
            ]
            digest = nodes.literal(text=record["inputs_sha256"][:12])
            rows.append([link, nodes.Text("; ".join(values)), digest])
        # dependencies, so that the table follows the notebooks
        for docname in records(self.env):
            self.env.note_dependency(str(self.env.doc2path(docname)))
        return [_table(head, rows)]


def _table(head: tuple[str, ...], rows: list[list[nodes.Node]]) -> nodes.table:
    """A plain table of inline nodes."""

    def row(cells: list[nodes.Node]) -> nodes.row:
        entries = (nodes.entry("", nodes.paragraph("", "", cell)) for cell in cells)
        return nodes.row("", *entries)

    group = nodes.tgroup("", cols=len(head))
    group += [nodes.colspec(colwidth=1) for _ in head]
    group += nodes.thead("", row([nodes.Text(text) for text in head]))
    group += nodes.tbody("", *(row(cells) for cells in rows))
    return nodes.table("", group)


def records(env: BuildEnvironment) -> dict[str, dict[str, Any]]:
    """What each executed page of the book says of its own making, by document name.

    Args:
        env: the build's environment.
    """
    found = {}
    for docname in sorted(env.found_docs):
        if docname.startswith(EXECUTED):
            record = stored_record(Path(env.doc2path(docname)))
            if record is None:
                logger.warning("not executed by `envprobe reproduce`", location=docname)
            else:
                found[docname] = record
    return found


def provenance(pagename: str, executed: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What the block at the foot of one page states.

    Args:
        pagename: the page's document name.
        executed: the records of all executed pages.

    Returns:
        ``rows``: label, value, and the default where another value was used; ``command``: what
        executes this page again, or nothing for a page of text; ``section``: its name.
    """
    record = executed.get(pagename)
    rows = []
    for name, label in LABELS.items():
        if record is None:
            used = {str(r["parameters"][name]) for r in executed.values() if name in r["parameters"]}
            rows.append((label, "; ".join(sorted(used)) or "not used", ""))
        elif name in record["parameters"]:
            rows.append((label, *_value_and_default(record, name)))
    if record is None:
        return {"rows": rows, "command": "", "section": "", "engine": envprobe_core.__version__}
    others = [name for name in record["parameters"] if name not in LABELS]
    rows += [(name.replace("_", " ").capitalize(), *_value_and_default(record, name)) for name in others]
    ordered = [name for name in (*LABELS, *others) if name in record["parameters"]]
    given = (f"-p {name}={shlex.quote(str(record['parameters'][name]))}" for name in ordered)
    return {
        "rows": rows,
        "command": " ".join(["envprobe reproduce", record["section"], *given]),
        "section": record["section"],
        "engine": record["engine_version"],
    }


def _value_and_default(record: dict[str, Any], name: str) -> tuple[str, str]:
    """A parameter's value, and its default if that is another."""
    value, default = record["parameters"][name], record["defaults"][name]
    return str(value), "" if value == default else str(default)


def add_provenance(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object
) -> None:
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


def copy_mathjax(app: Sphinx, exception: Exception | None) -> None:
    """Put MathJax into the book: of the package's 24 MB the 1.8 MB that TeX to CHTML needs."""
    if exception is not None or app.builder.format != "html":
        return
    package = importlib.util.find_spec("sphinx-mathjax-offline")
    if package is None or package.origin is None:
        raise RuntimeError("the package sphinx-mathjax-offline is not installed")
    source = Path(package.origin).parent / "static" / "mathjax"
    target = Path(app.outdir) / "_static" / "mathjax"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    shutil.copy(source / "tex-chtml-full.js", target)
    fonts = Path("output") / "chtml" / "fonts"
    shutil.copytree(source / fonts, target / fonts)


def drop_font_preloads(app: Sphinx, exception: Exception | None) -> None:
    """Take out the theme's preloading of fonts, which browsers refuse to a page opened as a file.

    The style sheets load the same fonts, in every case, and draw every icon with them: so the theme's script
    that draws icons a second time, half a megabyte a page, goes too.
    """
    if exception is None and app.builder.format == "html":
        for page in Path(app.outdir).rglob("*.html"):
            text = page.read_text(encoding="utf-8")
            page.write_text(_ICON_SCRIPT.sub("", _FONT_PRELOAD.sub("", text)), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("provenance-table", ProvenanceTable)
    app.connect("doctree-read", require_descriptions)
    app.connect("doctree-read", refuse_scripts)
    app.connect("env-updated", collect)
    app.connect("html-page-context", add_provenance)
    app.connect("build-finished", copy_mathjax)
    app.connect("build-finished", drop_font_preloads)
    return {"version": envprobe_core.__version__, "parallel_read_safe": True, "parallel_write_safe": True}
