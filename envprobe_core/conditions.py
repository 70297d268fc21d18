"""Conditions: one setting of the experiment each, the seeds it runs on, and how a text names both."""

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core import policies, protocols
from envprobe_core.agents.profiles import PROFILES, TYPICAL, AgentProfile
from envprobe_core.errors import InputError, look_up
from envprobe_core.naming import Titles, split_names
from envprobe_core.policies import POLICIES, THRESHOLD, Policy, find_policy, rules_for
from envprobe_core.protocols import PAPER, Protocol, parse_protocol
from envprobe_core.regimes import REGIMES, Regime
from envprobe_core.worlds import MODULES, WORLDS, World, find_world, make_world, world_titles

Names = str | Iterable[str]
Seeds = npt.NDArray[np.int64]

PAPER_POLICIES = ("no-probe", "random", "periodic", "self-uncertainty", "simple", "judge", "oracle")
DEFAULT_SEEDS = "default"
RELEASED_SEEDS = (42, 262)
LARGEST_SEED = 2**63 - 1
MOST_SEEDS = 10_000_000
RESERVED = range(800_000, 800_500)
"""The seeds of the episodes that constant tables are learned from (`zero`); nobody else plays one of them."""


def is_whole(value: object) -> bool:
    """Whether a value is a whole number, of Python or NumPy; a truth value is none.

    >>> is_whole(3), is_whole(True), is_whole(3.0)
    (True, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool)


ESTIMATORS = {"accuracy": "overlap", "useful": "informs", "oracle": "mismatched"}
"""Switches whose second value asks for an estimator of the public code, which a world's module may have."""


@dataclass(frozen=True)
class Condition:
    """One world, policy, regime, protocol and profile, with its budget B and base threshold rho_star.

    Attributes:
        budget, threshold: as given; None is the regime's own, and 1.5 where the policy has a threshold.
        budget_in_force: the probe budget B.
        threshold_in_force: what the gate compares with, scaled as the protocol says; 0 where there is none.
        key: what tells this condition from others, by column name.
    """

    world: str
    policy: Policy
    regime: Regime = REGIMES["S2"]
    protocol: Protocol = PAPER
    profile: AgentProfile = TYPICAL
    budget: int | None = None
    threshold: float | None = None
    budget_in_force: int = field(init=False, repr=False, compare=False)
    threshold_in_force: float = field(init=False, repr=False, compare=False)
    key: dict[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse a budget or threshold that cannot be meant, and decide what is in force."""
        object.__setattr__(self, "world", find_world(self.world))
        if (known := rules_for(self.policy)) is not None and self.world not in known:
            accepted = ", ".join(known)
            raise InputError(f"policy {self.policy.name} has no rules for {self.world}; accepted: {accepted}")
        if self.world not in WORLDS:
            self._refuse_what_only_the_papers_worlds_have()
        budget = self.regime.budget if self.budget is None else self.budget
        if not is_whole(budget):
            raise InputError(f"budget {budget!r} is not a whole number of probes")
        if not 0 <= budget <= self.regime.horizon:
            accepted = f"0..{self.regime.horizon} (the horizon of {self.regime.name})"
            raise InputError(f"budget {budget} is not in {accepted}")
        base = self.threshold
        number = isinstance(base, Real) and not isinstance(base, bool)
        if base is not None and not (number and abs(base) <= sys.float_info.max):
            raise InputError(f"threshold {base!r} is not a finite number")
        if base is not None and not self.policy.has_threshold:
            accepted = ", ".join(name for name, policy in POLICIES.items() if policy.has_threshold)
            raise InputError(f"policy {self.policy.name} has no threshold; those that have one: {accepted}")
        if base is None and self.policy.has_threshold:
            base = THRESHOLD
        scaled = 0.0 if base is None else self.policy.scaled_threshold(base, self.protocol)
        parts = ("world", "policy", "regime", "protocol", "profile")
        names = (self.world, *(getattr(self, part).name for part in parts[1:]))
        key = {**dict(zip(parts, names, strict=True)), "budget": budget, "threshold": base}
        for name, value in {"budget_in_force": budget, "threshold_in_force": scaled, "key": key}.items():
            object.__setattr__(self, name, value)

    @property
    def built(self) -> World:
        """The world, built for the regime and the protocol."""
        return make_world(self.world, self.regime, self.protocol)

    def named(self, seeds: Seeds, measures: Mapping[str, Any]) -> dict[str, Any]:
        """Put before the measures [row] of episodes whose they are: `seed n_fields horizon`, [row] each."""
        sizes = {"n_fields": self.built.fields, "horizon": self.regime.horizon}
        return {"seed": seeds, **{name: np.full(len(seeds), n) for name, n in sizes.items()}, **measures}

    def _refuse_what_only_the_papers_worlds_have(self) -> None:
        """Refuse a world of one's own where the public code's estimators are asked for: without, all is 0."""
        module = MODULES[self.world]
        wanted = [name for name in ESTIMATORS if getattr(self.protocol, name) != getattr(PAPER, name)]
        if lacking := [name for name in wanted if not hasattr(module, ESTIMATORS[name])]:
            base, _, turned = self.protocol.name.partition(":")
            kept = [one for one in turned.split(",") if one and one.partition("=")[0] not in lacking]
            plain = ",".join([*kept, *(f"{name}={getattr(PAPER, name)}" for name in lacking)])
            raise InputError(
                f"protocol {self.protocol.name}: {', '.join(lacking)} is the public code's, which has no "
                f"{self.world}; accepted: {base}:{plain}, or a world of {', '.join(WORLDS)}"
            )
        if self.profile.scribe and not hasattr(module, "wander"):
            told = (
                f"profile {self.profile.name} keeps no table, and {self.world} has no rules for such an agent"
            )
            raise InputError(f"{told}; accepted: {', '.join(WORLDS)}")

    def default_seeds(self) -> Seeds:
        """The seeds of the regime, or those of the public code's main run under its protocol."""
        released = self.protocol.seeds == "released" and self.regime.name == "S2"
        return np.arange(*(RELEASED_SEEDS if released else self.regime.seeds), dtype=np.int64)


def find_regime(name: str) -> Regime:
    """The regime of a name; an unknown one is refused with the known.

    >>> find_regime("S2").budget
    7
    """
    return look_up("regime", name, REGIMES)


def find_profile(name: str) -> AgentProfile:
    """The agent profile of a name; an unknown one is refused with the known.

    >>> find_profile("typical").name
    'typical'
    """
    return look_up("profile", name, PROFILES)


def find_protocols(given: Names) -> tuple[Protocol, ...]:
    """The protocols of a text or a sequence of names or titles, switches included.

    >>> [protocol.name for protocol in find_protocols("as written, partial start")]
    ['paper', 'observed']
    """
    return names(given, parse_protocol, protocols.NAMES)


def find_policies(given: Names | Sequence[str | Policy]) -> tuple[Policy, ...]:
    """The policies of a text or a sequence of names or titles; a policy stands for itself.

    >>> [policy.name for policy in find_policies("EnvProbe-Simple, Yoked Placebo, periodic")]
    ['simple', 'yoked', 'periodic']
    """
    return names(given, lambda one: one if isinstance(one, Policy) else find_policy(one), policies.NAMES)


def find_worlds(given: Names) -> tuple[str, ...]:
    """The names of the worlds of a text or a sequence of names or titles.

    >>> find_worlds("tools GraphNavWorld")
    ('tooldag', 'graphnav')
    """
    return names(given, find_world, world_titles())


def titles() -> dict[str, Titles]:
    """All titles that stand for a name of a world, a policy or a protocol.

    >>> titles()["protocol"]["observed"]
    ('partial start',)
    """
    return {"world": world_titles(), "policy": policies.NAMES, "protocol": protocols.NAMES}


def names(
    given: Names | Sequence[Any], read: Callable[[Any], Any] | None = None, spelled: Titles | None = None
) -> tuple[Any, ...]:
    """Split a text of names at blanks and commas, or take a sequence as it is; none may stand twice.

    Args:
        given: a text as `naming.split_names` takes it, or a sequence.
        read: what makes something of each name.
        spelled: titles that may stand for a name; a blank in one divides nothing.

    >>> names("tooldag, graphnav")
    ('tooldag', 'graphnav')
    >>> names("paper paper:clock=stands,end=success")
    ('paper', 'paper:clock=stands,end=success')
    """
    if not isinstance(given, Iterable):
        raise InputError(f"{given!r} stands where names do; give a text as 'tooldag graphnav', or a sequence")
    found = split_names(given, spelled) if isinstance(given, str) else given
    found = tuple(found if read is None else map(read, found))
    if any(one in found[:place] for place, one in enumerate(found)):
        raise InputError(f"{given!r} names one twice")
    return found


def parse_seeds(text: str) -> Seeds:
    """Read seeds: `FIRST:PAST` (0:220 is 0..219), a single seed, or several of these with commas.

    Raises:
        InputError: if the text is malformed, a range is empty, a seed stands twice, or one is `RESERVED`.

    >>> parse_seeds("0:4,10").tolist()
    [0, 1, 2, 3, 10]
    """
    if not isinstance(text, str):
        raise InputError(f"seeds {text!r}: give a text such as '0:220'")
    parts, count = [], 0
    for item in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,20})(?::([0-9]{1,20}))?\s*", item)
        if not match:
            raise InputError(
                f"seeds {text!r}: {item!r} is not FIRST:PAST or a number (as in 0:220, which is 0..219)"
            )
        first = int(match[1])
        past = first + 1 if match[2] is None else int(match[2])
        count += past - first
        if past <= first:
            raise InputError(f"seeds {text!r}: the range {item.strip()} is empty; PAST must exceed FIRST")
        if past - 1 > LARGEST_SEED:
            raise InputError(f"seeds {text!r}: {past - 1} exceeds the largest seed {LARGEST_SEED}")
        if count > MOST_SEEDS:
            raise InputError(f"seeds {text!r}: {count} seeds; at most {MOST_SEEDS}")
        parts.append(np.arange(first, past, dtype=np.int64))
    seeds = np.concatenate(parts)
    if len(parts) > 1 and len(np.unique(seeds)) != len(seeds):
        raise InputError(f"seeds {text!r}: a seed stands twice; each seed is one episode of a condition")
    if ((seeds >= RESERVED.start) & (seeds < RESERVED.stop)).any():
        own = f"{RESERVED.start}..{RESERVED.stop - 1}"
        raise InputError(f"seeds {text!r}: {own} are kept for learning the zero; give others")
    return seeds


def check_seed(seed: object, what: str = "seed") -> None:
    """Refuse what is no seed.

    >>> check_seed(7)
    """
    if not is_whole(seed) or not 0 <= seed <= LARGEST_SEED:  # type: ignore[operator]
        raise InputError(f"{what} {seed!r} is not a whole number in 0..{LARGEST_SEED}")


def read_seeds(text: str) -> Seeds | None:
    """Read seeds: a range as in `0:220`, or `default` (None): those of the regime and protocol.

    >>> read_seeds("default") is None
    True
    >>> read_seeds("0:3").tolist()
    [0, 1, 2]
    """
    return None if isinstance(text, str) and text == DEFAULT_SEEDS else parse_seeds(text)


def first_seed(seeds: str, regime: str) -> int:
    """The first of the seeds of a text, or the regime's own first one.

    >>> first_seed("default", "S1")
    1000
    """
    chosen = read_seeds(seeds)
    return find_regime(regime).seeds[0] if chosen is None else int(chosen[0])


def make_condition(
    world: str,
    policy: str,
    regime: str = "S2",
    protocol: Protocol = PAPER,
    profile: str = "typical",
    budget: int | None = None,
    threshold: float | None = None,
) -> Condition:
    """Make a condition from names; see `Condition` for what is refused.

    >>> condition = make_condition("tooldag", "simple")
    >>> condition.budget_in_force, condition.threshold_in_force
    (7, 1.5)
    """
    return Condition(
        world, find_policy(policy), find_regime(regime), protocol, find_profile(profile), budget, threshold
    )
