"""Cells: one setting of the experiment each, the seeds it runs on, and how a text names both."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from envprobe_core.agents.profiles import PROFILES, TYPICAL, AgentProfile
from envprobe_core.errors import InputError, look_up
from envprobe_core.policies import POLICIES, THRESHOLD, Policy, find_policy
from envprobe_core.protocols import PAPER, Protocol, parse_protocol
from envprobe_core.regimes import REGIMES, Regime
from envprobe_core.worlds import WORLDS, make_world

Names = str | Iterable[str]
Seeds = npt.NDArray[np.int64]

PAPER_POLICIES = ("no-probe", "random", "periodic", "self-uncertainty", "simple", "judge", "oracle")
DEFAULT_SEEDS = "default"
RELEASED_SEEDS = (42, 262)
LARGEST_SEED = 2**63 - 1
MOST_SEEDS = 10_000_000
FEWEST = 10  # seeds of a draft


def is_whole(value: object) -> bool:
    """Say whether a value is a whole number, of Python or NumPy; a truth value is none."""
    return isinstance(value, Integral) and not isinstance(value, bool)


@dataclass(frozen=True)
class Cell:
    """One world, policy, regime, protocol and profile, with its budget B and base threshold rho_star."""

    world: str
    policy: Policy
    regime: Regime = field(default_factory=lambda: REGIMES["S2"])
    protocol: Protocol = PAPER
    profile: AgentProfile = TYPICAL
    budget: int | None = None
    threshold: float | None = None

    def __post_init__(self) -> None:
        """Refuse a budget or threshold that cannot be meant."""
        look_up("world", self.world, WORLDS)
        if self.budget is not None and not is_whole(self.budget):
            raise InputError(f"budget {self.budget} is not a whole number of probes")
        if self.budget is not None and not 0 <= self.budget <= self.regime.horizon:
            raise InputError(
                f"budget {self.budget} is not in 0..{self.regime.horizon} (the horizon of {self.regime.name})"
            )
        if self.threshold is not None:
            if not math.isfinite(self.threshold):
                raise InputError(f"threshold {self.threshold} is not a finite number")
            if not self.policy.has_threshold:
                accepted = [name for name, policy in POLICIES.items() if policy.has_threshold]
                raise InputError(
                    f"policy {self.policy.name} has no threshold; those that have one: {', '.join(accepted)}"
                )

    @property
    def budget_in_force(self) -> int:
        """Return the probe budget B: the cell's own, or the regime's."""
        return self.regime.budget if self.budget is None else self.budget

    @property
    def base_threshold(self) -> float | None:
        """Return the threshold before scaling, or None where the policy has none."""
        if not self.policy.has_threshold:
            return None
        return THRESHOLD if self.threshold is None else self.threshold

    @property
    def threshold_in_force(self) -> float:
        """Return the threshold the gate compares with (0 where the policy has none)."""
        base = self.base_threshold
        return 0.0 if base is None else self.policy.scaled_threshold(base, self.protocol)

    @property
    def key(self) -> dict[str, object]:
        """Return what tells this cell from others, by column name."""
        return {
            "world": self.world,
            "policy": self.policy.name,
            "regime": self.regime.name,
            "protocol": self.protocol.name,
            "profile": self.profile.name,
            "budget": self.budget_in_force,
            "threshold": self.base_threshold,
        }

    def named(self, seeds: Seeds, measures: Mapping[str, Any]) -> dict[str, Any]:
        """Put before the measures [row] of episodes whose they are: `seed n_fields horizon`, [row] each."""
        fields = make_world(self.world, self.regime, self.protocol).fields
        sizes = {"n_fields": fields, "horizon": self.regime.horizon}
        return {"seed": seeds, **{name: np.full(len(seeds), n) for name, n in sizes.items()}, **measures}

    def default_seeds(self) -> Seeds:
        """Return the seeds of the regime, or those of the public code's main run under its protocol."""
        first, last = self.regime.seeds
        if self.protocol.seeds == "released" and self.regime.name == "S2":
            first, last = RELEASED_SEEDS
        return _first(np.arange(first, last, dtype=np.int64))


def find_regime(name: str) -> Regime:
    """Return the regime of a name.

    Raises:
        InputError: if there is none; the message lists those there are.
    """
    return look_up("regime", name, REGIMES)


def find_profile(name: str) -> AgentProfile:
    """Return the agent profile of a name.

    Raises:
        InputError: if there is none; the message lists those there are.
    """
    return look_up("profile", name, PROFILES)


def names(given: Names) -> tuple[str, ...]:
    """Split a text of names at blanks and commas, or take a sequence as it is.

    A protocol with switches turned (`paper:clock=stands,end=success`) has commas of its own: where a
    colon occurs, blanks alone separate.
    """
    if given is None:
        raise InputError("None stands where names do; give a text such as 'tooldag graphnav', or a sequence")
    if not isinstance(given, str):
        return tuple(given)
    return tuple(given.split() if ":" in given else given.replace(",", " ").split())


_share: ContextVar[float] = ContextVar("share of the seeds", default=1.0)


@contextmanager
def first_seeds(share: float) -> Iterator[None]:
    """Let what is run inside have the first seeds alone, at least `FEWEST`: a draft of a live figure."""
    token = _share.set(share)
    try:
        yield
    finally:
        _share.reset(token)


def _first(seeds: Seeds) -> Seeds:
    return seeds[: max(FEWEST, round(_share.get() * len(seeds)))]


def find_protocols(given: Names) -> tuple[Protocol, ...]:
    """Return the protocols of a text or a sequence of names, switches included."""
    return tuple(map(parse_protocol, names(given)))


def parse_seeds(text: str) -> Seeds:
    """Read seeds: `FIRST:PAST` (0:220 is 0..219), a single seed, or several of these with commas.

    Raises:
        InputError: if the text is malformed, a range is empty, or a seed stands twice.
    """
    parts, count = [], 0
    for item in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,20})(?::([0-9]{1,20}))?\s*", item)
        if not match:
            raise InputError(
                f"seeds {text!r}: {item!r} is not FIRST:PAST or a number (as in 0:220, which is 0..219)"
            )
        first = int(match[1])
        past = first + 1 if match[2] is None else int(match[2])
        if past <= first:
            raise InputError(f"seeds {text!r}: the range {item.strip()} is empty; PAST must exceed FIRST")
        if past - 1 > LARGEST_SEED:
            raise InputError(f"seeds {text!r}: {past - 1} exceeds the largest seed {LARGEST_SEED}")
        count += past - first
        if count > MOST_SEEDS:
            raise InputError(f"seeds {text!r}: {count} seeds; at most {MOST_SEEDS}")
        parts.append(np.arange(first, past, dtype=np.int64))
    seeds = np.concatenate(parts)
    if len(parts) > 1 and len(np.unique(seeds)) != len(seeds):
        raise InputError(f"seeds {text!r}: a seed stands twice; each seed is one episode of a cell")
    return _first(seeds)


def read_seeds(text: str) -> Seeds | None:
    """Read seeds: a range as in `0:220`, or `default` (None): those of the regime and protocol."""
    if not isinstance(text, str):
        raise InputError(f"seeds {text!r}: give a text such as '0:220', or {DEFAULT_SEEDS!r}")
    return None if text == DEFAULT_SEEDS else parse_seeds(text)


def first_seed(seeds: str, regime: str) -> int:
    """Return the first of the seeds of a text, or the regime's own first one."""
    chosen = read_seeds(seeds)
    return find_regime(regime).seeds[0] if chosen is None else int(chosen[0])


def make_cell(
    world: str,
    policy: str,
    regime: str = "S2",
    protocol: Protocol = PAPER,
    profile: str = "typical",
    budget: int | None = None,
    threshold: float | None = None,
) -> Cell:
    """Make a cell from names; see `Cell` for what is refused."""
    return Cell(
        world, find_policy(policy), find_regime(regime), protocol, find_profile(profile), budget, threshold
    )
