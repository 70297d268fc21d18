"""The probe-action frontier (Theorem 5.8): accuracy and success as the budget sweeps from 0 to H."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.cells import find_regime, make_cell
from envprobe_core.experiments import Names, names, run_frame
from envprobe_core.protocols import parse_protocol
from envprobe_core.regimes import Regime
from envprobe_core.statistics import mean_intervals, paired_bootstrap
from envprobe_core.theory.forks import seeds_in

if TYPE_CHECKING:
    import pandas as pd

POINTS = 16


def budgets(regime: Regime, points: int = POINTS) -> list[int]:
    """Return budgets from 0 to the horizon, both and the regime's own included, evenly spaced but for it."""
    horizon = regime.horizon
    even = np.linspace(0, horizon, min(points, horizon + 1)).round().astype(int).tolist()
    return sorted({*even, regime.budget})


def load_frontier(
    worlds: Names, policies: Names, regime: str, protocols: Names, profile: str, seeds: str,
    points: int = POINTS,
) -> pd.DataFrame:  # fmt: skip
    """Run every policy at every budget; one row an episode (`experiments.COLUMNS`)."""
    cells, chosen = [], []
    for protocol in names(protocols):
        rules, own = parse_protocol(protocol), seeds_in(seeds, regime, protocol)
        for world in names(worlds):
            for policy in names(policies):
                for budget in budgets(find_regime(regime), points):
                    cells.append(make_cell(world, policy, regime, rules, profile, budget))
                    chosen.append(own)
    return run_frame(cells, chosen)


def frontier_frame(episodes: pd.DataFrame, resamples: int) -> pd.DataFrame:
    """Summarise each budget.

    Returns:
        One row a protocol, world, policy and budget: `accuracy success probes`, each with `_low _high`; the
        accuracy is the share right at the end (`accuracy_terminal`), which is what the theorem is about.
    """
    import pandas as pd

    rows = []
    keys = ["protocol", "world", "policy", "budget"]
    for key, part in episodes.groupby(keys, sort=False):
        columns = part[["accuracy_terminal", "success", "probes"]].to_numpy(dtype=np.float64)
        mean, low, high = mean_intervals(columns, resamples=resamples)
        row = dict(zip(keys, key, strict=True))
        for at, name in enumerate(("accuracy", "success", "probes")):
            row |= {name: mean[at], f"{name}_low": low[at], f"{name}_high": high[at]}
        rows.append(row)
    return pd.DataFrame(rows)


def paired_changes(episodes: pd.DataFrame, resamples: int) -> pd.DataFrame:
    """Compare the largest budget, and the regime's own, with none, on the same seeds.

    Returns:
        One row a protocol, world, policy and `budget` (own, largest): change of `accuracy` and of `success`
        against budget 0 with `_low _high`; `shape`: `trade-off` (accuracy up and success down, both intervals
        off 0), `both up`, `both down`, `accuracy down` or `success up` and the like, `flat`.
    """
    import pandas as pd

    rows = []
    for (protocol, world, policy), part in episodes.groupby(["protocol", "world", "policy"], sort=False):
        wide = part.pivot(index="seed", columns="budget", values=["accuracy_terminal", "success"]).astype(
            float
        )
        regime = find_regime(str(part["regime"].iloc[0]))
        for budget in (regime.budget, regime.horizon):
            row: dict[str, object] = {
                "protocol": protocol, "world": world, "policy": policy, "budget": budget,
            }  # fmt: skip
            signs = []
            for name, column in (("accuracy", "accuracy_terminal"), ("success", "success")):
                change = (wide[column, budget] - wide[column, 0]).to_numpy()
                result = paired_bootstrap(change, resamples=resamples)
                row |= {name: result.mean, f"{name}_low": result.low, f"{name}_high": result.high}
                signs.append((result.low > 0) - (result.high < 0))
            rows.append(row | {"shape": SHAPES[signs[0], signs[1]]})
    return pd.DataFrame(rows)


SHAPES = {
    (1, -1): "trade-off",
    (1, 0): "accuracy up",
    (1, 1): "both up",
    (0, -1): "success down",
    (0, 0): "no clear change",
    (0, 1): "success up",
    (-1, -1): "both down",
    (-1, 0): "accuracy down",
    (-1, 1): "accuracy down, success up",
}
"""Names of the signs of (accuracy, success), by their intervals."""
