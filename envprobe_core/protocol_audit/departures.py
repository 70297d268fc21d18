"""Where the paper's text and its public code (commit 3266b54) differ, as data (data/paper/departures.csv)."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from envprobe_core.claims.printed import PAPER_FOLDER
from envprobe_core.errors import InputError
from envprobe_core.places import place
from envprobe_core.protocols import SWITCHES

COLUMNS = ("id", "about", "places", "text", "code", "switch")


@dataclass(frozen=True)
class Departure:
    """One difference between the text and the public code.

    Attributes:
        id: our name.
        about: what it concerns.
        places: where the text says it, as `places.PLACES` names them; none where it says nothing.
        text: what the text says, in our words.
        code: what the public code does, in our words.
        switch: the protocol switch that simulates it, or empty.
    """

    id: str
    about: str
    places: tuple[str, ...]
    text: str
    code: str
    switch: str


@lru_cache(maxsize=2)
def load_departures(path: Path | None = None) -> tuple[Departure, ...]:
    """Read every departure, those with a switch and those that are only listed.

    Args:
        path: by default data/paper/departures.csv.

    Raises:
        InputError: for other columns, an unknown place or switch, an empty text, or a name given twice.
    """
    path = path or PAPER_FOLDER / "departures.csv"
    found: dict[str, Departure] = {}
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise InputError(f"{path.name}: the columns are {reader.fieldnames}, not {COLUMNS}")
        for row in reader:
            where = f"{path.name}, line {reader.line_num}"
            if not all(row[name] for name in ("id", "about", "text", "code")):
                raise InputError(f"{where}: only `places` and `switch` may be empty")
            if row["switch"] and row["switch"] not in SWITCHES:
                raise InputError(f"{where}: switch {row['switch']!r} is none of {', '.join(SWITCHES)}")
            if row["id"] in found:
                raise InputError(f"{where}: {row['id']!r} is given twice")
            places = tuple(row["places"].split())
            for source in places:
                place(source)
            found[row["id"]] = Departure(
                row["id"], row["about"], places, row["text"], row["code"], row["switch"]
            )
    return tuple(found.values())
