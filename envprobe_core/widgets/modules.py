"""The front ends: each is one ES module, joined from several files.

Files import from each other as ES modules do, so that an editor or a test can read them one by one. Joined,
each keeps a scope of its own: it becomes a function that runs once and returns what the file exports, and an
import takes from what an earlier file returned. Only the last file's `export default` stays.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from envprobe_core.sources import ROOT

PACKAGE = Path(__file__).resolve().parents[1]
STYLES = ROOT / "book" / "assets"
MODULES: dict[str, tuple[str, ...]] = {
    "explorer": (
        "widgets/dom.js",
        "widgets/marks.js",
        "widgets/axes.js",
        "explorer/grid.js",
        "widgets/explorer-vocabulary.js",
        "widgets/explorer-state.js",
        "widgets/explorer-sources.js",
        "widgets/explorer-pareto.js",
        "widgets/explorer-curves.js",
        "widgets/explorer-rows.js",
        "widgets/explorer-controls.js",
        "widgets/explorer-readout.js",
        "widgets/explorer-tools.js",
        "widgets/explorer.js",
    ),
    "player": (
        "widgets/dom.js",
        "widgets/marks.js",
        "widgets/player-data.js",
        "widgets/player-marks.js",
        "widgets/player-tools.js",
        "widgets/player-rooms.js",
        "widgets/player-graph.js",
        "widgets/player-scores.js",
        "widgets/player-table.js",
        "widgets/player-run.js",
        "widgets/player-live.js",
        "widgets/player.js",
    ),
}
"""The files of each front end, below the package, in the order in which they are joined."""

_IMPORT = re.compile(r"^import (\{[^}]*\}) from \"([^\"]+)\";", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


def style_sheets(name: str) -> list[str]:
    """Return the style sheets of one front end, below `STYLES`: the common one, and its own if it has one."""
    return [file for file in ("widgets.css", f"{name}.css") if (STYLES / file).is_file()]


def style_text(name: str) -> str:
    """Return the styles of one front end as one text."""
    return "\n".join((STYLES / file).read_text(encoding="utf-8") for file in style_sheets(name))


@cache
def module_text(name: str) -> str:
    """Return the source of one front end as a single ES module.

    Args:
        name: one of `MODULES`.

    Raises:
        ValueError: if a file imports from one that does not come before it.
    """
    *parts, main = MODULES[name]
    texts = ["const files = {};"]
    for place, file in enumerate(parts):
        source = (PACKAGE / file).read_text(encoding="utf-8")
        exported = ", ".join(_EXPORT.findall(source))
        body = _EXPORT.sub("", _linked(source, file, parts[:place]))
        texts.append(f'files["{file}"] = (() => {{\n{body}return {{ {exported} }};\n}})();')
    return "\n".join([*texts, _linked((PACKAGE / main).read_text(encoding="utf-8"), main, parts)])


def _linked(source: str, file: str, earlier: Sequence[str]) -> str:
    """Return a file's source with its imports taken from the earlier files' exports."""

    def taken(match: re.Match[str]) -> str:
        asked = posixpath.normpath(posixpath.join(posixpath.dirname(file), match[2]))
        if asked not in earlier:
            raise ValueError(f"{file} imports from {asked}, which does not come before it")
        return f'const {match[1].replace(" as ", ": ")} = files["{asked}"];'

    return _IMPORT.sub(taken, source)


def embedded_json(value: Any) -> str:
    """Return a value as JSON that may stand inside a script element: it holds no `<`.

    Raises:
        ValueError: if a number in it is not finite, which JSON cannot say.
    """
    # keys keep their order: a front end may follow it
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c")
