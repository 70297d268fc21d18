"""The grids behind the sections: each `load_*` runs what a section needs and returns a frame.

Frames have one row an episode and the columns that `claims` and `verdicts` expect
(data/paper/README.md), unless the function says otherwise. Every grid is one call of the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from envprobe_core.cells import Cell, find_protocol, find_regime, make_cell, parse_seeds
from envprobe_core.engine.recording import Trajectory
from envprobe_core.policies import POLICIES, find_policy
from envprobe_core.protocols import Protocol
from envprobe_core.sweep import BATCH_SIZE, plan_tasks, run_cells, simulate
from envprobe_core.worlds import WORLDS

if TYPE_CHECKING:
    import pandas as pd

Names = str | Iterable[str]
Seeds = npt.NDArray[np.int64]

COLUMNS = (
    "world", "policy", "regime", "protocol", "profile", "budget", "threshold", "seed", "n_fields",
    "horizon", "steps", "accuracy", "accuracy_terminal", "accuracy_slot", "success", "probes", "useful",
    "collapse_onset", "actions", "valid_actions", "action_onset", "repeated_probes",
)  # fmt: skip
DEFAULT_SEEDS = "default"
PROTOCOLS = "paper observed released"
PAPER_POLICIES = ("no-probe", "random", "periodic", "self-uncertainty", "simple", "judge", "oracle")


def names(given: Names) -> tuple[str, ...]:
    """Split a text of names at blanks and commas, or take a sequence as it is.

    A protocol with switches turned (`paper:clock=stands,end=success`) has commas of its own: where a
    colon occurs, blanks alone separate.
    """
    if not isinstance(given, str):
        return tuple(given)
    return tuple(given.split() if ":" in given else given.replace(",", " ").split())


def find_protocols(given: Names) -> tuple[Protocol, ...]:
    """Return the protocols of a text or a sequence of names, switches included."""
    return tuple(find_protocol(name) for name in names(given))


def read_seeds(text: str) -> Seeds | None:
    """Read seeds: a range as in `0:220`, or `default` (None): those of the regime and protocol."""
    return None if text == DEFAULT_SEEDS else parse_seeds(text)


def first_seed(seeds: str, regime: str) -> int:
    """Return the first of the seeds of a text, or the regime's own first one."""
    chosen = read_seeds(seeds)
    return find_regime(regime).seeds[0] if chosen is None else int(chosen[0])


def load_grid(
    worlds: Names = tuple(WORLDS),
    policies: Names = tuple(POLICIES),
    regime: Names = "S2",
    protocols: Names = PROTOCOLS,
    profile: str = "typical",
    seeds: str = DEFAULT_SEEDS,
    budget: int | None = None,
    threshold: float | None = None,
) -> pd.DataFrame:
    """Run every world with every policy in every regime under every protocol.

    Args:
        worlds: names, as text (`"tooldag graphnav"`) or a sequence; so for the next three.
        policies: names of policies.
        regime: names of regimes.
        protocols: names of protocols, with or without switches turned.
        profile: name of the agent profile.
        seeds: `FIRST:PAST`, or `default` for each cell's own (`released` runs S2 on 42..261).
        budget: probes an episode may spend; by default the regime's.
        threshold: of the policies that have one; by default 1.5.

    Returns:
        One row an episode, columns `COLUMNS`; an onset that never comes is NaN.

    Raises:
        InputError: for an unknown name or a value that a cell refuses.
    """
    cells = [
        make_cell(
            world, policy, level, protocol, profile, budget,
            threshold if find_policy(policy).has_threshold else None,
        )
        for protocol in find_protocols(protocols)
        for level in names(regime)
        for world in names(worlds)
        for policy in names(policies)
    ]  # fmt: skip
    return run_frame(cells, read_seeds(seeds))


def run_frame(cells: Sequence[Cell], seeds: Seeds | Sequence[Seeds] | None = None) -> pd.DataFrame:
    """Run cells and return their episodes as a frame with the columns `COLUMNS`."""
    return episode_frame(cells, run_cells(cells, seeds))


def episode_frame(cells: Sequence[Cell], columns: Mapping[str, npt.NDArray[np.generic]]) -> pd.DataFrame:
    """Return scored episodes as a frame with the columns `COLUMNS`.

    Args:
        cells: the settings.
        columns: as `sweep.run_cells` gives them, [row] each; `cell` is a row's place in `cells`.
    """
    import pandas as pd

    which = columns["cell"]
    keys = {name: np.array([cell.key[name] for cell in cells], dtype=object) for name in cells[0].key}
    keys["budget"] = keys["budget"].astype(np.int64)
    keys["threshold"] = keys["threshold"].astype(np.float64)
    table = {name: column[which] for name, column in keys.items()} | dict(columns)
    return pd.DataFrame({name: table[name] for name in COLUMNS})


def record(
    cells: Sequence[Cell], seeds: Sequence[Seeds], *, reports: bool = False
) -> Iterator[tuple[Cell, Seeds, Trajectory]]:
    """Run cells and yield the recording of each cell's episodes, a block's worth at a time.

    Args:
        cells: the settings.
        seeds: those of each cell.
        reports: whether staleness and confidence are recorded too.
    """
    for task in plan_tasks(cells, seeds, BATCH_SIZE):
        recording, start = simulate(task, reports=reports), 0
        for piece in task.pieces:
            stop = start + len(piece.seeds)
            yield piece.cell, piece.seeds, recording.rows(slice(start, stop))
            start = stop
