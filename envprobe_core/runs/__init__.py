"""Runs as folders, and their public reader: a finished run's episodes and steps, as its manifest vouches.

    run = read_run("runs/first")
    run.episodes.groupby("policy")["accuracy"].mean()
    run.steps(policy="simple")

The page *Run it yourself* describes every file and column.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from envprobe_core.errors import InputError
from envprobe_core.measures import is_played
from envprobe_core.runs.manifest import EPISODES, read_manifest
from envprobe_core.runs.tables import sha256

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Run:
    """A finished run: its folder, and its `manifest.json`."""

    path: Path
    manifest: dict[str, Any]

    @property
    def conditions(self) -> DataFrame:
        """A row a condition: its names, budget, threshold, seeds, `log` and `result_hash`."""
        from pandas import DataFrame

        return DataFrame(self.manifest["conditions"])

    @property
    def episodes(self) -> DataFrame:
        """A row an episode, in the order of conditions and seeds; an onset that never comes is null.

        An episode of which no belief update of a language model could be read is none. Of such a model,
        `answered_by` names who answered the condition, as the server said, several with ` + ` between them.
        """
        from envprobe_core.comparing import JOINED

        frame = self._read(EPISODES)
        if "answered" in self.manifest:
            said = [JOINED.join(one["answered_by"]) for one in self.manifest["answered"]]
            counts = [condition["episodes"] for condition in self.manifest["conditions"]]
            frame["answered_by"] = np.repeat(np.array(said, dtype=object), counts)
        return frame[is_played(frame["invalid_share"])].reset_index(drop=True)

    def steps(self, **names: object) -> DataFrame:
        """A row a step of the logged episodes of one condition, and a last row with the state at the end.

        `names` tell the condition from the run's others, as in `policy="simple"`.
        """
        conditions = [
            condition for condition in self.manifest["conditions"] if names.items() <= condition.items()
        ]
        if len(conditions) != 1:
            raise InputError(f"{len(conditions)} conditions of {self.path} are {names}; name one")
        if conditions[0]["log"] is None:
            raise InputError(f"{self.path} was run without logs")
        return self._read(conditions[0]["log"])

    def _read(self, name: str) -> DataFrame:
        from pandas import read_parquet

        if sha256(self.path, name) != self.manifest["sha256"].get(name):
            raise InputError(f"{self.path / name} is not the file that its manifest is of")
        return read_parquet(self.path / name)


def read_run(path: Path | str) -> Run:
    """Open a finished run by its folder; any other is refused with an `InputError`."""
    return Run(Path(path), read_manifest(Path(path), whole=True).as_dict())
