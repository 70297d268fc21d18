"""Readings on request: what a live explorer asks of the engine, checked and answered.

A question comes from a form, so that nothing in it is taken on trust; what cannot be run is refused in words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from envprobe_core.cells import Cell, find_profile, find_regime, is_whole, parse_seeds
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
        self.policies = POLICIES | {policy.name: policy for policy in policies}
        if len(self.policies) < len(POLICIES) + len(policies):
            taken = ", ".join([*POLICIES, *(policy.name for policy in policies)])
            raise InputError(f"two policies have the same name; names given and taken: {taken}")
        self.resamples = resamples
        self._known: dict[tuple[Setting, str], Reading] = {}

    def ask(self, given: Mapping[str, Any]) -> dict[str, Reading]:
        """Read the policies of a question (`read_question`), policy name -> reading.

        Raises:
            InputError: if it cannot be run; also with the words of a reader's own policy that failed.
        """
        settings, seeds = read_question(given, self.policies)
        keys = {name: (setting, str(given["seeds"])) for name, setting in settings.items()}
        if len(self._known) > KEPT:
            self._known.clear()
        missing = [key for key in keys.values() if key not in self._known]
        try:
            asked = [setting for setting, _ in missing]
            found = take_readings(asked, seeds, resamples=self.resamples) if asked else []
        except InputError:
            raise
        except Exception as error:  # a reader's score function may raise anything
            raise InputError(f"the episodes could not be run: {type(error).__name__}: {error}") from error
        self._known |= zip(missing, found, strict=True)
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
    world, horizon, budget, threshold = (given[name] for name in ("world", "horizon", "budget", "threshold"))
    if world not in VIEWS:
        raise InputError(f"unknown world {world!r}; accepted: {', '.join(VIEWS)}")
    for name, value, most in (("horizon", horizon, LONGEST_HORIZON), ("budget", budget, horizon)):
        least = int(name == "horizon")
        if not is_whole(value) or not least <= value <= most:
            raise InputError(f"{name} {value!r} is not a whole number in {least}..{most}")
    seeds = parse_seeds(str(given["seeds"]))
    if len(seeds) > MOST_SEEDS:
        raise InputError(f"seeds {given['seeds']!r}: {len(seeds)} seeds; at most {MOST_SEEDS} here")
    regime = replace(find_regime(given["regime"]), horizon=horizon)
    protocol, profile = parse_protocol(str(given["protocol"])), find_profile(given["profile"])
    settings: dict[str, Setting] = {}
    for name in given["policies"]:
        policy = look_up("policy", name, policies)
        if policy.has_threshold and (isinstance(threshold, bool) or not isinstance(threshold, int | float)):
            raise InputError(f"threshold {threshold!r} is not a number")
        gate = float(threshold) if policy.has_threshold else None
        cell = Cell(VIEWS[0] if world == POOL else world, policy, regime, protocol, profile, budget, gate)
        settings[name] = pooled(cell) if world == POOL else cell
    return settings, seeds
