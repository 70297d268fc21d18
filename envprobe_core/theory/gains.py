"""Measured repair gains G_T(S), and what probe scores rank fields by (Section 5.1).

Repairing a belief that is right changes nothing that anybody reads later, so G_T(S) = G_T(S and E) with E
the wrong beliefs: only subsets of E are played. All sets share their futures, so differences are paired.
"""

from __future__ import annotations

import numpy as np

from envprobe_core.engine.compiling import entry
from envprobe_core.engine.loop import S, U
from envprobe_core.engine.noise import PROBE, STREAMS, draw, stream_keys
from envprobe_core.engine.records import Word
from envprobe_core.statistics import Interval, bootstrap_means, percentile_interval
from envprobe_core.theory.forks import Past, Setting, future_seeds, play
from envprobe_core.worlds.base import Floats, Ints, Mask

TERM_SCORES: dict[str, tuple[str, ...]] = {
    "full": ("c", "s", "u", "d"),
    "c+d": ("c", "d"),
    "s+u": ("s", "u"),
    "c": ("c",),
    "s": ("s",),
    "u": ("u",),
    "d": ("d",),
}
SCORES = (*TERM_SCORES, "random", "periodic", "oracle", "oracle-tw")
DEPTH = 3
SMALLEST_GAIN = 1e-9


def accuracies(
    setting: Setting, past: Past, row: Ints, repaired: Mask, futures: int, first: int = 0
) -> tuple[dict[str, Floats], Floats]:
    """Play each query's futures.

    Args:
        row: [query], a row of the past.
        repaired: [query, field].
        futures: futures a query.
        first: number of the first future; numbers from another range are fresh futures.

    Returns:
        A_H^T by type, [query, future], and the number of valid task actions taken, [query, future].
    """
    seeds = np.repeat(past.seeds[row], futures)
    numbers = np.tile(np.arange(first, first + futures), len(row))
    played = play(setting, seeds, future_seeds(seeds, numbers), np.repeat(repaired, futures, axis=0))
    shape = (len(row), futures)
    by_type = {
        kind: played.right[:, setting.of_type(kind)].mean(axis=1).reshape(shape) for kind in setting.types
    }
    return by_type, played.actions.reshape(shape).astype(np.float64)


def terms_of(past: Past) -> dict[str, Floats]:
    """Return the four terms of the probe score at the moment, [row, field] each."""
    return {"c": past.c, "s": S[past.staleness], "u": U[past.confidence], "d": past.d}


def rank_values(setting: Setting, past: Past, score: str) -> Floats:
    """Return what a score ranks fields by, [row, field]: higher is probed earlier, ties to the first field.

    A repaired field leaves the competition, and c, d, s and u of the others stay what they were, so one
    ranking serves all sets that the score visits.
    """
    terms, shape = terms_of(past), past.c.shape
    if score in TERM_SCORES:
        total = np.zeros(shape)
        for term in TERM_SCORES[score]:
            total = total + terms[term]
        return total
    if score == "random":
        words = np.zeros(shape, np.uint64)
        _draw(setting.world.rules.code, past.seeds, setting.moment, words)
        return words.astype(np.float64)
    if score == "periodic":
        period = max(1, setting.world.regime.horizon // max(1, setting.world.regime.budget))
        probed = min(setting.world.regime.budget, max(0, (setting.moment - 1) // period))
        turn = (np.arange(shape[1]) - probed) % shape[1]
        return np.broadcast_to(-turn.astype(np.float64), shape)
    if score == "oracle":
        return past.wrong.astype(np.float64)
    return np.where(past.wrong, 1.0 + past.weights, 0.0)  # oracle-tw


@entry
def _draw(code, seeds, clock, words):
    """Draw a word of the probing stream for every field, [row, field]."""
    keys = np.zeros(STREAMS, Word)
    for row in range(len(seeds)):
        stream_keys(seeds[row], code, keys)
        for field in range(words.shape[1]):
            words[row, field] = draw(keys[PROBE], clock, field)


def ratio_interval(top: Floats, bottom: Floats, resamples: int) -> Interval:
    """Ratio of sums with its percentile interval; NaN where the sum below is not clearly positive."""
    return least_ratio(top[:, None], bottom[:, None], resamples)


def least_ratio(top: Floats, bottom: Floats, resamples: int) -> Interval:
    """The smallest over columns of the ratio of sums, [past, column], resampled by past.

    NaN where some sum below is not positive, ends NaN where it is not in more than 1% of the resamples.
    """
    n, columns = top.shape
    nothing = Interval(np.nan, np.nan, np.nan, n)
    if n < 2 or (bottom.mean(axis=0) <= SMALLEST_GAIN).any():
        return nothing
    value = float((top.mean(axis=0) / bottom.mean(axis=0)).min())
    means = bootstrap_means(np.concatenate([top, bottom], axis=1), resamples=resamples)
    good = (means[:, columns:] > SMALLEST_GAIN).all(axis=1)
    if good.mean() < 0.99:
        return nothing._replace(value=value)
    low, high = percentile_interval((means[good, :columns] / means[good, columns:]).min(axis=1))
    return Interval(value, float(low), float(high), n)
