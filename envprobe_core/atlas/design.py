"""The sample: a box of agent behaviours, filled evenly by a scrambled Sobol sequence.

The box says which agents the atlas speaks of: those that keep a table. Each of their behaviours in
`AgentProfile` is one axis, and every named profile of `profiles.PROFILES` that keeps one lies inside,
`typical` among them. The scribe, which keeps nothing, is an agent of another form, and what only it does
(`NO_TABLE`) is no axis. Rates are spread on a square scale: half of the agents lie in the lowest quarter of
each range, since an agent that errs all the time can do nothing that a claim could be tested on, and should
be met, but rarely. All of it is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from envprobe_core.agents.profiles import AgentProfile

SCRAMBLE_SEED = 20_250_101
SOBOL_BITS = 30


@dataclass(frozen=True)
class Axis:
    """One behaviour and the values it takes in the box."""

    name: str  # the field of `AgentProfile`
    low: float  # the ends, both included; of a yes-or-no behaviour 0 and 1
    high: float
    why: str  # the reason for the range, one clause
    kind: str = "share"  # `share` (a probability, on a square scale), `whole` or `habit` (yes or no)
    share: float = 0.5  # of a habit, the part of the sample that has it

    def value(self, unit: float) -> float:
        """Return the axis' value for a coordinate in [0, 1)."""
        if self.kind == "habit":
            return float(unit < self.share)
        if self.kind == "whole":
            return float(np.floor(self.low + unit * (self.high - self.low + 1)))
        return self.low + unit * unit * (self.high - self.low)


BOX: tuple[Axis, ...] = (
    Axis("omit", 0.0, 1.0, "from writing all its news to writing none"),
    Axis("overwrite", 0.0, 1.0, "up to one spoilt field at every step"),
    Axis("slip", 0.0, 0.5, "up to every other action drawn at random"),
    Axis("quit", 0.0, 0.1, "up to giving up after ten steps on average"),
    Axis("misreport", 0.0, 1.0, "from true to always wrong about when it last looked"),
    Axis("hedge", 0.0, 0.5, "up to every other report below .7"),
    Axis("confidence", 60, 100, "from less than the .7 that counts as confident to certainty", "whole"),
    Axis("spread", 0, 40, "from one figure for everything to forty percent of variation", "whole"),
    Axis("fade", 0, 5, "up to a loss of confidence that empties a report in twenty steps", "whole"),
    Axis("single_report", 0, 1, "an odd habit, so only a quarter of the sample has it", "habit", 0.25),
    Axis("writes", 0, 1, "1 is `true`, 0 the number seen; matters to `released` scoring alone", "habit"),
    Axis("keeps_open", 0, 1, "matters to `released` scoring alone", "habit"),
)
NAMES = tuple(axis.name for axis in BOX)
NO_TABLE = (
    "scribe", "copies_gold", "lost", "loop", "critical", "risky", "names_goal", "asks", "lists_all",
)  # fmt: skip
"""Behaviours of agents that keep no table."""


def coordinates(count: int) -> npt.NDArray[np.float64]:
    """Return the first points of a scrambled Sobol sequence, [profile, axis] in [0, 1).

    The scramble's seed is fixed, so a larger sample only adds points to a smaller one; a power of
    two fills the box most evenly.
    """
    from scipy.stats import qmc

    sampler = qmc.Sobol(len(BOX), scramble=True, bits=SOBOL_BITS, rng=np.random.default_rng(SCRAMBLE_SEED))
    power = max(count - 1, 0).bit_length()
    return sampler.random_base2(power)[:count]


def profile_of(values: npt.NDArray[np.float64], name: str) -> AgentProfile:
    """Make an agent of one value an axis, [axis] in the order of `BOX`."""
    kinds = {"share": float, "whole": int, "habit": bool}
    taken = {axis.name: kinds[axis.kind](value) for axis, value in zip(BOX, values.tolist(), strict=True)}
    taken["writes"] = "true" if taken["writes"] else "number"
    return AgentProfile(name, assumption="A point of the atlas.", **taken)


def values_of(profile: AgentProfile) -> npt.NDArray[np.float64]:
    """Return a profile's behaviours as numbers, [axis] in the order of `BOX`."""
    given = {**vars(profile), "writes": profile.writes == "true"}
    return np.array([float(given[name]) for name in NAMES])


def sample_profiles(count: int) -> tuple[AgentProfile, ...]:
    """Return the atlas' agents: `count` points of the box, named by their number."""
    points = coordinates(count)
    values = np.array([[axis.value(unit) for axis, unit in zip(BOX, point, strict=True)] for point in points])
    return tuple(profile_of(row, f"atlas-{number:04}") for number, row in enumerate(values))
