"""Sets as masks, against Python's own sets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from envprobe_core import bits

sets = st.lists(st.sets(st.integers(0, 19)), min_size=1, max_size=8)


def masks_of(rows: list[set[int]]) -> np.ndarray:
    return np.array([sum(1 << member for member in row) for row in rows], dtype=np.int32)


@given(sets)
def test_masks_are_sets(rows: list[set[int]]) -> None:
    masks = masks_of(rows)
    members = bits.unpack(masks, 20)
    assert [set(np.flatnonzero(row)) for row in members] == rows
    assert bits.pack(members).tolist() == masks.tolist()
    assert bits.lowest(masks).tolist() == [min(row, default=bits.NONE) for row in rows]
    assert bits.highest(masks).tolist() == [max(row, default=-1) for row in rows]
    assert bits.count_true(members).tolist() == [len(row) for row in rows]
    for member in (-1, 0, 7, 19):
        assert bits.has(masks, np.full(len(rows), member)).tolist() == [member in row for row in rows]


@given(st.lists(st.sets(st.integers(0, 19), min_size=1), min_size=1, max_size=8), st.data())
def test_the_nth_member(rows: list[set[int]], data: st.DataObject) -> None:
    ranks = [data.draw(st.integers(0, len(row) - 1)) for row in rows]
    found = bits.nth(masks_of(rows), np.array(ranks), 20)
    assert found.tolist() == [sorted(row)[rank] for row, rank in zip(rows, ranks, strict=True)]


def test_masks_keep_their_shape() -> None:
    masks = np.array([[1, 2], [3, 0]], dtype=np.int32)
    assert bits.unpack(masks, 2).tolist() == [[[True, False], [False, True]], [[True, True], [False, False]]]
    assert bits.single([0, 3]).tolist() == [1, 8]
