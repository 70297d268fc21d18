"""The five factors with their levels, and the gate of one policy with the field of another (ours)."""

from __future__ import annotations

from dataclasses import dataclass

from envprobe_core.policies import POLICIES, Policy, hybrid
from envprobe_core.protocols import Protocol, parse_protocol

BLIND = "periodic"  # whose times and fields are the lower levels of timing and selection
IDLE = "no-probe"
SPLIT = (  # the policies that are taken apart, in the order of tables and figures
    "periodic", "random", "self-uncertainty", "simple", "minus-c", "minus-s", "minus-u", "minus-d", "cd",
    "judge", "oracle", "oracle-tw",
)  # fmt: skip


@dataclass(frozen=True)
class Factor:
    """One of the five factors, with its two levels in words."""

    name: str
    lower: str
    upper: str

    @property
    def bit(self) -> int:
        """Return the factor's bit in a coalition."""
        return 1 << [factor.name for factor in FACTORS].index(self.name)


FACTORS = (
    Factor("information", "a probe's answer is withheld", "the answer replaces the belief"),
    Factor("time", "the world moves on during a probe", "the world stands still during a probe"),
    Factor("selection", "the field that Periodic would probe", "the field that the policy ranks first"),
    Factor("timing", "probes at Periodic's times K, 2K, ...", "probes when the policy's own gate opens"),
    Factor(
        "metric",
        "share of fields right at the end, belief and world of the same step",
        "mean slot overlap over the executed steps, paired and encoded as the protocol says",
    ),
)
FACTOR_NAMES = tuple(factor.name for factor in FACTORS)
INFORMATION, TIME, SELECTION, TIMING, METRIC = (factor.bit for factor in FACTORS)
ALL = (1 << len(FACTORS)) - 1


def arm(policy: str, coalition: int) -> Policy:
    """Return the policy of an arm of the factorial: its times, its fields, answered or not.

    A probe that is not answered leaves no trace of its field, so that arms without answers are the same
    whatever selects the field, and are run once.

    Args:
        policy: the name of the policy that is taken apart.
        coalition: which factors stand at their upper level.
    """
    own, blind = POLICIES[policy], POLICIES[BLIND]
    chosen = coalition & (SELECTION if coalition & INFORMATION else TIMING)
    return hybrid(
        own if coalition & TIMING else blind,
        own if chosen else blind,
        answered=bool(coalition & INFORMATION),
    )


def context(protocol: str, coalition: int) -> Protocol:
    """Return the protocol of an arm: answers delivered (the arm decides), the clock as the arm says."""
    clock = "stands" if coalition & TIME else "runs"
    turned = f"answer=delivered,clock={clock}"
    return parse_protocol(protocol + ("," if ":" in protocol else ":") + turned)


def own_level(protocol: str) -> int:
    """Return the coalition of a policy under a protocol as it is: what the protocol itself turns on."""
    switches = parse_protocol(protocol)
    return (
        SELECTION
        | TIMING
        | (INFORMATION if switches.answer == "delivered" else 0)
        | (TIME if switches.clock == "stands" else 0)
        | (METRIC if switches.accuracy == "slots" else 0)
    )


def members(coalition: int) -> tuple[int, ...]:
    """Return the positions of the factors that a coalition turns on."""
    return tuple(place for place in range(len(FACTORS)) if coalition >> place & 1)
