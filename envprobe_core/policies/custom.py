"""A reader's own policy: a Python function of what one agent sees at one step, which the engine calls.

The engine calls a rule: a C function of a sight's address that writes the scores and says whether it could.
Whoever wants more speed compiles the function with `numba.njit`; it is called in the same way.
"""

import ctypes
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import from_dtype, types
from numba.core.types import WrapperAddressProtocol

from envprobe_core.compiled.records import SIGHT
from envprobe_core.errors import InputError

Score = Callable[[Any], Any]
"""From a view to an array [field] of scores; the field of the highest is probed if that is high enough."""
FINE, FAILED = 0, 1
SIGNATURE = types.int64(from_dtype(SIGHT))
_PLACES = {name: (kind.base, place) for name, (kind, place, *_) in (SIGHT.fields or {}).items()}
"""Of each field of a sight: the type of its numbers, and where it begins."""


class View(NamedTuple):
    """What a policy sees when it decides, by the paper's names; arrays, [field], cannot be written to."""

    c: Any  # criticality, 0 to 1
    s: Any  # reported staleness, min(1, steps / 10)
    u: Any  # reported uncertainty, 1 - confidence
    d: Any  # dependency role for the proposed action: 1, .5 or 0
    value: Any  # believed values, -1 where unknown
    staleness: Any  # reported staleness in steps
    confidence: Any  # reported confidence in percent
    step: int  # t, from 0
    horizon: int  # H
    budget: int  # B
    used: int  # probes fired so far
    threshold: float  # rho_star
    action: int  # the proposed task action, by number; -1 waits
    risk: int  # the agent's self-reported risk, 0 or 1
    draw: int  # 63 random bits of this episode and step, the same in every run


def view_of(sight: bytes) -> View:
    """The view of a sight, given as bytes: arrays of them, which nobody can write to."""

    def one(name: str) -> Any:
        kind, place = _PLACES[name]
        return struct.unpack_from(kind.char, sight, place)[0]

    def array(name: str) -> Any:
        kind, place = _PLACES[name]
        past = place + fields * np.dtype(kind).itemsize
        return np.frombuffer(sight[place:past], kind)  # its bytes alone: no way leads to others

    fields = one("fields")
    return View(*map(array, View._fields[:7]), *map(one, View._fields[7:-1]), one("draw") >> 1)


class Called(WrapperAddressProtocol):
    """A rule that calls Python; after an error, which it keeps, it fails for good.

    Attributes:
        error: what the function raised, or None.
    """

    _numba_type_ = types.FunctionType(SIGNATURE)

    def __init__(self, score: Score) -> None:
        """Make a rule of a score function."""
        self.score = score
        self.error: BaseException | None = None
        self._entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(self._enter)

    def __wrapper_address__(self) -> int:
        return ctypes.cast(self._entry, ctypes.c_void_p).value or 0

    def signature(self) -> Any:
        """What Numba calls it with."""
        return SIGNATURE

    def _enter(self, address: int) -> int:
        memory = (ctypes.c_char * SIGHT.itemsize).from_address(address)
        return self(np.frombuffer(memory, SIGHT))

    def __call__(self, sight: Any) -> int:
        """Write the scores of a sight, an array of one; return `FINE`, or `FAILED` if that went wrong."""
        if self.error is None:
            try:
                view = view_of(sight.tobytes())
                fields = len(view.c)
                scores = np.asarray(self.score(view), dtype=np.float64)
                if scores.shape != (fields,) or not np.isfinite(scores).all():
                    raise InputError(f"a policy must return {fields} finite scores, one a field")
                sight["rho"][..., :fields] = scores
            except BaseException as error:  # compiled code would not let it pass
                self.error = error
        return FINE if self.error is None else FAILED


def nobody(view: Any) -> Any:
    """Stand in for a reader's policy where there is none: it is never asked."""
    raise LookupError("there is no policy of a reader's")


NOBODY = Called(nobody)


def rule_of(score: Score | None) -> Called:
    """The rule that the engine calls for a score function, a new one; `NOBODY` where there is none."""
    return NOBODY if score is None else Called(score)
