"""What is printed of a built book: a summary, slides and a handout of a fixed number of pages, and the whole.

The first three are Markdown in ``book/print/``: what a person wrote, one page between two lines ``---``, and
pieces of the book's own pages, written as pictures, ``![CSS selector](page)``. So no number stands there.
"""

from __future__ import annotations

import copy
import html
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from bs4 import BeautifulSoup, Tag
from markdown_it import MarkdownIt

from envprobe_core.errors import InputError
from envprobe_core.files import replacing
from envprobe_core.reproduce.build import html_folder
from envprobe_core.reproduce.chromium import print_pdf
from envprobe_core.sources import ROOT

BOOK, SHORT = "book", ("summary", "slides", "handout")
DOCUMENTS = (*SHORT, BOOK)
MADE_BY_US = b"\n% made by envprobe pdf\n"  # ends each file, which may then be replaced
FURNITURE = ".headerlink, .take-along, .live-link, details.hide, button, script, .tag_parameters"
_REFERENCES = ("href", "xlink:href", "for", "aria-labelledby", "aria-describedby")
_FIT = """
const fit = () => {
  for (const page of document.querySelectorAll(".page")) {
    const content = page.firstElementChild;
    for (let size = 1; page.scrollHeight > page.clientHeight && size > 0.5; size -= 0.01)
      content.style.zoom = size;
  }
  for (const wide of document.querySelectorAll("table, mjx-container[display] > mjx-math")) {
    const room = wide.parentElement.clientWidth;
    if (room && wide.scrollWidth > room) wide.style.zoom = room / wide.scrollWidth;
  }
};
window.addEventListener("load", () => MathJax.startup.promise.then(fit));
"""
"""What overflows its page shrinks until it fits; so do tables and formulas wider than the paper."""


@dataclass
class Pages:
    """The pages of a built book, by name: ``index``, ``executed/voi``."""

    folder: Path  # of the built pages
    read: dict[str, BeautifulSoup] = field(default_factory=dict)  # those that were read

    def page(self, name: str) -> BeautifulSoup:
        """Read a page.

        Raises:
            InputError: if the book has none of this name.
        """
        if name not in self.read:
            path = self.folder / f"{name}.html"
            if not path.is_file():
                raise InputError(f"no page {path}; `envprobe book` builds the book")
            self.read[name] = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        return self.read[name]

    def pieces(self, name: str, selector: str) -> list[Tag]:
        """Return copies of what a CSS selector finds in a page's text, without what only a screen can use.

        Raises:
            InputError: if it finds nothing.
        """
        found = [copy.copy(tag) for tag in self.page(name).select(f"article.bd-article {selector}")]
        if not found:
            raise InputError(f"page {name} of the book has nothing that is {selector}")
        for piece in found:
            _tidy(piece, name)
        return found

    def head(self) -> str:
        """Return the book's style sheets and MathJax, by absolute address."""
        sheets = [str(link["href"]) for link in self.page("index").select("link[rel=stylesheet]")]
        settings = next(tag for tag in self.page("index").select("script") if "window.MathJax" in tag.text)
        script = self.page("index").select_one("script[src*=mathjax]")
        lines = [f'<link rel="stylesheet" href="{self._address(sheet)}">' for sheet in sheets]
        return "\n".join([*lines, str(settings), f'<script src="{self._address(script["src"])}"></script>'])

    def _address(self, relative: object) -> str:
        return (self.folder.resolve() / str(relative).partition("?")[0]).as_uri()


def _tidy(piece: Tag, page: str) -> None:
    """Leave what paper can show, and give every anchor the name of its page."""
    for folded in piece.select("details.hide:has(.cell_output)"):  # a table that takes a click on screens
        folded.replace_with(*folded.select(".cell_output"))
    for tag in piece.select(FURNITURE):
        tag.decompose()
    for tag in piece.select("details"):
        tag["open"] = ""
    for tag in piece.select(".static-widget"):
        tag.string = f"An interactive figure stands here on the page {page}.html."
    for tag in piece.select(".nohighlight.math"):
        tag["class"] = [*tag["class"], "tex2jax_process"]
    for tag in [piece, *piece.find_all(True)]:
        for name, value in tag.attrs.items():
            if name == "id":
                tag[name] = _anchor(page, value)
            elif name in _REFERENCES and value.startswith("#"):
                tag[name] = f"#{_anchor(page, value[1:])}"
            elif name == "href" and "://" not in value:
                path, _, place = value.partition("#")
                there = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
                tag[name] = f"#{_anchor(there.removesuffix('.html'), place)}"
            elif isinstance(value, str):
                tag[name] = value.replace("url(#", f"url(#{_anchor(page)}")


def _anchor(page: str, place: str = "") -> str:
    return f"{page.replace('/', '-')}--{place}"


def _drop_dead_links(body: BeautifulSoup) -> None:
    """Make text of links that lead nowhere in this document."""
    anchors = {str(tag["id"]) for tag in body.select("[id]")}
    for link in body.select("a[href^='#']"):
        if str(link["href"])[1:] not in anchors:
            link.name, link.attrs = "span", {"class": "place"}


def fill(source: str, pages: Pages) -> BeautifulSoup:
    """Set a document of ``book/print/``, with the pieces of the book that it asks for.

    Raises:
        InputError: if the book lacks a piece.
    """
    markdown = MarkdownIt("commonmark").enable("table")
    parts = re.split(r"^---$", source, flags=re.MULTILINE)
    body = BeautifulSoup(
        "".join(f'<section class="page"><div>{markdown.render(part)}</div></section>' for part in parts),
        "html.parser",
    )
    for image in body.find_all("img"):
        paragraph = image.parent
        place = paragraph if paragraph.name == "p" and len(paragraph.contents) == 1 else image
        place.replace_with(*pages.pieces(str(image["src"]), str(image["alt"])))
    return body


def whole(pages: Pages, root: Path) -> BeautifulSoup:
    """Put all pages of a book's contents behind one another, with a page of contents before them."""
    body = BeautifulSoup('<nav class="parts"><h1>Contents</h1></nav>', "html.parser")
    contents = body.nav
    for caption, names in _contents(root):
        entries = ""
        for name in names:
            (article,) = pages.pieces(name, "> section")
            title = article.h1
            entries += f'<li><a href="#{_anchor(name)}">{html.escape(title.text)}</a></li>'
            chapter = body.new_tag("section", attrs={"class": "chapter", "id": _anchor(name)})
            chapter.extend([*article.find_previous_siblings("span"), article])
            body.append(chapter)
        heading = f"<h2>{html.escape(caption)}</h2>" if caption else ""
        contents.append(BeautifulSoup(f"{heading}<ul>{entries}</ul>", "html.parser"))
    return body


def _contents(root: Path) -> Iterator[tuple[str, list[str]]]:
    """Go through the parts of the table of contents: their titles, and their pages."""
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    yield "", [toc["root"]]
    for part in toc["parts"]:
        yield part["caption"], [chapter["file"] for chapter in part["chapters"]]


def refuse_foreign(path: Path) -> None:
    """Refuse to replace a file that no print of ours is.

    Raises:
        InputError: if one is there.
    """
    if path.exists() and not (path.is_file() and path.read_bytes().endswith(MADE_BY_US)):
        raise InputError(f"--out {path}: it is there, and `envprobe pdf` did not make it; remove it first")


def make(document: str, out: Path, root: Path = ROOT) -> None:
    """Print one of `DOCUMENTS`; a PDF of ours at `out` is replaced.

    Raises:
        InputError: if the book is not built or lacks a piece, there is no Chromium, or `out` is another's.
    """
    refuse_foreign(out)
    pages, folder = Pages(html_folder(root)), root / "book" / "print"
    if document == BOOK:
        body = whole(pages, root)
    else:
        body = fill((folder / f"{document}.md").read_text(encoding="utf-8"), pages)
    _drop_dead_links(body)
    look = (folder / "print.css").read_text(encoding="utf-8")
    title = pages.page("index").h1
    page = (
        f'<!DOCTYPE html><html lang="en" data-theme="light" class="{document}"><head><meta charset="utf-8">'
        f"<title>{html.escape(title.find(string=True) or '')}: {document}</title>{pages.head()}"
        f"<style>{look}</style><script>{_FIT}</script></head>"
        f'<body><article class="bd-article">{body}</article></body></html>'
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    with replacing(out) as temporary:
        print_pdf(page, temporary)
        with temporary.open("ab") as file:
            file.write(MADE_BY_US)
