"""Tables of a few distinct values as short text: one character a cell, and the values they stand for.

An episode's table has some thousand cells and few values, so that this is a tenth of a JSON list, and
compresses well. Values come back exactly, floats included.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_AVOIDED = "\"'\\<>&`"  # what JSON or HTML would have to escape
ALPHABET = "".join(
    letter for letter in map(chr, range(0x21, 0x180)) if letter.isprintable() and letter not in _AVOIDED
)


def pack(table: npt.NDArray[Any]) -> dict[str, Any]:
    """Pack a table, [line, field].

    Returns:
        `levels`, the distinct values ascending; `lines`, a text a line with one letter of `ALPHABET` a field.

    Raises:
        ValueError: if it holds more distinct values than there are letters, or one that is not finite.
    """
    if not np.isfinite(table).all():
        raise ValueError("a table with a missing value cannot be packed")
    levels, places = np.unique(table, return_inverse=True)
    if len(levels) > len(ALPHABET):
        raise ValueError(f"{len(levels)} distinct values; at most {len(ALPHABET)}")
    lines = ["".join(ALPHABET[place] for place in line) for line in places.reshape(table.shape).tolist()]
    return {"levels": levels.tolist(), "lines": lines}


def unpack(packed: dict[str, Any]) -> npt.NDArray[Any]:
    """Return the table that was packed, [line, field]."""
    levels = packed["levels"]
    return np.array([[levels[ALPHABET.index(letter)] for letter in line] for line in packed["lines"]])
