"""Episodes with the timing of their probes: when a policy spends its budget, and on what.

A gain in accuracy can come from what a probe answers or from when the step is spent. The columns added here
tell the two apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.cells import Cell, make_cell
from envprobe_core.engine.recording import Columns, Trajectory
from envprobe_core.experiments import (
    COLUMNS,
    DEFAULT_SEEDS,
    PROTOCOLS,
    Names,
    find_protocols,
    names,
    read_seeds,
)
from envprobe_core.sweep import Seeds, Task, plan_tasks, score_task, seeds_of_cells, simulate

if TYPE_CHECKING:
    import pandas as pd

UNKNOWN = -1
TIMING = ("probe_step", "early_probes", "unknown_probes", "wrong_probes")


def load_timed(
    worlds: Names,
    policies: Names,
    regime: Names = "S2",
    protocols: Names = PROTOCOLS,
    profile: str = "typical",
    seeds: str = DEFAULT_SEEDS,
) -> pd.DataFrame:
    """Run every world with every policy in every regime under every protocol, probes timed.

    Args:
        worlds: names, as all of these as in `experiments.load_grid`.
        policies: names.
        regime: one or several.
        protocols: names.
        profile: name of the agent profile.
        seeds: `FIRST:PAST`, or `default`.

    Returns:
        One row an episode: the columns of `load_grid` and those of `probe_timing`.

    Raises:
        InputError: for an unknown name or a value that a cell refuses.
    """
    cells = [
        make_cell(world, policy, level, protocol, profile)
        for protocol in find_protocols(protocols)
        for level in names(regime)
        for world in names(worlds)
        for policy in names(policies)
    ]
    return run_timed(cells, read_seeds(seeds))


def run_timed(cells: Sequence[Cell], seeds: Seeds | Sequence[Seeds] | None = None) -> pd.DataFrame:
    """Run cells and return their episodes with probe timing, in the order of cells and of seeds.

    Args:
        cells: the settings.
        seeds: as in `sweep.run_cells`.
    """
    import pandas as pd

    parts = [_run(task) for task in plan_tasks(cells, seeds_of_cells(cells, seeds))]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    keys = {name: np.array([cell.key[name] for cell in cells], dtype=object) for name in cells[0].key}
    keys["budget"] = keys["budget"].astype(np.int64)
    keys["threshold"] = keys["threshold"].astype(np.float64)
    table = {name: column[columns["cell"]] for name, column in keys.items()} | columns
    order = np.lexsort((columns["seed"], columns["cell"]))
    return pd.DataFrame({name: table[name][order] for name in (*COLUMNS, *TIMING)})


def _run(task: Task) -> Columns:
    recording = simulate(task)
    budget = np.concatenate([np.full(len(p.seeds), p.cell.budget_in_force) for p in task.pieces])
    return score_task(task, recording) | probe_timing(recording, budget)


def probe_timing(recording: Trajectory, budget: np.ndarray) -> Columns:
    """Measure when each episode probed and what it held about the probed fields, [row] each.

    Args:
        recording: the episodes.
        budget: [row], probes allowed.

    Returns:
        `probe_step`: mean step of the probes, NaN where there was none. `early_probes`: probes among the
        first B steps. `unknown_probes`, `wrong_probes`: probes of a field whose value was unknown, or known
        and wrong; together they are the useful ones.
    """
    fired = recording.probe >= 0
    steps = np.arange(fired.shape[1])
    count = fired.sum(axis=1)
    field = np.maximum(recording.probe, 0)[..., None].astype(np.int64)
    held = np.take_along_axis(recording.belief[:, :-1], field, axis=2)[..., 0]
    unknown = (recording.useful & (held == UNKNOWN)).sum(axis=1)
    return {
        "probe_step": np.divide(
            (fired * steps).sum(axis=1), count, out=np.full(len(count), np.nan), where=count > 0
        ),
        "early_probes": (fired & (steps[None, :] < budget[:, None])).sum(axis=1),
        "unknown_probes": unknown,
        "wrong_probes": recording.useful.sum(axis=1) - unknown,
    }
