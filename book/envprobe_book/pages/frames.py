"""Frames as pages print them: titles in place of names, protocols and worlds in one order, no row numbers.

A frame itself holds names, which code compares; only what a page prints of it has titles.
"""

import os
from typing import Any

import numpy as np
import pandas as pd

from envprobe_book.pages.figures import STRATUM_TITLES
from envprobe_book.pages.switches import protocol_title
from envprobe_core.ledger import ENVIRONMENT
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PROTOCOLS, TITLES
from envprobe_core.worlds import WORLDS

_TITLES = WORLDS | {name: policy.title for name, policy in POLICIES.items()}
_STRATUM = "stratum"  # a column of sets of worlds; elsewhere the same words are types of fields
_PLACES = [*zip(WORLDS, WORLDS.values(), strict=True), *STRATUM_TITLES.items()]  # each by name and title
_WORLDS = {name: place for place, names in reversed([*enumerate(_PLACES)]) for name in names}
_WORLDS["procedural"] = _WORLDS["tools"]  # whatever it is called, and whatever stands beside it
_PROTOCOLS = {name: place for place, names in enumerate(TITLES.items()) for name in names}


def titled_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame with titles where rows, columns or values are names of worlds, policies and protocols.

    Names are replaced where all values of a column or a level are such. Rows and columns that go by protocol
    or world come in one order, within what stands before it.

    >>> titled_frame(pd.DataFrame({"n": [1, 2]}, index=["released", "paper"]))
                 n
    as written   2
    as released  1
    """
    shown = frame.copy()
    shown = shown.iloc[order_of(shown.index), order_of(shown.columns)]
    shown.index, shown.columns = _titled_index(shown.index), _titled_index(shown.columns)
    for place in range(shown.shape[1]):
        own = shown.iloc[:, place]
        if own.dtype == object or own.dtype == "string":
            shown.isetitem(place, _titled_values(own.name, own.tolist()))
    return shown


def titled_series(series: pd.Series) -> pd.Series:
    """A series likewise.

    >>> titled_series(pd.Series({"observed": 1, "paper": 2})).index.tolist()
    ['as written', 'partial start']
    """
    shown = series.iloc[order_of(series.index)]
    return shown.set_axis(_titled_index(shown.index))


def is_name(value: object) -> bool:
    """Whether a value is the name of a world, a policy or a protocol."""
    return isinstance(value, str) and (value in _TITLES or value.partition(":")[0] in PROTOCOLS)


def title_of(value: str) -> str:
    """What pages call a world, a policy or a protocol."""
    return _TITLES[value] if value in _TITLES else protocol_title(value)


def _titled_index(index: pd.Index) -> pd.Index:
    if isinstance(index, pd.MultiIndex):
        levels = [_titled_index(index.get_level_values(place)) for place in range(index.nlevels)]
        return pd.MultiIndex.from_arrays(levels, names=index.names)
    values = index.tolist()
    titled = _titled_values(index.name, values) if values else values
    return index if titled is values else pd.Index(titled, name=index.name)


def _titled_values(name: object, values: list[Any]) -> list[Any]:
    if name == _STRATUM:
        return [STRATUM_TITLES.get(one, one) for one in values]
    return [title_of(one) for one in values] if all(map(is_name, values)) else values


def order_of(index: pd.Index) -> np.ndarray:
    """The places of an index's entries, by protocol and by world in one order, within what stands before.

    >>> order_of(pd.Index(["graphnav", "tooldag", "objectstate"])).tolist()
    [1, 2, 0]
    """
    keys: list[list[int]] = []
    ordered = 0  # how many levels there are up to the last that has an order
    for place in range(index.nlevels):
        level = index.get_level_values(place)
        bases = [one.partition(":")[0] if isinstance(one, str) else one for one in level]
        orders = (own for own in (_PROTOCOLS, _WORLDS) if bases and {*map(str, bases)} <= own.keys())
        known = next(orders, None)
        keys.append([known[str(one)] for one in bases] if known else pd.factorize(level)[0].tolist())
        ordered = len(keys) if known else ordered
    return np.lexsort(keys[:ordered][::-1]) if ordered else np.arange(len(index))


def frame_html(frame: pd.DataFrame) -> str:
    """A frame as a page shows it; an index without a name that only counts the rows is left out."""
    shown = titled_frame(frame)
    counts = shown.index.name is None and pd.api.types.is_integer_dtype(shown.index)
    return shown.to_html(index=False) if counts else shown._repr_html_()  # type: ignore[operator]


def show_titles() -> None:
    """Let a notebook that makes a page print titles; nothing happens elsewhere."""
    from IPython import get_ipython

    shell: Any = get_ipython()
    if shell is None or ENVIRONMENT not in os.environ:
        return
    formatters = shell.display_formatter.formatters
    formatters["text/html"].for_type(pd.DataFrame, frame_html)
    formatters["text/html"].for_type(pd.Series, lambda own: frame_html(own.to_frame(own.name or "")))
    formatters["text/plain"].for_type(pd.DataFrame, lambda frame, out, _: out.text(repr(titled_frame(frame))))
    formatters["text/plain"].for_type(pd.Series, lambda own, out, _: out.text(repr(titled_series(own))))
