"""The door of the lab: a score function becomes a policy only after a trial on a few rows of every world.

The trial asks it about recorded views: twice about the same, about the rows in another order, and about one
row alone. A policy must give each row the score it gives it in any company, or paired seeds mean nothing.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core.cells import Cell
from envprobe_core.lab.guard import EXAMPLE, GuardedScore, PolicyError
from envprobe_core.markup import Text
from envprobe_core.policies import POLICIES, TERMS, Policy, custom_policy, find_policy
from envprobe_core.protocols import PAPER, RELEASED
from envprobe_core.sweep import Piece, Task, simulate
from envprobe_core.views import Decision, View
from envprobe_core.worlds import WORLDS

TRIAL_SEEDS = np.arange(6, dtype=np.int64)
TRIAL_STEPS = (0, 1, 9, 22)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9 .+-]{0,29}")
Function = Callable[[Any], Any]


def policy(name: str) -> Callable[[Function], Policy]:
    """Make a policy of the score function below: `@policy("my rule")`.

    The function takes the view (`guard.READABLE`) and returns scores [row, field]; the field of the
    highest score is probed where that score reaches the threshold, 1.5, and budget is left.

    Args:
        name: a name that no other policy has; letters, digits, blanks and `. + -`, at most 30.

    Returns:
        What turns the function into a `policies.Policy`, or raises a `PolicyError` that says what to change.
    """
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

    def made(function: Function) -> Policy:
        _check_signature(name, function)
        score = GuardedScore(name, function)
        _try(score)
        return custom_policy(name, score)

    return made


def diagnose(function: Function, name: str = "trial") -> Text:
    """Say what the lab would answer to a score function, without stopping the notebook."""
    try:
        policy(name)(function)
    except PolicyError as fault:
        return Text(f"~~~text\n{fault}\n~~~")
    return Text("~~~text\naccepted\n~~~")


@dataclass
class _Listener:
    """EnvProbe-Simple, which keeps copies of what it sees at some steps."""

    kept: list[View] = field(default_factory=list)

    def __call__(self, view: View) -> Decision:
        if view.step in TRIAL_STEPS:
            self.kept.append(_copied(view))
        return find_policy("simple").rule(view)


@lru_cache(maxsize=1)
def trial_views() -> tuple[View, ...]:
    """Return what a policy sees at a few steps in every world, under `paper` and `released`."""
    kept: list[View] = []
    for protocol in (PAPER, RELEASED):
        for world in WORLDS:
            listener = _Listener()
            cell = Cell(world, Policy("listener", "listener", listener, TERMS), protocol=protocol)
            simulate(Task((Piece(0, cell, TRIAL_SEEDS),)))
            kept += listener.kept
    return tuple(kept)


def _try(score: GuardedScore) -> None:
    """Ask a score function about the trial's views, and refuse it if its answers do not hold together."""
    for whole in trial_views():
        rows_of = np.arange(len(whole.budget))  # under `released` fewer than at the start
        lent = _copied(whole)
        first = score(lent).copy()
        if not _same(lent, whole):
            raise PolicyError(
                f"policy {score.name!r} changes the arrays of the view: work on a copy, as in view.c.copy()"
            )
        again = score(_copied(whole))
        if not np.array_equal(first, again):
            raise PolicyError(
                f"policy {score.name!r} scores the same view differently a second time (step {whole.step}): "
                "keep nothing from call to call, and for chance use view.draws, which repeats in every run"
            )
        for rows in (rows_of[::-1], rows_of[:1], rows_of[-1:]):
            if not np.array_equal(score(_taken(whole, rows)), first[rows]):
                raise PolicyError(
                    f"policy {score.name!r} gives a row another score when other rows stand beside it (step "
                    f"{whole.step}): rows are separate episodes; compute each row from that row alone, as "
                    f"{EXAMPLE} does, with axis=1 in sums, means and maxima"
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


def _arrays(view: View) -> dict[str, npt.NDArray[Any]]:
    found = {f.name: getattr(view, f.name) for f in fields(view)}
    return {name: array for name, array in found.items() if isinstance(array, np.ndarray)}


def _copied(view: View) -> View:
    return replace(view, **{name: array.copy() for name, array in _arrays(view).items()})


def _taken(view: View, rows: npt.NDArray[np.int64]) -> View:
    return replace(view, **{name: array[rows] for name, array in _arrays(view).items()})


def _same(view: View, other: View) -> bool:
    others = _arrays(other)
    return all(np.array_equal(array, others[name]) for name, array in _arrays(view).items())
