"""What a policy is shown and what it answers (Sections 3 and 4.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from envprobe_core.noise import Words
from envprobe_core.protocols import Protocol
from envprobe_core.worlds.base import Floats, Ints, Mask, Observation, Values

STALENESS_DIVISOR = 10.0


@dataclass(frozen=True)
class Sight:
    """What a policy with a memory may follow besides the agent's table, for its own rows.

    Attributes:
        observation: what the agent has just been shown.
        told: [row], the field that the last step's probe told the agent about, or -1.
        answer: [row], that answer, as it was written into the table.
        position: [row], ascending, the rows' numbers in the block; rows may drop out for good.
    """

    observation: Observation
    told: Ints
    answer: Values
    position: Ints


@dataclass(frozen=True)
class View:
    """What a policy may look at when it decides, for its own rows.

    Attributes:
        step: t.
        horizon: H.
        value, staleness, confidence: [row, field], the belief table.
        c, d: [row, field], criticality and dependency role in [0, 1].
        action: [row], the proposed task action.
        risk: [row], the agent's self-reported risk, 0 low or 1 medium.
        budget, used: [row], probes allowed and probes fired so far.
        threshold: [row], the gate's threshold rho_star.
        draws: [row], words of the policy's own random stream.
        schedule: [row], the field a replayed policy probes at this step, or -1.
        protocol: the protocol in force.
        gold, weights: [row, field], for oracles only; None for every other policy.
        sight: for policies with a memory only; None for every other policy.
    """

    step: int
    horizon: int
    value: Values
    staleness: npt.NDArray[np.uint8]
    confidence: npt.NDArray[np.uint8]
    c: Floats
    d: Floats
    action: Ints
    risk: npt.NDArray[np.int8]
    budget: Ints
    used: Ints
    threshold: Floats
    draws: Words
    schedule: Ints
    protocol: Protocol
    gold: Values | None = None
    weights: Floats | None = None
    sight: Sight | None = None

    @property
    def s(self) -> Floats:
        """Return reported staleness s = min(1, tau_hat / 10), [row, field] (Section 4.1)."""
        return np.minimum(self.staleness, np.uint8(STALENESS_DIVISOR)) / STALENESS_DIVISOR

    @property
    def u(self) -> Floats:
        """Return verbalized uncertainty u = 1 - conf, [row, field] (Section 4.1)."""
        return 1.0 - self.confidence / 100.0


@dataclass(frozen=True)
class Decision:
    """What a policy wants: whether to probe [row], and which field [row]; `score` is max rho, or None."""

    probe: Mask
    field: Ints
    score: Floats | None = None
