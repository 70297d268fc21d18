"""How long each section took when it was last executed, and the pages: what is begun first, and what is left.

The times lie beside the built pages. They decide nothing but order and what a bar says.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from envprobe_core.files import atomic_write

PAGES = "pages"  # stands for Jupyter Book among the sections
_FILE = ".seconds.json"


def read_times(book: Path) -> dict[str, float]:
    """Seconds by section, and of `PAGES`; of a folder ``book/`` where nothing was built yet, none."""
    try:
        found = json.loads((book / "_build" / _FILE).read_text(encoding="utf-8"))
        return {str(name): float(seconds) for name, seconds in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):  # it decides nothing
        return {}


def note_time(book: Path, name: str, seconds: float) -> None:
    """Keep how long a section took, or the pages."""
    path = book / "_build" / _FILE
    path.parent.mkdir(exist_ok=True)
    with atomic_write(path) as partial:
        partial.write_text(json.dumps(read_times(book) | {name: round(seconds, 1)}), encoding="utf-8")


def seconds_left(names: Iterable[str], times: Mapping[str, float], workers: int) -> float | None:
    """How long sections will take, several at a time; None where one of them has no time.

    >>> seconds_left(["a", "b", "c"], {"a": 9, "b": 3, "c": 2}, 2)
    9
    """
    left = [times.get(name) for name in names]
    known = [seconds for seconds in left if seconds is not None]
    return None if len(known) < len(left) else max([*known, sum(known) / workers], default=0)
