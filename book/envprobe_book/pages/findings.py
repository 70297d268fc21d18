"""Findings: sentences that a section says once, under a name, and that *What we found* collects.

`finding` shows them in the section; its output carries the name. `collect` reads the executed section, runs
nothing, and shows the same sentence with what it reads of live figures, so that it follows the reader there.
"""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envprobe_book.pages import EXECUTED
from envprobe_book.pages.markup import MARK, Html, Text, script_json, slot_of
from envprobe_core.errors import InputError, look_up
from envprobe_core.sources import ROOT

KEY = "finding"  # of an output's metadata
_shown: set[str] = set()  # figures that this page holds already
FIGURE = re.compile(
    r'<div class="live-figure"[^>]* id="([^"]+)">.*?<script type="application/json">(.*?)</script>', re.S
)


@dataclass(frozen=True)
class Finding(Text):
    """Sentences with the name under which they are collected."""

    name: str

    def _repr_mimebundle_(self, **keywords: Any) -> Any:
        return super()._repr_mimebundle_(**keywords), {KEY: self.name}


def finding(name: str, *sentences: Text) -> Finding:
    """What a section finds: what `tell` and `conclude` give, one after another.

    >>> finding("gain", Text("It pays."))._repr_mimebundle_()[1]
    {'finding': 'gain'}
    """
    return Finding(" ".join(one.markdown for one in sentences), name)


def collect(section: str, name: str) -> Finding | Html:
    """What an executed section finds under a name; or its live figure of that name, as it is there.

    Raises:
        InputError: if the section was not executed, or finds nothing of that name.
    """
    path = Path(os.environ.get(EXECUTED) or ROOT / "book" / "executed", f"{section}.ipynb")
    if not path.exists():
        raise InputError(f"section {section} was not executed; run `envprobe reproduce {section}` first")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    found = {own[KEY]: output["data"] for output in outputs if KEY in (own := output.get("metadata", {}))}
    forms = [output.get("data", {}) for output in outputs]
    pages = ["".join(form.get("text/html", "")) for form in forms]
    if name not in found:  # a live figure
        drawn = {own[1]: at for at, page in enumerate(pages) if (own := FIGURE.match(page))}
        if name in drawn:
            _shown.add(name)
            return Html(pages[drawn[name]], "".join(forms[drawn[name]].get("text/plain", name)))
    text = "".join(look_up(f"finding of {section}", name, found)["text/markdown"])
    slots = "".join(filter(None, map(slot_of, MARK.findall(text))))
    read = set(re.findall(r'"figures":\["([^"]+)"', slots))
    figures = [
        f'<div class="live-figure" data-engine id="{own}"><script type="application/json">'
        f"{script_json(json.loads(data) | {'kind': 'numbers', 'title': own})}</script></div>"
        for own, data in FIGURE.findall("".join(pages))
        if own in read - _shown
    ]
    _shown.update(read)
    if figures:  # apart from the sentence, since a page prefers HTML to Markdown
        from IPython.display import display

        display(Html("".join(figures), "numbers"))
    return Finding(text, name)
