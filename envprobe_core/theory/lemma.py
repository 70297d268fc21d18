"""Both sides of the targeted-repair bound (Lemma 5.3) where every subset was played."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.statistics import mean_interval
from envprobe_core.theory.assumption import AssumptionTest, Lattice
from envprobe_core.theory.gains import SCORES, least_ratio, rank_values
from envprobe_core.theory.pure import repair_bound
from envprobe_core.worlds.base import Floats

if TYPE_CHECKING:
    import pandas as pd

GREEDY = "greedy"


def halves_of(lattice: Lattice) -> tuple[Floats, Floats]:
    """Return G_T by set on the even and on the odd futures, [2**item] each."""
    means = [lattice.accuracy[half::2].mean(axis=0) for half in (0, 1)]
    return means[0] - means[0][0], means[1] - means[1][0]


def best_set_value(lattice: Lattice, size: int) -> float:
    """Return G_T(S*) of the best set of at most `size` fields, chosen on one half, valued on the other."""
    first, second = halves_of(lattice)
    allowed = np.bitwise_count(np.arange(len(first), dtype=np.uint64)) <= size
    values = [
        judge[int(np.argmax(np.where(allowed, chooser, -np.inf)))]
        for chooser, judge in ((first, second), (second, first))
    ]
    return float(np.mean(values))


def steps_of_order(lattice: Lattice, order: Sequence[int], fields: int, size: int) -> tuple[Floats, Floats]:
    """Return realized and best marginal gain of every greedy step of an order, [step] each.

    Args:
        lattice: the played subsets.
        order: fields of the type as the score ranks them.
        fields: n_T, how many there are (right ones gain 0).
        size: B_T.
    """
    first, second = halves_of(lattice)
    place = {int(field): bit for bit, field in enumerate(lattice.wrong)}
    mask, realized, best = 0, [], []
    for field in order[:size]:
        options = [mask | 1 << bit for bit in place.values() if not mask >> bit & 1]
        values = []
        for chooser, judge in ((first, second), (second, first)):
            top = max(options, key=lambda option, chooser=chooser: chooser[option], default=mask)
            values.append(judge[top] - judge[mask] if chooser[top] > chooser[mask] else 0.0)
        best.append(float(np.mean(values)))
        after = mask | 1 << place[field] if field in place else mask
        realized.append(float(lattice.gain[after] - lattice.gain[mask]))
        mask = after
    return np.array(realized), np.array(best)


def greedy_value(lattice: Lattice, size: int) -> float:
    """Return G_T of the set that greedy repair takes, chosen on one half, valued on the other."""
    first, second = halves_of(lattice)
    items, values = len(lattice.wrong), []
    for chooser, judge in ((first, second), (second, first)):
        mask = 0
        for _ in range(size):
            options = [mask | 1 << i for i in range(items) if not mask >> i & 1]
            top = max(options, key=lambda option, chooser=chooser: chooser[option], default=mask)
            if chooser[top] <= chooser[mask]:
                break
            mask = top
        values.append(judge[mask])
    return float(np.mean(values))


def lemma_frame(tests: Sequence[AssumptionTest], size: int, resamples: int) -> pd.DataFrame:
    """Put both sides of the bound beside each other for every score, and for greedy repair (gamma = 1).

    Returns:
        One row a world, type and score: `gamma` on the visited sets (cut to 0..1), `realized` E[G_T(S)] with
        `low high`, `best` E[G_T(S*)], `bound` (1 - exp(-gamma)) best, `holds` (the interval of the realized
        gain does not lie below the bound), `pasts`.
    """
    import pandas as pd

    rows = []
    for test in tests:
        if len(test.lattices) < 2:
            continue
        own = np.flatnonzero(test.setting.of_type(test.kind))
        best = float(np.mean([best_set_value(lattice, size) for lattice in test.lattices]))
        for score in (GREEDY, *SCORES):
            if score == GREEDY:
                gamma = 1.0
                realized = np.array([greedy_value(lattice, size) for lattice in test.lattices])
            else:
                values = rank_values(test.setting, test.past, score)[:, own]
                orders = own[np.argsort(-values, axis=1, kind="stable")]
                steps = [
                    steps_of_order(lattice, orders[lattice.row].tolist(), len(own), size)
                    for lattice in test.lattices
                ]
                gained = np.stack([step[0] for step in steps])
                estimate = least_ratio(gained, np.stack([step[1] for step in steps]), resamples).value
                gamma = float(np.clip(np.nan_to_num(estimate), 0.0, 1.0))
                realized = gained.sum(axis=1)
            interval = mean_interval(realized, resamples=resamples)
            bound = repair_bound(gamma, best)
            rows.append(
                {
                    "world": test.world, "kind": test.kind, "score": score, "gamma": gamma,
                    "realized": interval.value, "low": interval.low, "high": interval.high,
                    "best": best, "bound": bound, "holds": bool(interval.high >= bound),
                    "pasts": len(test.lattices),
                }
            )  # fmt: skip
    return pd.DataFrame(rows)
