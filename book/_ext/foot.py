"""Sphinx extension: how the numbers of each page were made, and where its notebook can be opened.

The foot of a section states both; the provenance page lists all sections. Links to Binder and Colab need the
repository's address, `repository: url:` in `_config.yml`; a page asks nobody for anything.
"""

import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from pydantic.fields import FieldInfo
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

import envprobe_core
from envprobe_book.pages.figures import titled
from envprobe_book.reproduce.parameters import accepted
from envprobe_book.reproduce.sections import find_sections, stored_record
from envprobe_core.naming import split_names

logger = logging.getLogger(__name__)

EXECUTED = "executed/"
LABELS = {
    "profile": "Agent profile",
    "protocol": "Protocol",
    "seeds": "Seeds",
    "regime": "Regime",
    "resamples": "Bootstrap resamples",
}
"""What every section states first, by the parameter that holds it."""
BINDER = "https://mybinder.org/v2/gh/{place}/{branch}?urlpath=lab/tree/notebooks/{section}.ipynb"
COLAB = "https://colab.research.google.com/github/{place}/blob/{branch}/notebooks/{section}.ipynb"
_UNSET = re.compile(r"-1 ((?:for|to) [^;]+)")  # what a parameter's description says of -1
_OWNER = re.compile(r"\b(?:its|their) (?=steps)")  # said there of the episodes that it has just named
_GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?$")


@cache
def records(env: BuildEnvironment) -> dict[str, dict[str, Any]]:
    """Return what each executed page of the book says of its own making, by document name."""
    found = {}
    for docname in sorted(name for name in env.found_docs if name.startswith(EXECUTED)):
        record = stored_record(Path(env.doc2path(docname)))
        if record is None:
            logger.warning("not executed by `envprobe reproduce`", location=docname)
        else:
            found[docname] = record
    return found


class ProvenanceTable(SphinxDirective):
    """``{provenance-table}``: every executed section, what it ran with, and the hash it carries."""

    def run(self) -> list[nodes.Node]:
        """One table with a row for each section of the table of contents."""
        head = [nodes.Text(text) for text in ("Section", "Parameters", "Inputs (SHA-256)")]
        group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in head), cols=len(head))
        rows = [head]
        for docname, record in records(self.env).items():
            self.env.note_dependency(str(self.env.doc2path(docname)))  # the table follows the notebooks
            name = nodes.literal(text=record["section"])
            digest = nodes.literal(text=record["inputs_sha256"][:12])
            values = [
                f"{name} = {value}" + ("" if value == record["defaults"][name] else " (changed)")
                for name, value in record["parameters"].items()
            ]
            link = make_refnode(self.env.app.builder, self.env.docname, docname, "", name)
            rows.append([link, nodes.Text("; ".join(values)), digest])
        first, *others = (
            nodes.row("", *(nodes.entry("", nodes.paragraph("", "", cell)) for cell in row)) for row in rows
        )
        group += [nodes.thead("", first), nodes.tbody("", *others)]
        return [nodes.table("", group)]


def said(parameter: FieldInfo | None, value: Any) -> str:
    """A parameter's value as the foot states it: policies by their titles, and -1 with what it stands for."""
    if parameter is None:
        return str(value)
    if accepted(parameter) == "policies":
        return ", ".join(titled(name) for name in split_names(value))
    unset = _UNSET.search(parameter.description or "") if value == -1 else None
    return "-1, " + _OWNER.sub("an episode's ", unset[1]) if unset else str(value)


def provenance(record: dict[str, Any] | None) -> dict[str, Any]:
    """Return what the foot of a page states, from what its section says of its own making, if it is one.

    Returns:
        ``rows``: label, value, and the default where another value was used; ``command``: what
        executes this page again, empty for a page of text; ``section``: its name.
    """
    foot = {"rows": [], "command": "", "section": "", "engine": envprobe_core.__version__}
    if record is None:
        return foot
    values, given = record["parameters"], []
    declared = find_sections()[record["section"]].parameters
    for name in [name for name in dict.fromkeys((*LABELS, *values)) if name in values]:
        used, default = values[name], record["defaults"][name]
        label = LABELS.get(name, name.replace("_", " ").capitalize())
        stated = [said(declared.get(name), value) for value in (used, default)]
        foot["rows"].append((label, stated[0], "" if used == default else stated[1]))
        given.append(f"-p {name}={shlex.quote(str(used))}")
    command = " ".join(["envprobe reproduce", record["section"], *given])
    return foot | {"command": command, "section": record["section"], "engine": record["engine_version"]}


def add_foot(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], _: object) -> None:
    """Give the page's template what its foot states (event ``html-page-context``)."""
    context["provenance"], context["launch"] = provenance(records(app.env).get(pagename)), {}
    if pagename.startswith(EXECUTED):
        options, section = app.config.html_theme_options, pagename.removeprefix(EXECUTED)
        match = _GITHUB.match(options.get("repository_url") or "")
        place, branch = match[1] if match else "", options.get("repository_branch") or "HEAD"
        links = {"Binder": BINDER, "Colab": COLAB} if place else {}
        known = {"place": place, "branch": branch, "section": section}
        context["launch"] = {
            "notebook": context["pathto"](f"_sources/{pagename}.ipynb", 1),
            "file": f"{section}.ipynb",
            "links": {name: address.format(**known) for name, address in links.items()},
            "clone": f"https://github.com/{place}" if place else "",
        }


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("provenance-table", ProvenanceTable)
    app.connect("html-page-context", add_foot)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
