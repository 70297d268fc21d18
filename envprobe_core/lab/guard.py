"""The wrapper around a reader's score function: it shows it a view, and checks what comes back.

Every mistake is one message that says what to change. The engine's own policies do not pass here.
"""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from envprobe_core.errors import InputError
from envprobe_core.views import View
from envprobe_core.worlds.base import Floats

READABLE = {  # what a score function may read, and what it is
    "c": "criticality of each field, 0 to 1; array [row, field]",
    "s": "staleness that the agent reports, as min(1, steps / 10); array [row, field]",
    "u": "uncertainty that the agent reports, 1 − confidence; array [row, field]",
    "d": "dependency role for the proposed action: 1, .5 or 0; array [row, field]",
    "value": "the believed values, −1 where unknown; array [row, field]",
    "staleness": "reported staleness in steps; array [row, field]",
    "confidence": "reported confidence in percent; array [row, field]",
    "step": "the decision step, from 0; one number",
    "horizon": "how many decision steps an episode has; one number",
    "budget": "probes that the episode may fire; array [row]",
    "used": "probes that it has fired so far; array [row]",
    "threshold": "what the best score must reach for a probe; array [row]",
    "action": "the proposed task action, by number; array [row]",
    "risk": "the agent's self-reported risk, 0 or 1; array [row]",
    "draws": "64 random bits of this row and step, the same in every run; array [row]",
    "protocol": "the protocol in force, with its switches",
}
FORBIDDEN = {
    "gold": "the truth is for oracles only, and an agent at work does not have it; use view.value, what the "
    "agent believes",
    "weights": "the raw task weights are for oracles only; use view.c, which is those weights scaled to 0..1",
}
EXAMPLE = "view.c + view.u"
MOST_NEGATIVE = "-1e9"
LONGEST_LINE = 70  # characters of the reader's code in a message


class PolicyError(InputError):
    """A fault of a reader's policy; a notebook shows its message and no traceback."""

    def _render_traceback_(self) -> list[str]:
        return [f"PolicyError: {self}"]


class ForbiddenError(Exception):
    """Something was read that no deployable policy may know."""


class ReadersView:
    """A `policies.View` without gold, whose arrays cannot be written to; its names are in `READABLE`."""

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
class GuardedScore:
    """A reader's score function that the rollout may call.

    Attributes:
        name: of the policy, for messages.
        function: from a view to scores [row, field].
    """

    name: str
    function: Callable[[Any], Any]

    def __call__(self, view: View) -> Floats:
        """Return the scores of every row, [row, field].

        Raises:
            PolicyError: if the function fails or does not return finite numbers of that shape.
        """
        if not len(view.value):
            return np.zeros(view.value.shape)
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
        if "read-only" in str(error):
            return (
                f"policy {self.name!r} writes into the view{where}: what it holds belongs to the running "
                "experiment; change a copy, as in score = view.c.copy()"
            )
        message = f"policy {self.name!r} fails{where}: {type(error).__name__}: {str(error).strip()}"
        if "broadcast" in str(error):
            message += "; an array of shape [row] meets one of shape [row, field] as view.used[:, None]"
        return message

    def _checked(self, given: object, view: View) -> Floats:
        rows, fields = view.value.shape
        wanted = f"an array of shape [row, field], here ({rows}, {fields}), as {EXAMPLE} has it"
        if given is None:
            raise PolicyError(f"policy {self.name!r} returns nothing: end it with `return` and {wanted}")
        if not isinstance(given, np.ndarray):
            raise PolicyError(f"policy {self.name!r} returns {_article(given)}; return {wanted}")
        if given.dtype.kind not in "fiub":
            raise PolicyError(
                f"policy {self.name!r} returns values of type {given.dtype}; scores must be real numbers: "
                f"return {wanted}"
            )
        if given.shape != (rows, fields):
            hint = _shape_hint(given.shape, rows, fields)
            raise PolicyError(
                f"policy {self.name!r} returns an array of shape {given.shape}{hint}; return {wanted}"
            )
        score = given.astype(np.float64)
        bad = ~np.isfinite(score)
        if bad.any():
            row, field = np.argwhere(bad)[0]
            raise PolicyError(
                f"policy {self.name!r} gives {score[row, field]} for {int(bad.sum())} of {bad.size} scores, "
                f"first at row {row}, field {field}, step {view.step}: scores must be finite; guard the "
                f"division or the logarithm, and to rule a field out give it {MOST_NEGATIVE}"
            )
        return score


def _article(given: object) -> str:
    kind = type(given).__name__
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _shape_hint(shape: tuple[int, ...], rows: int, fields: int) -> str:
    hints = {
        (rows,): " (one number a row: was it summed over the fields?)",
        (fields,): " (one number a field: each row needs its own)",
        (fields, rows): " (rows and fields are exchanged)",
        (): " (a single number)",
    }
    return hints.get(shape, "")


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
    line = linecache.getline(frames[-1].filename, frames[-1].lineno or 0).strip()
    if len(line) > LONGEST_LINE:
        line = f"{line[:LONGEST_LINE]} …"
    return f" at line {frames[-1].lineno}" + (f" (`{line}`)" if line else "")
