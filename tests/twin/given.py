"""What the twin is given (noise, protocol, profile), what it hands back, and how words are read."""

from dataclasses import dataclass, field
from typing import Protocol

UNKNOWN = -1  # as a value: nobody knows
WAIT = -1  # as an action: do nothing
NONE = -1  # as a field, key, edge or tool: there is none
LOW = 0xFFFFFFFF  # mask of a word's lower 32 bits
QUARTER = 0xFFFF  # mask of a word's lowest 16 bits


def bound32(probability: float) -> int:
    """Return the number below which a word's low half says that the event happens."""
    return int(probability * 2**32 + 0.5)


def bound16(probability: float) -> int:
    """Return the number below which a word's quarter says that the event happens."""
    return int(probability * 2**16 + 0.5)


class Noise(Protocol):
    """One seed's 64-bit words, [clock][field]: by world tick the first two, by step the others."""

    mutation: list[list[int]]
    visible: list[list[int]]
    write: list[list[int]]
    staleness: list[list[int]]
    impulse: list[list[int]]
    probe: list[list[int]]


class Switches(Protocol):
    """The switches of a protocol that act inside an episode."""

    start: str  # "gold" | "observation"
    answer: str  # "delivered" | "withheld"
    clock: str  # "runs" | "stands"
    sight: str  # "local" | "released"
    structure: str  # "graph" | "reported"
    end: str  # "horizon" | "success"
    baselines: str  # "text" | "released"


class Profile(Protocol):
    """How the simulated agent errs: probabilities, whole percents, and one habit."""

    omit: float
    overwrite: float
    slip: float
    quit: float
    misreport: float
    hedge: float
    confidence: int
    spread: int
    fade: int
    single_report: bool


@dataclass
class Episode:
    """All that happened: tables at t = 0..steps, decisions at t = 0..steps-1."""

    belief: list[list[int]] = field(default_factory=list)
    staleness: list[list[int]] = field(default_factory=list)
    confidence: list[list[int]] = field(default_factory=list)
    gold: list[list[int]] = field(default_factory=list)
    here: list[int] = field(default_factory=list)  # the true room or node (0 for tools)
    proposal: list[int] = field(default_factory=list)
    probe: list[int] = field(default_factory=list)  # the field probed, or -1
    answer: list[int | None] = field(default_factory=list)  # None if none reaches the agent
    valid: list[bool | None] = field(default_factory=list)  # None for a probe or a wait
    score: list[float | None] = field(default_factory=list)  # the highest rho
    steps: int = 0
    success: bool = False
