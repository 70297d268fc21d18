"""Drive the paper's public code on tools with agents for a recorded level of .7000, and record each episode.

    python data/public/loops.py FOLDER [--seeds 42:262] [--jobs 2]

FOLDER holds a checkout of the public repository at commit 3266b54, which is no part of this repository and
not changed. The five agents act as a comment of the public code says of its agent (`tool_dag_world.py`, line
139): they call one tool for ever, the first that can be called, in the world of before the change that the
comment explains, where a repeated call is valid. They differ in what they write down: nothing (*loop,
empty*), the table that they wrote first (*loop, kept*), what they see and the target as open (*loop, seen*),
the same with True for each value (*loop, true*), or with every tool that is not completed as open (*loop,
open*).

Beside this file it writes `loops.parquet`, one row an episode, with the columns of `idle.parquet`.
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from drive import EMPTY, WORLDS, Agent, arguments, report, run_cells  # it stands beside this file
from idle import COLUMNS, POLICIES, Nowhere, measured

HERE = Path(__file__).parent
ASKED = ("no-probe", "periodic", "self-uncertainty", "simple", "cd", "oracle")


class Loop(Agent):
    """Calls the first tool that needs nothing, for ever; `form` says what it writes down."""

    form = ""

    def reset(self, env_name: str, task_description: str) -> None:
        super().reset(env_name, task_description)
        self.first: dict[str, Any] | None = None

    def step(self, observation: dict[str, Any], history: list[dict[str, Any]], **_: Any) -> dict[str, Any]:
        names = self.state.get_gold_state()["tools"]
        needs = self.state.get_gold_state()["tool_inputs"]  # which call is valid at once
        tool = next(name for name in names if not needs[name])
        done, values = observation["completed_tools"], observation["tool_outputs_visible"]
        there = dict.fromkeys(values, True)
        table = {
            "empty": {},
            "kept": {"completed_subgoals": done, "tool_outputs": values, "open_dependencies": names},
            "seen": {"completed_subgoals": done, "tool_outputs": values, "open_dependencies": names[-1:]},
            "true": {"completed_subgoals": done, "tool_outputs": there, "open_dependencies": names[-1:]},
            "open": {
                "completed_subgoals": done,
                "tool_outputs": there,
                "open_dependencies": [name for name in names if name not in done],
            },
        }[self.form]
        self.first = table if self.first is None else self.first
        written = EMPTY | (self.first if self.form == "kept" else table)
        return report(written, f"{tool} is next", f"call_tool({tool})", "low")


FORMS = ("empty", "kept", "seen", "true", "open")


def valid_again(call: Any) -> Any:
    """The public call of a tool as it was before a repeated one was refused."""

    def called(self: Any, tool: str, info: dict[str, Any]) -> bool:
        done = self._gold["completed_tools"]
        if tool not in done:
            return call(self, tool, info)
        done.remove(tool)
        valid = call(self, tool, info)
        if tool not in done:  # it was completed, whether or not this call could be made
            done.append(tool)
            done.sort()
        return valid

    return called


def episodes(folder: str, form: str, policy: str, seeds: range) -> list[tuple]:
    """Run one cell of the public code at S2, on tools."""
    sys.path.insert(0, folder)
    from src.environments import make_environment
    from src.environments.tool_dag_world import ToolDAGWorld
    from src.scripts import run_main

    def made(world: str) -> Any:
        Loop.state = make_environment(world)
        return Loop.state

    Loop.form = form
    ToolDAGWorld._call_tool = valid_again(ToolDAGWorld._call_tool)
    run_main.make_environment, run_main.LLMAgent = made, Loop
    run_main.LLMClient, run_main.JsonlLogger = (lambda **_: None), Nowhere
    rows = []
    for seed in seeds:
        cell = run_main.CellSpec("cell", WORLDS["tooldag"], "S2", POLICIES[policy], 1, [seed], "fixture")
        found = run_main.run_one_episode(cell, seed, "stub", Path("steps"), Path(folder) / "errors.jsonl")
        rows.append(("tooldag", "S2", f"loop, {form}", policy, seed, *measured(found)))
    return rows


def main() -> None:
    """Run every cell and write `loops.parquet` beside this file."""
    given = arguments(__doc__, "42:262", HERE / "loops.parquet")
    rows = run_cells(episodes, [*product(FORMS, ASKED)], given)
    pd.DataFrame(rows, columns=COLUMNS).to_parquet(given.out, compression="zstd", index=False)


if __name__ == "__main__":
    main()
