"""The wrapper around a reader's score function: it shows it a view, and checks what comes back.

Every mistake is one message that says what to change. The engine's own policies do not pass here.
"""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np
from numba.core.errors import NumbaError

from envprobe_core.errors import InputError
from envprobe_core.policies.own import Guarded, View
from envprobe_core.worlds.base import Floats

READABLE = {  # what a score function may read, and what it is
    "c": "criticality of each field, 0 to 1; array [field]",
    "s": "staleness that the agent reports, as min(1, steps / 10); array [field]",
    "u": "uncertainty that the agent reports, 1 − confidence; array [field]",
    "d": "dependency role for the proposed action: 1, .5 or 0; array [field]",
    "value": "the believed values, −1 where unknown; array [field]",
    "staleness": "reported staleness in steps; array [field]",
    "confidence": "reported confidence in percent; array [field]",
    "step": "the decision step, from 0",
    "horizon": "how many decision steps an episode has",
    "budget": "probes that the episode may fire",
    "used": "probes that it has fired so far",
    "threshold": "what the best score must reach for a probe",
    "action": "the proposed task action, by number; −1 waits",
    "risk": "the agent's self-reported risk, 0 or 1",
    "draw": "63 random bits of this episode and step, the same in every run",
}
FORBIDDEN = {
    "gold": "the truth is for oracles only, and an agent at work does not have it; use view.value, what the "
    "agent believes",
    "weights": "the raw task weights are for oracles only; use view.c, which is those weights scaled to 0..1",
}
EXAMPLE = "view.c + view.u"
SHAPE_SIGNS = ("broadcast", "too many indices", "not subscriptable", "out of bounds for array of dimension 1")
MOST_NEGATIVE = "-1e9"
LONGEST_LINE = 70  # characters of the reader's code in a message


class PolicyError(InputError):
    """A fault of a reader's policy; a notebook shows its message and no traceback."""

    def _render_traceback_(self) -> list[str]:
        return [f"PolicyError: {self}"]


class ForbiddenError(Exception):
    """Something was read that no deployable policy may know."""


class ReadersView:
    """A view whose names are those in `READABLE`; for any other it says what there is."""

    __slots__ = ("_view",)

    def __init__(self, view: View) -> None:
        """Show what a policy sees at one step."""
        object.__setattr__(self, "_view", view)

    def __getattr__(self, name: str) -> Any:
        if name in FORBIDDEN:
            raise ForbiddenError(name)
        if name not in READABLE:
            raise AttributeError(f"the view has no {name!r}; it has {', '.join(READABLE)}")
        seen = getattr(self._view, name)
        if isinstance(seen, np.ndarray):
            seen = seen.view()
            seen.flags.writeable = False
        return seen

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"view.{name} is read-only")


@dataclass(frozen=True)
class GuardedScore(Guarded):
    """A reader's score function that the engine may call.

    Attributes:
        function: from a view to scores [field].
        name: of the policy, for messages.
    """

    name: str

    def __call__(self, view: View) -> Floats:
        """Return the scores, [field].

        Raises:
            PolicyError: if the function fails or does not return finite numbers of that shape.
        """
        try:
            with np.errstate(all="ignore"):  # a division by zero is told below, by what came of it
                given = self.function(ReadersView(view))
        except Exception as error:
            raise PolicyError(self._failure(error)) from None
        return self._checked(given, view)

    def _failure(self, error: Exception) -> str:
        where = _place(self.function, error)
        if isinstance(error, ForbiddenError):
            return f"policy {self.name!r} reads view.{error}{where}: {FORBIDDEN[str(error)]}"
        if "read-only" in str(error) or "WRITEABLE" in str(error):
            return (
                f"policy {self.name!r} writes into the view{where}: what it holds belongs to the running "
                "experiment; change a copy, as in score = view.c.copy()"
            )
        message = f"policy {self.name!r} fails{where}: {type(error).__name__}: {str(error).strip()}"
        if any(sign in str(error) for sign in SHAPE_SIGNS):
            message += "; the view is one agent's at one step: arrays are [field], all else is one number"
        return message

    def _checked(self, given: object, view: View) -> Floats:
        fields = len(view.value)
        wanted = f"an array of shape [field], here ({fields},), as {EXAMPLE} has it"
        if given is None:
            raise PolicyError(f"policy {self.name!r} returns nothing: end it with `return` and {wanted}")
        if not isinstance(given, np.ndarray) or not given.shape:
            raise PolicyError(
                f"policy {self.name!r} returns {_article(given)}{_number_hint(given)}; return {wanted}"
            )
        if given.dtype.kind not in "fiub":
            raise PolicyError(
                f"policy {self.name!r} returns values of type {given.dtype}; scores must be real numbers: "
                f"return {wanted}"
            )
        if given.shape != (fields,):
            raise PolicyError(
                f"policy {self.name!r} returns an array of shape {given.shape}; return {wanted}"
            )
        score = given.astype(np.float64)
        bad = ~np.isfinite(score)
        if bad.any():
            field = int(np.flatnonzero(bad)[0])
            raise PolicyError(
                f"policy {self.name!r} gives {score[field]} for {int(bad.sum())} of {bad.size} scores, "
                f"first for field {field} at step {view.step}: scores must be finite; guard the "
                f"division or the logarithm, and to rule a field out give it {MOST_NEGATIVE}"
            )
        return score


def tell_not_compiled(score: GuardedScore, why: Exception | None) -> str:
    """Say that a policy is not compiled, and why.

    Args:
        score: of the policy.
        why: the compiler's error, or None where compiled scores are not Python's.
    """
    if not isinstance(score.function, FunctionType):
        reason = "only a function written with `def` or `lambda` can be compiled"
    elif why is None:
        reason = "compiled, its scores would differ in the last digit, as those of sums, exp and powers do"
    else:
        place = why.loc if isinstance(why, NumbaError) else None
        own = place is not None and place.filename == score.function.__code__.co_filename
        where = _at_line(place.filename, place.line) if own else ""
        reason = f"it uses something{where} that the compiler does not know"
    return f"policy {score.name!r} is accepted and runs as plain Python, many times slower: {reason}"


def _number_hint(given: object) -> str:
    return " (was it summed over the fields?)" if isinstance(given, np.generic | np.ndarray) else ""


def _article(given: object) -> str:
    kind = type(given).__name__
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _place(function: Callable[..., object], error: BaseException) -> str:
    """Return where in the reader's own code an error arose, as ` at line 3 (`...`)`; empty if unknown."""
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if code is not None and frame.filename == code.co_filename
    ]
    if not frames:
        return ""
    return _at_line(frames[-1].filename, frames[-1].lineno or 0)


def _at_line(filename: str, number: int) -> str:
    line = linecache.getline(filename, number).strip()
    if len(line) > LONGEST_LINE:
        line = f"{line[:LONGEST_LINE]} …"
    return f" at line {number}" + (f" (`{line}`)" if line else "")
