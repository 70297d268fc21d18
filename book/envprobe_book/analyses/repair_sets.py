"""What sets of repairs gain, and how near each score comes to the best next repair (Section 5.1; ours).

A set is a bit mask over the wrong fields of one type in one past, since repairing a right field changes
nothing. Its value is A_H^T, measured on forks (`repairs`) in two halves of the futures. Where the best of
several noisy numbers is taken, one half chooses and the other values, both ways round, so that luck does not
flatter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from envprobe_book.analyses import ends, repairs
from envprobe_core.statistics import Interval, bootstrap_means, mean_interval, percentile_interval, wilson
from envprobe_core.worlds.base import Floats, Ints, Mask

MOST_FORKS, FEWEST_PASTS = 60_000, 8  # a type: where nearly everything is wrong a past asks for thousands
FRESH, FRESH_FUTURES = 50_000, 4_000  # the first future that serves confirmation alone, and how many do
TOLERANCE, SMALLEST_GAIN = 1e-12, 1e-9
POINTS = 100.0

Asked = tuple[int, Sequence[int] | Ints, Sequence[int]]
"""Sets to be played: a row of the past, the wrong fields, and masks over these."""
Played = tuple[int, Ints, Floats]
"""Every subset of one past: its row, the wrong fields, and A_H^T of each subset, [future, 2**item]."""

# sets of one past


class Repairs:
    """What the sets of wrong fields of one past are worth once repaired: A_H^T by mask, [half].

    A mask has the bits of a set's fields in `bit`; `value` is an array [2**item, half], or the masks that
    were played.
    """

    def __init__(self, wrong: Iterable[int], value: Floats | Mapping[int, Floats]) -> None:
        self.bit, self.value = {int(field): bit for bit, field in enumerate(wrong)}, value

    def mask(self, chosen: Iterable[int]) -> int:
        """The set of those chosen fields that are wrong; to repair a right one changes nothing.

        >>> Repairs([3, 5], {}).mask([5, 4])
        2
        """
        return sum(1 << self.bit[field] for field in chosen if field in self.bit)

    def following(self, mask: int) -> list[int]:
        """The sets with one wrong field more.

        >>> Repairs([3, 5, 8], {}).following(0b010)
        [3, 6]
        """
        return [mask | 1 << bit for bit in self.bit.values() if not mask >> bit & 1]

    def gains(self, mask: int) -> Floats:
        """The gain of each field that is left when added to a set, [field, half]."""
        gained = [self.value[larger] - self.value[mask] for larger in self.following(mask)]
        return np.array(gained).reshape(-1, 2)

    def steps(self, order: Sequence[int], depth: int) -> tuple[list[float], list[float]]:
        """Realized and best marginal gain of each step of a score that ranks fields so, [step] each."""
        masks = [self.mask(order[:step]) for step in range(depth + 1)]
        realized = [float((self.value[after] - self.value[mask]).mean()) for mask, after in pairwise(masks)]
        return realized, [best_of_halves(self.gains(mask)) for mask in masks[:-1]]

    def greedy(self, size: int) -> float:
        """G_T of the set, of at most that many fields, that greedy repair takes."""
        values = []
        for half in (0, 1):
            mask = 0
            for _ in range(size):
                options = [mask, *self.following(mask)]
                mask = max(options, key=lambda own, half=half: self.value[own][half])
            values.append(self.value[mask][1 - half] - self.value[0][1 - half])
        return float(np.mean(values))


def best_of_halves(gains: Floats) -> float:
    """Value on one half of what is best on the other, [option, half]; nothing at all gives 0.

    >>> best_of_halves(np.array([[1.0, 2.0], [3.0, 0.0]]))  # 3 chooses 0, and 2 chooses 1
    0.5
    """
    with_none = np.concatenate([np.zeros((1, 2)), gains])
    return float(np.mean([with_none[np.argmax(with_none[:, half]), 1 - half] for half in (0, 1)]))


def in_halves(accuracy: Floats) -> Floats:
    """Means of [set, future] over the two halves of the futures, [set, half].

    >>> in_halves(np.array([[1.0, 2.0, 3.0, 4.0]]))
    array([[2., 3.]])
    """
    return np.stack([accuracy[:, half::2].mean(axis=1) for half in (0, 1)], axis=1)


def subsets(items: int) -> Mask:
    """Every set of some items as a row, [2**item, item].

    >>> subsets(2).astype(int).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    return (np.arange(1 << items)[:, None] >> np.arange(items)) & 1 == 1


# played on forks


def orders_of(fork: repairs.Setting, past: repairs.Past, kind: str) -> dict[str, Ints]:
    """The fields of a type as each score would repair them, [row, place]."""
    own = np.flatnonzero(fork.of_type(kind))
    ranks = {score: repairs.rank_values(fork, past, score)[:, own] for score in repairs.SCORES}
    return {score: own[np.argsort(-values, axis=1, kind="stable")] for score, values in ranks.items()}


def play_sets(
    fork: repairs.Setting, past: repairs.Past, kind: str, asked: Sequence[Asked], futures: int
) -> list[Floats]:
    """A_H^T of the sets of repairs that are asked for, [set, future] each."""
    if not asked:
        return []
    last = np.cumsum([len(masks) for *_, masks in asked])
    repaired = np.zeros((last[-1], fork.world.fields), dtype=bool)
    for own, (_, fields, masks) in zip(np.split(repaired, last[:-1]), asked, strict=True):
        for bit, field in enumerate(fields):
            own[:, field] = np.array(masks) >> bit & 1
    rows = np.repeat([row for row, *_ in asked], [len(masks) for *_, masks in asked])
    by_type, _ = repairs.accuracies(fork, past, rows, repaired, futures)
    return np.split(by_type[kind], last[:-1])


def play_subsets(
    fork: repairs.Setting, past: repairs.Past, kind: str, rows: Ints, futures: int
) -> list[Played]:
    """Every subset of the wrong fields of a type, played for some rows of the past."""
    wrong = [np.flatnonzero(past.wrong[row] & fork.of_type(kind)) for row in rows]
    asked = [(int(row), own, range(1 << len(own))) for row, own in zip(rows, wrong, strict=True)]
    played = play_sets(fork, past, kind, asked, futures)
    return [(row, own, found.T) for (row, own, _), found in zip(asked, played, strict=True)]


def play_quality(
    fork: repairs.Setting, kind: str, seeds: Ints, futures: int, depth: int = 3
) -> tuple[dict[str, Floats], dict[str, Floats], dict[str, Floats]]:
    """What every greedy step of every score gains, on the seeds' pasts.

    Pasts are taken in order until `MOST_FORKS` futures are asked for.

    Returns:
        By score: the mean gain of the field that it takes at each step, and that of the best field left,
        [past, step] each; and G_T of the set taken in all steps, [past].
    """
    past, own = repairs.look(fork, seeds), np.flatnonzero(fork.of_type(kind))
    depth, orders = min(depth, len(own)), orders_of(fork, past, kind)
    asked, played = [], 0
    for row in range(len(past.seeds)):
        sets, masks = Repairs(own[past.wrong[row, own]], {}), {}
        for order in orders.values():
            visited = [sets.mask(order[row, :step].tolist()) for step in range(depth + 1)]
            masks |= dict.fromkeys(
                [*visited, *(one for mask in visited[:-1] for one in sets.following(mask))]
            )
        played += len(masks) * futures
        if played > MOST_FORKS and len(asked) >= FEWEST_PASTS:
            break
        asked.append((row, sets.bit, list(masks)))
    realized, best = ({score: np.zeros((len(asked), depth)) for score in orders} for _ in range(2))
    total = {score: np.zeros(len(asked)) for score in orders}
    found = play_sets(fork, past, kind, asked, futures)
    for (row, wrong, masks), accuracy in zip(asked, found, strict=True):
        sets = Repairs(wrong, dict(zip(masks, in_halves(accuracy), strict=True)))
        for score, order in orders.items():
            chosen = order[row].tolist()
            realized[score][row], best[score][row] = sets.steps(chosen, depth)
            total[score][row] = (sets.value[sets.mask(chosen[:depth])] - sets.value[0]).mean()
            if score == "random":  # the mean of all fields left, the right ones gain 0
                left = (sets.gains(sets.mask(chosen[:step])).mean(axis=1).sum() for step in range(depth))
                realized[score][row] = [gained / (len(own) - step) for step, gained in enumerate(left)]
    return realized, best, total


def least_ratio(top: Floats, bottom: Floats, resamples: int) -> Interval:
    """The smallest ratio of sums, over the columns of [past, column], resampled by past.

    NaN where some sum below is not positive, ends NaN where it is not in more than 1% of the resamples.

    >>> least_ratio(np.array([[1.0], [1.0]]), np.array([[2.0], [2.0]]), resamples=100)
    Interval(value=0.5, low=0.5, high=0.5, n=2)
    """
    count, columns = top.shape
    nothing = Interval(np.nan, np.nan, np.nan, count)
    if count < 2 or (bottom.mean(axis=0) <= SMALLEST_GAIN).any():
        return nothing
    value = float((top.mean(axis=0) / bottom.mean(axis=0)).min())
    means = bootstrap_means(np.concatenate([top, bottom], axis=1), resamples=resamples)
    good = (means[:, columns:] > SMALLEST_GAIN).all(axis=1)
    if good.mean() < 0.99:
        return nothing._replace(value=value)
    low, high = percentile_interval((means[good, :columns] / means[good, columns:]).min(axis=1))
    return Interval(value, float(low), float(high), count)


# whether sets are monotone and submodular


def differences(values: Floats, name: str) -> tuple[tuple[Ints, Ints, Ints], Floats]:
    """S, R and i of all differences that should not be negative, and their values, [..., place].

    Args:
        values: [..., 2**item] of sets, entry `mask` of the set with the bits of `mask`.
        name: `monotone`, Delta(i | S) >= 0; or `submodular`, Delta(i | S) >= Delta(i | R) with R = S + j: one
            member more suffices.

    >>> differences(np.array([0.0, 1.0, 1.0, 1.5]), "submodular")[1]
    array([0.5])
    """
    out = ~subsets(values.shape[-1].bit_length() - 1)
    if name == "monotone":
        sets, item = np.nonzero(out)
        return (sets, sets, item), values[..., sets | 1 << item] - values[..., sets]
    sets, other, item = np.nonzero(np.triu(out[:, :, None] & out[:, None, :], 1))
    larger = sets | 1 << other
    gain = values[..., sets | 1 << item] - values[..., sets]
    return (sets, larger, item), gain - (values[..., larger | 1 << item] - values[..., larger])


def z_scores(values: Floats) -> Floats:
    """The mean over its standard error by column, [column]; 0 where nothing varies.

    >>> z_scores(np.array([[1.0, 2.0], [3.0, 2.0]]))
    array([2., 0.])
    """
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return np.divide(values.mean(axis=0), error, out=np.zeros(values.shape[1]), where=error > TOLERANCE)


def try_again(
    fork: repairs.Setting,
    kind: str,
    past: repairs.Past,
    seen: int,
    wrong: Ints,
    smaller: int,
    larger: int,
    item: int,
) -> dict[str, Any]:
    """One difference measured again, in points, on futures that nothing was chosen on.

    Args:
        fork: what all forks share.
        kind: the belief type whose accuracy counts.
        past: the pasts.
        seen: the row among them.
        wrong: the wrong fields of the row, over which the sets are masks.
        smaller: the set S.
        larger: the set R; the same one where monotony is tried.
        item: the place in `wrong` of the field that is added to both.

    Returns:
        The seed, the sets and the field by name, `value` with its normal interval, whether it `stands` (the
        whole interval is negative), and how many valid actions more the larger set takes with the field.
    """
    fields = np.array(fork.world.field_names, dtype=object)[wrong]
    every = subsets(len(fields))
    repaired = np.zeros((4, fork.world.fields), dtype=bool)
    for corner, mask in enumerate([smaller, smaller | 1 << item, larger, larger | 1 << item]):
        repaired[corner, wrong[every[mask]]] = True
    row = np.full(4, seen)
    by_type, actions = repairs.accuracies(fork, past, row, repaired, FRESH_FUTURES, FRESH)
    a = by_type[kind]
    values = a[1] - a[0] - (0 if smaller == larger else a[3] - a[2])
    error = values.std(ddof=1) / np.sqrt(FRESH_FUTURES)
    mean, half = POINTS * values.mean(), POINTS * NormalDist().inv_cdf(0.975) * error
    return {
        "seed": int(past.seeds[seen]),
        "smaller": ", ".join(fields[every[smaller]]) or "∅",
        "added": ", ".join(fields[every[larger & ~smaller]]) or None,
        "item": fields[item],
        "stands": "yes" if mean + half < 0 else "no",
        "actions": (actions[3] - actions[2]).mean(),  # further valid ones if the item is repaired too
        **ends("value", (mean, mean - half, mean + half)),
    }


def check_property(
    fork: repairs.Setting, kind: str, past: repairs.Past, played: Sequence[Played], name: str
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """What all differences of a property say in pasts whose subsets were all played.

    Args:
        fork: what all forks share.
        kind: the belief type whose accuracy counts.
        past: the pasts.
        played: those of them whose subsets were played.
        name: of the property, as `differences` takes it.

    Returns:
        How many `pasts` and differences were `compared`, how many are `negative`, and `clear`ly so at a level
        adjusted for all of them, and the `share` of pasts with a clear one in percent, with Wilson's
        interval; and the clearest one as it was `found`, tried again (`try_again`), None if none is negative.
    """
    parts = [differences(accuracy, name) for *_, accuracy in played]
    scores = [z_scores(values) for _, values in parts]
    compared = sum(values.shape[1] for _, values in parts)
    cut = -NormalDist().inv_cdf(1 - 0.025 / max(1, compared))
    failing = sum(bool((z < cut).any()) for z in scores)
    share = wilson(failing, len(parts))[:3] if parts else (np.nan,) * 3
    counts = {
        "pasts": len(parts),
        "compared": compared,
        "negative": sum(int((values.mean(axis=0) < -TOLERANCE).sum()) for _, values in parts),
        "clear": sum(int((z < cut).sum()) for z in scores),
    }
    counts |= ends("share", [POINTS * part for part in share])
    lowest = [z.min(initial=0.0) for z in scores]
    if not lowest or min(lowest) >= 0:
        return counts, None
    at = int(np.argmin(lowest))
    where = int(np.argmin(scores[at]))
    sets, values = parts[at]
    again = try_again(fork, kind, past, *played[at][:2], *(int(column[where]) for column in sets))
    return counts, again | {"found": POINTS * values[:, where].mean()}


# the bound, where every subset was played


def choose_by_every_score(
    fork: repairs.Setting, kind: str, past: repairs.Past, played: Sequence[Played], size: int, resamples: int
) -> pd.DataFrame:
    """What greedy repair and every score gain with some fields, beside the best set of so many, in points.

    Args:
        fork: what all forks share.
        kind: the belief type whose accuracy counts.
        past: the pasts.
        played: two or more of them whose subsets were played.
        size: how many fields are chosen.
        resamples: of the intervals, and of gamma.

    Returns:
        A row a score, `greedy` first: its marginal quality `gamma` within 0 and 1, the gain `realized` with
        its interval, and the `best` set's gain.
    """
    orders = orders_of(fork, past, kind)
    sets = [Repairs(wrong, in_halves(accuracy.T)) for _, wrong, accuracy in played]
    allowed = [subsets(len(own.bit)).sum(axis=1) <= size for own in sets]
    most = [
        best_of_halves((own.value - own.value[0])[small]) for own, small in zip(sets, allowed, strict=True)
    ]
    rows = []
    for score in ("greedy", *repairs.SCORES):
        gamma, realized = 1.0, np.array([own.greedy(size) for own in sets])
        if score != "greedy":
            steps = [
                own.steps(orders[score][row].tolist(), size)
                for own, (row, *_) in zip(sets, played, strict=True)
            ]
            gained, best = (np.stack(column) for column in zip(*steps, strict=True))
            least = least_ratio(gained, best, resamples).value
            gamma, realized = float(np.clip(np.nan_to_num(least), 0.0, 1.0)), gained.sum(axis=1)
        interval = ends("realized", mean_interval(realized, resamples=resamples))
        row = {"score": score, "gamma": gamma, "best": POINTS * np.mean(most)}
        rows.append(row | {name: POINTS * end for name, end in interval.items()})
    return pd.DataFrame(rows)
