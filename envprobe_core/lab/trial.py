"""The door of the lab: a score function becomes a policy only after a trial on a few views of every world.

The trial asks it about recorded views: twice about each, and again in the opposite order. A policy must give
a view the score it gives it after any others, or paired seeds mean nothing.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from envprobe_core.cells import Cell
from envprobe_core.engine.compiling import INTERPRETED
from envprobe_core.engine.running import Episodes
from envprobe_core.lab.guard import EXAMPLE, GuardedScore, PolicyError, tell_not_compiled
from envprobe_core.markup import Text
from envprobe_core.policies import POLICIES, Policy, custom_policy, find_policy
from envprobe_core.policies.own import View, made, view_of
from envprobe_core.protocols import PAPER, RELEASED
from envprobe_core.worlds import WORLDS

TRIAL_SEEDS = np.arange(6, dtype=np.int64)
TRIAL_STEPS = (0, 1, 9, 22)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9 .+-]{0,29}")
Function = Callable[[Any], Any]


def policy(name: str) -> Callable[[Function], Policy]:
    """Make a policy of the score function below: `@policy("my rule")`.

    The function takes the view (`guard.READABLE`) of one agent at one step and returns scores [field]; the
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
    score = GuardedScore(function, name)
    _try(score)
    if INTERPRETED:
        return score, ""
    rule, why = made(score)
    return score, tell_not_compiled(score, why) if rule is None else ""


def _try(score: GuardedScore) -> None:
    """Ask a score function about the trial's views, and refuse it if its answers do not hold together."""
    first = []
    for view in trial_views():
        first.append(score(view).copy())
        if not np.array_equal(score(view), first[-1]):
            raise PolicyError(
                f"policy {score.name!r} scores the same view differently a second time (step {view.step}): "
                "keep nothing from call to call, and for chance use view.draw, which repeats in every run"
            )
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
