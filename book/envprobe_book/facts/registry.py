"""How a fact is registered: a function from witnessed episodes to columns."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from envprobe_book.facts.replay import Witnessed
from envprobe_core.facts import FACTS, Recorded

Columns = Sequence[np.ndarray]
Fact = Callable[[Witnessed], Columns]


def fact(*columns: str) -> Callable[[Fact], Fact]:
    """Register what measures some columns, [row] each, of witnessed episodes [row]."""

    def keep(function: Fact) -> Fact:
        if taken := FACTS.keys() & set(columns):
            raise ValueError(f"measured already: {', '.join(sorted(taken))}")
        FACTS.update(dict.fromkeys(columns, partial(_by_name, columns, function)))
        return function

    return keep


def _by_name(columns: tuple[str, ...], function: Fact, given: Recorded) -> dict[str, np.ndarray]:
    """Name what a fact measured; a function of the module, which processes beside this one can be told."""
    seen = given if isinstance(given, Witnessed) else given.seen.get("witnessed")
    if seen is None:
        seen = given.seen["witnessed"] = Witnessed(given.condition, given.seeds, given.trajectory)
    return dict(zip(columns, map(np.asarray, function(seen)), strict=True))


def arrays(rows: np.ndarray) -> np.ndarray:
    """The rows of a table as a column of arrays, [row]; copies, which do not keep a whole block."""
    return np.fromiter((row.copy() for row in rows), dtype=object, count=len(rows))
