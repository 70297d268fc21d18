"""Sets of tools or nodes as bit masks, one integer a row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

ONE = np.int32(1)
NONE = 32  # what `lowest` gives for an empty set


def pack(members: Mask) -> Bits:
    """Turn membership [..., member] into masks [...]; at most 24 members, whose sums are exact as floats."""
    powers = single(np.arange(members.shape[-1])).astype(np.float32)
    with np.errstate(invalid="ignore"):  # BLAS flags lanes of its own beyond a short row (numpy#24067)
        return (members.astype(np.float32) @ powers).astype(np.int32)  # a product of floats is far faster


def unpack(masks: Bits, count: int) -> Mask:
    """Turn masks [...] into membership [..., member]."""
    octets = np.ascontiguousarray(masks, dtype="<i4").ravel().view(np.uint8)
    members = np.unpackbits(octets, bitorder="little").view(np.bool_)
    return members.reshape(*masks.shape, NONE)[..., :count]


def count_true(members: Mask) -> npt.NDArray[np.int64]:
    """Count the true members [..., member] of up to 127; much faster than `sum` along a short axis."""
    return np.einsum("...i->...", members.view(np.int8)).astype(np.int64)


def has(masks: Bits, member: npt.ArrayLike) -> Mask:
    """Say for each row whether the mask holds the member; a negative member is in no mask."""
    members = np.asarray(member, dtype=np.int32)
    return ((masks >> np.maximum(members, 0)) & ONE != 0) & (members >= 0)


def single(member: npt.ArrayLike) -> Bits:
    """Return the mask of one member per row."""
    return ONE << np.asarray(member, dtype=np.int32)


def lowest(masks: Bits) -> npt.NDArray[np.int64]:
    """Return each mask's lowest member; an empty mask gives NONE."""
    below = ((masks & -masks) - ONE).astype(np.uint32)  # bitwise_count drops a sign
    return np.bitwise_count(below).astype(np.int64)


def highest(masks: Bits) -> npt.NDArray[np.int64]:
    """Return each mask's highest member; an empty mask gives -1."""
    filled = masks
    for shift in (1, 2, 4, 8, 16):
        filled = filled | filled >> np.int32(shift)
    return np.bitwise_count(filled).astype(np.int64) - 1


def nth(masks: Bits, rank: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """Return the member of each mask that has `rank` lower members in it."""
    members = unpack(masks, count)
    return np.argmax(members & (np.cumsum(members, axis=-1) == rank[:, None] + 1), axis=-1)
