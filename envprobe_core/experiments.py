"""The grids behind the sections: each `load_*` runs what a section needs and returns a frame.

Frames have one row an episode and the columns that `claims` and `verdicts` expect
(data/paper/README.md), unless the function says otherwise. Every grid is one call of the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from envprobe_core import environments
from envprobe_core.cells import Cell, find_regime, make_cell, parse_seeds
from envprobe_core.engine.recording import Trajectory
from envprobe_core.plans import chain_length
from envprobe_core.policies import POLICIES, find_policy
from envprobe_core.protocols import Protocol, parse_protocol
from envprobe_core.statistics import RESAMPLES, mean_track
from envprobe_core.sweep import BATCH_SIZE, plan_tasks, run_cells, simulate
from envprobe_core.worlds import WORLDS, make_world

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
SETTINGS_REGIMES = ("S1", "S2", "S3")


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
    return tuple(parse_protocol(name) for name in names(given))


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


def load_environments(
    regime: str = "S2",
    protocols: Names = PROTOCOLS,
    profile: str = "typical",
    seeds: str = DEFAULT_SEEDS,
) -> pd.DataFrame:
    """Run what the section on environments needs: S1, S2, S3 and the regime that is looked at.

    No-Probe runs in every regime, the paper's seven policies in S2. `seeds` are those of `regime`; the
    other regimes run on their own.

    Args:
        regime: name of the regime that is looked at.
        protocols: as in `load_grid`.
        profile: as in `load_grid`.
        seeds: of the regime that is looked at.

    Returns:
        The columns of `load_grid` and, the same for every policy of a seed, `chain_length` (K),
        `mutation_rate` (events a mutable field and tick, from the draws), `initial_accuracy` (A_0), and
        `changed`, `changed_all` (share of mutable, of all fields that mutation changed in a tick of the
        No-Probe episode).
    """
    import pandas as pd

    chosen = read_seeds(seeds)
    cells, own = [], []
    for protocol in find_protocols(protocols):
        for level in dict.fromkeys((*SETTINGS_REGIMES, regime)):
            for world in WORLDS:
                for policy in PAPER_POLICIES if level == "S2" else PAPER_POLICIES[:1]:
                    cell = make_cell(world, policy, level, protocol, profile)
                    cells.append(cell)
                    own.append(cell.default_seeds() if chosen is None or level != regime else chosen)
    frame = run_frame(cells, own)
    idle = [place for place, cell in enumerate(cells) if cell.policy.name == "no-probe"]
    facts = [
        pd.DataFrame(_facts(cell, part, recording))
        for cell, part, recording in record([cells[i] for i in idle], [own[i] for i in idle])
    ]
    return frame.merge(
        pd.concat(facts), on=["world", "regime", "protocol", "seed"], how="left", validate="many_to_one"
    )


def _facts(cell: Cell, seeds: Seeds, recording: Trajectory) -> dict[str, object]:
    """Measure a No-Probe cell's world on each of its seeds, [seed] each."""
    world = make_world(cell.world, cell.regime, cell.protocol)
    changed, changed_all = environments.effective_mutation(world, seeds, recording)
    return {
        "world": cell.world,
        "regime": cell.regime.name,
        "protocol": cell.protocol.name,
        "seed": seeds,
        "chain_length": chain_length(world, seeds),
        "mutation_rate": environments.drawn_mutation(world, seeds),
        "initial_accuracy": environments.accuracy_track(recording)[:, 0],
        "changed": changed,
        "changed_all": changed_all,
    }


def load_drift(
    regime: str = "S2",
    protocols: Names = PROTOCOLS,
    profile: str = "typical",
    seeds: str = DEFAULT_SEEDS,
    policy: str = "no-probe",
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Follow the accuracy A_t of one policy through its episodes.

    Args:
        regime: name of a regime.
        protocols: as in `load_grid`.
        profile: as in `load_grid`.
        seeds: as in `load_grid`.
        policy: whose episodes to follow.
        resamples: bootstrap resamples of the interval over episodes.

    Returns:
        One row a world, protocol and time: `world protocol t accuracy low high running n`. Means are over
        the `running` episodes of `n` that have not ended by then; with fewer than ten of them,
        or a single episode, the mean or its interval is NaN.
    """
    import pandas as pd

    cells = [
        make_cell(world, policy, regime, protocol, profile)
        for protocol in find_protocols(protocols)
        for world in WORLDS
    ]
    chosen = read_seeds(seeds)
    own = [cell.default_seeds() if chosen is None else chosen for cell in cells]
    tracks: dict[Cell, list[npt.NDArray[np.float64]]] = {cell: [] for cell in cells}
    for cell, _, recording in record(cells, own):
        tracks[cell].append(environments.accuracy_track(recording))
    parts = []
    for cell, pieces in tracks.items():
        curve = pd.DataFrame(mean_track(np.concatenate(pieces), resamples))
        curve.insert(0, "protocol", cell.protocol.name)
        curve.insert(0, "world", cell.world)
        parts.append(curve)
    return pd.concat(parts, ignore_index=True)


def load_probe_steps(
    policies: Names = "simple periodic",
    regime: str = "S2",
    protocols: Names = PROTOCOLS,
    profile: str = "typical",
    seeds: str = DEFAULT_SEEDS,
) -> pd.DataFrame:
    """Find out when policies spend their probes.

    Args:
        policies: as in `load_grid`.
        regime: name of a regime.
        protocols: as in `load_grid`.
        profile: as in `load_grid`.
        seeds: as in `load_grid`.

    Returns:
        One row an episode with a probe: `world policy protocol seed first last age`; steps are counted from
        0, `age` is how many steps after the last probe the episode ended.
    """
    import pandas as pd

    cells = [
        make_cell(world, policy, regime, protocol, profile)
        for protocol in find_protocols(protocols)
        for world in WORLDS
        for policy in names(policies)
    ]
    chosen = read_seeds(seeds)
    own = [cell.default_seeds() if chosen is None else chosen for cell in cells]
    parts = []
    for cell, part, recording in record(cells, own):
        fired = recording.probe >= 0
        some = fired.any(axis=1)
        last = fired.shape[1] - 1 - np.argmax(fired[:, ::-1], axis=1)
        key = {"world": cell.world, "policy": cell.policy.name, "protocol": cell.protocol.name}
        steps = {"seed": part, "first": np.argmax(fired, axis=1), "last": last, "age": recording.steps - last}
        parts.append(pd.DataFrame(key | {name: column[some] for name, column in steps.items()}))
    return pd.concat(parts, ignore_index=True)
