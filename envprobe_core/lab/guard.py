"""The door of the lab: a reader's score function becomes a policy after a trial on views of every world.

The trial asks it about recorded views: twice about each, and again in the opposite order. A policy must give
a view the score it gives it after any others, or paired seeds mean nothing. In a run a guard shows it the
view and checks what comes back. Every mistake is one message that says what to change; the engine's own
policies do not pass here.
"""

from __future__ import annotations

import dis
import inspect
import linecache
import re
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache, partial, wraps
from types import FunctionType
from typing import Any, TypeVar

import numpy as np
from numba.core.errors import NumbaError

from envprobe_core.cells import Cell
from envprobe_core.engine.compiling import INTERPRETED
from envprobe_core.engine.running import Episodes
from envprobe_core.errors import InputError
from envprobe_core.policies import POLICIES, Policy, custom_policy, find_policy
from envprobe_core.policies.own import Guarded, View, codes, made, view_of
from envprobe_core.protocols import PAPER, RELEASED
from envprobe_core.show.markup import Text
from envprobe_core.worlds import WORLDS
from envprobe_core.worlds.base import Floats

Function = Callable[[Any], Any]
TRIAL_SEEDS = np.arange(6, dtype=np.int64)
TRIAL_STEPS = (0, 1, 9, 22)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9 .+-]{0,29}")

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
TRUTH_SIGN = "truth value of an array"
MOST_NEGATIVE = "-1e9"
LONGEST_CALL = 10.0  # seconds; a call of a million operations takes a hundredth of that
WATCHED = 8  # in a run, one view in so many is asked about twice
LONGEST_LINE = 70  # characters of the reader's code in a message


class PolicyError(InputError):
    """A fault of a reader's policy; a notebook shows its message and no traceback."""

    def _render_traceback_(self) -> list[str]:
        return [f"PolicyError: {self}"]


Called = TypeVar("Called", bound=Callable[..., Any])


def known_keywords(function: Called) -> Called:
    """Let a function of the lab refuse a keyword that it does not take, in one line with the nearest one."""
    accepted = list(inspect.signature(function).parameters)

    @wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        for name in named:
            if name not in accepted:
                near = "".join(f"; did you mean {known!r}" for known in get_close_matches(name, accepted, 1))
                told = f"lab.{function.__name__} takes no {name!r}{near}; it takes {', '.join(accepted)}"
                raise PolicyError(told)
        return function(*given, **named)

    return called  # type: ignore[return-value]


class ForbiddenError(Exception):
    """Something was read that no deployable policy may know."""


class TooSlowError(KeyboardInterrupt):
    """A call took longer than `LONGEST_CALL`; no `except Exception` of a reader's stops it."""


class ReadersView:
    """What a policy sees at one step, with the names in `READABLE`; for any other it says what there is.

    It holds copies that cannot be written to, and no attribute that leads to the running experiment. That
    keeps mistakes out, not somebody who means harm: Python code can walk up the stack of its own process.
    """

    __slots__ = tuple(READABLE)

    def __init__(self, view: View) -> None:
        """Copy a view."""
        for name in READABLE:
            seen = getattr(view, name)
            if isinstance(seen, np.ndarray):
                seen = np.frombuffer(seen.tobytes(), seen.dtype)
            object.__setattr__(self, name, seen)

    def __getattr__(self, name: str) -> Any:
        if name in FORBIDDEN:
            raise ForbiddenError(name)
        raise AttributeError(f"the view has no {name!r}; it has {', '.join(READABLE)}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"view.{name} is read-only")


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
    """A reader's score function, from a view to scores [field], that the engine may call."""

    name: str  # of the policy, for messages

    def __call__(self, view: View) -> Floats:
        """Return the scores, [field].

        Raises:
            PolicyError: if the function fails or does not return finite numbers of that shape.
        """
        score = self._asked(view)
        if view.draw % WATCHED == 0:
            self.same(view, score, self._asked(view))
        return score

    def same(self, view: View, first: Floats, second: Floats) -> None:
        """Refuse two answers to one view."""
        if not np.array_equal(second, first):
            raise PolicyError(
                f"policy {self.name!r} scores the same view differently a second time (step {view.step}): "
                "keep nothing from call to call, and for chance use view.draw, which repeats in every run"
            )

    def _asked(self, view: View) -> Floats:
        try:
            with limited(), np.errstate(all="ignore"):  # a division by zero is told by what comes of it
                given = self.function(ReadersView(view))
        except (Exception, TooSlowError, SystemExit, GeneratorExit) as error:
            raise PolicyError(self._failure(error)) from None
        return self._checked(given, view)

    def _failure(self, error: BaseException) -> str:
        where = _place(self.function, error)
        if isinstance(error, TooSlowError):
            return (
                f"policy {self.name!r} takes more than {LONGEST_CALL:g} s for one decision{where}: does a "
                "loop never end? An episode asks it dozens of times"
            )
        if isinstance(error, SystemExit | GeneratorExit):
            return f"policy {self.name!r} ends Python{where}: a score function returns scores, and no more"
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
        if TRUTH_SIGN in str(error):
            message += "; to decide field by field, write np.where(condition, score, other)"
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
        if np.ma.is_masked(given):
            raise PolicyError(
                f"policy {self.name!r} returns masked values; give them a score, as in "
                f"np.ma.filled(score, {MOST_NEGATIVE})"
            )
        given = np.asarray(given)
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


def has_while(function: object, seen: frozenset[object] = frozenset()) -> bool:
    """Say whether a function, or one that it calls by name, has a loop that is no `for`."""
    if not isinstance(function, FunctionType) or function in seen:
        return False
    for code in codes(function.__code__):
        steps = {step.offset: step for step in dis.get_instructions(code)}
        jumps = [step for step in steps.values() if step.opcode in (*dis.hasjrel, *dis.hasjabs)]
        if any(jump.argval < jump.offset and steps[jump.argval].opname != "FOR_ITER" for jump in jumps):
            return True
    inside = [cell.cell_contents for cell in function.__closure__ or () if cell.cell_contents is not None]
    named = [function.__globals__.get(name) for code in codes(function.__code__) for name in code.co_names]
    return any(has_while(other, seen | {function}) for other in (*inside, *named))


def why_called(score: GuardedScore, why: Exception | None) -> str:
    """Say that a policy is not compiled, and why (None: its compiled scores are not Python's)."""
    if isinstance(score.function, partial) and has_while(score.function.func):
        reason = "it has a `while` loop, and compiled code could not be stopped in one that never ends"
    elif not isinstance(score.function, FunctionType):
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
    function = function.func if isinstance(function, partial) else function
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


# --- the trial ---------------------------------------------------------------------------------


@known_keywords
def policy(name: str) -> Callable[[Function], Policy]:
    """Make a policy of the score function below: `@policy("my rule")`.

    The function takes the view (`READABLE`) of one agent at one step and returns scores [field]; the
    field of the highest score is probed if that score reaches the threshold, 1.5, and budget is left. The
    engine compiles it where it can; where not, a line says so, and Python is asked at every step.

    Args:
        name: a name that no other policy has; letters, digits, blanks and `. + -`, at most 30.

    Returns:
        What turns the function into a `policies.Policy`, or raises a `PolicyError` that says what to change.
    """

    def accept(function: Function) -> Policy:
        score, note = _accepted(name, function)
        if note:
            print(note)
        return custom_policy(name, score)

    _check_name(name)
    return accept


@known_keywords
def diagnose(function: Function, name: str = "trial") -> Text:
    """Say what the lab would answer to a score function, without stopping the notebook."""
    try:
        _check_name(name)
        answer = _accepted(name, function)[1] or "accepted"
    except PolicyError as fault:
        answer = str(fault)
    return Text(f"~~~text\n{answer}\n~~~")


@lru_cache(maxsize=1)
def trial_views() -> tuple[View, ...]:
    """Return what EnvProbe-Simple sees at a few steps in every world, under `paper` and `released`."""
    kept: list[View] = []
    for protocol in (PAPER, RELEASED):
        for world in WORLDS:
            episodes = Episodes(Cell(world, find_policy("simple"), protocol=protocol), TRIAL_SEEDS)
            episodes.propose()
            while episodes.settle():
                fields = episodes.decide()
                running = np.flatnonzero(episodes.block.over == 0)
                if episodes.block.t[running[0]] in TRIAL_STEPS:
                    kept += [view_of(episodes.block.sight[row]) for row in running]
                episodes.advance(fields)
                episodes.propose()
    return tuple(kept)


def _accepted(name: str, function: Function) -> tuple[GuardedScore, str]:
    """Try a function; return it guarded, and a line about it if it cannot be compiled."""
    _check_signature(name, function)
    # compiled code could not be stopped in a loop without an end; whoever wraps a function is asked in Python
    score = GuardedScore(partial(function) if has_while(function) else function, name)
    _try(score)
    if INTERPRETED:
        return score, ""
    rule, why = made(score)
    return score, why_called(score, why) if rule is None else ""


def _try(score: GuardedScore) -> None:
    """Ask a score function about the trial's views, and refuse it if its answers do not hold together."""
    first = []
    for view in trial_views():
        first.append(score(view).copy())
        score.same(view, first[-1], score(view))
    for view, before in zip(reversed(trial_views()), reversed(first), strict=True):
        if not np.array_equal(score(view), before):
            raise PolicyError(
                f"policy {score.name!r} gives a view another score when others came before it (step "
                f"{view.step}): each call is a decision of its own; keep nothing from call to call, and "
                f"compute from the view alone, as {EXAMPLE} does"
            )


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        raise PolicyError(
            f'a policy needs a name: write @policy("my rule") instead of @policy {_shown(name)}'
        )
    if not NAME.fullmatch(name):
        raise PolicyError(
            f"policy name {name!r} is not accepted: begin with a letter and use letters, digits, blanks and "
            "the signs . + - only, at most 30 in all"
        )
    titles = {known.title.lower(): known.name for known in POLICIES.values()}
    if name.lower() in titles or name.lower() in POLICIES:
        raise PolicyError(
            f"policy name {name!r} is taken; choose another than {', '.join(POLICIES)} and their titles"
        )


def _check_signature(name: str, function: Function) -> None:
    wanted = "write it as `def my_rule(view): return " + EXAMPLE + "`"
    if isinstance(function, Policy):
        raise PolicyError(
            f"policy {name!r}: this is a policy already, named {function.name!r}; use it as it is"
        )
    if not callable(function):
        raise PolicyError(f"policy {name!r}: {_shown(function)} is no function; {wanted}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # a function of C that tells no signature; the trial calls it
    try:
        signature.bind(None)
    except TypeError:
        raise PolicyError(
            f"policy {name!r}: a score function takes one argument, the view; this one takes {signature}; "
            f"{wanted}"
        ) from None


def _shown(given: object) -> str:
    text = repr(given)
    return text if len(text) <= 40 else f"a value of type {type(given).__name__}"
