"""What self-reports add to structure when fields are chosen for repair (Lemma 5.4 of the paper; ours).

A field is described by h = (c, d), its structural features, and z = (s, u), what the agent reports of itself;
both are binned. A rule repairs the field whose bin gains most on average.
"""

from __future__ import annotations

import numpy as np

from envprobe_book.analyses import ends
from envprobe_book.analyses.repairs import Past
from envprobe_core.statistics import mean_interval
from envprobe_core.worlds.base import Floats, Ints

BINS = {  # of the features: s below .35, below .75, the rest; u sure, less sure, below alpha = .7
    "c": (0.0, 1 / 3, 2 / 3), "d": (0.0, 0.5, 1.0), "s": (0.0, 0.35, 0.75), "u": (0.0, 0.15, 0.30),
}  # fmt: skip
FEWEST_IN_BIN = 30


def feature_codes(past: Past, own: Ints) -> tuple[Ints, Ints]:
    """Codes of h = (c, d), below 9, and of (h, z), below 81, by bins, [row, own field] each."""
    terms = past.terms
    c, d, s, u = (
        np.searchsorted(edges, terms[name][:, own], side="right") - 1 for name, edges in BINS.items()
    )
    h = c * 3 + d
    return h, h * 9 + s * 3 + u


def bin_means(codes: Ints, gain: Floats, least: int) -> Floats:
    """The mean gain of each code, [code]; NaN in bins with fewer entries than `least`.

    >>> bin_means(np.array([0, 0, 1]), np.array([1.0, 2.0, 5.0]), least=2)[:2]
    array([1.5, nan])
    """
    count = np.bincount(codes.ravel(), minlength=81)
    total = np.bincount(codes.ravel(), gain.ravel(), minlength=81)
    return np.divide(total, count, out=np.full(len(count), np.nan), where=count >= least)


def self_report(past: Past, own: Ints, gain: Floats, resamples: int) -> dict[str, float]:
    """Both sides of the self-report bound; rules are fitted on one half and valued on the other.

    Args:
        past: what is seen when fields are repaired.
        own: the fields of one type.
        gain: what each of them gains if repaired alone, [row, own field].
        resamples: of the interval of the advantage.

    Returns:
        How many `bins` hold enough fields, `epsilon` over these, and with the worst bin chosen on the other
        half (`epsilon_split`); the mean gain of the best rule that reads h (`structural`) or h and z
        (`both`), and the `advantage` of the second with its interval.
    """
    h, hz = feature_codes(past, own)
    halves = [(slice(half, None, 2), slice(1 - half, None, 2)) for half in (0, 1)]

    def deviations(rows: slice, least: int) -> Floats:  # m(h, z) - m0(h), [code]
        return bin_means(hz[rows], gain[rows], least) - np.repeat(
            bin_means(h[rows], gain[rows], least)[:9], 9
        )

    whole, split = deviations(slice(None), FEWEST_IN_BIN), []
    parts = [deviations(rows, FEWEST_IN_BIN // 2) for rows, _ in halves]
    usable = ~np.isnan(parts[0]) & ~np.isnan(parts[1])
    for chooser in (0, 1) if usable.any() else ():
        worst = int(np.argmax(np.where(usable, np.abs(parts[chooser]), -1.0)))
        split.append(parts[1 - chooser][worst] * np.sign(parts[chooser][worst]))
    value = {"structural": np.zeros(len(gain)), "both": np.zeros(len(gain))}
    for fit, test in halves:
        for name, codes in (("structural", h), ("both", hz)):
            promise = np.nan_to_num(bin_means(codes[fit], gain[fit], 1))
            picked = np.argmax(promise[codes[test]], axis=1)
            value[name][test] = gain[test][np.arange(len(picked)), picked]
    known = whole[~np.isnan(whole)]
    return {
        "bins": len(known),
        "epsilon": np.abs(known).max() if len(known) else np.nan,
        "epsilon_split": np.mean(split) if split else np.nan,
        **{name: own_value.mean() for name, own_value in value.items()},
        **ends("advantage", mean_interval(value["both"] - value["structural"], resamples=resamples)),
    }
