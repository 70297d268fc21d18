"""The door of the lab: a reader's score function becomes a policy after a trial on recorded views.

The trial asks about views of every world, forwards and backwards: a policy must give a view the same scores
whatever it saw before, or paired seeds mean nothing. In a run every answer is checked as in the trial, and
one view in `WATCHED` is asked about twice. Each mistake is one message that says what to change. A function
that Numba compiled (`@njit`) is asked like any other.
"""

import dis
import linecache
import re
import signal
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from envprobe_book.pages.markup import Text, block
from envprobe_core.conditions import Condition
from envprobe_core.engine.batch import simulate
from envprobe_core.errors import InputError
from envprobe_core.policies import POLICIES, Policy, custom_policy
from envprobe_core.policies.custom import Score, View
from envprobe_core.protocols import PAPER, RELEASED
from envprobe_core.worlds import WORLDS
from envprobe_core.worlds.base import Floats

TRIAL_SEEDS = np.arange(6, dtype=np.int64)
TRIAL_STEPS = (0, 1, 9, 22)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9 .+-]{0,29}")
LONGEST_CALL = 10.0  # seconds; a call of a million operations takes a hundredth of that
WATCHED = 8
LONGEST_LINE = 70  # characters of the reader's code in a message
HINTS = {  # what an error's text has in it, and what helps
    "no attribute 'gold'": "the truth is for oracles only, and an agent at work does not have it; use "
    "view.value, what the agent believes",
    "'View' object has no": f"a view has {', '.join(View._fields)}",
    "positional argument": "a score function takes one argument: def score(view)",
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
        raise TooSlowError(f"more than {LONGEST_CALL:g} s for one decision: does a loop never end?")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_CALL)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass(frozen=True)
class GuardedScore:
    """A reader's score function, from a view to scores [field], that the engine may call.

    The view holds copies, and no attribute that leads to the running experiment. That keeps mistakes out, not
    somebody who means harm: Python code can walk up the stack of its own process.
    """

    function: Score  # the reader's own
    name: str  # of the policy, for messages

    def __call__(self, view: View) -> Floats:
        """The scores, [field]; a `PolicyError` says what to change."""
        scores = self.ask(view)
        if view.draw % WATCHED == 0:
            self.ask_again(view, scores)
        return scores

    def ask_again(self, view: View, scores: Floats) -> None:
        """Refuse a function that gives other scores than it gave before."""
        if not np.array_equal(self.ask(view), scores):
            raise PolicyError(
                f"policy {self.name!r} scores the same view differently a second time (step {view.step}): "
                "keep nothing from call to call, compute from the view alone, and for chance use view.draw, "
                "which repeats in every run"
            )

    def ask(self, view: View) -> Floats:
        """Ask the function within its time, and check what it returns."""
        try:
            with limited(), np.errstate(all="ignore"):  # a division by zero shows in what comes of it
                given = self.function(view)
            fault = fault_of(given, view)
        except (Exception, TooSlowError, SystemExit, GeneratorExit) as error:
            told = " ".join(f"{type(error).__name__}: {error}".split())
            frames = ((frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__))
            hint = next((f"; {hint}" for sign, hint in HINTS.items() if re.search(sign, told)), "")
            where = at_line(self.function, frames)
            raise PolicyError(f"policy {self.name!r} fails{where}: {told}{hint}") from None
        if fault:
            raise PolicyError(f"policy {self.name!r}{at_line(self.function)} {fault}")
        return np.array(given, dtype=np.float64)


def fault_of(given: Any, view: View) -> str:
    """What is wrong with scores; nothing if they are finite numbers [field]."""
    wanted = f"return an array of shape [field], here ({len(view.c)},), as view.c + view.u has it"
    if not isinstance(given, np.ndarray):
        hint = " (was it summed over the fields?)" if isinstance(given, np.generic) else ""
        return f"returns a value of type {type(given).__name__}{hint}; {wanted}"
    if given.shape != view.c.shape:
        return f"returns an array of shape {given.shape}; {wanted}"
    if given.dtype.kind not in "fiub":
        return f"returns values of type {given.dtype}; scores must be real numbers: {wanted}"
    scores = np.ma.filled(given.astype(np.float64), np.nan)
    bad = np.flatnonzero(~np.isfinite(scores))
    if not len(bad):
        return ""
    return (
        f"gives {scores[bad[0]]} for {len(bad)} of {len(scores)} scores, first for field {bad[0]} at step "
        f"{view.step}: scores must be finite; guard the division or the logarithm, and to rule a field out "
        "give it -1e9"
    )


def at_line(function: Any, places: Iterable[tuple[str, int | None]] | None = None) -> str:
    """The last of places (file, line) in a reader's code, or its one return: ` at line 3 (`...`)`."""
    code = getattr(getattr(function, "func", function), "__code__", None)
    if code and places is None:
        returns = [step.positions for step in dis.get_instructions(code) if "RETURN_" in step.opname]
        lines = {place.lineno for place in returns if place}
        places = [(code.co_filename, line) for line in lines if len(lines) == 1]
    own = [number for file, number in places or () if code and file == code.co_filename]
    line = linecache.getline(code.co_filename, own[-1] or 0).strip() if own else ""
    shown = f"{line[:LONGEST_LINE]} …" if len(line) > LONGEST_LINE else line
    return (f" at line {own[-1]}" + (f" (`{shown}`)" if line else "")) if own else ""


# --- the trial --------------------------------------------------------------------------------


def policy(name: str) -> Callable[[Score], Policy]:
    """Make a policy of the score function below: `@policy("my rule")`.

    The function takes the `View` of one agent at one step and returns scores [field]; the
    field of the highest is probed if that score reaches the threshold, 1.5, and budget is left.

    Raises:
        PolicyError: if a name is taken or odd, or a function fails its trial; it says what to change.
    """
    check_name(name)

    def accept(function: Score) -> Policy:
        return custom_policy(name, try_out(function, name))

    return accept


def check_name(name: str) -> None:
    """Refuse a policy's name that is odd, or taken by one of the book."""
    if callable(name):
        raise PolicyError(
            f"@policy stands above {getattr(name, '__name__', 'a function')!r} without a name: write "
            '@lab.policy("my rule"), with parentheses and a name of your own'
        )
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise PolicyError(
            f'policy name {name!r} is not accepted: write @policy("my rule"), a letter first, then letters, '
            "digits, blanks and the signs . + - only, at most 30 in all"
        )
    if name.lower() in {word for known in POLICIES.values() for word in (known.name, known.title.lower())}:
        raise PolicyError(
            f"policy name {name!r} is taken; choose another than {', '.join(POLICIES)} and their titles"
        )


def diagnose(function: Score, name: str = "trial") -> Text:
    """What the lab would answer to a score function, without stopping the notebook."""
    try:
        try_out(function, name)
    except PolicyError as fault:
        answer = str(fault)
    else:
        answer = "accepted"
    return block(answer)


def try_out(function: Score, name: str) -> GuardedScore:
    """A function guarded, after a trial; a `PolicyError` says what to change."""
    score = GuardedScore(function, name)
    asked = [(view, score.ask(view)) for view in trial_views()]
    for view, scores in reversed(asked):
        score.ask_again(view, scores)
    return score


@cache
def trial_views() -> tuple[View, ...]:
    """What EnvProbe-Simple sees at a few steps in every world, under `paper` and `released`."""
    kept: list[View] = []
    for protocol in (PAPER, RELEASED):
        for world in WORLDS:
            seen: list[View] = []

            def simple(view: View, seen: list[View] = seen) -> Floats:
                seen.append(view)
                return view.c + view.s + view.u + view.d

            simulate(Condition(world, custom_policy("trial", simple), protocol=protocol), TRIAL_SEEDS)
            kept += sorted((v for v in seen if v.step in TRIAL_STEPS), key=lambda view: view.step)
    return tuple(kept)
