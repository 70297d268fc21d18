"""A table by the names of its columns: how a value is written follows from what it is.

| a column, or its first word | is written | |
|---|---|---|
| `protocol`, `policy arm reference`, `world`, `stratum`, `verdict` | as titles, badges | `code` ... |
| `gain`, `difference`, `off` | points with a sign | `+1` |
| `accuracy`, `auc`, `score` | a share with three or two digits | `3`, `2` |
| `success`, `share`, `turned`, `useful` | percent | `%1`, `%` |
| `price`, `printed` | as a difference | `+2` |
| `estimate` | a difference or a level | `2` |
| `probes`; `step`, `idle` | counts that are averaged | `2`; `1` |
| `percent` | a level told in percent, points or steps | `1` |
| `p` | a p-value | `p` |
| whole numbers, texts | as they are | |
| any other number | two digits | `2` |

An interval `x_low x_high` stands behind `x`; without an `x` it is a column of its own. Named levels of the
index are the first columns. Of two levels of columns the one that the table above knows says how a value is
written (of two such the lower one), and the other is the head; where several are known (`accuracy` ...),
the head has both.
Underscores are spaces, a stratum is called worlds, and names of protocols, policies and worlds are titles.
Rows that go by protocol come in one order. A phone shows each row of a wide table as a list of its cells
(`paper.css`, `reader.js`).
"""

import re
from dataclasses import replace
from typing import Any

import pandas as pd

from envprobe_book.pages.figures import STRATUM_TITLES
from envprobe_book.pages.frames import is_name, order_of, title_of
from envprobe_book.pages.markup import EMPTY
from envprobe_book.pages.table import Table, table

WRITTEN = {
    "protocol": "code", "policy": "policy", "arm": "policy", "reference": "policy", "world": "world",
    "stratum": "stratum", "verdict": "verdict", "p": "p",
    "gain": "+1", "difference": "+1", "off": "+1", "estimate": "2", "price": "+2", "printed": "+2",
    "accuracy": "3", "rate": "3", "auc": "2", "score": "2",
    "success": "%1", "share": "%", "turned": "%", "useful": "%",
    "probes": "2", "step": "1", "idle": "1", "percent": "1",
}  # fmt: skip
WIDE, LONG = 4, 40  # columns from which, and rows up to which, a phone shows each row as a list
HEADS = {"stratum": "worlds"}
MEASURED = ("gain", "difference", "estimate")


def written(name: str, values: pd.Series) -> str:
    """How a column is written, by its name or first word, else by what it holds."""
    if (known := WRITTEN.get(name, WRITTEN.get(re.split("[ _,]", name)[0]))) is not None:
        return known
    numbers = pd.api.types.is_float_dtype(values)
    return "" if not numbers else "0" if (values.dropna() % 1 == 0).all() else "2"


def show(
    frame: pd.DataFrame, label: str, caption: str, *, once: str = "", digits: int | None = None, **heads: str
) -> Table:
    r"""Show a frame as a numbered table; the module says how.

    Args:
        frame: a row of it is a row of the table.
        label: what `{numref}` refers to.
        caption: one or more sentences, in Markdown.
        once: a column that is written only in the first of several equal rows.
        digits: of gains, differences and estimates, where one is not enough.
        heads: other heads for columns.

    >>> frame = pd.DataFrame({"policy": ["simple"], "gain": [1.25], "gain_low": [0.5], "gain_high": [2.0]})
    >>> show(frame, "tab-one", "One.").rows
    [['EnvProbe-Simple', '+1.3 [0.5,\xa02.0]']]
    """
    named = [level for level in frame.index.names if level is not None]
    frame = frame.iloc[order_of(frame.index)].reset_index(named) if named else frame
    keys = [tuple(filter(None, key)) if isinstance(key, tuple) else (key,) for key in frame.columns]
    what = [next((part for part in key[::-1] if _stem(part) in WRITTEN), key[-1]) for key in keys]
    several = len({_stem(name) for key, name in zip(keys, what, strict=True) if len(key) > 1}) > 1
    flat = [_flat(key, name) for key, name in zip(keys, what, strict=True)]
    frame = frame.set_axis(flat, axis=1)
    columns: dict[str, str] = {}
    for key, name, own in zip(keys, what, flat, strict=True):
        value, _, end = own.rpartition("_")
        if end == "high" or (end == "low" and value in flat):
            continue  # written with the value between them
        how = written(name, frame[own])
        if digits is not None and _stem(name) in MEASURED:
            how = how[:-1] + str(digits)
        if how.startswith("%") and f"{own}_low" in flat:
            how = "3"  # a share with its interval
        interval = f"{{{value if end == 'low' else own}:[{how.strip('+%') or 1}]}}"
        texts = [f"{{{own}:{how}}}" if how else f"{{{own}}}"] if end != "low" else []
        texts += [interval] if end == "low" or f"{own}_low" in flat else []
        parts = [part for part in key if part != name] or [_stem(name)]
        head = ", ".join(map(_head, [_stem(name), *parts] if several and len(key) > 1 else parts))
        columns[heads.get(str(parts[0]), head)] = " ".join(texts)
    stacks = len(columns) >= WIDE and len(frame) <= LONG
    made = table(frame, label, caption, columns, once=once)
    rows = [[EMPTY if cell == f"{EMPTY} {EMPTY}" else cell for cell in row] for row in made.rows]
    return replace(made, rows=rows, stacks=stacks)


def _stem(name: Any) -> str:
    return re.sub("_(low|high)$", "", str(name))


def _flat(key: tuple[Any, ...], name: str) -> str:
    """A column's name as a template can hold it; the ends of its interval stay at its end."""
    rest = " ".join(str(part) for part in key if part != name)
    return re.sub(r"[{}:\\^$]", "", f"{rest} {name}".strip() if rest else str(name))


def _head(part: Any) -> str:
    text = STRATUM_TITLES.get(part, str(part))
    return title_of(text) if is_name(text) else HEADS.get(text, text).replace("_", " ")
