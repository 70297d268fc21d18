"""Uncertainty-only miscoverage (Proposition 5.5): which conditional the recall ceiling needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from envprobe_core.cells import make_cell
from envprobe_core.engine.recording import Trajectory
from envprobe_core.experiments import Names, names
from envprobe_core.policies.rules import SELF_UNCERTAINTY_ALPHA
from envprobe_core.protocols import parse_protocol
from envprobe_core.statistics import clustered_rate
from envprobe_core.sweep import Piece, Task, simulate
from envprobe_core.theory.forks import seeds_in

if TYPE_CHECKING:
    import pandas as pd

Ints = npt.NDArray[np.int64]
POLICY = "self-uncertainty"


def counts(recording: Trajectory, alpha: int = SELF_UNCERTAINTY_ALPHA) -> dict[str, Ints]:
    """Count what the proposition is about over the executed steps, [row] each.

    Returns:
        `wrong` beliefs, `confident` ones (at least alpha percent), `confident_wrong`, `beliefs`; `reached`:
        wrong beliefs that the policy probed; `steps_wrong`: steps with a wrong belief; `steps_open`: such
        steps on which some wrong belief is held below alpha.
    """
    steps = recording.probe.shape[1]
    lived = np.arange(steps)[None, :] < recording.steps[:, None]
    wrong = (recording.belief[:, :steps] != recording.gold[:, :steps]) & lived[:, :, None]
    confident = (recording.confidence[:, :steps] >= alpha) & lived[:, :, None]
    any_wrong = wrong.any(axis=2)
    return {
        "beliefs": lived.sum(axis=1) * wrong.shape[2],
        "wrong": wrong.sum(axis=(1, 2)),
        "confident": confident.sum(axis=(1, 2)),
        "confident_wrong": (wrong & confident).sum(axis=(1, 2)),
        "reached": (recording.useful & lived).sum(axis=1),
        "steps_wrong": any_wrong.sum(axis=1),
        "steps_open": (wrong & ~confident).any(axis=2).sum(axis=1),
    }


def load_miscoverage(
    worlds: Names, regime: str, protocols: Names, profile: str, seeds: str, resamples: int
) -> pd.DataFrame:
    """Measure both conditionals and the recall of Self-Uncertainty.

    Returns:
        One row a protocol and world: `canonical` Pr(wrong | confident), `needed` Pr(confident | wrong), each
        with `_low _high` (clustered by episode), `ceiling` = 1 - needed, `misread` = 1 - canonical, the
        pooled `eligible` = |E minus C| / |E|, counted directly, `recall` = wrong beliefs really probed, as a
        share of wrong beliefs and steps, `steps_open`.
    """
    import pandas as pd

    rows = []
    for protocol in names(protocols):
        chosen = seeds_in(seeds, regime, protocol)
        for world in names(worlds):
            cell = make_cell(world, POLICY, regime, parse_protocol(protocol), profile)
            total = counts(simulate(Task((Piece(0, cell, chosen),)), reports=True))
            row: dict[str, object] = {"protocol": protocol, "world": world}
            for name, bottom in (("canonical", "confident"), ("needed", "wrong")):
                if total[bottom].sum() == 0:
                    row |= {name: np.nan, f"{name}_low": np.nan, f"{name}_high": np.nan}
                    continue
                rate = clustered_rate(total["confident_wrong"], total[bottom], resamples=resamples)
                row |= {name: rate.mean, f"{name}_low": rate.low, f"{name}_high": rate.high}
            errors = total["wrong"].sum()
            sums = {name: int(value.sum()) for name, value in total.items()}
            row["eligible"] = (sums["wrong"] - sums["confident_wrong"]) / errors if errors else np.nan
            row["ceiling"] = 1.0 - row["needed"]  # type: ignore[operator]
            row["misread"] = 1.0 - row["canonical"]  # type: ignore[operator]
            row["recall"] = sums["reached"] / errors if errors else np.nan
            row["steps_open"] = sums["steps_open"] / sums["steps_wrong"] if sums["steps_wrong"] else np.nan
            rows.append(row)
    return pd.DataFrame(rows)
