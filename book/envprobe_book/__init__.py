"""The package that makes pages of the core's results: claims, analyses, sections, figures, widgets, commands.

Its verbs, beside those of the core, are `judge`, `gains`, `show`, `table`, `draw`, `live`, `conclude`,
`finding`, `collect`, `guess` and `take_away`.
"""

import sys
from importlib import import_module
from typing import Any

_HOMES = {
    "judge": "claims.judge", "table": "pages.table", "draw": "pages.draw", "live": "live_figures.figure",
    "conclude": "pages.markup", "guess": "pages.guess", "take_away": "pages.markup",
    "show": "pages.show", "finding": "pages.findings", "collect": "pages.findings", "gains": "analyses.gains",
}  # fmt: skip


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])


def __getattr__(name: str) -> Any:
    if name in ("compare", "play", "run", "summarize"):  # the core's, with all that `run` can measure
        import envprobe_book.facts  # noqa: F401

        return getattr(import_module("envprobe_core"), name)
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


if sys.modules.get("IPython"):  # a notebook's kernel, perhaps: its parameters are checked before it goes on
    from envprobe_book.pages.frames import show_titles
    from envprobe_book.reproduce.declared import check_this_notebook

    check_this_notebook()
    show_titles()
