"""Readings on request: what a live explorer asks of the engine, checked and answered.

A question comes from a form, so that nothing in it is taken on trust; what cannot be run is refused in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core.cells import Cell, find_profile, find_regime, parse_seeds
from envprobe_core.engine.records import LONGEST_HORIZON
from envprobe_core.errors import InputError
from envprobe_core.explorer.readings import Reading, Setting, pooled, take_readings
from envprobe_core.explorer.vocabulary import POOL
from envprobe_core.policies import POLICIES, Policy
from envprobe_core.protocols import parse_protocol
from envprobe_core.regimes import Regime
from envprobe_core.resampling import RESAMPLES
from envprobe_core.worlds import WORLDS

MOST_SEEDS = 2_000  # of each policy, so that an answer does not take minutes
KEPT = 4_000  # answers kept, so that a drag back and forth runs nothing twice


@dataclass(frozen=True)
class Question:
    """What is to be read: one setting for each policy, on the same seeds."""

    settings: dict[str, Setting]
    seeds: npt.NDArray[np.int64]


class Engine:
    """Answers questions, and remembers what it has answered."""

    def __init__(self, policies: Sequence[Policy] = (), resamples: int = RESAMPLES) -> None:
        """Offer the companion's policies and a reader's own.

        Raises:
            InputError: if a policy has the name of another.
        """
        own = {policy.name: policy for policy in policies}
        if len(own) < len(policies) or own.keys() & POLICIES.keys():
            taken = ", ".join([*POLICIES, *(policy.name for policy in policies)])
            raise InputError(f"two policies have the same name; names given and taken: {taken}")
        self.policies = {**POLICIES, **own}
        self.resamples = resamples
        self._known: dict[tuple[object, ...], Reading] = {}

    def ask(self, given: Mapping[str, Any]) -> dict[str, Reading]:
        """Read the policies of a question, policy name -> reading.

        Args:
            given: as `read_question` takes it.

        Raises:
            InputError: if it cannot be run; also with the words of a reader's own policy that failed.
        """
        question = read_question(given, self.policies)
        keys = {name: _key(one, given) for name, one in question.settings.items()}
        if len(self._known) > KEPT:
            self._known.clear()
        missing = [name for name in keys if keys[name] not in self._known]
        settings = [question.settings[name] for name in missing]
        try:
            found = take_readings(settings, question.seeds, resamples=self.resamples) if missing else []
        except InputError:
            raise
        except Exception as error:  # a reader's score function may raise anything
            raise InputError(f"the episodes could not be run: {type(error).__name__}: {error}") from error
        self._known |= {keys[name]: reading for name, reading in zip(missing, found, strict=True)}
        return {name: self._known[key] for name, key in keys.items()}


def read_question(given: Mapping[str, Any], policies: Mapping[str, Policy]) -> Question:
    """Read a setting that a form sent.

    Args:
        given: `world` (or pool), `protocol` (switches allowed), `policies` (names), `regime`, `horizon`,
            `budget`, `threshold`, `profile`, `seeds` (text).
        policies: those on offer, by name.

    Raises:
        InputError: what is wrong, the value given and what is accepted.
    """
    world = given["world"]
    if world not in (*WORLDS, POOL):
        raise InputError(f"unknown world {world!r}; accepted: {', '.join((*WORLDS, POOL))}")
    regime = _regime(given)
    seeds = parse_seeds(str(given["seeds"]))
    if len(seeds) > MOST_SEEDS:
        raise InputError(f"seeds {given['seeds']!r}: {len(seeds)} seeds; at most {MOST_SEEDS} here")
    settings: dict[str, Setting] = {}
    for name in given["policies"]:
        if name not in policies:
            raise InputError(f"unknown policy {name!r}; accepted: {', '.join(policies)}")
        cell = Cell(
            next(iter(WORLDS)) if world == POOL else world,
            policies[name],
            regime,
            parse_protocol(str(given["protocol"])),
            find_profile(given["profile"]),
            _whole("budget", given["budget"], 0, regime.horizon),
            _threshold(given["threshold"]) if policies[name].has_threshold else None,
        )
        settings[name] = pooled(cell) if world == POOL else cell
    return Question(settings, seeds)


def _key(setting: Setting, given: Mapping[str, Any]) -> tuple[object, ...]:
    """Return what a reading depends on, among the questions to one engine."""
    cell = setting if isinstance(setting, Cell) else setting[0]
    return (*cell.key.values(), given["world"], given["horizon"], given["seeds"])


def _regime(given: Mapping[str, Any]) -> Regime:
    regime = find_regime(given["regime"])
    horizon = _whole("horizon", given["horizon"], 1, LONGEST_HORIZON)
    return regime if horizon == regime.horizon else replace(regime, horizon=horizon)


def _whole(name: str, value: object, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InputError(f"{name} {value!r} is not a whole number in {low}..{high}")
    return value


def _threshold(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"threshold {value!r} is not a number")
    return float(value)
