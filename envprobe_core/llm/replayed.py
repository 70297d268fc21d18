"""Replayed runs: the replay files of `data/replays/`, run again, and joined to what the book shows.

A replay file says what was run and which result hash came out. It is run again here, without network or key;
where its prompts are of another version, an answer is missing or another hash comes out, it has no
results and says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from envprobe_core.cells import Names, find_protocols
from envprobe_core.claims import Claim
from envprobe_core.claims.judge import judge as evaluate_all
from envprobe_core.errors import InputError
from envprobe_core.grid import episode_frame
from envprobe_core.llm import running
from envprobe_core.llm.agent import Tally
from envprobe_core.llm.asking import RunStoppedError
from envprobe_core.llm.prompts import VERSIONS
from envprobe_core.llm.replay import ReplayFile, read_replay
from envprobe_core.runs.inputs import RunInputs
from envprobe_core.sources import DATA, ROOT
from envprobe_core.statistics import RESAMPLES

if TYPE_CHECKING:
    import pandas as pd

FOLDER = DATA / "replays"
SUFFIX = ".replay.gz"
FINGERPRINT = "scripted-1"  # of answers by the scripted test server: no language model gave them


@dataclass(frozen=True)
class ReplayedRun:
    """A replay file, and what came of running it.

    Attributes:
        path: the file.
        file: its content.
        label: model and prompt version, as tables name it.
        fault: why it has no results; empty where it has.
        frame: a row an episode, `grid.COLUMNS`; `profile` is the model. None where there is a fault.
        tally: a row an episode, what was asked for (`llm.agent.Tally`); None likewise.
    """

    path: Path
    file: ReplayFile
    label: str
    fault: str = ""
    frame: pd.DataFrame | None = None
    tally: pd.DataFrame | None = None

    @property
    def inputs(self) -> RunInputs:
        """Return what was run."""
        return self.file.inputs

    @property
    def scripted(self) -> bool:
        """Say whether no language model was asked: every answer is the scripted test server's."""
        return self.file.fingerprints == {FINGERPRINT}

    @property
    def seeds(self) -> int:
        """Return how many seeds its smallest cell has."""
        return min(map(len, self.inputs.seeds_of_cells))


def find_replay(text: str) -> Path:
    """Return the replay file of a name in `data/replays/`, or of a path, absolute or from the checkout.

    Raises:
        InputError: if there is none.
    """
    for path in (FOLDER / f"{text}{SUFFIX}", FOLDER / text, ROOT / text):
        if path.is_file():
            return path
    known = [path.name.removesuffix(SUFFIX) for path in replay_paths()]
    raise InputError(f"no replay {text!r}; accepted: {', '.join(known)}, or the path of a file")


def replay_paths(folder: Path = FOLDER) -> list[Path]:
    """Return the replay files of a folder, by name."""
    return sorted(folder.glob(f"*{SUFFIX}"))


def replay_run(path: Path) -> ReplayedRun:
    """Run a replay file again.

    Raises:
        InputError: if it is none, or a damaged one.
    """
    import pandas as pd

    file = read_replay(path)
    agent, inputs = file.agent, file.inputs
    name = agent.settings.model.replace("`", "'")
    run = ReplayedRun(path, file, f"{name}, prompts {agent.prompt_version}")
    if agent.prompt_version not in VERSIONS:
        return replace(run, fault=f"its prompts are of none of the versions {', '.join(VERSIONS)}")
    try:
        again = running.replay_run(running.Service(agent, file), inputs)
    except RunStoppedError:
        return replace(run, fault="an answer is missing: this engine asks something else")
    if again.result_hash != file.result_hash:
        return replace(run, fault="other episodes come out with this engine")
    columns = {name: np.concatenate([part[name] for part in again.columns]) for name in again.columns[0]}
    tally = pd.DataFrame(asdict(Tally.joined(again.tallies)))
    return replace(run, frame=episode_frame(inputs.cells, columns), tally=tally)


def load_replays(folder: Path = FOLDER) -> list[ReplayedRun]:
    """Run every replay file of a folder again; those with one label are told apart by their files' names.

    Raises:
        InputError: for a file that cannot be read.
    """
    runs = [replay_run(path) for path in replay_paths(folder)]
    labels = [run.label for run in runs]
    return [
        run
        if labels.count(run.label) == 1
        else replace(run, label=f"{run.label}, {run.path.name.removesuffix(SUFFIX)}")
        for run in runs
    ]


def joinable(runs: Iterable[ReplayedRun], regime: str) -> list[ReplayedRun]:
    """Return the runs with results in a regime."""
    return [run for run in runs if run.frame is not None and run.inputs.regime == regime]


def rows_of(run: ReplayedRun, protocols: Names) -> list[tuple[str, str]]:
    """Return the protocols of a run that are among those asked for, with the label of each in tables."""
    wanted = [protocol.name for protocol in find_protocols(protocols)]
    return [(name, f"{name}: {run.label}") for name in wanted if name in run.inputs.protocols]


def join_scoreboard(
    board: pd.DataFrame,
    runs: Sequence[ReplayedRun],
    claims: Sequence[Claim],
    regime: str = "S2",
    protocols: Names = "paper observed released",
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Add a column of every replayed run to the scoreboard.

    Args:
        board: from `scoreboard.load_scoreboard`.
        runs: replayed runs; those of another regime are left out.
        claims: the board's claims.
        regime: of the board.
        protocols: whose columns are wanted.
        resamples: bootstrap resamples.

    Returns:
        The board with further rows, claim by claim; in them `protocol` names protocol, model and prompt
        version, `profile` is the model, and `replayed` is true.
    """
    import pandas as pd

    parts = [board.assign(replayed=False)]
    for run in joinable(runs, regime):
        model = run.inputs.cells[0].profile.name
        for protocol, label in rows_of(run, protocols):
            found = evaluate_all(run.frame, claims, protocols=[protocol], profile=model, resamples=resamples)
            parts.append(found.assign(protocol=label, replayed=True))
    joined = pd.concat(parts, ignore_index=True)
    place = joined["claim"].map({name: at for at, name in enumerate(dict.fromkeys(board["claim"]))})
    return joined.iloc[np.argsort(place, kind="stable")].reset_index(drop=True)
