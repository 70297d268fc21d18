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

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd

HERE = Path(__file__).parent
WORLDS = {"tooldag": "ToolDAGWorld", "objectstate": "ObjectStateWorld", "graphnav": "GraphNavWorld"}
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
COLUMNS = (
    "world", "regime", "agent", "policy", "seed", "steps", "accuracy", "success", "collapse_onset",
    "action_onset", "probes", "useful",
)  # fmt: skip


class TargetOnly:
    """Stands where the public code has its agent: it calls the target tool and reports nothing else."""

    def __init__(self, *_: Any, **__: Any) -> None:
        return None

    def reset(self, env_name: str, task_description: str) -> None:
        """Begin an episode; nothing is kept."""

    def step(self, observation: dict[str, Any], history: list[dict[str, Any]], **_: Any) -> dict[str, Any]:
        """Answer with an empty table, one belief, and the call of the target tool."""
        number = observation["target_variable"].partition("_")[2]
        held = {
            "id": "b1", "content": "nothing is done yet", "type": "other", "source_step": 0,
            "last_verified_step": 0, "used_by_next_action": True, "required_for": [], "criticality": "high",
            "staleness": 0, "confidence": 0.9,
        }  # fmt: skip
        empty = {
            "current_location": None, "inventory": [], "object_locations": {}, "door_states": {},
            "tool_outputs": {}, "completed_subgoals": [], "open_dependencies": [],
        }  # fmt: skip
        return {
            "belief_world_state": empty,
            "beliefs": [held],
            "next_decision": {"type": "act", "action": f"call_tool(t_{number})", "target_belief": "b1"},
            "self_check": {
                "is_current_world_state_consistent": True,
                "missing_preconditions": [],
                "risk_level": "medium",
            },
        }

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
        own = found["episode_metrics"]
        rows.append(
            (
                world,
                "S2",
                agent,
                policy,
                seed,
                own["n_steps"],
                own["world_state_accuracy"],
                own["task_success"],
                own["collapse_onset"],
                own["action_collapse_onset"],
                found["probes_used"],
                found["useful_probe_count"],
            )
        )
    return rows


def main() -> None:
    """Run every cell and write `idle.parquet` beside this file."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", help="a checkout of the public code")
    parser.add_argument("--seeds", default="42:262")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=HERE / "idle.parquet")
    given = parser.parse_args()
    first, past = map(int, given.seeds.split(":"))
    cells = [*product(["tooldag"], ["target-only"], POLICIES), *product(WORLDS, ["no-answer"], POLICIES)]
    rows: list[tuple] = []
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(episodes, given.folder, *cell, range(first, past)) for cell in cells]
        for done in waiting:
            rows += done.result()
    pd.DataFrame(rows, columns=COLUMNS).to_parquet(given.out, compression="zstd", index=False)


if __name__ == "__main__":
    main()
