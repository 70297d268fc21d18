"""The host of every widget: one front end, shown by JupyterLab with a kernel and by a page without one.

In JupyterLab a widget is an anywidget. In the book its cell's output is HTML: the state as deflated JSON,
which `book/assets/static-widgets.js` hands to the same front end, and a still picture for readers without
JavaScript, on GitHub and in print.
`book/_ext/companion.py` puts the front end into the page, once for all of its widgets.

A front end is one ES module in anywidget's form (`export default { render({ model, el }) }`): `NAME.js` below
the tools of `shared.js`, and what `PARTS` names. One that runs the engine needs no Python: its page
loads the engine (`data-engine`), and in JupyterLab, where nothing lies beside the notebook, the engine comes
along as text.
"""

import base64
import html
import json
import zlib
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import traitlets

from envprobe_book.page_engine import inline_page_engine
from envprobe_book.pages.figures import Drawing, palette
from envprobe_book.reproduce.sections import ROOT

FOLDER = Path(__file__).resolve().parent
STYLES = ROOT / "book" / "assets"
PARTS = {"player": ("shared", "episode", "player")}
"""The files of each front end, in their order."""
MODULES = tuple(PARTS)
TOOLS = "SVG", "element", "shape", "change", "say", "KEEPS_KEYS", "OUTLINES", "nameOf"
"""What classic scripts take of `shared.js`, as `EnvProbe.dom`."""


def module_text(name: str) -> str:
    """The source of a front end, one of `MODULES`, as a single ES module."""
    return "\n".join((FOLDER / f"{file}.js").read_text(encoding="utf-8") for file in PARTS[name])


def page_tools() -> str:
    """The tools of `shared.js` as a classic script, which a page's other scripts follow."""
    shared = (FOLDER / "shared.js").read_text(encoding="utf-8")
    taken = f"{{ dom: {{ {', '.join(TOOLS)} }} }}"
    dom = f"globalThis.EnvProbe = Object.assign(globalThis.EnvProbe ?? {{}}, {taken});"
    return f"(() => {{\n{shared}\n{dom}\n}})();"


def style_sheets(name: str) -> list[str]:
    """The style sheets of one front end, below `STYLES`: the common one, and its own if it has one."""
    return [file for file in ("widgets.css", f"{name}.css") if (STYLES / file).is_file()]


def style_text(name: str) -> str:
    """The styles of one front end as one text, with the colours that they name."""
    sheets = ((STYLES / file).read_text(encoding="utf-8") for file in style_sheets(name))
    return "\n".join([palette(), *sheets])


def packed(value: Any) -> str:
    """A value as deflated JSON in base64, which may stand anywhere in a page.

    Raises:
        ValueError: if a number in it is not finite, which JSON cannot say.
    """
    # keys keep their order: a front end may follow it
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


class Widget(anywidget.AnyWidget):
    """A front end with its state; a subclass names its front end in `module`.

    Attributes:
        module: the front end, one of `MODULES`.
        runs_engine: whether it runs episodes itself.
        state: what the front end shows, as JSON can hold it; synchronised.
        engine: the engine's script, where the front end runs it; synchronised.
        identity: an id that no other widget of the page has; the same in every build.
        still: the picture that a reader without JavaScript sees, with its description.
    """

    module: ClassVar[str]
    runs_engine: ClassVar[bool] = False
    state = traitlets.Dict().tag(sync=True)
    engine = traitlets.Unicode().tag(sync=True)

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Give the class its front end and the widgets' style sheet, as anywidget expects them."""
        if "module" in cls.__dict__:  # not where traitlets derives a class of its own
            cls._esm = module_text(cls.module)
            cls._css = style_text(cls.module)
        super().__init_subclass__(**keywords)

    def __init__(self, state: dict[str, Any], *, identity: str, still: Drawing) -> None:
        engine = inline_page_engine() if self.runs_engine else ""
        super().__init__(state=state, engine=engine)
        self.identity, self.still = identity, still

    def static_html(self) -> str:
        """The widget as a page without a kernel holds it."""
        asks = " data-engine" if self.runs_engine else ""  # see book/_ext/live.py
        return (
            f'<div class="static-widget" id="{html.escape(self.identity)}" data-module="{self.module}"{asks}>'
            f'<script type="application/octet-stream">{packed(self.state)}</script>'
            f'<div class="static-widget-fallback">{self.still.svg()}</div></div>'
        )

    def _repr_mimebundle_(self, **keywords: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_(**keywords) or ({}, {})
        forms = {"text/html": self.static_html(), "text/plain": self.still.alt}
        return {**data, **forms}, metadata
