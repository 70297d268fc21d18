"""The book's numbers are those that `tests/golden/` keeps; its README says when they may change."""

import os
from itertools import product, zip_longest

import pytest

from envprobe_book.reproduce import build as book
from envprobe_core.protocols import PROTOCOLS
from envprobe_core.worlds import WORLDS
from golden import freeze_book as golden


def check(label, kept, built):
    """Fail with the first row of a table that differs."""
    for number, (was, now) in enumerate(zip_longest(kept, built)):
        assert now == was, f"{label}, row {number}: kept {was}, built {now}"


@pytest.mark.parametrize("size", ["small", "whole"])
def test_the_same_numbers_in_tables_and_scoreboard_and_descriptions_of_figures(size, request):
    """In the small book of all tests, and in the checkout's own if it is fresh."""
    if size == "whole" and not golden.up_to_date():
        told = (
            pytest.fail if os.environ.get("ENVPROBE_REQUIRE_BOOK") else pytest.skip
        )  # `make golden` sets it
        told("the checkout's own book is not up to date; `make book` makes it so")
    html = request.getfixturevalue("html") if size == "small" else book.html_folder()
    kept = golden.read_frozen(golden.SMALL if size == "small" else golden.FOLDER)
    built = golden.read_built(html)
    assert kept.tables
    for label in kept.tables | built.tables:
        check(label, kept.tables.get(label, []), built.tables.get(label, []))
    check("alt texts", sorted(kept.alt_texts.items()), sorted(built.alt_texts.items()))


@pytest.mark.parametrize(("world", "protocol"), list(product(WORLDS, PROTOCOLS)))
def test_the_same_result_hashes(world, protocol):
    head, *rows = golden.read_rows(golden.HASHES)
    kept = [row for row in rows if row[:2] == [world, protocol]]
    check(golden.HASHES.name, [head, *kept], [head, *golden.hash_rows(world, protocol)])
