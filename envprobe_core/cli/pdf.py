"""``envprobe pdf``: the built book on paper: a summary, slides, a handout, and the whole."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from envprobe_core.cli.options import File, option
from envprobe_core.errors import InputError, look_up
from envprobe_core.files import held
from envprobe_core.sources import ROOT


def pdf(
    documents: Annotated[
        list[str] | None,
        typer.Argument(metavar="[DOCUMENT]...", help="summary, slides, handout or book; all four if none."),
    ] = None,
    out: option(File, "--out", "Folder of the PDFs.", "DIR", "book/_build/pdf") = None,
    book: option(Path, "--book", "A book of its own.", "DIR", "the checkout's") = ROOT,
) -> None:
    """Print the built book: a summary of two pages, twelve slides, a handout of two pages, and the whole.

    All come from the pages that `envprobe book` built; the command `chromium` prints them. A PDF that this
    command made is replaced, any other file is not. Exit code 2 if there is no built book or no Chromium.
    """
    from envprobe_core.reproduce import build, chromium, printing

    chosen = documents or list(printing.DOCUMENTS)
    for name in chosen:
        look_up("document", name, dict.fromkeys(printing.DOCUMENTS))
    if not (build.html_folder(book) / "index.html").is_file():
        raise InputError(f"no built book in {book}; `envprobe book` builds one")
    chromium.needed()
    files = {name: (out or build.html_folder(book).parent / "pdf") / f"{name}.pdf" for name in chosen}
    for path in files.values():
        printing.refuse_foreign(path)
    if not build.is_fresh(book):
        typer.echo("the book has changed since it was built; `envprobe book` builds it again", err=True)
    with held(book / "book", lambda: typer.echo("waiting: another envprobe works on the book", err=True)):
        for name, path in files.items():
            start = time.monotonic()
            printing.make(name, path, book)
            typer.echo(f"{name}: {path} ({time.monotonic() - start:.1f} s)")
