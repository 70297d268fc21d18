"""Drive the paper's public code with two agents that get nothing done, and record each episode.

    python data/public/idle.py FOLDER [--seeds 42:262] [--jobs 2]

FOLDER holds a checkout of the public repository at commit 3266b54, which is no part of this repository and
not changed. *target-only* stands where that code has its language model: at every step it calls the tool that
would end the task, names nothing as done and reports a medium risk. *no-answer* leaves the public agent as
it is and lets every call to the model fail.

Beside this file it writes `idle.parquet`, one row an episode, with the columns of `episodes.parquet` from
`world` to `useful`.
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from drive import COLUMNS as DRIVEN  # drive.py stands beside this file
from drive import WORLDS, arguments, measured, report, run_cells

HERE = Path(__file__).parent
POLICIES = {
    "no-probe": "no_probe",
    "random": "random_probe",
    "periodic": "periodic_probe",
    "self-uncertainty": "self_uncertainty_probe",
    "simple": "envprobe_simple",
    "cd": "envprobe_simple_cd",
    "minus-s": "envprobe_simple_minus_s",
    "minus-u": "envprobe_simple_minus_u",
    "judge": "envprobe_judge",
    "oracle": "oracle_probe",
}
COLUMNS = DRIVEN[: DRIVEN.index("useful") + 1]


class TargetOnly:
    """Stands where the public code has its agent: it calls the target tool and reports nothing else."""

    def __init__(self, *_: Any, **__: Any) -> None:
        return None

    def reset(self, env_name: str, task_description: str) -> None:
        """Begin an episode; nothing is kept."""

    def step(self, observation: dict[str, Any], history: list[dict[str, Any]], **_: Any) -> dict[str, Any]:
        """Answer with an empty table, one belief, and the call of the target tool."""
        number = observation["target_variable"].partition("_")[2]
        return report({}, "nothing is done yet", f"call_tool(t_{number})", "medium", required_for=[])

    def judge_probe(self, **_: Any) -> dict[str, Any]:
        """Advise to act."""
        return {"decision": "act", "target_belief_id": None, "probe_action": None, "reasoning": ""}


class NoAnswer:
    """Stands where the public code has its client: every call fails."""

    def __init__(self, *_: Any, **__: Any) -> None:
        return None

    def chat_json(self, *_: Any, **__: Any) -> dict[str, Any]:
        """Fail as a client does whose retries are used up."""
        raise ConnectionError("no answer")


class Nowhere:
    """Takes the place of the file of steps."""

    def __init__(self, _: Any) -> None:
        return None

    def __enter__(self) -> Nowhere:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def write(self, row: dict[str, Any]) -> None:
        """Keep nothing."""


def episodes(folder: str, world: str, agent: str, policy: str, seeds: range) -> list[tuple]:
    """Run one cell of the public code at S2."""
    sys.path.insert(0, folder)
    from src.agents.llm_agent import LLMAgent
    from src.scripts import run_main

    run_main.JsonlLogger = Nowhere
    run_main.LLMAgent = TargetOnly if agent == "target-only" else LLMAgent
    run_main.LLMClient = NoAnswer
    rows = []
    for seed in seeds:
        cell = run_main.CellSpec("cell", WORLDS[world], "S2", POLICIES[policy], 1, [seed], "fixture")
        found = run_main.run_one_episode(cell, seed, "stub", Path("steps"), Path(folder) / "errors.jsonl")
        rows.append((world, "S2", agent, policy, seed, *measured(found)))
    return rows


def main() -> None:
    """Run every cell and write `idle.parquet` beside this file."""
    given = arguments(__doc__, "42:262", HERE / "idle.parquet")
    cells = [*product(["tooldag"], ["target-only"], POLICIES), *product(WORLDS, ["no-answer"], POLICIES)]
    rows = run_cells(episodes, cells, given)
    pd.DataFrame(rows, columns=COLUMNS).to_parquet(given.out, compression="zstd", index=False)


if __name__ == "__main__":
    main()
