"""Self-checks of the exercises: whether results have the right form, but not whether they are right.

A check names the results that it looks at by its arguments; they are variables of the notebook.
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from envprobe_book.pages.markup import Text, code
from envprobe_core.conditions import parse_seeds
from envprobe_core.errors import in_one_line, look_up

RIGHT = "The form is right; whether the answer is, the numbers must say."
Checks = Mapping[str, Callable[..., Any]]
"""A property in words -> a function of the notebook's variables that says whether it is so."""


def _rounded(found: Mapping[str, Any]) -> bool:
    """Whether each estimate has an interval round its mean."""
    return all(one.low <= one.mean <= one.high for one in found.values())


def _as_many(frame: Any, column: str) -> bool:
    """Whether a frame has as many episodes of each value of a column."""
    return frame.groupby(column).size().nunique() == 1


CHECKS: dict[str, Checks] = {
    "ex-cell": {
        "holds EnvProbe-Simple and No-Probe": lambda frame: set(frame["policy"]) == {"simple", "no-probe"},
        "holds episodes on tools alone": lambda frame: set(frame["world"]) == {"tooldag"},
        "has a row for each seed and policy": lambda frame: (
            len(frame)
            == frame.groupby(["protocol", "policy", "seed"]).ngroups
            == 2 * frame.groupby(["protocol", "seed"]).ngroups
        ),
    },
    "ex-budget": {
        "has four budgets, none the smallest": lambda frame: (
            sorted(frame["budget"].unique())[0] == 0 and frame["budget"].nunique() == 4
        ),
        "has as many episodes of each": lambda frame: _as_many(frame, "budget"),
        "spends no more than it may": lambda frame: (frame["probes"] <= frame["budget"]).all(),
    },
    "ex-gate": {
        "has five thresholds or more, from 0 to 4": lambda frame: (
            frame["threshold"].nunique() >= 5 and frame["threshold"].agg(["min", "max"]).tolist() == [0, 4]
        ),
        "has as many episodes of each": lambda frame: _as_many(frame, "threshold"),
        "was run by EnvProbe-Simple": lambda frame: set(frame["policy"]) == {"simple"},
    },
    "ex-pairs": {
        "is true or false at each time of each row": lambda same: same.ndim == 2 and same.dtype == bool,
        "has a row a seed": lambda same, seeds: len(same) == len(parse_seeds(seeds)),
        "is neither true everywhere nor nowhere": lambda same: 0 < same.mean() < 1,
    },
    "ex-spend": {
        "holds both policies": lambda steps: set(steps["policy"]) == {"cd", "simple"},
        "begins before it ends": lambda steps: (steps["first_probe"] <= steps["last_probe"]).all(),
        "leaves out episodes without a probe": lambda steps: steps["first_probe"].notna().all(),
    },
    "ex-placebo": {
        "has the three": lambda split: set(split) == {"gain", "answers", "the rest"},
        "adds up": lambda split: abs(split["gain"] - split["answers"] - split["the rest"]) < 1e-6,
        "is in points": lambda split: max(map(abs, split.values())) > 0.1,
    },
    "ex-yoked": {
        "has both controls": lambda exact: set(exact) == {"placebo", "yoked"},
        "holds shares": lambda exact: all(0 <= share <= 1 for share in exact.values()),
    },
    "ex-again": {
        "has four policies": lambda shares: shares["policy"].nunique() == 4,
        "holds shares of probes, not means of episodes": lambda shares: np.allclose(
            shares["again"] * shares["probes"], shares["repeated_probes"]
        ),
    },
    "ex-sure": {
        "are whole numbers": lambda both, sure, wrong: all(int(n) == n for n in (both, sure, wrong)),
        "count what is both no more often than either": lambda both, sure, wrong: (
            0 < both <= min(sure, wrong)
        ),
        "count beliefs, not episodes": lambda sure, wrong, seeds: sure + wrong > len(parse_seeds(seeds)),
    },
    "ex-write": {
        "has a policy of yours": lambda contest: len(contest.own) >= 1,
        "fired a probe": lambda contest: not contest.silent,
        "was run on the held-out seeds": lambda contest: contest.looks >= 1,
    },
    "ex-faults": {
        "are functions of a view": lambda peeks, rolls_dice, remembers: all(
            callable(one) and one.__code__.co_argcount == 1 for one in (peeks, rolls_dice, remembers)
        )
    },
    "ex-hand": {
        "has two ends, the lower first": lambda by_hand: len(by_hand) == 2 and by_hand[0] < by_hand[1],
        "holds the mean difference": lambda by_hand, simple, periodic: (
            by_hand[0] < (simple - periodic).mean() < by_hand[1]
        ),
        "has pairs to be drawn from": lambda simple, periodic, seeds: (
            len(simple) == len(periodic) == len(parse_seeds(seeds))
        ),
    },
    "ex-power": {
        "has three effects": lambda needed: set(needed) == {0.5, 1, 2},
        "holds whole numbers": lambda needed: all(int(n) == n > 0 for n in needed.values()),
        "needs more for a smaller effect": lambda needed: needed[0.5] > needed[1] > needed[2],
    },
    "ex-winner": {
        "has as many of both, from a hundred searches or more": lambda promised, kept: (
            len(promised) == len(kept) >= 100
        ),
        "holds numbers": lambda promised, kept: np.isfinite(promised).all() and np.isfinite(kept).all(),
        "has different winners": lambda kept: len(set(np.round(kept, 9))) > 1,
    },
    "ex-cool": {
        "has three waits or more": lambda family: len(family) >= 3,
        "has run them all": lambda family, contest: {one.name for one in family} == set(contest.own),
    },
    "ex-switch": {
        "has both ends, and switches turned from either": lambda found: (
            {"paper", "released"} <= {name.strip("`") for name in found} and len(found) >= 4
        ),
        "has an interval round each mean": lambda found: _rounded(found),
    },
    "ex-agents": {
        "has three agents or more": lambda agents: len(agents) >= 3,
        "has an interval round each mean": lambda agents: _rounded(agents),
    },
}
"""The checks of each exercise by its label."""


def check(exercise: str, *, graded: bool = False) -> Text:
    """Look at the notebook's results of an exercise; say of each property whether they have it.

    Args:
        exercise: its label.
        graded: whether results of another form are an error, as those who grade want it.

    Raises:
        InputError: for a label that no exercise has.
        AssertionError: if it is graded, and a property is not there.
    """
    said = looked_at(sys._getframe(1).f_globals, look_up("exercise", exercise, CHECKS))
    assert not graded or said.markdown.endswith(RIGHT), said.markdown
    return said


def looked_at(space: Mapping[str, Any], wanted: Checks) -> Text:
    """What a self-check says of results.

    Args:
        space: variables by name.
        wanted: where a property fails with an error, the answer is no, with the failure.

    >>> print(looked_at({"x": [1, -2]}, {"is positive": lambda x: min(x) > 0}).markdown)
    * ☐ is positive
    <BLANKLINE>
    Not yet.
    """
    asked = {words: list(inspect.signature(has).parameters) for words, has in wanted.items()}
    names = dict.fromkeys(name for own in asked.values() for name in own)
    if lacking := [name for name in names if name not in space]:
        return Text(
            f"☐ There is no {code(lacking)} yet: work the exercise in the cell above, name your result so, "
            "and run both cells. The check looks for results by name."
        )
    lines, good = [], True
    for words, has in wanted.items():
        try:
            met, fault = bool(has(*(space[name] for name in asked[words]))), ""
        except Exception as error:  # a result of another kind may fail in any way
            met, fault = False, f" ({in_one_line(f'{type(error).__name__}: {error}')[:120]})"
        good = good and met
        lines.append(f"* {'☑' if met else '☐'} {words}{fault}")
    end = RIGHT if good else "Not yet."
    return Text("\n".join([*lines, "", end]))
