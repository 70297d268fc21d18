"""Stress regimes: how large, how dense, how mutable and how noisy a world is (Section 6.1).

Source of the levels: the paper's experimental setup; R1-R6 are one-at-a-time changes around S2.
"""

from dataclasses import dataclass, replace
from functools import partial

LOW, MEDIUM, HIGH = 0, 1, 2
OBSERVATIONS = ("clean", "partial", "distractor")


@dataclass(frozen=True)
class Regime:
    """One setting of the four stress levels, each LOW, MEDIUM or HIGH."""

    name: str
    complexity: int
    density: int
    mutation: int
    noise: int
    horizon: int
    seeds: tuple[int, int]
    title: str

    @property
    def budget(self) -> int:
        """The probe budget B = floor(H/4) (Definition 3.1)."""
        return self.horizon // 4

    @property
    def observation(self) -> str:
        """The observation noise: clean, partial or distractor."""
        return OBSERVATIONS[self.noise]


S2 = Regime("S2", MEDIUM, MEDIUM, MEDIUM, MEDIUM, 30, (0, 220), "medium stress (primary)")
_around_s2 = partial(replace, S2, seeds=(2000, 2060))
REGIMES: dict[str, Regime] = {
    regime.name: regime
    for regime in (
        Regime("S1", LOW, LOW, LOW, LOW, 20, (1000, 1030), "low stress"),
        S2,
        Regime("S3", HIGH, HIGH, HIGH, HIGH, 40, (1000, 1030), "high stress"),
        _around_s2(name="R1", title="S2 with low complexity", complexity=LOW),
        _around_s2(name="R2", title="S2 with high complexity", complexity=HIGH),
        _around_s2(name="R3", title="S2 with low density", density=LOW),
        _around_s2(name="R4", title="S2 with high density", density=HIGH),
        _around_s2(name="R5", title="S2 with clean observations", noise=LOW),
        _around_s2(name="R6", title="S2 with distractor observations", noise=HIGH),
    )
}
