"""The door of the lab: a reader's score function becomes a policy after a trial on recorded views.

The trial asks about views of every world, twice about each, and again in the opposite order: a policy must
give a view the same scores whatever it saw before, or paired seeds mean nothing. In a run every answer is
checked as in the trial. Each mistake is one message that says what to change.
"""

from __future__ import annotations

import dis
import linecache
import re
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from types import FunctionType
from typing import Any

import numpy as np

from envprobe_core.cells import Cell
from envprobe_core.engine.compiling import INTERPRETED
from envprobe_core.engine.running import measure
from envprobe_core.errors import InputError
from envprobe_core.policies import POLICIES, Policy, custom_policy
from envprobe_core.policies.own import Guarded, View, codes, made
from envprobe_core.protocols import PAPER, RELEASED
from envprobe_core.show.markup import Text
from envprobe_core.worlds import WORLDS
from envprobe_core.worlds.base import Floats

Function = Callable[[Any], Any]
TRIAL_SEEDS = np.arange(6, dtype=np.int64)
TRIAL_STEPS = (0, 1, 9, 22)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9 .+-]{0,29}")
LONGEST_CALL = 10.0  # seconds; a call of a million operations takes a hundredth of that
WATCHED = 8  # in a run, one view in so many is asked about twice
LONGEST_LINE = 70  # characters of the reader's code in a message
GOLD = (
    "the truth is for oracles only, and an agent at work does not have it; use view.value, what the agent "
    "believes"
)
EXAMPLE = "view.c + view.u"
HINTS = {  # what an error's text has in it, and what helps
    "read-only|set attribute": "a view cannot be changed; change a copy, as in score = view.c.copy()",
    "truth value of an array": "to decide field by field, write np.where(condition, score, other)",
    "broadcast|too many indices|not subscriptable|out of bounds for array of dimension 1": "the view is one "
    "agent's at one step: arrays are [field], all else is one number",
}


class PolicyError(InputError):
    """A fault of a reader's policy; a notebook shows its message and no traceback."""

    def _render_traceback_(self) -> list[str]:
        return [f"PolicyError: {self}"]


class TooSlowError(KeyboardInterrupt):
    """A call took longer than `LONGEST_CALL`; no `except Exception` of a reader's stops it."""


@contextmanager
def limited() -> Iterator[None]:
    """Raise `TooSlowError` in what takes longer than `LONGEST_CALL`, where this thread can be told so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise TooSlowError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_CALL)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass(frozen=True)
class GuardedScore(Guarded):
    """A reader's score function, from a view to scores [field], that the engine may call.

    The view holds copies, and no attribute that leads to the running experiment. That keeps mistakes out, not
    somebody who means harm: Python code can walk up the stack of its own process.
    """

    name: str  # of the policy, for messages

    def __call__(self, view: View) -> Floats:
        """Return the scores, [field].

        Raises:
            PolicyError: if the function fails or does not return finite numbers of that shape.
        """
        return self.twice(view) if view.draw % WATCHED == 0 else self.once(view)

    def twice(self, view: View) -> Floats:
        """Return the scores, and refuse a function that gives others when it is asked again."""
        score = self.once(view)
        if not np.array_equal(score, self.once(view)):
            raise PolicyError(
                f"policy {self.name!r} scores the same view differently a second time (step {view.step}): "
                "keep nothing from call to call, and for chance use view.draw, which repeats in every run"
            )
        return score

    def once(self, view: View) -> Floats:
        """Ask the function within its time, and check what it returns."""
        try:
            with limited(), np.errstate(all="ignore"):  # a division by zero shows in what comes of it
                given = self.function(view)
        except (Exception, TooSlowError, SystemExit, GeneratorExit) as error:
            raise PolicyError(f"policy {self.name!r} {self._failure(error)}") from None
        score, fault = _scores(given, view)
        if fault:
            raise PolicyError(f"policy {self.name!r} {fault}")
        return score

    def _failure(self, error: BaseException) -> str:
        where = _place(self.function, error)
        if isinstance(error, TooSlowError):
            return f"takes more than {LONGEST_CALL:g} s for one decision{where}: does a loop never end?"
        if isinstance(error, AttributeError) and isinstance(error.obj, View):
            told = GOLD if error.name == "gold" else f"a view has {', '.join(View._fields)}"
            return f"reads view.{error.name}{where}: {told}"
        message = f"fails{where}: {type(error).__name__}: {str(error).strip()}"
        return "; ".join([message, *(hint for sign, hint in HINTS.items() if re.search(sign, str(error)))])


def _scores(given: Any, view: View) -> tuple[Floats, str]:
    """Return scores as numbers, and what is wrong with them, if anything."""
    wanted = f"return an array of shape [field], here ({len(view.c)},), as {EXAMPLE} has it"
    if not isinstance(given, np.ndarray) or not given.shape:
        kind = type(given).__name__
        hint = " (was it summed over the fields?)" if isinstance(given, np.generic) else ""
        return view.c, f"returns {'an' if kind[0] in 'aeiou' else 'a'} {kind}{hint}; {wanted}"
    scores = np.asarray(given)
    if scores.dtype.kind not in "fiub":
        return scores, f"returns values of type {scores.dtype}; scores must be real numbers: {wanted}"
    if scores.shape != view.c.shape:
        return scores, f"returns an array of shape {scores.shape}; {wanted}"
    scores = scores.astype(np.float64)
    scores[np.ma.getmaskarray(given)] = np.nan
    bad = np.flatnonzero(~np.isfinite(scores))
    if len(bad):
        return scores, (
            f"gives {scores[bad[0]]} for {len(bad)} of {len(scores)} scores, first for field {bad[0]} at "
            f"step {view.step}: scores must be finite; guard the division or the logarithm, and to rule a "
            "field out give it -1e9"
        )
    return scores, ""


def _place(function: Callable[..., object], error: BaseException) -> str:
    """Return where in the reader's own code an error arose, as ` at line 3 (`...`)`; empty if unknown."""
    code = getattr(getattr(function, "func", function), "__code__", None)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if code is not None and frame.filename == code.co_filename
    ]
    return _at_line(frames[-1].filename, frames[-1].lineno or 0) if frames else ""


def _at_line(filename: str, number: int) -> str:
    line = linecache.getline(filename, number).strip()
    if len(line) > LONGEST_LINE:
        line = f"{line[:LONGEST_LINE]} …"
    return f" at line {number}" + (f" (`{line}`)" if line else "")


# --- compiled or called -----------------------------------------------------------------------


def has_while(function: object) -> bool:
    """Say whether a function has a loop that is no `for`, which could not be stopped in compiled code."""
    for code in codes(function.__code__) if isinstance(function, FunctionType) else ():
        steps = {step.offset: step for step in dis.get_instructions(code)}
        jumps = [step for step in steps.values() if step.opcode in (*dis.hasjrel, *dis.hasjabs)]
        if any(jump.argval < jump.offset and steps[jump.argval].opname != "FOR_ITER" for jump in jumps):
            return True
    return False


def _why_called(score: GuardedScore) -> str:
    """Return a line that says that a policy is not compiled, and why; nothing if it is."""
    found = None if INTERPRETED else made(score)
    if found is None or found.rule is not None:
        return ""
    if isinstance(score.function, partial):
        reason = "it has a `while` loop, and compiled code could not be stopped in one that never ends"
    elif found.why is None:
        reason = "compiled, its scores would differ in the last digit, as those of sums, exp and powers do"
    else:
        place = getattr(
            found.why, "loc", None
        )  # the compiler's errors have one, which may be in its own code
        own = place is not None and place.filename == score.function.__code__.co_filename
        where = _at_line(place.filename, place.line) if own else ""
        reason = f"it uses something{where} that the compiler does not know"
    return f"policy {score.name!r} is accepted and runs as plain Python, many times slower: {reason}"


# --- the trial --------------------------------------------------------------------------------


def policy(name: str) -> Callable[[Function], Policy]:
    """Make a policy of the score function below: `@policy("my rule")`.

    The function takes the `View` of one agent at one step and returns scores [field]; the
    field of the highest is probed if that score reaches the threshold, 1.5, and budget is left. The
    engine compiles it where it can; where not, a line says so, and Python is asked at every step.

    Args:
        name: a name that no other policy has; letters, digits, blanks and `. + -`, at most 30.

    Returns:
        What turns the function into a `policies.Policy`, or raises a `PolicyError` that says what to change.
    """
    _check_name(name)

    def accept(function: Function) -> Policy:
        score, note = _tried(name, function)
        if note:
            print(note)
        return custom_policy(name, score)

    return accept


def diagnose(function: Function, name: str = "trial") -> Text:
    """Say what the lab would answer to a score function, without stopping the notebook."""
    try:
        _check_name(name)
        answer = _tried(name, function)[1] or "accepted"
    except PolicyError as fault:
        answer = str(fault)
    return Text(f"~~~text\n{answer}\n~~~")


@lru_cache(maxsize=1)
def trial_views() -> tuple[View, ...]:
    """Return what EnvProbe-Simple sees at a few steps in every world, under `paper` and `released`."""
    kept: list[View] = []
    for protocol in (PAPER, RELEASED):
        for world in WORLDS:
            seen: list[View] = []

            def simple(view: View, seen: list[View] = seen) -> Floats:
                seen.append(view)
                return view.c + view.s + view.u + view.d

            watched = custom_policy("trial", partial(simple))  # which is called, not compiled
            measure(Cell(world, watched, protocol=protocol), TRIAL_SEEDS)
            kept += sorted((v for v in seen if v.step in TRIAL_STEPS), key=lambda view: view.step)
    return tuple(kept)


def _tried(name: str, function: Function) -> tuple[GuardedScore, str]:
    """Try a function; return it guarded, and a line about it if it cannot be compiled.

    Raises:
        PolicyError: if it fails, or its answers do not hold together.
    """
    # what is wrapped is not compiled
    score = GuardedScore(partial(function) if has_while(function) else function, name)
    views = trial_views()
    first = [score.twice(view) for view in views]
    for view, before in zip(reversed(views), reversed(first), strict=True):
        if not np.array_equal(score.once(view), before):
            raise PolicyError(
                f"policy {name!r} gives a view another score when others came before it (step {view.step}): "
                "each call is a decision of its own; keep nothing from call to call, and compute from the "
                f"view alone, as {EXAMPLE} does"
            )
    return score, _why_called(score)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise PolicyError(
            f'policy name {name!r} is not accepted: write @policy("my rule"), a letter first, then letters, '
            "digits, blanks and the signs . + - only, at most 30 in all"
        )
    if name.lower() in {word for known in POLICIES.values() for word in (known.name, known.title.lower())}:
        raise PolicyError(
            f"policy name {name!r} is taken; choose another than {', '.join(POLICIES)} and their titles"
        )
