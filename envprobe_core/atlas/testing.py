"""Verdicts for many profiles at once: what `claims.judge` says of each, profiles being its columns.

*Holds, other size* counts as *holds* here, because the atlas asks whether a claim survives, not whether its
size does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from envprobe_core.claims import Claim
from envprobe_core.claims.episodes import MIN_UNITS, Sample, measured
from envprobe_core.claims.judge import (
    HOLDS,
    INCONCLUSIVE,
    NO_EFFECT,
    NOT_TESTED,
    OTHER_SIZE,
    REVERSES,
    Comparison,
    comparisons,
    estimate,
    groups_of,
    level_of,
    sample_of,
    verdicts,
)
from envprobe_core.policies import OF_THE_PAPER
from envprobe_core.worlds import WORLDS
from envprobe_core.worlds.base import Floats

Codes = npt.NDArray[np.int8]

CODES = (HOLDS, INCONCLUSIVE, REVERSES, NOT_TESTED)
YES, OPEN, NO, UNTESTED = range(4)
_WORLD = {name: position for position, name in enumerate(WORLDS)}
_POLICY = {name: position for position, name in enumerate(OF_THE_PAPER)}


class Cube:
    """Columns of the episode frame, [world, policy, profile, seed]; measures are kept once computed."""

    def __init__(self, columns: dict[str, Floats]) -> None:
        """Hold the columns."""
        self.columns = columns
        self._measures: dict[str, Floats] = {}

    def values(self, measure: str, regime: str, world: str, policies: Sequence[str]) -> Floats:
        """Return a measure of some policies, [policy, seed, profile], as `judge.Episodes` does of a frame."""
        if measure not in self._measures:
            self._measures[measure] = measured(measure, self.columns.__getitem__)
        chosen = self._measures[measure][_WORLD[world], [_POLICY[name] for name in policies]]
        return chosen.transpose(0, 2, 1)


@dataclass(frozen=True)
class Judgement:
    """Verdicts and sizes, [profile, claim]."""

    verdict: Codes  # positions in `CODES`
    estimate: Floats  # in the claim's unit; of a claim of several comparisons the least supported
    support: Floats  # how far it is on the claimed side or in its margin; of several the least; NaN: untested


def judge(claims: Sequence[Claim], cube: Cube, resamples: int) -> Judgement:
    """Test every claim on every profile of a cube."""
    results = [_judge(claim, cube, resamples) for claim in claims]
    return Judgement(*(np.stack(part, axis=1) for part in zip(*results, strict=True)))


def _judge(claim: Claim, cube: Cube, resamples: int) -> tuple[Codes, Floats, Floats]:
    links = [_test(claim, one, cube, resamples) for one in comparisons(claim)]
    found, estimates, supports = (np.stack(part) for part in zip(*links, strict=True))
    worst = np.argmin(np.where(np.isnan(supports), -np.inf, supports), axis=0)[None]
    least = (np.take_along_axis(part, worst, axis=0)[0] for part in (estimates, supports))
    rules = [(found == UNTESTED).any(axis=0), (found == NO).any(axis=0), (found == YES).all(axis=0)]
    return np.select(rules, [UNTESTED, NO, YES], OPEN).astype(np.int8), *least


def _test(claim: Claim, one: Comparison, cube: Cube, resamples: int) -> tuple[Codes, Floats, Floats]:
    """Test one comparison: verdict, estimate and support, each [profile]."""
    sample = sample_of(claim, one, cube)
    counts = [np.count_nonzero(sample.bottom[group], axis=0) for group in groups_of(claim, sample)]
    tested = np.min(counts, axis=0) >= MIN_UNITS
    codes, value = np.full(tested.shape, UNTESTED, dtype=np.int8), np.full(tested.shape, np.nan)
    if tested.any():
        each = None if sample.each is None else sample.each[..., tested]
        known = Sample(sample.top[:, tested], sample.bottom[:, tested], sample.worlds, each)
        found = estimate(claim, known, resamples)
        words = verdicts(claim, one.direction, known, found)
        alike = {OTHER_SIZE: HOLDS, NO_EFFECT: INCONCLUSIVE}
        codes[tested] = [CODES.index(alike.get(word, word)) for word in words.tolist()]
        value[tested] = found.mean
    return codes, value, _support(claim, one.direction, value)


def _support(claim: Claim, direction: str, value: Floats) -> Floats:
    if direction == "either":
        return np.abs(value)
    away = value - level_of(claim)
    if direction in ("none", "equal"):
        return (claim.margin or 0.0) - np.abs(away)
    return away if direction == "greater" else -away
