"""Drive the paper's public code with agents whose table is true when it is written, and record each episode.

    python data/public/habits.py FOLDER [--seeds 42:142] [--jobs 2]

FOLDER holds a checkout of the public repository at commit 3266b54, which is no part of this repository and
not changed. Every agent writes down the true state, as *copy-gold* of `drive.py` does, and none is ever wrong
when it writes. They differ in what they do: they act as the scribe, with its two rates or none (*plain*),
take an action at random at every step (*lost*), repeat their last one (*loop*), or never act (*idle*).

Each does so twice. The released rate also calls a belief wrong if its text names a tool that cannot be called
yet, so one line is the scribe's, which names what it does next, and the other names nothing ("my plan").

Beside this file it writes `habits.parquet`, one row an episode, with what the released rate counts.
"""

from __future__ import annotations

import random
import sys
from itertools import product
from pathlib import Path
from typing import Any

import drive  # it stands beside this file

HERE = Path(__file__).parent
ASKED = ("simple", "oracle")  # whose reports that rate compares
COLUMNS = (
    "world",
    "regime",
    "agent",
    "line",
    "policy",
    "seed",
    "steps",
    "success",
    "confident",
    "confident_wrong",
)
RATES = {"scribe": (drive.LOST, drive.LOOP), "plain": (0.0, 0.0), "lost": (1.0, 0.0), "loop": (0.0, 1.0)}
AGENTS = (*RATES, "idle")
LINES = {"names": None, "nameless": "my plan"}


class Told(drive.CopyGold):
    """Writes down the true state, and says of its belief what it is told to."""

    line: str | None = None

    def step(self, observation: dict[str, Any], history: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        answer = super().step(observation, history, **more)
        if self.line is not None:
            answer["beliefs"][0]["content"] = self.line
        return answer


class Idle(Told):
    """Writes down the true state, and proposes what does nothing."""

    def step(self, observation: dict[str, Any], history: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        answer = super().step(observation, history, **more)
        answer["next_decision"]["action"] = "wait()"
        return answer


def episodes(
    folder: str, world: str, regime: str, agent: str, line: str, policy: str, seeds: range
) -> list[tuple]:
    """Run one cell of the public code."""
    sys.path.insert(0, folder)
    from src.environments import make_environment
    from src.scripts import run_main

    kind: Any = Idle if agent == "idle" else Told
    Told.line = LINES[line]
    drive.LOST, drive.CopyGold.loop = RATES.get(agent, RATES["scribe"])

    def made(name: str) -> Any:
        kind.state = make_environment(name)
        return kind.state

    run_main.make_environment, run_main.LLMAgent = made, kind
    run_main.LLMClient, run_main.JsonlLogger = (lambda **_: None), drive.Count
    rows = []
    for seed in seeds:
        kind.random = random.Random(f"{agent} {world} {regime} {seed}")
        cell = run_main.CellSpec(
            "cell", drive.WORLDS[world], regime, drive.POLICIES[policy], 1, [seed], "fixture"
        )
        found = run_main.run_one_episode(cell, seed, "stub", Path("steps"), Path(folder) / "errors.jsonl")
        steps, _, success, *_ = drive.measured(found)
        own = (steps, success, drive.Count.last.confident, drive.Count.last.confident_wrong)
        rows.append((world, regime, agent, line, policy, seed, *own))
    return rows


def main() -> None:
    """Run every cell and write `habits.parquet` beside this file."""
    given = drive.arguments(__doc__, "42:142", HERE / "habits.parquet")
    cells = [(world, "S2", agent, line, policy)
             for line in LINES for world, agent, policy in product(drive.WORLDS, AGENTS, ASKED)]  # fmt: skip
    drive.run_what_is_missing(episodes, cells, given, COLUMNS)


if __name__ == "__main__":
    main()
