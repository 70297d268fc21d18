"""Replayed runs: the replay files of `data/replays/`, run again, and joined to what the book shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from envprobe_core.cells import Names, find_protocols
from envprobe_core.claims import Claim
from envprobe_core.claims.judge import judge
from envprobe_core.errors import InputError
from envprobe_core.grid import episode_frame
from envprobe_core.llm import running
from envprobe_core.llm.calls import RunStoppedError
from envprobe_core.llm.identity import VERSIONS
from envprobe_core.llm.replay import ReplayFile, read_replay
from envprobe_core.runs.manifest import RunInputs
from envprobe_core.sources import DATA, ROOT
from envprobe_core.statistics import RESAMPLES

FOLDER = DATA / "replays"
SUFFIX = ".replay.gz"
FINGERPRINT = "scripted-1"  # of answers by the scripted test server: no language model gave them


def replay_paths(folder: Path = FOLDER) -> list[Path]:
    """Return the replay files of a folder, by name."""
    return sorted(folder.glob(f"*{SUFFIX}"))


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


@dataclass(frozen=True)
class ReplayedRun:
    """A replay file, and what came of running it."""

    path: Path  # the file
    file: ReplayFile  # its content
    label: str  # model and prompt version, as tables name it
    fault: str = ""  # why it has no results; empty where it has
    # a row an episode, `grid.COLUMNS`; `profile` is the model. None where there is a fault
    frame: pd.DataFrame | None = None
    tally: pd.DataFrame | None = None  # a row an episode, what was asked for (`agent.COUNTS`); None likewise

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


def replay_run(path: Path) -> ReplayedRun:
    """Run a replay file again, without network or key.

    Where its prompts are of another version, an answer is missing or another hash comes out, it has no
    results and says why.

    Raises:
        InputError: if it is none, or a damaged one.
    """
    file = read_replay(path)
    agent = file.agent
    run = ReplayedRun(path, file, f"{agent.model.replace('`', chr(39))}, prompts {agent.prompt_version}")
    if agent.prompt_version not in VERSIONS:
        return replace(run, fault=f"its prompts are of none of the versions {', '.join(VERSIONS)}")
    try:
        again = running.replay_run(running.Service(agent, file), file.inputs)
    except RunStoppedError:
        return replace(run, fault="an answer is missing: this engine asks something else")
    if again.result_hash != file.header.result_hash:
        return replace(run, fault="other episodes come out with this engine")
    parts = [cell.columns for cell in again.cells]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    tally = pd.DataFrame(np.concatenate([cell.tally for cell in again.cells]))
    return replace(run, frame=episode_frame(file.inputs.cells, columns), tally=tally)


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
        runs: replayed runs; those without results, or of another regime, are left out.

    Returns:
        The board with further rows, claim by claim; in them `protocol` names protocol, model and prompt
        version, `profile` is the model, and `replayed` is true.
    """
    parts = [board.assign(replayed=False)]
    for run in runs:
        if run.frame is None or run.inputs.regime != regime:
            continue
        model = run.inputs.cells[0].profile.name
        for protocol in (each.name for each in find_protocols(protocols)):
            if protocol in run.inputs.protocols:
                found = judge(run.frame, claims, protocols=[protocol], profile=model, resamples=resamples)
                parts.append(found.assign(protocol=f"{protocol}: {run.label}", replayed=True))
    joined = pd.concat(parts, ignore_index=True)
    place = joined["claim"].map({name: at for at, name in enumerate(dict.fromkeys(board["claim"]))})
    return joined.iloc[np.argsort(place, kind="stable")].reset_index(drop=True)
