"""Trials of prompts: the same situations, asked of one model in several versions, and what it makes of them.

The situations are those that the simulated agent meets on some seeds, so that every version is asked about
the same ones whatever the model would have done. Answers are kept in a file, from which the figures are
computed again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import BaseModel

from envprobe_core.cells import make_cell
from envprobe_core.llm.agent import finish_in_loop, together
from envprobe_core.llm.answers import UNKNOWN_SIGN, InvalidAnswer, parse_update
from envprobe_core.llm.calls import Answer, ChatRequest, MissingAnswerError, key_of, question
from envprobe_core.llm.identity import FIRST, SECOND, ModelAgent
from envprobe_core.llm.prompts import prompts_of, seen_rows
from envprobe_core.llm.rehearsal import met
from envprobe_core.llm.replay import read_answers
from envprobe_core.llm.running import Listener, Service
from envprobe_core.worlds import World, make_world

EXAMPLE = r'"set":"([^"]*)"'  # the rows of a worked answer
EVERY = 3  # steps between two situations of an episode, so that a few seeds give different ones
FIRST_SEED, SEEDS = 1000, 20  # of the episodes, and how many are rehearsed in lockstep


@dataclass(frozen=True)
class Situation:
    """A situation, as one version of the prompts puts it."""

    world: World  # whose action names and values an answer may use
    version: str  # of the prompts
    request: ChatRequest  # what is asked
    seed: int  # of the episode
    step: int
    seen: tuple[tuple[int, int], ...]  # the fields that were shown, and their values

    @property
    def identity(self) -> str:
        """Name whose sample an answer is."""
        return f"trial on episode {self.seed}"


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

    def met(self, world: str, version: str) -> list[Situation]:
        """Return the situations of a world in a version; the same ones in every version."""
        cell, agent = make_cell(world, self.policy, self.regime), self.model
        prompts, built = prompts_of(cell, version), make_world(cell.world, cell.regime, cell.protocol)
        found, seeds = [], range(FIRST_SEED, FIRST_SEED + SEEDS)
        while len(found) < self.situations:
            shown = met(cell, seeds, SECOND, EVERY)
            for one, known in zip(met(cell, seeds, version, EVERY), shown, strict=True):
                request, seen = prompts.update_request(agent, one.text, one.seed), seen_rows(known.text)
                found.append(Situation(built, version, request, one.seed, one.step, tuple(seen)))
            seeds = range(seeds.stop, seeds.stop + SEEDS)
        return found[: self.situations]

    def groups(self) -> Iterator[tuple[str, str, list[Situation]]]:
        """Go through version and world, with the situations of each."""
        for version in self.versions:
            for world in self.worlds:
                yield world, version, self.met(world, version)


def ask(trial: Trial, service: Service) -> list[str]:
    """Ask everything that a trial asks; return the keys of the answers, in hexadecimal.

    Raises:
        RunStoppedError: if an answer cannot be had; those given are kept.
    """

    async def work() -> list[str]:
        async with service.client() as client:
            listener = Listener(client)
            for _, _, asked in trial.groups():
                await together([listener.ask(one.request, one.identity) for one in asked])
            return list(listener.keys)

    return finish_in_loop(work())


def read_trial(path: Path) -> tuple[Trial, pd.DataFrame]:
    """Read a trial and judge its answers.

    Returns:
        The trial, and a row an answer: `world`, `version`, `step`, `valid` (whether it could be used as it
        was first given), `seen` (fields shown), `right` (of them, those that it sets to the value shown),
        `rows` (that it sets), `copied` (of them, those whose field and value stand so in an example of the
        prompt and were not seen), `action`.

    Raises:
        InputError: if it is no trial, or damaged.
        MissingAnswerError: if an answer is not there, as with prompts that have changed.
    """
    trial, answers = read_answers(path, Trial)
    rows = []
    for world, version, asked in trial.groups():
        for one in asked:
            key = key_of(question(trial.model.provider, one.request, one.identity))
            if key not in answers:
                raise MissingAnswerError(f"trial {path} has no answer to step {one.step} of {world}")
            rows.append({"world": world, "version": version, "step": one.step} | judged(one, answers[key]))
    return trial, pd.DataFrame(rows)


def read_trials(folder: Path) -> pd.DataFrame:
    """Return the answers of every trial in a folder, as `read_trial` judges them, world by world."""
    answers = [read_trial(path)[1] for path in sorted(folder.glob("*.trial.gz"))]
    return pd.concat(answers).sort_values(["world", "version"], kind="stable", ignore_index=True)


def judged(asked: Situation, answer: Answer) -> dict[str, object]:
    """Return what `read_trial` tells of an answer."""
    said = {"valid": False, "seen": len(asked.seen), "right": 0, "rows": 0, "copied": 0, "action": ""}
    try:
        update = parse_update(answer.text, asked.world, None if asked.version == FIRST else asked.step)
    except InvalidAnswer:
        return said
    shown = "".join(message["content"] for message in asked.request["messages"][:-1])
    worked = {entry.partition(",")[0] for rows in re.findall(EXAMPLE, shown) for entry in rows.split(";")}
    believed = {field: value for field, value, _, _ in update.entries}
    copied = [
        (field, value)
        for field, value in believed.items()
        if f"{field}:{UNKNOWN_SIGN if value < 0 else value}" in worked and (field, value) not in asked.seen
    ]
    return said | {
        "valid": True,
        "right": sum(believed.get(field) == value for field, value in asked.seen),
        "rows": len(believed),
        "copied": len(copied),
        "action": update.action,
    }
