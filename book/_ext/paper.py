"""Sphinx extension: where each item and printed number of the paper is in the book, and what its terms mean.

``{paper-items} table figure`` is a table of all items of those kinds with links, which the build resolves
(a link that leads nowhere is a warning, and so an error). The foot of every page names the items it has.

A word of the glossary carries its definition, which shows while the pointer or the focus is on it. The search
page also looks through the paper's items ("Table 3 of the paper") and printed numbers ("11.76"), which the
tool's own index leaves out: a script with all of them, so that it works from a folder too.
"""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective

from envprobe_book.claims import paper_items, paper_values
from envprobe_book.pages import review

GLOSSARY = "how-to-read"  # the page that holds it
WORDS = "paper-words.js"
ROLES = (  # of a target, by how it begins: the role that leads to it
    (paper_items.TERM, "{{term}}`{}`"),
    (paper_items.FLOATS, "{{numref}}`{}`"),
    (paper_items.EQUATION, "equation {{eq}}`{}`"),
    (paper_items.ALGORITHM, "{{prf:ref}}`the algorithm <{}>`"),  # it has no number
    (paper_items.STATEMENTS, "{{prf:ref}}`{}`"),
    ("", "{{doc}}`/{}`"),
)


class PaperItems(SphinxDirective):
    """``{paper-items} KIND...``: the items of some kinds, and where the book has each."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """One table; its links are resolved as if they had been written in the page."""
        kinds = self.arguments[0].split()
        unknown = [kind for kind in kinds if kind not in paper_items.KINDS]
        if unknown:
            raise self.error(f"no kind {', '.join(unknown)}; accepted: {', '.join(paper_items.KINDS)}")
        lines = ["| in the paper | about | in this book |", "|:--|:--|:--|"]
        for item in (item for item in paper_items.load_items() if item.kind in kinds):
            links = []
            for target in item.targets:
                role = next(role for start, role in ROLES if target.startswith(start))
                links.append(role.format(target.removeprefix(paper_items.TERM)))
            lines.append(f"| {item.name} | {item.statement} | {', '.join(links)} |")
        holder = nodes.Element()
        self.state.nested_parse(StringList(lines, self.env.docname), self.lineno, holder)
        return holder.children


def address_of(target: str, env: BuildEnvironment) -> tuple[str, str] | None:
    """Return page and anchor of an item's target, None where there is no such place."""
    if target.startswith(paper_items.TERM):
        return GLOSSARY, f"#term-{target.removeprefix(paper_items.TERM)}"
    if target.startswith(paper_items.FLOATS):
        page, anchor = env.get_domain("std").anonlabels.get(target, (None, ""))
        return page and (page, f"#{anchor}")
    if target.startswith(paper_items.EQUATION):
        page = env.get_domain("math").equations.get(target, (None,))[0]
        return page and (page, f"#equation-{target}")
    if target.startswith(paper_items.STATEMENTS):
        page = getattr(env, "proof_list", {}).get(target, {}).get("docname")
        return page and (page, f"#{target}")
    return target, ""


@cache
def items_of_pages(env: BuildEnvironment) -> dict[str, dict[str, None]]:
    """Return the names of the items that each page has, equations aside."""
    found: dict[str, dict[str, None]] = {}
    for item in paper_items.load_items():
        for target in item.targets if item.kind != "equation" else ():
            page, _ = address_of(target, env) or ("", "")
            found.setdefault(page, {})[item.name] = None
    return found


@cache
def definitions(env: BuildEnvironment) -> dict[str, str]:
    """Return what each entry of the glossary says, by its anchor; nothing in a book without a glossary."""
    found: dict[str, str] = {}
    if GLOSSARY in env.found_docs:
        for item in env.get_doctree(GLOSSARY).findall(nodes.definition_list_item):
            found |= dict.fromkeys(item[0]["ids"], " ".join(item[-1].astext().split()))
    return found


def explain(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Give every link to the glossary the definition it leads to (event ``doctree-resolved``)."""
    for link in doctree.findall(nodes.reference) if app.builder.format == "html" else ():
        anchor = link.get("refuri", "").partition("#")[2]
        if anchor.startswith("term-"):
            link["reftitle"] = definitions(app.env).get(anchor, "")


def entries(env: BuildEnvironment) -> Iterator[tuple[str, str, str]]:
    """Go through what can be searched for: words, a title, and the address from the book's root."""
    home = {}
    for item in paper_items.load_items():
        found = [place for target in item.targets if (place := address_of(target, env))]
        if found:
            home[item.label] = address = "{}.html{}".format(*found[0])
            yield f"{item.name} {item.statement}", f"{item.name} of the paper: {item.statement}", address
    for number in paper_values():
        source = number.source.removesuffix(" caption")
        quantity = number.column.removesuffix("_pct").removesuffix("_steps").replace("_", " ")
        title = f"{number} in {paper_items.place(number.source)} of the paper: "
        title += f"{paper_items.in_words(number.row)}, {quantity}"
        digits = f"{number.value:.{number.decimals}f}"
        bare = digits.removeprefix("-")  # 0.431 is also looked for as .431 and 431
        for value in dict.fromkeys((digits, bare, bare.removeprefix("0"), bare.removeprefix("0."))):
            yield value, title, home.get(source, "items.html")


def write_scripts(app: Sphinx, exception: Exception | None) -> None:
    """Write what the search page and the paper's tables load (event ``build-finished``)."""
    if exception is None and app.builder.format == "html":
        found = [[words.lower(), title, address] for words, title, address in entries(app.env)]
        text = f"const PAPER_WORDS = {json.dumps(found, ensure_ascii=False)};\n"
        for name, script in {WORDS: text, review.SCRIPT: review.review_script()}.items():
            (Path(app.outdir) / "_static" / name).write_text(script, encoding="utf-8")


def add_items(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], _: object) -> None:
    """Give the page's template the names of its items, and a page the scripts that it needs."""
    context["paper_items"] = list(items_of_pages(app.env).get(pagename, ()))
    if pagename == "search":
        app.add_js_file(WORDS, loading_method="defer", priority=400)
    if '<div class="review"' in context.get("body", ""):
        app.add_js_file(review.SCRIPT, loading_method="defer")
        app.add_css_file(review.STYLE)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("paper-items", PaperItems)
    app.connect("doctree-resolved", explain)
    app.connect("html-page-context", add_items)
    app.connect("build-finished", write_scripts)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
