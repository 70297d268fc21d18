"""What is printed of a built book: a summary, slides and a handout of a fixed number of pages, and the whole.

The first three are Markdown in ``book/print/``: what a person wrote, one page between two lines ``---``, and
pieces of the book's own pages, written as pictures, ``![CSS selector](page)``. So no number stands there.

The printer is the system's Chromium, without the network. What it needs lies in the temporary folder of this
process, and it ends when this process does.
"""

import copy
import ctypes
import functools
import html
import os
import posixpath
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import yaml
from bs4 import BeautifulSoup, Tag
from markdown_it import MarkdownIt

from envprobe_book.reproduce.build import html_folder
from envprobe_core.errors import InputError
from envprobe_core.files import atomic_write, working_folder
from envprobe_core.parallel import PARENT_DEATH_SIGNAL
from envprobe_core.sources import ROOT

BOOK, SHORT = "book", ("summary", "slides", "handout")
DOCUMENTS = (*SHORT, BOOK)
MADE_BY_US = b"\n% made by envprobe pdf\n"  # ends each file, which may then be replaced
FURNITURE = ".headerlink, .take-along, .live-link, details.hide, button, script, .tag_parameters"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
LONGEST = 600.0  # seconds that a print may take
_REFERENCES = ("href", "xlink:href", "for", "aria-labelledby", "aria-describedby")
_OPTIONS = (
    "--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-quic",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # nobody is asked for anything
    "--allow-file-access-from-files", "--hide-scrollbars",
    "--virtual-time-budget=20000",  # what a page does with its formulas is waited for
    "--no-pdf-header-footer", "--generate-pdf-document-outline",
)  # fmt: skip
_ORDER = getattr(ctypes.CDLL(None), "prctl", None)  # Linux alone has it
_END_WITH_PARENT = _ORDER and functools.partial(_ORDER, PARENT_DEATH_SIGNAL, signal.SIGKILL)


@functools.cache
def read_page(folder: Path, name: str) -> BeautifulSoup:
    """Read a built page by its name, as in ``index`` or ``executed/voi``; `InputError` if there is none."""
    path = folder / f"{name}.html"
    if not path.is_file():
        raise InputError(f"no page {path}; `envprobe book` builds the book")
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def pieces(folder: Path, name: str, selector: str) -> list[Tag]:
    """Return copies of what a CSS selector finds in a page's text, without what only a screen can use.

    What is not there is an `InputError`, so that no document is printed with a gap.
    """
    found = [copy.copy(tag) for tag in read_page(folder, name).select(f"article.bd-article {selector}")]
    if not found:
        raise InputError(f"page {name} of the book has nothing that is {selector}")
    for piece in found:
        _tidy(piece, name)
    return found


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


def fill(source: str, folder: Path) -> BeautifulSoup:
    """Set a document of ``book/print/``, with the pieces of the book's pages that it asks for."""
    markdown = MarkdownIt("commonmark").enable("table")
    parts = re.split(r"^---$", source, flags=re.MULTILINE)
    sections = (f'<section class="page"><div>{markdown.render(part)}</div></section>' for part in parts)
    body = BeautifulSoup("".join(sections), "html.parser")
    for image in body.find_all("img"):
        paragraph = image.parent
        place = paragraph if paragraph.name == "p" and len(paragraph.contents) == 1 else image
        place.replace_with(*pieces(folder, str(image["src"]), str(image["alt"])))
    return body


def whole(folder: Path, contents: Path) -> BeautifulSoup:
    """Put all pages of a table of contents behind one another, with a page of contents before them."""
    toc = yaml.safe_load(contents.read_text(encoding="utf-8"))
    parts = [(part["caption"], [chapter["file"] for chapter in part["chapters"]]) for part in toc["parts"]]
    body = BeautifulSoup('<nav class="parts"><h1>Contents</h1></nav>', "html.parser")
    for caption, names in [("", [toc["root"]]), *parts]:
        entries = ""
        for name in names:
            (article,) = pieces(folder, name, "> section")
            entries += f'<li><a href="#{_anchor(name)}">{html.escape(article.h1.text)}</a></li>'
            chapter = body.new_tag("section", attrs={"class": "chapter", "id": _anchor(name)})
            chapter.extend([*article.find_previous_siblings("span"), article])
            body.append(chapter)
        heading = f"<h2>{html.escape(caption)}</h2>" if caption else ""
        body.nav.append(BeautifulSoup(f"{heading}<ul>{entries}</ul>", "html.parser"))
    return body


def refuse_foreign(path: Path) -> None:
    """Refuse (`InputError`) to replace a file that no print of ours is."""
    if path.exists() and not (path.is_file() and path.read_bytes().endswith(MADE_BY_US)):
        raise InputError(f"--out {path}: it is there, and `envprobe pdf` did not make it; remove it first")


def make(document: str, out: Path, root: Path = ROOT) -> None:
    """Print one of `DOCUMENTS`; `InputError` if the book lacks a piece, or it cannot be rendered."""
    folder, source = html_folder(root).resolve(), root / "book" / "print"
    if document == BOOK:
        body = whole(folder, root / "_toc.yml")
    else:
        body = fill((source / f"{document}.md").read_text(encoding="utf-8"), folder)
    anchors = {str(tag["id"]) for tag in body.select("[id]")}
    for link in body.select("a[href^='#']"):
        if str(link["href"])[1:] not in anchors:  # it leads out of this document
            link.name, link.attrs = "span", {"class": "place"}
    look, fit = ((source / name).read_text(encoding="utf-8") for name in ("print.css", "fit.js"))
    index = read_page(folder, "index")
    head = [str(tag) for tag in index.select("script") if "window.MathJax" in tag.text]
    for tag in index.select("link[rel=stylesheet], script[src*=mathjax]"):
        name = "href" if tag.name == "link" else "src"
        linked = copy.copy(tag)
        linked[name] = (folder / str(tag[name]).partition("?")[0]).as_uri()
        head.append(str(linked))
    title = html.escape(index.h1.find(string=True) or "")
    page = (
        f'<!DOCTYPE html><html lang="en" data-theme="light" class="{document}"><head><meta charset="utf-8">'
        f"<title>{title}: {document}</title>{''.join(head)}<style>{look}</style><script>{fit}</script></head>"
        f'<body><article class="bd-article">{body}</article></body></html>'
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(out) as temporary:
        render(page, temporary, "--print-to-pdf")
        with temporary.open("ab") as file:
            file.write(MADE_BY_US)


def find_chromium() -> str:
    """Where Chromium is; an `InputError` says that this system has none."""
    browser = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if browser is None:
        raise InputError("printing needs Chromium, the command `chromium`, and this system has none")
    return browser


def render(page: str, out: Path, what: str, *options: str) -> None:
    """Print a page of HTML, its addresses absolute, to a PDF, or take a picture (``--screenshot``) as PNG.

    An `InputError` says that there is no Chromium, or that it made nothing.
    """
    browser = find_chromium()
    as_root = ["--no-sandbox"] if os.getuid() == 0 else []
    with tempfile.TemporaryDirectory(dir=working_folder(), ignore_cleanup_errors=True) as folder:
        source, made = Path(folder, "page.html"), Path(folder, f"made{out.suffix}")
        source.write_text(page, encoding="utf-8")
        given = [f"--user-data-dir={folder}/profile", f"{what}={made}", *options, source.as_uri()]
        try:
            done = subprocess.run(
                [browser, *_OPTIONS, *as_root, *given],
                env={**os.environ, "HOME": folder, "TMPDIR": folder},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=LONGEST,
                check=False,
                start_new_session=True,
                preexec_fn=_END_WITH_PARENT,
            )
        except subprocess.TimeoutExpired:
            raise InputError(f"{browser} did not print within {LONGEST:.0f} s") from None
        if done.returncode or not made.exists():
            last = (done.stdout.strip().splitlines() or ["it says nothing"])[-1]
            raise InputError(f"{browser} printed nothing (exit code {done.returncode}): {last}")
        shutil.copyfile(made, out)
