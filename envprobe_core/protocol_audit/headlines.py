"""The headline figures of the paper: each is a claim of claims.csv, measured under any protocol."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from envprobe_core.claims import Claim, find_claim
from envprobe_core.claims.episodes import MIN_UNITS, Episodes, NotTestable
from envprobe_core.claims.judge import comparisons, sample_of
from envprobe_core.statistics import RESAMPLES, bootstrap_means, clustered_rate, percentile_interval

if TYPE_CHECKING:
    import pandas as pd

POLICIES = ("random", "periodic", "simple", "minus-u", "cd")  # that a headline speaks of
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Headline:
    """One figure that the paper puts forward.

    Attributes:
        claim: its name in claims.csv, which gives worlds, policies, measure and the printed number.
        title: as tables and figures call it.
        unit: of what is shown: `points` (shares and rates in percent) or `steps`.
    """

    claim: str
    title: str
    unit: str

    def about(self, regime: str) -> Claim:
        """Return the claim, asked of a regime; a rate over policies takes those that the audit runs."""
        claim = replace(find_claim(self.claim), regime=regime)
        return (
            claim if claim.references else replace(claim, arms=tuple(p for p in claim.arms if p in POLICIES))
        )

    @property
    def printed(self) -> float | None:
        """Return the number that the paper prints, in the headline's unit."""
        claim = find_claim(self.claim)
        if claim.value is None:
            return None
        return 100 * claim.value if claim.unit == "share" else claim.value


GAINS = (
    Headline("main-procedural", "Simple − Periodic, tools", "points"),
    Headline("main-spatial", "Simple − Periodic, rooms and graph", "points"),
    Headline("main-combined", "Simple − Periodic, all worlds", "points"),
    Headline("main-cd", "(c+d) − Simple, tools", "points"),
    Headline("collapse-delay", "collapse later than Periodic, tools", "steps"),
)
LEVELS = (
    Headline("level-simple-procedural", "accuracy of Simple, tools", "points"),
    Headline("level-success-simple", "success of Simple, tools", "points"),
    Headline("main-minus-u-success", "success without u − Simple, tools", "points"),
    Headline("upr-spatial", "useful probes, Simple − Random, rooms and graph", "points"),
    Headline("pcw-canonical", "confident and wrong, all worlds", "points"),
)
HEADLINES = GAINS + LEVELS


@dataclass(frozen=True)
class Counts:
    """A headline under one protocol, unit by unit: the figure is the ratio of the two sums.

    Attributes:
        top, bottom: [unit], a unit being a seed in a world; in the headline's unit of measurement.
        worlds: [unit], the stratum to resample within.
    """

    top: Floats
    bottom: Floats
    worlds: npt.NDArray[np.int64]

    @property
    def value(self) -> float:
        """Return the figure."""
        return float(self.top.sum() / self.bottom.sum())


def measure(headline: Headline, episodes: Episodes, regime: str) -> Counts | None:
    """Measure a headline on the episodes of one protocol; None where they cannot tell it.

    Args:
        headline: which figure.
        episodes: of one protocol and profile.
        regime: of the episodes.
    """
    claim = headline.about(regime)
    try:
        sample = sample_of(claim, comparisons(claim)[0], episodes)
    except NotTestable:
        return None
    if np.count_nonzero(sample.bottom) < MIN_UNITS:
        return None
    scale = 100.0 if headline.unit == "points" else 1.0
    return Counts(scale * sample.top[:, 0], sample.bottom[:, 0], sample.worlds)


def change(base: Counts | None, turned: Counts | None, resamples: int = RESAMPLES) -> tuple[float, ...]:
    """Return how much a figure changes with its interval: estimate, low, high (NaN where one is missing).

    The same seeds are drawn on both sides of a resample, so that the interval is that of a paired
    difference, also where the figure is a ratio.

    Args:
        base: the figure before.
        turned: the figure after, of the same seeds in the same worlds.
        resamples: bootstrap resamples.
    """
    if base is None or turned is None:
        return (np.nan, np.nan, np.nan)
    columns = np.stack([turned.top, turned.bottom, base.top, base.bottom], axis=1)
    means = bootstrap_means(columns, base.worlds, resamples=resamples)
    means = means[(means[:, 1] > 0) & (means[:, 3] > 0)]
    draws = means[:, 0] / means[:, 1] - means[:, 2] / means[:, 3]
    low, high = percentile_interval(draws)
    return (turned.value - base.value, float(low), float(high))


def level(figure: Counts | None, resamples: int = RESAMPLES) -> tuple[float, ...]:
    """Return a figure with its interval: estimate, low, high (NaN where it is missing)."""
    if figure is None:
        return (np.nan, np.nan, np.nan)
    found = clustered_rate(figure.top, figure.bottom, figure.worlds, resamples=resamples)
    return (figure.value, found.low, found.high)


def measure_all(frame: pd.DataFrame) -> dict[tuple[str, str], Counts | None]:
    """Measure every headline under every protocol of a frame: (protocol, claim) -> counts."""
    regime, profile = str(frame["regime"].iloc[0]), str(frame["profile"].iloc[0])
    found = {}
    for protocol in frame["protocol"].unique():
        episodes = Episodes(frame, protocol=protocol, profile=profile)
        found |= {(protocol, one.claim): measure(one, episodes, regime) for one in HEADLINES}
    return found
