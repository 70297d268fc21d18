"""Freezes the book's numbers: after `make book`, `python tests/golden/freeze_book.py` writes them here.

Engine and book are those of the `envprobe_core` that Python finds first. The small book of the tests is built
anew, and every cell of `result-hashes.csv` is run. Nothing is written unless the book is up to date.
"""

from __future__ import annotations

import base64
import csv
import html
import io
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from envprobe_book.reproduce import build as book
from envprobe_book.reproduce import sections as notebooks
from envprobe_core.conditions import make_condition
from envprobe_core.experiment import run_conditions
from envprobe_core.policies import POLICIES
from envprobe_core.protocols import PROTOCOLS, parse_protocol
from envprobe_core.runs.manifest import seed_ranges
from envprobe_core.runs.tables import result_hash
from envprobe_core.worlds import WORLDS

FOLDER = Path(__file__).resolve().parent
SMALL = FOLDER / "small"
LEFT_OUT, HASHES = FOLDER / "left-out.csv", FOLDER / "result-hashes.csv"
TABLES, SCOREBOARD, ALT_TEXTS = "tables", "scoreboard.csv", "alt-texts.json"
FIRST = ("id", "protocol", "profile")  # columns of the scoreboard that name a row
HASH_COLUMNS = ("world", "protocol", "policy", "seeds", "result_hash")
_BOARD = re.compile(r'download="scoreboard-[^"]*" href="data:text/csv;charset=utf-8;base64,([^"]*)"')
_ALT = re.compile(r'<svg [^>]*aria-label="([^"]*)"')

Rows = list[list[str]]


@dataclass(frozen=True)
class Numbers:
    """What a book shows.

    Attributes:
        tables: the rows of each table of an executed page by its label, the scoreboard of every claim among
            them; what `left-out.csv` names is blank.
        alt_texts: the description of each drawn figure, by its label.
    """

    tables: dict[str, Rows]
    alt_texts: dict[str, str]


def read_rows(path: Path) -> Rows:
    """Read a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def write_rows(path: Path, rows: Iterable[Iterable[str]]) -> None:
    """Write a CSV file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def read_built(pages: Path) -> Numbers:
    """Read the numbers of a built book from the files that its pages offer for download.

    Args:
        pages: the folder of built pages.
    """
    files = pages / "_downloads"
    tables = {path.stem: read_rows(path) for path in sorted((files / TABLES).glob("*.csv"))}
    measured = {(row[0], row[1]) for row in read_rows(LEFT_OUT)[1:]}
    for label, (head, *rows) in tables.items():
        places = [place for place, name in enumerate(head) if (label, name) in measured]
        for row in rows:
            for place in places:
                row[place] = ""
    tables[SCOREBOARD] = _scoreboard((pages / "executed" / "scoreboard.html").read_text(encoding="utf-8"))
    alt_texts = {}
    for path in sorted((files / "figures").glob("*.svg")):
        found = _ALT.search(path.read_text(encoding="utf-8"))
        alt_texts[path.stem] = html.unescape(found[1]) if found else ""
    return Numbers(tables, alt_texts)


def _scoreboard(page: str) -> Rows:
    """Return the rows of every scoreboard that a page offers, one profile after the other."""
    texts = [base64.b64decode(data).decode() for data in _BOARD.findall(page)]
    records = [row for text in texts for row in csv.DictReader(io.StringIO(text))]
    head = [*FIRST, *(name for name in records[0] if name not in FIRST)]
    return [head, *([row[name] for name in head] for row in records)]


def read_frozen(folder: Path) -> Numbers:
    """Read the numbers that a folder of this one keeps."""
    tables = {path.stem: read_rows(path) for path in sorted((folder / TABLES).glob("*.csv"))}
    tables[SCOREBOARD] = read_rows(folder / SCOREBOARD)
    return Numbers(tables, json.loads((folder / ALT_TEXTS).read_text(encoding="utf-8")))


def write_frozen(folder: Path, numbers: Numbers) -> None:
    """Let a folder keep these numbers and no others."""
    shutil.rmtree(folder / TABLES, ignore_errors=True)
    for label, rows in numbers.tables.items():
        write_rows(folder / label if label == SCOREBOARD else folder / TABLES / f"{label}.csv", rows)
    text = json.dumps(numbers.alt_texts, ensure_ascii=False, indent=1, sort_keys=True)
    (folder / ALT_TEXTS).write_text(f"{text}\n", encoding="utf-8")


def hash_rows(world: str, protocol: str) -> Rows:
    """Run every policy in S2 on the default seeds; return a row of `HASH_COLUMNS` each."""
    cells = [make_condition(world, policy, "S2", parse_protocol(protocol)) for policy in POLICIES]
    table = run_conditions(cells)
    rows = []
    for index, cell in enumerate(cells):
        own = {name: column[table["condition"] == index] for name, column in table.items()}
        seeds = seed_ranges(cell.default_seeds())
        rows.append([world, protocol, cell.policy.name, seeds, result_hash(own)])
    return rows


def up_to_date() -> bool:
    """Say whether the checkout's own book shows what its engine computes, with no value changed."""
    return book.is_fresh() and all(job.fresh for job in notebooks.plan())


def freeze() -> None:
    """Write every golden file of the book."""
    if not up_to_date():
        sys.exit(f"{notebooks.ROOT}: its book is not up to date; run `make book` there first")
    sys.path.append(str(FOLDER.parent))
    from built_book import build_book

    with tempfile.TemporaryDirectory() as name:
        result = build_book(Path(name))
        if result.returncode:
            sys.exit(result.stdout + result.stderr)
        write_frozen(SMALL, read_built(book.html_folder(Path(name))))
    write_frozen(FOLDER, read_built(book.html_folder()))
    rows = [row for world, protocol in product(WORLDS, PROTOCOLS) for row in hash_rows(world, protocol)]
    write_rows(HASHES, [HASH_COLUMNS, *rows])
    print(f"frozen: the book of {notebooks.ROOT}")


if __name__ == "__main__":
    freeze()
