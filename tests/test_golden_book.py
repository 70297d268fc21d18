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
    """Say where two tables differ: which is missing, or in which row and column."""
    for number, (old, new) in enumerate(zip_longest(kept, built, fillvalue=("no such row",))):
        for place, (was, now) in enumerate(zip_longest(old, new)):
            if was != now:
                name = f"row {number} ({' | '.join(old[:3])})" if number else "head"
                yield f"{label}, {name}, column {place + 1}: kept {was!r}, built {now!r}"


def agree(found):
    """Fail with the first differences, if there are any."""
    if found := list(found):
        pytest.fail("\n".join([*found[:SHOWN], f"... {len(found)} in all"]), pytrace=False)


@pytest.mark.parametrize("kind", ["tables", "alt_texts"])
def test_the_same_numbers_in_tables_and_scoreboard_and_descriptions_of_figures(numbers, kind):
    kept, built = (getattr(own, kind) for own in numbers)
    assert kept
    if kind == "alt_texts":
        kept, built = ({label: [[text]] for label, text in own.items()} for own in (kept, built))
    labels = sorted({*kept, *built})
    agree(text for label in labels for text in differences(label, kept.get(label, []), built.get(label, [])))


@pytest.mark.parametrize(("world", "protocol"), list(product(WORLDS, PROTOCOLS)))
def test_the_same_result_hashes(world, protocol):
    head, *rows = golden.read_rows(golden.HASHES)
    kept = [row for row in rows if row[:2] == [world, protocol]]
    agree(differences(golden.HASHES.name, [head, *kept], [head, *golden.hash_rows(world, protocol)]))
