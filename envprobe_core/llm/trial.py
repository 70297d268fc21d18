"""Trials of prompts: the same situations, asked of one model in several versions, and what it makes of them.

The situations are those that the simulated agent meets on some seeds, so that every version is asked about
the same ones whatever the model would have done. Answers are kept in a file, from which the figures are
computed again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import BaseModel

from envprobe_core.cells import make_cell
from envprobe_core.llm.agent import together
from envprobe_core.llm.answers import InvalidAnswer, parse_update
from envprobe_core.llm.asking import ChatRequest, MissingAnswerError
from envprobe_core.llm.identity import ModelAgent
from envprobe_core.llm.keys import key_of, question
from envprobe_core.llm.prompts import FIRST, SECOND, Prompts, prompts_of, seen_rows
from envprobe_core.llm.reading import Completion
from envprobe_core.llm.rehearsal import met
from envprobe_core.llm.replay import read_answers
from envprobe_core.llm.running import Listener, Service, finish_in_loop
from envprobe_core.llm.situations import UNKNOWN_SIGN

EXAMPLE = r'"set":"([^"]*)"'  # the rows of a worked answer
EVERY = 3  # steps between two situations of an episode, so that a few seeds give different ones
FIRST_SEED = 1000


@dataclass(frozen=True)
class Situation:
    """A situation, as one version of the prompts puts it.

    Attributes:
        prompts: the version's.
        request: what is asked.
        seed, step: of the episode.
        seen: the fields that were shown, and their values.
    """

    prompts: Prompts
    request: ChatRequest
    seed: int
    step: int
    seen: tuple[tuple[int, int], ...]


class Trial(BaseModel):
    """What is asked, as the first line of a trial's file states it.

    Attributes:
        agent: the model, as manifests state it.
        worlds, versions: each world is asked about in each version.
        policy, regime: of the episodes that are met.
        situations: how many of each world.
        note: where the answers come from.
    """

    format: Literal["envprobe-trial/1"] = "envprobe-trial/1"
    agent: dict[str, Any]
    worlds: list[str]
    versions: list[str]
    policy: str
    regime: str
    situations: int
    note: str = ""

    def met(self, world: str, version: str) -> list[Situation]:
        """Return the situations of a world in a version; the same ones in every version."""
        cell, agent = make_cell(world, self.policy, self.regime), self.model
        prompts, found, seed = prompts_of(cell, version), [], FIRST_SEED
        while len(found) < self.situations:
            asked = met(cell, seed, version)[::EVERY]
            shown = met(cell, seed, SECOND)[::EVERY]
            for (step, text, _), (_, known, _) in zip(asked, shown, strict=True):
                request = prompts.update_request(agent.settings, text, seed)
                found.append(Situation(prompts, request, seed, step, tuple(seen_rows(known))))
            seed += 1
        return found[: self.situations]

    @property
    def model(self) -> ModelAgent:
        """Return which model is asked."""
        return ModelAgent.from_dict(self.agent)


def identity(situation: Situation) -> str:
    """Name whose sample an answer is."""
    return f"trial on episode {situation.seed}"


def ask(trial: Trial, service: Service) -> list[str]:
    """Ask everything that a trial asks; return the keys of the answers, in hexadecimal.

    Raises:
        RunStoppedError: if an answer cannot be had; those given are kept.
    """

    async def work() -> list[str]:
        client = service.client()
        listener = Listener(client)
        try:
            for version in trial.versions:
                for world in trial.worlds:
                    asked = trial.met(world, version)
                    await together([listener.ask(one.request, identity(one)) for one in asked])
        finally:
            await client.close()
        return list(listener.keys)

    return finish_in_loop(work())


def read_trial(path: Path) -> tuple[Trial, pd.DataFrame]:
    """Read a trial and judge its answers.

    Args:
        path: the file.

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
    for version in trial.versions:
        for world in trial.worlds:
            for one in trial.met(world, version):
                key = key_of(question(trial.model.provider, one.request, identity(one)))
                if key not in answers:
                    raise MissingAnswerError(f"trial {path} has no answer to step {one.step} of {world}")
                rows.append(
                    {"world": world, "version": version, "step": one.step} | judged(one, answers[key])
                )
    return trial, pd.DataFrame(rows)


def read_trials(folder: Path) -> pd.DataFrame:
    """Return the answers of every trial in a folder, as `read_trial` judges them, world by world."""
    answers = [read_trial(path)[1] for path in sorted(folder.glob("*.trial.gz"))]
    return pd.concat(answers).sort_values(["world", "version"], kind="stable", ignore_index=True)


def judged(asked: Situation, answer: Completion) -> dict[str, object]:
    """Return what `read_trial` tells of an answer."""
    version = asked.prompts.version
    said = {"valid": False, "seen": len(asked.seen), "right": 0, "rows": 0, "copied": 0, "action": ""}
    try:
        update = parse_update(answer.text, asked.prompts.vocabulary, None if version == FIRST else asked.step)
    except InvalidAnswer:
        return said
    shown = "".join(message["content"] for message in asked.request["messages"][:-1])
    worked = {entry.partition(",")[0] for rows in re.findall(EXAMPLE, shown) for entry in rows.split(";")}
    written = [
        (field, value, f"{field}:{UNKNOWN_SIGN if value < 0 else value}")
        for field, value, *_ in update.entries
    ]
    copied = sum(entry in worked and (field, value) not in asked.seen for field, value, entry in written)
    believed = {field: value for field, value, _, _ in update.entries}
    right = sum(believed.get(field) == value for field, value in asked.seen)
    return said | {
        "valid": True, "right": right, "rows": len(written), "copied": copied, "action": update.action,
    }  # fmt: skip
