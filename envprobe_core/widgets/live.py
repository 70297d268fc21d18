"""Readings on request: what a live explorer asks of the engine, checked and answered.

A question comes from a form, so that nothing in it is taken on trust; what cannot be run is refused in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from envprobe_core.cells import Cell, find_profile, find_regime, parse_seeds
from envprobe_core.engine.records import LONGEST_HORIZON
from envprobe_core.errors import InputError, look_up
from envprobe_core.policies import POLICIES, Policy
from envprobe_core.protocols import parse_protocol
from envprobe_core.statistics import RESAMPLES
from envprobe_core.widgets.grid import POOL, VIEWS
from envprobe_core.widgets.readings import Ints, Reading, Setting, pooled, take_readings

MOST_SEEDS = 2_000  # of each policy, so that an answer does not take minutes
KEPT = 4_000  # answers kept, so that a drag back and forth runs nothing twice


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
        """Read the policies of a question (`read_question`), policy name -> reading.

        Raises:
            InputError: if it cannot be run; also with the words of a reader's own policy that failed.
        """
        settings, seeds = read_question(given, self.policies)
        rest = tuple(given[name] for name in ("world", "regime", "horizon", "protocol", "profile", "seeds"))
        keys = {name: (name, given["budget"], given["threshold"], *rest) for name in settings}
        if len(self._known) > KEPT:
            self._known.clear()
        missing = [name for name in keys if keys[name] not in self._known]
        try:
            asked = [settings[name] for name in missing]
            found = take_readings(asked, seeds, resamples=self.resamples) if asked else []
        except InputError:
            raise
        except Exception as error:  # a reader's score function may raise anything
            raise InputError(f"the episodes could not be run: {type(error).__name__}: {error}") from error
        self._known |= {keys[name]: reading for name, reading in zip(missing, found, strict=True)}
        return {name: self._known[key] for name, key in keys.items()}


def read_question(
    given: Mapping[str, Any], policies: Mapping[str, Policy]
) -> tuple[dict[str, Setting], Ints]:
    """Read a setting that a form sent; return one setting for each policy, and the seeds of all.

    Args:
        given: `world` (or pool), `protocol` (switches allowed), `policies` (names), `regime`, `horizon`,
            `budget`, `threshold`, `profile`, `seeds` (text).

    Raises:
        InputError: what is wrong, the value given and what is accepted.
    """
    world, regime = given["world"], find_regime(given["regime"])
    if world not in VIEWS:
        raise InputError(f"unknown world {world!r}; accepted: {', '.join(VIEWS)}")
    regime = replace(regime, horizon=_whole("horizon", given["horizon"], 1, LONGEST_HORIZON))
    seeds = parse_seeds(str(given["seeds"]))
    if len(seeds) > MOST_SEEDS:
        raise InputError(f"seeds {given['seeds']!r}: {len(seeds)} seeds; at most {MOST_SEEDS} here")
    settings: dict[str, Setting] = {}
    for name in given["policies"]:
        policy = look_up("policy", name, policies)
        cell = Cell(
            VIEWS[0] if world == POOL else world,
            policy,
            regime,
            parse_protocol(str(given["protocol"])),
            find_profile(given["profile"]),
            _whole("budget", given["budget"], 0, regime.horizon),
            _threshold(given["threshold"]) if policy.has_threshold else None,
        )
        settings[name] = pooled(cell) if world == POOL else cell
    return settings, seeds


def _whole(name: str, value: object, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InputError(f"{name} {value!r} is not a whole number in {low}..{high}")
    return value


def _threshold(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"threshold {value!r} is not a number")
    return float(value)
