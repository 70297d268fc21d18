"""Sphinx extension: terms explained where they stand, search for what the paper prints, and link previews.

A word of the glossary carries its definition, which shows while the pointer or the focus is on it. The search
page also looks through the paper's items ("Table 3 of the paper") and printed numbers ("11.76"), which the
tool's own index leaves out: a script with all of them, so that it works from a folder too. A shared link has
a picture with the book's first figure, where there is a Chromium to take it.
"""

import json
import re
from collections.abc import Iterator
from html import escape, unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from docutils import nodes
from paper_items import GLOSSARY, document_of
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

import envprobe_core
from envprobe_core.claims import paper_values
from envprobe_core.claims.places import EQUATION, FLOATS, STATEMENTS, TERM, in_words, load_items, place
from envprobe_core.errors import InputError
from envprobe_core.reproduce.printing import render

logger = logging.getLogger(__name__)

WORDS = "paper-words.js"
LONGEST_PREVIEW = 200  # characters
HERO = "executed/what-we-found", "fig-hero"  # what a shared link shows: a page, and the name of its figure
PICTURE, PICTURE_SIZE = "_static/preview.png", (1200, 630)  # pixels, what those who show links ask for
_PICTURE_PAGE = """<!DOCTYPE html><html data-theme="light"><meta charset="utf-8"><style>
body {{ display: flex; gap: 40px; align-items: center; margin: 0; padding: 40px; width: 1120px; height: 550px;
  font-family: "Liberation Sans", Arial, sans-serif; color: #111; background: #fff; }}
h1 {{ font-size: 60px; line-height: 1.15; margin: 0 0 30px; }}
p {{ font-size: 28px; line-height: 1.35; margin: 0; }}
.live-link {{ display: none; }} svg {{ height: 550px !important; min-width: 590px !important; }}
</style><div><h1>{title}</h1><p>{caption}</p></div><div>{figure}</div></html>"""


def definitions(env: BuildEnvironment) -> dict[str, str]:
    """Return what each entry of the glossary says, by its anchor; nothing in a book without a glossary."""
    found: dict[str, str] = {}
    if GLOSSARY not in env.found_docs:
        return found
    for item in env.get_doctree(GLOSSARY).findall(nodes.definition_list_item):
        term, definition = item[0], item[-1]
        found |= dict.fromkeys(term["ids"], " ".join(definition.astext().split()))
    return found


def explain(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Give every link to the glossary the definition it leads to (event ``doctree-resolved``)."""
    if app.builder.format == "html":
        for link in doctree.findall(nodes.reference):
            anchor = link.get("refuri", "").partition("#")[2]
            if anchor.startswith("term-"):
                link["reftitle"] = app.companion_terms.get(anchor, "")  # type: ignore[attr-defined]


def collect(app: Sphinx, env: BuildEnvironment) -> None:
    """Read the glossary once (event ``env-updated``)."""
    app.companion_terms = definitions(env)  # type: ignore[attr-defined]


def address_of(target: str, env: BuildEnvironment) -> str | None:
    """Return the address of an item's target from the book's root, None where there is no such place."""
    docname = document_of(target, env)
    if docname is None:
        return None
    if target.startswith(TERM):
        anchor = f"#term-{target.removeprefix(TERM)}"
    elif target.startswith(FLOATS):
        anchor = f"#{env.get_domain('std').anonlabels[target][1]}"
    elif target.startswith(EQUATION):
        anchor = f"#equation-{target}"
    else:
        anchor = f"#{target}" if target.startswith(STATEMENTS) else ""
    return f"{docname}.html{anchor}"


def entries(env: BuildEnvironment) -> Iterator[tuple[str, str, str]]:
    """Go through what can be searched for: words, a title, and the address from the book's root."""
    home = {}
    for item in load_items():
        addresses = [address for target in item.targets if (address := address_of(target, env))]
        if addresses:
            home[item.label] = addresses[0]
            yield f"{item.name} {item.statement}", f"{item.name} of the paper: {item.statement}", addresses[0]
    for number in paper_values():
        source = number.source.removesuffix(" caption")
        quantity = number.column.removesuffix("_pct").removesuffix("_steps").replace("_", " ")
        title = f"{number} in {place(number.source)} of the paper: {in_words(number.row)}, {quantity}"
        digits = f"{number.value:.{number.decimals}f}"
        for value in dict.fromkeys((digits, digits.replace("-", ""), digits.removeprefix("0"))):
            yield value, title, home.get(source, "items.html")


def write_words(app: Sphinx, exception: Exception | None) -> None:
    """Write the script that the search page reads (event ``build-finished``)."""
    if exception is None and app.builder.format == "html":
        found = [[words.lower(), title, address] for words, title, address in entries(app.env)]
        text = f"const PAPER_WORDS = {json.dumps(found, ensure_ascii=False)};\n"
        (Path(app.outdir) / "_static" / WORDS).write_text(text, encoding="utf-8")


def draw_picture(app: Sphinx, env: BuildEnvironment) -> None:
    """Take the picture that shared links show (event ``env-updated``), in light colours."""
    app.companion_picture = ""  # type: ignore[attr-defined]
    page, name = HERO
    if app.builder.format != "html" or page not in env.found_docs:
        return
    cells = json.loads(Path(env.doc2path(page)).read_text(encoding="utf-8"))["cells"]
    found = ((cell, cell["metadata"].get("mystnb", {}).get("figure", {})) for cell in cells)
    cell, figure = next((cell, figure) for cell, figure in found if figure.get("name") == name)
    shown = next(out["data"] for out in cell["outputs"] if "text/html" in out["data"])
    title, caption = escape(app.config.html_title), escape(figure["caption"])
    text = _PICTURE_PAGE.format(title=title, caption=caption, figure="".join(shown["text/html"]))
    path = Path(app.outdir) / PICTURE
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        render(text, path, "--screenshot", "--window-size={},{}".format(*PICTURE_SIZE))
    except InputError as error:
        logger.info("no picture for shared links: %s", error)
    else:
        app.companion_picture = "".join(shown["text/plain"])  # type: ignore[attr-defined]


def describe(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Give a page what a shared link shows, and the search page its words (event ``html-page-context``)."""
    if pagename == "search":
        app.add_js_file(WORDS, loading_method="defer", priority=400)
    first = next(doctree.findall(nodes.paragraph), None) if doctree is not None else None
    text = " ".join(first.astext().split()) if first is not None else ""
    if len(text) > LONGEST_PREVIEW:
        text = text[:LONGEST_PREVIEW].rpartition(" ")[0] + " ..."
    title = unescape(re.sub(r"<[^>]*>", "", context.get("title", "")))
    properties = {"og:description": text, "og:type": "article", "og:title": title}
    properties |= {"og:site_name": app.config.html_title}
    named = {"name": {"description": text}, "property": properties}
    if alt := app.companion_picture:  # type: ignore[attr-defined]
        # those who show links want a whole address; without `html: baseurl:` in _config.yml none is known
        base = app.config.html_baseurl
        address = urljoin(base.rstrip("/") + "/", PICTURE) if base else context["pathto"](PICTURE, 1)
        width, height = map(str, PICTURE_SIZE)
        properties |= {"og:image": address, "og:image:alt": alt}
        properties |= {"og:image:width": width, "og:image:height": height}
        named["name"]["twitter:card"] = "summary_large_image"
    context["metatags"] = context.get("metatags", "") + "\n".join(
        f'<meta {key}="{name}" content="{escape(value)}">'
        for key, tags in named.items()
        for name, value in tags.items()
        if value
    )


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("env-updated", collect)
    app.connect("env-updated", draw_picture)
    app.connect("doctree-resolved", explain)
    app.connect("html-page-context", describe)
    app.connect("build-finished", write_words)
    return {"version": envprobe_core.__version__, "parallel_read_safe": True, "parallel_write_safe": True}
