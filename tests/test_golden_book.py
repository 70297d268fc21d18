"""The book's numbers are those that `tests/golden/` keeps; its README says when they may change."""

from itertools import product, zip_longest

import pytest
from golden import freeze_book as golden

from envprobe_core.protocols import PROTOCOLS
from envprobe_core.reproduce import build as book
from envprobe_core.worlds import WORLDS

SHOWN = 20  # differences that a failure lists


@pytest.fixture(scope="module", params=["small", "whole"])
def numbers(request):
    """The numbers kept and built: of the small book of all tests, of the checkout's own if it is fresh."""
    if request.param == "small":
        return golden.read_frozen(golden.SMALL), golden.read_built(request.getfixturevalue("html"))
    if not golden.up_to_date():
        pytest.skip("the checkout's own book is not up to date; `make book` makes it so")
    return golden.read_frozen(golden.FOLDER), golden.read_built(book.html_folder())


def differences(label, kept, built):
    """Say where two tables differ: in rows, or in which row and column."""
    if len(kept) != len(built):
        yield f"{label}: {len(kept)} rows kept, {len(built)} built"
    for number, (old, new) in enumerate(zip(kept, built, strict=False)):
        name = f"row {number} ({' | '.join(old[:3])})" if number else "head"
        for place, (was, now) in enumerate(zip_longest(old, new)):
            if was != now:
                column = kept[0][place] if place < len(kept[0]) else place + 1
                yield f"{label}, {name}, column {column!r}: kept {was!r}, built {now!r}"


def agree(found):
    """Fail with the first differences, if there are any."""
    found = list(found)
    if found:
        more = [f"... and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
        pytest.fail("\n".join([*found[:SHOWN], *more]), pytrace=False)


def test_the_same_tables_and_figures(numbers):
    kept, built = ({*own.tables, *own.alt_texts} for own in numbers)
    assert kept
    agree(f"{label}: {'kept' if label in kept else 'built'} only" for label in sorted(kept ^ built))


def test_the_same_numbers_in_tables_and_scoreboard(numbers):
    kept, built = numbers
    both = sorted(kept.tables.keys() & built.tables.keys())
    agree(text for label in both for text in differences(label, kept.tables[label], built.tables[label]))


def test_the_same_descriptions_of_figures(numbers):
    kept, built = (own.alt_texts for own in numbers)
    agree(
        f"{label}, alt text: kept {kept[label]!r}, built {built[label]!r}"
        for label in sorted(kept.keys() & built.keys())
        if kept[label] != built[label]
    )


@pytest.mark.parametrize(("world", "protocol"), list(product(WORLDS, PROTOCOLS)))
def test_the_same_result_hashes(world, protocol):
    head, *rows = golden.read_rows(golden.HASHES)
    kept = [row for row in rows if row[:2] == [world, protocol]]
    agree(differences(golden.HASHES.name, [head, *kept], [head, *golden.hash_rows(world, protocol)]))
