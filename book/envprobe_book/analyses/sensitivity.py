"""Which habit of an agent decides a claim: first-order sensitivity indices over the agents of an atlas."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from envprobe_book.analyses.atlas import BOX, Atlas, Axis, values_of
from envprobe_core.statistics import bootstrap_means
from envprobe_core.worlds.base import Floats, Ints

DECIDES = 0.1
"""A habit that explains a smaller share of the variance of a claim's support does not decide it."""
MOST_SLICES, FEWEST_AGENTS = 8, 8  # of a sample, and in a slice
RESAMPLES = 200  # of the agents
NOBODY = -1  # the axis of a support that never varies, or that too few agents have


def slices_of(values: npt.ArrayLike, count: int) -> Ints:
    """The number of each agent's slice, [agent]: its value, if these are few; else slices of equal size.

    Args:
        values: of a habit, [agent].
        count: slices at most.

    >>> slices_of([0.3, 0.1, 0.2, 0.4], 2).tolist()
    [1, 0, 0, 1]
    >>> slices_of([60, 80, 60, 60], 2).tolist()
    [0, 1, 0, 0]
    """
    from scipy.stats import rankdata

    given = np.asarray(values)
    distinct, number = np.unique(given, return_inverse=True)
    if len(distinct) <= count:
        return number
    return (rankdata(given, "ordinal") - 1).astype(int) * count // len(given)


def parts_of(cut: Ints, support: Floats) -> Floats:
    """What a share is made of by sums over agents, [agent, column]; zeros where the support is NaN.

    Args:
        cut: each agent's slice, [agent].
        support: [agent], NaN where a claim cannot be tested.

    Returns:
        A column a slice for who is there, one for how far each of them lies from the mean, and its square.

    >>> parts_of(np.array([0, 1]), np.array([2.0, 4.0])).sum(axis=0).tolist()
    [1.0, 1.0, -1.0, 1.0, 2.0]
    """
    known = ~np.isnan(support)
    held = np.where(known, support - np.nanmean(support), 0.0)[:, None]
    member = np.eye(cut.max() + 1)[cut]
    return np.concatenate([member * known[:, None], member * held, held**2], axis=1)


def explained_share(sums: Floats) -> Floats:
    """The share of a support's variance that lies between slices, [resample], adjusted for their number.

    Args:
        sums: of `parts_of`, [resample, column].

    >>> cut, support = np.array([0, 0, 1, 1]), np.array([2.0, 2.0, 5.0, 5.0])
    >>> explained_share(parts_of(cut, support).sum(axis=0, keepdims=True)).tolist()
    [1.0]
    """
    slices = sums.shape[1] // 2
    size, total, squares = sums[:, :slices], sums[:, slices:-1], sums[:, -1]
    n, whole = size.sum(axis=1), total.sum(axis=1)
    spread = squares - whole**2 / n
    between = (total**2 / np.maximum(size, 1)).sum(axis=1) - whole**2 / n
    return 1 - (1 - between / spread) * (n - 1) / (n - (size > 0).sum(axis=1))


def find_deciders(atlas: Atlas, claims: Sequence[str], box: Sequence[Axis] = BOX) -> pd.DataFrame:
    """The habit that explains most of each claim's support by itself, a row a claim and protocol.

    Args:
        atlas: drawn from `box`.
        claims: ids of claims of the atlas.

    Returns:
        `claim statement unit protocol`, `support` (of each agent, [agent]), `axis` (its place in the box, or
        `NOBODY`) and `behaviour` (its name). Where there is one: `explains`, the share of the variance, with
        its 95% interval `low high` over resampled agents; `sure`, the share of resamples in which it comes
        first; `rank`, Spearman's correlation of the support with it.
    """
    from scipy.stats import rankdata

    behaviours = np.array([values_of(agent, box) for agent in atlas.profiles])  # [agent, axis]
    count = int(np.clip(len(behaviours) // FEWEST_AGENTS, 2, MOST_SLICES))
    cuts = [slices_of(column, count) for column in behaviours.T]
    rows: list[dict[str, Any]] = []
    for name in claims:
        at, claim = next((at, one) for at, one in enumerate(atlas.claims) if one.id == name)
        for place, protocol in enumerate(atlas.protocols):
            support = atlas.support[place, :, at]
            known = ~np.isnan(support)
            about = {"claim": name, "statement": claim.statement, "unit": claim.unit, "protocol": protocol}
            nothing = {"axis": NOBODY, "behaviour": "never varies, or not testable"}
            rows.append(about | {"support": support} | nothing)
            if known.sum() <= 0.5 * len(support) or np.ptp(support[known]) == 0:
                continue
            parts = [parts_of(cut, support) for cut in cuts]
            shares = [explained_share(own.sum(axis=0, keepdims=True))[0] for own in parts]
            sums = len(support) * bootstrap_means(np.concatenate(parts, axis=1), resamples=RESAMPLES)
            ends = np.cumsum([own.shape[1] for own in parts])[:-1]
            resampled = np.array([explained_share(own) for own in np.split(sums, ends, axis=1)])
            axis = int(np.argmax(shares))
            ranks = rankdata(behaviours[:, axis])[known], rankdata(support[known])
            low, high = np.quantile(resampled[axis], [0.025, 0.975])
            rows[-1] |= {"axis": axis, "behaviour": box[axis].name, "explains": shares[axis]}
            rows[-1] |= {"sure": (resampled.argmax(axis=0) == axis).mean(), "low": low, "high": high}
            rows[-1] |= {"rank": np.corrcoef(*ranks)[0, 1]}
    return pd.DataFrame(rows)
