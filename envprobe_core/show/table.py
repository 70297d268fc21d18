"""One verb for every table: a frame, and for each column a template over its rows."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any

import pandas as pd

from envprobe_core.figures import STRATUM_TITLES, WORLD_TITLES, policy_title
from envprobe_core.markup import EMPTY, Table, bracket, number, p_value, percent, signed
from envprobe_core.tables import badge


def table(
    frame: pd.DataFrame,
    label: str,
    caption: str,
    columns: Mapping[str, str],
    *,
    once: str | tuple[str, ...] = (),
    align: str = "",
) -> Table:
    """Show a frame as a numbered table.

    Args:
        frame: a row of it is a row of the table.
        label: what `{numref}` refers to.
        caption: one or more sentences, in Markdown.
        columns: heads, and templates such as `"{policy:policy}"` or `"{gain:+2} {gain:[2]}"`. After the
            colon stands how a value is written: `3` with digits, `+2` as a difference, `%1` as a share in
            percent, `[2]` as the interval in `gain_low` and `gain_high` (or, without these, in `low` and
            `high`), `p` as a p-value, `code`, `policy`, `world`, `stratum`, `verdict`; nothing: as it is.
        once: columns of the frame that are written only in the first of several equal rows; the heads
            whose template names them are left empty there.
        align: a letter a column (l, r, c); by default numbers stand to the right.
    """
    quiet = (once,) if isinstance(once, str) else once
    rows, last, write = [], {}, _Template()
    for row in frame.to_dict("records"):
        cells = []
        for template in columns.values():
            named = {name for _, name, _, _ in write.parse(template) if name}
            same = bool(named) and named <= set(quiet) and all(last.get(name) == row[name] for name in quiet)
            cells.append("" if same else write.vformat(template, (), row))
        last = {name: row[name] for name in quiet}
        rows.append(cells)
    return Table(
        label,
        caption,
        tuple(columns),
        rows,
        align or "".join(_side(template, frame) for template in columns.values()),
    )


def written(value: Any, how: str) -> str:
    """Write one value (`table` says how)."""
    if how in _WORDS:
        return EMPTY if _missing(value) else _WORDS[how](value)
    if how == "p":
        return p_value(value)
    if not how:
        return EMPTY if _missing(value) else f"{value:,}" if isinstance(value, int) else str(value)
    if how[0] == "+":
        return signed(value, int(how[1:] or 0))
    if how[0] == "%":
        return percent(value, int(how[1:] or 0))
    return number(value, int(how))


_WORDS = {
    "code": lambda name: f"`{name}`",
    "policy": policy_title,
    "world": lambda name: WORLD_TITLES[name],
    "stratum": lambda name: STRATUM_TITLES.get(name, name),
    "verdict": badge,
}


def _missing(value: Any) -> bool:
    return value is None or value != value  # NaN is not itself


def _side(template: str, frame: pd.DataFrame) -> str:
    """Numbers stand to the right, words to the left."""
    parts = [(name, how or "") for _, name, how, _ in string.Formatter().parse(template) if name]
    if not parts or parts[0][1] in _WORDS:
        return "l"
    name, how = parts[0]
    return "r" if how or pd.api.types.is_numeric_dtype(frame[name]) else "l"


class _Template(string.Formatter):
    """Formats a row: a bracket takes the columns `gain_low` and `gain_high`, or `low` and `high`."""

    def get_field(self, field_name: str, args: Any, row: Any) -> tuple[Any, str]:
        return (field_name, row), field_name

    def format_field(self, found: Any, how: str) -> str:
        name, row = found
        if how.startswith("["):
            own = f"{name}_" if f"{name}_low" in row else ""
            return bracket(row[f"{own}low"], row[f"{own}high"], int(how[1:-1]))
        return written(row[name], how)
