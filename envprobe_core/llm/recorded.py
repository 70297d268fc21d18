"""What real models were asked and said, as the book keeps it: recorded runs, and trials of prompts.

A replay file is run again, without a key or a network. A trial asks one model in several versions of the
prompts about the situations that are met in a rehearsal: the same ones, whatever the model would have done.
Its answers are kept in a file, from which the figures are computed again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel

from envprobe_core.agents.profiles import PROFILES
from envprobe_core.cells import Names, find_protocols, make_cell
from envprobe_core.claims import Claim
from envprobe_core.claims.judge import judge
from envprobe_core.errors import InputError
from envprobe_core.grid import episode_frame
from envprobe_core.llm import FIRST, SECOND, VERSIONS, ModelAgent
from envprobe_core.llm.agent import Exchange, exchanges, finish_in_loop, together
from envprobe_core.llm.answers import UNKNOWN_SIGN, InvalidAnswer, parse_update
from envprobe_core.llm.calls import RunStoppedError, question
from envprobe_core.llm.client import Service
from envprobe_core.llm.prompts import seen_rows
from envprobe_core.llm.running import replay_run
from envprobe_core.llm.store import ReplayFile, read_answers, read_replay
from envprobe_core.runs.manifest import RunInputs
from envprobe_core.sources import DATA, ROOT
from envprobe_core.statistics import RESAMPLES

FOLDER = DATA / "replays"
SUFFIX = ".replay.gz"
FINGERPRINT = "scripted-1"  # of answers by the scripted test server: no language model gave them


def find_replay(text: str) -> Path:
    """Return the replay file of a name in `data/replays/`, or of a path, absolute or from the checkout.

    Raises:
        InputError: if there is none.
    """
    for path in (FOLDER / f"{text}{SUFFIX}", FOLDER / text, ROOT / text):
        if path.is_file():
            return path
    known = [path.name.removesuffix(SUFFIX) for path in sorted(FOLDER.glob(f"*{SUFFIX}"))]
    raise InputError(f"no replay {text!r}; accepted: {', '.join(known)}, or the path of a file")


@dataclass(frozen=True)
class ReplayedRun:
    """A replay file, and the result of running it."""

    file: ReplayFile
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


def quoted(text: str) -> str:
    """Write what a file says, in Markdown, so that it stays text whatever it is."""
    plain = " ".join(text.split()).replace("`", "'")
    return f"`{plain}`"


def replay_file(path: Path) -> ReplayedRun:
    """Run a replay file again, without network or key.

    Where its prompts are of another version, an answer is missing or another hash comes out, it has no
    results and says why.

    Raises:
        InputError: if it is none, or a damaged one.
    """
    file = read_replay(path)
    agent = file.agent
    run = ReplayedRun(file, f"{quoted(agent.model)[1:-1]}, prompts {agent.prompt_version}")
    if agent.prompt_version not in VERSIONS:
        return replace(run, fault=f"its prompts are of none of the versions {', '.join(VERSIONS)}")
    try:
        cells, found = replay_run(Service(agent, file), file.inputs)
    except RunStoppedError:
        return replace(run, fault="an answer is missing: this engine asks something else")
    if found != file.header.result_hash:
        return replace(run, fault="other episodes come out with this engine")
    columns = {name: np.concatenate([cell.columns[name] for cell in cells]) for name in cells[0].columns}
    columns["cell"] = np.repeat(np.arange(len(cells)), [len(cell.tally) for cell in cells])
    tally = pd.DataFrame([counts for cell in cells for counts in cell.tally])
    return replace(run, frame=episode_frame(file.inputs.cells, columns), tally=tally)


def load_replays(folder: Path = FOLDER) -> list[ReplayedRun]:
    """Run every replay file of a folder again; those with one label are told apart by their files' names.

    Raises:
        InputError: for a file that cannot be read.
    """
    runs = [replay_file(path) for path in sorted(folder.glob(f"*{SUFFIX}"))]
    labels = [run.label for run in runs]
    return [
        run
        if labels.count(run.label) == 1
        else replace(run, label=f"{run.label}, {run.file.path.name.removesuffix(SUFFIX)}")
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
        claims: the rows of the board.
        regime: of the board.
        protocols: of the board.
        resamples: of each interval.

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


# ---------------------------------------------------------------- trials of prompts

EXAMPLE = r'"set":"([^"]*)"'  # the rows of a worked answer
EVERY = 3  # steps between two situations of an episode, so that a few seeds give different ones
FIRST_SEED, SEEDS = 1000, 20  # of the episodes, and how many are rehearsed in lockstep
Seen = list[tuple[int, int]]  # the fields that a situation shows, and their values


class Trial(BaseModel):
    """What is asked, as the first line of a trial's file states it."""

    format: Literal["envprobe-trial/1"] = "envprobe-trial/1"
    agent: dict[str, Any]  # the model, as manifests state it
    worlds: list[str]  # each world is asked about in each version
    versions: list[str]
    policy: str  # of the episodes that are met
    regime: str
    situations: int  # how many of each world
    note: str = ""  # where the answers come from

    @property
    def model(self) -> ModelAgent:
        """Return which model is asked."""
        return ModelAgent.from_dict(self.agent)

    def met(self, world: str, version: str) -> list[tuple[Exchange, Seen]]:
        """Return the situations of a world in a version, and what each shows; the same in every version."""
        cell = make_cell(world, self.policy, self.regime)
        agents = [replace(self.model, prompt_version=each) for each in (version, SECOND)]
        found: list[tuple[Exchange, Seen]] = []
        seeds = np.arange(FIRST_SEED, FIRST_SEED + SEEDS)
        while len(found) < self.situations:
            asked, shown = ([*exchanges(cell, seeds, agent, PROFILES["perfect"])] for agent in agents)
            for seed in seeds:
                pairs = [pair for pair in zip(asked, shown, strict=True) if pair[0].seed == seed]
                for one, known in pairs[::EVERY]:
                    seen = seen_rows(known.request["messages"][-1]["content"])
                    found.append((one._replace(identity=f"trial on episode {seed}"), seen))
            seeds = seeds + SEEDS
        return found[: self.situations]

    def groups(self) -> Iterator[tuple[str, str, list[tuple[Exchange, Seen]]]]:
        """Go through version and world, with the situations of each."""
        for version in self.versions:
            for world in self.worlds:
                yield world, version, self.met(world, version)


def read_trial(path: Path) -> tuple[Trial, pd.DataFrame]:
    """Read a trial and judge its answers.

    Returns:
        The trial, and a row an answer: `world`, `version`, `step`, `valid` (whether it could be used as it
        was first given), `seen` (fields shown), `right` (of them, those that it sets to the value shown),
        `rows` (that it sets), `copied` (of them, those whose field and value stand so in an example of the
        prompt and were not seen), `action`.

    Raises:
        InputError: if it is no trial, or damaged.
        RunStoppedError: if an answer is not there, as with prompts that have changed.
    """
    trial, answers = read_answers(path, Trial)
    rows = []
    for world, version, asked in trial.groups():
        for one, seen in asked:
            key = question(trial.model.provider, one.request, one.identity).key
            if key not in answers:
                raise RunStoppedError(f"trial {path} has no answer to step {one.step} of {world}")
            told = judged(one, seen, version, answers[key].text)
            rows.append({"world": world, "version": version, "step": one.step} | told)
    return trial, pd.DataFrame(rows)


def read_trials(folder: Path) -> pd.DataFrame:
    """Return the answers of every trial in a folder, as `read_trial` judges them, world by world."""
    answers = [read_trial(path)[1] for path in sorted(folder.glob("*.trial.gz"))]
    return pd.concat(answers).sort_values(["world", "version"], kind="stable", ignore_index=True)


def judged(asked: Exchange, seen: Seen, version: str, answer: str) -> dict[str, object]:
    """Return the columns that `read_trial` gives for an answer."""
    said = {"valid": False, "seen": len(seen), "right": 0, "rows": 0, "copied": 0, "action": ""}
    try:
        update = parse_update(answer, asked.world, None if version == FIRST else asked.step)
    except InvalidAnswer:
        return said
    shown = "".join(message["content"] for message in asked.request["messages"][:-1])
    worked = {entry.partition(",")[0] for rows in re.findall(EXAMPLE, shown) for entry in rows.split(";")}
    believed = {field: value for field, value, _, _ in update.entries}
    copied = [
        (field, value)
        for field, value in believed.items()
        if f"{field}:{UNKNOWN_SIGN if value < 0 else value}" in worked and (field, value) not in seen
    ]
    return said | {
        "valid": True,
        "right": sum(believed.get(field) == value for field, value in seen),
        "rows": len(believed),
        "copied": len(copied),
        "action": update.action,
    }


def ask_trial(trial: Trial, service: Service) -> list[str]:
    """Ask everything that a trial of prompts asks; return the keys of the answers, in hexadecimal.

    Raises:
        RunStoppedError: if an answer cannot be had; those given are kept.
    """

    async def work() -> list[str]:
        async with service.client() as client:
            groups = [[one for one, _ in met] for _, _, met in trial.groups()]
            told = [await together([client.ask(one.request, one.identity) for one in met]) for met in groups]
            return [answer.key for answers in told for answer in answers]

    return finish_in_loop(work())
