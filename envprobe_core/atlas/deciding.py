"""Which behaviour decides a claim: first-order sensitivity of its support, from the sample itself.

For one behaviour the sample is cut into slices of equal size along it; the share of the variance of the
support that lies between the slices is the behaviour's first-order sensitivity index (Plischke, Borgonovo
and Smith, 2013, "Global sensitivity measures from given data"), here corrected for the slices as the adjusted
correlation ratio is. It sees rises, falls and humps alike, but no effect that two behaviours have only
together: that remains unexplained. Resampling the agents says how sure the first place is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from envprobe_core.atlas.design import values_of
from envprobe_core.atlas.running import Atlas
from envprobe_core.statistics import resample_counts
from envprobe_core.worlds.base import Floats

SLICES = 8
LEAST_PER_SLICE = 8
RESAMPLES = 200
DECIDES = 0.10  # a behaviour that explains less of the variance does not decide
TESTED = 0.5  # a claim needs a support for so many of the agents


@dataclass(frozen=True)
class Sensitivity:
    """How much each behaviour alone explains of each claim's support."""

    share: Floats  # [protocol, claim, axis], of the variance, from about 0 to 1; NaN: support never varies
    low: Floats  # [protocol, claim, axis], ends of the 95% interval over resampled agents
    high: Floats  # likewise
    first: npt.NDArray[np.int64]  # [protocol, claim], the axis that explains most, -1: support never varies
    sure: Floats  # [protocol, claim], share of resamples in which the same axis comes first
    rank: Floats  # [protocol, claim, axis], Spearman's correlation of support with the behaviour


def slices(values: Floats, count: int = SLICES) -> npt.NDArray[np.int64]:
    """Number the slice of each agent along one behaviour, [profile].

    Values that are few enough are slices themselves; else slices hold equally many agents.
    """
    distinct, number = np.unique(values, return_inverse=True)
    if len(distinct) <= count:
        return number
    place = np.empty(len(values), dtype=np.int64)
    place[np.argsort(values, kind="stable")] = np.arange(len(values))
    return place * count // len(values)


def between(member: Floats, size: npt.NDArray[np.int64], known: Floats, support: Floats) -> Floats:
    """Return the adjusted share of variance between slices, [axis, column].

    Args:
        member: [slice, profile], how often an agent counts in each slice of each axis.
        size: [axis], slices of each axis, in the order of `member`'s rows.
        known: [profile, column], 1 where the support is known.
        support: [profile, column], 0 where it is not.
    """
    count, total = member @ known, member @ support
    square = member[: size[0]].sum(axis=0) @ (support * support)
    n, whole = count[: size[0]].sum(axis=0), total[: size[0]].sum(axis=0)
    spread = square - whole * whole / np.maximum(n, 1)
    explained = np.divide(total * total, count, out=np.zeros_like(total), where=count > 0)
    starts = np.concatenate([[0], np.cumsum(size)[:-1]])
    within = np.add.reduceat(explained, starts, axis=0) - whole * whole / np.maximum(n, 1)
    filled = np.add.reduceat(count > 0, starts, axis=0)
    varies = (spread > 1e-9 * np.maximum(square, 1e-9)) & (n > TESTED * member[: size[0]].sum())
    ratio = np.where(varies, within / np.where(varies, spread, 1.0), np.nan)
    return 1 - (1 - ratio) * (n - 1) / np.maximum(n - filled, 1)


def sensitivity(atlas: Atlas, resamples: int = RESAMPLES) -> Sensitivity:
    """Measure every behaviour's share in every claim under every protocol."""
    values = np.array([values_of(profile) for profile in atlas.profiles])
    agents, (protocols, _, claims) = len(values), atlas.support.shape
    count = int(np.clip(agents // LEAST_PER_SLICE, 2, SLICES))
    cut = [slices(column, count) for column in values.T]
    size = np.array([own.max() + 1 for own in cut])
    member = np.concatenate([np.eye(k)[own].T for own, k in zip(cut, size, strict=True)])

    support = atlas.support.transpose(1, 0, 2).reshape(agents, -1)
    known = (~np.isnan(support)).astype(np.float64)
    held = np.where(known > 0, support, 0.0)
    centred = np.where(known > 0, held - held.sum(axis=0) / np.maximum(known.sum(axis=0), 1), 0.0)
    share = between(member, size, known, centred)
    weights = resample_counts(agents, resamples)
    draws = np.array([between(member * weight, size, known, centred) for weight in weights])
    filled = np.where(np.isnan(share), -np.inf, share)
    first = np.where(np.isfinite(filled).any(axis=0), np.argmax(filled, axis=0), -1)
    leads = np.argmax(np.where(np.isnan(draws), -np.inf, draws), axis=1) == first
    low, high = np.quantile(np.nan_to_num(draws), [0.025, 0.975], axis=0)
    ranks = rankdata(values, axis=0).T
    rank = [_spearman(ranks, column, own > 0) for column, own in zip(held.T, known.T, strict=True)]
    each, all_axes = (protocols, claims), (protocols, claims, -1)
    return Sensitivity(
        *(table.T.reshape(all_axes) for table in (share, low, high)),
        first.reshape(each), leads.mean(axis=0).reshape(each), np.array(rank).reshape(all_axes),
    )  # fmt: skip


def _spearman(ranks: Floats, support: Floats, known: npt.NDArray[np.bool_]) -> Floats:
    """Correlate ranks of each behaviour with ranks of one support, where it is known, [axis].

    Behaviours [axis, profile] keep their ranks among all agents; a support that does not vary gives NaN.
    """
    if known.sum() < 2 or np.ptp(support[known]) == 0:
        return np.full(len(ranks), np.nan)
    own, theirs = rankdata(support[known]), ranks[:, known]
    theirs, own = theirs - theirs.mean(axis=1, keepdims=True), own - own.mean()
    scale = np.sqrt((theirs**2).sum(axis=1) * (own**2).sum())
    return np.divide(theirs @ own, scale, out=np.zeros(len(theirs)), where=scale > 0)
