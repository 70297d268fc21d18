"""Sphinx extension: where each item of the paper is in the book, and the book's own inline drawings.

``{paper-items} table figure`` is a table of all items of those kinds with links, which the build resolves
(a link that leads nowhere is a warning, and so an error). The foot of every page names the items it has.
``{inline-figure} loop.svg`` puts a drawing of ``book/assets/`` into the page, so that it follows its colours.
"""

from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

import envprobe_core
from envprobe_core.claims.places import ALGORITHM, EQUATION, FLOATS, KINDS, STATEMENTS, TERM, load_items

GLOSSARY = "how-to-read"  # the page that holds it
ROLES = (  # of a target, by how it begins: the role that leads to it
    (TERM, "{{term}}`{}`"),
    (FLOATS, "{{numref}}`{}`"),
    (EQUATION, "equation {{eq}}`{}`"),
    (ALGORITHM, "{{prf:ref}}`the algorithm <{}>`"),  # it has no number
    (STATEMENTS, "{{prf:ref}}`{}`"),
    ("", "{{doc}}`/{}`"),
)


def link_to(target: str) -> str:
    """Write the role that leads to a target."""
    role = next(role for start, role in ROLES if target.startswith(start))
    return role.format(target.removeprefix(TERM))


class PaperItems(SphinxDirective):
    """``{paper-items} KIND...``: the items of some kinds, and where the book has each."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """One table; its links are resolved as if they had been written in the page."""
        kinds = self.arguments[0].split()
        unknown = [kind for kind in kinds if kind not in KINDS]
        if unknown:
            raise self.error(f"no kind {', '.join(unknown)}; accepted: {', '.join(KINDS)}")
        lines = ["| in the paper | about | in this book |", "|:--|:--|:--|"]
        for item in load_items():
            if item.kind in kinds:
                links = ", ".join(map(link_to, item.targets))
                lines.append(f"| {item.name} | {item.statement} | {links} |")
        holder = nodes.Element()
        self.state.nested_parse(StringList(lines, self.env.docname), self.lineno, holder)
        return holder.children


class InlineFigure(SphinxDirective):
    """``{inline-figure} FILE``: a drawing of ours as part of the page; its content is the caption."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"name": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """A figure that `numref` can refer to."""
        path = Path(self.env.srcdir) / "assets" / self.arguments[0]
        self.env.note_dependency(str(path))
        figure = nodes.figure("", nodes.raw("", path.read_text(encoding="utf-8"), format="html"))
        holder = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, holder)
        figure += nodes.caption("", "", *holder[0].children)
        self.add_name(figure)
        return [figure]


def document_of(target: str, env: BuildEnvironment) -> str | None:
    """Return the document that holds a target of an item, None where there is none."""
    if target.startswith(TERM):
        return GLOSSARY
    if target.startswith(FLOATS):
        return env.get_domain("std").anonlabels.get(target, (None,))[0]
    if target.startswith(EQUATION):
        return env.get_domain("math").equations.get(target, (None,))[0]
    if target.startswith(STATEMENTS):
        return getattr(env, "proof_list", {}).get(target, {}).get("docname")
    return target


def collect(app: Sphinx, env: BuildEnvironment) -> None:
    """Find once which items each page has (event ``env-updated``)."""
    found: dict[str, dict[str, None]] = {}
    for item in load_items():
        if item.kind != "equation":
            for target in item.targets:
                found.setdefault(document_of(target, env) or "", {})[item.name] = None
    app.companion_items = {name: list(items) for name, items in found.items()}  # type: ignore[attr-defined]


def add_items(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], _: object) -> None:
    """Give the page's template the names of its items (event ``html-page-context``)."""
    context["paper_items"] = app.companion_items.get(pagename, [])  # type: ignore[attr-defined]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("paper-items", PaperItems)
    app.add_directive("inline-figure", InlineFigure)
    app.connect("env-updated", collect)
    app.connect("html-page-context", add_items)
    return {"version": envprobe_core.__version__, "parallel_read_safe": True, "parallel_write_safe": True}
