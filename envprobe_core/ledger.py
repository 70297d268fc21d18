"""The ledger: a file that says what the engine has run, so that it can be run again and compared.

It is kept where the environment variable `ENVPROBE_LEDGER` names a file, and nowhere else: `envprobe
reproduce` sets it for the kernel of each section. Every process that inherits the variable appends to the
file, a line of JSON for each range of seeds of each call, in one write, so that lines of several processes do
not mix. Workers of a cluster may have no such file: what goes there is noted as such by whoever hands it out.

A line is one of

    {"condition": a pickled `Condition` in base64, "seeds": [FIRST, PAST], "digest": 16 hexadecimal digits}
    {"kind": what else was run, in words, "count": how many}

The digest of a range is `condensed`, a sum: ranges that follow one another have the sum of theirs. The file
is read by whoever named it, and is no format for exchange.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from envprobe_core.conditions import Condition

ENVIRONMENT = "ENVPROBE_LEDGER"


def condensed(seeds: npt.NDArray[np.int64], digests: npt.NDArray[np.uint64]) -> int:
    """The digest of several episodes: the sum of digest x (2 x seed + 1), modulo 2**64.

    The order of episodes does not enter. The factor is odd, so that a change of any one episode changes the
    sum, and it is another one for each seed, so that two episodes that change places change it too.

    >>> condensed(np.array([0, 1]), np.array([5, 7], np.uint64))
    26
    """
    words = np.asarray(seeds).astype(np.uint64) * np.uint64(2) + np.uint64(1)
    return int((np.asarray(digests, np.uint64) * words).sum(dtype=np.uint64))


def note_condition(
    condition: Condition, seeds: npt.NDArray[np.int64], digests: npt.NDArray[np.uint64]
) -> None:
    """Append a condition that was run on some seeds, [row] each, where a ledger is kept."""
    if ENVIRONMENT not in os.environ or not len(seeds):
        return
    packed = base64.b64encode(pickle.dumps(condition)).decode()
    order = np.argsort(seeds, kind="stable")
    seeds, digests = seeds[order], np.asarray(digests)[order]
    starts = np.flatnonzero(np.diff(seeds) != 1) + 1
    for own, found in zip(np.split(seeds, starts), np.split(digests, starts), strict=True):
        span = [int(own[0]), int(own[-1]) + 1]
        _append({"condition": packed, "seeds": span, "digest": f"{condensed(own, found):016x}"})


def note_other(kind: str, count: int) -> None:
    """Append what was run in another way than from a condition and seeds alone, where a ledger is kept."""
    if ENVIRONMENT in os.environ:
        _append({"kind": kind, "count": int(count)})


def _append(line: dict[str, Any]) -> None:
    text = (json.dumps(line) + "\n").encode()
    file = os.open(os.environ[ENVIRONMENT], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, text)
    finally:
        os.close(file)
